//! The measuring side: asks for one direction after the other, and puts the counts together.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gpuio_base::units::printable_short;
use gpuio_host::{Root, interface_io};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};

use super::result::{Measured, Rate};
use super::transfer::{Counted, DRAINED, Limit, receive, send};
use super::wire::{
    Ask, Direction, HELLO, HURRIED, Lines, MOST_TOLD, Message, Port, STREAMS_TIME, TIMEOUT, TURN,
    stream_line,
};
use crate::args::Network;
use crate::failure::Failure;
use crate::interrupt;

/// Measured time and warm-up by default.
const RUNTIME: Duration = Duration::from_secs(5);
const RAMP: Duration = Duration::from_secs(1);

/// The other end.
struct Server<'a> {
    name: &'a str,
    address: SocketAddr,
    from: Option<IpAddr>,
    lines: Lines,
}

pub(super) fn measure(args: &Network) -> Result<Measured, Failure> {
    let second = Duration::from_secs(1);
    let runtime = Network::time("--runtime", args.runtime.as_deref(), RUNTIME, second)?;
    let ramp = Network::time("--ramp", args.ramp.as_deref(), RAMP, Duration::ZERO)?;
    let directions: &[Direction] = match args.direction.as_deref() {
        Some("read") => &[Direction::Read],
        Some("write") => &[Direction::Write],
        _ => &[Direction::Read, Direction::Write],
    };
    let name = args.to.as_deref().unwrap_or_default();
    let mut server = Server::reach(name, args.bind)?;
    let client = Port::of(&server.lines.stream).map_err(|error| server.failed(&error))?;
    let mut measured = Measured::new(&server.address, args.streams, (ramp, runtime), client);
    for direction in directions {
        let ask = Ask { direction: *direction, streams: args.streams, ramp, runtime };
        let (rate, port) = server.direction(&ask, measured.client.interface.as_deref())?;
        measured.server_port = port;
        match direction {
            Direction::Read => measured.read = Some(rate),
            Direction::Write => measured.write = Some(rate),
        }
        if interrupt::flag().load(Ordering::Relaxed) {
            measured.interrupted = true;
            break;
        }
    }
    measured.conclude();
    Ok(measured)
}

