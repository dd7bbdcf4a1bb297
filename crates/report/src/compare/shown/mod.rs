//! A comparison in every format.

mod page;
mod words;

use gpuio_base::document::{
    Block, Cell, Columns, Document, Format, Item, Layout, List, Look, Section, Text, Tone, json_of,
};

use serde_json::{Value, json};

use crate::compare::comparison::{Comparison, Pair};
use crate::compare::figure::Row;
use crate::number::many;
use words::{
    alone, cautions, doubts_of, interval, legend, ratio, remarks, runs, threshold, verdict,
};

type Entry<'a> = (&'a Pair, &'a Row);

/// Heads of metric, both values, ratio, interval and verdict.
type Heads = [&'static str; 6];

/// Lines whose further lines are indented by two more.
const HANGING: Layout = Layout { indent: 0, column: 0, gap: 0, colon: false, hang: 2, wide: false };

/// The comparison in this format, a terminal having so many columns. JSON is one object with the
/// fields of [`Comparison`]: numbers are not rounded, one that is not finite is `null`.
pub fn render(comparison: &Comparison, format: &Format, width: u16) -> String {
    match format.name {
        "text" => text(comparison).terminal(width),
        "html" => page::page(comparison).page("compare"),
        "json" => json_of(comparison),
        name => (format.render)(&flat(comparison, name != "csv"), "compare", width),
    }
}

fn entries(comparison: &Comparison) -> Vec<Entry<'_>> {
    let of = |pair| move |row| (pair, row);
    comparison.pairs.iter().flat_map(|pair| pair.rows.iter().map(of(pair))).collect()
}

/// The columns of a row's figures, interval and verdict, behind those that `before` adds.
fn columns<'a>(
    heads: Heads,
    before: impl FnOnce(Columns<'a, Entry<'a>>) -> Columns<'a, Entry<'a>>,
) -> Columns<'a, Entry<'a>> {
    let [.., width, result] = heads;
    figures(heads, "-", before)
        .figures(width, |(_, row)| interval(row))
        .key("interval")
        .words(result, |(pair, row)| Cell::from(verdict(pair, row)).class(page::class(row)))
}

/// The same for programs: numbers, and each conclusion as the word that JSON has.
fn exact<'a>(
    comparison: &'a Comparison,
    heads: Heads,
    before: impl FnOnce(Columns<'a, Entry<'a>>) -> Columns<'a, Entry<'a>>,
) -> Columns<'a, Entry<'a>> {
    let end = |row: &Row, end: f64| match row.has_ends() {
        true => Cell::shown(ratio(end), end),
        false => Cell::default(),
    };
    let word = |value: Value| value.as_str().map_or_else(Cell::default, Cell::from);
    figures(heads, "", before)
        .figures("low", move |(_, row)| end(row, row.low))
        .figures("high", move |(_, row)| end(row, row.high))
        .words("basis", move |(_, row)| word(json!(row.basis)["from"].take()))
        .words("verdict", move |(_, row)| word(json!(row.verdict)))
        .words("threshold", move |(pair, row)| {
            let checks = comparison.threshold.iter().flat_map(|threshold| &threshold.checks);
            let mut own = checks.filter(|check| {
                check.metric == row.metric && std::ptr::eq(&comparison.pairs[check.pair], *pair)
            });
            own.next().map_or_else(Cell::default, |check| word(json!(check.outcome)))
        })
        .words("remark", |(pair, row)| verdict(pair, row))
        .words("notes", move |(pair, _)| {
            let sides = [0, pair.side].map(|side| &comparison.sides[side]);
            let doubts = sides.into_iter().flat_map(|side| &side.doubts);
            let notes = doubts.chain(&pair.notes).cloned();
            notes.chain(doubts_of(comparison, pair)).collect::<Vec<_>>().join("; ")
        })
}

/// Metric, values and ratio, behind the columns that `before` adds; `none` stands where there is no
/// figure.
fn figures<'a>(
    heads: Heads,
    none: &'static str,
    before: impl FnOnce(Columns<'a, Entry<'a>>) -> Columns<'a, Entry<'a>>,
) -> Columns<'a, Entry<'a>> {
    let [metric, baseline, other, of, ..] = heads;
    let value = move |row: &Row, value: f64| match row.is_of_all {
        true => Cell::shown(row.metric.print(value), value),
        false => Cell::from(none),
    };
    before(Columns::new())
        .words(metric, |(_, row)| row.metric.name())
        .key("metric")
        .figures(baseline, move |(_, row)| value(row, row.baseline))
        .figures(other, move |(_, row)| value(row, row.other))
        .figures(of, move |(_, row)| match row.is_of_all && row.is_comparable() {
            true => Cell::shown(ratio(row.ratio), row.ratio),
            false => Cell::from(none),
        })
}

/// Job and load of both sides, and the side where there are several.
fn load(comparison: &Comparison, pair: &Pair) -> Text {
    let mut text = Text::from(pair.baseline.as_str());
    if pair.other != pair.baseline {
        text = text.and(Tone::Break, "").and(Tone::Plain, pair.other.as_str());
    }
    if comparison.sides.len() > 2 {
        let side = format!("other: {}", comparison.sides[pair.side].name);
        text = text.and(Tone::Break, "").and(Tone::Quiet, side);
    }
    text
}

/// Files of a side that are named in a text; JSON has all.
const FILES_MOST: usize = 4;

