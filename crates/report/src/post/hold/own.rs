//! A result against the command above it, and against itself.

use std::borrow::Cow;

use gpuio_base::units::{float, many};

use super::{Known, latency, say, words};
use crate::foreign::{Reading, gdsio};
use crate::post::command::one_at_a_time;
use crate::post::figure::open_figures;
use crate::post::line::Line;
use crate::post::result::of_reading;
use crate::post::{About, Asked, Got, Post, Run, Statement};

/// By how much products of printed figures may be off: of data, rate and time, which have six
/// digits, and of counts in flight, which end at the first thread's end.
const ARITHMETIC: f64 = 0.01;
const IN_FLIGHT: f64 = 0.05;
/// A factor that neither the start nor the end of a run explains.
const FAR: f64 = 1.5;
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

/// Lines that look like results and are none here: gdsio's that can't be read, dd's without a known
/// direction, hdparm's of memory; and figures whose comma has two meanings.
pub(super) fn unread(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let mut unread = unread_of_gdsio(post);
    let is_taken = |line: &&Line| {
        let own = |run: &Run| run.got.as_ref().is_some_and(|got| got.line == line.number);
        post.runs.iter().any(own)
    };
    unread.extend(post.lines.iter().filter(|line| !is_taken(line)).filter_map(|line| {
        let text = line.text.trim();
        let seconds = text.split_once(" copied, ").and_then(|(_, rest)| rest.split_once(" s,"));
        // Seconds without a fraction are of lines of progress.
        let is_dd = seconds.is_some_and(|(seconds, _)| seconds.contains('.'));
        let words = if text.starts_with("Timing ") && text.contains(" cached reads:") {
            "hdparm's cached reads are of memory alone, and are left out."
        } else if is_dd && text.contains(" bytes ") {
            "This result of dd is left out: that it reads or writes alone is not shown by a \
             command above it."
        } else {
            return None;
        };
        Some(say(post, About::LeftOut, &[line.number], words.to_owned()))
    }));
    unread
}

fn unread_of_gdsio(post: &Post) -> Vec<Statement> {
    let all = ["IoType:", "XferType:", "Throughput:", "Avg_Latency:"];
    let lines = post.lines.iter().filter(|line| all.iter().all(|word| line.text.contains(word)));
    let why = lines.filter_map(|line| Some((line.number, gdsio::line(&line.text).err()?)));
    let why = why.map(|(line, why)| {
        (line, format!("This line looks like a result of gdsio and is left out: {why}."))
    });
    // Cells of tables have reasons of their own.
    let is_prose = |line: &&Line| line.prompt.is_none() && !line.text.trim_start().starts_with('|');
    let open = post.lines.iter().filter(is_prose).flat_map(|line| {
        let all = open_figures(&line.text).into_iter();
        all.map(move |text| {
            let words = "is left out: whether its comma is one of decimals is not said.";
            (line.number, format!("{text} {words}"))
        })
    });
    why.chain(open).map(|(line, words)| say(post, About::LeftOut, &[line], words)).collect()
}

