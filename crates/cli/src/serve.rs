//! A page for Prometheus: HTTP/1.1, `GET /metrics` and nothing else.
//!
//! One request is answered at a time, which bounds what a crowd can cost; a client has two seconds
//! in all and 8 KiB for its head. Each answer reads the counters anew and closes the connection
//! (RFC 9112, RFC 9110).

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gpuio_watch::{Watcher, openmetrics};

use crate::failure::Failure;
use crate::interrupt;

/// Longest head of a request.
const MOST_HEAD: usize = 8 << 10;
/// How long a client may take for its request, and again for its answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it takes at most until Ctrl-C is seen.
const NAP: Duration = Duration::from_millis(50);

/// `9400` is this machine alone; an address of the network has to be written.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Failure> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let text = text.replacen("localhost:", "127.0.0.1:", 1);
    text.parse().map_err(|_| {
        Failure::Usage(format!(
            "--serve {text}: give a port (9400), or address and port (0.0.0.0:9400, [::1]:9400)"
        ))
    })
}

/// Serves until Ctrl-C.
pub(crate) fn run(mut watcher: Watcher, address: SocketAddr) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::Unavailable(format!("--serve {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    tell!("serving http://{bound}/metrics; Ctrl-C ends it");
    let stop = interrupt::flag();
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // A client that goes away or misbehaves is its own affair.
            Ok((stream, _)) => drop(answer(&stream, || openmetrics::text(&watcher.sample()))),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(NAP),
            // Aborted before it was taken, or out of descriptors for a moment.
            Err(_) => std::thread::sleep(NAP),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(stream: &TcpStream, page: impl FnOnce() -> String) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = read_head(stream)?;
    let (status, media, body) = match asked(&head) {
        Ok(()) => ("200 OK", openmetrics::MEDIA_TYPE, page()),
        Err(status) => (status, "text/plain; charset=utf-8", format!("{status}\n")),
    };
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n{allow}\
         Connection: close\r\n\r\n{body}"
    );
    let mut stream = stream;
    stream.write_all(text.as_bytes())
}

/// The head of a request, as much as came of it: to its empty line, its end, the limit or the end
/// of patience.
fn read_head(mut stream: &TcpStream) -> std::io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut piece = [0u8; 1024];
    while head.len() <= MOST_HEAD && !ended(&head) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => head.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

fn ended(head: &[u8]) -> bool {
    head.windows(4).any(|four| four == b"\r\n\r\n") || head.windows(2).any(|two| two == b"\n\n")
}

/// Whether this asks for the page; else the status that says why not.
fn asked(head: &[u8]) -> Result<(), &'static str> {
    if head.len() > MOST_HEAD {
        return Err("431 Request Header Fields Too Large");
    }
    if !ended(head) {
        return Err("408 Request Timeout");
    }
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| "400 Bad Request")?;
    let words: Vec<&str> = line.trim_end().split(' ').collect();
    let [method, target, version] = words.as_slice() else { return Err("400 Bad Request") };
    if !version.starts_with("HTTP/1.") {
        return Err("505 HTTP Version Not Supported");
    }
    if *method != "GET" {
        return Err("405 Method Not Allowed");
    }
    match target.split('?').next() {
        Some("/metrics") => Ok(()),
        _ => Err("404 Not Found"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client gets that sends these bytes and, perhaps, nothing more.
    fn sent(bytes: &[u8], close: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            drop(answer(&stream, || "page\n".to_owned()));
        });
        let mut client = TcpStream::connect(at).unwrap();
        // The server may have answered and gone before all is written.
        let _ = client.write_all(bytes);
        if close {
            let _ = client.shutdown(std::net::Shutdown::Write);
        }
        let mut got = Vec::new();
        let _ = client.read_to_end(&mut got);
        server.join().unwrap();
        String::from_utf8_lossy(&got).into_owned()
    }

    #[test]
    fn only_the_page_is_served() {
        let got = sent(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", false);
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("\r\n\r\npage\n"), "{got}");
        assert!(got.contains("Content-Length: 5\r\n"));
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("GET /metrics HTTP/2\r\n\r\n", "505"),
            ("nonsense\r\n\r\n", "400"),
            ("\r\n\r\n", "400"),
        ] {
            let got = sent(request.as_bytes(), false);
            assert!(got.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {got}");
        }
    }

    #[test]
    fn hostile_clients_get_a_status_and_no_more() {
        let got = sent(b"\xff\xfe \x00 HTTP/1.1\r\n\r\n", false);
        assert!(got.starts_with("HTTP/1.1 400"), "{got}");
        let got = sent(b"GET /metrics HTTP/1.1\r\nX: y", true);
        assert!(got.starts_with("HTTP/1.1 408"), "{got}");
        assert_eq!(asked(&vec![b'a'; MOST_HEAD + 1]), Err("431 Request Header Fields Too Large"));
    }

    #[test]
    fn a_client_that_dawdles_is_left() {
        let began = Instant::now();
        let got = sent(b"GET /met", false);
        assert!(got.starts_with("HTTP/1.1 408"), "{got}");
        assert!(began.elapsed() < PATIENCE * 3);
    }

    #[test]
    fn a_port_alone_is_this_machine_alone() {
        assert_eq!(address("9400").unwrap().to_string(), "127.0.0.1:9400");
        assert_eq!(address("0.0.0.0:1").unwrap().to_string(), "0.0.0.0:1");
        assert_eq!(address("[::1]:1").unwrap().to_string(), "[::1]:1");
        assert!(address("host").is_err() && address("70000").is_err());
    }
}
