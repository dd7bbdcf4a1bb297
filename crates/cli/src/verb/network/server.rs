//! The serving side: one client at a time, for a bounded time, and no file is touched.

use std::io::{Error, ErrorKind};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::transfer::{Limit, receive, send};
use super::wire::{
    Ask, Direction, HELLO, Lines, MOST_ASKED, Message, Port, STREAMS_TIME, TIMEOUT, TURN,
    stream_line,
};
use crate::failure::Failure;
use crate::interrupt;

/// The answer to a client that has to wait.
const BUSY: &str = "it serves another client now; try again when that one has finished";

struct Server {
    listener: TcpListener,
    until: Instant,
    /// Streams of one client at most: each is a thread here.
    most_streams: u32,
    stop: std::sync::Arc<AtomicBool>,
}

pub(super) fn run(
    address: SocketAddr,
    (count, most_streams): (u64, u32),
    stays: Duration,
) -> Result<ExitCode, Failure> {
    let failed = |error: Error| Failure::Unavailable(format!("--serve {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    let clients = if count == 1 { "one client".to_owned() } else { format!("{count} clients") };
    let time = stays.as_secs();
    message!(
        "serving {clients} at {at} for {time} s at most; Ctrl-C stops. Memory only, no file is \
         read or written.\nWhoever reaches this address may use it: for a network that you trust."
    );
    let (until, stop) = (Instant::now() + stays, interrupt::flag());
    let server = Server { listener, until, most_streams, stop };
    let mut served = 0;
    while served < count && server.goes_on() {
        let Some((stream, peer)) = server.accepted().map_err(failed)? else { continue };
        match server.session(stream) {
            Ok(()) => {
                served += 1;
                message!("served {peer}");
            }
            Err(why) => message!("note: {peer}: {why}"),
        }
    }
    if served == 0 {
        return Err(Failure::Ran(format!("--serve {at}: no client was served in {time} s")));
    }
    Ok(ExitCode::SUCCESS)
}

impl Server {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && Instant::now() < self.until
    }

    /// The next connection; `None` after a moment without one.
    fn accepted(&self) -> Result<Option<(TcpStream, SocketAddr)>, Error> {
        match self.listener.accept() {
            Ok((stream, peer)) => {
                stream.set_nonblocking(false)?;
                Ok(Some((stream, peer)))
            }
            // The listener itself is unusable.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Err(error),
            // Nothing there, a client that has gone again, an error of the network, or a moment
            // without descriptors or memory: no failure of the server (accept(2)).
            Err(_) => {
                sleep(Duration::from_millis(5));
                Ok(None)
            }
        }
    }

    /// One client, to its end.
    fn session(&self, stream: TcpStream) -> Result<(), String> {
        let mut lines = Lines::new(stream, MOST_ASKED).map_err(|error| text(&error))?;
        let hello = lines.line(TIMEOUT);
        // So that a client of another version can say so.
        lines.send_line(HELLO).map_err(|error| text(&error))?;
        if !matches!(&hello, Ok(Some(line)) if line == HELLO) {
            return Err("refused: it is no client of this version of gpuio network".to_owned());
        }
        let mut directions = 0;
        while directions == 0 || self.goes_on() {
            match lines.message(TIMEOUT) {
                Ok(Some(Message::Ask(ask))) => self.direction(&mut lines, &ask)?,
                Err(error) if error.kind() == ErrorKind::UnexpectedEof && directions > 0 => {
                    return Ok(());
                }
                _ => return Err("refused: it asks for nothing that is known here".to_owned()),
            }
            directions += 1;
        }
        Ok(())
    }

    fn direction(&self, lines: &mut Lines, ask: &Ask) -> Result<(), String> {
        let takes = ask.ramp.saturating_add(ask.runtime);
        let left = self.until.saturating_duration_since(Instant::now());
        let refused = match ask.streams {
            0 => Some("no streams".to_owned()),
            more if more > self.most_streams => {
                let most = self.most_streams;
                Some(format!("more than {most} streams; its --max-streams says how many"))
            }
            _ if takes > left => Some(format!(
                "it ends in {} s, before that would be done; give it a longer --timeout there",
                left.as_secs()
            )),
            _ => None,
        };
        if let Some(why) = refused {
            lines.send(&Message::Refused(why.clone())).map_err(|error| text(&error))?;
            return Err(format!("refused: {why}"));
        }
        // Tells this client's streams from late ones of another.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = (now.as_secs() << 30) ^ u64::from(now.subsec_nanos());
        lines.send(&Message::Ready(id)).map_err(|error| text(&error))?;
        let streams =
            self.streams(id, ask.streams as usize).map_err(|why| give_reason(lines, why))?;
        lines.send(&Message::Go).map_err(|error| text(&error))?;
        let end = Instant::now() + takes + 2 * TIMEOUT;
        let limit = Limit { stop: &self.stop, until: self.until };
        let counted = match ask.direction {
            Direction::Read => send(&streams, &limit, &mut || {
                self.refuse_others();
                match lines.message(TURN)? {
                    None if Instant::now() > end => Err(ErrorKind::TimedOut.into()),
                    None => Ok(self.goes_on()),
                    Some(Message::Stop) => Ok(false),
                    Some(_) => Err(ErrorKind::InvalidData.into()),
                }
            }),
            Direction::Write => {
                let mut go_on = || {
                    self.refuse_others();
                    self.goes_on()
                };
                receive(&streams, ask, &limit, &mut go_on, &mut || lines.send(&Message::Stop))
            }
        };
        let counted = counted.map_err(|error| give_reason(lines, text(&error)))?;
        let port = Port::of(&lines.stream).map_err(|error| text(&error))?;
        lines.send(&Message::End(Box::new((counted, port)))).map_err(|error| text(&error))
    }

    /// The streams that a client opens for a direction.
    fn streams(&self, id: u64, count: usize) -> Result<Vec<TcpStream>, String> {
        let began = Instant::now();
        let mut last = began;
        let mut streams = Vec::new();
        while streams.len() < count {
            if !self.goes_on() {
                return Err("it came while the server was about to end".to_owned());
            }
            // Those of a busy client come one by one.
            if last.elapsed() > TIMEOUT || began.elapsed() > STREAMS_TIME {
                let (there, seconds) = (streams.len(), began.elapsed().as_secs());
                return Err(format!("only {there} of {count} streams came within {seconds} s"));
            }
            let Some((stream, _)) = self.accepted().map_err(|error| text(&error))? else {
                continue;
            };
            let mut lines = Lines::new(stream, HELLO.len() + 64).map_err(|error| text(&error))?;
            match lines.line(Duration::from_secs(1)) {
                Ok(Some(line)) if line == stream_line(id) => {
                    streams.push(lines.stream);
                    last = Instant::now();
                }
                _ => refuse(lines),
            }
        }
        Ok(streams)
    }

    /// Answers clients that come while one is served.
    fn refuse_others(&self) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        if let (Ok(()), Ok(mut lines)) =
            (stream.set_nonblocking(false), Lines::new(stream, MOST_ASKED))
        {
            // Bytes left unread when a connection closes take the answer with them (tcp(7)).
            let _ = lines.line(TURN);
            refuse(lines);
        }
    }
}

/// Best effort: who is refused may have gone.
fn refuse(mut lines: Lines) {
    let _ = lines.send_line(HELLO);
    let _ = lines.send(&Message::Refused(BUSY.to_owned()));
    let _ = lines.stream.shutdown(Shutdown::Write);
}

/// Answers a client with the reason, which it may not wait for any more.
fn give_reason(lines: &mut Lines, why: String) -> String {
    let _ = lines.send(&Message::Refused(why.clone()));
    why
}

fn text(error: &Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "the client closed its connection".to_owned(),
        _ => error.to_string(),
    }
}
