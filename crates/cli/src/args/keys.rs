//! Flags that set keys of job files: rows of the table in `job`, so that a key that is added there
//! is a flag.
//!
//! The help has those flags that the table gives a verb, among flags of its own. The parser knows
//! more: a value behind a switch (`--direct=0`), spellings with underscores, and on `bench` and
//! `sweep` every key in every spelling of every dialect: `--nrfiles 4 --startdelay=1`.

use std::collections::{BTreeMap, BTreeSet};

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Id, ValueHint};
use gpuio_io::CATALOG;
use gpuio_job::plan::AUTO;
use gpuio_job::spec::{Flag, Key, Status, keys};

use super::one_of;

/// Verbs of which every key is a flag.
const LOADS: [&str; 2] = ["bench", "sweep"];

/// Flags of a verb that set no key and stand among those that do.
pub(crate) trait OwnFlags: Args {
    const VERB: &'static str;
    /// Headings of the help, in order.
    const HEADINGS: &'static [&'static str];
    /// Flags that do not stand behind all keys of their heading: each with the one before it, or
    /// none.
    const BEHIND: &'static [(&'static str, &'static str)] = &[];
}

/// Keys that flags set, and the verb's own flags.
#[derive(Debug)]
pub(crate) struct Keyed<Own> {
    pub(crate) own: Own,
    given: Vec<Given>,
    /// Names in clap of all arguments that are given.
    names: BTreeSet<String>,
}

/// A key that a flag sets.
#[derive(Debug)]
pub(crate) struct Given {
    /// The name in the table; of `--set` as it was written.
    pub(crate) key: String,
    /// The value as in a job file; empty for a bare flag.
    pub(crate) value: String,
    /// The flag with its dashes.
    pub(crate) flag: &'static str,
    /// The value on the command line.
    pub(crate) written: Option<String>,
    /// Whether it has to be one number.
    pub(crate) is_number: bool,
}

impl Given {
    /// Whether it chooses the place of the quick run, which it still is.
    pub(super) fn says_no_load(&self) -> bool {
        self.flag != SET && gpuio_job::spec::find(&self.key).is_some_and(|key| key.quick)
    }

    /// The word on a command line that says the same.
    pub(super) fn word(&self) -> String {
        match &self.written {
            Some(value) => format!("{}={value}", self.flag),
            None => self.flag.to_owned(),
        }
    }
}

impl<Own> Keyed<Own> {
    /// Keys that are set, in the order of the command line.
    pub(crate) fn keys(&self) -> &[Given] {
        &self.given
    }

    /// The same of one key by its own flags, without `--set`.
    pub(crate) fn flags_of(&self, key: &str) -> impl DoubleEndedIterator<Item = &Given> {
        self.given.iter().filter(move |given| given.key == key && given.flag != SET)
    }

    /// Flags that set no key and are given, in the order of the help.
    pub(crate) fn others(&self) -> Vec<Arg>
    where
        Own: OwnFlags,
    {
        let keys: BTreeSet<String> =
            flags(Own::VERB).map(|(key, flag)| id(&key.long(flag))).collect();
        let other = |arg: &&Arg| {
            let name = arg.get_id().as_str();
            self.names.contains(name)
                && !keys.contains(name)
                && !arg.is_positional()
                && !arg.is_global_set()
        };
        let parser = super::parser();
        let verb = parser.find_subcommand(Own::VERB);
        verb.into_iter().flat_map(Command::get_arguments).filter(other).cloned().collect()
    }

    /// The value of the last of these flags, as it was written; empty for a bare flag.
    pub(crate) fn written(&self, key: &str) -> Option<&str> {
        self.flags_of(key).next_back().map(|given| given.written.as_deref().unwrap_or_default())
    }

    /// Whether a switch was given, and not with 0.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        self.written(key).is_some_and(|value| value != "0")
    }
}

const SET: &str = "--set";

