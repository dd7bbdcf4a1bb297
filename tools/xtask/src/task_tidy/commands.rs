//! Verbs and flags of gpuio in README and docs that the program does not have.
//!
//! The verbs and flags are read from the committed help texts, which a test holds against the
//! program, and from the tables of job-file keys, each of which is a flag of `bench` and `sweep`.
//! A flag counts as gpuio's where the first word of its command is `gpuio`, or a launcher's whose
//! program is; a flag alone must be one of any verb, or of a program that the pages speak of.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Finding};

const RULE: &str = "command";
const HELP: &str = "crates/cli/tests/cli/snapshots/cli__help__";
const HELP_OF_STATS: &str = "crates/cli/tests/cli/snapshots/cli__stats__gds_stats_help.snap";
const KEYS: &str = "crates/job/src/spec/keys/";
/// Verbs that take each key of job files as a flag.
const WITH_KEYS: [&str; 2] = ["bench", "sweep"];
/// Programs that start another one, which their command names.
const LAUNCHERS: [&str; 5] = ["mpirun", "srun", "podman", "docker", "sudo"];
/// Flags of other programs that stand alone on a page.
const OTHERS: [(&str, &[&str]); 6] = [
    (
        "cargo",
        &["accel", "binary", "check", "features", "key", "plants", "profile", "target", "time"],
    ),
    ("mpirun", &["bind-to", "map-by", "mca"]),
    ("srun", &["cpu-bind", "kill-on-bad-exit", "mpi"]),
    ("fio", &["client", "output-format", "status-interval"]),
    ("elbencho", &["csvfile", "gpuids", "rand"]),
    ("nvidia-smi", &["query-gpu"]),
];

/// The program's verbs, each with its flags, without their dashes.
struct Program {
    verbs: BTreeMap<String, BTreeSet<String>>,
    keys: BTreeSet<String>,
}

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let Some(program) = Program::read(files) else {
        return Vec::new();
    };
    files.iter().filter(|file| is_page(&file.path)).flat_map(|page| program.page(page)).collect()
}

/// Pages for users. The lab book keeps commands as they were run.
fn is_page(path: &str) -> bool {
    let name = path.strip_prefix("docs/").unwrap_or(path);
    name.ends_with(".md") && !name.contains('/')
}

/// Long flags of a text, without dashes.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let begins = |at: &usize| {
        let before = text[..*at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '-')
    };
    let starts = text.match_indices("--").map(|(at, _)| at).filter(begins);
    starts.filter_map(|at| flag(&text[at..]))
}

/// The flag that a word begins with, without dashes; none where it is a placeholder.
fn flag(word: &str) -> Option<&str> {
    let rest = word.strip_prefix("--")?;
    let other = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c));
    let name = rest.split(other).next()?.trim_end_matches('-');
    name.starts_with(|c: char| c.is_ascii_lowercase()).then_some(name)
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2)
}

impl Program {
    /// None where no help is among the files.
    fn read(files: &[File]) -> Option<Program> {
        let own = files.iter().find(|file| file.path == format!("{HELP}gpuio.snap"))?;
        let common: BTreeSet<String> = flags(&own.text).map(str::to_owned).collect();
        let listed = own.text.lines().take_while(|line| *line != "Options:");
        let listed = listed.filter_map(|line| line.strip_prefix("  "));
        let listed = listed.filter_map(|line| line.split("  ").next()).filter(|verb| is_verb(verb));
        let mut verbs: BTreeMap<String, BTreeSet<String>> =
            listed.map(|verb| (verb.to_owned(), common.clone())).collect();
        for file in files {
            let verb = file.path.strip_prefix(HELP).and_then(|name| name.strip_suffix(".snap"));
            let verb = if file.path == HELP_OF_STATS { Some("gds_stats") } else { verb };
            if let Some(of_verb) = verb.and_then(|verb| verbs.get_mut(verb)) {
                of_verb.extend(flags(&file.text).map(str::to_owned));
            }
        }
        let sources = files.iter().filter(|file| file.path.starts_with(KEYS));
        let keys = sources.flat_map(|file| key_names(&file.text)).collect();
        Some(Program { verbs, keys })
    }

