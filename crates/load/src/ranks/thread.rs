//! The thread `gpuio-ranks`: messages, heartbeats, and who died or hangs.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gpuio_host::{Root, process_time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open};
use rustix::thread::gettid;

use crate::ranks::activity::{Activity, Idle, Stage};
use crate::ranks::link::Link;
use crate::ranks::message::{self, Beat, Message, Urgency};
use crate::ranks::progress::Overall;
use crate::ranks::{ClockOffset, Ended, GONE, Left, Setup, hold};

/// Round trips to each rank for the offset of its clock.
const ROUND_TRIPS: u64 = 24;
/// A rank whose clock is being compared answers the next messages without sleeping in between.
const AWAKE: Duration = Duration::from_millis(5);
/// A rank that has sent nothing yet may be silent for so many times as long: it still comes out of
/// MPI_Init, which the others have left, and on a busy machine that alone takes long.
const FIRST_TIME: u32 = 6;
/// Between two looks for messages.
const PAUSE: Duration = Duration::from_millis(1);
/// The same in the measured time.
const PAUSE_RUNNING: Duration = Duration::from_millis(10);
/// Messages of each other rank between two pauses, at most. With fewer, heartbeats that come as
/// often as this thread looks for them would leave the messages behind them unseen for ever.
const AT_ONCE: usize = 64;
/// After a relayed message that is no heartbeat, children are in an exchange for this long.
const LIVELY: Duration = Duration::from_secs(1);
/// Once the job may come to its end: a process that ends as it should had its leave before, and
/// this one has it by then. Until then a death is one at once: MPICH's launcher ends all ranks
/// within milliseconds of it.
const DEATH_GRACE: Duration = Duration::from_millis(100);
/// Messages that were under way when this rank left have come by then. MPICH 4.0 with UCX over TCP
/// hangs in MPI_Finalize on a rank that has just sent one.
const LAST_MESSAGES: Duration = Duration::from_millis(100);
/// Messages that were sent have left by then.
const SEND_TIME: Duration = Duration::from_secs(2);
/// MPI_Abort has ended this process by then. MPICH waits for an answer of its launcher for ever,
/// also where the network to it is gone.
const ABORT_TIME: Duration = Duration::from_secs(3);
/// All ranks have come to MPI_Finalize by then, which waits for them.
const FINALIZE_TIME: Duration = Duration::from_secs(15);
/// A process whose last call sleeps in MPI ends so much later than one whose call is busy. MPICH
/// 4.0 with UCX over TCP may hang in MPI_Finalize so that some ranks sleep in its last barrier and
/// others are busy before it. Were the sleeping ones to end first, that would let the others go on
/// into a barrier that others have left, and the launcher would report an error (EBADF).
const SLEEPERS_LATER: Duration = Duration::from_secs(2);
/// For so long a last call is watched, and it sleeps if it runs for less than a tenth of it.
const WATCHED: Duration = Duration::from_millis(100);

/// The requests of the program.
pub(crate) enum Command {
    Send { to: u32, message: Vec<u8> },
    Fail { why: String, code: u8 },
    Clocks(Sender<Option<Vec<ClockOffset>>>),
    Watch { rank: u32, pid: i32 },
    AbortChildren { round: u32 },
    Leave { code: u8 },
}

/// Messages that arrived for the program.
pub(crate) enum Event {
    Data { from: u32, what: String, bytes: Vec<u8> },
    Give,
    Result { from: u32, bytes: Result<Vec<u8>, String> },
    Leave(Left),
}

/// Where messages for this process's child go.
#[derive(Debug)]
pub(crate) struct ToChild {
    pub(crate) round: u32,
    /// Ranks by the children's ranks.
    pub(crate) members: Vec<u32>,
    /// The sender's rank among the children, and the message.
    pub(crate) messages: Sender<(u32, Vec<u8>)>,
}

