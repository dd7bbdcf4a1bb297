//! Pages over HTTP/1.1 for Prometheus and people: `/metrics`, and `/` with a link to it.
//!
//! One thread waits for all connections at once (poll(2)), so that no client blocks another: a
//! scrape is answered while hundreds of connections are idle. The page is rendered by another
//! thread: it takes the longer the more processes publish counters. Everything is limited:
//! connections, size of a head, time for a request and for receiving the answer. Each answer closes
//! its connection (RFC 9112, RFC 9110).

mod connection;
mod request;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::connection::Connection;
use crate::failure::Failure;
use crate::{interrupt, output};

/// Maximum number of connections: a new one replaces the one that has been idle for longest.
const MOST_CONNECTIONS: usize = 1024;
/// Maximum number of connections that are accepted before existing ones are served.
const MOST_AT_ONCE: usize = 256;
/// Maximum delay of Ctrl-C, and for how long a page is given to others too.
const TURN: Duration = Duration::from_millis(50);
/// Maximum age of a rendered page that is given to anyone.
const MOST_AGE: Duration = Duration::from_secs(1);

/// `9400` serves this machine only; a network address must be written out.
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

/// Serves this page until Ctrl-C.
pub(crate) fn run(address: SocketAddr, page: impl FnMut() -> String) -> Result<ExitCode, Failure> {
    let bound = Bound::new(address)?;
    message!("serving http://{}/metrics; Ctrl-C stops", bound.at);
    bound.serve(page, &interrupt::flag())?;
    Ok(ExitCode::SUCCESS)
}

/// An address that is served.
pub(crate) struct Bound {
    listener: TcpListener,
    pub(crate) at: SocketAddr,
}

