//! The processes (ranks) of one job: what they exchange, how their clocks differ, and which of them
//! died or hangs.
//!
//! Purpose: a program on rank 0 and the same program on every other rank go through the same
//! [`Ranks::exchange`]s, in which rank 0 decides; at the end rank 0 collects the results
//! ([`Ranks::collect`]). Every wait ends: with the message, or because the job was ended
//! ([`Ended`]), by [`Ranks::fail`] of any rank or because a rank died or hangs.
//!
//! It must not hold loads, plans, records, or the subject of an exchange.
//!
//! Data flow: the program's thread sends commands to a thread of its own, `gpuio-ranks`, which
//! alone calls MPI (`gpuio_drivers::mpi` wants that) and sends back what arrived. That thread also
//! sends a heartbeat to rank 0, rank 0 one to all, and looks whether its own process still does
//! anything ([`Activity`]). Nothing here is collective: ranks in their measured time send only
//! heartbeats, a few hundred bytes every 200 ms.
//!
//! A rank may start a process of its own that is a rank among those that other ranks start
//! (`relay`): their messages pass through the ranks.
//!
//! Threads: a [`Ranks`] is used by one thread at a time. `gpuio-ranks` never waits for it. It
//! sleeps 1 ms between two looks for messages, 10 ms in the measured time.

mod activity;
#[cfg(any(test, feature = "channels"))]
pub mod channels;
mod link;
mod message;
mod progress;
mod relay;
#[cfg(test)]
mod tests;
mod thread;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use activity::{Activity, Stage};
pub use link::Link;
pub use progress::{Collected, Overall};
pub use relay::{Relay, Relayed};

use thread::{Command, Event, Shared, Worker};

/// After an interrupt the others have this long to come to the same point.
const INTERRUPT_TIME: Duration = Duration::from_secs(2);
/// The same while children run, who save what they have.
const INTERRUPT_TIME_OF_CHILDREN: Duration = Duration::from_secs(15);
/// Results that are under way to rank 0 at the same time.
const WINDOW: usize = 8;

/// Times after which a rank is given up.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Between two heartbeats.
    pub beat: Duration,
    /// A rank that sends no heartbeat for this long does not run any more. Time in which the
    /// process that listens did not run does not count, and before the first heartbeat it is six
    /// times as long.
    pub silence: Duration,
    /// A rank that does nothing for this long hangs.
    pub idle: Duration,
    /// How long the ranks have to save their results once the job was ended.
    pub save: Duration,
}

impl Limits {
    /// Limits by the time that a rank may do nothing.
    pub fn of(idle: Duration, ranks: u32) -> Limits {
        // A thousand ranks send two thousand heartbeats a second to rank 0, not five thousand.
        let beat = Duration::from_millis(200).max(Duration::from_micros(500) * ranks);
        // Who grants more time to a busy machine grants it to all.
        let silence = idle.min(Duration::from_secs(10).max(idle / 3)).max(beat * 4);
        Limits { beat, silence, idle, save: Duration::from_secs(8).max(idle / 3) }
    }
}

/// The job was ended: why, in words that name the rank, and the exit code for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended(pub String, pub u8);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far a rank's clock is ahead of rank 0's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockOffset {
    /// Nanoseconds to add to a time of rank 0.
    pub offset_ns: i64,
    /// The true offset is at most this far away: half of the shortest round trip.
    pub bound_ns: u64,
}

/// The means by which a process takes part.
pub struct Setup {
    /// Nanoseconds of a clock that never steps back, the same for all of this process.
    pub clock: fn() -> u64,
    pub limits: Limits,
    /// Set when the job is ended: the program should come to its end.
    pub stop: Arc<AtomicBool>,
    /// Whether what other ranks report is seen where this one's reports are: by a launcher that
    /// collects the output of all. Then a death is reported by the rank that saw it first only.
    pub shows_all: bool,
    /// Reports an error at once, from the other thread; called once at most.
    pub report: Box<dyn Fn(&str) + Send>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// This process among the ranks.
#[derive(Debug)]
pub struct Ranks {
    rank: u32,
    size: u32,
    library: String,
    clock: fn() -> u64,
    save: Duration,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    commands: Sender<Command>,
    events: Mutex<Receiver<Event>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Ranks {
    /// Joins the ranks by a link, which is made on the thread that will use it.
    ///
    /// # Errors
    /// Why the link could not be made.
    pub fn join<L: Link + 'static>(
        link: impl FnOnce() -> Result<L, String> + Send + 'static,
        setup: Setup,
    ) -> Result<Ranks, String> {
        let (commands, to_thread) = channel();
        let (to_program, events) = channel();
        let (ready, joined) = channel();
        let shared = Arc::new(Shared::default());
        let (theirs, stop, clock) = (Arc::clone(&shared), Arc::clone(&setup.stop), setup.clock);
        let save = setup.limits.save;
        let body = move || {
            let link = match link() {
                Ok(link) => link,
                Err(why) => {
                    let _ = ready.send(Err(why));
                    return;
                }
            };
            let _ = ready.send(Ok((link.rank(), link.size(), link.library().to_owned())));
            Worker::new(link, setup, theirs, to_thread, to_program).run();
        };
        let spawned = std::thread::Builder::new().name("gpuio-ranks".to_owned()).spawn(body);
        let thread = spawned.map_err(|error| format!("a thread could not be started: {error}"))?;
        let gone = || "the thread of the ranks ended".to_owned();
        let (rank, size, library) = joined.recv().map_err(|_| gone())??;
        let (events, thread) = (Mutex::new(events), Some(thread));
        Ok(Ranks { rank, size, library, clock, save, shared, stop, commands, events, thread })
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The MPI library with its version.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// The activity of this process, for the others to see that it does something.
    pub fn activity(&self) -> &Activity {
        &self.shared.activity
    }

    /// Now, on this process's clock.
    pub fn now(&self) -> u64 {
        (self.clock)()
    }

    /// Why the job was ended, where it was.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.shared.ended()
    }

