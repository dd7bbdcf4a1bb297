//! Runs of `gpuio bench` that this process starts, one after another: of a sweep, of `--ab`. As one
//! of several ranks, every rank of a run starts a process of its own, and these are ranks among
//! themselves (`gpuio_load::ranks::Relay`).
//!
//! Rank 0 decides on every run ([`Children::run`]); the others follow its orders ([`serve`]). A run
//! may have fewer ranks than there are: the first in the order of [`spread`]. The others wait, and
//! no process of theirs runs.

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;

use gpuio_dataset::leftover;
use gpuio_guard::objects::environment;
use gpuio_guard::outfile::Directory;
use gpuio_host::Root;
use gpuio_load::ranks::{Ended, Relay, Stage};
use gpuio_record::RunOf;
use serde::{Deserialize, Serialize};

use super::{Joined, failure_of, finish, parse, to_bytes};
use crate::child::{ChildOf, DATA, child_command, end_of};
use crate::failure::Failure;
use crate::interrupt;
use crate::output;

/// The facts that make a process a rank among children.
const VARIABLE: &str = "GPUIO_RANK_OF";

/// A child's place, from its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChildPlace {
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) launcher: String,
    pub(super) library: String,
}

/// This process's place among the children of ranks, where it is one.
pub(super) fn place() -> Option<ChildPlace> {
    parse(environment::text(VARIABLE)?.as_bytes())
}

/// Whether this process is a rank among the children of ranks.
pub(crate) fn is_child() -> bool {
    environment::variable(VARIABLE).is_some()
}

/// The order that rank 0 sends before each run.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Start this, as a rank among the members.
    Run(Run),
    /// A run without this rank.
    Rest,
    /// No run follows. The data set of a sweep in this folder is to be removed.
    End { data_of: Option<PathBuf> },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Run {
    of: ChildOf,
    /// The arguments of gpuio, in bytes.
    words: Vec<Vec<u8>>,
    round: u32,
    members: Vec<u32>,
    /// A sweep's folder, in which the data set is.
    folder: Option<PathBuf>,
    run_of: Option<RunOf>,
}

pub(crate) struct Wanted<'a> {
    pub(crate) of: ChildOf,
    /// The arguments of gpuio.
    pub(crate) words: Vec<OsString>,
    /// How many ranks; all where this is not said.
    pub(crate) ranks: Option<u32>,
    /// A sweep's folder, in which the data set is: other hosts may not have it.
    pub(crate) folder: Option<&'a Path>,
    /// Which of the runs it is; `None` where it is none that is kept.
    pub(crate) run_of: Option<RunOf>,
    pub(crate) stdout: File,
    pub(crate) stderr: Option<File>,
}

/// How runs are started.
pub(crate) struct Children<'a> {
    joined: Option<&'a Joined>,
    round: Cell<u32>,
    /// The folder whose data set goes at the end, on the other hosts.
    data_of: RefCell<Option<PathBuf>>,
}

