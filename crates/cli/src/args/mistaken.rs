//! Command lines that were meant for another verb, another flag or another tool, and values that
//! were taken for files.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use gpuio_base::nearest::nearest;
use gpuio_base::units::ShellLine;

use super::gdsio::{Taken, taken};

/// Suggests the words to type instead, where `-f` names a job file.
pub(crate) fn for_fio(words: &[OsString], error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let rest = words.get(2..).filter(|_| words.get(1).is_some_and(|verb| verb == "bench"))?;
    if let [flag, file] = rest
        && flag == "-f"
        && Path::new(file).is_file()
    {
        let bench = ShellLine::new("gpuio bench").file(file);
        return Some(format!("error: a job file needs no flag:\n  {bench}"));
    }
    None
}

/// The words with two dashes for one before a key of the table, as fio takes its own: `-rw=read`.
/// Flags of one character stay as they are.
pub(crate) fn two_dashes(words: &[OsString]) -> Vec<OsString> {
    let loads = words.get(1).is_some_and(|verb| verb == "bench" || verb == "sweep");
    let fixed = |word: &OsString| {
        let key = word.to_str()?.strip_prefix('-')?.split('=').next()?;
        let known = key.len() > 1 && gpuio_job::spec::find(key).is_some();
        known.then(|| OsString::from(format!("-{}", word.display())))
    };
    let taken = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let each = words.iter().enumerate().map(|(at, word)| match loads && at < taken {
        true => fixed(word).unwrap_or_else(|| word.clone()),
        false => word.clone(),
    });
    each.collect()
}

/// Suggests the words to type instead, where the flag that clap refused is one of gdsio's and
/// `gpuio gdsio` would take the whole line.
pub(crate) fn for_gdsio(words: &[OsString], error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    if !gpuio_job::spec::is_gdsio_flag(flag) {
        return None;
    }
    let rest = match words.get(1)?.to_str()? {
        "bench" => words.get(2..)?,
        verb if verb.starts_with('-') => words.get(1..)?,
        _ => return None,
    };
    // `fio -f a.fio`: a job file needs no flag.
    let of_fio = |word: &&OsString| Path::new(word).extension().is_some_and(|end| end == "fio");
    if let Some(file) = rest.iter().find(of_fio).filter(|_| flag == "-f") {
        return Some(format!(
            "error: a job file of fio's is named without a flag:\n  {}",
            ShellLine::new("gpuio bench").file(file)
        ));
    }
    let words = rest.iter().map(|word| word.to_str().map(str::to_owned));
    let line = ShellLine::new("gpuio gdsio").words(rest);
    let line = match taken(&words.collect::<Option<Vec<String>>>()?) {
        Taken::As => line,
        Taken::WithTarget => line.word("-D").word("DIRECTORY"),
        Taken::No => return None,
    };
    Some(format!(
        "error: '{flag}' is a flag of gdsio. Its flags go to the verb of that name:\n  {line}"
    ))
}

/// Suggests the words to type instead, where a word that is no file follows a flag which takes its
/// value only after an equals sign: `--verify off` names a job file; or where a number follows a
/// flag without a value whose plural takes one: `--thread 4`.
pub(crate) fn value_apart(words: &[OsString], verb: &Command) -> Option<String> {
    let flags = words.iter().zip(words.iter().skip(1)).take_while(|(word, _)| *word != "--");
    for (flag, value) in flags {
        let Some(long) = flag.to_str().and_then(|flag| flag.strip_prefix("--")) else { continue };
        let spelled = long.replace('_', "-");
        let is_it = |arg: &clap::Arg| {
            let names = arg.get_long().into_iter().chain(arg.get_all_aliases().unwrap_or_default());
            names.map(|name| name.replace('_', "-")).any(|name| name == spelled)
        };
        let apart = |arg: &clap::Arg| arg.is_require_equals_set() && is_it(arg);
        let shown = value.to_string_lossy();
        let takes = |name: &str| {
            let own = |arg: &&clap::Arg| arg.get_long() == Some(name);
            let shown = verb.get_arguments().find(own).filter(|arg| !arg.is_hide_set());
            shown.is_some_and(|arg| arg.get_action().takes_values())
        };
        let plural = format!("{long}s");
        if shown.bytes().all(|c| c.is_ascii_digit())
            && takes(&plural)
            && !takes(long)
            && !Path::new(value).exists()
        {
            return Some(format!("--{long} takes no number: --{plural} {shown} does"));
        }
        if verb.get_arguments().any(apart) && !shown.starts_with('-') && !Path::new(value).exists()
        {
            return Some(format!(
                "there is no file '{shown}'. A value of --{long} comes after an equals sign: \
                 --{long}={shown}"
            ));
        }
    }
    behind_a_flag(words, verb)
}

