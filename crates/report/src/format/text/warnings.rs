//! Warnings, the most severe first and each sentence once.

use gpuio_base::document::{Item, Layout, List, Section, grouped, unique};
use gpuio_record::{Record, Severity, Warning, WarningKind};

/// Where the names of warnings are explained.
pub(in crate::format) const EXPLAIN: &str = "[NAME]: gpuio explain NAME says what it means";

/// Texts of one kind of warning that are printed one by one; JSON always has all.
const TEXTS_MOST: usize = 6;

/// One text and the jobs that it is about.
type WarningText<'a> = (&'a str, Vec<&'a str>);

/// A paragraph per kind of warning. Jobs with the same text share it; if texts differ only in their
/// figures, the common sentences are printed once, below.
pub(super) fn section(record: &Record) -> Section {
    let kind = |one: &Warning| std::mem::discriminant(&one.kind);
    let mut kinds = grouped(record.warnings.iter().map(|one| (kind(one), one)));
    // A stable sort: within a severity the order of the record is kept.
    kinds.sort_by_key(|(_, warnings)| warnings[0].kind.severity());
    let all = record.plan.jobs.len();
    let mut section = Section::default();
    for (_, warnings) in &kinds {
        let texts = grouped(warnings.iter().map(|one| (one.text.as_str(), one.job.as_deref())));
        let texts: Vec<WarningText<'_>> = texts
            .into_iter()
            .map(|(text, jobs)| (text, unique(jobs.into_iter().flatten())))
            .collect();
        section.list(block(&warnings[0].kind, &texts, all));
    }
    explained(&mut section, record);
    section
}

/// Where names are explained, below texts that have some.
fn explained(section: &mut Section, record: &Record) {
    if !section.is_empty() && record.warnings.iter().any(|one| !marked(&one.kind).is_empty()) {
        section.item(Layout::default().wide(), Item::new("", EXPLAIN));
    }
}

/// The first sentence of each kind of warning and note but for the software GPU, which the head
/// names.
pub(super) fn in_short(record: &Record) -> Section {
    let is_said = |one: &Warning| matches!(one.kind, WarningKind::SoftwareGpu);
    let mut section = Section::default();
    for (label, is_note) in [("warning", false), ("note", true)] {
        let due = |one: &Warning| (one.kind.severity() == Severity::Note) == is_note;
        let all = sentences_of(record, |one| due(one) && !is_said(one));
        let items = all.into_iter().map(|text| Item::new(label, text));
        section.list(List::new(Layout::labels(label.len() + 1), items));
    }
    explained(&mut section, record);
    section
}

/// The first sentence of each kind of warning, the most severe first, with the number of jobs where
/// it concerns some of them, of those that are `due`. Notes are left out.
pub(in crate::format) fn first_sentences(
    record: &Record,
    due: impl Fn(&Warning) -> bool,
) -> Vec<String> {
    sentences_of(record, |one| one.kind.severity() != Severity::Note && due(one))
}

/// The first sentence of each kind that is `due`.
fn sentences_of(record: &Record, due: impl Fn(&Warning) -> bool) -> Vec<String> {
    let due = record.warnings.iter().filter(|one| due(one));
    let mut kinds = grouped(due.map(|one| (std::mem::discriminant(&one.kind), one)));
    kinds.sort_by_key(|(_, warnings)| warnings[0].kind.severity());
    let all = record.plan.jobs.len();
    let words = |(_, warnings): (_, Vec<&Warning>)| {
        let first = warnings[0];
        let text = |one: &Warning| sentences(&one.text).next().unwrap_or_default().to_owned();
        // A job may have several of one kind.
        let jobs = unique(warnings.iter().filter_map(|one| one.job.as_deref())).len();
        let name = first.job.as_deref().unwrap_or_default();
        let same = warnings.iter().all(|one| text(one) == text(first));
        let text = text(first);
        let jobs = match jobs {
            0 => String::new(),
            1 if all > 1 => format!("{name}: "),
            // Its figures are the first one's alone.
            jobs if jobs > 1 && !same => format!("{jobs} jobs, first {name}: "),
            jobs if jobs == all => String::new(),
            jobs => format!("{jobs} jobs: "),
        };
        format!("{jobs}{text}{}", marked(&first.kind))
    };
    kinds.into_iter().map(words).collect()
}

fn block(kind: &WarningKind, texts: &[WarningText<'_>], all: usize) -> List {
    let label = match kind.severity() {
        Severity::Note => "note",
        _ => "warning",
    };
    let shared = shared_sentences(texts);
    let id = marked(kind);
    let mut lines = Vec::new();
    // Where each of many jobs has a text of its own, the first stands for all.
    let folded = texts.len() > TEXTS_MOST;
    let shown = if folded { &texts[..1] } else { texts };
    for (nth, (text, names)) in shown.iter().enumerate() {
        let own: Vec<&str> =
            sentences(text).filter(|sentence| !shared.contains(sentence)).collect();
        let last = shared.is_empty() && nth + 1 == shown.len();
        let end = if last { id.as_str() } else { "" };
        let jobs = match folded {
            true => {
                let jobs = unique(texts.iter().flat_map(|(_, names)| names)).len();
                format!("{jobs} jobs, first {}", about(names, all))
            }
            false => about(names, all),
        };
        lines.push(format!("{jobs}{}{end}", own.join(" ")));
    }
    if !shared.is_empty() {
        lines.push(shared.join(" ") + &id);
    }
    List::behind(label, Layout::labels(label.len() + 1), lines)
}

/// ` [ID]`, the name under which the reference explains a warning; nothing for a note.
pub(crate) fn marked(kind: &WarningKind) -> String {
    match kind.severity() {
        Severity::Note => String::new(),
        _ => format!(" [{}]", kind.id()),
    }
}

fn about(names: &[&str], all: usize) -> String {
    match names {
        [] => String::new(),
        names if names.len() > 1 && names.len() == all => "all jobs: ".to_owned(),
        names => format!("{}: ", names.join(", ")),
    }
}

/// Sentences that every text has; none where there is only one text.
fn shared_sentences<'a>(texts: &[WarningText<'a>]) -> Vec<&'a str> {
    let [(first, _), others @ ..] = texts else {
        return Vec::new();
    };
    if others.is_empty() {
        return Vec::new();
    }
    let in_all = |sentence: &&str| {
        let mut others = others.iter();
        others.all(|(text, _)| sentences(text).any(|other| other == *sentence))
    };
    sentences(first).filter(in_all).collect()
}

/// The sentences of a text, each with its full stop.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(". ").map(str::trim_end)
}
