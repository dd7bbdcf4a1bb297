//! Keys of job files as flags of `bench` and `sweep`, in every spelling of every dialect:
//! `--numjobs=4 --iodepth 32 --ioengine=libaio --direct=1` are `--set numjobs=4` and so on. Flags
//! that clap knows keep their meaning.

use std::ffi::OsString;

use clap::Command;
use gpuio_spec::{Key, Status};

/// Verbs whose flags stand for keys.
const VERBS: [&str; 2] = ["bench", "sweep"];

/// The command line with such flags replaced.
pub(crate) fn replaced(words: &[OsString], command: &Command) -> Vec<OsString> {
    let verb = words.get(1).and_then(|word| word.to_str()).filter(|word| VERBS.contains(word));
    let Some(verb) = verb.and_then(|verb| command.find_subcommand(verb)) else {
        return words.to_vec();
    };
    let (before, rest) = words.split_at(2);
    let mut out = before.to_vec();
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            out.push(word.clone());
            out.extend(rest.cloned());
            break;
        }
        match word.to_str().and_then(|text| text.strip_prefix("--")) {
            Some(long) => flag(verb, long, word, &mut rest, &mut out),
            None => out.push(word.clone()),
        }
    }
    out
}

/// Appends one long flag, replaced if it is a key.
fn flag<'a>(
    verb: &Command,
    long: &str,
    word: &OsString,
    rest: &mut impl Iterator<Item = &'a OsString>,
    out: &mut Vec<OsString>,
) {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let set = |key: &Key, value: &str, out: &mut Vec<OsString>| {
        out.push("--set".into());
        out.push(format!("{}={value}", key.name).into());
    };
    let hyphens = name.replace('_', "-");
    match (takes_value(verb, name).or(takes_value(verb, &hyphens)), gpuio_spec::find(name), value) {
        // A switch of ours with a value: the key has one.
        (Some(false), Some(key), Some(value)) => set(key, value, out),
        (Some(_), _, None) => out.push(format!("--{hyphens}").into()),
        (Some(_), _, Some(value)) => out.push(format!("--{hyphens}={value}").into()),
        (None, Some(key), Some(value)) => set(key, value, out),
        (None, Some(key), None) if needs_value(key) => {
            let value = rest.next().map(|value| value.to_string_lossy()).unwrap_or_default();
            set(key, &value, out);
        }
        (None, Some(key), None) => {
            out.push("--set".into());
            out.push(key.name.into());
        }
        (None, None, _) => out.push(word.clone()),
    }
}

/// Whether the flag of this name takes a value; nothing where there is no such flag.
fn takes_value(verb: &Command, name: &str) -> Option<bool> {
    let has = |arg: &&clap::Arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(name) || aliases.contains(&name)
    };
    let arg = verb.get_arguments().find(has)?;
    Some(arg.get_action().takes_values())
}

fn needs_value(key: &Key) -> bool {
    match key.status {
        Status::Supported(setter) => setter.bare().is_none(),
        Status::NoEffect { .. } | Status::Known { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    fn of(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let out = replaced(&words, &Cli::command());
        out.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn fios_spellings_are_keys() {
        for (line, expected) in [
            ("gpuio bench --numjobs=4", "gpuio bench --numjobs=4"),
            ("gpuio bench --iodepth 32 a.ini", "gpuio bench --iodepth 32 a.ini"),
            ("gpuio bench --nrfiles 3 a.ini", "gpuio bench --set nrfiles=3 a.ini"),
            ("gpuio bench --direct=0 --direct", "gpuio bench --set direct=0 --direct"),
            ("gpuio bench --group_reporting x", "gpuio bench --set group_reporting x"),
            ("gpuio bench --io_size=4m --rw_x", "gpuio bench --io-size=4m --rw_x"),
            ("gpuio bench --name=a --verify=full", "gpuio bench --set name=a --verify=full"),
            (
                "gpuio sweep --set numjobs=1 -- --iodepth",
                "gpuio sweep --set numjobs=1 -- --iodepth",
            ),
            ("gpuio check --numjobs=4", "gpuio check --numjobs=4"),
        ] {
            assert_eq!(of(line), expected);
        }
    }
}
