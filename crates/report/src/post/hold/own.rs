//! A result against the command above it, and against itself.

use super::{Known, say, words};
use crate::post::{About, Asked, Got, Post, Run, Statement};

/// By how much products of printed figures may be off: of data, rate and time, which have six
/// digits, and of counts in flight, which end at the first thread's end.
const ARITHMETIC: f64 = 0.01;
const IN_FLIGHT: f64 = 0.05;
/// Shorter runs, in seconds, are mostly start and end.
const SHORT: f64 = 5.0;

/// The command above a result line against the line.
pub(super) fn command_and_line(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let both = |run: &Run| Some((run.asked.clone()?, run.got.clone()?));
    let held = post.runs.iter().filter_map(both).filter_map(|(asked, got)| {
        let differ = differences(&asked, &got);
        if differ.is_empty() {
            return None;
        }
        let listed: Vec<String> = differ.iter().map(Difference::words).collect();
        let lines = [asked.line, got.line];
        let verdict = judge(&differ, &asked, &got);
        let text = format!("The command requests {}. {verdict}", listed.join("; "));
        Some(say(post, About::Contradiction, &lines, text))
    });
    held.collect()
}

/// A value that a command requests and its result has otherwise.
struct Difference {
    aspect: &'static str,
    asked: String,
    got: String,
}

impl Difference {
    fn words(&self) -> String {
        format!("{} {}, the result has {}", self.aspect, self.asked, self.got)
    }
}

fn differences(asked: &Asked, got: &Got) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut add = |aspect, asked: Option<String>, got: Option<String>| {
        if let (Some(asked), Some(got)) = (asked, got)
            && asked != got
        {
            all.push(Difference { aspect, asked, got });
        }
    };
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    // A batch's -w is its depth.
    let batch = got.tool == "gdsio" && got.depth.is_some();
    add("threads", number(asked.threads.filter(|_| !batch)), number(got.threads));
    let block = asked.block.filter(|(least, most)| least == most).map(|(block, _)| block);
    add("blocks of", block.map(words::bytes), got.block.map(words::bytes));
    add("path", asked.path.clone(), got.path.clone());
    if asked.tool != "gdsio" {
        add("depth", number(asked.depth), number(got.depth));
        add("engine", asked.engine.clone(), got.engine.clone());
    }
    let side = |direction: crate::foreign::Direction| direction.name().to_owned();
    let one = asked.direction.filter(|side| *side != crate::foreign::Direction::Both);
    add("direction", one.map(side), Some(side(got.direction)));
    let order = |random: bool| if random { "random" } else { "sequential" }.to_owned();
    add("offsets", asked.random.map(order), got.random.map(order));
    if let (Some(asked), Some(got)) = (asked.seconds, got.seconds)
        && (got < asked * 0.5 || got > asked * 1.25 + 5.0)
    {
        let seconds = |value: f64| format!("{value:.0} s");
        all.push(Difference { aspect: "time", asked: seconds(asked), got: seconds(got) });
    }
    all
}

/// Which of the two is right, by what the line has in itself.
fn judge(differ: &[Difference], asked: &Asked, got: &Got) -> String {
    let mut for_line = Vec::new();
    let mut for_command = Vec::new();
    for one in differ {
        match one.aspect {
            "threads" => {
                let hold = |threads: Option<u64>, list: &mut Vec<String>| {
                    let Some(threads) = threads else { return };
                    list.extend(in_flight_is(got, threads));
                    list.extend(set_is(asked, got, threads));
                };
                hold(got.threads, &mut for_line);
                hold(asked.threads, &mut for_command);
            }
            "blocks of" => {
                for_line.extend(got.block.and_then(|block| data_is(got, block)));
                let block = asked.block.map(|block| block.0);
                for_command.extend(block.and_then(|block| data_is(got, block)));
            }
            _ => {}
        }
    }
    let sentence = |list: &[String]| list.join("; ");
    match (for_line.is_empty(), for_command.is_empty()) {
        (false, true) => format!(
            "The line's other figures bear it out ({}): another command ran than the one that is \
             shown.",
            sentence(&for_line)
        ),
        (true, false) => format!(
            "The line's other figures bear out the command ({}): the field of the line is a \
             misprint.",
            sentence(&for_command)
        ),
        (false, false) => format!(
            "The line's other figures do not agree: {} for the line; {} for the command.",
            sentence(&for_line),
            sentence(&for_command)
        ),
        (true, true) => "No other figure decides which of the two is right.".to_owned(),
    }
}

fn in_flight_is(got: &Got, threads: u64) -> Option<String> {
    let in_flight = got.in_flight()?;
    near(in_flight, float(threads), IN_FLIGHT).then(|| {
        let (latency, iops) = (got.latency?, got.iops?);
        let (latency, iops) = (words::time(latency), words::count(iops));
        Some(format!("{latency} x {iops}/s are {in_flight:.1} in flight"))
    })?
}

