//! Sentences about results against the results: percentages, values from one run to another, what a
//! tool is said to show. A sentence whose figures belong to no result is left alone.

use gpuio_base::units;

use super::{Known, own, pairs, say, words};
use crate::post::figure::{Figure, Unit, figures, sentences};
use crate::post::line::Line;
use crate::post::seen::{Sight, moved, moving};
use crate::post::{About, Got, Post, Run, Seen, Statement};

/// Runs above a sentence that it may be about.
const ABOVE: usize = 8;
/// Lines around a tool's output in which a sentence is about it.
const AROUND: usize = 45;
/// Percentages and multiples that are off by more are wrong; people round.
const PERCENT: f64 = 1.0;
const TIMES: f64 = 0.1;
/// Products in sentences are rounded more.
const ROUNDED: f64 = 0.035;

pub(super) fn hold(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let mut all = Vec::new();
    for line in post.lines.iter().filter(|line| is_prose(line)) {
        let above: Vec<&Run> = post.runs.iter().filter(|run| run.line < line.number).collect();
        let above = &above[above.len().saturating_sub(ABOVE)..];
        for (_, sentence) in sentences(&line.text) {
            let found = figures(sentence);
            all.extend(from_one_to_another(post, line, sentence, &found, above));
            all.extend(ratios(post, line, sentence, &found, above));
            all.extend(iops_with_latency(post, line, &found, above));
            all.extend(misspelt(post, line, &found, above));
            all.extend(product(post, line, sentence, &found));
            all.extend(moved_per_second(post, line, &found));
        }
        all.extend(tool_says(post, line));
        all.extend(option_says(post, line));
    }
    all
}

/// Whether a line is words, and no command, output or row of a table.
pub(super) fn is_prose(line: &Line) -> bool {
    let text = &line.text;
    let outputs = ["IoType:", "XferType:", "(g=", "Jobs: ", "BandWidth", "Bandwidth(", "Device"];
    line.prompt.is_none() && !outputs.iter().any(|mark| text.contains(mark))
}

/// The result that has a figure: the last of those above.
fn of_figure<'r>(figure: &Figure, above: &[&'r Run]) -> Option<&'r Run> {
    let value = |got: &Got| match figure.unit {
        Unit::Rate => got.rate,
        Unit::Iops => got.iops,
        Unit::Time => got.latency,
        _ => None,
    };
    let has = |run: &&&Run| {
        let value = run.got.as_ref().and_then(value);
        value.is_some_and(|value| figure.is(value))
    };
    above.iter().rev().find(has).copied()
}

/// "from A to B" with figures of two runs on different GPUs that differ in more.
fn from_one_to_another(
    post: &Post,
    line: &Line,
    sentence: &str,
    found: &[Figure],
    above: &[&Run],
) -> Vec<Statement> {
    let compares = ["from", " to ", "drop", "decreas", "increas", "从", "降"];
    if !compares.iter().any(|word| sentence.contains(word)) {
        return Vec::new();
    }
    let owners: Vec<Option<&Run>> = found.iter().map(|one| of_figure(one, above)).collect();
    let mut runs: Vec<&Run> = owners.iter().flatten().copied().collect();
    runs.sort_by_key(|run| run.line);
    runs.dedup_by_key(|run| run.line);
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Vec::new() };
    let gpus = |run: &Run| run.asked.as_ref().map(|asked| asked.gpus.clone());
    if first.line == last.line || gpus(first) == gpus(last) {
        return Vec::new();
    }
    let mut all = Vec::new();
    let unlike = pairs::unlike(first, last);
    if !unlike.is_empty() {
        let listed: Vec<String> =
            unlike.iter().map(|(aspect, a, b)| format!("{aspect} ({a} and {b})")).collect();
        let text = format!(
            "The sentence compares GPUs, and its two results differ in {} too: what it says of the \
             GPUs does not follow.",
            words::and(&listed)
        );
        all.push(say(post, About::Contradiction, &[line.number, first.line, last.line], text));
    }
    // A figure of no result beside figures that have one.
    for (figure, owner) in found.iter().zip(&owners) {
        let values = [first, last].map(|run| match figure.unit {
            Unit::Time => run.got.as_ref().and_then(|got| got.latency),
            Unit::Iops => run.got.as_ref().and_then(|got| got.iops),
            Unit::Rate => run.got.as_ref().and_then(|got| got.rate),
            _ => None,
        });
        let close = values.into_iter().flatten().find(|value| figure.is_about(*value, 0.05));
        if let Some(value) = close.filter(|_| owner.is_none()) {
            let is = shown(figure, value);
            let text = format!("{} is {is} in the result.", figure.text);
            all.push(say(post, About::Contradiction, &[line.number, first.line, last.line], text));
        }
    }
    all
}

