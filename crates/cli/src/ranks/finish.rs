//! The two ends of a run on several ranks: all plans agreed, all records merged.

use std::collections::BTreeMap;
use std::process::ExitCode;

use gpuio_base::units::ShellLine;
use gpuio_load::ranks::{ClockOffset, Collected, Ended, Left, Ranks};
use gpuio_machine::flow::Portion;
use gpuio_record::merge::{Merger, RankFacts, Started};
use gpuio_record::{Plan, RankGroup, Record, TimeSpan};
use gpuio_report::format::json;

use super::placement::{self, Placed, Share};
use super::{Joined, failure_of, parse, to_bytes};
use crate::failure::Failure;
use crate::journal::Journal;
use crate::outcome::{self, Kind};
use crate::terminal;

/// The facts known after the run besides the record: on rank 0 those learned of all.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The load of this rank's jobs on its machine's parts, for the expectation of all ranks.
    pub(crate) portions: Vec<Portion>,
    pub(super) offsets: Vec<ClockOffset>,
    pub(super) groups: Vec<RankGroup>,
    pub(super) times: Vec<BTreeMap<String, TimeSpan>>,
}

/// Rank 0's last step with the merged record: prints and saves it.
pub(crate) type Write<'a> = Box<dyn FnOnce(&Record) -> Result<(), Failure> + 'a>;

/// Leaves after the job was ended before there was anything to collect: rank 0 says why and lets
/// all go. It says so first: a launcher ends all ranks as soon as one ends with an exit code.
pub(super) fn send_home(ranks: Ranks, ended: &Ended) -> ExitCode {
    let code = ended.1;
    if !ranks.reported() {
        crate::output::print_message(&format!("error: {}", ended.0));
    }
    if ranks.rank() == 0 {
        ranks.collect(&mut |_, _| {});
        ranks.release(Left { code, saved: false });
    } else {
        // The exit code is the same whether rank 0 answers or not.
        let _ = ranks.deliver(Err("it was sent back".to_owned()), "");
    }
    ranks.leave(code);
    ExitCode::from(code)
}

/// Lets all ranks go, which have no results.
pub(super) fn release(ranks: Ranks, code: u8) {
    ranks.collect(&mut |_, _| {});
    ranks.release(Left { code, saved: false });
    ranks.leave(code);
}

impl Joined {
    /// Ends the job on all ranks because this one can't take part.
    pub(crate) fn give_up(self, failure: &Failure) -> ExitCode {
        let ended = self.ranks.fail(&failure.to_string(), failure.code());
        send_home(self.ranks, &ended)
    }

    /// Compares the plans of all ranks; the table of what each takes, for rank 0.
    pub(crate) fn agree(
        &self,
        plan: &Plan,
        cpus: Vec<u32>,
        share: Share,
    ) -> Result<String, Failure> {
        let own = Placed::of(plan, &self.place, &self.own().kernel, cpus);
        let mut table = String::new();
        let agreed = self.ranks.exchange("plan", to_bytes(&own), |all| {
            let all: Option<Vec<Placed>> = all.iter().map(|one| parse(one)).collect();
            let all = all.ok_or_else(|| Ended(super::UNREADABLE.to_owned(), 1))?;
            placement::agree(&all, share).map_err(|why| Ended(why, 2))?;
            table = placement::table(&all, terminal::width());
            self.nics.get_or_init(|| all.iter().map(|one| one.nics().to_vec()).collect());
            Ok(vec![Vec::new(); all.len()])
        });
        agreed.map(|_| table).map_err(|ended| failure_of(&ended))
    }

    /// Leaves without having run: after `--dry-run` and `check`.
    pub(crate) fn leave(self, code: u8) {
        if self.is_first() {
            return release(self.ranks, code);
        }
        let _ = self.ranks.deliver(Err("it ran no load".to_owned()), "");
        self.ranks.leave(code);
    }

    /// After the run: this rank's record is saved as its journal, then rank 0 merges all and
    /// writes the merged one; `write` is given on rank 0.
    pub(crate) fn finish(
        self,
        ran: Result<(Record, Learned), Failure>,
        journal: Journal,
        write: Option<Write<'_>>,
    ) -> Result<ExitCode, Failure> {
        match ran {
            // Sent back before the first start: there is nothing to save.
            Ok((record, _)) if record.jobs.is_empty() && self.ranks.ended().is_some() => {
                let ended = self.ranks.ended().unwrap_or(Ended(String::new(), 1));
                Ok(send_home(self.ranks, &ended))
            }
            Ok((record, learned)) => {
                let facts = self.facts(&learned);
                let saved = journal.save(&record);
                match write {
                    Some(write) => self.merge(record, learned, facts, (journal, saved), write),
                    None => Ok(self.deliver(&record, &learned.portions, (journal, saved))),
                }
            }
            Err(failure) => {
                let known = self.ranks.ended();
                let ended =
                    known.unwrap_or_else(|| self.ranks.fail(&failure.to_string(), failure.code()));
                Ok(send_home(self.ranks, &ended))
            }
        }
    }

