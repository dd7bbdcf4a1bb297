//! One client connection: reads a request, sends the answer, and closes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::request::{self, LANDING, MOST_HEAD, Request, Resource};

/// Time limit for a client's request, and again for receiving the answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for rendering the page.
const MOST_WAIT: Duration = Duration::from_mins(1);
/// After the answer, data from the client is read and dropped for at most this long and this many
/// bytes: closing while the client still sends would lose the answer (RFC 9112, section 9.6).
const LINGER: Duration = Duration::from_secs(1);
const MOST_DROPPED: usize = 256 << 10;

pub(super) struct Connection {
    stream: TcpStream,
    state: State,
    /// When this state times out.
    until: Instant,
}

enum State {
    /// The request's head as far as received.
    Asking(Vec<u8>),
    /// The page that was requested is being rendered.
    Waiting(Request),
    /// The answer, head and body, and how much of both is sent.
    Answering { head: String, body: Arc<str>, sent: usize },
    /// All is sent; bytes that may still be dropped.
    Ending(usize),
}

impl Connection {
    pub(super) fn new(stream: TcpStream, now: Instant) -> std::io::Result<Connection> {
        stream.set_nonblocking(true)?;
        Ok(Connection { stream, state: State::Asking(Vec::new()), until: now + TIMEOUT })
    }

    /// Whether no request has arrived yet.
    pub(super) fn is_requesting(&self) -> bool {
        matches!(self.state, State::Asking(_))
    }

    #[cfg(test)]
    pub(super) fn peer(&self) -> std::io::Result<std::net::SocketAddr> {
        self.stream.peer_addr()
    }

    pub(super) fn waits_for(&self) -> PollFd<'_> {
        let flags = match self.state {
            State::Answering { .. } => PollFlags::OUT,
            // The end of the connection alone is reported.
            State::Waiting(_) => PollFlags::empty(),
            State::Asking(_) | State::Ending(_) => PollFlags::IN,
        };
        PollFd::from_borrowed_fd(self.stream.as_fd(), flags)
    }

    /// Continues as far as possible without waiting; `false` if the connection is finished. `page`
    /// gives the page, or nothing while it is being rendered.
    pub(super) fn go_on(
        &mut self,
        ready: bool,
        now: Instant,
        page: &mut impl FnMut() -> Option<Arc<str>>,
    ) -> bool {
        if now >= self.until && !self.is_late(now) {
            return false;
        }
        match self.state {
            State::Waiting(_) if ready => return false,
            State::Waiting(_) => {}
            _ if !ready && now < self.until => return true,
            _ => {}
        }
        loop {
            // `false` if there is nothing more to do.
            let next = match &mut self.state {
                State::Asking(_) => self.read_request(now),
                State::Waiting(_) => self.take_page(now, page),
                State::Answering { .. } => self.answer(now),
                State::Ending(_) => self.end(),
            };
            match next {
                Ok(true) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(false) | Err(_) => return false,
            }
        }
    }

    /// Answers an incomplete request with a timeout; `false` if no request was begun.
    fn is_late(&mut self, now: Instant) -> bool {
        let began = matches!(&self.state, State::Asking(head) if !head.is_empty());
        if began {
            self.begin(Request::status("408 Request Timeout"), now);
        }
        began
    }

    fn read_request(&mut self, now: Instant) -> std::io::Result<bool> {
        let State::Asking(head) = &mut self.state else { return Ok(false) };
        let mut piece = [0; 2048];
        let read = self.stream.read(&mut piece)?;
        head.extend_from_slice(&piece[..read]);
        let request_read = match request::read(head) {
            Some(request_read) => request_read,
            None if read == 0 && head.is_empty() => return Ok(false),
            // The client closed its side: no more data will come.
            None if read == 0 => Request::status("400 Bad Request"),
            None if head.len() <= MOST_HEAD => return Ok(true),
            None => Request::status("431 Request Header Fields Too Large"),
        };
        self.begin(request_read, now);
        Ok(true)
    }

    fn begin(&mut self, request_read: Request, now: Instant) {
        match request_read.resource {
            Resource::Metrics => {
                (self.state, self.until) = (State::Waiting(request_read), now + MOST_WAIT);
            }
            Resource::Landing => self.reply(request_read, LANDING.into(), now),
            Resource::Status(status) => self.reply(request_read, format!("{status}\n").into(), now),
        }
    }

    fn take_page(
        &mut self,
        now: Instant,
        page: &mut impl FnMut() -> Option<Arc<str>>,
    ) -> std::io::Result<bool> {
        let State::Waiting(request_read) = self.state else { return Ok(false) };
        let page = page().ok_or(ErrorKind::WouldBlock)?;
        self.reply(request_read, page, now);
        Ok(true)
    }

    fn reply(&mut self, request_read: Request, body: Arc<str>, now: Instant) {
        let head = request::head(request_read.resource, body.len());
        let body = if request_read.body { body } else { "".into() };
        self.state = State::Answering { head, body, sent: 0 };
        self.until = now + TIMEOUT;
    }

    fn answer(&mut self, now: Instant) -> std::io::Result<bool> {
        let State::Answering { head, body, sent } = &mut self.state else {
            return Ok(false);
        };
        let (head, body) = (head.as_bytes(), body.as_bytes());
        let rest = match sent.checked_sub(head.len()) {
            None => &head[*sent..],
            Some(after) => &body[after..],
        };
        if rest.is_empty() {
            self.stream.shutdown(Shutdown::Write)?;
            (self.state, self.until) = (State::Ending(MOST_DROPPED), now + LINGER);
            return Ok(true);
        }
        match self.stream.write(rest)? {
            0 => Ok(false),
            written => {
                *sent += written;
                Ok(true)
            }
        }
    }

    fn end(&mut self) -> std::io::Result<bool> {
        let State::Ending(left) = &mut self.state else { return Ok(false) };
        let mut piece = [0; 4096];
        let read = self.stream.read(&mut piece)?;
        *left = left.saturating_sub(read);
        Ok(read > 0 && *left > 0)
    }
}
