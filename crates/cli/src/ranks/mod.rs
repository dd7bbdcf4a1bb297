//! A verb as one of the ranks of an MPI job, and `gpuio check` of their hosts
//! (`Joined::of_each_host`).
//!
//! The steps of the ranks, in this order, each an exchange in which rank 0 decides
//! (`gpuio_load::ranks`):
//!
//! 1. `hello`: version, host and process of each; back comes the number on the host, for
//!    `{local_rank}`.
//! 2. Each makes its own plan. `plan`: all plans must be of the same load, and no two ranks may
//!    take the same GPU or write the same file (`placement`). A rank without a plan sends all
//!    back with its reason.
//! 3. For each group of jobs: where ranks share files, what makes them (`gpuio_load`, `together`);
//!    `opened`, `start` (with the offset of each clock and the time of the start), the measured
//!    time without any exchange, `stopped`, verification, `times` and `moved` (`synchronised`).
//! 4. Each saves its own record as a journal; rank 0 collects and merges them (`finish`).
//!
//! `gpuio sweep` and `bench --ab` run `gpuio bench` many times, each in processes of their own:
//! `children`.
//!
//! Only rank 0 prints.

mod children;
mod finish;
mod placement;
mod steady;
mod synchronised;
#[cfg(test)]
mod tests;

use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gpuio_drivers::mpi::{LIBRARY_VARIABLE, Launcher, World};
use gpuio_guard::objects::environment;
use gpuio_job::spec::RankPlace;
use gpuio_load::ranks::{Ended, Limits, Ranks, Relayed, Setup};
use gpuio_record::RankOf;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::interrupt;
use crate::journal::Journal;
use crate::output;

pub(crate) use children::{Children, Wanted, is_child, serve};
pub(crate) use finish::{Learned, Write};
pub(crate) use placement::{Place, Share};
pub(crate) use synchronised::Synchronised;

/// A rank that does nothing for this long hangs, unless `--rank-timeout` says otherwise.
const IDLE: Duration = Duration::from_secs(30);

/// The first message of a rank. The version comes first: what follows is compared after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hello {
    version: String,
    host: String,
    pid: u32,
    /// The kernel's boot and the PID namespace: processes in the same can watch each other.
    kernel: String,
}

/// This process among the ranks.
pub(crate) struct Joined {
    pub(crate) ranks: Ranks,
    launcher: String,
    hellos: Vec<Hello>,
    place: Place,
    /// On rank 0, once the plans were compared: the network cards of each rank.
    nics: OnceLock<Vec<Vec<String>>>,
}

/// Whether this process is to be a rank.
pub(crate) fn is_one() -> bool {
    is_child() || Launcher::of_this_process().is_some()
}

/// The part of this process among the ranks.
pub(crate) enum Role {
    /// No launcher started it.
    Alone,
    /// Rank 0, which decides and prints.
    First(Joined),
    /// Another rank.
    Member(Joined),
    /// The ranks can't run together, which rank 0 has printed: all end with this code.
    Ended(ExitCode),
}

