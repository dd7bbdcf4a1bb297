//! gdsio's result lines, NVIDIA's and gpuio's own.
//!
//! The form is that of gdsio as of CUDA 11.2 to 12.8, seen on NVIDIA's pages and in public logs
//! (tests/fixtures); results stand among prompts and messages, also behind a `#`.

use crate::foreign::{Direction, ForeignError, Number, Output, Reading, Skipped, Tool};

const NAME: &str = "gdsio";
const KIB: f64 = 1024.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

pub(crate) const TOOL: Tool = Tool {
    name: NAME,
    measures: &[
        "if NVIDIA's gdsio wrote it: its time includes set-up (buffer registration), which affects \
         short runs, and untimed runs of several threads stop near the first thread's end",
        "gdsio's XferType is the requested type: it does not show which path the bytes took",
    ],
    looks: |text| text.contains("XferType:") && text.contains("Throughput:"),
    read,
};

/// gpuio's name of a path for gdsio's XferType; `None` if the path is unknown.
pub(crate) fn path_of(xfer_type: &str) -> Option<&'static str> {
    let path = match xfer_type {
        "GPUD" => "gds",
        "CPUONLY" => "host",
        "CPU_GPU" => "staged",
        "CPU_ASYNC_GPU" => "managed",
        "CPU_CACHED_GPU" => "cached",
        "ASYNC" | "GPUD_ASYNC" => "gds-stream",
        "GPU_BATCH" => "gds-batch",
        "GPU_BATCH_STREAM" => "gds-batch-stream",
        "GATHER" => "gather",
        "MAPPED" => "mapped",
        "RESIDENT" => "resident",
        "INITIATED" => "initiated",
        "LIBRARY" => "library",
        "LIBRARY_STREAM" => "library-stream",
        "LIBRARY_BATCH" => "library-batch",
        "CPU_GPU_GPU" => "routed",
        _ => return None,
    };
    Some(path)
}

fn read(text: &str) -> Result<Output, ForeignError> {
    let mut output = Output::default();
    for (number, text) in unwrapped(text) {
        let place = format!("line {number}");
        if text.contains("XferType:") && text.contains("Throughput:") {
            match line(&text) {
                Ok(reading) => output.readings.push(reading),
                Err(why) => output.skipped.push(Skipped { place, why }),
            }
        } else if let Some(last) = output.readings.last_mut() {
            comment(last, text.trim());
        }
    }
    if output.readings.is_empty() {
        let why =
            output.skipped.first().map(|skipped| format!(": {}: {}", skipped.place, skipped.why));
        return Err(ForeignError::Empty { tool: NAME, why: why.unwrap_or_default() });
    }
    Ok(output)
}

/// Lines with their numbers, from 1. A result that a terminal or an editor has wrapped is one line.
fn unwrapped(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let other = line.trim().is_empty() || line.starts_with(['#', '$']);
        match lines.last_mut().filter(|(_, last)| !other && continues(last, line)) {
            Some((_, last)) => join(last, line),
            None => lines.push((index + 1, line.to_owned())),
        }
    }
    lines
}

/// Whether a result that is cut at the end of `last` goes on in the line below it. Words about
/// `IoType:` are no result.
pub(crate) fn continues(last: &str, below: &str) -> bool {
    let word = |text: &str| text.split_whitespace().next().map(str::to_owned);
    let typed = |text: &str| {
        let mut behind = text.split("IoType:").skip(1);
        behind.any(|rest| word(rest).is_none_or(|word| direction(&word).is_ok()))
    };
    let whole = last.contains("total_time") && last.trim_end().ends_with("secs");
    let begun = (typed(last) || last.contains("XferType:")) && !whole;
    let first = below.trim_start();
    let begins = typed(below)
        || below.contains("XferType:") && (last.contains("XferType:") || !first.starts_with('X'));
    begun && !begins
}

/// Adds the line below to one that was wrapped. Terminals wrap within words and figures too: then
/// both are one, where a blank between them would be none of gdsio's lines.
pub(crate) fn join(last: &mut String, below: &str) {
    const WORDS: [&str; 13] = [
        "IoType:",
        "XferType:",
        "Threads:",
        "IoDepth:",
        "DataSetSize:",
        "IOSize:",
        "Throughput:",
        "GiB/sec,",
        "Avg_Latency:",
        "usecs",
        "ops:",
        "total_time",
        "secs",
    ];
    let (left, right) = (last.trim_end(), below.trim_start());
    let cut = left.rsplit(' ').next().unwrap_or_default();
    let rest = right.split(' ').next().unwrap_or_default();
    let figure = |c: char| c.is_ascii_digit() || c == '.';
    let figures = cut.ends_with(figure) && rest.starts_with(figure);
    let both = format!("{cut}{rest}");
    let word = WORDS.contains(&&*both) || path_of(&both).is_some() || direction(&both).is_ok();
    let sign = cut.ends_with(['/', '_', '(']) || rest.starts_with(['/', '_', '(', ':', ')', ',']);
    let open = cut.contains('(') && !cut.contains(')');
    let is_one = last.len() == left.len() && (figures || word || sign || open);
    last.truncate(left.len());
    if !is_one {
        last.push(' ');
    }
    last.push_str(right.trim_end());
}

