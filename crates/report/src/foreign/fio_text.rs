//! fio's results on a terminal, as of fio 2.x and 3.x, also where a page has joined its lines.
//!
//! Forms are those of fio's HOWTO, "Interpreting the output", and of samples of 2.2 and 3.28.
//! Where a run has no result at its end, the last state of its progress line stands for it, and a
//! note says so.

use gpuio_base::stat::Percentile;
use gpuio_base::units::parse_bytes;

use crate::foreign::{Direction, ForeignError, Number, Output, Reading, Tool};

const NAME: &str = "fio";
const KIB: f64 = 1024.0;

pub(crate) const TOOL: Tool = Tool {
    name: NAME,
    measures: &[
        "fio's text prints rates and latencies with three or four digits; its JSON has them all",
        "fio's percentiles are of completion latency, without submission; its mean here is of the \
         whole latency",
    ],
    looks: |text| text.lines().any(|line| job_line(line).is_some() || result_line(line).is_some()),
    read,
};

/// A job's request, by its first line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) group: String,
    rw: String,
    block_bytes: [Option<u64>; 2],
    engine: Option<String>,
    depth: Option<u64>,
}

fn read(text: &str) -> Result<Output, ForeignError> {
    let mut output = Output::default();
    let mut jobs: Vec<Job> = Vec::new();
    let mut version = String::new();
    // The job whose result lines follow, its threads and whether it failed.
    let mut current: Option<(usize, u64, Option<String>)> = None;
    let mut at: Option<usize> = None;
    let mut state: Vec<Reading> = Vec::new();
    for line in unfolded(text).lines() {
        let line = line.trim();
        if let Some(job) = job_line(line) {
            // Behind a state or a result only another run begins.
            if !state.is_empty() || current.is_some() {
                let last = std::mem::take(&mut state);
                output.readings.extend(last.into_iter().filter(|_| current.is_none()));
                (jobs, current, at) = (Vec::new(), None, None);
            }
            // The same job again is another of its threads' first lines.
            if jobs.last().is_none_or(|last| last.name != job.name) {
                jobs.push(job);
            }
        } else if let Some(number) = line.strip_prefix("fio-") {
            number.split_whitespace().next().unwrap_or_default().clone_into(&mut version);
        } else if let Some((name, threads, failed)) = result_line(line) {
            let known = jobs.iter().rposition(|job| job.name == name);
            let index = known.unwrap_or_else(|| {
                jobs.push(Job { name: name.to_owned(), ..Job::default() });
                jobs.len() - 1
            });
            current = Some((index, threads, failed));
            at = None;
        } else if let (Some((index, threads, failed)), Some(direction)) = (&current, side(line)) {
            let mut reading = of_job(&jobs[*index], &version, direction, Some(*threads));
            rates(&mut reading, line);
            reading.failed.clone_from(failed);
            output.readings.push(reading);
            at = Some(output.readings.len() - 1);
        } else if line.starts_with("Jobs: ") {
            let [job] = jobs.as_slice() else { continue };
            state = states(job, &version, line);
        } else if let Some(reading) = at.and_then(|at| output.readings.get_mut(at)) {
            if line.starts_with("cpu ") || line.starts_with("Run status") {
                at = None;
            } else {
                latency(reading, line);
            }
        }
    }
    output.readings.extend(state.into_iter().filter(|_| current.is_none()));
    if output.readings.is_empty() {
        return Err(ForeignError::Empty { tool: NAME, why: ": no job moved any byte".to_owned() });
    }
    Ok(output)
}

