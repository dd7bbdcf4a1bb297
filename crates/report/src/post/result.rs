//! Result lines: gdsio's, fio's for terminals, elbencho's for terminals.
//!
//! fio's lines are those of 2.x and 3.x: the job's line (`(g=0): rw=…`), the line of progress
//! (`Jobs: 1 (f=1): …`), and `read: IOPS=…, BW=…` or `read : io=…, bw=…`; fio's HOWTO,
//! "Interpreting the output". elbencho's are those of 3.0.

use gpuio_base::units::parse_bytes;

use crate::foreign::{Direction, gdsio};
use crate::post::Got;
use crate::post::line::Line;

const KIB: f64 = 1024.0;

/// The lines so far, as far as they are of the result to come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Results {
    fio: Option<FioJob>,
    /// elbencho's phase.
    phase: Option<Got>,
}

#[derive(Debug, Clone, Default)]
struct FioJob {
    random: bool,
    block: Option<u64>,
    engine: Option<String>,
    depth: Option<u64>,
    processes: Option<u64>,
    /// The direction whose latency comes next.
    last: Option<Got>,
}

impl Results {
    /// The result that a line has or completes. A line that adds to the last one gives it again.
    pub(crate) fn line(&mut self, line: &Line) -> Option<Got> {
        let text = &line.text;
        if text.contains("XferType:") && text.contains("Throughput:") {
            return of_gdsio(line);
        }
        if text.contains("(g=") && text.contains("rw=") && text.contains("bs=") {
            self.fio = Some(fio_job(text));
        }
        if let Some(job) = &mut self.fio {
            if let Some(count) = after(text, "Starting ").and_then(|word| word.parse().ok()) {
                job.processes = Some(count);
            }
            let found =
                progress(text, job).or_else(|| group(text, job)).or_else(|| total(text, job));
            let found = found.or_else(|| latency(text, job));
            return found.map(|got| Got { line: line.number, ..got });
        }
        self.elbencho(line)
    }

    fn elbencho(&mut self, line: &Line) -> Option<Got> {
        let text = line.text.trim();
        let (phase, rest) = match text.split_whitespace().next()? {
            word @ ("READ" | "WRITE") => (Some(word), text.strip_prefix(word)?.trim()),
            _ => (None, text),
        };
        let (name, values) = rest.split_once(':')?;
        // The last column is of the end of the last thread.
        let last = values.split_whitespace().last();
        let number = || last.and_then(|word| word.parse::<f64>().ok());
        if let Some(word) = phase.filter(|_| name.starts_with("Elapsed")) {
            let direction = if word == "READ" { Direction::Read } else { Direction::Write };
            let got = Got { tool: "elbencho", direction, ..Got::default() };
            self.phase = Some(Got { seconds: last.and_then(elapsed), ..got });
            return None;
        }
        let got = self.phase.as_mut()?;
        got.line = line.number;
        match name.trim() {
            "IOPS" => got.iops = number(),
            "Throughput MiB/s" => got.rate = Some(number()? * KIB * KIB),
            "Total MiB" => got.data_bytes = Some(number()? * KIB * KIB),
            name if name.starts_with("IO lat") => {
                let mean = after(values, "avg=")?.trim_end_matches([',', ']']);
                let mean = mean.trim_end_matches(|c: char| c.is_alphabetic() || c == 'µ');
                got.latency = Some(mean.parse::<f64>().ok()? * 1e3);
            }
            _ => return None,
        }
        got.rate?;
        // Every further figure of the phase gives the result again, with more in it.
        Some(Got { moment: true, ..got.clone() })
    }
}

/// Seconds of `6.110s`, `512ms`, `1m30.5s`.
fn elapsed(word: &str) -> Option<f64> {
    if let Some(ms) = word.strip_suffix("ms") {
        return Some(ms.parse::<f64>().ok()? / 1e3);
    }
    let mut rest = word.strip_suffix('s')?;
    let mut seconds = 0.0;
    for (unit, scale) in [('h', 3600.0), ('m', 60.0)] {
        if let Some((count, after)) = rest.split_once(unit) {
            seconds += count.parse::<f64>().ok()? * scale;
            rest = after;
        }
    }
    Some(seconds + rest.parse::<f64>().ok()?)
}