/// The state that both threads look at.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) activity: Activity,
    pub(crate) names: Mutex<Vec<String>>,
    ended: Mutex<Option<Ended>>,
    /// Ranks that died or hang.
    gone: Mutex<BTreeSet<u32>>,
    /// Ranks that have come to their end, and where their own results lie.
    have: Mutex<BTreeMap<u32, String>>,
    beats: Mutex<BTreeMap<u32, Beat>>,
    pub(crate) to_child: Mutex<Option<ToChild>>,
    /// Messages that came by themselves, each with its sender.
    pub(crate) posts: Mutex<Vec<(u32, Vec<u8>)>>,
    /// The number after that of the last round whose children are to be killed.
    aborted: AtomicU32,
    rests: AtomicBool,
    /// Whether the reason for the end was printed, here or by another rank.
    pub(crate) reported: AtomicBool,
}

impl Shared {
    pub(crate) fn is_aborted(&self, round: u32) -> bool {
        self.aborted.load(Ordering::Relaxed) > round
    }

    pub(crate) fn rest(&self, rests: bool) {
        self.rests.store(rests, Ordering::Relaxed);
    }

    pub(crate) fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        hold(&self.ended).clone()
    }

    /// Ends the job; the first reason counts.
    pub(crate) fn end(&self, why: &str, code: u8) {
        hold(&self.ended).get_or_insert_with(|| Ended(why.to_owned(), code));
    }

    pub(crate) fn name(&self, rank: u32) -> String {
        hold(&self.names).get(rank as usize).cloned().unwrap_or_else(|| format!("rank {rank}"))
    }

    pub(crate) fn gone(&self) -> BTreeSet<u32> {
        hold(&self.gone).clone()
    }

    pub(crate) fn give_up(&self, rank: u32) {
        hold(&self.gone).insert(rank);
    }

    pub(crate) fn have_results(&self) -> Vec<u32> {
        hold(&self.have).keys().copied().collect()
    }

    pub(crate) fn saved(&self) -> Vec<(u32, String)> {
        hold(&self.have).iter().map(|(rank, saved)| (*rank, saved.clone())).collect()
    }

    pub(crate) fn overall(&self) -> Overall {
        let mut all = Overall::default();
        for beat in hold(&self.beats).values().filter(|beat| beat.running) {
            all.running += 1;
            all.bytes_per_s += beat.bytes_per_s as f64;
            all.iops += beat.iops as f64;
            all.failed += beat.failed;
        }
        all
    }
}

/// A rank of which this one is to hear regularly.
struct Peer {
    heard: Instant,
    /// The same on the clock of `Worker::listened`.
    heard_at: Duration,
    /// The silence after which it is given up.
    limit: Duration,
}

/// A process of this host that is watched.
struct Watched {
    rank: u32,
    fd: OwnedFd,
    dead_since: Option<Instant>,
}

pub(crate) struct Worker<L> {
    link: L,
    setup: Setup,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    events: Sender<Event>,
    idle: Idle,
    beat_at: Instant,
    awake_until: Instant,
    lively_until: Instant,
    /// All others on rank 0, rank 0 on the others.
    peers: BTreeMap<u32, Peer>,
    silence: Duration,
    /// The time in which this thread ran as often as it should. While it waits for a processor, or
    /// its process is stopped, a message that came is not seen: such time is no peer's silence.
    listened: Duration,
    listened_until: Instant,
    watched: Option<Watched>,
    /// The answer to the last question for a clock.
    pong: Option<(u32, u64, u64)>,
    nonce: u64,
    end_sent: bool,
    ended_at: Option<Instant>,
    /// Rank 0 may let the others go: this rank has come to its end.
    may_end: bool,
    /// The job comes to its end as it should: nothing is watched any more.
    leaving: bool,
}

/// Whether the thread goes on.
enum Next {
    GoOn,
    Leave(u8),
}

