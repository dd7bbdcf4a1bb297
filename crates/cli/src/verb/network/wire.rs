//! The messages of the two ends: lines of text over the client's first connection.
//!
//! Both begin with [`HELLO`], so that neither takes something else for gpuio. Then, for each
//! direction: `Ask`, `Ready`; the client opens its streams, each beginning with [`stream_line`];
//! `Go`; bytes; `Stop` by the end that receives; and `End` by the server, with its counts.

use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuio_host::{Root, net, nic};
use serde::{Deserialize, Serialize};

use super::transfer::Counted;
use crate::interrupt;

/// The first line of both ends; the number is the version of all lines after it.
pub(super) const HELLO: &str = "gpuio network 1";
/// Time limit of an answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of all streams of a direction to open, one after another.
pub(super) const STREAMS_TIME: Duration = Duration::from_secs(30);
/// Time limit of all that the other end still has to do after a signal.
pub(super) const HURRIED: Duration = Duration::from_secs(2);
/// How long a wait for a line blocks what else there is to do.
pub(super) const TURN: Duration = Duration::from_millis(50);
/// The longest line that a client may send, and a server: its samples of an hour.
pub(super) const MOST_ASKED: usize = 4 << 10;
pub(super) const MOST_TOLD: usize = 1 << 20;

/// The first line of a stream.
pub(super) fn stream_line(id: u64) -> String {
    format!("{HELLO} stream {id}")
}

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Direction {
    /// Server to client.
    Read,
    /// Client to server.
    Write,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) direction: Direction,
    pub(super) streams: u32,
    pub(super) ramp: Duration,
    pub(super) runtime: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    Ask(Ask),
    /// The number with which each stream begins.
    Ready(u64),
    Go,
    /// Why the server does not do it.
    Refused(String),
    /// By the end that receives: nothing more is to be sent.
    Stop,
    /// The server's counts, and the port that it used.
    End(Box<(Counted, Port)>),
}

/// The address of one end, and the port that leads from it to the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Port {
    pub(super) address: String,
    /// Absent where no route leads to the other end.
    pub(super) interface: Option<String>,
    /// PCI addresses of the cards below it.
    pub(super) pci: Vec<String>,
    /// Nominal speed; absent where the driver does not know it.
    pub(super) megabits: Option<u64>,
    pub(super) mtu_bytes: Option<u64>,
}

impl Port {
    /// By the routes of this machine, as for the mounts of network file systems.
    pub(super) fn of(stream: &TcpStream) -> Result<Port> {
        let to: IpAddr = stream.peer_addr()?.ip();
        let address = stream.local_addr()?.ip().to_canonical().to_string();
        let (root, mut problems) = (Root::live(), Vec::new());
        let Ok(Some(name)) = net::interface_to(&root, to) else {
            return Ok(Port { address, ..Port::default() });
        };
        let nics = nic::read(&root, &[], &mut problems);
        let pci = nic::functions_of(&nics, &name);
        let facts = nic::interface(&root, name, &mut problems);
        let (megabits, mtu_bytes) = (facts.megabits, facts.mtu_bytes);
        Ok(Port { address, interface: Some(facts.name), pci, megabits, mtu_bytes })
    }
}

/// A connection that is read line by line.
pub(super) struct Lines {
    pub(super) stream: TcpStream,
    kept: Vec<u8>,
    most: usize,
    /// A signal, after which waits are short.
    stop: Arc<AtomicBool>,
}

impl Lines {
    /// `most` is the longest line that the other end may send, in bytes.
    pub(super) fn new(stream: TcpStream, most: usize) -> Result<Lines> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(TURN))?;
        Ok(Lines { stream, kept: Vec::new(), most, stop: interrupt::flag() })
    }

    /// The next line; `None` where none is complete within `wait`, or soon after a signal.
    ///
    /// # Errors
    /// `UnexpectedEof` where the other end closed, `InvalidData` for a line that is too long or no
    /// text, and those of reading.
    pub(super) fn line(&mut self, wait: Duration) -> Result<Option<String>> {
        let began = Instant::now();
        // Bytes that were searched once have no end in them.
        let mut searched = 0;
        loop {
            let end = self.kept[searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end.map(|at| at + searched) {
                let line: Vec<u8> = self.kept.drain(..=end).take(end).collect();
                let line = String::from_utf8(line).map_err(|_| ErrorKind::InvalidData)?;
                return Ok(Some(line));
            }
            searched = self.kept.len();
            if searched > self.most {
                return Err(ErrorKind::InvalidData.into());
            }
            let stopped = self.stop.load(Ordering::Relaxed);
            let wait = if stopped { wait.min(HURRIED) } else { wait };
            let left = wait.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left.clamp(Duration::from_millis(1), TURN)))?;
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.kept.extend_from_slice(&piece[..read]),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next message, like [`Lines::line`].
    pub(super) fn message(&mut self, wait: Duration) -> Result<Option<Message>> {
        let line = self.line(wait)?;
        let wrong = |error| Error::new(ErrorKind::InvalidData, error);
        line.map(|line| serde_json::from_str::<Message>(&line).map_err(wrong)).transpose()
    }

    /// Sends a line.
    ///
    /// # Errors
    /// `TimedOut` where the other end does not take all of it in time, and those of writing.
    pub(super) fn send_line(&mut self, line: &str) -> Result<()> {
        let (text, until) = (format!("{line}\n"), Instant::now() + TIMEOUT);
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
            if !left.is_empty() && Instant::now() > until {
                return Err(Error::new(ErrorKind::TimedOut, "the other end reads nothing"));
            }
        }
        Ok(())
    }

    /// The same of a message.
    pub(super) fn send(&mut self, message: &Message) -> Result<()> {
        self.send_line(&serde_json::to_string(message)?)
    }
}

/// Whether a call only has to be repeated.
pub(super) fn is_pause(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn lines_are_bounded_and_may_arrive_together() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut lines = Lines::new(listener.accept().unwrap().0, 64).unwrap();
        assert_eq!(lines.line(Duration::from_millis(1)).unwrap(), None);
        other.write_all(b"\"Stop\"\n\"Go\"\n\"Stay\"\n").unwrap();
        assert!(matches!(lines.message(TIMEOUT), Ok(Some(Message::Stop))));
        assert!(matches!(lines.message(TIMEOUT), Ok(Some(Message::Go))));
        assert_eq!(lines.message(TIMEOUT).unwrap_err().kind(), ErrorKind::InvalidData);
        other.write_all(&[b'x'; 10_000]).unwrap();
        assert_eq!(lines.line(TIMEOUT).unwrap_err().kind(), ErrorKind::InvalidData);
        drop(other);
        let mut closed = Lines { kept: Vec::new(), most: 1 << 20, ..lines };
        assert_eq!(closed.line(TIMEOUT).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