impl Bound {
    pub(crate) fn new(address: SocketAddr) -> Result<Bound, Failure> {
        let failed = |error| Failure::Unavailable(format!("--serve {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        Ok(Bound { listener, at })
    }

    /// Serves until this is set.
    pub(crate) fn serve(
        self,
        mut page: impl FnMut() -> String,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let at = self.at;
        let page = move || output::fit(&page()).into_owned();
        let done = serve(self.listener, page, stop);
        done.map_err(|error| Failure::Unavailable(format!("--serve {at}: {error}")))
    }
}

/// Answers on a thread of its own, and renders here.
fn serve(
    listener: TcpListener,
    mut page: impl FnMut() -> String,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    let (mut wake, woken) = UnixStream::pair()?;
    for end in [&wake, &woken] {
        end.set_nonblocking(true)?;
    }
    let (asked, asks) = mpsc::channel();
    let made: Mutex<Option<Made>> = Mutex::new(None);
    let ended = AtomicBool::new(false);
    let (made, ended) = (&made, &ended);
    let locked = move || made.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        // Also where rendering panics.
        let _end = End(ended);
        let (mut waits, mut taken): (bool, Option<Made>) = (false, None);
        let source = move || {
            if let Some((at, text)) = locked().take() {
                waits = false;
                // An older one was made for a client that has gone.
                taken = (at.elapsed() < MOST_AGE).then(|| (Instant::now(), text));
            }
            let fresh = taken.clone().filter(|(at, _)| at.elapsed() < TURN);
            if fresh.is_none() && !waits {
                // An error means that this is the end.
                waits = asked.send(()).is_ok();
            }
            fresh.map(|(_, text)| text)
        };
        let is_over = move || stop.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed);
        let run = move || Server::new(listener, woken, source).run(is_over);
        let server = std::thread::Builder::new().name("gpuio-answers".to_owned());
        let server = server.spawn_scoped(scope, run)?;
        while asks.recv().is_ok() {
            let text: Arc<str> = page().into();
            *locked() = Some((Instant::now(), text));
            // A full one wakes all the same.
            let _ = wake.write(&[0]);
        }
        server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// When a page was rendered or taken, and the page.
type Made = (Instant, Arc<str>);

/// Tells the server that pages are no longer rendered.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A listener, its connections, and where the page comes from.
struct Server<P> {
    listener: TcpListener,
    /// Readable when there is a page.
    woken: UnixStream,
    /// Oldest first.
    connections: Vec<Connection>,
    page: P,
}

impl<P: FnMut() -> Option<Arc<str>>> Server<P> {
    fn new(listener: TcpListener, woken: UnixStream, page: P) -> Server<P> {
        Server { listener, woken, connections: Vec::new(), page }
    }

    fn run(&mut self, is_over: impl Fn() -> bool) -> std::io::Result<()> {
        while !is_over() {
            let Some(ready) = self.wait()? else { continue };
            let (listener, ready) = ready.split_first().map_or((false, &[][..]), |(l, r)| (*l, r));
            self.serve(ready, Instant::now());
            if listener {
                self.accept();
            }
        }
        Ok(())
    }

    /// The descriptors that are ready, the listener first; none after a signal.
    fn wait(&self) -> std::io::Result<Option<Vec<bool>>> {
        let own = [self.listener.as_fd(), self.woken.as_fd()];
        let own = own.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> = own.collect();
        all.extend(self.connections.iter().map(Connection::waits_for));
        let turn = Timespec { tv_sec: 0, tv_nsec: i64::from(TURN.subsec_nanos()) };
        match poll(&mut all, Some(&turn)) {
            Ok(_) => {
                let mut ready: Vec<bool> =
                    all.iter().map(|one| !one.revents().is_empty()).collect();
                if ready.remove(1) {
                    let _ = (&self.woken).read(&mut [0; 64]);
                }
                Ok(Some(ready))
            }
            Err(rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Continues every connection that is ready, and drops those that timed out.
    fn serve(&mut self, ready: &[bool], now: Instant) {
        let Server { connections, page, .. } = self;
        let mut ready = ready.iter().copied();
        connections.retain_mut(|one| {
            let ready = ready.next().unwrap_or(false);
            one.go_on(ready, now, page)
        });
    }

    fn accept(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if self.connections.len() >= MOST_CONNECTIONS {
                        self.drop_oldest();
                    }
                    // A client that has already left causes no error.
                    self.connections.extend(Connection::new(stream, Instant::now()).ok());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Out of descriptors, or aborted before it was accepted.
                Err(_) if self.drop_oldest() => {}
                Err(_) => return std::thread::sleep(TURN),
            }
        }
    }

    /// Drops the oldest connection without a request, else the oldest.
    fn drop_oldest(&mut self) -> bool {
        let silent = self.connections.iter().position(Connection::is_requesting);
        let at = silent.unwrap_or(0);
        let there = at < self.connections.len();
        if there {
            self.connections.remove(at);
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpStream};

    use super::*;

    /// A server whose page is always rendered, and what wakes it.
    fn server(
        listener: TcpListener,
        page: &'static str,
    ) -> (Server<impl FnMut() -> Option<Arc<str>>>, UnixStream) {
        let (wake, woken) = UnixStream::pair().unwrap();
        (Server::new(listener, woken, move || Some(page.into())), wake)
    }

    /// A server on a port of its own, which ends with the test.
    struct Served {
        at: SocketAddr,
        stop: Arc<AtomicBool>,
        thread: Option<std::thread::JoinHandle<()>>,
    }

    impl Served {
        fn new(page: impl FnMut() -> String + Send + 'static) -> Served {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let at = listener.local_addr().unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&stop);
            let run = move || serve(listener, page, &seen).unwrap();
            Served { at, stop, thread: Some(std::thread::spawn(run)) }
        }

        fn connect(&self) -> TcpStream {
            TcpStream::connect(self.at).unwrap()
        }

        /// The answer to a client that sends these bytes and, perhaps, closes its side.
        fn received(&self, bytes: &[u8], close: bool) -> String {
            let mut client = self.connect();
            // The server may have answered before all is written.
            let _ = client.write_all(bytes);
            if close {
                let _ = client.shutdown(Shutdown::Write);
            }
            let mut received = Vec::new();
            let _ = client.read_to_end(&mut received);
            String::from_utf8_lossy(&received).into_owned()
        }
    }

    impl Drop for Served {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            let ended = self.thread.take().map(std::thread::JoinHandle::join);
            assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))));
        }
    }

    #[test]
    fn pages_and_statuses() {
        let served = Served::new(|| "page\n".to_owned());
        let received = served.received(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", false);
        assert!(
            received.starts_with("HTTP/1.1 200 OK\r\n") && received.ends_with("\r\n\r\npage\n"),
            "{received}"
        );
        assert!(
            received.contains("Content-Length: 5\r\n") && received.contains("openmetrics-text"),
            "{received}"
        );
        let head = served.received(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", false);
        assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        let landing = served.received(b"GET / HTTP/1.0\r\n\r\n", false);
        assert!(landing.starts_with("HTTP/1.1 200") && landing.contains("href=\"/metrics\""));
        for (request, status) in [
            ("GET /metrics?x=1 HTTP/1.1\r\n\r\n", "200"),
            ("GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n", "404"),
            ("POST /nothing HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "404"),
            ("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405"),
            ("GET /metrics HTTP/2.0\r\n\r\n", "505"),
            ("nonsense\r\n\r\n", "400"),
            ("GET  /metrics  HTTP/1.1\r\n\r\n", "400"),
        ] {
            let received = served.received(request.as_bytes(), false);
            assert!(received.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {received}");
            assert_eq!(received.contains("Allow: GET, HEAD\r\n"), status == "405", "{received}");
        }
    }

    #[test]
    fn hostile_clients_get_a_status_and_no_more() {
        let served = Served::new(|| "page\n".to_owned());
        let received = served.received(b"\xff\xfe \x00 HTTP/1.1\r\n\r\n", false);
        assert!(received.starts_with("HTTP/1.1 400"), "{received}");
        let received = served.received(b"GET /metrics HTTP/1.1\r\nX: y", true);
        assert!(received.starts_with("HTTP/1.1 400"), "{received}");
        let mut long = b"GET /metrics HTTP/1.1\r\nX: ".to_vec();
        long.resize(20 << 10, b'a');
        let received = served.received(&long, false);
        assert!(received.starts_with("HTTP/1.1 431"), "{received}");
        assert_eq!(served.received(b"", true), "");
        // Requests after the first are not answered, and do not corrupt its answer.
        let line = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        let received = served.received(line.repeat(500).as_bytes(), false);
        assert!(
            received.starts_with("HTTP/1.1 200") && received.ends_with("\r\n\r\npage\n"),
            "{received}"
        );
        assert_eq!(received.matches("HTTP/1.1").count(), 1, "{received}");
    }

    #[test]
    fn a_head_may_come_byte_by_byte_and_not_for_ever() {
        let served = Served::new(|| "page\n".to_owned());
        let mut client = served.connect();
        for byte in b"GET /metrics HTTP/1.1\r\n\r\n" {
            client.write_all(&[*byte]).unwrap();
        }
        let mut received = String::new();
        client.read_to_string(&mut received).unwrap();
        assert!(received.starts_with("HTTP/1.1 200"), "{received}");
        // The client gets an answer soon; a minute means a hang.
        let began = Instant::now();
        let received = served.received(b"GET /met", false);
        assert!(received.starts_with("HTTP/1.1 408"), "{received}");
        assert!(began.elapsed() < Duration::from_mins(1));
    }

    #[test]
    fn a_client_that_stops_reading_blocks_no_other() {
        let served = Served::new(|| "x".repeat(32 << 20));
        let mut stuck = served.connect();
        stuck.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        stuck.read_exact(&mut [0; 1]).unwrap();
        let received = served.received(b"GET / HTTP/1.1\r\n\r\n", false);
        assert!(received.starts_with("HTTP/1.1 200"), "{received}");
        drop(stuck);
    }

    #[test]
    fn a_page_that_is_being_rendered_blocks_no_other() {
        let (release, released) = mpsc::channel();
        let served = Served::new(move || {
            released.recv().unwrap();
            "page\n".to_owned()
        });
        let mut scrapes = [served.connect(), served.connect()];
        for scrape in &mut scrapes {
            scrape.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        }
        // One that leaves meanwhile.
        served.connect().write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        for _ in 0..2 {
            // A minute means a hang.
            let mut other = served.connect();
            other.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
            other.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let mut received = String::new();
            other.read_to_string(&mut received).unwrap();
            assert!(received.starts_with("HTTP/1.1 200"), "{received}");
        }
        // At most one more is rendered for those that came later.
        (0..3).for_each(|_| release.send(()).unwrap());
        for mut scrape in scrapes {
            let mut received = String::new();
            scrape.read_to_string(&mut received).unwrap();
            assert!(received.ends_with("\r\n\r\npage\n"), "{received}");
        }
    }

    /// The clock stands still, so no connection times out: every request is answered, although the
    /// idle connections came first.
    #[test]
    fn idle_connections_block_no_other() {
        const SILENT: usize = 150;
        let now = Instant::now();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let (mut server, _wake) = server(listener, "page\n");
        // Each connection is accepted before the next one comes: the listener's queue is short.
        let mut connect = |begun: &[u8]| {
            let mut client = TcpStream::connect(at).unwrap();
            client.write_all(begun).unwrap();
            let before = server.connections.len();
            while server.connections.len() == before {
                server.accept();
            }
            client
        };
        let begun = |nth: usize| [&b""[..], b"GET /metrics HTTP/1.1\r\nX-Slow: ", b"G"][nth % 3];
        let silent: Vec<TcpStream> = (0..SILENT).map(|nth| connect(begun(nth))).collect();
        let mut requests = connect(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        requests.set_nonblocking(true).unwrap();
        let (mut received, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let ready = server.wait().unwrap().unwrap_or_default();
            server.serve(ready.get(1..).unwrap_or_default(), now);
            match requests.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => received.extend_from_slice(&piece[..read]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        let received = String::from_utf8(received).unwrap();
        assert!(received.starts_with("HTTP/1.1 200") && received.ends_with("page\n"), "{received}");
        let requesting = server.connections.iter().filter(|one| one.is_requesting()).count();
        assert_eq!(requesting, silent.len(), "all are connected");
    }

    #[test]
    fn more_connections_than_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let (mut server, _wake) = server(listener, "");
        assert!(!server.drop_oldest(), "none can be dropped");
        let clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(at).unwrap()).collect();
        while server.connections.len() < clients.len() {
            server.accept();
        }
        let second = server.connections[1].peer().unwrap();
        assert!(server.drop_oldest());
        assert_eq!(server.connections[0].peer().unwrap(), second, "the oldest was dropped");
    }

    #[test]
    fn a_port_alone_is_this_machine_alone() {
        assert_eq!(address("9400").unwrap().to_string(), "127.0.0.1:9400");
        assert_eq!(address("0.0.0.0:1").unwrap().to_string(), "0.0.0.0:1");
        assert_eq!(address("[::1]:1").unwrap().to_string(), "[::1]:1");
        assert!(address("host").is_err() && address("70000").is_err());
    }
}
