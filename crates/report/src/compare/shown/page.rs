//! A comparison as a page: what got worse comes first, then what got better, then the rest. Each
//! ratio is drawn with its interval.

use std::fmt::Write as _;

use gpuio_base::document::{Cell, Document, Item, List, Section, Text, Tone, grouped, unique};

use super::words::{absent, alone, cautions, disturbed, interval, legend, ratio, threshold};
use super::{Entry, Heads, columns, entries, load};
use crate::compare::comparison::{Comparison, Pair};
use crate::compare::figure::{Row, Verdict};
use crate::number::many;

/// Width of the picture of a ratio.
const WIDTH: f64 = 140.0;
/// The scale of the pictures reaches at least and at most this factor to either side of 1.
const REACH: (f64, f64) = (1.1, 100.0);
/// Values of one property that are listed at most.
const VALUES: usize = 5;
const HEADS: Heads = ["figure", "baseline", "other", "ratio", "95 % interval", "result"];

pub(super) fn page(comparison: &Comparison) -> Document {
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let (baseline, others) = names.split_first().map_or(("", &[][..]), |(a, b)| (*a, b));
    let mut page = Document::new(format!("{} against baseline {baseline}", others.join(", ")));
    let entries = entries(comparison);
    let mut first = Section::default();
    for line in cautions(comparison) {
        first.emphasized("alarm", line);
    }
    for line in conclusion(&entries) {
        first.emphasized("conclusion", line);
    }
    for line in threshold(comparison) {
        let class = if line.starts_with("regression") { "alarm" } else { "quiet" };
        first.emphasized(class, line);
    }
    page.push(first).push(differing(comparison));
    groups(&mut page, comparison, &entries);
    rest(&mut page, comparison);
    page
}

/// Above 1 if the other side is better.
fn gain(row: &Row) -> f64 {
    if row.metric.more_is_better() == Some(true) { row.ratio } else { 1.0 / row.ratio }
}

fn is(entry: &Entry<'_>, verdict: Verdict) -> bool {
    entry.1.verdict == verdict
}

fn loads(number: usize) -> String {
    many(number as u64, "load")
}

/// The throughput of all pairs, and the worst of any metric.
fn conclusion(entries: &[Entry<'_>]) -> Vec<String> {
    if entries.is_empty() {
        return vec!["Nothing could be compared.".to_owned()];
    }
    let main: Vec<&Entry<'_>> =
        entries.iter().filter(|(_, row)| row.metric.key() == "throughput").collect();
    let count = |verdict| main.iter().filter(|entry| is(entry, verdict)).count();
    let mut parts: Vec<String> = Vec::new();
    let mut say = |number: usize, what: &str| {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    };
    say(count(Verdict::Worse), "lower");
    say(count(Verdict::Better), "higher");
    say(count(Verdict::Noise), "without a difference (noise)");
    say(count(Verdict::RequestedRate), "at the requested rate");
    say(count(Verdict::NotEnoughRuns), "undetermined (not enough runs)");
    say(count(Verdict::NotComparable), "not comparable");
    let mut lines = Vec::new();
    if !main.is_empty() {
        lines.push(format!("Throughput of {}: {}.", loads(main.len()), parts.join(", ")));
    }
    let worst = entries.iter().filter(|entry| is(entry, Verdict::Worse));
    let worst = worst.min_by(|a, b| gain(a.1).total_cmp(&gain(b.1)));
    let of = |(pair, row): &Entry<'_>| {
        let [before, after] = [row.baseline, row.other].map(|value| row.metric.print(value));
        let (name, ratio, interval) = (row.metric.name(), ratio(row.ratio), interval(row));
        let (load, mark) = (&pair.baseline, disturbed(pair));
        format!("{load}, {name}: {before} to {after}, ratio {ratio} ({interval}){mark}")
    };
    let best = entries.iter().filter(|entry| is(entry, Verdict::Better));
    let best = best.max_by(|a, b| gain(a.1).total_cmp(&gain(b.1)));
    lines.push(match (worst, best) {
        (Some(worst), None) => format!("The largest loss is {}.", of(worst)),
        (Some(worst), Some(best)) => {
            format!("The largest loss is {}. The largest gain is {}.", of(worst), of(best))
        }
        (None, Some(best)) => {
            format!("Nothing is certainly worse. The largest gain is {}.", of(best))
        }
        (None, None) => "Nothing is certainly worse or better.".to_owned(),
    });
    lines
}