/// Commands with a block size behind the flag of the type of I/O.
pub(super) fn misplaced(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let asked = post.runs.iter().filter_map(|run| Some((run, run.asked.as_ref()?)));
    let said = asked.filter_map(|(run, asked)| {
        let size = asked.misplaced.as_ref()?;
        let fits = run.got.as_ref().zip(asked.threads);
        let fits = fits
            .and_then(|(got, threads)| in_flight_is(got, threads))
            .map(|fits| format!(" The result bears it out: with blocks of {size}, {fits}."));
        let text = format!(
            "The command has `-I {size}`: -I takes the type of I/O, so -i, the block size, is \
             meant.{}",
            fits.unwrap_or_default()
        );
        Some(say(post, About::Contradiction, &[asked.line], text))
    });
    said.collect()
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
    // gdsio's -s is of each thread, or of the one file that all share.
    let sets = asked.size.zip(got.set_bytes).map(|(size, set)| {
        let shared = (!asked.own_files).then_some(1);
        let threads = [shared, asked.threads, got.threads].into_iter().flatten();
        let fits = |threads: u64| near(set, float(threads) * float(size), 0.001);
        (size, set, threads.into_iter().any(fits))
    });
    if let Some((size, set, false)) = sets {
        let threads = asked.threads.unwrap_or(1);
        let wanted = format!("{threads} x {}", words::bytes(size));
        add("a data set of", Some(wanted), Some(words::bytes(gpuio_base::units::whole(set))));
    }
    let order = |random: bool| if random { "random" } else { "sequential" }.to_owned();
    add("offsets", asked.random.map(order), got.random.map(order));
    // elbencho's is a limit.
    let is_limit = asked.tool == "elbencho";
    if let (Some(asked), Some(got)) = (asked.seconds, got.seconds)
        && (got < asked * 0.5 && !is_limit || got > asked * 1.25 + 5.0)
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

/// Figures of a result that can't all be right, those that agree, and I/Os that are not in flight.
pub(super) fn line_with_itself(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let mut all = Vec::new();
    let (mut results, mut agree) = (0_u64, vec![0; RELATIONS.len()]);
    for run in &post.runs {
        let Some(got) = &run.got else { continue };
        results += 1;
        let most = most_in_post(post, got);
        let limit = run.asked.as_ref().and_then(|asked| asked.limit.as_deref());
        for (relation, count) in RELATIONS.iter().zip(&mut agree) {
            match (relation.check)(got, most) {
                Found::Holds => *count += 1,
                // Figures of which one is wrong show no limit.
                Found::Says(About::Limit, _) if !is_sound(post, got) => {}
                Found::Says(About::Limit, words) => {
                    let words = match (limit, words.split_once(':')) {
                        (Some(limit), Some((said, _))) => {
                            format!("{said}: the command limits its rate ({limit}).")
                        }
                        _ => words,
                    };
                    all.push(say(post, About::Limit, &[got.line], words));
                }
                Found::Says(about, words) => all.push(say(post, about, &[got.line], words)),
                Found::Open => {}
            }
        }
    }
    let counts = RELATIONS.iter().zip(&agree).filter(|(_, count)| **count > 0);
    let within = |one: &Relation| {
        one.within.map(|share| format!(" (within {:.0} %)", share * 100.0)).unwrap_or_default()
    };
    let counts = counts.map(|(one, n)| format!("{} in {n}{}", one.name, within(one)));
    let counts: Vec<String> = counts.collect();
    if !counts.is_empty() {
        let results = many(results, "result");
        let text = format!("Within themselves, {results}: {}.", counts.join(", "));
        all.push(say(post, About::Agreement, &[], text));
    }
    all
}

/// The text without results whose figures contradict each other: nothing is concluded from them.
pub(super) fn sound(post: &Post) -> Cow<'_, Post> {
    let of = |run: &Run| run.got.as_ref().is_none_or(|got| is_sound(post, got));
    if post.runs.iter().all(of) {
        return Cow::Borrowed(post);
    }
    let mut sound = post.clone();
    for (run, own) in sound.runs.iter_mut().zip(&post.runs) {
        run.got = run.got.take().filter(|_| of(own));
    }
    Cow::Owned(sound)
}

/// Whether nothing is known against a result.
fn is_sound(post: &Post, got: &Got) -> bool {
    let most = most_in_post(post, got);
    let against =
        |one: &Relation| matches!((one.check)(got, most), Found::Says(About::Contradiction, _));
    !RELATIONS.iter().any(against)
}

/// Results that are compared with no other one, where there are others.
pub(super) fn unsound(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let all = || post.runs.iter().filter_map(|run| run.got.as_ref());
    let lines: Vec<usize> = all().filter(|got| !is_sound(post, got)).map(|got| got.line).collect();
    if lines.is_empty() || all().count() < 2 {
        return Vec::new();
    }
    let text = "Figures of these results contradict each other, so nothing is concluded from them.";
    vec![say(post, About::Compared, &lines, text.to_owned())]
}

/// Why figures of one result can't all be right.
pub(crate) fn contradictions(reading: &Reading) -> Vec<String> {
    let is_gdsio = reading.tool == gdsio::TOOL.name;
    let got = of_reading(if is_gdsio { gdsio::TOOL.name } else { "another" }, reading);
    let most = most_in_flight(&got);
    let found = RELATIONS.iter().filter_map(|relation| match (relation.check)(&got, most) {
        Found::Says(About::Contradiction, words) => Some(words),
        _ => None,
    });
    let parts = reading.parts.iter().flat_map(contradictions);
    found.chain(latency::contradiction(reading)).chain(parts).collect()
}

