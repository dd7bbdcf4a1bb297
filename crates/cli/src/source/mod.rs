//! The machine to describe: this one, a captured tree, or one from the output of tools. Texts may
//! be of several machines: each is answered by itself.

mod bundle;

use std::path::{Path, PathBuf};

use gpuio_capture::Captured;
use gpuio_capture::machines::{Machines, Text, read_all};
use gpuio_host::Root;
use gpuio_record::facts::ReadProblem;
use gpuio_report::post;

use crate::failure::Failure;

/// One of the machines that `--from` holds.
pub(crate) struct Source {
    /// The host's name; `None` where there is one machine alone.
    pub(crate) name: Option<String>,
    pub(crate) captured: Captured,
    /// Its texts: tools' output, and results that were posted with it.
    pub(crate) texts: Vec<Text>,
}

impl Source {
    /// Takes texts that name no machine, where the user names this one of several.
    fn take_undecided(&mut self, name: &str, texts: Vec<Text>) {
        if texts.is_empty() {
            return;
        }
        let names: Vec<&str> = texts.iter().map(|text| text.name.as_str()).collect();
        let note = format!("Read as of {name}, since --machine names it: {}.", names.join(", "));
        for text in &texts {
            // A text of results alone has no facts.
            let _ = gpuio_capture::read(&text.name, &text.body, &mut self.captured);
        }
        self.captured.finish();
        self.captured.remark_all(&[note]);
        self.texts.extend(texts);
    }
}

/// The first line of what `gpuio collect`'s script prints.
const COLLECTED: &str = "# gpuio collect ";

/// The requested machines: this one, a captured tree, or those of texts. `wanted` names one of
/// them.
pub(crate) fn all(from: &[PathBuf], wanted: Option<&str>) -> Result<Vec<Source>, Failure> {
    let whole = |root: &Root| Captured::of(gpuio_load::machine::read(root));
    if from.is_empty() {
        return Ok(vec![Source { name: None, captured: whole(&Root::live()), texts: Vec::new() }]);
    }
    let mut found = bundle::gather(from)?;
    found.texts = found.texts.into_iter().flat_map(parted).collect();
    let mut texts = read_all(&found.texts);
    // A section of a collected text: each machine lacks some.
    texts.not_read.retain(|(name, _)| !name.contains(SECTION));
    // Results alone describe no machine, and are answered too.
    let with_results: Vec<Text> = {
        let unread = |text: &&Text| texts.not_read.iter().any(|(name, _)| *name == text.name);
        let unread = found.texts.iter().filter(unread);
        unread.filter(|text| !post::read(&text.name, &text.body).is_empty()).cloned().collect()
    };
    texts.not_read.retain(|(name, _)| !with_results.iter().any(|text| text.name == *name));
    let mut all: Vec<Source> = found
        .trees
        .iter()
        .map(|(name, root)| Source {
            name: Some(host_of(name)),
            captured: whole(root),
            texts: Vec::new(),
        })
        .collect();
    if let ([one], 1) = (all.as_mut_slice(), texts.machines.len()) {
        // Texts beside a captured tree are of that machine.
        for text in &found.texts {
            let _ = gpuio_capture::read(&text.name, &text.body, &mut one.captured);
        }
        one.captured.finish();
        one.texts.clone_from(&found.texts);
    } else {
        all.extend(texts.machines.drain(..).map(|one| Source {
            name: Some(one.name),
            captured: one.captured,
            texts: one.texts,
        }));
        match all.as_mut_slice() {
            [] if with_results.is_empty() => {}
            [] => {
                all.push(Source { name: None, captured: Captured::default(), texts: with_results })
            }
            [one] => one.texts.extend(with_results),
            _ => texts.undecided.extend(with_results),
        }
    }
    if let Some(wanted) = wanted {
        all.iter_mut().filter(|one| one.name.as_deref() == Some(wanted)).for_each(|one| {
            one.take_undecided(wanted, std::mem::take(&mut texts.undecided));
        });
    }
    let notes = notes_of(&found.others, &texts, &all, found.is_alone());
    if let [one] = all.as_mut_slice() {
        one.name = None;
    }
    if all.is_empty() {
        return Err(nothing_read(from, &found, &texts.not_read));
    }
    if let Some(wanted) = wanted {
        all = vec![Source { name: None, ..only(all, wanted)? }];
    }
    for one in &mut all {
        one.captured.remark_all(&notes);
    }
    Ok(all)
}