/// A text whose lines a page has joined, with a line for each of fio's.
fn unfolded(text: &str) -> String {
    const STARTS: [&str; 12] = [
        " fio-",
        " Starting ",
        " Jobs: ",
        " read: IOPS",
        " write: IOPS",
        " read : io=",
        " write: io=",
        " lat (",
        " clat (",
        " clat percentiles",
        " cpu ",
        " Run status",
    ];
    let starts = STARTS.iter().fold(text.to_owned(), |text, start| {
        text.replace(start, &format!("\n{}", start.trim_start()))
    });
    // A command stands before the first job's line: `# fio seq.fio seq-read: (g=0): rw=…`.
    let mut out = String::new();
    for line in starts.lines() {
        let begin = line.find(": (g=").and_then(|colon| line[..colon].rfind(' '));
        match begin {
            Some(begin) => {
                out.push_str(&line[..begin]);
                out.push('\n');
                out.push_str(&line[begin + 1..]);
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// `seq-read: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, …, ioengine=libaio, iodepth=32`.
pub(crate) fn job_line(line: &str) -> Option<Job> {
    let (name, rest) = line.split_once(": (g=")?;
    let (group, rest) = rest.split_once("): rw=")?;
    let name = name.rsplit(' ').next().unwrap_or_default();
    let mut parts = rest.split(", ");
    let rw = parts.next()?.trim().to_owned();
    let (name, group) = (name.to_owned(), group.to_owned());
    let mut job = Job { name, group, rw, ..Job::default() };
    let bs = rest.split_once("bs=").map_or("", |(_, bs)| bs);
    // `bs=4K-4K/4K-4K/4K-4K` of fio 2; `bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) …` of fio 3.
    let of = |mark: &str| bs.split_once(mark).and_then(|(_, size)| one_size(size));
    job.block_bytes = if bs.starts_with('(') {
        [of("(R) "), of("(W) ")]
    } else {
        let mut sizes = bs.split(',').next().unwrap_or_default().split('/').map(one_size);
        [sizes.next().flatten(), sizes.next().flatten()]
    };
    let word = |key: &str| {
        let (_, value) = rest.split_once(key)?;
        value.split([',', ' ']).next().map(str::to_owned)
    };
    job.engine = word("ioengine=");
    job.depth = word("iodepth=").and_then(|depth| depth.parse().ok());
    Some(job)
}

/// `4096B-4096B`: a size that does not vary.
fn one_size(text: &str) -> Option<u64> {
    let (low, high) = text.split([',', '/', ' ']).next()?.split_once('-')?;
    (low == high).then(|| parse_bytes(low).ok()).flatten()
}

/// `seq-read: (groupid=0, jobs=4): err= 0: pid=1: …`, with threads and an error.
fn result_line(line: &str) -> Option<(&str, u64, Option<String>)> {
    let (name, rest) = line.trim().split_once(": (groupid=")?;
    let (_, rest) = rest.split_once("jobs=")?;
    let (threads, rest) = rest.split_once(')')?;
    let error = rest.split_once("err=").map_or("0", |(_, error)| error.trim_start());
    let error = error.split([':', ' ', '(']).next().unwrap_or_default();
    let failed = (error != "0").then(|| format!("fio ended with error {error}"));
    Some((name, threads.trim().parse().ok()?, failed))
}

/// The head of a job's result, also behind the words that a log puts before each line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    /// The last word of the log before it.
    pub(crate) log: String,
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) threads: u64,
    /// When its run printed it; the same for all of its jobs.
    pub(crate) date: String,
}

pub(crate) fn head(line: &str) -> Option<Head> {
    let (name, threads, _) = result_line(line)?;
    let mut words = name.rsplit(' ');
    let own = words.next().unwrap_or_default().to_owned();
    let log = words.next().unwrap_or_default().to_owned();
    let inside = |from, to| Some(line.split_once(from)?.1.split_once(to)?.0.to_owned());
    let group = inside(": (groupid=", ",").unwrap_or_default();
    let date = line.split_once(" pid=").and_then(|(_, rest)| Some(rest.split_once(": ")?.1.trim()));
    let date = date.and_then(|date| Some(date.get(..24)?.to_owned())).unwrap_or_default();
    Some(Head { log, name: own, group, threads, date })
}

/// Which way a line of rates is: `read: IOPS=…`, `write: io=…`.
pub(crate) fn side(line: &str) -> Option<Direction> {
    Some(side_and_log(line)?.0)
}

/// The same with the last word of a log before it.
pub(crate) fn side_and_log(line: &str) -> Option<(Direction, &str)> {
    line.match_indices(':').find_map(|(colon, _)| {
        let rest = line[colon + 1..].trim_start();
        let mut words = line[..colon].split_whitespace().rev();
        let direction = match words.next()? {
            "read" => Direction::Read,
            "write" => Direction::Write,
            "mixed" => Direction::Both,
            _ => return None,
        };
        let rates = rest.starts_with("IOPS=") || rest.starts_with("io=");
        rates.then(|| (direction, words.next().unwrap_or_default()))
    })
}

/// A line of a group's totals, with its rate: `READ: bw=384MiB/s (402MB/s), …, io=67.4GiB
/// (72.4GB), run=180001-180001msec`; `READ: io=15565MB, aggrb=531298KB/s, …, maxt=30000msec` of
/// fio 2.
pub(crate) fn total(line: &str) -> Option<Reading> {
    let (direction, rest) =
        [Direction::Read, Direction::Write].into_iter().find_map(|direction| {
            let mark = format!("{}: ", direction.name().to_uppercase());
            let at = line.find(&mark).filter(|at| *at == 0 || line[..*at].ends_with(' '))?;
            Some((direction, &line[at + mark.len()..]))
        })?;
    let time = after(rest, "maxt=").or_else(|| after(rest, "run=")?.split('-').next_back())?;
    let mut reading = Reading::new(NAME, direction);
    reading.put("throughput", after(rest, "aggrb=").or(after(rest, "bw=")).and_then(bytes));
    reading.data_bytes = moved(rest);
    let ms = time.strip_suffix("msec").and_then(|ms| ms.parse::<f64>().ok())?;
    reading.seconds = Some(ms / 1000.0);
    (!reading.figures.is_empty()).then_some(reading)
}

/// A job's line of `--minimal`, version 3 or 4 of its form: the rates of both directions, with
/// times in µs.
pub(crate) fn terse(line: &str) -> Option<Vec<Reading>> {
    let fields: Vec<&str> = line.trim().split(';').collect();
    let is = matches!(fields[0], "3" | "4") && fields.get(1)?.starts_with("fio-");
    let mut rest = fields.get(5..).filter(|_| is)?;
    let mut readings = Vec::new();
    for direction in [Direction::Read, Direction::Write] {
        let number = |at: usize| rest.get(at)?.parse::<f64>().ok();
        let (kib, rate, ms) = (number(0)?, number(1)?, number(3)?);
        let mut reading = Reading::new(NAME, direction);
        reading.put("throughput", rest.get(1).and_then(|rate| Number::printed(rate, KIB)));
        reading.put("iops", rest.get(2).and_then(|iops| Number::printed(iops, 1.0)));
        reading.data_bytes = Some(kib * KIB);
        reading.seconds = Some(ms / 1000.0);
        // Submission and completion, then percentiles; then the whole latency.
        let percentiles = rest.iter().skip(12).take_while(|field| field.contains("%=")).count();
        let mean = rest.get(12 + percentiles + 2)?;
        reading.put("mean", Number::printed(mean, 1e3).filter(|mean| mean.value > 0.0));
        if rate > 0.0 {
            readings.push(reading);
        }
        rest = rest.get(12 + percentiles + 9..)?;
    }
    Some(readings)
}

/// A result of a job, with the facts of its first line.
pub(crate) fn of_job(
    job: &Job,
    version: &str,
    direction: Direction,
    threads: Option<u64>,
) -> Reading {
    let tool = format!("{NAME} {version}");
    let mut reading = Reading::new(tool.trim_end(), direction);
    reading.job = Some(job.name.clone());
    reading.random = (!job.rw.is_empty()).then(|| job.rw.starts_with("rand"));
    if matches!(job.rw.as_str(), "rw" | "readwrite" | "randrw") && direction != Direction::Both {
        reading.mix = Some(None);
    }
    reading.threads = threads;
    reading.depth = job.depth;
    reading.engine.clone_from(&job.engine);
    reading.block_bytes = job.block_bytes[usize::from(direction == Direction::Write)];
    reading.path = job.engine.as_deref().and_then(|engine| match engine {
        "libcufile" | "libhipfile" => None,
        _ => Some("host".to_owned()),
    });
    reading
}

/// `IOPS=3200, BW=3201MiB/s (3357MB/s)(93.8GiB/30010msec)`, or `io=15565MB, bw=531298KB/s,
/// iops=518, runt= 30000msec`.
pub(crate) fn rates(reading: &mut Reading, line: &str) {
    let named = |names: [&str; 2]| names.into_iter().find_map(|name| after(line, name));
    reading.put("iops", named(["IOPS=", "iops="]).and_then(scaled));
    reading.put("throughput", named(["BW=", "bw="]).and_then(bytes));
    let time = after(line, "runt=").or_else(|| Some(amount(line)?.1));
    let ms = time.and_then(|time| time.strip_suffix("msec")).and_then(|ms| ms.parse::<f64>().ok());
    reading.seconds = ms.map(|ms| ms / 1000.0);
}

/// The bytes that a line of rates names: `(93.8GiB/30010msec)`, or `io=15565MB`.
pub(crate) fn moved(line: &str) -> Option<f64> {
    let text = after(line, "io=").or_else(|| Some(amount(line)?.0))?;
    bytes(text).map(|number| number.value)
}

/// Amount and time: `(93.8GiB/30010msec)`.
fn amount(line: &str) -> Option<(&str, &str)> {
    let (amount, rest) = line.rsplit_once('(')?.1.split_once('/')?;
    Some((amount, rest.split(')').next().unwrap_or_default()))
}

/// The word behind a name.
pub(crate) fn after<'t>(line: &'t str, name: &str) -> Option<&'t str> {
    let rest = line.split_once(name)?.1.trim_start();
    Some(&rest[..rest.find([',', ' ', ')', '(', '/']).unwrap_or(rest.len())])
}