impl Server<'_> {
    fn reach(name: &str, from: Option<IpAddr>) -> Result<Server<'_>, Failure> {
        let found = name.to_socket_addrs().map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => Failure::Usage(format!(
                "{name}: give host and port, such as filer1:7400 or [fd00::7]:7400"
            )),
            _ => Failure::Unavailable(format!("{name}: {error}")),
        })?;
        let fits = |to: &SocketAddr| from.is_none_or(|from| from.is_ipv4() == to.is_ipv4());
        let mut why = "it has no address of the family of --bind".to_owned();
        for address in found.filter(fits) {
            match connected(address, from) {
                Ok(stream) => {
                    let lines = Lines::new(stream, MOST_TOLD);
                    let lines = lines.map_err(|error| Failure::Ran(format!("{name}: {error}")))?;
                    let mut server = Server { name, address, from, lines };
                    server.greet()?;
                    return Ok(server);
                }
                Err(error) => why = error.to_string(),
            }
        }
        Err(Failure::Unavailable(format!(
            "{name}: {why}; start `gpuio network --serve ADDRESS:PORT` on that machine first"
        )))
    }

    fn greet(&mut self) -> Result<(), Failure> {
        self.lines.send_line(HELLO).map_err(|error| self.failed(&error))?;
        let name = self.name;
        let what = match self.lines.line(TIMEOUT) {
            Ok(Some(line)) if line == HELLO => return Ok(()),
            Ok(Some(line)) if line.starts_with("gpuio network ") => {
                let line = printable_short(&line);
                format!("{name} runs another version ({line}; here {HELLO}); use one for both")
            }
            _ => format!(
                "{name} is no server of gpuio network; start `gpuio network --serve \
                 ADDRESS:PORT` on that machine, and name its port"
            ),
        };
        Err(Failure::Unavailable(what))
    }

    fn failed(&self, error: &Error) -> Failure {
        let what = match error.kind() {
            ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
            ErrorKind::InvalidData => "its answer is none of gpuio network's".to_owned(),
            ErrorKind::TimedOut => format!("the server does not answer any more ({error})"),
            _ => error.to_string(),
        };
        Failure::Ran(format!("{}: {what}", self.name))
    }

    /// The next message, which must come in time.
    fn answer(&mut self, wait: Duration) -> Result<Message, Failure> {
        match self.lines.message(wait) {
            Ok(Some(Message::Refused(why))) => {
                Err(Failure::Ran(format!("{}: {}", self.name, refusal(&why))))
            }
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(self.failed(&Error::new(ErrorKind::TimedOut, "no answer in time"))),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// One direction, with the server's port.
    fn direction(&mut self, ask: &Ask, interface: Option<&str>) -> Result<(Rate, Port), Failure> {
        self.lines.send(&Message::Ask(*ask)).map_err(|error| self.failed(&error))?;
        let Message::Ready(id) = self.answer(TIMEOUT)? else { return Err(self.out_of_order()) };
        let stream = |_| -> Result<TcpStream, Error> {
            let stream = connected(self.address, self.from)?;
            let mut lines = Lines::new(stream, MOST_TOLD)?;
            lines.send_line(&stream_line(id))?;
            Ok(lines.stream)
        };
        let until = Instant::now() + STREAMS_TIME;
        let in_time = |nth| match Instant::now() > until {
            true => Err(Error::new(ErrorKind::TimedOut, "its streams did not open in time")),
            false => stream(nth),
        };
        let streams: Result<Vec<TcpStream>, Error> = (0..ask.streams).map(in_time).collect();
        let streams = streams.map_err(|error| self.failed(&error))?;
        let Message::Go = self.answer(2 * TIMEOUT)? else { return Err(self.out_of_order()) };
        let before = port_bytes(interface);
        let own = match ask.direction {
            Direction::Read => self.receive(&streams, ask),
            Direction::Write => self.send(&streams, ask),
        };
        let own = own.map_err(|error| {
            // A thread of this side that can't be started is no doing of the server.
            let own_fault = error.kind() == ErrorKind::OutOfMemory;
            let refused = if own_fault { None } else { self.refused() };
            refused.unwrap_or_else(|| self.failed(&error))
        })?;
        let after = port_bytes(interface);
        let (other, port) = loop {
            match self.answer(4 * TIMEOUT)? {
                Message::End(end) => break *end,
                // It crossed the end of what was sent.
                Message::Stop => {}
                _ => return Err(self.out_of_order()),
            }
        };
        let carried = before.zip(after).map(|(before, after)| {
            let delta = |nth: usize| after[nth].saturating_sub(before[nth]);
            [delta(0), delta(1)]
        });
        let rate = Rate::of(ask.direction, &own, &other, carried);
        rate.map(|rate| (rate, port)).map_err(|why| Failure::Ran(format!("{}: {why}", self.name)))
    }

    /// Why the server ended a direction, where it says so.
    fn refused(&mut self) -> Option<Failure> {
        // It closes its streams first, which this side sees, and a busy server says why later.
        let wait = if interrupt::flag().load(Ordering::Relaxed) { HURRIED } else { TIMEOUT };
        // A `Stop` may come first.
        let mut messages = (0..2).filter_map(|_| self.lines.message(wait).ok().flatten());
        messages.find_map(|message| match message {
            Message::Refused(why) => {
                Some(Failure::Ran(format!("{}: {}", self.name, refusal(&why))))
            }
            _ => None,
        })
    }

    fn receive(&mut self, streams: &[TcpStream], ask: &Ask) -> Result<Counted, Error> {
        let stop = interrupt::flag();
        let until = Instant::now() + ask.ramp + ask.runtime + DRAINED;
        let limit = Limit { stop: &stop, until };
        let mut go_on = || !stop.load(Ordering::Relaxed);
        receive(streams, ask, &limit, &mut go_on, &mut || self.lines.send(&Message::Stop))
    }

    fn send(&mut self, streams: &[TcpStream], ask: &Ask) -> Result<Counted, Error> {
        let stop = interrupt::flag();
        let until = Instant::now() + ask.ramp + ask.runtime + DRAINED;
        let limit = Limit { stop: &stop, until };
        send(streams, &limit, &mut || match self.lines.message(TURN)? {
            None if Instant::now() > until => Err(ErrorKind::TimedOut.into()),
            None => Ok(!stop.load(Ordering::Relaxed)),
            Some(Message::Stop) => Ok(false),
            Some(Message::Refused(why)) => Err(Error::other(refusal(&why))),
            Some(_) => Err(ErrorKind::InvalidData.into()),
        })
    }

    fn out_of_order(&self) -> Failure {
        Failure::Ran(format!("{}: the server's answer is none to what was asked", self.name))
    }
}

fn refusal(why: &str) -> String {
    format!("the server refuses: {}", printable_short(why))
}

/// A connection from an address of this machine, or from any.
fn connected(to: SocketAddr, from: Option<IpAddr>) -> Result<TcpStream, Error> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // It bounds connect(2) too (socket(7)).
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(TIMEOUT))?;
    if let Some(from) = from {
        bind(&socket, &SocketAddr::new(from, 0)).map_err(|error| {
            Error::new(Error::from(error).kind(), format!("--bind {from}: {error}"))
        })?;
    }
    match connect(&socket, &to) {
        Err(rustix::io::Errno::INPROGRESS) => {
            Err(Error::new(ErrorKind::TimedOut, "no answer within 5 s"))
        }
        connected => Ok(connected.map(|()| TcpStream::from(socket))?),
    }
}

/// Bytes that this interface has received and sent so far.
fn port_bytes(interface: Option<&str>) -> Option<[u64; 2]> {
    let samples = interface_io::samples(&Root::live()).ok()?;
    let own = samples.into_iter().find(|one| Some(one.name.as_str()) == interface)?;
    Some([own.received_bytes, own.sent_bytes])
}