/// A word that was taken for a job file, is none, and stands behind a flag that takes no value or
/// has its value: `--direct 0`, `--size 64 M`.
fn behind_a_flag(words: &[OsString], verb: &Command) -> Option<String> {
    let takes_file = |arg: &clap::Arg| arg.is_positional() && arg.get_id() == "job_file";
    if !verb.get_arguments().any(takes_file) {
        return None;
    }
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let end = texts.iter().position(|word| word == "--").unwrap_or(texts.len());
    // How many words are the flag's own, itself included; none where it is no flag of this verb.
    let own_words = |at: usize| {
        let long = texts.get(at)?.strip_prefix("--")?;
        let name = long.split('=').next()?;
        let arg = verb.get_arguments().find(|arg| arg.get_long() == Some(name))?;
        let apart = arg.get_action().takes_values() && !arg.is_require_equals_set();
        Some(if apart && !long.contains('=') { 2 } else { 1 })
    };
    let mut at = 2;
    while at < end {
        let Some(own) = own_words(at) else {
            at += 1;
            continue;
        };
        let (flag, word) = (texts[at].as_str(), texts.get(at + own).filter(|_| at + own < end));
        // A word that looks like a file's name may be a mistyped one.
        let is_name = |word: &str| word.contains('/') || Path::new(word).extension().is_some();
        let missing =
            |word: &&String| !word.starts_with('-') && !is_name(word) && !Path::new(*word).exists();
        let Some(word) = word.filter(missing) else {
            at += own;
            continue;
        };
        let value = texts[at..at + own].join(" ");
        let is_number = value.ends_with(|c: char| c.is_ascii_digit());
        let is_unit = is_number && word.len() <= 4 && word.bytes().all(|c| c.is_ascii_alphabetic());
        let long = flag.trim_start_matches("--");
        let why = match own {
            _ if is_unit => format!("A unit follows its number without a blank: {value}{word}"),
            1 if !flag.contains('=') => match gpuio_job::spec::find(long) {
                Some(key) => {
                    format!("{flag} takes no value; --set {}={word} gives it one", key.name)
                }
                None => format!("{flag} takes no value"),
            },
            _ => format!("It stands behind {value}, which has its value"),
        };
        return Some(format!("there is no job file '{word}'. {why}"));
    }
    None
}

/// Flags of other tools and of habit; the flag that says it here, and a value of it. A key of a job
/// file also goes to `--set`.
const OTHER_NAMES: &[(&[&str], &str, &str)] = &[
    (&["--once", "-1"], "count", "1"),
    (&["-D", "--dir"], "directory", "DIR"),
    (&["-t"], "threads", "N"),
    (&["-b"], "bs", "4k"),
    (&["-s"], "size", "1G"),
    (&["-f"], "filename", "FILE"),
    (&["-r"], "rw", "read"),
    (&["-V"], "verify", ""),
    (&["--samples", "--iterations", "-n"], "count", "N"),
    (&["--delay", "--watch", "-d", "-i"], "interval", "1s"),
    // Verbs with --interval, above, have this flag for it.
    (&["-d"], "directory", "DIR"),
    (&["--repeat", "--runs", "--iterations", "--loops", "--repetitions"], "repeat", "N"),
    (&["--time", "--duration", "--seconds", "--timeout", "-T"], "runtime", "10s"),
    (&["--warmup", "--warm-up", "--ramp-time"], "ramp", "5s"),
    (&["--queue-depth", "--qd", "--queuedepth"], "depth", "N"),
    (&["--jobs", "--workers", "--processes"], "threads", "N"),
    (&["--minimal", "--terse-version", "--append-terse"], "format", "csv"),
    (&["--csvfile", "--resfile", "--jsonfile"], "output", "FILE"),
    (&["--parse-only", "--showcmd", "--dryrun"], "dry-run", ""),
    (&["--eta-newline", "--eta-interval"], "eta", "newline"),
    (&["--nolive"], "eta", "never"),
    (&["--eta", "--eta-newline", "--eta-interval", "--nolive"], "quiet", ""),
    (&["--bandwidth-log"], "write_bw_log", "NAME"),
    (&["--read"], "rw", "read"),
    (&["--write"], "rw", "write"),
    (&["--rand"], "rw", "randread"),
    (&["--rwmixpct"], "rwmixread", "70"),
    (&["--gpuids"], "gpu", "0,1"),
    (&["--cufile", "--gds"], "path", "gds"),
    (&["--timelimit"], "runtime", "10s"),
    (&["--dropcache"], "invalidate", "1"),
    (&["--delfiles"], "unlink", "1"),
    (&["--limitread", "--limitwrite"], "rate", "SIZE"),
    (&["--allelapsed", "--lat", "--latpercent", "--lathisto"], "details", ""),
];