/// A relation between the figures of one result, which has so many I/Os in flight at most.
struct Relation {
    name: &'static str,
    /// The share that its words state, where it holds of what people take for exact.
    within: Option<f64>,
    check: fn(&Got, Option<f64>) -> Found,
}

const RELATIONS: [Relation; 6] = [
    exact("I/Os x size are the data", data),
    exact("data / time is the rate", rate),
    exact("IOPS x size is the rate", iops),
    exact("I/Os / time are the IOPS", ops),
    Relation {
        name: "latency x rate are the I/Os that threads have in flight",
        within: Some(IN_FLIGHT),
        check: in_flight,
    },
    exact("percentiles ascend", percentiles),
];

const fn exact(name: &'static str, check: fn(&Got, Option<f64>) -> Found) -> Relation {
    Relation { name, within: None, check }
}

/// The outcome of a check.
enum Found {
    Holds,
    /// It does not hold.
    Says(About, String),
    /// Its figures are not there, or too far apart for one and too near for the other.
    Open,
}

impl Found {
    /// Holds within a share; fails where it is further off and `decided`, or far off.
    fn of(value: f64, other: f64, off: f64, decided: bool, words: impl Fn() -> String) -> Found {
        let far = value > other * FAR * (1.0 + off) || other > value * FAR * (1.0 + off);
        match near(value, other, off) {
            true => Found::Holds,
            false if decided || far => Found::Says(About::Contradiction, words()),
            false => Found::Open,
        }
    }
}

fn is_long(got: &Got) -> bool {
    got.seconds.is_none_or(|seconds| seconds >= 1.0)
}

fn percentiles(got: &Got, _: Option<f64>) -> Found {
    let pairs = || got.percentiles.iter().zip(got.percentiles.iter().skip(1));
    match pairs().find(|(lower, higher)| lower.1 > higher.1) {
        _ if pairs().next().is_none() => Found::Open,
        None => Found::Holds,
        Some((lower, higher)) => {
            let [lower, higher] =
                [lower, higher].map(|(at, ns)| format!("{} ({})", at.label(), words::time(*ns)));
            Found::Says(About::Contradiction, format!("{higher} lies below {lower}."))
        }
    }
}

fn data(got: &Got, _: Option<f64>) -> Found {
    let (Some(ops), Some(block), Some(data)) = (got.ops, got.block, got.data_bytes) else {
        return Found::Open;
    };
    let product = ops * float(block);
    // Each thread's last I/Os may be smaller.
    let last = got.threads.unwrap_or(1).saturating_mul(got.depth.unwrap_or(1));
    if (product - data).abs() <= float(last) * float(block) && !near(product, data, ARITHMETIC) {
        return Found::Open;
    }
    Found::of(product, data, ARITHMETIC, true, || {
        let (size, is, has) = (words::bytes(block), words::count(product), words::count(data));
        format!("{ops} I/Os of {size} are {is}B, the line has {has}B of data.")
    })
}

fn rate(got: &Got, _: Option<f64>) -> Found {
    let (Some(data), Some(seconds), Some(rate)) = (got.data_bytes, got.seconds, got.rate) else {
        return Found::Open;
    };
    // Whole seconds and MiB of elbencho and fio are less exact.
    let off = if got.tool == "gdsio" { ARITHMETIC } else { 0.05 } + got.rounding;
    Found::of(data / seconds, rate, off, is_long(got), || {
        let (is, has) = (words::rate(data / seconds), words::rate(rate));
        format!("Data / time is {is}, the rate says {has}.")
    })
}

fn iops(got: &Got, _: Option<f64>) -> Found {
    let (Some(iops), Some(block), Some(rate)) = (got.iops, got.block, got.rate) else {
        return Found::Open;
    };
    if got.ops.is_some() {
        return Found::Open;
    }
    Found::of(iops * float(block), rate, 0.03 + got.rounding, true, || {
        let (size, has) = (words::bytes(block), words::rate(rate));
        let (is, iops) = (words::rate(iops * float(block)), words::count(iops));
        format!("{iops} IOPS of {size} are {is}, the rate says {has}.")
    })
}