    /// Whether the reason was reported already, at once.
    pub fn reported(&self) -> bool {
        self.shared.reported.load(Ordering::Relaxed)
    }

    /// On rank 0: what all ranks move together, by their last heartbeats.
    pub fn overall(&self) -> Overall {
        self.shared.overall()
    }

    /// Gives messages a name for each rank: `rank 3 (host n4, pid 812)`.
    pub fn name(&self, names: Vec<String>) {
        *hold(&self.shared.names) = names;
    }

    /// Watches a process of this host: its death is reported to rank 0 as that of `rank`.
    pub fn watch(&self, rank: u32, pid: i32) {
        let _ = self.commands.send(Command::Watch { rank, pid });
    }

    /// Sends `payload` to rank 0, which gives those of all ranks, in order, to `decide` and sends
    /// each rank its part of the answer. `what` names the exchange: all ranks must be at the same.
    ///
    /// # Errors
    /// [`Ended`]: the job was ended, also by an error of `decide`.
    pub fn exchange(
        &self,
        what: &str,
        payload: Vec<u8>,
        decide: impl FnOnce(Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Ended>,
    ) -> Result<Vec<u8>, Ended> {
        let before = self.activity().stage();
        self.activity().enter(Stage::Waiting);
        let answer = if self.rank == 0 {
            self.decide(what, payload, decide)
        } else {
            self.send(0, message::data(what, &payload));
            self.wait(what).map(|(_, answer)| answer)
        };
        self.activity().enter(before);
        answer
    }

    fn decide(
        &self,
        what: &str,
        payload: Vec<u8>,
        decide: impl FnOnce(Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Ended>,
    ) -> Result<Vec<u8>, Ended> {
        let mut all: Vec<Option<Vec<u8>>> = vec![None; self.size as usize];
        all[0] = Some(payload);
        for _ in 1..self.size {
            let (from, payload) = self.wait(what)?;
            all[from as usize] = Some(payload);
        }
        let mut answers = decide(all.into_iter().flatten().collect())
            .map_err(|Ended(why, code)| self.fail(&why, code))?
            .into_iter();
        let own = answers.next().unwrap_or_default();
        for (rank, answer) in (1..).zip(answers) {
            self.send(rank, message::data(what, &answer));
        }
        Ok(own)
    }

    /// Sends without waiting, also in the measured time: from rank 0 to all others, from others to
    /// rank 0.
    pub fn post(&self, bytes: &[u8]) {
        let to = if self.rank == 0 { 1..self.size } else { 0..1 };
        to.for_each(|to| self.send(to, message::post(bytes)));
    }

    /// The messages posted to this rank since the last call, each with its sender.
    pub fn posted(&self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut *hold(&self.shared.posts))
    }

    /// Ends the job on all ranks, for this reason and with this exit code; the first reason counts.
    /// Returns the one that counted.
    pub fn fail(&self, why: &str, code: u8) -> Ended {
        self.shared.end(why, code);
        let _ = self.commands.send(Command::Fail { why: why.to_owned(), code });
        self.stop.store(true, Ordering::Relaxed);
        self.ended().unwrap_or_else(|| Ended(why.to_owned(), code))
    }

    /// On rank 0: how far each rank's clock is ahead of rank 0's, by the shortest of some round
    /// trips to each, one rank after another. The others may be anywhere.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn clock_offsets(&self) -> Result<Vec<ClockOffset>, Ended> {
        let (to, from) = channel();
        let _ = self.commands.send(Command::Clocks(to));
        from.recv().ok().flatten().ok_or_else(|| self.ended().unwrap_or(Ended(GONE.to_owned(), 1)))
    }