fn shown(figure: &Figure, value: f64) -> String {
    match figure.unit {
        Unit::Time => words::time(value),
        Unit::Rate => words::rate(value),
        _ => words::count(value),
    }
}

/// A quantity of a result.
type Of = fn(&Got) -> Option<f64>;

/// The quantity that a percentage is of, by the word nearest to it.
fn quantity(sentence: &str, figure: &Figure) -> Option<(&'static str, Of)> {
    const NAMES: [(&str, &str, Of); 6] = [
        ("latency", "latency", |got| got.latency),
        ("延迟", "latency", |got| got.latency),
        ("throughput", "rate", |got| got.rate),
        ("bandwidth", "rate", |got| got.rate),
        ("吞吐量", "rate", |got| got.rate),
        ("IOPS", "IOPS", |got| got.iops),
    ];
    let rest = &sentence[figure.end..];
    let clause = rest.split([',', ';', '，', '(', ')']).next().unwrap_or_default();
    let behind = |(word, name, of): &(&str, &'static str, Of)| {
        Some((clause.find(word).filter(|far| *far < 24)?, *name, *of))
    };
    // `IOPS 降低 19%`: the word stands before.
    let before = |(word, name, of): &(&str, &'static str, Of)| {
        let far = figure.at - sentence[..figure.at].rfind(word)? - word.len();
        Some((far, *name, *of)).filter(|_| far < 12)
    };
    let nearest = NAMES.iter().filter_map(behind).min_by_key(|(far, ..)| *far);
    let nearest = nearest.or_else(|| NAMES.iter().filter_map(before).min_by_key(|(far, ..)| *far));
    nearest.map(|(_, name, of)| (name, of))
}

/// "12% in latency", "a 2X increase in latency": against the last two results.
fn ratios(
    post: &Post,
    line: &Line,
    sentence: &str,
    found: &[Figure],
    above: &[&Run],
) -> Vec<Statement> {
    let results: Vec<&Got> = above.iter().filter_map(|run| run.got.as_ref()).collect();
    let [.., first, last] = results[..] else { return Vec::new() };
    let of_figure = |figure: &Figure| {
        let (name, of) = quantity(sentence, figure)?;
        let ratio = of(last)? / of(first)?;
        let (fits, is) = match figure.unit {
            Unit::Percent => {
                let (over, under) =
                    ((ratio - 1.0).abs() * 100.0, (1.0 / ratio - 1.0).abs() * 100.0);
                let near = |value: f64| (figure.value - value).abs() <= PERCENT;
                (near(over) || near(under), format!("{over:.1} %"))
            }
            Unit::Times => {
                let times = ratio.max(1.0 / ratio);
                (own::near(figure.value, times, TIMES), format!("{times:.2} times"))
            }
            _ => return None,
        };
        (!fits).then(|| {
            let text = format!(
                "{} is said of the {name}; from the results it is {is} ({} to {}).",
                figure.text,
                words::figures(first),
                words::figures(last)
            );
            say(post, About::Contradiction, &[line.number, first.line, last.line], text)
        })
    };
    found.iter().filter_map(of_figure).collect()
}

