//! Defaults of flags from `GPUIO_*` variables and configuration files (docs/settings.md).
//!
//! A flag that is given wins, then the variable, then the user's file, then the machine's. A
//! default is left out where other flags say the same thing in another way, or a job file has its
//! own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use gpuio_guard::objects::{environment, trust};
use gpuio_host::input;

use crate::args::asks_for_load;
use crate::failure::Failure;

/// A flag that may have a default.
struct Setting {
    flag: &'static str,
    /// Verbs that have it; all of them where there is none.
    verbs: &'static [&'static str],
    /// Arguments beside which the default is left out.
    unless: &'static [&'static str],
    /// Whether it is left out without a load: `bench` divides a time of its own then.
    of_load: bool,
    /// Whether a line says that the default is used: it changes what is measured.
    noted: bool,
}

const LOADS: &[&str] = &["bench", "sweep"];

const SHOWN: Setting = Setting { flag: "", verbs: &[], unless: &[], of_load: false, noted: false };
const MEASURED: Setting = Setting { verbs: LOADS, noted: true, ..SHOWN };

const SETTINGS: [Setting; 6] = [
    Setting { flag: "units", ..SHOWN },
    Setting { flag: "directory", unless: &["job_file", "filename", "ab"], ..MEASURED },
    Setting {
        flag: "gpu",
        unless: &["job_file", "preset", "fan_out", "cpus", "numa", "ab"],
        ..MEASURED
    },
    Setting {
        flag: "runtime",
        unless: &["job_file", "preset", "io_size", "loops", "wear_out", "steady", "ab"],
        of_load: true,
        ..MEASURED
    },
    Setting { flag: "interval", verbs: &["top", "stats"], unless: &["serve", "watch"], ..SHOWN },
    Setting { flag: "color", ..SHOWN },
];

/// The name of another configuration file than the user's.
const FILE_VARIABLE: &str = "GPUIO_CONFIG";
const MACHINE_FILE: &str = "/etc/gpuio.conf";

/// A value and where it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Value {
    value: String,
    origin: String,
}

/// The command line with the defaults of this user and machine behind its verb.
pub(crate) fn added(words: &[OsString], parser: &Command) -> Result<Vec<OsString>, Failure> {
    let set = |one: &Setting| environment::variable(&variable(one.flag)).is_some();
    let is_named = environment::variable(FILE_VARIABLE).is_some();
    if !is_named && !SETTINGS.iter().any(set) && !files().iter().any(|file| file.exists()) {
        return Ok(words.to_vec());
    }
    // Words that clap refuses are reported by the parser, and help needs no defaults.
    let Ok(matches) = parser.clone().try_get_matches_from(words) else {
        return Ok(words.to_vec());
    };
    let Some((verb, given)) = matches.subcommand() else { return Ok(words.to_vec()) };
    let values = values()?;
    let mut out: Vec<OsString> = words.iter().take(2).cloned().collect();
    for setting in &SETTINGS {
        let Some(Value { value, origin }) = values.get(setting.flag) else { continue };
        if !applies(setting, verb, given) {
            continue;
        }
        let flag = setting.flag;
        if setting.noted {
            message!("note: --{flag} {value}, by {origin}");
        }
        out.push(format!("--{flag}={value}").into());
    }
    out.extend(words.iter().skip(2).cloned());
    Ok(out)
}

fn applies(setting: &Setting, verb: &str, given: &ArgMatches) -> bool {
    let of_verb = setting.verbs.is_empty() || setting.verbs.contains(&verb);
    let is_given = |name: &str| {
        let known = given.try_contains_id(name).unwrap_or(false);
        let source = || given.value_source(name);
        known && source() == Some(clap::parser::ValueSource::CommandLine)
    };
    let any = |names: &[&str]| names.iter().any(|name| is_given(name));
    let has_load = !setting.of_load || verb == "sweep" || asks_for_load(verb, given);
    of_verb && has_load && !is_given(setting.flag) && !any(setting.unless)
}

/// All defaults that are set, by flag.
fn values() -> Result<BTreeMap<&'static str, Value>, Failure> {
    let mut all = BTreeMap::new();
    for path in files() {
        let name = path.display().to_string();
        let is_named = environment::variable(FILE_VARIABLE).is_some_and(|at| at == *path);
        // Root may run with another user's HOME; a file that is named is the caller's own choice.
        if !is_named && let Err(why) = is_ours(&path) {
            message!("warning: {name}: no default of it is used: {why}");
            continue;
        }
        match input::read(&path, input::MOST_WRITTEN) {
            Ok(text) => all.extend(read(&name, &String::from_utf8_lossy(&text))?),
            Err(error) if is_named => {
                return Err(Failure::Usage(format!("{FILE_VARIABLE}: {name}: {error}")));
            }
            Err(_) => {}
        }
    }
    for setting in &SETTINGS {
        let variable = variable(setting.flag);
        if let Some(value) = environment::text(&variable).filter(|value| !value.is_empty()) {
            all.insert(setting.flag, Value { value, origin: variable });
        }
    }
    Ok(all)
}