impl<Own: OwnFlags> Args for Keyed<Own> {
    fn augment_args(command: Command) -> Command {
        let own = Own::augment_args(Command::new("own"));
        let of = |heading: &str| {
            let keys = flags(Own::VERB).filter(|(_, flag)| flag.heading == heading);
            let own = own.get_arguments().filter(|arg| arg.get_help_heading() == Some(heading));
            let set = (heading == "Data").then(|| {
                let set = Arg::new("set").long("set").action(ArgAction::Append);
                set.value_name("KEY=VALUE").help("Set any key of the job-file format")
            });
            keys.map(|(key, flag)| shown(key, flag)).chain(own.cloned()).chain(set).collect()
        };
        // A value may begin with a hyphen, so that the key's parser reports `--size -1`.
        let command = command.allow_negative_numbers(true);
        Own::HEADINGS.iter().fold(command, |command, heading| {
            let args = ordered::<Own>(of(heading)).into_iter().map(|arg| arg.display_order(None));
            command.next_help_heading(*heading).args(args)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<Own: OwnFlags> FromArgMatches for Keyed<Own> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let said = |id: &&Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        let names = matches.ids().filter(said).map(ToString::to_string).collect();
        Ok(Self { own: Own::from_arg_matches(matches)?, given: given(Own::VERB, matches)?, names })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Keys with their flags in the help of a verb.
pub(super) fn flags(verb: &str) -> impl Iterator<Item = (&'static Key, &'static Flag)> {
    let of = move |flag: &&Flag| flag.verbs.contains(&verb);
    keys().flat_map(move |key| key.flags.iter().filter(of).map(move |flag| (key, flag)))
}

/// The name of an argument in clap.
fn id(long: &str) -> String {
    long.replace('-', "_")
}

/// The same of a flag that is not in the help.
fn hidden_id(key: &Key) -> String {
    format!("key.{}", key.name)
}

/// A flag as the help has it.
fn shown(key: &Key, flag: &Flag) -> Arg {
    let long = key.long(flag);
    let paths: Vec<&str> = CATALOG.paths.iter().map(|path| path.name).collect();
    let engines: Vec<&str> = CATALOG.engines.iter().map(|engine| engine.name).collect();
    let help = flag.help.replace("{paths}", &paths.join(", "));
    let help = help.replace("{engines}", &engines.join(", "));
    let arg = Arg::new(id(&long)).long(long).visible_aliases(flag.aliases).help(help);
    let arg = flag.conflict.into_iter().fold(arg, |arg, other| arg.conflicts_with(id(other)));
    if flag.value.is_empty() {
        return arg.action(ArgAction::SetTrue);
    }
    let adds = matches!(key.status, Status::Supported(setter) if setter.adds());
    let action = if adds { ArgAction::Append } else { ArgAction::Set };
    let arg = arg.value_name(flag.value).action(action);
    if flag.optional {
        return with_or_without(arg);
    }
    let words = match key.name {
        "path" => [paths, vec![AUTO, "all"]].concat(),
        "engine" => engines,
        _ => key.words(),
    };
    match (words.is_empty(), flag.value) {
        (false, _) => arg.value_parser(one_of(words)),
        (true, "DIR") => arg.value_hint(ValueHint::DirPath),
        (true, "FILE") => arg.value_hint(ValueHint::AnyPath),
        (true, _) => arg,
    }
}

/// A flag whose value may be left out.
fn with_or_without(arg: Arg) -> Arg {
    arg.num_args(0..=1).require_equals(true).default_missing_value("")
}

fn ordered<Own: OwnFlags>(mut args: Vec<Arg>) -> Vec<Arg> {
    let own = Own::BEHIND.iter().map(|(moved, other)| ((*moved).to_owned(), *other));
    let keys = flags(Own::VERB).filter_map(|(key, flag)| Some((id(&key.long(flag)), flag.behind?)));
    for (moved, other) in own.chain(keys) {
        let Some(at) = args.iter().position(|arg| *arg.get_id() == moved) else { continue };
        let arg = args.remove(at);
        let behind = args.iter().position(|arg| arg.get_id() == other);
        args.insert(behind.map_or(0, |at| at + 1), arg);
    }
    args
}

/// A verb as it is parsed: each of its flags may be repeated, and a switch may have a value.
pub(super) fn parsed(verb: Command) -> Command {
    let name = verb.get_name().to_owned();
    let rows: BTreeMap<String, (&Key, &Flag)> = flags(&name)
        .filter(|(_, flag)| flag.means.is_none())
        .map(|(key, flag)| (id(&key.long(flag)), (key, flag)))
        .collect();
    let every = LOADS.contains(&name.as_str());
    let listed = |arg: &Arg| rows.get(arg.get_id().as_str()).copied();
    let kept = |arg: &&Arg, name: &&str| listed(arg).is_none_or(|(key, _)| is_of(key, name));
    let names = verb.get_arguments().flat_map(|arg| {
        spellings(arg).into_iter().filter(move |name| kept(&arg, name)).map(str::to_owned)
    });
    let mut taken: BTreeSet<String> = names.collect();
    let mut free = |names: &mut dyn Iterator<Item = String>| -> Vec<String> {
        let forms = names.flat_map(|name| [name.replace('_', "-"), name.replace('-', "_")]);
        forms.filter(|form| taken.insert(form.clone())).collect()
    };
    let verb = verb.mut_args(|mut arg| {
        let row = rows.get(arg.get_id().as_str());
        if let Some((key, flag)) = row {
            arg = arg.action(ArgAction::Append);
            if every {
                // Another tool's word stays that word, which says whose defaults are meant.
                let own = flag.aliases.iter().filter(|alias| is_of(key, alias));
                arg = arg.visible_alias(Resettable::Reset).visible_aliases(own);
            }
            if flag.is_switch() {
                // Switches exclude one another where they are bare: see `given`.
                arg = with_or_without(arg.conflicts_with(Resettable::Reset));
            }
        }
        if !every {
            return arg;
        }
        let long = arg.get_long().map(str::to_owned);
        let of_key = row.iter().flat_map(|(key, _)| key.spellings());
        let more = free(&mut long.into_iter().chain(of_key.map(str::to_owned)));
        arg.aliases(more)
    });
    if !every {
        return verb;
    }
    let listed = |key: &Key| key.flags.iter().any(|flag| flag.verbs.contains(&name.as_str()));
    let others = keys().filter(|key| !listed(key)).filter_map(|key| {
        let mut names = free(&mut key.spellings().map(str::to_owned)).into_iter();
        let arg = Arg::new(hidden_id(key)).long(names.next()?).aliases(names).hide(true);
        let arg = arg.value_name("VALUE").action(ArgAction::Append);
        Some(match key.status {
            Status::Supported(setter) if setter.bare().is_none() => arg,
            _ => with_or_without(arg),
        })
    });
    let others: Vec<Arg> = others.collect();
    verb.args(others)
}

/// Whether this name of a flag is not that of another key.
fn is_of(key: &Key, name: &str) -> bool {
    gpuio_job::spec::find(name).is_none_or(|other| other.name == key.name)
}

fn spellings(arg: &Arg) -> Vec<&str> {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long().into_iter().chain(aliases).collect()
}

/// Whether a flag says what is to be run, not only where.
pub(crate) fn asks_for_load(verb: &str, matches: &ArgMatches) -> bool {
    given(verb, matches).is_ok_and(|all| !all.iter().all(Given::says_no_load))
}

/// Keys that the flags of a verb set, in the order of the command line.
fn given(verb: &str, matches: &ArgMatches) -> Result<Vec<Given>, clap::Error> {
    let listed = flags(verb).map(|(key, flag)| {
        let long = key.long(flag);
        (id(&long), key.name, Some(flag), long)
    });
    let hidden = keys().map(|key| (hidden_id(key), key.name, None, key.name.replace('_', "-")));
    let set = std::iter::once(("set".to_owned(), "", None, "set".to_owned()));
    let mut all: Vec<(usize, Option<&Flag>, Given)> = Vec::new();
    for (id, key, flag, long) in listed.chain(hidden).chain(set) {
        let known = matches.try_contains_id(&id).unwrap_or(false);
        if !known || matches.value_source(&id) != Some(ValueSource::CommandLine) {
            continue;
        }
        // The origin of a setting is a text of the program: as many as a command line has flags.
        let spelled: &'static str = format!("--{long}").leak();
        let values = matches.get_raw(&id).into_iter().flatten();
        for (at, value) in matches.indices_of(&id).into_iter().flatten().zip(values) {
            all.push((at, flag, one(key, flag, spelled, &value.to_string_lossy())));
        }
    }
    all.sort_by_key(|(at, ..)| *at);
    refuse_opposites(&all)?;
    Ok(all.into_iter().map(|(.., given)| given).collect())
}

fn one(key: &str, flag: Option<&Flag>, spelled: &'static str, text: &str) -> Given {
    let means = flag.and_then(|flag| flag.means);
    let written = (means.is_none() && !text.is_empty()).then(|| text.to_owned());
    let (key, value) = match flag {
        None if key.is_empty() => {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            (key.trim(), value.trim())
        }
        _ => (key, means.unwrap_or(text)),
    };
    let value = match flag.is_some_and(Flag::is_name) {
        true => gpuio_job::spec::one_name(value),
        false => value.to_owned(),
    };
    Given {
        key: key.to_owned(),
        value,
        flag: spelled,
        written,
        is_number: flag.is_some_and(Flag::is_number),
    }
}

/// Neither flag of `--direct --buffered` is more right; with values, fio's way, they may say the
/// same.
fn refuse_opposites(all: &[(usize, Option<&Flag>, Given)]) -> Result<(), clap::Error> {
    let bare = |flag: &str| all.iter().any(|(.., it)| it.flag == flag && it.written.is_none());
    for (_, flag, it) in all {
        let other = flag.filter(|flag| flag.is_switch()).and_then(|flag| flag.conflict);
        let other = other.map(|other| format!("--{other}"));
        if let Some(other) = other.filter(|other| bare(it.flag) && bare(other)) {
            let said = format!("the argument '{}' cannot be used with '{other}'\n", it.flag);
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, said));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Verb, parse};

    /// The settings of a command line, or the first line of its error.
    fn said(line: &str) -> String {
        let work = match parse(line.split(' ')).map(|cli| cli.verb) {
            Ok(Verb::Bench(bench)) => bench.work,
            Ok(Verb::Sweep(sweep)) => sweep.work,
            Ok(other) => panic!("{other:?}"),
            Err(error) => return error.to_string().lines().next().unwrap().to_owned(),
        };
        let of = |it: &Given| format!("{} {}={}", it.flag, it.key, it.value);
        work.keys().iter().map(of).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn keys_are_flags_in_every_spelling() {
        for (line, expected) in [
            ("bench --numjobs=4 --iodepth 32 a.ini", "--numjobs numjobs=4, --iodepth iodepth=32"),
            ("bench --nrfiles 3 --nr-files=4 a.ini", "--nrfiles nrfiles=3, --nrfiles nrfiles=4"),
            ("bench --direct=0 --direct a.ini", "--direct direct=0, --direct direct="),
            ("bench --group_reporting x", "--group-reporting group_reporting="),
            ("bench --io_size=4m --dry_run", "--io-size io_size=4m"),
            ("bench --name=a --verify=full", "--name name=a, --verify verify=full"),
            ("bench --filename a:b --file=c", r"--filename filename=a\:b, --filename filename=c"),
            (
                "bench --fan_out --ss iops:2%",
                "--fan-out path=fan-out, --steady steadystate=iops:2%",
            ),
            (
                "bench --runtime 1 --set a=b --runtime 3",
                "--runtime runtime=1, --set a=b, --runtime runtime=3",
            ),
            ("sweep --set numjobs=1 -- --iodepth", "--set numjobs=1"),
            ("bench --size -1 --overwrite", "--size size=-1"),
            ("bench --direct=1 --buffered=0", "--direct direct=1, --buffered buffered=0"),
            (
                "bench --direct --buffered",
                "error: the argument '--buffered' cannot be used with '--direct'",
            ),
            (
                "bench --bs 4k --bssplit 4k/100",
                "error: the argument '--bs <SIZE>' cannot be used with '--bssplit <SPLIT>'",
            ),
            ("check --numjobs=4", "error: unexpected argument '--numjobs' found"),
            ("workload x --nrfiles 4", "error: unexpected argument '--nrfiles' found"),
        ] {
            assert_eq!(said(&format!("gpuio {line}")), expected, "{line}");
        }
    }

    #[test]
    fn every_key_is_a_flag() {
        let parser = crate::args::parser();
        let bench = parser.find_subcommand("bench").unwrap();
        let known: BTreeSet<&str> = bench.get_arguments().flat_map(spellings).collect();
        for name in keys().flat_map(Key::spellings) {
            assert!(known.contains(name), "--{name}");
            assert!(known.contains(name.replace('_', "-").as_str()), "--{name}");
        }
    }
}