/// The flag of a verb for one of [`OTHER_NAMES`].
fn other_name(flag: &str, verb: &Command) -> Option<String> {
    if verb.get_name() == "bench" && flag == "--repeats" {
        let sweep = "gpuio sweep with the same words runs the load N times: gpuio sweep JOB.ini \
                     --repeats N";
        return Some(format!("error: gpuio bench has no {flag}: {sweep}"));
    }
    let has = |name: &str| verb.get_arguments().any(|it| it.get_long() == Some(name));
    let rows = OTHER_NAMES.iter().filter(|(names, ..)| names.contains(&flag));
    let mut here = rows.filter_map(|(_, name, value)| match gpuio_job::spec::find(name) {
        _ if has(name) => Some(format!("--{name} {value}").trim_end().to_owned()),
        Some(_) if has("set") => Some(format!("--set {name}={value}")),
        _ => None,
    });
    let here = here.next()?;
    Some(format!("error: gpuio {} has no {flag}: {here} does that", verb.get_name()))
}

/// Words that are no verbs, and what does here what they say.
const OTHER_VERBS: &[(&[&str], &str)] = &[
    (
        &["clean", "clear", "cleanup", "rm", "remove", "delete"],
        "gpuio removes no data files of an earlier run: the end of a run prints the command that \
         does, and --set unlink=1 removes them at the end of that run",
    ),
    (
        &["completion", "completions"],
        "`gpuio generate bash` prints completions, also those of zsh and fish",
    ),
    (&["man", "manpage", "manpages"], "`gpuio generate man DIR` writes the manual pages"),
    (&["verify"], "`gpuio bench --rw read --verify` with the flags of the load reads and verifies"),
    (&["run", "fio", "test"], "`gpuio bench FILE` runs a job file"),
    (&["doctor", "diagnose", "status"], "`gpuio check` diagnoses this machine"),
    (&["monitor", "iostat"], "`gpuio top` shows what devices do"),
    (&["info", "topology"], "`gpuio topo` shows devices and how they are connected"),
];

/// The command that a word which is no verb may mean; a file's name means the verb that takes it.
fn no_verb(words: &[OsString], word: &str) -> Option<String> {
    let path = Path::new(word);
    let ending = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let is_job = ["fio", "ini", "job"].contains(&ending);
    let said = if is_job || path.is_file() {
        let verb = if ending == "json" { "gpuio show" } else { "gpuio bench" };
        let at = words.iter().position(|it| it == word)?;
        let others = words.iter().skip(1).enumerate().filter(|(n, _)| n + 1 != at);
        let line = ShellLine::new(verb).file(word).words(others.map(|(_, it)| it));
        let does = if ending == "json" { "prints a record again" } else { "runs a job file" };
        format!("`{line}` {does}")
    } else {
        let (_, said) = OTHER_VERBS.iter().find(|(names, _)| names.contains(&word))?;
        (*said).to_owned()
    };
    Some(format!("error: '{word}' is no verb. {said}"))
}

