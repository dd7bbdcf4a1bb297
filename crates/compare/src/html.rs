//! A comparison as a page: what got worse comes first, then what got better, then the rest. Each
//! ratio is drawn with its interval. One file without scripts that loads nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gpuio_base::units::markup;

use crate::comparison::{Comparison, Pair};
use crate::figure::{Row, Verdict};
use crate::table::{cells, legend, ratio, runs, threshold};

/// Nothing is fetched, framed, sent or run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; \
                      base-uri 'none'";

/// Width of the picture of a ratio.
const WIDTH: f64 = 140.0;
/// The scale of the pictures reaches at least and at most this factor to either side of 1.
const REACH: (f64, f64) = (1.1, 100.0);

/// A row with its pair.
type Entry<'a> = (&'a Pair, &'a Row);

/// The page.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let (baseline, others) = names.split_first().map_or(("", &[][..]), |(a, b)| (*a, b));
    let title = format!("{} against {baseline}", others.join(", "));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"generator\" content=\"gpuio compare\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        markup(&title),
        include_str!("../assets/compare.css")
    );
    let entries: Vec<Entry<'_>> = comparison
        .pairs
        .iter()
        .flat_map(|pair| pair.rows.iter().map(move |row| (pair, row)))
        .collect();
    for line in conclusion(&entries) {
        let _ = writeln!(out, "<p class=\"conclusion\">{}</p>", markup(&line));
    }
    for line in threshold(comparison) {
        let alarm = if line.starts_with("regression") { "alarm" } else { "quiet" };
        let _ = writeln!(out, "<p class=\"{alarm}\">{}</p>", markup(&line));
    }
    differing(&mut out, comparison);
    groups(&mut out, comparison, &entries);
    rest(&mut out, comparison);
    out.push_str("<footer><p>Written by gpuio compare. This file needs no network.</p></footer>\n");
    out.push_str("</body>\n</html>\n");
    out
}

/// Above 1 if the other side is better.
fn gain(row: &Row) -> f64 {
    if row.metric.more_is_better() == Some(true) { row.ratio } else { 1.0 / row.ratio }
}

fn is(entry: &Entry<'_>, verdict: Verdict) -> bool {
    entry.1.verdict == verdict
}

fn loads(number: usize) -> String {
    if number == 1 { "1 load".to_owned() } else { format!("{number} loads") }
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
            parts.push(format!("{what} at {number}"));
        }
    };
    say(count(Verdict::Worse), "lower");
    say(count(Verdict::Better), "higher");
    say(count(Verdict::Noise), "not distinguishable");
    say(count(Verdict::NotEnoughRuns), "not enough runs");
    let mut lines = Vec::new();
    if !main.is_empty() {
        lines.push(format!("Throughput of {}: {}.", loads(main.len()), parts.join(", ")));
    }
    let worst = entries.iter().filter(|entry| is(entry, Verdict::Worse));
    let worst = worst.min_by(|a, b| gain(a.1).total_cmp(&gain(b.1)));
    let of = |(pair, row): &Entry<'_>| {
        let [name, before, after, ratio, interval, _] = cells(row);
        format!("{}, {name}: {before} to {after}, ratio {ratio} ({interval})", pair.baseline)
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

/// Values of one property that are listed at most.
const VALUES: usize = 5;

/// What differs between the sides, each property once, those that matter first.
fn differing(out: &mut String, comparison: &Comparison) {
    let mut found: BTreeMap<(bool, &str), (Vec<String>, usize)> = BTreeMap::new();
    for pair in &comparison.pairs {
        for difference in &pair.differences {
            let values = format!("{} | {}", difference.baseline, difference.other);
            let key = (difference.despite.is_none(), difference.what.as_ref());
            let (known, times) = found.entry(key).or_default();
            *times += 1;
            if !known.contains(&values) {
                known.push(values);
            }
        }
        for what in &pair.unknown_properties {
            let (known, times) = found.entry((true, what)).or_default();
            *times += 1;
            known.push("unknown for one side".to_owned());
            known.dedup();
        }
    }
    out.push_str("<h2>What differs besides the figures</h2>\n");
    if found.is_empty() {
        out.push_str("<p>Nothing that is recorded.</p>\n");
        return;
    }
    out.push_str("<ul>\n");
    for ((minor, what), (values, times)) in found {
        let mut text = values.iter().take(VALUES).cloned().collect::<Vec<String>>().join("; ");
        if values.len() > VALUES {
            let _ = write!(text, "; and {} more", values.len() - VALUES);
        }
        let matters = if minor { "" } else { " <strong>matters</strong>" };
        let of = match times == comparison.pairs.len() {
            true => String::new(),
            false => format!(", {} of {}", loads(times), comparison.pairs.len()),
        };
        let (what, text) = (markup(what), markup(&text));
        let _ = writeln!(out, "<li>{what}: {text}<span class=\"quiet\">{of}{matters}</span></li>");
    }
    out.push_str("</ul>\n");
}