/// The values of both sides.
fn sides([baseline, other]: [&str; 2]) -> String {
    format!("baseline: {baseline}; other: {other}")
}

/// The differences between the sides, each property once, those that matter first.
fn differing(comparison: &Comparison) -> Section {
    let mut section = Section::new("", "Differences besides the figures");
    let of_pair = |pair: &'_ Pair| {
        let values = pair.differences.iter().map(|one| {
            let values = sides([one.baseline.as_str(), one.other.as_str()]);
            ((one.despite.is_none(), one.what.to_string()), values)
        });
        let others = pair.work_of_others();
        let others = others.map(|how| ((false, "work of others".to_owned()), sides(how)));
        let unknown = pair.unknown_properties.iter();
        let unknown = unknown.map(|what| ((true, what.clone()), "unknown for one side".into()));
        let of_both = match pair.unknown_of_both.join(", ") {
            none if none.is_empty() => None,
            all => Some(((true, "unknown for both sides".to_owned()), all)),
        };
        let unknown = unknown.chain(of_both);
        values.chain(others).chain(unknown).collect::<Vec<((bool, String), String)>>()
    };
    let mut found = grouped(comparison.pairs.iter().flat_map(of_pair));
    if found.is_empty() {
        section.paragraph("Nothing that is recorded.");
        return section;
    }
    found.sort();
    let all = comparison.pairs.len();
    let items = found.into_iter().map(|((minor, what), values)| {
        let times = values.len();
        let mut values = unique(values);
        let more = values.len().saturating_sub(VALUES);
        values.truncate(VALUES);
        if more > 0 {
            values.push(format!("and {more} more"));
        }
        let of = if times == all { String::new() } else { format!("in {} of {all}", loads(times)) };
        let matters = if minor { "" } else { "the figures depend on it" };
        let head = [matters, of.as_str()];
        let head: Vec<&str> = head.into_iter().filter(|words| !words.is_empty()).collect();
        let head = if head.is_empty() { String::new() } else { format!("({})", head.join(", ")) };
        let (one, items) = match values.len() {
            1 => (values.remove(0) + " ", Vec::new()),
            _ => (String::new(), values.into_iter().map(|one| Item::new("", one)).collect()),
        };
        let text = Text::default().and(Tone::Plain, one).and(Tone::Quiet, head);
        Item { items, ..Item::new(what, text) }
    });
    section.list(List::new(Default::default(), items));
    section
}

fn groups(page: &mut Document, comparison: &Comparison, entries: &[Entry<'_>]) {
    let reach = reach(entries);
    let of = |fits: &dyn Fn(&Row) -> bool| -> Vec<Entry<'_>> {
        entries.iter().filter(|(_, row)| fits(row)).copied().collect()
    };
    let mut worse = of(&|row| row.verdict == Verdict::Worse);
    worse.sort_by(|a, b| gain(a.1).total_cmp(&gain(b.1)));
    let mut better = of(&|row| row.verdict == Verdict::Better);
    better.sort_by(|a, b| gain(b.1).total_cmp(&gain(a.1)));
    let mut single = of(&Row::is_of_single_runs);
    single.sort_by(|a, b| gain(a.1).total_cmp(&gain(b.1)));
    let decided = [Verdict::Worse, Verdict::Better];
    let rest = of(&|row| !decided.contains(&row.verdict) && !row.is_of_single_runs());
    let open = worse.is_empty() && better.is_empty() && single.is_empty();
    for (title, rows, open) in [
        ("Worse", worse, true),
        ("Better", better, true),
        ("One run each: only repeats show whether it is a difference", single, true),
        ("No difference, or not enough runs", rest, open),
    ] {
        let scale = format!("÷{0} … 1 … ×{0}", ratio(reach));
        let table = columns(HEADS, |table| {
            table
                .words("load", |(pair, _)| load(comparison, pair))
                .words("runs", |(pair, _)| super::words::runs(pair))
        })
        .words(scale, |(_, row)| Cell::picture(picture(row, reach, class(row))))
        .table(title, &rows);
        let mut section = Section::new("", format!("{title}: {}", rows.len())).fold(open);
        section.table(table);
        page.push(section);
    }
}