    /// On rank 0: takes the results of the other ranks, one after another, in any order. Each is
    /// given to `each`; a rank that has none or can't deliver it is given with the reason.
    pub fn collect(&self, each: &mut dyn FnMut(u32, Collected)) {
        self.activity().enter(Stage::Waiting);
        let mut left: Vec<u32> = (1..self.size).collect();
        let (mut granted, mut under_way) = (Vec::new(), 0);
        let mut ended_at: Option<Instant> = None;
        while !left.is_empty() {
            if self.ended().is_some() {
                ended_at.get_or_insert_with(Instant::now);
            }
            let late = ended_at.is_some_and(|at| at.elapsed() > self.save);
            let gone = self.shared.gone();
            let lost: Vec<u32> =
                left.iter().copied().filter(|rank| late || gone.contains(rank)).collect();
            left.retain(|rank| !lost.contains(rank));
            for rank in lost {
                under_way -= usize::from(granted.contains(&rank));
                self.shared.give_up(rank);
                let why = self.ended().map_or_else(|| GONE.to_owned(), |ended| ended.0);
                each(rank, Collected::Lost(why));
            }
            for rank in self.shared.have_results() {
                if under_way < WINDOW && left.contains(&rank) && !granted.contains(&rank) {
                    granted.push(rank);
                    under_way += 1;
                    self.send(rank, message::give());
                }
            }
            let event = hold(&self.events).recv_timeout(Duration::from_millis(5));
            match event {
                Ok(Event::Result { from, bytes }) if left.contains(&from) => {
                    left.retain(|rank| *rank != from);
                    under_way = under_way.saturating_sub(1);
                    each(from, bytes.map_or_else(Collected::None, Collected::Result));
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(Event::Data { from, what, .. }) if self.ended().is_none() => {
                    let name = self.shared.name(from);
                    self.fail(&format!("{name} is at '{what}', rank 0 is at its end"), 1);
                }
                // A message of an exchange that the end of the job cut short.
                _ => {}
            }
        }
    }

    /// On other ranks than 0: delivers the result when rank 0 wants it, or why there is none, and
    /// waits until rank 0 has done its part. `saved` names where this rank's own result lies.
    ///
    /// # Errors
    /// [`Ended`]: rank 0 did not get that far.
    pub fn deliver(&self, result: Result<Vec<u8>, String>, saved: &str) -> Result<Left, Ended> {
        self.activity().enter(Stage::Waiting);
        self.send(0, message::have_result(saved));
        let mut result = Some(result);
        let mut ended_at: Option<Instant> = None;
        loop {
            if self.ended().is_some() {
                ended_at.get_or_insert_with(Instant::now);
            }
            // Rank 0 has its own time to collect, and some to write.
            let late = ended_at.is_some_and(|at| at.elapsed() > self.save * 2);
            if late || self.shared.gone().contains(&0) {
                return Err(self.ended().unwrap_or(Ended(GONE.to_owned(), 1)));
            }
            let event = hold(&self.events).recv_timeout(Duration::from_millis(20));
            match event {
                Ok(Event::Give) => {
                    if let Some(result) = result.take() {
                        self.send(0, message::result(result));
                    }
                }
                Ok(Event::Leave(left)) => return Ok(left),
                Err(RecvTimeoutError::Disconnected) => return Err(Ended(GONE.to_owned(), 1)),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Where ranks said that their results lie, by rank.
    pub fn saved(&self) -> Vec<(u32, String)> {
        self.shared.saved()
    }

    /// On rank 0: lets the others go, with the exit code of all and whether the merged result was
    /// saved and complete.
    pub fn release(&self, left: Left) {
        for rank in 1..self.size {
            self.send(rank, message::leave(left));
        }
    }

    /// Leaves. Ranks that hang or died are ended with the whole job, by MPI_Abort; then this does
    /// not return.
    pub fn leave(mut self, code: u8) {
        let _ = self.commands.send(Command::Leave { code });
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn send(&self, to: u32, message: Vec<u8>) {
        // Without the thread there is no job any more; every wait ends with that.
        let _ = self.commands.send(Command::Send { to, message });
    }

    /// The next message of this exchange.
    fn wait(&self, what: &str) -> Result<(u32, Vec<u8>), Ended> {
        let mut interrupted: Option<Instant> = None;
        let timeout = if self.shared.rests() { INTERRUPT_TIME_OF_CHILDREN } else { INTERRUPT_TIME };
        loop {
            if let Some(ended) = self.ended() {
                return Err(ended);
            }
            if self.stop.load(Ordering::Relaxed)
                && interrupted.get_or_insert_with(Instant::now).elapsed() > timeout
            {
                return Err(self.fail("the run was interrupted", 1));
            }
            // Its last exchange was answered before: it will not come to this one.
            if let Some(rank) = self.shared.have_results().first() {
                let why = format!("{} came to its end before '{what}'", self.shared.name(*rank));
                return Err(self.fail(&why, 1));
            }
            let event = hold(&self.events).recv_timeout(Duration::from_millis(20));
            match event {
                Ok(Event::Data { from, what: theirs, bytes }) if theirs == what => {
                    return Ok((from, bytes));
                }
                Ok(Event::Data { from, what: theirs, .. }) => {
                    let name = self.shared.name(from);
                    let why = format!("{name} is at '{theirs}', rank {} at '{what}'", self.rank);
                    return Err(self.fail(&why, 1));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Ended(GONE.to_owned(), 1)),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

const GONE: &str = "the connection to the other ranks was lost";

/// How a job was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// The exit code of all ranks.
    pub code: u8,
    /// Whether the merged result has everything and is saved: then no rank needs its own.
    pub saved: bool,
}

fn hold<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic elsewhere leaves these plain values whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
