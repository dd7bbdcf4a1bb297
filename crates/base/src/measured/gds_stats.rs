//! `gds_stats -p PID -l 1, 2, 3` of NVIDIA's library (layout 3 and later) and of gpuio: totals,
//! sizes, counts by GPU, and the buffers of its pools, which show that bytes bounced.

use super::{Measured, Reader, Tool, number};

const COMMAND: &str = "gds_stats";

pub(super) const TOOL: Tool = Tool {
    command: COMMAND,
    begins: |line| {
        let line = line.trim();
        BEGINS.iter().any(|begin| line.starts_with(begin)) || gpu(line).is_some()
    },
    wanted: "a line of gds_stats",
    reader: || {
        let table = |columns: &[&str]| Measured::new(COMMAND, columns);
        Box::new(Stats {
            totals: table(&[]),
            values: Vec::new(),
            sizes: table(&["reads", "writes"]),
            gpus: table(&[]),
            pools: table(&["pool_size_MiB", "buffers used", "buffers", "used_MiB"]),
            posix: table(&["buffers used", "buffers"]),
        })
    },
};

const BEGINS: [&str; 5] = [
    "cuFile STATS VERSION",
    "GLOBAL STATS:",
    "PER_GPU STATS",
    "READ-WRITE SIZE HISTOGRAM",
    "Read BandWidth (GiB/s):",
];

struct Stats {
    totals: Measured,
    /// The values of the totals' only row.
    values: Vec<Option<f64>>,
    sizes: Measured,
    gpus: Measured,
    pools: Measured,
    posix: Measured,
}

impl Reader for Stats {
    fn line(&mut self, line: &str) -> bool {
        if let Some((of, fields)) = gpu(line) {
            if self.gpus.columns.is_empty() {
                self.gpus.columns = fields.iter().map(|(name, _)| name.clone()).collect();
            }
            let value = |name: &String| {
                fields.iter().find(|(known, _)| known == name).and_then(|one| one.1)
            };
            let values = self.gpus.columns.iter().map(value).collect();
            self.gpus.push(&of, values);
        } else if let Some((of, values)) = pool(line) {
            self.pools.push(&of, values);
        } else if let Some(all) = posix_pool(line) {
            all.into_iter().for_each(|(of, values)| self.posix.push(&of, values));
        } else if let Some((of, values)) = size(line) {
            self.sizes.push(&of, values);
        } else if let Some((key, value)) = total(line) {
            self.totals.columns.push(key.to_owned());
            self.values.push(value);
        } else {
            return is_heading(line);
        }
        true
    }

    fn tables(&mut self) -> Vec<Measured> {
        if !self.values.is_empty() {
            self.totals.push("process", std::mem::take(&mut self.values));
        }
        // Most sizes have no I/O.
        self.sizes.rows.retain(|row| row.values.iter().flatten().any(|count| *count > 0.0));
        let all =
            [&mut self.totals, &mut self.sizes, &mut self.gpus, &mut self.pools, &mut self.posix];
        all.into_iter().map(std::mem::take).filter(|table| !table.rows.is_empty()).collect()
    }
}

/// A name and its figure.
type Field = (String, Option<f64>);

/// `GPU 2 Read: bw=6.3 util(%)=797 n=78193 … Write: bw=0 … BufRegister: n=8 …`, with the part's
/// name before each field's.
fn gpu(line: &str) -> Option<(String, Vec<Field>)> {
    let (number_of, rest) = line.trim().strip_prefix("GPU ")?.split_once(" Read:")?;
    let number_of = number_of.trim();
    if number_of.contains(' ') {
        return None;
    }
    let mut part = "Read";
    let mut fields = Vec::new();
    for word in rest.split_whitespace() {
        if let Some(name) = word.strip_suffix(':') {
            part = name;
        } else if let Some((name, value)) = word.split_once('=') {
            fields.push((format!("{part} {name}"), number(value)));
        }
    }
    (!fields.is_empty()).then(|| (format!("GPU{number_of}"), fields))
}

/// `GPU : 0 pool_size_MiB : 64 usage : 63/64 used_MiB : 63`.
fn pool(line: &str) -> Option<(String, Vec<Option<f64>>)> {
    if !line.contains("pool_size_MiB") {
        return None;
    }
    let words: Vec<&str> = line.split([' ', ':']).filter(|word| !word.is_empty()).collect();
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1).copied()
    };
    let (used, all) = after("usage")?.split_once('/')?;
    let values = vec![
        after("pool_size_MiB").and_then(number),
        number(used),
        number(all),
        after("used_MiB").and_then(number),
    ];
    Some((format!("GPU{}", after("GPU")?), values))
}

/// `GPU 0 4(KiB) :0/0 1024(KiB) :0/0 16384(KiB) :0/0`.
fn posix_pool(line: &str) -> Option<Vec<(String, Vec<Option<f64>>)>> {
    let rest = line.trim().strip_prefix("GPU ")?;
    let (number_of, rest) = rest.split_once(' ')?;
    let mut all = Vec::new();
    let mut size = None;
    for word in rest.split_whitespace() {
        if let Some(kib) = word.trim_end_matches(':').strip_suffix("(KiB)") {
            size = Some(kib);
        } else if let (Some(kib), Some((used, count))) =
            (size, word.trim_start_matches(':').split_once('/'))
        {
            all.push((format!("GPU{number_of}, {kib} KiB"), vec![number(used), number(count)]));
        }
    }
    (!all.is_empty()).then_some(all)
}

/// `1024-2048(KiB): 78193  0`.
fn size(line: &str) -> Option<(String, Vec<Option<f64>>)> {
    let (size, counts) = line.trim().split_once("(KiB)")?;
    let counts: Vec<&str> = counts.trim_start_matches([':', ' ']).split_whitespace().collect();
    let known = size.contains('-') && size.starts_with(|c: char| c.is_ascii_digit());
    (known && counts.len() == 2)
        .then(|| (format!("{size} KiB"), counts.iter().map(|count| number(count)).collect()))
}

/// `Read BandWidth (GiB/s): 6.32129`.
fn total(line: &str) -> Option<(&str, Option<f64>)> {
    let (key, value) = line.trim().split_once(':')?;
    let known = key.starts_with("Total ") || key.contains("BandWidth") || key.contains("Latency");
    let value = number(value.trim())?;
    known.then(|| (key.trim(), Some(value)))
}

/// Titles, and GPUs of which RDMA has nothing.
fn is_heading(line: &str) -> bool {
    let line = line.trim();
    let known = ["cuFile STATS", "GLOBAL STATS", "READ-WRITE SIZE", "PER_GPU", "RDMA", "peer name"];
    known.iter().any(|start| line.starts_with(start))
        || line.starts_with("GPU ") && line.ends_with(':')
}