impl<L: Link> Worker<L> {
    pub(crate) fn new(
        link: L,
        setup: Setup,
        shared: Arc<Shared>,
        commands: Receiver<Command>,
        events: Sender<Event>,
    ) -> Worker<L> {
        let now = Instant::now();
        let peers = if link.rank() == 0 { 1..link.size() } else { 0..1 };
        // Rank 0 is to find a silent rank before that rank's neighbours miss rank 0.
        let silence = setup.limits.silence * if link.rank() == 0 { 1 } else { 2 };
        let limit = silence * FIRST_TIME;
        let peer = |_| Peer { heard: now, heard_at: Duration::ZERO, limit };
        Worker {
            link,
            setup,
            shared,
            commands,
            events,
            idle: Idle::new(),
            beat_at: now,
            awake_until: now,
            lively_until: now,
            peers: peers.map(|rank| (rank, peer(rank))).collect(),
            silence,
            listened: Duration::ZERO,
            listened_until: now,
            watched: None,
            pong: None,
            nonce: 0,
            end_sent: false,
            ended_at: None,
            may_end: false,
            leaving: false,
        }
    }

    pub(crate) fn run(mut self) {
        loop {
            match self.turn() {
                Next::GoOn => {}
                Next::Leave(code) => return self.leave(code),
            }
            if Instant::now() >= self.awake_until {
                let running = self.shared.activity.stage() == Stage::Running;
                let rests = self.shared.rests() && Instant::now() >= self.lively_until;
                self.pause(if running || rests { PAUSE_RUNNING } else { PAUSE });
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Commands, messages, heartbeats: once each.
    fn turn(&mut self) -> Next {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Send { to, message }) => {
                    self.note_relayed(&message);
                    // It is to be there before a heartbeat says what comes after it.
                    let ends = |kind: &Option<Message>| matches!(kind, Some(Message::Leave(_)));
                    let kind = message::parse(&message);
                    self.leaving |= ends(&kind);
                    self.may_end |= ends(&kind) || matches!(kind, Some(Message::HaveResult { .. }));
                    self.send(to, &message);
                }
                Ok(Command::Fail { why, code }) => self.fail(&why, code),
                Ok(Command::Clocks(answer)) => {
                    let _ = answer.send(self.clocks());
                }
                Ok(Command::Watch { rank, pid }) => self.watch(rank, pid),
                Ok(Command::AbortChildren { round }) => self.abort_children(round),
                Ok(Command::Leave { code }) => return Next::Leave(code),
                Err(TryRecvError::Empty) => break,
                // The program dropped its side without a leave: it panicked.
                Err(TryRecvError::Disconnected) => {
                    self.fail("its program ended unexpectedly", 1);
                    return Next::Leave(1);
                }
            }
        }
        self.messages();
        self.keep_alive();
        Next::GoOn
    }

    fn messages(&mut self) {
        // No more: where this thread waits long for a processor, the others send heartbeats faster
        // than it receives them, and its own would never go out.
        for _ in 0..self.peers.len() * AT_ONCE {
            match self.link.receive() {
                Ok(Some((from, bytes))) => self.handle(from, &bytes),
                Ok(None) => return,
                Err(why) => return self.lost(&why),
            }
        }
    }

    fn handle(&mut self, from: u32, bytes: &[u8]) {
        let (heard, heard_at) = (Instant::now(), self.listened);
        self.peers.insert(from, Peer { heard, heard_at, limit: self.silence });
        self.note_relayed(bytes);
        let Some(message) = message::parse(bytes) else {
            let name = self.shared.name(from);
            return self.fail(&format!("{name} sent what this gpuio does not know"), 1);
        };
        let event = match message {
            Message::Data { what, bytes } => Event::Data { from, what, bytes },
            Message::Give => Event::Give,
            Message::Result(bytes) => Event::Result { from, bytes },
            Message::Leave(left) => {
                self.leaving = true;
                Event::Leave(left)
            }
            Message::Beat(beat) => return self.beat_of(from, beat),
            Message::End { code, why } => return self.end(&why, code),
            Message::Failed { code, why } => {
                let name = self.shared.name(from);
                return self.fail(&format!("{name}: {why}"), code);
            }
            Message::Ping(nonce) => {
                let at = (self.setup.clock)();
                self.awake_until = Instant::now() + AWAKE;
                return self.send(from, &message::pong(nonce, at));
            }
            Message::Pong { nonce, at } => {
                self.pong = Some((from, nonce, at));
                return;
            }
            Message::HaveResult { saved } => {
                hold(&self.shared.have).insert(from, saved);
                return;
            }
            Message::Relayed { round, bytes } => return self.to_child(from, round, bytes),
            Message::AbortChildren { round } => return self.abort_children(round),
            Message::Post(bytes) => return hold(&self.shared.posts).push((from, bytes)),
            Message::Died { rank } => {
                self.shared.reported.fetch_or(self.setup.shows_all, Ordering::Relaxed);
                return self.died(rank);
            }
        };
        // A program that is gone needs nothing.
        let _ = self.events.send(event);
    }

