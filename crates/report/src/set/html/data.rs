//! The blocks of data that the page's scripts read.
//!
//! `figures` is read at once and holds columns; `spreads` (distributions) and `series` are read
//! when their plots become visible.

use gpuio_base::stat::Summary;
use gpuio_base::units::{Powers, powers};
use gpuio_record::metric::List;
use gpuio_record::{Metric, Proof};
use serde_json::{Value, json};

use super::super::Set;
use super::super::axes::{Column, Role, columns, shared_settings, varied, with_settings};
use super::super::rows::Row;
use super::super::{chosen, colours, findings_text, fix, plot, series};
use crate::ceilings;

/// Up to this many rows, distributions have the finer of two resolutions.
const FEW: usize = 500;

/// Each block's name and its text.
pub(super) fn blocks(set: &Set, rows: &[Row<'_>]) -> [(&'static str, String); 3] {
    [
        ("figures", block(&figures(set, rows))),
        ("spreads", block(&spreads(rows))),
        ("series", block(&series::all(rows))),
    ]
}

/// JSON that can't end its HTML element: `<` occurs only in strings, where it is escaped.
fn block(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

fn figures(set: &Set, rows: &[Row<'_>]) -> Value {
    let several = set.members.len() > 1;
    let figure = |metric: &Metric| {
        let values = rows.iter().map(|row| digits(metric.of(row)));
        json!({
            "key": metric.key(),
            "label": metric.title(),
            "unit": metric.unit().word(),
            "better": metric.more_is_better().map(|more| if more { "more" } else { "less" }),
            "values": values.collect::<Vec<Option<f64>>>(),
        })
    };
    let columns = columns(set, rows);
    let records: Vec<usize> = rows.iter().map(|row| row.nth).collect();
    let points = fix::points(&columns, &records);
    let mut point_of = vec![0; rows.len()];
    for (nth, point) in points.iter().enumerate() {
        point.iter().for_each(|row| point_of[*row] = nth);
    }
    let taken =
        |row: &Row<'_>| row.result.proof.as_ref().and_then(Proof::is_as_requested).map(u8::from);
    let shared = shared_settings(rows);
    let load = |row: &Row<'_>| with_settings(row.load(), row, &shared);
    json!({
        "title": set.title,
        "software": super::super::rows::software(set),
        "rows": rows.len(),
        "si": powers(Powers::Iec) == Powers::Si,
        "varied": varied(set),
        "names": rows.iter().map(|row| findings_text::name(row, several)).collect::<Vec<String>>(),
        "colours": colours::of_paths(rows),
        "loads": rows.iter().map(load).collect::<Vec<String>>(),
        "disturbed": rows.iter().map(Row::disturbed).collect::<Vec<String>>(),
        "own_depth": rows
            .iter()
            .map(|row| u8::from(chosen::depth_is_ours(row)))
            .collect::<Vec<u8>>(),
        "as_requested": rows.iter().map(taken).collect::<Vec<Option<u8>>>(),
        "ceilings": rows
            .iter()
            .map(|row| row.figures().of_ceiling.as_ref().map(|of| ceilings::word(of.kind)))
            .collect::<Vec<Option<&str>>>(),
        "jobs": rows.iter().map(|row| [row.nth, row.job]).collect::<Vec<[usize; 2]>>(),
        "point_of": point_of,
        "points": plot::labels(rows, &columns, &points),
        "bars": { "least": plot::LEAST, "most": plot::MOST_BARS },
        "axes": columns.iter().map(column).collect::<Vec<Value>>(),
        "figures": set.metrics(List::Page).iter().map(figure).collect::<Vec<Value>>(),
    })
}

/// An axis: its values in order, and for each row the index of its value.
fn column(column: &Column) -> Value {
    let role = match column.role {
        Role::Load => "load",
        Role::CameAlong => "came along",
        Role::Name => "name",
    };
    json!({
        "key": column.key,
        "label": column.label,
        "filter": column.filter,
        "role": role,
        "words": column.words,
        "numbers": column.numbers,
        "of": column.of,
    })
}

/// Histograms of the total latency, with 2^`bits` buckets per power of two: `[index, count, …]`.
fn spreads(rows: &[Row<'_>]) -> Value {
    let bits = if rows.len() <= FEW { 5 } else { 2 };
    let of = |row: &Row<'_>| {
        let legs = row.figures().latency.as_ref()?;
        Some(coarse(&legs.total, bits))
    };
    json!({ "bits": bits, "rows": rows.iter().map(of).collect::<Vec<Option<Vec<u64>>>>() })
}

/// The buckets of a summary in a coarser resolution: index and count alternately, by index.
fn coarse(summary: &Summary, bits: u32) -> Vec<u64> {
    let mut flat: Vec<u64> = Vec::new();
    for (low, count) in &summary.buckets {
        let index = index(*low, bits);
        match flat.as_mut_slice() {
            [.., last, sum] if *last == index => *sum += count,
            _ => flat.extend([index, *count]),
        }
    }
    flat
}

/// The bucket of a value: values below 2^`bits` have one each, and each power of two above has
/// 2^`bits`. The page's script has the inverse.
fn index(value: u64, bits: u32) -> u64 {
    let Some(top) = value.checked_ilog2().filter(|top| *top >= bits) else {
        return value;
    };
    let shift = top - bits;
    (u64::from(shift) << bits) + (value >> shift)
}

/// A figure as in the record; a value that is not finite is absent.
fn digits(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// A figure for a plot, rounded to four digits. The tables have all digits.
pub(in crate::set) fn four_digits(value: Option<f64>) -> Option<f64> {
    let value = value.filter(|value| value.is_finite())?;
    if value == 0.0 {
        return Some(0.0);
    }
    let scale = 10f64.powf(3.0 - value.abs().log10().floor());
    let rounded = (value * scale).round() / scale;
    Some(if rounded.is_finite() { rounded } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grains_are_ascending_and_as_wide_as_they_say() {
        for bits in [2, 5] {
            let mut last = 0;
            for value in 0..100_000u64 {
                let at = index(value, bits);
                assert!(at == last || at == last + 1, "{bits} {value}");
                last = at;
            }
        }

        assert_eq!(index(1 << 20, 5), 512);
    }

    #[test]
    fn pictures_have_four_digits() {
        assert_eq!(four_digits(Some(123_456.0)), Some(123_500.0));
        assert_eq!(four_digits(Some(0.001_234_56)), Some(0.001_235));
        assert_eq!(four_digits(Some(f64::NAN)), None);
    }

    #[test]
    fn a_block_can_not_end_its_element() {
        let text = block(&json!({ "name": "</script><!--" }));
        assert!(!text.contains('<'), "{text}");
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["name"], "</script><!--");
    }
}
