//! `gpuio explain`: the meaning of a warning of a run, a rule of `check`, a word of tables and
//! reports, or a key of job files.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use gpuio_base::document::{Document, Item, Layout, List, Section};
use gpuio_job::spec::nearest;
use gpuio_machine::check::{RULES, text};
use gpuio_record::{WarningAbout, warning_kinds};

use crate::args::{Explain, explained};
use crate::failure::Failure;
use crate::formats;
use crate::output;

pub(crate) fn run(args: &Explain) -> Result<ExitCode, Failure> {
    let format = formats::document(args.format.as_deref())?;
    let page = match args.name.join(" ") {
        _ if args.all => all_words(),
        name if name.is_empty() => list(),
        name => match (about(&name), args.name.as_slice()) {
            (Err(_), several @ [_, _, ..]) => each(several)?,
            (page, _) => page?,
        },
    };
    output::put(&formats::print(format, "explain", &page)).map(|()| ExitCode::SUCCESS)
}

/// Several names, where they are none together.
fn each(names: &[String]) -> Result<Document, Failure> {
    let mut page = Document::new(names.join(" "));
    for name in names {
        page.sections.extend(about(name)?.sections);
    }
    Ok(page)
}

/// Names have `_` in records and `-` in `check`; both are understood.
fn about(name: &str) -> Result<Document, Failure> {
    let plain = |name: &str| name.trim_matches(['[', ']']).to_lowercase().replace('_', "-");
    let wanted = plain(name);
    if let Some(rule) = RULES.iter().find(|rule| plain(rule.name) == wanted) {
        return Ok(text::explain(rule));
    }
    let kind = warning_kinds().into_iter().find(|kind| plain(&kind.id) == wanted);
    let word = || words::find(name).map(|(word, meaning)| of_word(&word, &meaning));
    kind.map(|kind| warning(&kind)).or_else(word).ok_or_else(|| {
        let none = format!(
            "{name}: it is no warning, no rule of check, no word of reports and no key of job files"
        );
        Failure::Usage(match similar(&wanted) {
            Some(known) => format!("{none}; did you mean {known}?"),
            None => format!("{none}; gpuio explain lists them"),
        })
    })
}

/// The name that was probably meant, as `explain` lists it.
fn similar(wanted: &str) -> Option<String> {
    let plain = |name: &String| name.replace('_', "-");
    let names: Vec<String> = explained().into_iter().chain(words::all()).collect();
    let all: Vec<String> = names.iter().map(plain).collect();
    let near = nearest(wanted, all.iter().map(String::as_str))?;
    names.iter().find(|name| plain(name) == near).cloned()
}

fn warning(kind: &WarningAbout) -> Document {
    let mut section = Section::default();
    section.item(Layout::labels(0), Item::new(kind.id.as_str(), kind.meaning.as_str()));
    let labels = Layout { indent: 2, ..Layout::labels(13) };
    section.item(labels, Item::new("severity", kind.severity.meaning()));
    section.item(labels, Item::new("for example", kind.example.as_str()));
    section.item(labels, Item::new("ignore it if", kind.ignore_if));
    let fields = kind.fields.iter().map(|(field, meaning)| format!("{field}: {meaning}"));
    section.list(List::behind("in records", labels, fields));
    let mut page = Document::new(kind.id.as_str());
    page.push(section);
    page
}

fn of_word(word: &str, meaning: &str) -> Document {
    let mut section = Section::default();
    section.item(Layout::labels(0), Item::new(word, meaning));
    let mut page = Document::new(word);
    page.push(section);
    page
}

/// Every word, and every key of job files, with its meaning.
fn all_words() -> Document {
    let mut page = Document::new("Words");
    let known = words::all().collect::<BTreeSet<String>>();
    let known = known.iter().filter_map(|word| words::find(word)).collect::<BTreeMap<_, _>>();
    let items = known.iter().map(|(word, meaning)| Item::new(word.as_str(), meaning.as_str()));
    page.begin("", "Words of tables and reports, and keys of job files:")
        .list(List::new(Layout::columns(24, 2), items));
    page
}

fn list() -> Document {
    let kinds = warning_kinds();
    let warnings = kinds.iter().map(|kind| (kind.id.as_str(), kind.meaning.as_str()));
    let rules = RULES.iter().map(|rule| (rule.name, rule.question));
    let column = warnings.clone().chain(rules.clone()).map(|(name, _)| name.len()).max();
    let layout = Layout::columns(column.unwrap_or(0), 2);
    let mut page = Document::new("Warnings and rules");
    let items = |(name, text): (&str, &str)| Item::new(name, text);
    for (title, list) in [
        ("Warnings of runs:", List::new(layout, warnings.map(items))),
        ("Rules of gpuio check:", List::new(layout, rules.map(items))),
    ] {
        page.begin("", title).list(list);
    }
    page.begin("", "Words of tables and reports:").list(List::of(
        2,
        ["such as bounce, knee, of best or CoV: gpuio explain WORD; all: gpuio explain --all"],
    ));
    page
}