/// `12.3k` in units of 1000.
fn scaled(text: &str) -> Option<Number> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit = match &text[end..] {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" | "m" => 1e6,
        _ => return None,
    };
    Number::printed(&text[..end], unit)
}

/// `3201MiB`; `MB` of fio 2 is 1024 KiB too.
pub(crate) fn bytes(text: &str) -> Option<Number> {
    let end = text.find(|c: char| c.is_ascii_alphabetic())?;
    let unit = match text.as_bytes().get(end)? {
        b'B' => 1.0,
        b'K' | b'k' => KIB,
        b'M' => KIB * KIB,
        b'G' => KIB * KIB * KIB,
        b'T' => KIB * KIB * KIB * KIB,
        _ => return None,
    };
    Number::printed(&text[..end], unit)
}

/// Nanoseconds of the unit in brackets: `lat (usec): …`.
fn unit_of(line: &str) -> Option<f64> {
    match line.split_once('(')?.1.split_once(')')?.0 {
        "nsec" => Some(1.0),
        "usec" => Some(1e3),
        "msec" => Some(1e6),
        "sec" => Some(1e9),
        _ => None,
    }
}

/// `lat (usec): min=…, max=…, avg=10000.12, …`: the whole latency's mean, in nanoseconds.
fn mean(line: &str) -> Option<Number> {
    Some(mean_and_log(line)?.0)
}