fn ops(got: &Got, _: Option<f64>) -> Found {
    // gdsio prints no IOPS: they are computed here.
    let (Some(ops), Some(seconds), Some(iops)) = (got.ops, got.seconds, got.iops) else {
        return Found::Open;
    };
    if got.tool == gdsio::TOOL.name {
        return Found::Open;
    }
    Found::of(ops / seconds, iops, 0.05 + got.rounding, is_long(got), || {
        let (is, has) = (words::count(ops / seconds), words::count(iops));
        format!("I/Os / time are {is} IOPS, the result has {has}.")
    })
}

fn in_flight(got: &Got, most: Option<f64>) -> Found {
    let (Some(in_flight), Some(most)) = (got.in_flight(), most) else {
        return Found::Open;
    };
    let (share, off) = (in_flight / most, IN_FLIGHT + got.rounding);
    let is_gdsio = got.tool == "gdsio";
    let seconds = got.seconds.unwrap_or_default();
    // The rest may be of the other direction.
    if got.is_shared && share < 1.0 + off {
        return Found::Open;
    }
    if near(share, 1.0, off) {
        return Found::Holds;
    }
    let said = |words: &str| format!("Latency x rate are {in_flight:.1} I/Os in flight, {words}");
    // The depth of each thread is not known there: one at least.
    if got.tool == "table" && got.depth.is_none() {
        let words = format!(
            "and {most} threads have one each: threads wait for something other than their I/Os, \
             or latency, rate and threads are not of one run."
        );
        return if share < 0.8 { Found::Says(About::Limit, said(&words)) } else { Found::Open };
    }
    let (about, text) = if share > 1.0 && (is_long(got) || share > FAR * (1.0 + off)) {
        let words =
            format!("and there are {most} at most: latency, rate or threads are not of this run.");
        (About::Contradiction, said(&words))
    } else if is_gdsio && share * FAR * (1.0 + off) < 1.0 && seconds < SHORT {
        // gdsio's time includes its start.
        let idle = (1.0 - share) * 100.0;
        let time = words::time(seconds * 1e9);
        let text = format!(
            "For {idle:.1} % of the threads' {time} nothing was in flight: a short run is mostly \
             its start, and its rate is not that of the I/Os. Run it for longer."
        );
        (About::Limit, text)
    } else if is_gdsio && share * FAR * (1.0 + off) < 1.0 {
        let words = format!(
            "and {most} threads have one each: latency, rate or threads are not of this run, \
             unless threads ended early or verified data."
        );
        (About::Contradiction, said(&words))
    } else if share < 0.8 && seconds >= SHORT {
        let text = format!(
            "{in_flight:.1} of {most} I/Os are in flight on average: threads wait for something \
             other than their I/Os (processor, locks, verification, a limit of the rate), or end \
             early."
        );
        (About::Limit, text)
    } else {
        return Found::Open;
    };
    Found::Says(about, text)
}

/// The same for a line of a post, whose depth stands there for batches alone.
fn most_in_post(post: &Post, got: &Got) -> Option<f64> {
    if got.tool == "gdsio" {
        // gpuio's own lines have no depth, whatever it is.
        let below = post.lines.iter().skip_while(|line| line.number <= got.line);
        let mut notes = below.take_while(|line| line.text.starts_with('#'));
        let own = notes.any(|line| line.text.starts_with("# path: "));
        let blocking = got.depth.is_none() && got.path.as_deref().is_some_and(gdsio::blocking);
        return got.threads.filter(|_| blocking && !own).map(float);
    }
    most_in_flight(got)
}

/// I/Os that can be in flight at once.
fn most_in_flight(got: &Got) -> Option<f64> {
    let one = got.engine.as_deref().is_some_and(one_at_a_time);
    let least = (got.tool == "table").then_some(1);
    let depth = if one { 1 } else { got.depth.or(least)? };
    Some(float(got.threads?.saturating_mul(depth)))
}

