//! elbencho's result CSV (`--csvfile`), as of elbencho 3.0.
//!
//! Columns are found by their names (docs/csv-docs.md of elbencho; the sample in tests/fixtures is
//! from 3.0-25), so that releases that add columns can be read. Nothing is quoted: elbencho
//! replaces commas in labels by blanks, and the command, which is last, may contain anything.

use crate::foreign::{Direction, ForeignError, Number, Output, Reading, Skipped, Tool};

const NAME: &str = "elbencho";
const MIB: f64 = 1024.0 * 1024.0;

pub(crate) const TOOL: Tool = Tool {
    name: NAME,
    measures: &[
        "elbencho's figures are those of [last]: until the last thread finished, in whole MiB/s \
         and µs",
        "elbencho's latency includes filling buffers before writes and checking after reads, if \
         either is on",
        "elbencho does not report which path the bytes took, nor whether storage or a cache \
         served them",
    ],
    looks: |text| text.starts_with("ISO date,") && text.contains("MiB/s [last]"),
    read,
};

/// A row by the names of its columns.
#[derive(Debug, Clone)]
struct Row<'a> {
    names: &'a [&'a str],
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// The value of a cell; an empty cell is unknown.
    fn get(&self, name: &str) -> Option<&'a str> {
        let nth = self.names.iter().position(|other| *other == name)?;
        self.cells.get(nth).copied().filter(|cell| !cell.is_empty())
    }

    fn whole(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    /// A figure of whole units, truncated.
    fn cut(&self, name: &str, unit: f64) -> Option<Number> {
        let number = Number::printed(self.get(name)?, unit)?;
        Some(Number { off: 2.0 * number.off, ..number })
    }
}

fn read(text: &str) -> Result<Output, ForeignError> {
    let names: Vec<&str> = text.lines().next().unwrap_or("").split(',').collect();
    let mut output = Output::default();
    for (index, line) in text.lines().enumerate().skip(1) {
        // A second header, where files were joined.
        if line.trim().is_empty() || line.starts_with("ISO date,") {
            continue;
        }
        let row = Row { names: &names, cells: line.splitn(names.len(), ',').collect() };
        if row.cells.len() < names.len() {
            let why = format!("{} columns where the header has {}", row.cells.len(), names.len());
            output.skipped.push(Skipped { place: format!("line {}", index + 1), why });
            continue;
        }
        output.readings.extend(readings(&row));
    }
    if output.readings.is_empty() {
        let why =
            output.skipped.first().map(|skipped| format!(": {}: {}", skipped.place, skipped.why));
        let why = why.unwrap_or_else(|| ": no row is of reads or writes".to_owned());
        return Err(ForeignError::Empty { tool: NAME, why });
    }
    Ok(output)
}

/// The results of a row: none for a phase that moves no bytes, two for a mix.
fn readings(row: &Row<'_>) -> Vec<Reading> {
    let operation = row.get("operation").unwrap_or("");
    let sides: &[(Direction, &str)] = match operation {
        "READ" => &[(Direction::Read, "")],
        "WRITE" => &[(Direction::Write, "")],
        mix if mix.starts_with("RWMIX") => {
            &[(Direction::Read, "rwmix read "), (Direction::Write, "")]
        }
        _ => return Vec::new(),
    };
    let one = |(direction, prefix): &(Direction, &str)| {
        let mut reading = reading(row, *direction, prefix);
        if sides.len() > 1 {
            let share = operation.trim_start_matches("RWMIX").parse().ok();
            reading.mix = Some(share.filter(|share: &u8| *share <= 100));
        }
        reading
    };
    sides.iter().map(one).collect()
}

fn reading(row: &Row<'_>, direction: Direction, prefix: &str) -> Reading {
    let tool = format!("{NAME} {}", row.get("version").unwrap_or(""));
    let mut reading = Reading::new(tool.trim_end(), direction);
    let column = |name: &str| format!("{prefix}{name}");
    reading.job = row.get("label").map(str::to_owned);
    reading.random = row.get("random").map(|cell| cell == "1");
    reading.put("throughput", row.cut(&column("MiB/s [last]"), MIB));
    reading.put("iops", row.cut(&column("IOPS [last]"), 1.0));
    reading.put("mean", row.cut(&column("IO lat us [avg]"), 1000.0));
    let hosts = row.whole("hosts").unwrap_or(1);
    reading.threads = row.whole("threads").map(|threads| threads.saturating_mul(hosts));
    reading.depth = row.whole("IO depth");
    reading.block_bytes = row.whole("block size");
    reading.direct = row.get("direct IO").map(|cell| cell == "1");
    let seconds = row.whole("time ms [last]").map(|ms| ms as f64 / 1000.0);
    reading.seconds = seconds;
    if let Some(command) = row.get("command") {
        let has = |flag: &str| command.contains(&format!("\"{flag}\""));
        // help-all: --gds is --direct, --cufile and --gdsbufreg together; --gpuids alone copies
        // between host buffers and GPU memory.
        let path = match has("--gpuids") {
            true if has("--cufile") || has("--gds") => "gds",
            true => "staged",
            false => "host",
        };
        reading.path = Some(path.to_owned());
        let engine = match reading.depth {
            _ if path == "gds" => None,
            _ if has("--mmap") => Some("mmap"),
            Some(depth) if depth > 1 => Some("libaio"),
            _ => Some("psync"),
        };
        reading.engine = engine.map(str::to_owned);
    }
    reading
}