/// Suggests the words to type instead, where clap refused a file without its verb, a path instead
/// of a process, or a flag that has another name here.
pub(crate) fn meant(words: &[OsString], error: &clap::Error, command: &Command) -> Option<String> {
    let verb = words.get(1)?.to_str()?;
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let has_format =
        |verb: &Command| verb.get_arguments().any(|it| it.get_long() == Some("format"));
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = said(ContextKind::InvalidSubcommand)?;
            no_verb(words, word)
        }
        ErrorKind::UnknownArgument => match (verb, said(ContextKind::InvalidArg)?) {
            ("why", "--directory" | "--filename") => {
                Some("error: gpuio why takes a file, directory or mount by --mount PATH".to_owned())
            }
            (_, "--json") if command.find_subcommand(verb).is_some_and(has_format) => {
                Some(format!("error: gpuio {verb} prints JSON by --format json"))
            }
            ("bench" | "workload", flag @ ("--interval" | "--status-interval")) => Some(format!(
                "error: gpuio {verb} has no {flag}: the record has the rate over time, and `gpuio \
                 stats --interval 1s` shows runs meanwhile"
            )),
            ("bench", flag @ ("--enghelp" | "--cmdhelp")) => Some(format!(
                "error: gpuio bench has no {flag}: gpuio list has the engines, and gpuio generate \
                 reference all keys"
            )),
            ("bench", flag @ ("--client" | "--server" | "--hosts")) => Some(format!(
                "error: gpuio bench has no {flag}: a launcher (mpirun, srun) starts it on several \
                 machines, docs/mpi.md"
            )),
            (_, flag) => other_name(flag, command.find_subcommand(verb)?),
        },
        _ => None,
    }
}

