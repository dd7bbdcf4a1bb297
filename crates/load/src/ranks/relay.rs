//! Ranks of ranks: processes that the ranks of a job start, and that are ranks among themselves.
//!
//! A launcher gives one place in MPI to each process that it starts, and to none of their children.
//! So a child has no MPI: it speaks with its parent by a socket ([`Relayed`]), and the parents pass
//! on what their children say ([`Ranks::relay`]). Some ranks may have no child: a round has
//! members.
//!
//! A frame on the socket is its length, the other child's rank, and the message. A child that ends
//! the job of all children ([`Link::abort`]) sends a frame to [`ABORT`]; their parents then kill
//! them ([`Relay::is_aborted`]).
//!
//! Threads: a parent has two for its child, one for each direction. `gpuio-ranks` of the parent
//! never waits for the child.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::ranks::link::Link;
use crate::ranks::message;
use crate::ranks::thread::{Command, Shared, ToChild};
use crate::ranks::{Ranks, hold};

/// Instead of a rank: all children of the round are to be killed.
const ABORT: u32 = u32::MAX;
const HEAD: usize = 8;
/// No message is longer: the largest are records.
const MOST: usize = 1 << 31;

fn frame(peer: u32, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes()[..], &peer.to_le_bytes(), bytes].concat()
}

/// Length and peer.
fn head(bytes: [u8; HEAD]) -> (usize, u32) {
    let number =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (number(0) as usize, number(4))
}

/// The link of a child.
#[derive(Debug)]
pub struct Relayed {
    stream: UnixStream,
    rank: u32,
    size: u32,
    library: String,
    input: VecDeque<u8>,
    output: VecDeque<u8>,
}

impl Relayed {
    /// By the socket that the parent made. `library` is what carries the parents' messages.
    ///
    /// # Errors
    /// The socket can't be used.
    pub fn new(socket: OwnedFd, rank: u32, size: u32, library: String) -> Result<Relayed, String> {
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(true).map_err(|error| error.to_string())?;
        let (input, output) = (VecDeque::new(), VecDeque::new());
        Ok(Relayed { stream, rank, size, library, input, output })
    }

    fn flush(&mut self) -> Result<(), String> {
        while !self.output.is_empty() {
            match self.stream.write(self.output.as_slices().0) {
                Ok(written) => drop(self.output.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(gone(&error.to_string())),
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<(), String> {
        let mut bytes = [0; 1 << 16];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(gone("it closed the connection")),
                Ok(read) => self.input.extend(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(gone(&error.to_string())),
            }
        }
    }
}

fn gone(why: &str) -> String {
    format!("the process that started this one is gone: {why}")
}

impl Link for Relayed {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn library(&self) -> &str {
        &self.library
    }

    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), String> {
        self.output.extend(frame(to, message));
        self.flush()
    }

    fn receive(&mut self) -> Result<Option<(u32, Vec<u8>)>, String> {
        self.flush()?;
        let filled = self.fill();
        if self.input.len() < HEAD {
            return filled.map(|()| None);
        }
        let mut first = [0; HEAD];
        first.iter_mut().zip(&self.input).for_each(|(to, from)| *to = *from);
        let (length, from) = head(first);
        if self.input.len() < HEAD + length {
            return filled.map(|()| None);
        }
        self.input.drain(..HEAD);
        Ok(Some((from, self.input.drain(..length).collect())))
    }

    fn has_sent(&mut self) -> bool {
        // Without the parent the rest is lost anyway.
        self.flush().is_err() || self.output.is_empty()
    }

    fn abort(&self, code: u8) {
        // The caller ends this process next, whether the parent is there or not.
        let _ = self.stream.set_nonblocking(false);
        let _ = (&self.stream).write_all(&frame(ABORT, &[code]));
    }

    fn finalize(self) {}
}

/// Passes messages between this process's child and the children of other ranks.
#[derive(Debug)]
pub struct Relay {
    round: u32,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Whether a child wants all of them to be killed.
    pub fn is_aborted(&self) -> bool {
        self.shared.is_aborted(self.round)
    }

    /// After the end of the child: passes on the rest of what it said.
    pub fn end(self) {
        // The thread towards the child ends with the sender.
        hold(&self.shared.to_child).take();
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

impl Ranks {
    /// Passes messages between a child of this process and those of other ranks. `members` are the
    /// ranks that have a child in this round, by the children's ranks; rank 0 is the first. Returns
    /// the child's end of the connection too, for [`Relayed::new`].
    ///
    /// # Errors
    /// No socket or thread can be made.
    pub fn relay(&self, round: u32, members: Vec<u32>) -> std::io::Result<(Relay, OwnedFd)> {
        let (ours, child) = UnixStream::pair()?;
        let (to, messages) = channel();
        let to_child = ToChild { round, members: members.clone(), messages: to };
        *hold(&self.shared.to_child) = Some(to_child);
        let (reader, commands) = (ours.try_clone()?, self.commands.clone());
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(body)
        };
        let down = spawn("gpuio-to-child", Box::new(move || write(ours, &messages)))?;
        let up = Box::new(move || read(reader, round, &members, &commands));
        let up = spawn("gpuio-of-child", up)?;
        let relay = Relay { round, shared: Arc::clone(&self.shared), threads: vec![down, up] };
        Ok((relay, child.into()))
    }

    /// Tells the children of the other members that this rank's died: they would else wait until
    /// its silence is too long. The first of them ends the job; of the first one all hear.
    pub fn child_died(&self, round: u32, members: &[u32]) {
        let own = members.iter().position(|member| *member == self.rank());
        let Some(rank) = own.and_then(|own| u32::try_from(own).ok()) else { return };
        let told = if rank == 0 { members.get(1..) } else { members.get(..1) };
        for &to in told.unwrap_or_default() {
            let message = message::relayed(round, &message::died(rank));
            let _ = self.commands.send(Command::Send { to, message });
        }
    }

    /// Has the children of a round killed, on all ranks.
    pub fn abort_children(&self, round: u32) {
        let _ = self.commands.send(Command::AbortChildren { round });
    }

    /// While children run, nothing happens here but what is passed on: messages are looked for less
    /// often.
    pub fn rest(&self, rests: bool) {
        self.shared.rest(rests);
    }
}

fn write(mut child: UnixStream, messages: &Receiver<(u32, Vec<u8>)>) {
    for (from, bytes) in messages {
        // A child that ended needs nothing; the rest is thrown away.
        let _ = child.write_all(&frame(from, &bytes));
    }
}

fn read(mut child: UnixStream, round: u32, members: &[u32], commands: &Sender<Command>) {
    let mut first = [0; HEAD];
    while child.read_exact(&mut first).is_ok() {
        let (length, to) = head(first);
        if length > MOST {
            return;
        }
        let mut bytes = vec![0; length];
        if child.read_exact(&mut bytes).is_err() {
            return;
        }
        let command = match members.get(to as usize) {
            Some(to) => Command::Send { to: *to, message: message::relayed(round, &bytes) },
            None if to == ABORT => Command::AbortChildren { round },
            None => continue,
        };
        if commands.send(command).is_err() {
            return;
        }
    }
}