fn of_gdsio(line: &Line) -> Option<Got> {
    let text = &line.text;
    let reading = gdsio::line(text).ok()?;
    let data = gdsio::inside(text, "DataSetSize:", "(KiB)").ok()?;
    let (data, set) = data.split_once('/').map_or((data, None), |(data, set)| (data, Some(set)));
    let kib = |text: &str| text.trim().parse::<f64>().ok().map(|count| count * KIB);
    let ops = gdsio::inside(text, "ops:", "total_time").ok().and_then(|ops| ops.parse().ok());
    let figure = |name: &str| reading.figures.get(name).map(|figure| figure.value);
    Some(Got {
        line: line.number,
        tool: "gdsio",
        direction: reading.direction,
        random: reading.random,
        threads: reading.threads,
        depth: reading.depth.filter(|_| text.contains("IoDepth:")),
        block: reading.block_bytes,
        data_bytes: kib(data),
        set_bytes: set.and_then(kib),
        ops,
        seconds: reading.seconds,
        rate: figure("throughput"),
        iops: figure("iops"),
        latency: figure("mean"),
        path: reading.path,
        ..Got::default()
    })
}

/// The word behind a name, up to a blank or comma.
fn after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(name)?;
    rest.split([' ', ',', ')', ']']).next().filter(|word| !word.is_empty())
}

fn fio_job(text: &str) -> FioJob {
    let block = after(text, "bs=").map(|block| {
        // `4K-4K/4K-4K/4K-4K`, `(R) 4096B-4096B`, `1M`.
        let text = text.split_once("bs=").map_or("", |(_, rest)| rest);
        let text = if block == "(R" { text.trim_start_matches("(R) ") } else { block };
        text.split(['-', '/', ',', ' ']).next().unwrap_or_default().to_owned()
    });
    let size = block.and_then(|block| parse_bytes(&bytes_word(&block)).ok());
    FioJob {
        random: after(text, "rw=").is_some_and(|rw| rw.starts_with("rand")),
        block: size,
        engine: after(text, "ioengine=").map(str::to_owned),
        depth: after(text, "iodepth=").and_then(|word| word.parse().ok()),
        processes: None,
        last: None,
    }
}

/// fio's spellings of bytes as ours: `4096B`, `1024KiB`, `1M`.
fn bytes_word(word: &str) -> String {
    word.trim_end_matches('B').trim_end_matches('i').to_owned()
}

/// A rate of fio 2.x (`519.0MB`, `62396KB`, by powers of 2) or 3.x (`384MiB/s`), in bytes.
fn fio_bytes(word: &str) -> Option<f64> {
    let word = word.trim_end_matches("/s");
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let value: f64 = digits.parse().ok()?;
    let scale = match word[digits.len()..].chars().next() {
        None | Some('B') => 1.0,
        Some('k' | 'K') => KIB,
        Some('M') => KIB * KIB,
        Some('G') => KIB * KIB * KIB,
        Some('T') => KIB * KIB * KIB * KIB,
        Some(_) => return None,
    };
    Some(value * scale)
}

fn fio_count(word: &str) -> Option<f64> {
    let word = word.trim_end_matches("iops").trim();
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &word[digits.len()..] {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * scale)
}

fn base(job: &FioJob, direction: Direction) -> Got {
    Got {
        tool: "fio",
        direction,
        random: Some(job.random),
        block: job.block,
        engine: job.engine.clone(),
        depth: job.depth,
        threads: job.processes,
        ..Got::default()
    }
}