    /// On other ranks than 0.
    fn deliver(
        self,
        record: &Record,
        portions: &[Portion],
        (journal, saved): (Journal, Result<std::path::PathBuf, String>),
    ) -> ExitCode {
        // The portions in one line, then the record.
        let portions = serde_json::to_string(portions).unwrap_or_default();
        let text = format!("{portions}\n{}", json::render(record)).into_bytes();
        let at = saved.map(|path| path.display().to_string()).unwrap_or_default();
        let left = self.ranks.deliver(Ok(text), &at);
        if left.as_ref().is_ok_and(|left| left.saved) {
            journal.remove();
        }
        let code = left.map_or_else(|ended| ended.1, |left| left.code);
        self.ranks.leave(code);
        ExitCode::from(code)
    }

    /// On rank 0.
    fn merge(
        self,
        record: Record,
        learned: Learned,
        facts: Vec<RankFacts>,
        (journal, saved): (Journal, Result<std::path::PathBuf, String>),
        write: Write<'_>,
    ) -> Result<ExitCode, Failure> {
        let mut whole = true;
        let mut merger = Merger::new(record, facts);
        let host = |rank: u32| self.hellos.get(rank as usize).map(|hello| hello.host.clone());
        let mut portions = vec![(host(0).unwrap_or_default(), learned.portions)];
        self.ranks.collect(&mut |rank, collected| match collected {
            Collected::Result(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let (first, text) = text.split_once('\n').unwrap_or(("", &text));
                if let Some((host, own)) = host(rank).zip(serde_json::from_str(first).ok()) {
                    portions.push((host, own));
                }
                match json::parse(text) {
                    Ok(record) => merger.add(rank, &record),
                    Err(error) => {
                        whole = false;
                        merger.lost(rank, &format!("its record can't be read: {error}"));
                    }
                }
            }
            Collected::None(why) | Collected::Lost(why) => {
                whole = false;
                merger.lost(rank, &why);
            }
        });
        let ended = self.ranks.ended();
        let started =
            Started { launcher: self.launcher.clone(), library: self.ranks.library().to_owned() };
        let mut places = self.ranks.saved();
        places.push((0, saved.as_ref().map(|p| p.display().to_string()).unwrap_or_default()));
        places.sort();
        let mut merged =
            merger.finish(started, learned.groups, ended.as_ref().map(|ended| ended.0.clone()));
        // Without one of the ranks the sum would be of others than the results.
        if whole && portions.len() == self.ranks.size() as usize {
            gpuio_machine::flow::set_expected(&mut merged, &portions);
        }
        merged.plan_text = format!(
            "# The plan of rank 0 of {}. Other ranks have their own paths and GPUs.\n{}",
            self.ranks.size(),
            merged.plan_text
        );
        let kept = ended.is_some() || !whole;
        if kept && let Some(ranks) = &mut merged.ranks {
            for row in &mut ranks.rows {
                let at = places.iter().find(|(rank, _)| *rank == row.rank).map(|(_, at)| at);
                row.saved = at.filter(|at| !at.is_empty()).cloned();
            }
        }
        let written = write(&merged);
        let said: &[Kind] = if self.ranks.reported() { &[Kind::Error] } else { &[] };
        let found = outcome::report(&merged, said);
        let code = written.as_ref().map_or_else(Failure::code, |()| found);
        let saved = written.is_ok() && !kept;
        if kept {
            report_kept(&places);
        }
        self.ranks.release(Left { code, saved });
        if saved {
            journal.remove();
        }
        self.ranks.leave(code);
        written.map(|()| ExitCode::from(code))
    }

    fn facts(&self, learned: &Learned) -> Vec<RankFacts> {
        let each = self.hellos.iter().enumerate();
        each.map(|(rank, hello)| {
            let before = self.hellos.iter().take(rank).filter(|one| one.host == hello.host).count();
            let offset = learned.offsets.get(rank).copied().unwrap_or_default();
            RankFacts {
                host: hello.host.clone(),
                local_rank: u32::try_from(before).unwrap_or(u32::MAX),
                pid: hello.pid,
                clock_offset_ns: offset.offset_ns,
                clock_bound_ns: offset.bound_ns,
                nics: self.nics.get().and_then(|all| all.get(rank).cloned()).unwrap_or_default(),
                saved: None,
                times: learned.times.get(rank).cloned().unwrap_or_default(),
            }
        })
        .collect()
    }
}

/// Where each rank's own results lie, after a run that did not end well.
fn report_kept(places: &[(u32, String)]) {
    let known: Vec<&(u32, String)> = places.iter().filter(|(_, at)| !at.is_empty()).collect();
    let Some((_, first)) = known.first() else { return };
    let ranks: Vec<u32> = known.iter().map(|(rank, _)| *rank).collect();
    let show = ShellLine::new("gpuio show").file(first);
    message!(
        "note: the own results of {} are kept on their hosts; to see them: {show} (the merged \
         record names each)",
        placement::named(&ranks)
    );
}