/// A machine whose texts stand together, whatever names their prompts have.
pub(crate) fn of_one_host(from: &[PathBuf]) -> Result<Captured, Failure> {
    let found = bundle::gather(from)?;
    let mut captured = match found.trees.first() {
        Some((_, root)) => Captured::of(gpuio_load::machine::read(root)),
        None => Captured::default(),
    };
    let mut first = None;
    for text in found.texts.into_iter().flat_map(parted) {
        if let Err(why) = gpuio_capture::read(&text.name, &text.body, &mut captured) {
            first.get_or_insert(Failure::Usage(format!("--from {}: {why}", text.name)));
        }
    }
    captured.finish();
    let nothing = captured.texts.is_empty() && found.trees.is_empty();
    match first {
        Some(why) if nothing => Err(why),
        _ => Ok(captured),
    }
}

/// Between a collected text's name and the command of a section.
const SECTION: &str = ": $ ";

/// The sections of a text that `gpuio collect`'s script made, each below its command; iostat's JSON
/// as iostat's text; another text as it is.
fn parted(text: Text) -> Vec<Text> {
    let plain = gpuio_base::measured::iostat::text_of_json(&text.body);
    let text = Text { body: plain.unwrap_or(text.body), ..text };
    if !text.body.starts_with(COLLECTED) {
        return vec![text];
    }
    let mut sections: Vec<Text> = Vec::new();
    for line in text.body.lines().filter(|line| !line.starts_with("# left out: ")) {
        if let Some(command) = line.strip_prefix("$ ") {
            let name = format!("{}{SECTION}{command}", text.name);
            sections.push(Text { name, body: String::new() });
        } else if let Some(section) = sections.last_mut() {
            section.body.push_str(line);
            section.body.push('\n');
        }
    }
    sections
}

/// The requested machine where an answer is for one.
pub(crate) fn only_one(from: &[PathBuf], wanted: Option<&str>) -> Result<Source, Failure> {
    let mut all = all(from, wanted)?;
    match (all.pop(), all.as_slice()) {
        (Some(one), []) => Ok(one),
        (last, rest) => {
            let names: Vec<&str> =
                rest.iter().chain(&last).filter_map(|one| one.name.as_deref()).collect();
            Err(several(&names))
        }
    }
}

/// The refusal where an answer is for one machine, and there are several.
pub(crate) fn several(names: &[&str]) -> Failure {
    let words = "pick one with --machine NAME";
    let known = names.join(", ");
    Failure::Usage(format!("--from: these are of {} machines ({known}); {words}", names.len()))
}

/// Refuses several machines where the answer is one document.
pub(crate) fn one_document(all: &[Source], takes_several: bool) -> Result<(), Failure> {
    if all.len() < 2 || takes_several {
        return Ok(());
    }
    let names: Vec<&str> = all.iter().filter_map(|one| one.name.as_deref()).collect();
    Err(several(&names))
}

/// The line above the answer on one of several machines; empty where there is one alone.
pub(crate) fn heading(one: &Source, format: &str) -> String {
    one.name.as_ref().map(|name| heading_of(name, format)).unwrap_or_default()
}

pub(crate) fn heading_of(name: &str, format: &str) -> String {
    match format {
        "markdown" => format!("# {name}\n\n"),
        _ => format!("==== {name} ====\n"),
    }
}

fn only(all: Vec<Source>, wanted: &str) -> Result<Source, Failure> {
    let names: Vec<String> = all.iter().filter_map(|one| one.name.clone()).collect();
    let is_it = |one: &Source| one.name.as_deref().is_none_or(|name| name == wanted);
    all.into_iter().find(is_it).ok_or_else(|| {
        Failure::Usage(format!("--machine {wanted}: there is none; found: {}", names.join(", ")))
    })
}