/// How a verdict is emphasized.
pub(super) fn class(row: &Row) -> &'static str {
    match row.verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        _ => "even",
    }
}

/// The factor to either side of 1 that all pictures show.
fn reach(entries: &[Entry<'_>]) -> f64 {
    let known = entries.iter().filter(|(_, row)| !row.is_boundless());
    let ends = known.flat_map(|(_, row)| [row.low, row.high, row.ratio]);
    let far = ends.filter(|end| *end > 0.0 && end.is_finite()).map(|end| end.max(1.0 / end));
    far.fold(REACH.0, f64::max).min(REACH.1)
}

/// The interval as a bar on a logarithmic scale, 1 in the middle; an end beyond the scale is an
/// arrow.
fn picture(row: &Row, reach: f64, class: &str) -> String {
    if row.verdict == Verdict::NotComparable {
        return String::new();
    }
    let middle = WIDTH / 2.0;
    let place = |ratio: f64| {
        let share = ratio.max(f64::MIN_POSITIVE).ln() / reach.ln();
        middle + share.clamp(-1.0, 1.0) * (middle - 8.0)
    };
    let mut out = format!(
        "<svg width=\"{WIDTH}\" height=\"18\" viewBox=\"0 0 {WIDTH} 18\" role=\"img\" \
         aria-label=\"ratio {:.3}\"><line class=\"axis\" x1=\"4\" x2=\"{}\" y1=\"9\" y2=\"9\"/>\
         <line class=\"axis\" x1=\"{middle}\" x2=\"{middle}\" y1=\"1\" y2=\"17\"/>",
        row.ratio,
        WIDTH - 4.0
    );
    if !row.is_boundless() {
        let (low, high) = (place(row.low), place(row.high));
        let _ = write!(
            out,
            "<line class=\"bar {class}\" x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"9\" y2=\"9\"/>"
        );
        if row.low * reach < 1.0 {
            let _ = write!(out, "<path class=\"{class}\" d=\"M9 4L3 9L9 14Z\"/>");
        }
        if row.high > reach {
            let _ = write!(
                out,
                "<path class=\"{class}\" d=\"M{0} 4L{1} 9L{0} 14Z\"/>",
                WIDTH - 9.0,
                WIDTH - 3.0
            );
        }
    }
    let _ = write!(
        out,
        "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"9\" r=\"4\"/></svg>",
        place(row.ratio)
    );
    out
}

/// Results without a partner, notes, sides, and what the intervals are based on; folded.
fn rest(page: &mut Document, comparison: &Comparison) {
    let alone = comparison.alone.iter().map(|one| alone(comparison, one, ": ")).collect();
    let mut notes = unique(comparison.pairs.iter().flat_map(|pair| pair.notes.clone()));
    let lacking: Vec<_> = comparison.pairs.iter().flat_map(|pair| pair.absent.clone()).collect();
    let counts_each_io = comparison.pairs.iter().all(|pair| pair.counts_each_io);
    notes.extend(absent(&lacking, counts_each_io, " of some loads"));
    let mut sides: Vec<String> = Vec::new();
    for (nth, side) in comparison.sides.iter().enumerate() {
        let role = if nth == 0 { "baseline" } else { "other" };
        sides.push(format!("{role}: {}: {}", side.name, side.files.join(", ")));
        sides.extend(side.notes.iter().map(|note| format!("{}: {note}", side.name)));
    }
    for (title, lines) in [
        ("Without a partner", alone),
        ("Notes on the runs", notes),
        ("Sides and files", sides),
        ("Basis of the intervals", legend(comparison)),
    ] {
        let mut section = Section::new("", format!("{title}: {}", lines.len())).fold(false);
        section.list(List::of(0, lines));
        page.push(section);
    }
}