/// Joins the other ranks where a launcher started this process.
///
/// # Errors
/// Without MPI.
pub(crate) fn join(idle: Option<Duration>) -> Result<Role, Failure> {
    let setup = |rank: u32, size: u32| {
        if rank != 0 {
            output::silence();
        }
        Setup {
            clock: gpuio_watch::page::monotonic_ns,
            limits: Limits::of(idle.unwrap_or(IDLE), size),
            stop: interrupt::flag(),
            // The output of other children is thrown away.
            shows_all: !children::is_child(),
            report: Box::new(|why| output::print_always(&format!("error: {why}"))),
        }
    };
    let (joined, name) = if let Some(place) = children::place() {
        let setup = setup(place.rank, place.size);
        let (name, link) = (place.launcher.clone(), move || relayed(place));
        (Ranks::join(link, setup), name)
    } else if let Some(launcher) = Launcher::of_this_process() {
        let setup = setup(launcher.rank, launcher.size);
        let (name, named) = (launcher.name.to_owned(), environment::text(LIBRARY_VARIABLE));
        let link = move || World::join(&launcher, named.as_deref()).map_err(|e| e.to_string());
        (Ranks::join(link, setup), name)
    } else {
        return Ok(Role::Alone);
    };
    let ranks = joined.map_err(|why| {
        // Every rank has this error for itself: MPI is not there to send it to rank 0.
        output::speak();
        Failure::Unavailable(why)
    })?;
    match hello(&ranks, &own_hello()) {
        Ok((hellos, place)) => {
            watch_neighbour(&ranks, &hellos);
            let nics = OnceLock::new();
            let joined = Joined { ranks, launcher: name, hellos, place, nics };
            Ok(if joined.is_first() { Role::First(joined) } else { Role::Member(joined) })
        }
        Err(ended) => Ok(Role::Ended(finish::send_home(ranks, &ended))),
    }
}

/// The link of a child: its parent made the socket its standard input.
fn relayed(place: children::ChildPlace) -> Result<Relayed, String> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = socket.map_err(|error| format!("standard input: {error}"))?;
    Relayed::new(socket, place.rank, place.size, place.library)
}

/// The failure that ends this process; the exit code is that of the rank that failed.
fn failure_of(ended: &Ended) -> Failure {
    match ended.1 {
        2 => Failure::Usage(ended.0.clone()),
        3 => Failure::Unavailable(ended.0.clone()),
        _ => Failure::Ran(ended.0.clone()),
    }
}

fn own_hello() -> Hello {
    let root = gpuio_host::Root::live();
    let boot = gpuio_host::process::boot(&root).unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        pid: std::process::id(),
        kernel: format!("{boot} {}", namespace.display()),
    }
}

fn hello(ranks: &Ranks, own: &Hello) -> Result<(Vec<Hello>, Place), Ended> {
    let all = ranks.exchange("hello", to_bytes(own), |all| {
        let hellos: Vec<Option<Hello>> = all.iter().map(|one| parse(one)).collect();
        same_version(&hellos).map_err(|why| Ended(why, 2))?;
        let answer = to_bytes(&hellos);
        Ok(vec![answer; all.len()])
    })?;
    let hellos: Vec<Hello> = parse(&all).ok_or_else(|| ranks.fail(UNREADABLE, 1))?;
    ranks.name((0_u32..).zip(&hellos).map(|(rank, one)| rank_name(rank, one)).collect());
    let rank = ranks.rank();
    let own = &hellos[rank as usize];
    let before = hellos.iter().take(rank as usize).filter(|one| one.host == own.host).count();
    let local_rank = u32::try_from(before).unwrap_or(u32::MAX);
    let hosts: Vec<&str> = hellos.iter().map(|one| one.host.as_str()).collect();
    let on_next_host = placement::on_next_host(&hosts, rank);
    let among = Some(RankPlace { rank, ranks: ranks.size(), on_next_host });
    let place = Place { rank: Some(rank), local_rank, host: own.host.clone(), among };
    Ok((hellos, place))
}

const UNREADABLE: &str = "a message of another rank can't be read";

fn rank_name(rank: u32, hello: &Hello) -> String {
    format!("rank {rank} (host {}, process {})", hello.host, hello.pid)
}

fn same_version(hellos: &[Option<Hello>]) -> Result<(), String> {
    let own = env!("CARGO_PKG_VERSION");
    for (rank, hello) in hellos.iter().enumerate() {
        let Some(hello) = hello else {
            return Err(format!(
                "rank {rank} runs another version of gpuio than rank 0 ({own}); install the same \
                 on all hosts"
            ));
        };
        if hello.version != own {
            return Err(format!(
                "rank {rank} (host {}) runs gpuio {}, rank 0 runs {own}; install the same version \
                 on all hosts",
                hello.host, hello.version
            ));
        }
    }
    Ok(())
}