/// The same with the last word of a log before it.
pub(crate) fn mean_and_log(line: &str) -> Option<(Number, &str)> {
    let is = |at: &usize| *at == 0 || line[..*at].ends_with(' ');
    let (log, own) = line.split_at(line.match_indices("lat (").map(|(at, _)| at).find(is)?);
    let mean = Number::printed(after(own, "avg=")?, unit_of(own)?)?;
    Some((mean, log.split_whitespace().next_back().unwrap_or_default()))
}

/// Lines of latencies, and of percentiles, whose unit stands in their head.
fn latency(reading: &mut Reading, line: &str) {
    if let Some(mean) = mean(line) {
        reading.put("mean", Some(mean));
    } else if line.starts_with("clat percentiles") {
        reading.notes.retain(|note| !note.starts_with(UNIT));
        reading.notes.extend(unit_of(line).map(|unit| format!("{UNIT}{unit}")));
    } else if line.starts_with('|') {
        let unit =
            reading.notes.iter().find_map(|note| note.strip_prefix(UNIT)?.parse::<f64>().ok());
        let Some(unit) = unit else { return };
        for part in line.split(',') {
            let Some((name, value)) = part.split_once("th=[") else { continue };
            let name = name.trim_matches(['|', ' ']);
            let value = value.trim_matches([' ', ']']);
            let number = Number::printed(value, unit);
            // Its buckets are 1/128 of a value wide.
            let number = number.map(|one| Number { off: one.off + one.value / 128.0, ..one });
            if let Some(at) = Percentile::parse(name) {
                reading.put(&at.label(), number.filter(|number| number.value > 0.0));
            }
        }
    } else if !line.is_empty() {
        // The unit is needed until the percentiles are read.
        reading.notes.retain(|note| !note.starts_with(UNIT));
    }
}