/// The name of a capture's file without its ending.
fn host_of(name: &str) -> String {
    let file = name.rsplit('/').next().unwrap_or(name);
    let ends = [".tar.gz", ".tgz", ".tar", ".zip"];
    ends.iter().find_map(|end| file.strip_suffix(end)).unwrap_or(file).to_owned()
}

/// Files that were not read, once by name.
fn notes_of(
    others: &[(String, String)],
    texts: &Machines,
    all_machines: &[Source],
    alone: bool,
) -> Vec<String> {
    const SHOWN: usize = 20;
    let mut notes = Vec::new();
    let unknown =
        texts.not_read.iter().map(|(name, _)| format!("{name}: no output of a known tool"));
    let others = others.iter().map(|(name, why)| format!("{name}: {why}"));
    let all: Vec<String> = unknown.chain(others).collect();
    if !all.is_empty() && !alone {
        let more = all.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        notes.push(format!("Not understood: {}{more}.", all[..all.len().min(SHOWN)].join("; ")));
    }
    if !texts.undecided.is_empty() {
        let names: Vec<&str> = all_machines.iter().filter_map(|one| one.name.as_deref()).collect();
        notes.push(format!(
            "Left out, as it may be of any of {}: {}. Put the host's name above it, as in a \
             prompt, give it alone, or name its machine with --machine.",
            names.join(", "),
            texts.undecided.iter().map(|text| text.name.as_str()).collect::<Vec<_>>().join(", ")
        ));
    }
    notes
}

/// The error where no text is understood: that of the only text, or all by name.
fn nothing_read(
    from: &[PathBuf],
    found: &bundle::Files,
    not_read: &[(String, gpuio_capture::CaptureError)],
) -> Failure {
    let others = found.others.as_slice();
    match (others, not_read) {
        ([], []) => {
            let names: Vec<String> = from.iter().map(|path| path.display().to_string()).collect();
            let names = names.join(" ");
            Failure::Usage(format!(
                "--from {names}: there is neither sys nor proc in it, and no \
                text"
            ))
        }
        ([], [(name, why)]) => {
            let text = found.texts.iter().find(|text| text.name == *name);
            let said = text.and_then(|text| post::figures_in_words(&text.body));
            let said = said.map(|said| format!("\nUnderstood: {said}")).unwrap_or_default();
            Failure::Usage(format!("--from {name}: {why}{said}"))
        }
        ([(name, why)], []) => Failure::Usage(format!("--from {name}: {why}")),
        _ => {
            let texts = not_read.iter().map(|(name, why)| format!("\n  {name}: {why}"));
            let others = others.iter().map(|(name, why)| format!("\n  {name}: {why}"));
            let all: String = texts.chain(others).take(20).collect();
            Failure::Usage(format!("--from: nothing of these files is understood:{all}"))
        }
    }
}

/// [`text_notes`], and what can't both be right.
pub(crate) fn read_notes(captured: &Captured) -> Vec<String> {
    let mut notes = text_notes(captured, |_, _| false);
    notes.extend(captured.conflicts.iter().map(|one| format!("Contradiction: {one}")));
    notes
}

/// The texts that were read, and their differences, as sentences; empty for a whole machine. Lines
/// that something else has read were not passed over.
pub(crate) fn text_notes(
    captured: &Captured,
    is_read: impl Fn(&str, usize) -> bool,
) -> Vec<String> {
    let mut notes: Vec<String> = captured.summary_beside(is_read).into_iter().collect();
    let differ = &captured.contradictions;
    if !differ.is_empty() {
        notes.push(format!("Texts differ, and the later one counts: {}.", differ.join("; ")));
    }
    notes.extend(captured.remarks());
    notes
}

/// [`read_notes`], and unreadable parts, as sentences.
pub(crate) fn problems(captured: &Captured) -> Vec<String> {
    let mut notes = read_notes(captured);
    let machine = &captured.machine;
    let all = machine.host.problems.iter().chain(&machine.problems);
    let words = |problem: &ReadProblem| {
        let line = problem.line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!("Not read: {}{line}: {}", problem.path, problem.message)
    };
    notes.extend(all.map(words));
    notes
}

/// Whether a path names standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
