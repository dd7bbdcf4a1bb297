//! Parses a request, and builds the head of an answer.

use gpuio_watch::openmetrics;

/// Longest head of a request, in bytes.
pub(super) const MOST_HEAD: usize = 8 << 10;
/// Most header fields of a request; Prometheus sends six.
const MOST_FIELDS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resource {
    Metrics,
    /// The HTML page with a link to the counters.
    Landing,
    /// Neither: the status line.
    Status(&'static str),
}

/// A complete request, or an invalid one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) resource: Resource,
    /// Whether the answer has a body: one to HEAD has none.
    pub(super) body: bool,
}

impl Request {
    pub(super) fn status(status: &'static str) -> Request {
        Request { resource: Resource::Status(status), body: true }
    }
}

/// The request in the bytes so far; `None` if more are needed.
pub(super) fn read(head: &[u8]) -> Option<Request> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let long = Request::status("431 Request Header Fields Too Large");
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return (head.len() > MOST_HEAD).then_some(long),
        Err(httparse::Error::TooManyHeaders) => return Some(long),
        Err(httparse::Error::Version) => {
            return Some(Request::status("505 HTTP Version Not Supported"));
        }
        Err(_) => return Some(Request::status("400 Bad Request")),
    }
    let resource = match request.path.and_then(|target| target.split('?').next()) {
        Some("/metrics") => Resource::Metrics,
        Some("/") => Resource::Landing,
        _ => return Some(Request::status("404 Not Found")),
    };
    Some(match request.method {
        Some("GET") => Request { resource, body: true },
        Some("HEAD") => Request { resource, body: false },
        _ => Request::status("405 Method Not Allowed"),
    })
}

/// The head of an answer with a body of this size.
pub(super) fn head(resource: Resource, length: usize) -> String {
    let (status, media) = match resource {
        Resource::Metrics => ("200 OK", openmetrics::MEDIA_TYPE),
        Resource::Landing => ("200 OK", "text/html; charset=utf-8"),
        Resource::Status(status) => (status, "text/plain; charset=utf-8"),
    };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n{allow}\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
}

/// The HTML page.
pub(super) const LANDING: &str = concat!(
    "<!doctype html>\n<html lang=\"en\">\n<title>gpuio top</title>\n<h1>gpuio top</h1>\n",
    "<p>gpuio ",
    env!("CARGO_PKG_VERSION"),
    " serves raw counters of this machine's devices to Prometheus.</p>\n",
    "<p><a href=\"/metrics\">/metrics</a>: OpenMetrics text, read at each request.</p>\n",
    "</html>\n"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_complete_or_invalid_or_continues() {
        let whole = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(read(whole), Some(Request { resource: Resource::Metrics, body: true }));
        (0..whole.len()).for_each(|end| assert_eq!(read(&whole[..end]), None, "{end}"));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MOST_FIELDS + 1));
        assert_eq!(read(many.as_bytes()), read(&[b'A'; MOST_HEAD + 1]));
        assert_eq!(
            read(b"HEAD / HTTP/1.1\n\n"),
            Some(Request { resource: Resource::Landing, body: false })
        );
    }
}