/// "234k IOPS, 194us": a latency beside the IOPS of another run.
fn iops_with_latency(post: &Post, line: &Line, found: &[Figure], above: &[&Run]) -> Vec<Statement> {
    let mut all = Vec::new();
    for pair in found.windows(2) {
        let [iops, time] = pair else { continue };
        let together =
            iops.unit == Unit::Iops && time.unit == Unit::Time && time.at < iops.end + 24;
        if !together {
            continue;
        }
        let has = |run: &&&Run| {
            let own = run.got.as_ref().and_then(|got| got.iops);
            own.is_some_and(|own| iops.is_about(own, 0.005))
        };
        let Some(run) = above.iter().rev().find(has) else { continue };
        let Some(own) = run.got.as_ref().and_then(|got| got.latency) else { continue };
        if time.is_about(own, 0.01) {
            continue;
        }
        let other = of_figure(time, above);
        let whose = other.map(|run| format!("; {} is of line {}", time.text, run.line));
        let text = format!(
            "The result with {} has a latency of {}, not {}{}.",
            iops.text,
            words::time(own),
            time.text,
            whose.unwrap_or_default()
        );
        all.push(say(post, About::Contradiction, &[line.number, run.line], text));
    }
    all
}

/// A figure with the digits of the last result's in another order.
fn misspelt(post: &Post, line: &Line, found: &[Figure], above: &[&Run]) -> Vec<Statement> {
    let Some(got) = above.last().and_then(|run| run.got.as_ref()) else { return Vec::new() };
    let of_figure = |figure: &Figure| {
        let value = match figure.unit {
            Unit::Rate => got.rate?,
            Unit::Iops => got.iops?,
            _ => return None,
        };
        figure.is_misspelt(value).then(|| {
            let text = format!("{} is {} in the result.", figure.text, shown(figure, value));
            say(post, About::Contradiction, &[line.number, got.line], text)
        })
    };
    found.iter().filter_map(of_figure).collect()
}

/// "(2 x 12GB/sec) 24GB/sec", "450k IOPS at 4k per IO would generate about 1.6GB/sec".
fn product(post: &Post, line: &Line, sentence: &str, found: &[Figure]) -> Vec<Statement> {
    let mut all = Vec::new();
    for pair in found.windows(2) {
        let [one, whole] = pair else { continue };
        if whole.unit != Unit::Rate {
            continue;
        }
        let between = &sentence[one.end.min(whole.at)..whole.at];
        let factor = match one.unit {
            Unit::Rate if between.starts_with(')') => factor_before(&sentence[..one.at]),
            Unit::Iops => block_behind(between).map(|block| block / one.value),
            _ => continue,
        };
        let Some(factor) = factor else { continue };
        let (product, words, fits) = match (one.rate(), whole.rate()) {
            (Some(rate), Some(said)) => {
                let fits = own::near(said, rate * factor, ROUNDED);
                (rate * factor, format!("{factor} x {}", one.text), fits)
            }
            _ => {
                let block = factor * one.value;
                let product = iops_of(one) * block;
                let fits = whole.is_about(product, ROUNDED);
                (product, format!("{} of {block:.0} bytes", one.text), fits)
            }
        };
        if !fits {
            let is = words::rate(product);
            let text = format!("{words} are {is}, the text says {}.", whole.text);
            all.push(say(post, About::Contradiction, &[line.number], text));
        }
    }
    all
}

/// The count of I/Os per second that a figure writes.
fn iops_of(figure: &Figure) -> f64 {
    let unit = figure.text.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    match unit.chars().next() {
        Some('k' | 'K') => figure.value * 1e3,
        Some('M') => figure.value * 1e6,
        _ => figure.value,
    }
}

/// The `2` of `(2 x ` before a rate.
fn factor_before(text: &str) -> Option<f64> {
    let text = text.trim_end().strip_suffix(['x', '×', '*'])?.trim_end();
    let (_, number) = text.rsplit_once('(')?;
    number.trim().parse().ok()
}

/// The block of `at 4k per IO`.
fn block_behind(text: &str) -> Option<f64> {
    let (before, _) = text.split_once(" per I")?;
    let word = before.rsplit(' ').next()?;
    let bytes = units::parse_bytes(word).ok()?;
    Some(units::float(bytes))
}

