//! Figures that tools measured, as they printed them. Nothing is concluded from them here; devices
//! that they name are listed.

pub(crate) mod cufile_log;
pub(crate) mod dmon;
pub(crate) mod gds_stats;
pub(crate) mod iostat;
pub(crate) mod nvidia_fs;
pub(crate) mod results;

pub use cufile_log::LogLine;
pub use results::Results;

use crate::Captured;

/// More rows than a text of a run's minutes has.
const MOST_ROWS: usize = 100_000;
/// More tables than people paste.
const MOST_TABLES: usize = 1000;

/// A table of figures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// The command that printed it.
    pub command: &'static str,
    /// The names of its columns, as printed; units stand in them.
    pub columns: Vec<String>,
    /// Its rows in their order: the same device again is a later sample.
    pub rows: Vec<Sample>,
}

/// Figures of one device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// The device: `nvme2n1`, `GPU2`, `processors`, `process`.
    pub of: String,
    /// A value for each column; `None` where the tool prints none.
    pub values: Vec<Option<f64>>,
}

impl Measured {
    pub(crate) fn new(command: &'static str, columns: &[&str]) -> Measured {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Measured { command, columns, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, of: &str, values: Vec<Option<f64>>) {
        if self.rows.len() < MOST_ROWS {
            self.rows.push(Sample { of: of.to_owned(), values });
        }
    }

    /// The devices in the order of their first sample, each with its number of samples and the mean
    /// of each column over those that have a value.
    #[must_use]
    pub fn means(&self) -> Vec<(&str, usize, Vec<Option<f64>>)> {
        let mut devices: Vec<(&str, Vec<&Sample>)> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        for row in &self.rows {
            let at = *places.entry(row.of.as_str()).or_insert_with(|| {
                devices.push((&row.of, Vec::new()));
                devices.len() - 1
            });
            devices[at].1.push(row);
        }
        let of_column = |rows: &[&Sample], column: usize| {
            let known = rows.iter().filter_map(|row| row.values.get(column).copied().flatten());
            let (sum, count) =
                known.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
            (count > 0.0).then(|| sum / count)
        };
        devices
            .into_iter()
            .map(|(of, rows)| {
                let means = (0..self.columns.len()).map(|column| of_column(&rows, column));
                (of, rows.len(), means.collect())
            })
            .collect()
    }
}

/// Adds a table that has rows.
pub(crate) fn put(captured: &mut Captured, table: Measured) {
    if !table.rows.is_empty() && captured.measured.len() < MOST_TABLES {
        captured.measured.push(table);
    }
}

/// A number as tools print it, also with a comma for the point; `None` for `-`, `N/A` and words.
pub(crate) fn number(word: &str) -> Option<f64> {
    let word = word.trim_end_matches(['%', ',']);
    let plain = word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    let value: f64 = plain.then(|| word.replace(',', ".").parse().ok()).flatten()?;
    value.is_finite().then_some(value)
}

/// The values of a row below its head, both without the first column; dots that people put for
/// columns that they cut stand in either, and what is left and right of them keeps its end.
pub(crate) fn below(head: &[&str], words: &[&str]) -> Option<Vec<Option<f64>>> {
    let dots = |list: &[&str]| list.iter().position(|word| is_cut(word));
    let names = head.iter().filter(|word| !is_cut(word)).count();
    let mut values: Vec<Option<f64>> = vec![None; names];
    let Some(cut) = dots(words).or(dots(head).filter(|_| words.len() != names)) else {
        if words.len() != names {
            return None;
        }
        return Some(words.iter().map(|word| number(word)).collect());
    };
    let left = dots(head).unwrap_or(cut).min(cut);
    for (value, word) in values.iter_mut().zip(&words[..left.min(words.len())]) {
        *value = number(word);
    }
    let right: Vec<&str> = words.iter().skip(left).filter(|word| !is_cut(word)).copied().collect();
    for (value, word) in values.iter_mut().rev().zip(right.iter().rev()) {
        *value = number(word);
    }
    Some(values)
}

fn is_cut(word: &str) -> bool {
    matches!(word, "." | ".." | "..." | "…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_columns_keep_the_ends_of_their_rows() {
        let head = ["r/s", "rkB/s", ".", ".", ".", "%util"];
        let row = |line: &str| below(&head, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(row("1.5 2 . . . 100.00"), Some(vec![Some(1.5), Some(2.0), Some(100.0)]));
        assert_eq!(row("1,5 2 99"), Some(vec![Some(1.5), Some(2.0), Some(99.0)]));
        assert_eq!(below(&["a", "b"], &["1", "-"]), Some(vec![Some(1.0), None]));
        assert_eq!(below(&["a", "b"], &["1"]), None);
    }

    #[test]
    fn samples_of_a_device_have_a_mean() {
        let mut table = Measured::new("iostat", &["r/s", "w/s"]);
        table.push("sda", vec![Some(1.0), None]);
        table.push("sdb", vec![Some(5.0), None]);
        table.push("sda", vec![Some(3.0), Some(4.0)]);
        let means = table.means();
        assert_eq!(means[0], ("sda", 2, vec![Some(2.0), Some(4.0)]));
        assert_eq!(means[1], ("sdb", 1, vec![Some(5.0), None]));
    }
}