    /// Messages of children are passed on as fast as they need it.
    fn note_relayed(&mut self, message: &[u8]) {
        if !message::is_relayed(message) {
            return;
        }
        let now = Instant::now();
        match message::urgency(message) {
            Urgency::Clock => self.awake_until = now + AWAKE,
            Urgency::Usual => self.lively_until = now + LIVELY,
            Urgency::Beat => {}
        }
    }

    fn to_child(&self, from: u32, round: u32, bytes: Vec<u8>) {
        let to_child = hold(&self.shared.to_child);
        // The message is of a round that is over, or of a child that ended.
        let Some(to) = to_child.as_ref().filter(|to| to.round == round) else { return };
        let rank = to.members.iter().position(|member| *member == from);
        if let Some(rank) = rank.and_then(|rank| u32::try_from(rank).ok()) {
            let _ = to.messages.send((rank, bytes));
        }
    }

    fn abort_children(&mut self, round: u32) {
        let known = self.shared.aborted.fetch_max(round + 1, Ordering::Relaxed) > round;
        if !known {
            // From rank 0 to all; from others to rank 0.
            self.send_all(&message::abort_children(round));
        }
    }

    fn send(&mut self, to: u32, message: &[u8]) {
        if hold(&self.shared.gone).contains(&to) {
            return;
        }
        if let Err(why) = self.link.send(to, message) {
            self.lost(&why);
        }
    }