/// The unit of percentiles, while their lines are read.
const UNIT: &str = "unit of percentiles in ns: ";

/// `Jobs: 1 (f=1): [R(1)] [7.2% done] [519.0MB/0KB/0KB /s] [519/0/0 iops] [eta …]`, or
/// `… [r=519MiB/s,w=0KiB/s][r=519,w=0 IOPS][eta …]`.
pub(crate) fn states(job: &Job, version: &str, line: &str) -> Vec<Reading> {
    let inside: Vec<&str> = line.split('[').filter_map(|part| part.split(']').next()).collect();
    let rates = inside.iter().find(|part| part.contains("B/s") || part.trim_end().ends_with("/s"));
    let counts = inside.iter().find(|part| part.to_ascii_lowercase().ends_with("iops"));
    let (Some(rates), Some(counts)) = (rates, counts) else { return Vec::new() };
    let pick = |list: &str, nth: usize, name: &str| -> Option<String> {
        if list.contains('=') {
            let found = list.split(',').find_map(|one| one.trim().strip_prefix(name));
            return found.map(|one| one.split(['/', ' ']).next().unwrap_or_default().to_owned());
        }
        list.split('/').nth(nth).map(|one| one.trim().to_owned())
    };
    let counts = counts.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    let one = |(nth, name, direction): (usize, &str, Direction)| {
        let rate =
            pick(rates, nth, name).and_then(|text| bytes(&text)).filter(|rate| rate.value > 0.0)?;
        let mut reading = of_job(job, version, direction, None);
        reading.put("throughput", Some(rate));
        reading.put("iops", pick(counts, nth, name).and_then(|text| scaled(&text)));
        let note = "a state of the run, of about a second: the text has no result at its end";
        reading.notes.push(note.to_owned());
        Some(reading)
    };
    [(0, "r=", Direction::Read), (1, "w=", Direction::Write)].into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &str = "seq: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) \
        1024KiB-1024KiB, ioengine=libaio, iodepth=32
...
fio-3.28
Starting 4 processes
Jobs: 4 (f=4): [R(4)][100.0%][r=3201MiB/s][r=3201 IOPS][eta 00m:00s]
seq: (groupid=0, jobs=4): err= 0: pid=42: Mon Nov 11 10:00:00 2024
  read: IOPS=12.3k, BW=3201MiB/s (3357MB/s)(93.8GiB/30010msec)
    slat (usec): min=5, max=100, avg=10.00, stdev= 5.00
    clat (msec): min=1, max=20, avg= 9.99, stdev= 1.00
     lat (usec): min=500, max=20000, avg=9990.12, stdev=10.00
    clat percentiles (usec):
     |  1.00th=[ 8094],  5.00th=[ 8586], 50.00th=[ 9896],
     | 99.00th=[19006], 99.90th=[19530]
   bw (  MiB/s): min= 3000, max= 3300, per=100.00%, avg=3201.00, stdev=10.00, samples=240
  cpu          : usr=1.20%, sys=10.30%, ctx=96000, majf=0, minf=1000
Run status group 0 (all jobs):
   READ: bw=3201MiB/s (3357MB/s), 3201MiB/s-3201MiB/s (3357MB/s-3357MB/s), io=93.8GiB (101GB), \
       run=30010-30010msec
";

    const TWO: &str = "mix: (g=0): rw=randrw, bs=4K-4K/8K-8K/4K-4K, ioengine=psync, iodepth=1
fio-2.2.10
Starting 1 process
mix: (groupid=0, jobs=1): err= 5 (file:io_u.c): pid=9: Mon Nov 11 10:00:00 2024
  read : io=15565MB, bw=531298KB/s, iops=518, runt= 30000msec
    clat (usec): min=1, max=2, avg= 1.50, stdev= 0.10
     lat (usec): min=1, max=2, avg= 1.60, stdev= 0.10
  write: io=1024.0KB, bw=34.1KB/s, iops=4, runt= 30000msec
";

    fn value(reading: &Reading, metric: &str) -> f64 {
        reading.figures.get(metric).map_or(f64::NAN, |number| number.value)
    }

    #[test]
    fn the_text_of_fio_3() {
        let readings = read(THREE).unwrap().readings;
        let one = &readings[0];
        assert_eq!(
            (readings.len(), one.tool.as_str(), one.threads, one.depth),
            (1, "fio 3.28", Some(4), Some(32))
        );
        assert_eq!(
            (one.block_bytes, one.engine.as_deref(), one.seconds),
            (Some(1 << 20), Some("libaio"), Some(30.01))
        );
        assert!((value(one, "iops") - 12_300.0).abs() < 1e-6);
        assert!((value(one, "throughput") - 3201.0 * KIB * KIB).abs() < 1.0);
        assert!((value(one, "mean") - 9_990_120.0).abs() < 1.0);
        assert!((value(one, "p99") - 19_006_000.0).abs() < 1.0, "{:?}", one.figures);
        assert!(one.notes.is_empty(), "{:?}", one.notes);
    }

    #[test]
    fn the_text_of_fio_2_and_its_errors() {
        let readings = read(TWO).unwrap().readings;
        assert_eq!(
            (readings.len(), readings[1].direction, readings[1].block_bytes),
            (2, Direction::Write, Some(8192))
        );
        assert!((value(&readings[0], "throughput") - 531_298.0 * KIB).abs() < 1.0);
        assert_eq!((readings[0].mix, readings[0].random), (Some(None), Some(true)));
        assert_eq!(readings[0].failed.as_deref(), Some("fio ended with error 5"));
    }

    #[test]
    fn a_state_stands_for_a_result_that_is_not_there() {
        let joined = "# fio -f seq_r.fio seq-read: (g=0): rw=read, bs=1M-1M/1M-1M/1M-1M, \
            ioengine=psync, iodepth=1 fio-2.2.10 Starting 1 process Jobs: 1 (f=1): [R(1)] [7.2% \
                done] [519.0MB/0KB/0KB /s] [519/0/0 iops] [eta 02m:47s]";
        let readings = read(joined).unwrap().readings;
        let one = &readings[0];
        assert_eq!(
            (readings.len(), one.job.as_deref(), one.block_bytes),
            (1, Some("seq-read"), Some(1 << 20))
        );
        assert!((value(one, "throughput") - 519.0 * KIB * KIB).abs() < 1.0);
        assert!((value(one, "iops") - 519.0).abs() < 1e-9);
        assert!(one.notes[0].starts_with("a state of the run"));
        let again = joined.replace("seq-read: (g", "other: (g").replace("519", "99");
        let readings = read(&format!("{joined}\n{again}")).unwrap().readings;
        assert_eq!((readings.len(), readings[1].job.as_deref()), (2, Some("other")));
        assert!(
            read("seq: (g=0): rw=read, bs=4K-4K/4K-4K/4K-4K, ioengine=psync, iodepth=1\n").is_err()
        );
    }
}