    fn page(&self, page: &File) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (line, text, is_span) in commands(&page.text) {
            let wrong = match flag(&text) {
                Some(name) if is_span && !self.has_anywhere(name) => {
                    vec![format!("`--{name}` is a flag of no verb")]
                }
                Some(_) => Vec::new(),
                None => text.split('|').flat_map(|part| self.command(part)).collect(),
            };
            findings.extend(wrong.into_iter().map(|what| {
                let what = format!("{what} in gpuio's committed help, correct it");
                Finding::new(&page.path, line, RULE, what)
            }));
        }
        findings
    }

    /// The words of a command that gpuio does not have.
    fn command(&self, text: &str) -> Vec<String> {
        text.split("&&").flat_map(|part| self.one(part)).collect()
    }

    fn one(&self, text: &str) -> Vec<String> {
        let is_variable = |word: &&str| word.contains('=') && word.starts_with(char::is_uppercase);
        let mut words = text.split_whitespace().skip_while(|word| *word == "$").peekable();
        while words.next_if(|word| is_variable(word)).is_some() {}
        let is_gpuio = |word: &str| word == "gpuio" || word.ends_with("/gpuio");
        match words.next() {
            Some(first) if is_gpuio(first) => {}
            Some(first) if LAUNCHERS.contains(&first) && words.by_ref().any(is_gpuio) => {}
            _ => return Vec::new(),
        }
        let Some(verb) = words.next().filter(|verb| is_verb(verb)) else {
            return Vec::new();
        };
        let Some(known) = self.verbs.get(verb) else {
            return vec![format!("`gpuio {verb}` is no verb")];
        };
        let own = words.take_while(|word| *word != "--" && !word.starts_with(['#', '>']));
        let takes_keys = WITH_KEYS.contains(&verb);
        let has = |name: &str| known.contains(name) || takes_keys && self.has_key(name);
        let unknown = own.filter_map(flag).filter(|name| !has(name));
        unknown.map(|name| format!("`--{name}` is no flag of `gpuio {verb}`")).collect()
    }

    fn has_key(&self, name: &str) -> bool {
        self.keys.contains(&name.replace('-', "_"))
    }

    fn has_anywhere(&self, name: &str) -> bool {
        let other = OTHERS.iter().any(|(_, flags)| flags.contains(&name));
        other || self.has_key(name) || self.verbs.values().any(|flags| flags.contains(name))
    }
}

fn is_verb(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// Names of keys, and their further spellings.
fn key_names(source: &str) -> impl Iterator<Item = String> {
    let named = source.split("key(").skip(1).filter_map(|rest| {
        rest.trim_start().starts_with('"').then(|| quoted(rest).next()).flatten()
    });
    let spelled = source
        .split(".or(&[")
        .skip(1)
        .flat_map(|rest| quoted(rest.split(']').next().unwrap_or_default()));
    named.chain(spelled).map(str::to_owned)
}

/// The lines of code blocks, continued ones joined, and the code spans of a page, which may go over
/// lines: line, text, whether it is a span.
fn commands(page: &str) -> Vec<(usize, String, bool)> {
    let mut found: Vec<(usize, String, bool)> = Vec::new();
    let (mut fenced, mut continued) = (false, false);
    let mut prose = String::new();
    for (line, number) in page.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            (fenced, continued) = (!fenced, false);
        } else if fenced {
            let text = line.trim_end_matches('\\');
            match found.last_mut().filter(|_| continued) {
                Some((_, before, _)) => before.push_str(text),
                None => found.push((number, text.to_owned(), false)),
            }
            continued = line.ends_with('\\');
        }
        // Spans don't go beyond a paragraph, in which a line may hold the half of one.
        if !fenced && !line.starts_with("```") {
            prose.push_str(line);
        }
        prose.push('\n');
    }
    let mut number = 1;
    for paragraph in prose.split_inclusive("\n\n") {
        let mut at = number;
        for (nth, part) in paragraph.split('`').enumerate() {
            if nth % 2 == 1 {
                found.push((at, part.replace('\n', " "), true));
            }
            at += part.matches('\n').count();
        }
        number += paragraph.matches('\n').count();
    }
    found
}
