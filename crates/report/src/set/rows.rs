//! The rows of a set: one per record, job and direction.

use std::ops::Deref;

use gpuio_record::{EndedHow, Side, Towards, WarningKind};

use super::{Member, Set, chosen};
use crate::number;
use crate::others;
use crate::standing;
use crate::workload::{jobs, load_word, paced, rw_of, sizes_short};

/// One direction of a job of a record.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    /// Index into [`Set::members`].
    pub(super) nth: usize,
    /// Index of the job in its record.
    pub(super) job: usize,
    pub(super) member: &'a Member,
    side: Side<'a>,
}

impl<'a> Deref for Row<'a> {
    type Target = Side<'a>;

    fn deref(&self) -> &Side<'a> {
        &self.side
    }
}

impl Row<'_> {
    /// How many ranks ran, where a launcher started them.
    fn ranks(&self) -> Option<u32> {
        self.record.ranks.as_ref().map(|all| all.ranks)
    }

    /// The load in few words: `randread 4K, 2×32`.
    pub(super) fn load(&self) -> String {
        let rw = rw_of(self.plan, self.direction);
        let block = sizes_short(self.plan);
        let ranks = self.ranks().map_or_else(String::new, |ranks| format!("{ranks}×"));
        format!("{rw} {block}, {ranks}{}×{}", self.plan.threads, self.plan.depth)
    }

    /// The same in words, with who chose the depth: `randread 4K, 2 threads at depth 32`.
    pub(super) fn load_in_words(&self) -> String {
        self.with_words(&rw_of(self.plan, self.direction))
    }

    /// The same of the whole job, both directions of a mix.
    pub(super) fn whole_load_in_words(&self) -> String {
        self.with_words(&load_word(self.plan))
    }

    fn with_words(&self, rw: &str) -> String {
        let block = sizes_short(self.plan);
        let threads = match self.plan.threads {
            1 => "1 thread".to_owned(),
            many => format!("{many} threads"),
        };
        let ours = if chosen::depth_is_ours(self) { " (automatic)" } else { "" };
        let ranks = match self.ranks() {
            Some(1) => "1 rank of ".to_owned(),
            Some(many) => format!("{many} ranks of "),
            None => String::new(),
        };
        let paced = paced(self.plan).map(|rates| format!(", {rates}, as requested"));
        let paced = paced.unwrap_or_default();
        format!("{rw} {block}, {ranks}{threads} at depth {}{ours}{paced}", self.plan.depth)
    }

    /// Whether it is the second direction of a mix, whose first stands for the job.
    pub(super) fn is_second(&self) -> bool {
        self.plan.directions().first() != Some(&self.direction)
    }

    /// Bytes and I/Os per second of the whole job, both directions of a mix.
    pub(super) fn whole_rates(&self) -> (f64, f64) {
        let of = |direction: &Towards| direction.of(self.result);
        let all = self.plan.directions().iter().map(of);
        all.fold((0.0, 0.0), |(bytes, ios), side| (bytes + side.bytes_per_s, ios + side.iops))
    }

    /// Why its rate is none of the storage's, where that is known: a path that is not proved is
    /// said as such.
    pub(super) fn unmeasured(&self) -> Option<String> {
        standing::known_unmeasured(self.record, self.plan, self.result)
    }

    /// In a few words why its figures are not those of a whole run alone; empty where they are.
    pub(super) fn disturbed(&self) -> String {
        let mut words = Vec::new();
        if self.result.ended != EndedHow::Complete {
            words.push("partial".to_owned());
        }
        if standing::is_too_short(self.record, self.plan) {
            words.push("too short".to_owned());
        }
        if self.is_warned(|kind| matches!(kind, WarningKind::Stopped { .. })) {
            words.push("stood still".to_owned());
        }
        let others = others::of(self.record, self.plan, self.result);
        words.extend(others.map(|others| format!("others: {}", others.short())));
        words.join(", ")
    }

    fn is_warned(&self, of: impl Fn(&WarningKind) -> bool) -> bool {
        self.record.warnings.iter().any(|warning| {
            let own = warning.job.as_ref().is_none_or(|name| *name == self.plan.name);
            own && of(&warning.kind)
        })
    }

    /// Whether it did not keep its requested rate.
    pub(super) fn is_behind(&self) -> bool {
        self.is_warned(|kind| {
            matches!(kind, WarningKind::RateNotReached { .. } | WarningKind::NeverStarted { .. })
        })
    }

    /// The marks behind its rate.
    pub(super) fn marks(&self) -> String {
        standing::marks(self.record, self.plan, self.result)
    }

    pub(super) fn rate(&self) -> String {
        number::throughput(self.figures().bytes_per_s)
    }
}

/// All rows, in the order of members, jobs and directions.
pub(super) fn rows(set: &Set) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (nth, member) in set.members.iter().enumerate() {
        for (job, (plan, result)) in jobs(&member.record).enumerate() {
            for direction in plan.directions() {
                let side = Side { record: &member.record, plan, result, direction: *direction };
                rows.push(Row { nth, job, member, side });
            }
        }
    }
    rows
}

/// Whether any record is of the software GPU.
pub(super) fn software(set: &Set) -> bool {
    set.members.iter().any(|member| member.record.plan.software_gpu)
}