    fn send_all(&mut self, message: &[u8]) {
        let peers: Vec<u32> = self.peers.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.send(peer, message));
    }

    fn is_first(&self) -> bool {
        self.link.rank() == 0
    }

    /// The job ends, by this process or by one of which rank 0 heard.
    fn fail(&mut self, why: &str, code: u8) {
        let sent = std::mem::replace(&mut self.end_sent, true);
        self.end(why, code);
        if self.is_first() && !sent {
            let Ended(why, code) =
                self.shared.ended().unwrap_or_else(|| Ended(why.to_owned(), code));
            self.send_all(&message::end(code, &why));
        } else if !sent {
            self.send(0, &message::failed(code, why));
        }
    }

    fn end(&mut self, why: &str, code: u8) {
        self.shared.end(why, code);
        self.ended_at.get_or_insert_with(Instant::now);
        self.setup.stop.store(true, Ordering::Relaxed);
    }

    /// MPI itself failed.
    fn lost(&mut self, why: &str) {
        let own = self.link.rank();
        self.report(&format!("rank {own}: {why}"));
        self.end(&format!("{GONE}: {why}"), 1);
        hold(&self.shared.gone).extend(self.peers.keys().copied());
    }

    fn report(&mut self, why: &str) {
        if !self.shared.reported.swap(true, Ordering::Relaxed) {
            (self.setup.report)(why);
        }
    }

    /// Heartbeats, at their time; and whether those of others came.
    fn keep_alive(&mut self) {
        let now = Instant::now();
        if now < self.beat_at {
            return;
        }
        // After a leave no rank waits for one, and none must be under way when MPI ends.
        if self.leaving {
            return;
        }
        self.beat_at = now + self.setup.limits.beat;
        let beat = self.own_beat();
        let idle = Duration::from_millis(beat.idle_ms);
        self.send_all(&message::beat(&beat));
        if self.is_first() {
            self.beat_of(0, beat.clone());
        }
        self.silent(now);
        let limits = self.setup.limits;
        if self.is_first() && idle > limits.idle && self.shared.ended().is_none() {
            self.hangs(0, &beat);
        }
        // The program itself does not come to its end: the others must not wait for it.
        let most = limits.save * if self.is_first() { 3 } else { 4 };
        if self.ended_at.is_some_and(|at| at.elapsed() > most) {
            let why = self.shared.ended().map(|ended| ended.0).unwrap_or_default();
            self.report(&why);
            self.abort(1);
            std::process::exit(1);
        }
    }

    fn own_beat(&mut self) -> Beat {
        let activity = &self.shared.activity;
        let stage = activity.stage();
        let (bytes_per_s, iops, failed) = activity.rates();
        let idle = self.idle.look(activity);
        let words = match stage {
            Stage::Working => "preparing or finishing",
            Stage::Running => "in the measured time",
            Stage::Waiting => "waiting for other ranks",
        };
        Beat {
            idle_ms: u64::try_from(idle.as_millis()).unwrap_or(u64::MAX),
            stage: words.to_owned(),
            running: stage == Stage::Running,
            bytes_per_s,
            iops,
            failed,
        }
    }

    fn beat_of(&mut self, rank: u32, beat: Beat) {
        let idle = Duration::from_millis(beat.idle_ms);
        if rank != 0 && self.is_first() && idle > self.setup.limits.idle && !self.leaving {
            self.hangs(rank, &beat);
        }
        hold(&self.shared.beats).insert(rank, beat);
    }

    fn hangs(&mut self, rank: u32, beat: &Beat) {
        let (name, seconds) = (self.shared.name(rank), beat.idle_ms / 1000);
        let why = match beat.running {
            true => format!("{name} hangs: {}, and no I/O completed for {seconds} s", beat.stage),
            false => format!("{name} hangs: {}, and it did nothing for {seconds} s", beat.stage),
        };
        self.give_up(rank, &why);
    }

    /// Gives a rank up: the job ends without it.
    fn give_up(&mut self, rank: u32, why: &str) {
        if hold(&self.shared.gone).contains(&rank) {
            return;
        }
        hold(&self.shared.gone).insert(rank);
        self.report(why);
        self.fail(why, 1);
    }

    /// Ranks that sent no heartbeat for too long.
    fn silent(&mut self, now: Instant) {
        let passed = now - std::mem::replace(&mut self.listened_until, now);
        self.listened += passed.min(self.setup.limits.beat * 2);
        let is_silent = |peer: &Peer| self.listened - peer.heard_at > peer.limit;
        let silent = self.peers.iter().filter(|(_, peer)| is_silent(peer));
        let silent: Vec<(u32, u64)> =
            silent.map(|(rank, peer)| (*rank, (now - peer.heard).as_secs())).collect();
        for (rank, seconds) in silent {
            let name = self.shared.name(rank);
            self.give_up(rank, &format!("{name} hangs: nothing was heard of it for {seconds} s"));
        }
    }

    fn watch(&mut self, rank: u32, pid: i32) {
        match Pid::from_raw(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Some(Ok(fd)) => self.watched = Some(Watched { rank, fd, dead_since: None }),
            Some(Err(Errno::SRCH)) => self.watched_died(rank),
            // Without it the heartbeats show the death, later.
            _ => {}
        }
    }

    /// Sleeps; the death of a watched process ends it.
    fn pause(&mut self, time: Duration) {
        let Some(watched) = &mut self.watched else { return std::thread::sleep(time) };
        let nanos = i64::try_from(time.as_nanos()).unwrap_or(0);
        let timeout = Timespec { tv_sec: 0, tv_nsec: nanos };
        let mut fds = [PollFd::new(&watched.fd, PollFlags::IN)];
        if !poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            return;
        }
        let since = watched.dead_since.get_or_insert_with(Instant::now);
        if self.may_end && since.elapsed() < DEATH_GRACE {
            std::thread::sleep(PAUSE);
            return;
        }
        let rank = watched.rank;
        self.watched = None;
        if !self.leaving {
            self.watched_died(rank);
        }
    }

    fn watched_died(&mut self, rank: u32) {
        // At once, by whoever sees it: a launcher may leave rank 0 no time to hear of it.
        let name = self.shared.name(rank);
        self.report(&format!("{name} died"));
        if self.is_first() || rank == 0 {
            self.died(rank);
        } else {
            self.send(0, &message::died(rank));
        }
    }

    fn died(&mut self, rank: u32) {
        if !self.leaving {
            let name = self.shared.name(rank);
            self.give_up(rank, &format!("{name} died"));
        }
    }

    /// The offset of each rank's clock, by the shortest of some round trips.
    fn clocks(&mut self) -> Option<Vec<ClockOffset>> {
        let mut offsets = vec![ClockOffset::default()];
        for rank in 1..self.link.size() {
            let mut best: Option<ClockOffset> = None;
            for _ in 0..ROUND_TRIPS {
                let one = self.clock_of(rank)?;
                best = Some(best.filter(|best| best.bound_ns <= one.bound_ns).unwrap_or(one));
            }
            offsets.push(best?);
        }
        Some(offsets)
    }

    /// One round trip.
    fn clock_of(&mut self, rank: u32) -> Option<ClockOffset> {
        self.nonce += 1;
        let nonce = self.nonce;
        let sent = (self.setup.clock)();
        self.send(rank, &message::ping(nonce));
        loop {
            self.messages();
            let came = (self.setup.clock)();
            if let Some((_, _, at)) = self.pong.take().filter(|p| (p.0, p.1) == (rank, nonce)) {
                let middle = i128::from(sent) + i128::from(came - sent) / 2;
                let offset = i64::try_from(i128::from(at) - middle).ok()?;
                // Rounded up.
                return Some(ClockOffset { offset_ns: offset, bound_ns: (came - sent) / 2 + 1 });
            }
            self.keep_alive();
            if self.shared.ended().is_some() {
                return None;
            }
            std::thread::yield_now();
        }
    }

    fn leave(mut self, code: u8) {
        self.leaving = true;
        let began = Instant::now();
        while began.elapsed() < LAST_MESSAGES
            || !self.link.has_sent() && began.elapsed() < SEND_TIME
        {
            self.messages();
            std::thread::sleep(PAUSE);
        }
        let gone = !hold(&self.shared.gone).is_empty();
        if gone {
            // It ends this process too; should it return, the caller does.
            return self.abort(code);
        }
        let link = self.link;
        within(FINALIZE_TIME, SLEEPERS_LATER, code, || link.finalize());
    }

    /// Ends the processes of all ranks; this one also where MPI does not come back.
    fn abort(&self, code: u8) {
        within(ABORT_TIME, Duration::ZERO, code, || self.link.abort(code));
    }
}