pub(super) fn near(value: f64, other: f64, share: f64) -> bool {
    (value - other).abs() <= share * other.abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::hold::hold;

    #[test]
    fn the_size_of_a_thread_is_held_against_the_data_set() {
        let said = |files: &str, size: &str, set: u64| {
            let text = format!(
                "$ gdsio {files} -w 8 -d 0 -x 0 -I 0 -i 1M -s {size}\nIoType: READ XferType: GPUD \
                 Threads: 8 DataSetSize: {set}/{set}(KiB) IOSize: 1024(KiB) Throughput: 1.000000 \
                 GiB/sec, Avg_Latency: 7812.500000 usecs ops: {} total_time {}.000000 secs\n",
                set >> 10,
                set >> 20
            );
            let said = hold(&[crate::post::read("post", &text)], &[]);
            said.into_iter().find(|one| one.words.contains("data set of")).map(|one| one.words)
        };
        assert_eq!((said("-D /d", "1G", 8 << 20), said("-f /d/x", "8G", 8 << 20)), (None, None));
        for (files, size) in [("-D /d", "2G"), ("-f /d/x", "2G"), ("-D /d", "8G")] {
            let text = said(files, size, 8 << 20).unwrap();
            assert!(text.contains(&format!("a data set of 8 x {size}, the result has")), "{text}");
        }
    }

    #[test]
    fn latencies_of_tables_are_held_against_their_threads() {
        let said = |latency: u32| {
            let text = format!(
                "| threads | bs | read GiB/s | avg latency (us) |\n|---|---|---|---|\n\
                 | 16 | 1M | 12.1 | {latency} |\n"
            );
            let all = hold(&[crate::post::read("post", &text)], &[]);
            all.into_iter().map(|one| one.words).collect::<String>()
        };
        assert!(said(826).contains("10.2 I/Os in flight, and 16 threads"), "{}", said(826));
        assert!(said(1290).contains("I/Os that threads have in flight in 1"), "{}", said(1290));
        assert!(!said(5000).contains("and 16 threads"), "the depth is not known");
    }

    #[test]
    fn figures_that_contradict_each_other_show_no_limit() {
        let said = |iops: u32| {
            let text = format!(
                "| threads | bs | read GiB/s | read IOPS | avg latency (us) |\n\
                 |---|---|---|---|---|\n\
                 | 16 | 1M | 12.1 | {iops} | 826 |\n"
            );
            let all = hold(&[crate::post::read("post", &text)], &[]);
            all.into_iter().map(|one| one.words).collect::<String>()
        };
        assert!(said(12_390).contains("I/Os in flight, and 16 threads"), "{}", said(12_390));
        let wrong = said(9_000);
        assert!(wrong.contains("the rate says") && !wrong.contains("in flight"), "{wrong}");
    }

    /// The drive, a sentence about the result and iostat beside it say nothing of such a line.
    #[test]
    fn nothing_is_concluded_from_figures_that_contradict_each_other() {
        let said = |throughput: &str| {
            let text = format!(
                "h> mount\n/dev/nvme0n1 on /d type xfs (rw)\nme@h2:~$ iostat -xmy 5 1\nDevice r/s \
                 rMB/s %util\nnvme0n1 5000.00 5000 99.90\nh> gdsio -D /d -d 0 -w 32 -s 1G -i 1M -x \
                 0 -I 0\nIoType: READ XferType: GPUD Threads: 32 DataSetSize: \
                 204472320/33554432(KiB) IOSize: 1024(KiB) Throughput: {throughput} GiB/sec, \
                 Avg_Latency: 3156.0 usecs ops: 199680 total_time 19.7 secs\n\nSo {throughput} \
                 GiB/s, or 9k IOPS with 700 us.\n"
            );
            let mut captured = gpuio_capture::Captured::default();
            gpuio_capture::read("post", &text, &mut captured).unwrap();
            let (machine, figures) = (&captured.machine, &gpuio_machine::flow::Figures::built_in());
            let topology = &gpuio_machine::topo::Topology::of(machine, &[]);
            let known = Known { host: None, machine, topology, figures };
            let all = hold(&[crate::post::read("post", &text)], &[known]);
            all.into_iter().map(|one| one.words).collect::<Vec<_>>().join(" | ")
        };
        assert!(said("9.9").contains("iostat 4.88 GiB/s at nvme0n1"), "{}", said("9.9"));
        let wrong = said("19.9");
        assert!(wrong.contains("the rate says 19.9"), "{wrong}");
        assert!(!wrong.contains("iostat"), "{wrong}");
    }

    #[test]
    fn a_result_that_cannot_be_read_is_named() {
        let text = "IoType: READ XferType: GPUD Threads: 8 DataSetSize: 8/8(KiB) IOSize: 4(KiB) \
                    Throughput: 900 MiB/sec, Avg_Latency: 5 usecs ops: 8 total_time 1.0 secs\n";
        let whole = text.replace("900 MiB/sec", "0.9 GiB/sec");
        let post = crate::post::read("post", &format!("{text}{whole}"));
        let said = unread(&post, &[]);
        assert!(said.len() == 1 && said[0].lines == [1], "{said:?}");
    }

    #[test]
    fn shortened_results_in_inline_code_belong_to_their_command() {
        let text = "**Write:** `gdsio -D /mnt/x -w 128 -d 0 -I 1 -x 0 -s 1G -I 1M`\n\
                    `Throughput: 2.000000 GiB/sec, Avg_Latency: 62500.000000 usecs`\n\
                    the same on the way -x 2 (CPU_GPU):\n\
                    `Throughput: 6.000000 GiB/sec, Avg_Latency: 20833.333000 usecs`\n\
                    and once more\n\
                    `Throughput: 7.000000 GiB/sec, Avg_Latency: 20833.333000 usecs`\n";
        let post = crate::post::read("post", text);
        let paths: Vec<Option<&str>> =
            post.runs.iter().map(|run| run.got.as_ref()?.path.as_deref()).collect();
        assert_eq!(paths, [Some("gds"), Some("staged")], "a third has no command of its own");
        let got = post.runs[0].got.as_ref().unwrap();
        assert_eq!((got.threads, got.line, post.runs[1].line), (Some(128), 2, 4));
        let said: Vec<String> = hold(&[post], &[]).into_iter().map(|one| one.words).collect();
        let all = said.join("\n");
        for words in ["has `-I 1M`", "128.0 in flight", "path gds to staged: 3.00 of the rate"] {
            assert!(all.contains(words), "{words}: {all}");
        }
        let wrong = text.replace("62500.0", "92500.0");
        let said = hold(&[crate::post::read("post", &wrong)], &[]);
        assert!(said.iter().any(|one| one.words.contains("189.4 I/Os in flight")), "{said:?}");
    }

    #[test]
    fn percentiles_of_a_table_ascend_or_contradict() {
        let said = |p99: u32| {
            let text = format!(
                "| read IOPS | p99 us | p50 us | max us |\n|---|---|---|---|\n\
                 | 9 | {p99} | 264 | 7 |\n"
            );
            let posts = [crate::post::read("post", &text)];
            let page = crate::post::section(&posts, &crate::post::hold(&posts, &[]));
            gpuio_base::document::fragment(&page)
        };
        let (right, wrong) = (said(900), said(90));
        assert!(right.contains("p50 264 µs, p99 900 µs"), "{right}");
        assert!(right.contains("Not read of the table at 1: max us."), "{right}");
        assert!(right.contains("percentiles ascend in 1") && !right.contains("below"), "{right}");
        assert!(wrong.contains("p99 (90.0 µs) lies below p50 (264 µs)."), "{wrong}");
    }

    #[test]
    fn a_result_that_contradicts_itself_concludes_nothing() {
        let line = |rate: &str| {
            format!(
                "IoType: READ XferType: CPUONLY Threads: 8 DataSetSize: 104857600/1(KiB) IOSize: \
                 1024(KiB) Throughput: {rate} GiB/sec, Avg_Latency: 780.0 usecs ops: 102400 \
                 total_time 10.0 secs\n"
            )
        };
        let of = |text: &str| unsound(&crate::post::read("post", text), &[]);
        assert_eq!(of(&(line("10.0") + &line("10.0"))), []);
        let said = of(&(line("10.0") + &line("60.0")));
        assert!(said[0].lines == [2] && said[0].words.contains("nothing is concluded"), "{said:?}");
    }
}
