//! Keys as a command line takes them.

use gpuio_record::JobPlan;

use super::keys::{ALL, Key, LoadKind, Status, find, keys, not_of};
use super::vocabulary::Vocabulary;

/// The verb that has the flags of another program.
const GDSIO: &str = "gdsio";

/// The keys that a command line takes: those of its verb that mean something in all of its loads.
#[derive(Debug, Clone)]
pub struct TakenKeys {
    verb: &'static str,
    /// For each load; none for a load of blocks.
    kinds: Vec<Option<LoadKind>>,
    /// Switches that all jobs have on.
    on: Vec<&'static str>,
}

impl TakenKeys {
    /// Those of this command, whose loads are these; of `bench` where it is none of gpuio's.
    pub fn of(command: &[String], jobs: &[JobPlan]) -> Self {
        let kind = |job: &JobPlan| {
            let feed = job.feed.as_ref().map(|_| LoadKind::Feed);
            let ranges = job.ranges.map(|_| LoadKind::Ranges);
            feed.or(ranges).or(job.replay.as_ref().map(|_| LoadKind::Replay))
        };
        let is_on = |key: &&Key| {
            let (Status::Supported(setter), Some((_, value))) = (key.status, key.prints) else {
                return false;
            };
            let has = |bare: &str| jobs.iter().all(|job| value(job).as_deref() == Some(bare));
            !jobs.is_empty() && setter.bare().is_some_and(has)
        };
        let on = keys().filter(is_on).map(|key| key.name).collect();
        Self { on, ..Self::of_kinds(command, jobs.iter().map(kind).collect()) }
    }

    /// The same by the kinds of the loads: none for a load of blocks.
    pub fn of_kinds(command: &[String], kinds: Vec<Option<LoadKind>>) -> Self {
        let mut names = command.iter().map(|word| word.rsplit('/').next().unwrap_or_default());
        let verb = names.find_map(|name| ALL.iter().chain(&[GDSIO]).find(|verb| **verb == name));
        Self { verb: verb.unwrap_or(&"bench"), kinds, on: Vec::new() }
    }

    /// A key, with a value behind a space or an equals sign where there is one, as it stands on the
    /// command line. Nothing where it is refused, or would change nothing.
    pub fn spelled(&self, key: &str) -> Option<String> {
        let (name, value) = key.split_at(key.find([' ', '=']).unwrap_or(key.len()));
        let row = find(name)?;
        let Status::Supported(setter) = row.status else { return None };
        if value.is_empty() && self.on.contains(&row.name) {
            return None;
        }
        let refused = |field: &str| {
            let feeds = self.kinds.iter().all(|kind| *kind == Some(LoadKind::Feed));
            self.kinds.iter().flatten().any(|kind| not_of(field, *kind))
                || field.starts_with("feed.") && !feeds
        };
        // Given files and calls begin and end at any byte, where O_DIRECT may not read.
        let given = |kind: &Option<LoadKind>| {
            matches!(kind, Some(LoadKind::Ranges | LoadKind::Replay)) && name == "direct"
        };
        if setter.fields().iter().any(|field| refused(field)) || self.kinds.iter().any(given) {
            return None;
        }
        let plain = row.name.replace('_', "-");
        if self.verb == GDSIO {
            let flag = format!("--{plain}{}", value.replacen(' ', "=", 1));
            return Some(Vocabulary::Gdsio.say(&flag));
        }
        let flags = row.flags.iter().filter(|flag| flag.means.is_none());
        let own = flags.clone().find(|flag| flag.verbs.contains(&self.verb)).map(|flag| {
            let long = row.long(flag);
            format!("--{}", if flag.aliases.contains(&&*plain) { &plain } else { &long })
        });
        Some(match (own, value.get(1..)) {
            (Some(flag), _) => format!("{flag}{value}"),
            (None, Some(value)) => format!("--set {name}={value}"),
            (None, None) => {
                let value = flags.map(|flag| flag.value).find(|value| !value.is_empty());
                let bare = setter.bare().unwrap_or("VALUE");
                format!("--set {name}={}", value.unwrap_or(bare))
            }
        })
    }
}