impl Children<'_> {
    /// Without other ranks.
    pub(crate) fn alone() -> Children<'static> {
        Children { joined: None, round: Cell::new(0), data_of: RefCell::new(None) }
    }

    /// How many ranks there are.
    pub(crate) fn ranks(&self) -> Option<u32> {
        self.joined.map(|joined| joined.ranks.size())
    }

    /// The data set in this folder is removed on the other hosts too, at the end.
    pub(crate) fn remove_data_of(&self, folder: &Path) {
        self.data_of.replace(Some(folder.to_owned()));
    }

    /// Runs it to its end; `None` where `stop` ended it early.
    ///
    /// # Errors
    /// A process can't be started, or the ranks were ended.
    pub(crate) fn run(
        &self,
        wanted: Wanted<'_>,
        stop: &AtomicBool,
    ) -> Result<Option<ExitStatus>, Failure> {
        match self.joined {
            Some(joined) => self.on_ranks(joined, wanted, stop),
            None => {
                let mut command = child_command(wanted.of, wanted.run_of.as_ref())?;
                command.args(wanted.words).stdin(Stdio::null()).stdout(wanted.stdout);
                if let Some(stderr) = wanted.stderr {
                    command.stderr(stderr);
                }
                let mut child = command.spawn().map_err(not_started)?;
                drop(command);
                end_of(&mut child, stop, &|| false).map_err(not_awaited)
            }
        }
    }

    fn on_ranks(
        &self,
        joined: &Joined,
        wanted: Wanted<'_>,
        stop: &AtomicBool,
    ) -> Result<Option<ExitStatus>, Failure> {
        let round = self.round.replace(self.round.get() + 1);
        let all = spread(joined.hellos.iter().map(|hello| hello.host.as_str()));
        let count = wanted.ranks.map_or(all.len(), |ranks| ranks as usize);
        let members: Vec<u32> = all.into_iter().take(count).collect();
        let run = Run {
            of: wanted.of,
            words: wanted.words.iter().map(|word| word.as_bytes().to_vec()).collect(),
            round,
            members: members.clone(),
            folder: wanted.folder.map(Path::to_owned),
            run_of: wanted.run_of,
        };
        // Before the orders: the first messages of the other children may come at once.
        let relay = joined.ranks.relay(round, members.clone()).map_err(not_started)?;
        let order = joined.ranks.exchange("order", Vec::new(), |all| {
            let order = |rank: u32| match members.contains(&rank) {
                true => to_bytes(&Order::Run(run.clone())),
                false => to_bytes(&Order::Rest),
            };
            Ok((0_u32..).take(all.len()).map(order).collect())
        });
        order.map_err(|ended| failure_of(&ended))?;
        let outputs = (Stdio::from(wanted.stdout), wanted.stderr.map(Stdio::from));
        let status = one(joined, &run, relay, outputs, stop);
        let own = status.as_ref().err().map(ToString::to_string);
        let mut others = None;
        let ran = joined.ranks.exchange("ran", to_bytes(&own), |all| {
            let errors = all.iter().filter_map(|one| parse::<Option<String>>(one).flatten());
            others = errors.into_iter().next();
            Ok(vec![Vec::new(); all.len()])
        });
        ran.map_err(|ended| failure_of(&ended))?;
        match others {
            Some(why) => Err(Failure::Ran(why)),
            None => status,
        }
    }
}

fn not_started(error: std::io::Error) -> Failure {
    Failure::Ran(format!("gpuio bench could not be started: {error}"))
}

fn not_awaited(error: std::io::Error) -> Failure {
    Failure::Ran(format!("waiting for gpuio bench: {error}"))
}

/// The order in which ranks take part in runs with fewer of them, and their numbers there: the
/// first of each host, then the second of each, and so on. So ranks are spread over the hosts, and
/// a rank has the same number in all runs.
fn spread<'a>(hosts: impl Iterator<Item = &'a str>) -> Vec<u32> {
    let mut seen: Vec<(&str, u32)> = Vec::new();
    let mut order: Vec<(u32, u32)> = Vec::new();
    for (rank, host) in (0_u32..).zip(hosts) {
        let nth = match seen.iter_mut().find(|(name, _)| *name == host) {
            Some((_, ranks)) => {
                *ranks += 1;
                *ranks
            }
            None => {
                seen.push((host, 0));
                0
            }
        };
        order.push((nth, rank));
    }
    order.sort_unstable();
    order.into_iter().map(|(_, rank)| rank).collect()
}

/// Starts this rank's process of a run and waits for its end.
fn one(
    joined: &Joined,
    run: &Run,
    (relay, socket): (Relay, std::os::fd::OwnedFd),
    (stdout, stderr): (Stdio, Option<Stdio>),
    stop: &AtomicBool,
) -> Result<Option<ExitStatus>, Failure> {
    let ended = command(joined, run).and_then(|mut command| {
        command.stdin(Stdio::from(socket)).stdout(stdout);
        if let Some(stderr) = stderr {
            command.stderr(stderr);
        }
        // With the command goes this process's own end of the child's socket.
        let mut child = command.spawn().map_err(not_started)?;
        drop(command);
        let before = joined.ranks.activity().stage();
        joined.ranks.activity().enter(Stage::Waiting);
        let ended = end_of(&mut child, stop, &|| relay.is_aborted()).map_err(not_awaited);
        joined.ranks.activity().enter(before);
        ended
    });
    // The others must not wait for this one.
    match &ended {
        Err(_) => joined.ranks.abort_children(run.round),
        Ok(Some(status)) if status.signal().is_some() && !relay.is_aborted() => {
            joined.ranks.child_died(run.round, &run.members);
        }
        Ok(_) => {}
    }
    relay.end();
    let name = || super::rank_name(joined.ranks.rank(), joined.own());
    ended.map_err(|failure| Failure::Ran(format!("{}: {failure}", name())))
}