/// The remarks that all of several pairs have, and those of each beyond them.
fn remarks_of_all(comparison: &Comparison) -> (Vec<String>, Vec<Vec<String>>) {
    let mut each: Vec<Vec<String>> =
        comparison.pairs.iter().map(|pair| remarks(comparison, pair)).collect();
    let [first, others @ ..] = each.as_slice() else { return (Vec::new(), each) };
    let of_all = |line: &&String| others.iter().all(|all| all.contains(line));
    let shared: Vec<String> = match others {
        [] => Vec::new(),
        _ => first.iter().filter(of_all).cloned().collect(),
    };
    each.iter_mut().for_each(|own| own.retain(|line| !shared.contains(line)));
    (shared.into_iter().map(|line| format!("all loads: {line}")).collect(), each)
}

/// The sides, a table for each pair, results without a partner, the basis of the intervals, and the
/// threshold.
fn text(comparison: &Comparison) -> Document {
    let mut page = Document::default();
    page.begin("", "").list(List { layout: HANGING, ..List::of(0, cautions(comparison)) });
    let mut sides = Vec::new();
    for (nth, side) in comparison.sides.iter().enumerate() {
        let files = match side.files.as_slice() {
            [one] if *one == side.name => String::new(),
            files if files.len() > FILES_MOST => {
                let more = many((files.len() - 1) as u64, "more file");
                format!(" ({} and {more})", files[0])
            }
            files => format!(" ({})", files.join(", ")),
        };
        let role = if nth == 0 { "baseline" } else { "other" };
        sides.push(Item::new(role, format!("{}{files}", side.name)));
        sides.extend(side.notes.iter().map(|note| Item::new("", note.as_str())));
    }
    let (of_all, each) = remarks_of_all(comparison);
    page.begin("", "")
        .list(List::new(Layout { hang: 2, ..Layout::labels(9) }, sides))
        .list(List { layout: HANGING, ..List::of(0, of_all) });
    let heads = ["", "baseline", "other", "ratio", "95 % interval", "result"];
    for (pair, remarks) in comparison.pairs.iter().zip(each) {
        let section = page.begin("", "");
        section
            .item(HANGING, Item::new("", format!("{} ({})", title(comparison, pair), runs(pair))));
        let rows = pair.rows.iter().map(|row| (pair, row));
        let table = columns(heads, |columns| columns).table("", rows).look(Look::Indented(2));
        section.push(Block::Table(table));
        section.list(List { layout: Layout { indent: 2, ..HANGING }, ..List::of(0, remarks) });
    }
    let lone = comparison.alone.iter().map(|one| alone(comparison, one, ": ")).collect();
    for (title, indent, lines) in [
        ("without a partner:", 2, lone),
        ("", 0, legend(comparison)),
        ("", 0, threshold(comparison)),
    ] {
        page.begin("", title)
            .list(List { layout: Layout { indent, ..HANGING }, ..List::of(0, lines) });
    }
    page
}

/// Both labels if they differ.
fn title(comparison: &Comparison, pair: &Pair) -> String {
    let labels = if pair.baseline == pair.other {
        pair.baseline.clone()
    } else {
        format!("{} | {}", pair.baseline, pair.other)
    };
    let other = match comparison.sides.len() {
        0..=2 => String::new(),
        _ => format!(", other: {}", comparison.sides[pair.side].name),
    };
    labels + &other
}

/// One table for all pairs, for a comment on a change or another program; results beyond the
/// threshold are above it. For `people` the load stands in the first row of a pair alone.
fn flat<'a>(comparison: &'a Comparison, people: bool) -> Document {
    let mut section = Section::default();
    for line in cautions(comparison) {
        section.paragraph(Text::default().and(Tone::Strong, line));
    }
    let mut sides = comparison.sides.iter().map(|side| side.name.as_str());
    let baseline = sides.next().unwrap_or_default();
    let names = sides.enumerate().fold(Text::default(), |text, (nth, name)| {
        text.and(Tone::Strong, if nth == 0 { "" } else { ", " }).and(Tone::StrongCode, name)
    });
    section.paragraph(names.and(Tone::Plain, " against baseline ").and(Tone::Code, baseline));
    section.list(List::of(0, threshold(comparison)));
    let heads = ["", "Baseline", "Other", "Ratio", "95 % interval", "Verdict"];
    let shown = move |(pair, row): &Entry<'_>| {
        !people || pair.rows.first().is_some_and(|first| std::ptr::eq(first, *row))
    };
    let of_pair = move |entry: &Entry<'_>, text: fn(&Comparison, &Pair) -> Text| match shown(entry)
    {
        true => text(comparison, entry.0).into(),
        false => Cell::default(),
    };
    let before = |columns: Columns<'a, Entry<'a>>| {
        columns
            .words("Load", move |entry| match people {
                true => of_pair(entry, load),
                false => title(comparison, entry.0).into(),
            })
            .words("Runs", move |entry| of_pair(entry, |_, pair| runs(pair).into()))
    };
    let table = match people {
        true => columns(heads, before),
        false => exact(comparison, heads, before),
    };
    section.table(table.table("pairs", entries(comparison)));
    let (mut lines, each) = remarks_of_all(comparison);
    for (pair, remarks) in comparison.pairs.iter().zip(each) {
        lines.extend(remarks.iter().map(|line| format!("{}: {line}", pair.baseline)));
    }
    for one in &comparison.alone {
        lines.push(format!("without a partner: {}", alone(comparison, one, " ")));
    }
    for side in &comparison.sides {
        lines.extend(side.notes.iter().map(|note| format!("{}: {note}", side.name)));
    }
    lines.extend(legend(comparison));
    section.list(List::of(0, lines));
    Document { sections: vec![section], ..Document::default() }
}