/// `Jobs: 1 (f=1): [R(1)] [7.2% done] [519.0MB/0KB/0KB /s] [519/0/0 iops] [eta 02m:47s]`, and 3.x's
/// `[r=384MiB/s][r=98.2k IOPS]`.
fn progress(text: &str, job: &FioJob) -> Option<Got> {
    let rest = text.split_once("Jobs: ")?.1;
    let groups: Vec<&str> = rest.split(['[', ']']).collect();
    let rate = groups.iter().find(|group| group.contains("/s"))?;
    let count = groups.iter().find(|group| group.to_lowercase().contains("iops"))?;
    let sides = |group: &str| -> Vec<(Direction, String)> {
        let group = group.trim_end_matches("IOPS").trim_end_matches("iops").trim();
        let group = group.strip_suffix("/s").unwrap_or(group).trim();
        let named = |part: &str| {
            let part = part.trim();
            let part = part.strip_suffix("/s").unwrap_or(part);
            let read = part.strip_prefix("r=").map(|value| (Direction::Read, value.to_owned()));
            read.or(part.strip_prefix("w=").map(|value| (Direction::Write, value.to_owned())))
        };
        if group.contains('=') {
            return group.split(',').filter_map(named).collect();
        }
        let both = [Direction::Read, Direction::Write];
        both.into_iter().zip(group.split('/').map(str::to_owned)).collect()
    };
    let (rates, counts) = (sides(rate), sides(count));
    let moved = rates.iter().find(|(_, value)| fio_bytes(value).is_some_and(|rate| rate > 0.0))?;
    let iops = counts.iter().find(|(side, _)| *side == moved.0);
    let got = base(job, moved.0);
    let iops = iops.and_then(|(_, value)| fio_count(value));
    Some(Got { rate: fio_bytes(&moved.1), iops, moment: true, ..got })
}

/// `read: IOPS=98.2k, BW=384MiB/s (402MB/s)(67.4GiB/180001msec)`, and 2.x's
/// `read : io=92160KB, bw=519000KB/s, iops=519, runt=180001msec`.
fn group(text: &str, job: &mut FioJob) -> Option<Got> {
    let trimmed = text.trim();
    let (word, rest) = trimmed.split_once(':')?;
    let direction = match word.trim() {
        "read" => Direction::Read,
        "write" => Direction::Write,
        _ => return None,
    };
    let mut got = base(job, direction);
    got.rate = Some(after(rest, "BW=").or(after(rest, "bw=")).and_then(fio_bytes)?);
    got.iops = after(rest, "IOPS=").or(after(rest, "iops=")).and_then(fio_count);
    got.data_bytes = after(rest, "io=").and_then(fio_bytes);
    if let Some((data, time)) = rest.rsplit_once('(').and_then(|(_, end)| end.split_once('/')) {
        got.data_bytes = got.data_bytes.or(fio_bytes(data));
        got.seconds = milliseconds(time.split(')').next().unwrap_or_default());
    }
    got.seconds = got.seconds.or(after(rest, "runt=").and_then(milliseconds));
    // Latency comes in further lines.
    job.last = Some(got.clone());
    Some(Got { moment: true, ..got })
}

fn milliseconds(word: &str) -> Option<f64> {
    word.trim().strip_suffix("msec")?.trim().parse::<f64>().ok().map(|ms| ms / 1e3)
}

/// ` lat (usec): min=9, max=11, avg=325.40, stdev=…`: the whole latency of the direction above.
fn latency(text: &str, job: &mut FioJob) -> Option<Got> {
    let rest = text.trim().strip_prefix("lat (")?;
    let scale = match rest.split(')').next()? {
        "nsec" => 1.0,
        "usec" => 1e3,
        "msec" => 1e6,
        _ => return None,
    };
    let mean: f64 = after(rest, "avg=")?.trim().parse().ok()?;
    let got = job.last.as_mut()?;
    got.latency = Some(mean * scale);
    Some(Got { moment: true, ..got.clone() })
}