fn command(joined: &Joined, run: &Run) -> Result<Command, Failure> {
    let own = joined.ranks.rank();
    let rank = run.members.iter().position(|member| *member == own).unwrap_or_default();
    let place = ChildPlace {
        rank: u32::try_from(rank).unwrap_or(u32::MAX),
        size: u32::try_from(run.members.len()).unwrap_or(u32::MAX),
        launcher: joined.launcher.clone(),
        library: joined.ranks.library().to_owned(),
    };
    let mut command = child_command(run.of, run.run_of.as_ref())?;
    command.env(VARIABLE, String::from_utf8_lossy(&to_bytes(&place)).into_owned());
    command.args(run.words.iter().map(|word| OsString::from_vec(word.clone())));
    Ok(command)
}

/// Follows the orders of rank 0 until the end; the exit code is that of all ranks.
pub(crate) fn serve(joined: Joined) -> ExitCode {
    joined.ranks.rest(true);
    let stop = interrupt::flag();
    let mut made: Option<PathBuf> = None;
    loop {
        let data_of = match follow(&joined, &stop, &mut made) {
            Ok(None) => continue,
            Ok(Some(data_of)) => data_of,
            Err(ended) => return finish::send_home(joined.ranks, &ended),
        };
        if let Some(folder) = data_of.filter(|_| joined.place.local_rank == 0) {
            remove_data(&folder, &joined.place.host);
        }
        if let Some(folder) = made {
            // It stays if anything is in it.
            let _ = std::fs::remove_dir(folder);
        }
        let left = joined.ranks.deliver(Err("it has no result of its own".to_owned()), "");
        let code = left.map_or_else(|ended| ended.1, |left| left.code);
        joined.ranks.leave(code);
        return ExitCode::from(code);
    }
}

/// One order. Returns the folder whose data is to be removed once no run follows.
fn follow(
    joined: &Joined,
    stop: &AtomicBool,
    made: &mut Option<PathBuf>,
) -> Result<Option<Option<PathBuf>>, Ended> {
    let order = joined.ranks.exchange("order", Vec::new(), |_| Ok(Vec::new()))?;
    let unreadable = || joined.ranks.fail(super::UNREADABLE, 1);
    let failed = match parse::<Order>(&order).ok_or_else(unreadable)? {
        Order::End { data_of } => return Ok(Some(data_of)),
        Order::Rest => None,
        Order::Run(run) => {
            if let Some(folder) = run.folder.as_ref().filter(|folder| !folder.exists())
                && std::fs::create_dir_all(folder).is_ok()
            {
                *made = Some(folder.clone());
            }
            let relay = joined.ranks.relay(run.round, run.members.clone()).map_err(not_started);
            let ran = relay.and_then(|relay| {
                // Rank 0 has every message.
                let outputs = (Stdio::null(), Some(Stdio::null()));
                one(joined, &run, relay, outputs, stop)
            });
            ran.err().map(|failure| failure.to_string())
        }
    };
    joined.ranks.exchange("ran", to_bytes(&failed), |_| Ok(Vec::new()))?;
    Ok(None)
}

fn remove_data(folder: &Path, host: &str) {
    if let Ok(directory) = Directory::open(folder) {
        for line in leftover::remove_ours(&directory, OsStr::new(DATA), &Root::live()) {
            output::print_always(&format!("note: host {host}: {line}"));
        }
    }
}

impl Joined {
    /// On rank 0: starts runs on all ranks, then lets the others go with this process's exit code.
    pub(crate) fn lead(
        self,
        work: impl FnOnce(&Children<'_>) -> Result<u8, Failure>,
    ) -> Result<ExitCode, Failure> {
        self.ranks.rest(true);
        let (worked, data_of) = {
            let (round, data_of) = (Cell::new(0), RefCell::new(None));
            let children = Children { joined: Some(&self), round, data_of };
            (work(&children), children.data_of.take())
        };
        let code = match worked {
            Ok(code) => code,
            Err(failure) => return Ok(self.give_up(&failure)),
        };
        let end = self.ranks.exchange("order", Vec::new(), |all| {
            Ok(vec![to_bytes(&Order::End { data_of }); all.len()])
        });
        if let Err(ended) = end {
            return Ok(finish::send_home(self.ranks, &ended));
        }
        finish::release(self.ranks, code);
        Ok(ExitCode::from(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_spread_over_the_hosts() {
        assert_eq!(spread(["a", "a", "b", "b"].into_iter()), [0, 2, 1, 3], "by slot");
        assert_eq!(spread(["a", "b", "a", "b"].into_iter()), [0, 1, 2, 3], "by node");
        assert_eq!(spread(["a", "a", "a", "b"].into_iter()), [0, 3, 1, 2], "uneven");
        assert_eq!(spread(["a"].into_iter()), [0]);
    }
}