/// "27k writes-per-second" where the drives have reads.
fn moved_per_second(post: &Post, line: &Line, found: &[Figure]) -> Vec<Statement> {
    let mut all = Vec::new();
    for figure in found.iter().filter(|one| matches!(one.unit, Unit::Reads | Unit::Writes)) {
        for seen in near(post, line.number) {
            let Sight::Disks(disks) = &seen.sight else { continue };
            let (own, other): (Vec<_>, Vec<_>) = disks
                .iter()
                .map(|disk| match figure.unit {
                    Unit::Writes => (disk.writes, disk.reads),
                    _ => (disk.reads, disk.writes),
                })
                .unzip();
            let is = |all: &[Option<f64>]| all.iter().flatten().any(|value| figure.is(*value));
            if !is(&own) && is(&other) {
                let side = if figure.unit == Unit::Writes { "reads" } else { "writes" };
                let text = format!("{}: iostat has them as {side}.", figure.text);
                all.push(say(post, About::Contradiction, &[line.number, seen.line], text));
            }
        }
    }
    all
}

/// Outputs of tools near a line.
fn near(post: &Post, line: usize) -> impl Iterator<Item = &Seen> {
    let seen = post.runs.iter().flat_map(|run| run.beside.iter().chain(&run.apart));
    seen.filter(move |seen| seen.line + AROUND > line && line + AROUND > seen.line)
}

/// "the 7.46GB/s reading" of a line that names a tool, against what the tool printed next.
fn tool_says(post: &Post, line: &Line) -> Option<Statement> {
    let tools = [
        ("iostat", "iostat"),
        ("dcgmi", "dcgmi dmon"),
        ("DCGM", "dcgmi dmon"),
        ("nvidia-smi", "nvidia-smi dmon"),
    ];
    let named: Vec<&str> =
        tools.iter().filter(|(word, _)| line.text.contains(word)).map(|(_, tool)| *tool).collect();
    let [tool] = named[..] else { return None };
    let found = figures(&line.text);
    let rates: Vec<&Figure> = found.iter().filter(|one| one.unit == Unit::Rate).collect();
    let of_tool: Vec<&Seen> = near(post, line.number).filter(|seen| seen.tool == tool).collect();
    // The nearest output; of two equally near ones the one below.
    let seen = of_tool.iter().min_by_key(|seen| seen.line.abs_diff(line.number))?;
    let [figure] = rates[..] else { return None };
    let values = values(&of_tool);
    let known = post.runs.iter().filter_map(|run| run.got.as_ref()?.rate);
    let fits = values.iter().copied().chain(known.map(|rate| (rate, rate))).any(|(low, high)| {
        // Tools count in powers of 2 or 10, and people divide by either.
        [1.0, 1.024, 1.0 / 1.024].iter().any(|base| {
            let (low, high) = (low * base, high * base);
            let within = figure.rate().is_some_and(|rate| (low..=high).contains(&rate));
            within || figure.is_about(low, 0.002) || figure.is_about(high, 0.002)
        })
    });
    let middles = values.iter().map(|(low, high)| (low + high) / 2.0);
    let near = middles.filter(|value| figure.is_about(*value, 0.15));
    let far = |value: &f64| (figure.rate().unwrap_or(0.0) - value).abs();
    let closest = near.min_by(|a, b| far(a).total_cmp(&far(b)))?;
    (!fits).then(|| {
        let text = format!(
            "{} is said of {tool}; it has {} ({:.2} GB/s).",
            figure.text,
            words::rate(closest),
            closest / 1e9
        );
        say(post, About::Contradiction, &[line.number, seen.line], text)
    })
}

/// All rates that a tool printed, each from its lowest to its highest row.
fn values(seen: &[&Seen]) -> Vec<(f64, f64)> {
    let mut all = Vec::new();
    for seen in seen {
        match &seen.sight {
            Sight::Disks(disks) => {
                for disk in disks {
                    all.extend([disk.read_bytes, disk.written_bytes].map(|rate| (rate, rate)));
                }
                for side in [crate::foreign::Direction::Read, crate::foreign::Direction::Write] {
                    let moving = moving(disks, side);
                    let sum: f64 = moving.iter().map(|disk| moved(disk, side)).sum();
                    all.push((sum, sum));
                }
            }
            Sight::Gpus(gpus) => {
                all.extend(gpus.iter().flat_map(|gpu| [gpu.received_range, gpu.sent_range]));
            }
            Sight::CuFile(_) | Sight::Module(_) | Sight::SinceBoot => {}
        }
    }
    all
}