fn set_is(asked: &Asked, got: &Got, threads: u64) -> Option<String> {
    let (set, size) = (got.set_bytes?, asked.size?);
    let fits = near(set, float(threads) * float(size), 0.001);
    fits.then(|| format!("the data set is {threads} x {}", words::bytes(size)))
}

fn data_is(got: &Got, block: u64) -> Option<String> {
    let (ops, data) = (got.ops?, got.data_bytes?);
    let fits = near(ops * float(block), data, 0.001);
    fits.then(|| format!("{ops} I/Os of {} are its data", words::bytes(block)))
}

/// Figures of a result that can't all be right.
pub(super) fn line_with_itself(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let mut all = Vec::new();
    let (mut held, mut right) = (Vec::new(), 0);
    for got in post.runs.iter().filter_map(|run| run.got.as_ref()) {
        let (checked, wrong) = arithmetic(got);
        if checked > 0 {
            held.push(got.line);
            right += usize::from(wrong.is_empty());
        }
        let about = About::Contradiction;
        all.extend(wrong.into_iter().map(|text| say(post, about, &[got.line], text)));
        all.extend(idle(post, got));
    }
    if right > 0 {
        let of = held.len();
        let text = format!(
            "{right} of {of} results agree with themselves: I/Os x size are the data, data / time \
             is the rate, latency x rate are the threads (as far as a line has these)."
        );
        all.push(say(post, About::Agreement, &[], text));
    }
    all
}

/// The number of checks, and what failed.
fn arithmetic(got: &Got) -> (usize, Vec<String>) {
    let (mut checked, mut wrong) = (0, Vec::new());
    let long = got.seconds.is_none_or(|seconds| seconds >= 1.0);
    if let (Some(ops), Some(block), Some(data)) = (got.ops, got.block, got.data_bytes) {
        checked += 1;
        let (product, size) = (ops * float(block), words::bytes(block));
        if !near(product, data, ARITHMETIC) && (product - data).abs() > 64.0 * float(block) {
            let (is, has) = (words::count(product), words::count(data));
            wrong.push(format!("{ops} I/Os of {size} are {is}B, the line has {has}B of data."));
        }
    }
    if let (Some(data), Some(seconds), Some(rate)) = (got.data_bytes, got.seconds, got.rate)
        && long
    {
        checked += 1;
        // Whole seconds and MiB of elbencho and fio are less exact.
        let off = if got.tool == "gdsio" { ARITHMETIC } else { 0.05 };
        if !near(data / seconds, rate, off) {
            let (is, has) = (words::rate(data / seconds), words::rate(rate));
            wrong.push(format!("Data / time is {is}, the rate says {has}."));
        }
    }
    if let (Some(iops), Some(block), Some(rate)) = (got.iops, got.block, got.rate)
        && got.ops.is_none()
    {
        checked += 1;
        if !near(iops * float(block), rate, 0.03) {
            let (size, has) = (words::bytes(block), words::rate(rate));
            let is = words::rate(iops * float(block));
            let iops = words::count(iops);
            wrong.push(format!("{iops} IOPS of {size} are {is}, the rate says {has}."));
        }
    }
    if let (Some(in_flight), Some(most)) = (got.in_flight(), most_in_flight(got)) {
        checked += 1;
        if in_flight > most * (1.0 + IN_FLIGHT) && long {
            wrong.push(format!(
                "Latency x rate are {in_flight:.1} I/Os in flight, and there are {most} at most: \
                 latency, rate or threads are not of this run."
            ));
        }
    }
    (checked, wrong)
}

/// I/Os that can be in flight at once.
fn most_in_flight(got: &Got) -> Option<f64> {
    let depth = if got.engine.as_deref().is_some_and(one_at_a_time) { 1 } else { got.depth? };
    Some(float(got.threads?.saturating_mul(depth)))
        .filter(|_| got.tool != "gdsio")
        .or((got.tool == "gdsio" && got.depth.is_none()).then(|| float(got.threads.unwrap_or(1))))
}

/// fio's engines that wait for each I/O.
pub(super) fn one_at_a_time(engine: &str) -> bool {
    ["psync", "sync", "vsync", "pvsync", "pvsync2", "mmap"].contains(&engine)
}

/// Threads that are not all in flight.
fn idle(post: &Post, got: &Got) -> Option<Statement> {
    let (in_flight, most) = (got.in_flight()?, most_in_flight(got)?);
    let long = got.seconds.is_some_and(|seconds| seconds >= SHORT);
    (long && in_flight < most * 0.8).then(|| {
        let text = format!(
            "{in_flight:.1} of {most} I/Os are in flight on average: threads wait for something \
             other than their I/Os (processor, locks, verification), or end early."
        );
        say(post, About::Limit, &[got.line], text)
    })
}

pub(super) fn near(value: f64, other: f64, share: f64) -> bool {
    (value - other).abs() <= share * other.abs()
}

#[expect(clippy::cast_precision_loss, reason = "sizes and counts of a run")]
pub(super) fn float(value: u64) -> f64 {
    value as f64
}