/// A last call of MPI. A process whose call does not come back in time ends without it: its results
/// are saved and the reason is printed. Should the exit itself wait for MPI, it is killed.
fn within(time: Duration, sleepers_later: Duration, code: u8, call: impl FnOnce()) {
    let returned = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&returned);
    let caller = gettid();
    let watch = move || {
        std::thread::sleep(time);
        if !sleepers_later.is_zero() && !seen.load(Ordering::Relaxed) && sleeps(caller) {
            std::thread::sleep(sleepers_later);
        }
        if !seen.load(Ordering::Relaxed) {
            std::process::exit(i32::from(code));
        }
    };
    let seen = Arc::clone(&returned);
    let kill = move || {
        std::thread::sleep(time + sleepers_later + Duration::from_secs(1));
        if !seen.load(Ordering::Relaxed) {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    };
    // Without a thread the launcher has to end this process.
    let last_call = || std::thread::Builder::new().name("gpuio-last-call".to_owned());
    let _ = last_call().spawn(watch);
    let _ = last_call().spawn(kill);
    call();
    returned.store(true, Ordering::Relaxed);
}

/// Whether a thread of this process mostly sleeps, by the time that it runs; false where that can't
/// be read.
fn sleeps(thread: Pid) -> bool {
    let root = Root::live();
    let ran = || {
        let ran = process_time::thread_ran_ns(&root, thread.as_raw_nonzero().get());
        ran.map(Duration::from_nanos)
    };
    let before = ran();
    std::thread::sleep(WATCHED);
    before.zip(ran()).is_some_and(|(before, after)| after.saturating_sub(before) < WATCHED / 10)
}