/// "-d 2, selects GPU # 12": the explanation of a flag against its value.
fn option_says(post: &Post, line: &Line) -> Option<Statement> {
    let (_, rest) = line.text.split_once("-d ")?;
    let number = |text: &str| {
        let digits = text.trim_start_matches([' ', '#']);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse::<u32>().ok()
    };
    let value = number(rest)?;
    let (_, behind) = rest.split_once("GPU")?;
    let said = number(behind)?;
    let explains =
        line.text.trim_start().trim_start_matches(['•', '-', '*', ' ']).starts_with("d ");
    (explains && said != value && line.prompt.is_none()).then(|| {
        let text = format!("-d {value} is explained as GPU {said}.");
        say(post, About::Contradiction, &[line.number], text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(gpu: u32, threads: u32, block: u32, figures: (&str, &str, u32)) -> String {
        let (rate, latency, ops) = figures;
        format!(
            "h> gdsio -D /d -d {gpu} -w {threads}\nIoType: RANDREAD XferType: GPUD Threads: \
             {threads} DataSetSize: 1/1(KiB) IOSize: {block}(KiB) Throughput: {rate} GiB/sec, \
             Avg_Latency: {latency} usecs ops: {ops} total_time 100.0 secs\n"
        )
    }

    fn said(text: &str) -> Vec<String> {
        let all = hold(&crate::post::read("post", text), &[]);
        all.into_iter().map(|one| one.words).collect()
    }

    #[test]
    fn percentages_are_those_of_the_last_two_results() {
        let two = run(0, 32, 4, ("0.645307", "189.17", 16_916_300))
            + &run(12, 32, 4, ("0.572407", "213.32", 15_005_300));
        let all = said(&(two.clone() + "The difference is small (12% in latency, 19% in IOPS)."));
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].contains("19% is said of the IOPS") && all[0].contains("11.3 %"), "{all:?}");
        let all = said(&(two + "性能差异不是很大（延迟增加 12%，IOPS 降低 19%）"));
        assert!(all.len() == 1 && all[0].starts_with("19%"), "{all:?}");
    }

    #[test]
    fn a_comparison_of_unlike_results_is_named() {
        let two = run(0, 32, 1024, ("9.482088", "3295.2", 1_168_876))
            + &run(8, 32, 2048, ("8.352013", "7480.4", 514_365));
        let all = said(&(two + "A decrease (8.3GB/sec from 9.5GB/sec) and more (3.4ms to 7.5ms)."));
        assert!(all[0].contains("block size (1M and 2M)"), "{all:?}");
        assert!(all[1].starts_with("3.4ms is 3.3"), "{all:?}");
    }

    #[test]
    fn a_latency_of_another_run_is_found() {
        let two = run(0, 32, 4, ("0.89", "137.1", 23_339_500))
            + &run(10, 32, 4, ("0.63", "193.98", 16_499_200));
        let all =
            said(&(two + "We see about 234k IOPS, 194us average latency. Then 165k IOPS, 194us."));
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].contains("137 µs, not 194us; 194us is of line 4"), "{all:?}");
    }

    #[test]
    fn products_options_and_turned_digits_are_held() {
        let wrong = said("it sustains (2 x 12GB/sec) 25GB/sec.");
        assert!(wrong[0].contains("the text says 25GB/sec"), "{wrong:?}");
        assert_eq!(said("it sustains (2 x 12GB/sec) 24GB/sec or so."), [""; 0]);
        let wrong = said("450k IOPS at 4k per IO would generate about 1.6GB/sec throughput");
        assert!(wrong[0].contains("4096 bytes"), "{wrong:?}");
        assert_eq!(said("300k IOPS at 4k per IO would be 1.23GB/sec"), [""; 0]);
        assert_eq!(said("• -d 2, selects GPU # 12 for data"), ["-d 2 is explained as GPU 12."]);
        assert_eq!(said("• -d 2, selects GPU # 2 for data"), [""; 0]);
    }
}