/// gpuio's comments below its line.
fn comment(reading: &mut Reading, text: &str) {
    if text.starts_with("# software GPU:") {
        reading.software_gpu = true;
    } else if let Some(why) = text.strip_prefix("# unfinished: ") {
        reading.failed = Some(why.to_owned());
    } else if let Some(sentence) = text.strip_prefix("# path: ") {
        reading.notes.push(sentence.to_owned());
        // Only gpuio writes this. Its blocking paths may have more I/Os in flight than the line
        // says.
        reading.depth = reading.depth.filter(|depth| *depth > 1);
    }
}

/// One result line. Every field that gdsio always prints must be complete; otherwise the line was
/// cut, and a figure at its end may be incomplete.
pub(crate) fn line(text: &str) -> Result<Reading, String> {
    let io_type = match text.split_once("IoType:") {
        Some((_, rest)) => rest.split_whitespace().next().unwrap_or(""),
        None => before_xfer_type(text),
    };
    let (direction, random) = direction(io_type)?;
    let xfer = after(text, "XferType:")?;
    let mut reading = Reading::new(NAME, direction);
    reading.random = Some(random);
    reading.path = path_of(xfer).map(str::to_owned);
    if reading.path.is_none() {
        reading.notes.push(format!("XferType {xfer} has no equivalent path in gpuio"));
    }
    reading.job = job(text);
    let threads = whole(after(text, "Threads:")?, "Threads")?;
    reading.threads = Some(threads);
    let batch = text.contains("IoDepth:");
    if batch {
        reading.depth = Some(whole(after(text, "IoDepth:")?, "IoDepth")?);
    } else if reading.path.as_deref().is_some_and(blocking) {
        reading.depth = Some(1);
    }
    let size = inside(text, "DataSetSize:", "(KiB)")?;
    let (data, of) = size.split_once('/').unwrap_or((size, size));
    reading.data_bytes = Number::printed(data.trim(), KIB).map(|data| data.value);
    reading.size_bytes = whole(of, "DataSetSize")?.saturating_mul(1024).checked_div(threads);
    let block =
        Number::printed(inside(text, "IOSize:", "(KiB)")?, KIB).ok_or("IOSize is no number")?;
    reading.block_bytes = bytes(block.value);
    figures(&mut reading, text, batch)?;
    Ok(reading)
}

fn figures(reading: &mut Reading, text: &str, batch: bool) -> Result<(), String> {
    let number = |name: &str, end: &str, unit| {
        Number::printed(inside(text, name, end)?, unit).ok_or(format!("{name} is no number"))
    };
    reading.put("throughput", Some(number("Throughput:", "GiB/sec", GIB)?));
    let latency = number("Avg_Latency:", "usecs", 1000.0)?;
    if batch {
        let why = "Avg_Latency of batches is ignored: some releases print the batch's time, \
            others the time per I/O";
        reading.notes.push(why.to_owned());
    } else {
        reading.put("mean", Some(latency));
    }
    let ops = number("ops:", "total_time", 1.0)?;
    let time = number("total_time", "secs", 1.0)?;
    reading.ops = Some(ops.value);
    reading.seconds = Some(time.value);
    if time.value > time.off {
        let value = ops.value / time.value;
        let off = value * time.off / (time.value - time.off);
        reading.put("iops", Some(Number { value, off }));
    }
    Ok(())
}

/// Whether gdsio does one I/O at a time and thread on this path.
pub(crate) fn blocking(path: &str) -> bool {
    matches!(path, "gds" | "host" | "staged" | "managed" | "cached")
}

fn direction(io_type: &str) -> Result<(Direction, bool), String> {
    Ok(match io_type {
        "READ" => (Direction::Read, false),
        "WRITE" => (Direction::Write, false),
        "RANDREAD" => (Direction::Read, true),
        "RANDWRITE" => (Direction::Write, true),
        "RW" => (Direction::Both, false),
        "RANDRW" => (Direction::Both, true),
        other => return Err(format!("IoType '{other}' is unknown")),
    })
}

/// The word before `XferType:`, for lines that lost their first word.
fn before_xfer_type(text: &str) -> &str {
    let (before, _) = text.split_once("XferType:").unwrap_or((text, ""));
    before.split_whitespace().last().unwrap_or("")
}

/// The name before the fields, where gpuio wrote `Job: NAME IoType:`.
fn job(text: &str) -> Option<String> {
    let name = text.trim().strip_prefix("Job: ")?.split_once(" IoType:")?.0;
    Some(name.to_owned())
}

/// The word after a field's name.
fn after<'a>(text: &'a str, name: &str) -> Result<&'a str, String> {
    let rest = text.split_once(name).map(|(_, rest)| rest).and_then(|rest| {
        // The last value of the line may be cut.
        rest.split_whitespace().next().filter(|word| rest.trim_start().len() > word.len())
    });
    rest.ok_or_else(|| format!("the line is cut: {} is missing", name.trim_end_matches(':')))
}

/// The text between a field's name and its unit.
pub(crate) fn inside<'a>(text: &'a str, name: &str, end: &str) -> Result<&'a str, String> {
    let rest = text.split_once(name).and_then(|(_, rest)| rest.split_once(end));
    let missing = || format!("the line is cut: {} is missing", name.trim_end_matches(':'));
    rest.map(|(value, _)| value.trim()).ok_or_else(missing)
}

fn whole(text: &str, name: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{name} '{text}' is no whole number"))
}

/// A whole number of bytes; `IOSize: 0` is a block below 1 KiB of unknown size.
fn bytes(value: f64) -> Option<u64> {
    Some(gpuio_base::units::whole(value)).filter(|&bytes| bytes > 0)
}
