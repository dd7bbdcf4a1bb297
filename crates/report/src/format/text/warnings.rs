//! Warnings, the most severe first and each sentence once.

use gpuio_record::{Record, Severity, Warning, WarningKind};

use super::PARAGRAPH_WIDTH;
use crate::wrap::paragraph;

/// Where the names of warnings are explained.
pub(in crate::format) const EXPLAIN: &str = "[NAME]: gpuio explain NAME says what it means";

/// One text and the jobs that it is about.
type WarningText<'a> = (&'a str, Vec<&'a str>);

/// A paragraph per kind of warning. Jobs with the same text share it; if texts differ only in their
/// figures, the common sentences are printed once, below.
pub(super) fn render(record: &Record, width: u16) -> String {
    let mut kinds: Vec<(&WarningKind, Vec<WarningText<'_>>)> = Vec::new();
    for warning in &record.warnings {
        let same = |kind: &WarningKind| {
            std::mem::discriminant(kind) == std::mem::discriminant(&warning.kind)
        };
        match kinds.iter_mut().find(|(kind, _)| same(kind)) {
            Some((_, texts)) => add(texts, warning),
            None => {
                let mut texts = Vec::new();
                add(&mut texts, warning);
                kinds.push((&warning.kind, texts));
            }
        }
    }
    // A stable sort: within a severity the order of the record is kept.
    kinds.sort_by_key(|(kind, _)| kind.severity());
    let all = record.plan.jobs.len();
    let blocks = kinds.iter().map(|(kind, texts)| block(kind, texts, all, width));
    let mut out: String = blocks.collect();
    if kinds.iter().any(|(kind, _)| !marked(kind).is_empty()) {
        out.push_str(EXPLAIN);
        out.push('\n');
    }
    out
}

/// The first sentence of each kind of warning, the most severe first, with the number of jobs where
/// it concerns some of them. Notes are left out.
pub(in crate::format) fn first_sentences(record: &Record) -> Vec<String> {
    let mut kinds: Vec<(&WarningKind, &str, usize)> = Vec::new();
    for warning in &record.warnings {
        if warning.kind.severity() == Severity::Note {
            continue;
        }
        let same = std::mem::discriminant(&warning.kind);
        match kinds.iter_mut().find(|(kind, ..)| std::mem::discriminant(*kind) == same) {
            Some((.., jobs)) => *jobs += 1,
            None => {
                let first = sentences(&warning.text).next().unwrap_or_default();
                kinds.push((&warning.kind, first, usize::from(warning.job.is_some())));
            }
        }
    }
    kinds.sort_by_key(|(kind, ..)| kind.severity());
    let all = record.plan.jobs.len();
    let words = |(kind, text, jobs): (&WarningKind, &str, usize)| {
        let jobs = match jobs {
            jobs if jobs == 0 || jobs == all => String::new(),
            1 => "one job: ".to_owned(),
            jobs => format!("{jobs} jobs: "),
        };
        format!("{jobs}{text}{}", marked(kind))
    };
    kinds.into_iter().map(words).collect()
}

fn add<'a>(texts: &mut Vec<WarningText<'a>>, warning: &'a Warning) {
    let at = texts.iter().position(|(text, _)| *text == warning.text);
    let at = at.unwrap_or_else(|| {
        texts.push((&warning.text, Vec::new()));
        texts.len() - 1
    });
    let names = &mut texts[at].1;
    names.extend(warning.job.as_deref().filter(|job| !names.contains(job)));
}

fn block(kind: &WarningKind, texts: &[WarningText<'_>], all: usize, width: u16) -> String {
    let width = width.min(PARAGRAPH_WIDTH);
    let label = match kind.severity() {
        Severity::Note => "note: ",
        _ => "warning: ",
    };
    let indent = " ".repeat(label.len());
    let shared = shared_sentences(texts);
    let id = marked(kind);
    let mut out = String::new();
    for (nth, (text, names)) in texts.iter().enumerate() {
        let own: Vec<&str> =
            sentences(text).filter(|sentence| !shared.contains(sentence)).collect();
        let last = shared.is_empty() && nth + 1 == texts.len();
        let end = if last { id.as_str() } else { "" };
        let text = format!("{}{}{end}", about(names, all), own.join(" "));
        let first = if nth == 0 { label } else { &indent };
        out.push_str(&paragraph(first, &text, width));
    }
    if !shared.is_empty() {
        out.push_str(&paragraph(&indent, &(shared.join(" ") + &id), width));
    }
    out
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