/// `READ: bw=384MiB/s (402MB/s), 96MiB/s-97MiB/s, io=67.4GiB (72.4GB), run=180001-180001msec`.
fn total(text: &str, job: &FioJob) -> Option<Got> {
    let (word, rest) = text.trim().split_once(": ")?;
    let direction = match word {
        "READ" => Direction::Read,
        "WRITE" => Direction::Write,
        _ => return None,
    };
    let mut got = job.last.clone().filter(|got| got.direction == direction)?;
    let rate = after(rest, "bw=").and_then(fio_bytes)?;
    // The total of one job is the job's own.
    let share = rate / got.rate?;
    got.rate = Some(rate);
    got.iops = got.iops.map(|iops| iops * share);
    Some(Got { moment: true, ..got })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Got> {
        let lines = crate::post::line::lines(text);
        let mut results = Results::default();
        lines.iter().filter_map(|line| results.line(line)).collect()
    }

    const MIB: f64 = KIB * KIB;

    #[test]
    fn a_line_of_gdsio_has_all_its_figures() {
        let got = of("IoType: READ XferType: GPUD Threads: 8 DataSetSize: 818796544/4096000(KiB) \
                      IOSize: 1024(KiB) Throughput: 6.524658 GiB/sec, Avg_Latency: 1197.370995 \
                      usecs ops: 799606 total_time 119.679102 secs")
        .remove(0);
        assert_eq!((got.threads, got.block, got.ops), (Some(8), Some(1 << 20), Some(799_606.0)));
        assert_eq!(got.data_bytes, Some(818_796_544.0 * KIB));
        assert!((got.in_flight().unwrap() - 8.0).abs() < 0.01);
        assert_eq!(got.path.as_deref(), Some("gds"));
    }

    #[test]
    fn fio_for_terminals_is_read_in_both_forms() {
        let old = "# fio -f r.fio a: (g=0): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, \
                   iodepth=32 fio-2.2.10 Starting 1 process Jobs: 1 (f=1): [r(1)] [25.0% done] \
                   [383.8MB/0KB/0KB /s] [98.3K/0/0 iops] [eta 02m:15s]";
        let got = of(old).remove(0);
        assert_eq!((got.block, got.depth, got.threads), (Some(4096), Some(32), Some(1)));
        assert_eq!(got.rate, Some(383.8 * MIB));
        assert_eq!(got.iops, Some(98_300.0));
        let new = "a: (g=0): rw=write, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, \
                   ioengine=io_uring, iodepth=8\nStarting 2 processes\n  write: IOPS=519, \
                   BW=519MiB/s (544MB/s)(91.2GiB/180001msec); 0 zone resets\n    lat (usec): \
                   min=9, max=11, avg=30825.40, stdev= 1\n";
        let all = of(new);
        let last = all.last().unwrap();
        assert_eq!((last.direction, last.block), (Direction::Write, Some(1 << 20)));
        assert_eq!((last.threads, last.seconds), (Some(2), Some(180.001)));
        assert!((last.in_flight().unwrap() - 16.0).abs() < 0.1, "{last:?}");
        let mixed = of("a: (g=0): rw=randwrite, bs=4K-4K, ioengine=psync, iodepth=1\nJobs: 1 \
                        (f=1): [w(1)] [51% done] [0KB/135.3MB/0KB /s] [0/34.7K/0 iops]");
        assert_eq!((mixed[0].direction, mixed[0].iops), (Direction::Write, Some(34_700.0)));
        let three = of("a: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=libaio, iodepth=4\n\
                        Jobs: 1 (f=1): [r(1)][50.0%][r=384MiB/s][r=98.2k IOPS][eta 01m]");
        assert_eq!((three[0].rate, three[0].iops), (Some(384.0 * MIB), Some(98_200.0)));
    }

    #[test]
    fn elbencho_for_terminals_is_read() {
        let text = "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\nREAD        Elapsed \
                    time     :     6.043s     6.110s\n            IOPS             :      10848  \
                    10764\n            Throughput MiB/s :      10848      10764\n            Total \
                    MiB        :      65562      65768\n";
        let all = of(text);
        let got = all.last().unwrap();
        assert_eq!((got.rate, got.iops), (Some(10_764.0 * MIB), Some(10_764.0)));
        assert_eq!((got.data_bytes, got.seconds), (Some(65_768.0 * MIB), Some(6.11)));
    }
}
