//! One client: its request comes, its answer goes, and the connection ends.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::request::{self, Asked, LANDING, MOST_HEAD, Page};

/// How long a client may take for its request, and again for taking the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// What a client sends after its answer is read and dropped for this long, and so many bytes of it:
/// closing while it still sends would take the answer from it (RFC 9112, section 9.6).
const LINGER: Duration = Duration::from_secs(1);
const MOST_DROPPED: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    state: State,
    /// When this state has to be over.
    until: Instant,
}

#[derive(Debug)]
enum State {
    /// The request's head as far as it came.
    Asking(Vec<u8>),
    /// The answer, head and body, and how much of both is sent.
    Answering { head: String, body: Rc<str>, sent: usize },
    /// All is sent; bytes that may still be dropped.
    Ending(usize),
}

impl Connection {
    pub(super) fn new(stream: TcpStream, now: Instant) -> std::io::Result<Connection> {
        stream.set_nonblocking(true)?;
        Ok(Connection { stream, state: State::Asking(Vec::new()), until: now + PATIENCE })
    }

    /// Whether it has not asked yet.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.state, State::Asking(_))
    }

    #[cfg(test)]
    pub(super) fn peer(&self) -> std::io::Result<std::net::SocketAddr> {
        self.stream.peer_addr()
    }

    pub(super) fn waits_for(&self) -> PollFd<'_> {
        let flags = match self.state {
            State::Answering { .. } => PollFlags::OUT,
            State::Asking(_) | State::Ending(_) => PollFlags::IN,
        };
        PollFd::from_borrowed_fd(self.stream.as_fd(), flags)
    }

    /// Goes on as far as it can without waiting; `false` where the connection is over.
    pub(super) fn go_on(
        &mut self,
        ready: bool,
        now: Instant,
        page: &mut impl FnMut() -> Rc<str>,
    ) -> bool {
        if now >= self.until && !self.is_late(now, page) {
            return false;
        }
        if !ready && now < self.until {
            return true;
        }
        loop {
            // `false` where there is nothing more to do.
            let next = match &mut self.state {
                State::Asking(_) => self.ask(now, page),
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

    /// One that began to ask is told that it took too long; `false` where there is nobody to tell.
    fn is_late(&mut self, now: Instant, page: &mut impl FnMut() -> Rc<str>) -> bool {
        let began = matches!(&self.state, State::Asking(head) if !head.is_empty());
        if began {
            self.begin(Asked::status("408 Request Timeout"), now, page);
        }
        began
    }

    fn ask(&mut self, now: Instant, page: &mut impl FnMut() -> Rc<str>) -> std::io::Result<bool> {
        let State::Asking(head) = &mut self.state else { return Ok(false) };
        let mut piece = [0; 2048];
        let read = self.stream.read(&mut piece)?;
        head.extend_from_slice(&piece[..read]);
        let asked = match request::read(head) {
            Some(asked) => asked,
            None if read == 0 && head.is_empty() => return Ok(false),
            // Its side has ended, so that no more will come.
            None if read == 0 => Asked::status("400 Bad Request"),
            None if head.len() <= MOST_HEAD => return Ok(true),
            None => Asked::status("431 Request Header Fields Too Large"),
        };
        self.begin(asked, now, page);
        Ok(true)
    }

    fn begin(&mut self, asked: Asked, now: Instant, page: &mut impl FnMut() -> Rc<str>) {
        let body: Rc<str> = match asked.page {
            Page::Metrics => page(),
            Page::Landing => LANDING.into(),
            Page::Status(status) => format!("{status}\n").into(),
        };
        let head = request::head(asked.page, body.len());
        let body = if asked.body { body } else { "".into() };
        self.state = State::Answering { head, body, sent: 0 };
        self.until = now + PATIENCE;
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
