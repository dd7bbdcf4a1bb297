//! Results in sentences: `we get 12 GB/s read on 8 threads`. A sentence counts where its writer
//! says that he measured, one figure is measured, it reads or writes and not both, a setting of
//! the load stands in it, and each of its words is known: a word that is not may deny the rate or
//! name the condition that it has.

use gpuio_base::measured::tables::Side;
use gpuio_base::units::parse_bytes;

use crate::foreign::Direction;
use crate::post::Got;
use crate::post::figure::{Figure, Unit, figures, sentences};
use crate::post::line::Line;
use crate::post::result::BY_HAND;

/// Words by which a writer says that he measured, behind `I` or `we`.
const MEASURED: [&str; 11] = [
    "get", "got", "getting", "see", "seeing", "saw", "reach", "reached", "achieve", "achieved",
    "measured",
];
/// Words between these two, and before them: none of them denies or limits.
const BETWEEN: [&str; 6] = ["am", "are", "have", "now", "currently", "consistently"];
const BEFORE: [&str; 10] =
    ["hello", "hi", "hey", "all", "here", "so", "now", "currently", "today", "and"];
/// All other words that a result may have, numbers and sizes aside.
const OF_A_LOAD: [&str; 73] = [
    "a",
    "an",
    "the",
    "of",
    "on",
    "at",
    "in",
    "for",
    "with",
    "and",
    "using",
    "about",
    "around",
    "roughly",
    "our",
    "my",
    "this",
    "read",
    "reads",
    "reading",
    "write",
    "writes",
    "writing",
    "random",
    "randread",
    "randwrite",
    "sequential",
    "seq",
    "rand",
    "thread",
    "threads",
    "block",
    "blocks",
    "size",
    "sizes",
    "io",
    "ios",
    "latency",
    "average",
    "mean",
    "rate",
    "throughput",
    "bandwidth",
    "iops",
    "gds",
    "gpud",
    "gpudirect",
    "storage",
    "cpu",
    "gpu",
    "cpuonly",
    "bs",
    "depth",
    "iodepth",
    "queue",
    "job",
    "jobs",
    "numjobs",
    "worker",
    "workers",
    "per",
    "second",
    "gdsio",
    "fio",
    "elbencho",
    "drive",
    "nvme",
    "ssd",
    "server",
    "machine",
    "node",
    "o_direct",
    "steady",
];
/// Units, alone or behind a number.
const UNITS: [&str; 26] = [
    "k", "m", "g", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", "gbps", "mbps", "gibps",
    "s", "sec", "us", "usec", "usecs", "ms", "msec", "msecs", "ns", "\u{b5}s", "\u{3bc}s", "iops",
];
/// Words with which a line of prose has no result of what is shown below it.
const OTHERWISE: [&str; 39] = [
    "not",
    "no",
    "never",
    "nobody",
    "none",
    "nothing",
    "hardly",
    "barely",
    "fail",
    "failed",
    "fails",
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
    let plain = |line: &Line| {
        let text = line.text.trim_start();
        line.prompt.is_none() && !text.starts_with(['|', '#']) && !text.contains(['{', '='])
    };
    let mut said = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| plain(line)) {
        let all = sentences(&line.text);
        for (place, (_, text)) in all.iter().enumerate() {
            // A sentence that begins or ends on another line is not known whole, and a line that
            // ends in a colon says of what the next one is.
            let above = at.checked_sub(1).map_or("", |above| lines[above].text.trim_end());
            let begins = place > 0 || above.is_empty() || above.ends_with(['.', '!', '。']);
            let titled = lines[..at].iter().rev().find(|one| !one.text.trim().is_empty());
            let titled = titled.is_some_and(|one| one.text.trim_end().ends_with(':'));
            let below = lines.get(at + 1);
            let ends = text.ends_with(['.', '!', '。'])
                || below.is_none_or(|one| one.text.trim().is_empty() || one.prompt.is_some());
            let got = result(text).filter(|_| begins && ends && !titled);
            said.extend(got.map(|got| Got { line: line.number, ..got }));
        }
    }
    said
}

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let parts = lower.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’' | '.' | '_'));
    let parts = parts.map(|word| word.trim_matches('.'));
    parts.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether words of a line make its figure a limit, a wish, none, or one of two.
pub(super) fn is_otherwise(text: &str) -> bool {
    let said = words(text).iter().any(|word| {
        OTHERWISE.contains(&word.as_str()) || word.ends_with("n't") || word.ends_with("n’t")
    });
    said || text.contains(['?', '？'])
}

/// Whether a sentence states, in known words alone, that its writer measured.
fn is_statement(words: &[&str], sentence: &str) -> bool {
    let mut rest = words.iter().skip_while(|word| BEFORE.contains(word));
    let is_own = rest.next().is_some_and(|word| matches!(*word, "i" | "we" | "i'm" | "we're"));
    let mut rest = rest.skip_while(|word| BETWEEN.contains(word));
    let measured = rest.next().is_some_and(|word| MEASURED.contains(word));
    let known = |word: &&str| {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        unit.is_empty()
            || UNITS.contains(&unit)
            || unit.len() == word.len() && OF_A_LOAD.contains(word)
    };
    let is_plain = !sentence.contains(['?', '？', '"', '“', '<', '>', '~', '(', '+']);
    is_own && measured && is_plain && rest.all(known)
}

fn result(sentence: &str) -> Option<Got> {
    let words = words(sentence);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if !is_statement(&words, sentence) {
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
    let latency = times.first().filter(|_| times.len() == 1 && words.contains(&"latency"));
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
        let many =
            of("Hi all,\n\nso we are now getting 3.2 GiB/s random read with gdsio on 4 threads\n");
        assert_eq!(
            (many.len(), many[0].rate, many[0].line),
            (1, Some(3.2 * 1024.0_f64.powi(3)), 3)
        );
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
            "I never reached 12 GB/s read on 8 threads, whatever I tried.",
            "We failed to reach 12 GB/s read on 8 threads.",
            "Nobody gets 12 GB/s read on 8 threads here.",
            "We hardly get 12 GB/s read on 8 threads.",
            "Does anyone get 12 GB/s read on 8 threads",
            "A friend of mine gets 12 GB/s read on 8 threads.",
            "On the internet people get 12 GB/s read on 8 threads.",
            "We get 12 GB/s read on 8 threads when the page cache is warm.",
            "We get 12 GB/s read on 8 threads\nwhen the page cache is warm.",
            "The seller says that\nwe get 12 GB/s read on 8 threads.",
            "The requirement:\n\nWe get 12 GB/s read on 8 threads.",
            "We get 12 GB/s lesen read auf 8 threads.",
            "We get ~12 GB/s read on 8 threads.",
        ] {
            assert!(of(text).is_empty(), "{text}: {:?}", of(text));
        }
        let line = "READ XferType: GPUD Threads: 8 DataSetSize: 1/1(KiB) IOSize: 4(KiB) \
                    Throughput: 0.1 GiB/sec, Avg_Latency: 1.0 usecs ops: 8 total_time 9.0 secs";
        let both = of(&format!("We get 12 GB/s read on 8 threads.\n{line}\n"));
        assert!(both.len() == 1 && both[0].tool == "gdsio", "{both:?}");
    }
}
