//! Figures that tools print while a load runs, as tables: iostat, `nvidia-smi dmon`, `dcgmi dmon`,
//! gds_stats, and the statistics of nvidia-fs.
//!
//! A reader takes one line after the other, and says of each whether its tool prints such lines.
//! Columns are found by their heads. Nothing is concluded from a figure here.

mod dmon;
mod gds_stats;
pub mod iostat;
pub mod number;
pub mod nvidia_fs;
pub mod tables;

/// More rows than a text of a run's minutes has.
const MOST_ROWS: usize = 100_000;
/// More tables than people paste.
pub const MOST_TABLES: usize = 1000;

/// A table of figures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// The command that printed it.
    pub command: &'static str,
    /// The names of its columns, as printed; units stand in them.
    pub columns: Vec<String>,
    /// Its rows in their order: the same device again is a later sample.
    pub rows: Vec<Sample>,
    /// Rows at the beginning that are of the tool's first report, where others follow: iostat's
    /// first one is since boot (iostat(1)).
    pub first_report: usize,
}

/// Figures of one device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// The device: `nvme2n1`, `GPU2`, `processors`, `process`.
    pub of: String,
    /// A value for each column; `None` where the tool prints none.
    pub values: Vec<Option<f64>>,
}

/// A figure of a device over its samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Mean {
    /// Whether its samples are so far apart that they are of several loads: their mean is of none.
    pub fn is_of_several(&self) -> bool {
        self.most > 2.0 * self.least
    }
}

impl Measured {
    /// A table without rows.
    pub fn new(command: &'static str, columns: &[&str]) -> Measured {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Measured { command, columns, ..Measured::default() }
    }

    /// Adds a row.
    pub fn push(&mut self, of: &str, values: Vec<Option<f64>>) {
        if self.rows.len() < MOST_ROWS {
            self.rows.push(Sample { of: of.to_owned(), values });
        }
    }

    /// A row's value in the first of these columns that it has. A column's unit counts only where
    /// it is named here.
    pub fn value(&self, row: &Sample, names: &[&str]) -> Option<f64> {
        let place = |is: &dyn Fn(&str, &str) -> bool| {
            self.columns.iter().position(|column| names.iter().any(|name| is(column, name)))
        };
        let with_unit = |column: &str, name: &str| {
            column.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '))
        };
        let at = place(&|column, name| column == name).or_else(|| place(&with_unit))?;
        row.values.get(at).copied().flatten()
    }

    /// The devices in the order of their first sample, each with its number of samples and each
    /// column over those that have a value. A first report before others is left out.
    pub fn means(&self) -> Vec<(&str, usize, Vec<Option<Mean>>)> {
        let mut devices: Vec<(&str, Vec<&Sample>)> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        for row in self.rows.iter().skip(self.first_report) {
            let at = *places.entry(row.of.as_str()).or_insert_with(|| {
                devices.push((&row.of, Vec::new()));
                devices.len() - 1
            });
            devices[at].1.push(row);
        }
        let of_column = |rows: &[&Sample], column: usize| {
            let known = rows.iter().filter_map(|row| row.values.get(column).copied().flatten());
            let known: Vec<f64> = known.collect();
            Some(Mean {
                value: known.iter().sum::<f64>() / known.len() as f64,
                least: known.iter().copied().reduce(f64::min)?,
                most: known.iter().copied().reduce(f64::max)?,
            })
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

/// A tool whose lines are read.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// The command that prints them.
    pub command: &'static str,
    /// Whether its output begins with a line.
    pub begins: fn(&str) -> bool,
    /// Name of its lines, for errors.
    pub wanted: &'static str,
    /// A reader of one output.
    pub reader: fn() -> Box<dyn Reader>,
}

/// `iostat`.
pub const IOSTAT: Tool = iostat::TOOL;
/// `nvidia-smi dmon`.
pub const NVIDIA_DMON: Tool = dmon::NVIDIA;
/// `dcgmi dmon`.
pub const DCGMI_DMON: Tool = dmon::DCGM;
/// `gds_stats`.
pub const GDS_STATS: Tool = gds_stats::TOOL;

/// Takes the lines of one tool's output.
pub trait Reader {
    /// Takes a line; `false` where the tool prints no such lines.
    fn line(&mut self, line: &str) -> bool;

    /// The tables that have rows, in the order in which the tool prints them.
    fn tables(&mut self) -> Vec<Measured>;
}

/// Tables of one tool by their columns.
struct Tables {
    command: &'static str,
    all: Vec<Measured>,
}

impl Tables {
    fn new(command: &'static str) -> Tables {
        Tables { command, all: Vec::new() }
    }

    /// Adds a row to the table with these columns.
    fn push(&mut self, columns: &[String], of: &str, values: Vec<Option<f64>>) {
        if let Some(table) = self.all.iter_mut().find(|one| one.columns == columns) {
            table.push(of, values);
        } else if self.all.len() < MOST_TABLES {
            let (command, columns) = (self.command, columns.to_vec());
            let mut table = Measured { command, columns, ..Measured::default() };
            table.push(of, values);
            self.all.push(table);
        }
    }

    fn take(&mut self) -> Vec<Measured> {
        std::mem::take(&mut self.all)
    }
}

/// A number as tools print it, also with a comma for the point; `None` for `-`, `N/A` and words.
fn number(word: &str) -> Option<f64> {
    let word = word.trim_end_matches(['%', ',']);
    let plain = word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    let value: f64 = plain.then(|| word.replace(',', ".").parse().ok()).flatten()?;
    value.is_finite().then_some(value)
}

/// The values of a row below its head, both without the first column; dots that people put for
/// columns that they cut stand in either, and what is left and right of them keeps its end.
fn below<S: AsRef<str>>(head: &[S], words: &[&str]) -> Option<Vec<Option<f64>>> {
    let head: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
    let dots = |list: &[&str]| list.iter().position(|word| is_cut(word));
    let names = head.iter().filter(|word| !is_cut(word)).count();
    let mut values: Vec<Option<f64>> = vec![None; names];
    let Some(cut) = dots(words).or(dots(&head).filter(|_| words.len() != names)) else {
        if words.len() != names {
            return None;
        }
        return Some(words.iter().map(|word| number(word)).collect());
    };
    let left = dots(&head).unwrap_or(cut).min(cut);
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
        let mut table = Measured::new("iostat", &["r/s", "rxpci MB/s"]);
        table.push("sda", vec![Some(1.0), None]);
        table.push("sdb", vec![Some(5.0), None]);
        table.push("sda", vec![Some(3.0), Some(4.0)]);
        let means = table.means();
        let mean = |value, least, most| Some(Mean { value, least, most });
        assert_eq!(means[0], ("sda", 2, vec![mean(2.0, 1.0, 3.0), mean(4.0, 4.0, 4.0)]));
        assert_eq!(means[1], ("sdb", 1, vec![mean(5.0, 5.0, 5.0), None]));
        let several = |at: usize| means[0].2[at].map(|mean| mean.is_of_several());
        assert_eq!([several(0), several(1)], [Some(true), Some(false)]);
        assert_eq!(table.value(&table.rows[2], &["txpci", "rxpci"]), Some(4.0));
        assert_eq!(table.value(&table.rows[2], &["r"]), None);
    }
}