fn groups(out: &mut String, comparison: &Comparison, entries: &[Entry<'_>]) {
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
    let undecided = [Verdict::Noise, Verdict::NotEnoughRuns];
    let rest = of(&|row| undecided.contains(&row.verdict) && !row.is_of_single_runs());
    let alone = worse.is_empty() && better.is_empty() && single.is_empty();
    for (title, rows, open) in [
        ("Worse", worse, true),
        ("Better", better, true),
        ("One run each: only repeats show whether it is a difference", single, true),
        ("No difference, or not enough runs", rest, alone),
    ] {
        if rows.is_empty() {
            continue;
        }
        let open = if open { " open" } else { "" };
        let _ = writeln!(out, "<details{open}><summary>{title}: {}</summary>", rows.len());
        table(out, comparison, &rows, reach);
        out.push_str("</details>\n");
    }
}

fn table(out: &mut String, comparison: &Comparison, rows: &[Entry<'_>], reach: f64) {
    out.push_str(
        "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">load</th>\
         <th scope=\"col\">figure</th><th scope=\"col\">runs</th>\
         <th scope=\"col\" class=\"n\">baseline</th><th scope=\"col\" class=\"n\">other</th>\
         <th scope=\"col\" class=\"n\">ratio</th><th scope=\"col\" class=\"n\">95 % interval</th>",
    );
    let _ = writeln!(
        out,
        "<th scope=\"col\">÷{0} … 1 … ×{0}</th><th scope=\"col\">result</th></tr></thead><tbody>",
        ratio(reach)
    );
    for (pair, row) in rows {
        let [name, before, after, ratio, interval, result] = cells(row);
        let mut label = markup(&pair.baseline).into_owned();
        if pair.other != pair.baseline {
            let _ = write!(label, "<br>{}", markup(&pair.other));
        }
        if comparison.sides.len() > 2 {
            let side = markup(&comparison.sides[pair.side].name);
            let _ = write!(label, "<br><span class=\"quiet\">against {side}</span>");
        }
        let class = class(row);
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{label}</th><td>{name}</td><td>{}</td><td class=\"n\">{before}\
             </td><td class=\"n\">{after}</td><td class=\"n\">{ratio}</td><td class=\"n\">\
             {interval}</td><td>{}</td><td class=\"{class}\">{}</td></tr>",
            runs(pair),
            picture(row, reach, class),
            markup(&result)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

fn class(row: &Row) -> &'static str {
    match row.verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::Noise | Verdict::NotEnoughRuns => "even",
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
fn rest(out: &mut String, comparison: &Comparison) {
    let name = |side: usize| comparison.sides[side].name.as_str();
    let alone: Vec<String> = comparison
        .alone
        .iter()
        .map(|one| format!("{}: in {}, not in {}", one.what, name(one.side), name(one.not_in)))
        .collect();
    let mut notes: Vec<String> = Vec::new();
    for note in comparison.pairs.iter().flat_map(|pair| &pair.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let lacking = comparison.metrics.iter().filter(|metric| {
        let lacks = |pair: &Pair| pair.rows.iter().all(|row| row.metric != **metric);
        comparison.pairs.iter().any(lacks)
    });
    notes.extend(
        lacking.map(|metric| format!("{} is only on one side of some loads", metric.name())),
    );
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
        ("What the intervals rest on", legend(comparison)),
    ] {
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(out, "<details><summary>{title}: {}</summary><ul>", lines.len());
        for line in lines {
            let _ = writeln!(out, "<li>{}</li>", markup(&line));
        }
        out.push_str("</ul></details>\n");
    }
}