/// Each rank watches the next of its host, so that a death is seen before the launcher ends all.
fn watch_neighbour(ranks: &Ranks, hellos: &[Hello]) {
    let own = ranks.rank() as usize;
    let beside = |at: &usize| hellos[*at].kernel == hellos[own].kernel;
    let after = (own + 1..hellos.len()).find(beside);
    let next = after.or_else(|| (0..own).find(beside));
    if let Some(next) = next
        && let (Ok(rank), Ok(pid)) = (u32::try_from(next), i32::try_from(hellos[next].pid))
    {
        ranks.watch(rank, pid);
    }
}

impl Joined {
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn is_first(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// Ranks of this host, and of all.
    pub(crate) fn numbers(&self) -> (u64, u64) {
        let host = &self.own().host;
        let here = self.hellos.iter().filter(|one| one.host == *host).count();
        (here as u64, self.hellos.len() as u64)
    }

    /// The smallest number of threads and the smallest size that a rank can take.
    pub(crate) fn smallest(&self, own: (u32, u64)) -> Result<(u32, u64), Failure> {
        let answer = self.ranks.exchange("size", to_bytes(&own), |all| {
            let all: Option<Vec<(u32, u64)>> = all.iter().map(|one| parse(one)).collect();
            let all = all.ok_or_else(|| Ended(UNREADABLE.to_owned(), 1))?;
            let least = (all.iter().map(|one| one.0).min(), all.iter().map(|one| one.1).min());
            let least = (least.0.unwrap_or(own.0), least.1.unwrap_or(own.1));
            Ok(vec![to_bytes(&least); all.len()])
        });
        let answer = answer.map_err(|ended| failure_of(&ended))?;
        Ok(parse(&answer).unwrap_or(own))
    }

    /// Which rank this process's own record is of.
    pub(crate) fn rank_of(&self) -> RankOf {
        let own = self.own();
        let (rank, ranks) = (self.ranks.rank(), self.ranks.size());
        RankOf { rank, ranks, host: own.host.clone(), pid: own.pid }
    }

    /// Sends what `own` reads on the first rank of each host to rank 0, where `decide` gets all
    /// with the names of their hosts. Leaves with the exit code that it returns, on all ranks.
    pub(crate) fn of_each_host<T: Serialize + for<'de> Deserialize<'de>>(
        self,
        what: &str,
        own: impl FnOnce() -> T,
        decide: impl FnOnce(Vec<(String, T)>) -> Result<u8, Failure>,
    ) -> ExitCode {
        let own = to_bytes(&(self.place.local_rank == 0).then(own));
        let answer = self.ranks.exchange(what, own, |all| {
            let each = all.iter().zip(&self.hellos).filter_map(|(one, hello)| {
                match parse::<Option<T>>(one) {
                    Some(of_host) => of_host.map(|of_host| Ok((hello.host.clone(), of_host))),
                    None => Some(Err(Ended(UNREADABLE.to_owned(), 1))),
                }
            });
            let each = each.collect::<Result<Vec<_>, Ended>>()?;
            let code =
                decide(each).map_err(|failure| Ended(failure.to_string(), failure.code()))?;
            Ok(vec![vec![code]; all.len()])
        });
        match answer {
            Ok(code) => {
                let code = code.first().copied().unwrap_or(1);
                self.leave(code);
                ExitCode::from(code)
            }
            Err(ended) => finish::send_home(self.ranks, &ended),
        }
    }

    pub(crate) fn journal(&self, output: Option<&Path>) -> Journal {
        Journal::of_rank(output, self.ranks.rank(), &self.own().host)
    }

    /// The first message of this process.
    fn own(&self) -> &Hello {
        &self.hellos[self.ranks.rank() as usize]
    }
}

fn to_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    // Plain values: nothing that they hold fails.
    serde_json::to_vec(value).unwrap_or_default()
}

fn parse<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

fn hold<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