/// Takes what clap suggests from an error where it is not near to the word, or is to give a flag as
/// a value behind `--`, which only `gpuio exec` has words behind.
pub(crate) fn without_far_hints(words: &[OsString], mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    if words.get(1).is_none_or(|verb| verb != "exec") {
        error.insert(ContextKind::Suggested, ContextValue::None);
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let is_far = text(ContextKind::SuggestedArg).zip(text(ContextKind::InvalidArg)).is_some_and(
        |(near, word)| {
            let is_begun = near.starts_with(word) || word.starts_with(near);
            !is_begun && nearest(word.trim_matches('-'), [near.trim_matches('-')]).is_none()
        },
    );
    if is_far {
        error.insert(ContextKind::SuggestedArg, ContextValue::None);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        for_gdsio(&words, &crate::args::command().try_get_matches_from(&words).unwrap_err())
    }

    #[test]
    fn a_value_behind_a_blank_leads_to_the_equals_sign() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            value_apart(&words, crate::args::named(&words, &crate::args::command())?)
        };
        let hint = said("gpuio bench --path host --verify off").unwrap();
        assert!(hint.contains("no file 'off'") && hint.ends_with(" --verify=off"), "{hint}");
        assert_eq!(
            said("gpuio bench --thread 4").unwrap(),
            "--thread takes no number: --threads 4 does"
        );
        assert!(said("gpuio bench --ceilings 500ms").unwrap().ends_with("--ceilings=500ms"));
        for right in [
            "gpuio bench --verify /",
            "gpuio bench --verify=off no.ini",
            "gpuio bench --verify --gpu 0",
            "gpuio bench --rw write",
            "gpuio exec -- program --verify off",
            "gpuio",
        ] {
            assert_eq!(said(right), None, "{right}");
        }
    }

    #[test]
    fn a_word_behind_a_flag_is_no_job_file() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            value_apart(&words, crate::args::named(&words, &crate::args::command())?)
        };
        for (line, why) in [
            ("gpuio bench --direct 0", "'0'. --direct takes no value; --set direct=0 gives it one"),
            ("gpuio bench --force 1 --rw read", "'1'. --force takes no value"),
            (
                "gpuio bench --size 64 M --rw read",
                "'M'. A unit follows its number without a blank: --size 64M",
            ),
            ("gpuio sweep --vary bs=4k --runtime=2 s", "--runtime=2s"),
            (
                "gpuio bench --rw read write",
                "'write'. It stands behind --rw read, which has its value",
            ),
        ] {
            let hint = said(line).unwrap_or_default();
            assert!(
                hint.starts_with("there is no job file '") && hint.ends_with(why),
                "{line}: {hint}"
            );
        }
        for right in [
            "gpuio bench --direct Cargo.toml",
            "gpuio bench none.ini --direct",
            "gpuio bench --size 64M --direct",
            "gpuio why 5 --all 6",
            "gpuio exec --x 1 -- a --direct 0",
        ] {
            assert_eq!(said(right), None, "{right}");
        }
    }

    #[test]
    fn what_has_another_name_here_leads_to_it() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let command = crate::args::command();
            meant(&words, &command.clone().try_get_matches_from(&words).unwrap_err(), &command)
        };
        for (line, part) in [
            ("gpuio Cargo.toml", "`gpuio bench Cargo.toml` runs"),
            ("gpuio j1.fio --rw read", "`gpuio bench j1.fio --rw read` runs"),
            ("gpuio clean", "prints the command"),
            ("gpuio completion bash", "gpuio generate bash"),
            ("gpuio verify", "--verify"),
            ("gpuio bench --eta-newline=1 a.fio", ": --eta newline does"),
            ("gpuio run rr.fio", "gpuio bench FILE"),
            ("gpuio why --directory .", "--mount PATH"),
            ("gpuio bench --json", "gpuio bench prints JSON by --format json"),
            ("gpuio check --json", "gpuio check prints JSON by --format json"),
            ("gpuio top --once", "gpuio top has no --once: --count 1 does that"),
            ("gpuio stats 1 --once", "--count 1 does"),
            ("gpuio top -d 1", "--interval 1s does"),
            ("gpuio top --iterations=3", "--count N does"),
            ("gpuio bench --iterations 3", "--set repeat=N does"),
            ("gpuio workload checkpoint --repeat 3", "--set repeat=N does"),
            ("gpuio bench --duration 5", "--runtime 10s does"),
            ("gpuio workload checkpoint --warmup 5", "--set ramp=5s does"),
            ("gpuio bench --qd 5", "--depth N does"),
            ("gpuio bench --interval 1", "gpuio stats --interval 1s"),
            ("gpuio bench --minimal a.fio", "gpuio bench has no --minimal: --format csv does that"),
            ("gpuio bench --parse-only a.fio", ": --dry-run does that"),
            ("gpuio bench --bandwidth-log a.fio", ": --set write_bw_log=NAME does"),
            ("gpuio bench --rand -t 4", "--rw randread does"),
            ("gpuio bench -t 4 -b 4k --rand -r", "--threads N does"),
            ("gpuio bench -d gd", "--directory DIR does"),
            ("gpuio bench --rw read -D gd", "--directory DIR does"),
            ("gpuio bench --enghelp", "gpuio list"),
            ("gpuio bench --client h", "a launcher"),
        ] {
            let hint = said(line).unwrap_or_default();
            assert!(hint.contains(part), "{line}: {hint}");
        }
        for other in ["gpuio nothing", "gpuio why 0", "gpuio bench --none", "gpuio why --none"] {
            assert_eq!(said(other), None, "{other}");
        }
    }

    #[test]
    fn a_flag_that_is_far_from_the_word_is_no_hint() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = crate::args::command().try_get_matches_from(&words).unwrap_err();
            without_far_hints(&words, error).to_string()
        };
        assert!(!said("gpuio bench --lockfile=x").contains("--blocksize"));
        assert!(said("gpuio bench --thread-s 4").contains("'--threads'"));
        assert!(!said("gpuio bench -y").contains("as a value"));
    }

    #[test]
    fn fios_flags_lead_to_two_dashes() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            for_fio(&words, &crate::args::command().try_get_matches_from(&words).unwrap_err())
        };
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let given =
            words("gpuio bench -filename=/mnt/f -rw=randread -iodepth=32 --bs 4k -q -- -rw");
        let line = "gpuio bench --filename=/mnt/f --rw=randread --iodepth=32 --bs 4k -q -- -rw";
        assert_eq!(two_dashes(&given), words(line));
        assert_eq!(two_dashes(&words("gpuio topo -rw=read")), words("gpuio topo -rw=read"));
        let file = said("gpuio bench -f Cargo.toml").unwrap();
        assert!(file.ends_with("\n  gpuio bench Cargo.toml"), "{file}");
        for other in ["gpuio bench -x 0 -d 0", "gpuio bench -f none -x 0", "gpuio bench --none"] {
            assert_eq!(said(other), None, "{other}");
        }
    }

    #[test]
    fn gdsios_flags_lead_to_gdsio() {
        let line = "-x 0 -d 0 -w 4 -s 1G -i 1M -I 0";
        for before in ["gpuio bench", "gpuio"] {
            let said = hint(&format!("{before} {line}")).unwrap();
            assert!(said.ends_with(&format!("gpuio gdsio {line} -D DIRECTORY")), "{said}");
        }
        for refused in ["-d gd", "--rw read -D gd", "-D gd -w x"] {
            assert_eq!(hint(&format!("gpuio bench {refused}")), None, "{refused}");
        }
        assert!(hint("gpuio bench -f a.fio").unwrap().ends_with("gpuio bench a.fio"));
        assert!(hint("gpuio bench -D a;b -x 0").unwrap().ends_with("gpuio gdsio -D 'a;b' -x 0"));
        for other in ["gpuio bench --none 1", "gpuio topo -x 0", "gpuio bench -y"] {
            assert_eq!(hint(other), None, "{other}");
        }
    }
}