/// Whether this file, and each name on the way to it, belongs to root or this user. One that is
/// absent does.
fn is_ours(path: &Path) -> Result<(), String> {
    let way = trust::way(path.parent().unwrap_or(Path::new("/")));
    if let Err(why) = way
        && why.kind() == ErrorKind::PermissionDenied
    {
        return Err(why.to_string());
    }
    let user = rustix::process::geteuid().as_raw();
    match std::fs::metadata(path).map(|facts| facts.uid()) {
        Ok(owner) if owner != user && owner != 0 => Err(format!("it belongs to user {owner}")),
        _ => Ok(()),
    }
}

/// For the reference: the variable of each flag that may have a default, the flag, and its verbs.
pub(crate) fn variables() -> impl Iterator<Item = (String, &'static str, String)> {
    SETTINGS.iter().map(|setting| {
        let verbs: Vec<String> = setting.verbs.iter().map(|verb| format!("`{verb}`")).collect();
        let verbs = if verbs.is_empty() { "all".to_owned() } else { verbs.join(", ") };
        (variable(setting.flag), setting.flag, verbs)
    })
}

fn variable(flag: &str) -> String {
    format!("GPUIO_{}", flag.replace('-', "_").to_uppercase())
}

/// Configuration files, the last one wins.
fn files() -> Vec<PathBuf> {
    let own = environment::variable(FILE_VARIABLE).map(PathBuf::from).or_else(|| {
        let home = || environment::variable("HOME").map(|home| Path::new(&home).join(".config"));
        let base = environment::absolute("XDG_CONFIG_HOME").or_else(home);
        base.map(|base| base.join("gpuio/config"))
    });
    std::iter::once(PathBuf::from(MACHINE_FILE)).chain(own).collect()
}

/// Lines `flag = value`; `#` begins a comment.
fn read(name: &str, text: &str) -> Result<BTreeMap<&'static str, Value>, Failure> {
    let mut all = BTreeMap::new();
    for (nth, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = format!("{name}:{}", nth + 1);
        let Some((key, value)) = line.split_once('=') else {
            return Err(Failure::Usage(format!("{at}: expected a line such as units = si")));
        };
        let key = key.trim().replace('_', "-");
        let setting = SETTINGS.iter().find(|setting| setting.flag == key).ok_or_else(|| {
            let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.flag).collect();
            let known = known.join(", ");
            Failure::Usage(format!("{at}: '{key}' has no default; these flags have: {known}"))
        })?;
        all.insert(setting.flag, Value { value: value.trim().to_owned(), origin: at });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_flags_with_values() {
        let all = read("c", "# mine\nunits = si\n\nruntime=5\n").unwrap();
        assert_eq!(all["units"], Value { value: "si".into(), origin: "c:2".into() });
        assert_eq!(all["runtime"].origin, "c:4");
        for (text, part) in [("x", "c:1: expected"), ("\nverify = full", "c:2: 'verify' has no")] {
            assert!(read("c", text).unwrap_err().to_string().starts_with(part), "{text}");
        }
    }

    #[test]
    fn the_page_lists_every_default() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        let page = std::fs::read_to_string(page).unwrap();
        for setting in &SETTINGS {
            let row = format!("| `--{}` | `{}` |", setting.flag, variable(setting.flag));
            assert!(page.contains(&row), "docs/settings.md has no line that begins {row}");
        }
    }

    #[test]
    fn a_default_gives_way_to_what_is_given() {
        let command = crate::args::parser();
        let applies_to = |flag: &str, line: &str| {
            let words = line.split(' ');
            let matches = command.clone().try_get_matches_from(words).unwrap();
            let (verb, given) = matches.subcommand().unwrap();
            applies(SETTINGS.iter().find(|setting| setting.flag == flag).unwrap(), verb, given)
        };
        assert!(applies_to("directory", "gpuio bench --path host"));
        for line in ["gpuio bench job.ini", "gpuio bench --filename a", "gpuio check"] {
            assert!(!applies_to("directory", line), "{line}");
        }
        assert!(applies_to("runtime", "gpuio bench --rw read"));
        for line in ["gpuio bench --rw read --runtime 3", "gpuio bench"] {
            assert!(!applies_to("runtime", line), "{line}");
        }
        assert!(!applies_to("units", "gpuio bench --units iec"));
        assert!(applies_to("units", "gpuio topo"));
        assert!(!applies_to("interval", "gpuio top --serve 9400"));
    }
}
