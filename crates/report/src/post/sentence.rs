//! Results in sentences: `we get 12 GB/s read on 8 threads`. A sentence counts where one figure is
//! measured, it reads or writes and not both, a setting of the load stands in it, and no word makes
//! the figure a limit, a wish or one of two that are compared.

use gpuio_base::measured::tables::Side;
use gpuio_base::units::parse_bytes;

use crate::foreign::Direction;
use crate::post::Got;
use crate::post::figure::{Figure, Unit, figures, sentences};
use crate::post::line::Line;
use crate::post::result::BY_HAND;

/// Words by which people say that they measured.
const MEASURED: [&str; 16] = [
    "get",
    "gets",
    "got",
    "getting",
    "see",
    "seeing",
    "saw",
    "reach",
    "reaches",
    "reached",
    "achieve",
    "achieved",
    "measure",
    "measured",
    "delivers",
    "delivered",
];
/// Words with which a figure is none of a run, or one of several.
const OTHERWISE: [&str; 30] = [
    "not",
    "no",
    "cannot",
    "can",
    "could",
    "should",
    "would",
    "will",
    "may",
    "might",
    "if",
    "expect",
    "expected",
    "expecting",
    "theoretical",
    "theory",
    "max",
    "maximum",
    "limit",
    "up",
    "advertised",
    "spec",
    "rated",
    "vs",
    "versus",
    "instead",
    "from",
    "compared",
    "than",
    "why",
];
/// Larger sizes are of files.
const LARGEST_BLOCK: u64 = 16 << 20;

pub(super) fn results(lines: &[Line]) -> Vec<Got> {
    let plain = |line: &&Line| {
        let text = line.text.trim_start();
        line.prompt.is_none() && !text.starts_with(['|', '#']) && !text.contains(['{', '='])
    };
    let said = lines.iter().filter(plain).flat_map(|line| {
        let all = sentences(&line.text).into_iter();
        all.filter_map(|(_, text)| Some(Got { line: line.number, ..result(text)? }))
    });
    said.collect()
}

fn result(sentence: &str) -> Option<Got> {
    let lower = sentence.to_lowercase();
    let parts = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '\'');
    let words: Vec<&str> = parts.filter(|word| !word.is_empty()).collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    if !has(&MEASURED) || has(&OTHERWISE) || lower.contains("n't") || lower.contains('?') {
        return None;
    }
    let found = figures(sentence);
    let of = |unit: Unit| -> Vec<&Figure> { found.iter().filter(|one| one.unit == unit).collect() };
    let (rates, iops, times) = (of(Unit::Rate), of(Unit::Iops), of(Unit::Time));
    if rates.len() > 1 || iops.len() > 1 || rates.len() + iops.len() == 0 || found.len() > 3 {
        return None;
    }
    let side = Side::of(sentence);
    let (threads, block) = (threads(&words), block(sentence));
    let is_set = threads.is_some() || block.is_some() || side.path.is_some();
    let latency = times.first().filter(|_| times.len() == 1 && lower.contains("latency"));
    let writes = side.writes.filter(|_| is_set)?;
    Some(Got {
        tool: "in words",
        direction: if writes { Direction::Write } else { Direction::Read },
        random: side.random,
        path: side.path.map(str::to_owned),
        threads,
        block,
        rate: rates.first().and_then(|one| one.rate()),
        iops: iops.first().and_then(|one| one.base()),
        latency: latency.and_then(|one| one.base()),
        rounding: BY_HAND,
        ..Got::default()
    })
}

/// `8 threads`.
fn threads(words: &[&str]) -> Option<u64> {
    let mut all = words.windows(2).filter(|pair| ["thread", "threads"].contains(&pair[1]));
    let first = all.next()?[0].parse().ok()?;
    all.next().is_none().then_some(first)
}

/// The one size that is no file's: `1M`, `4k`, `64 KiB`.
fn block(sentence: &str) -> Option<u64> {
    let words: Vec<&str> = sentence
        .split([' ', ',', ';', '(', ')'])
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty())
        .collect();
    let sized = |at: usize| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let with_unit = ["KiB", "KB", "MiB", "MB"].contains(&next);
        let word = if with_unit { format!("{}{next}", words[at]) } else { words[at].to_owned() };
        let bytes =
            parse_bytes(&word).ok().filter(|bytes| (512..=LARGEST_BLOCK).contains(bytes))?;
        let lettered = word.ends_with(|c: char| c.is_ascii_alphabetic());
        let file = [next, words.get(at + 2).copied().unwrap_or_default()];
        let is_file = file.iter().any(|word| word.starts_with("file"));
        (lettered && !is_file && !next.starts_with("IOPS")).then_some(bytes)
    };
    let all: Vec<u64> = (0..words.len()).filter_map(sized).collect();
    <[u64; 1]>::try_from(all).ok().map(|[one]| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Got> {
        crate::post::read("post", text).runs.into_iter().filter_map(|run| run.got).collect()
    }

    #[test]
    fn a_sentence_with_one_rate_its_direction_and_a_setting_is_a_result() {
        let all = of("Hello. We get 12 GB/s read on 8 threads with 1M blocks. Thanks");
        assert_eq!((all.len(), all[0].rate, all[0].line), (1, Some(12e9), 1));
        assert_eq!((all[0].threads, all[0].block), (Some(8), Some(1 << 20)));
        let comma = of("We reached 3,2 GB/s read on 8 threads.");
        assert_eq!(comma[0].rate, Some(3.2e9));
        let iops = of("I see 485k IOPS at a latency of 264 us for 4K random reads.");
        assert_eq!((iops[0].iops, iops[0].latency), (Some(485e3), Some(264e3)));
        assert_eq!((iops[0].random, iops[0].block), (Some(true), Some(4096)));
        for text in [
            "We get 12 GB/s on 8 threads.",
            "We get 12 GB/s read.",
            "We should get 12 GB/s read on 8 threads.",
            "We get 12 GB/s read and 5 GB/s write on 8 threads.",
            "We get 12 GB/s read on 8 threads instead of 24.",
            "The drive reads 7 GB/s with 8 threads.",
            "Why do we get 3 GB/s read on 8 threads?",
        ] {
            assert!(of(text).is_empty(), "{text}: {:?}", of(text));
        }
        let line = "READ XferType: GPUD Threads: 8 DataSetSize: 1/1(KiB) IOSize: 4(KiB) \
                    Throughput: 0.1 GiB/sec, Avg_Latency: 1.0 usecs ops: 8 total_time 9.0 secs";
        let both = of(&format!("We get 12 GB/s read on 8 threads.\n{line}\n"));
        assert!(both.len() == 1 && both[0].tool == "gdsio", "{both:?}");
    }
}
