//! Words beside a command that name another block size than it has: the title above it, the name
//! of fio's job, and a sentence below with the rate of its result.

use gpuio_base::units::parse_bytes;

use super::claims::is_prose;
use super::{Known, say, words};
use crate::post::figure::{Unit, figures};
use crate::post::line::Line;
use crate::post::{About, Post, Run, Statement};

/// Words behind a size that make it one of blocks.
const OF_BLOCKS: [&str; 12] = [
    "block",
    "blocks",
    "random",
    "rand",
    "randread",
    "randwrite",
    "sequential",
    "seq",
    "read",
    "reads",
    "write",
    "writes",
];
/// Parts of a job's name that make its size one of blocks.
const OF_LOADS: [&str; 4] = ["rand", "seq", "read", "write"];
/// Sizes beyond are those of files.
const LARGEST: u64 = 64 << 20;

pub(super) fn hold(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let next = post.runs.iter().skip(1).map(|run| Some(first_line(run))).chain([None]);
    post.runs.iter().zip(next).flat_map(|(run, next)| of_run(post, run, next)).collect()
}

fn first_line(run: &Run) -> usize {
    run.asked.as_ref().map_or(run.line, |asked| asked.line.min(run.line))
}

fn of_run(post: &Post, run: &Run, next: Option<usize>) -> Vec<Statement> {
    let Some(asked) = &run.asked else { return Vec::new() };
    let Some((block, _)) = asked.block.filter(|(least, most)| least == most) else {
        return Vec::new();
    };
    let Some(at) = post.lines.iter().position(|line| line.number == asked.line) else {
        return Vec::new();
    };
    let above = post.lines[..at].iter().rev().find(|line| !line.text.trim().is_empty());
    let title = above.filter(|line| line.prompt.is_none() && is_title(&line.text));
    let title = title.and_then(|line| Some(("title above it", line, only(sizes(&line.text))?)));
    let name = post.lines[at].text.split_whitespace().find_map(|word| word.strip_prefix("--name="));
    let name = name.and_then(|name| Some(("job's name", &post.lines[at], only(in_name(name))?)));
    let rate = run.got.as_ref().and_then(|got| got.rate);
    let is_its = |line: &&Line| {
        let is_rate = |rate| figures(&line.text).iter().any(|f| f.unit == Unit::Rate && f.is(rate));
        is_prose(line) && rate.is_some_and(is_rate)
    };
    let below = post.lines[at + 1..].iter().take_while(|line| next.is_none_or(|n| line.number < n));
    let said = below
        .filter(is_its)
        .filter_map(|line| Some(("sentence with its rate", line, only(sizes(&line.text))?)));
    let other = title.into_iter().chain(name).chain(said).filter(|(_, _, size)| *size != block);
    let statement = |(what, line, size): (&str, &Line, u64)| {
        let (size, block) = (words::bytes(size), words::bytes(block));
        let text = format!("The {what} names blocks of {size}, the command has {block}.");
        say(post, About::Contradiction, &[line.number, asked.line], text)
    };
    other.map(statement).collect()
}

fn is_title(text: &str) -> bool {
    text.trim_end().ends_with(':') || text.trim_start().starts_with(['#', '*', '='])
}

/// The only value; `None` where there are others too.
fn only(mut all: Vec<u64>) -> Option<u64> {
    all.sort_unstable();
    all.dedup();
    if let [one] = all[..] { Some(one) } else { None }
}

/// `4K` in words, where they say that it is one of blocks.
fn sizes(text: &str) -> Vec<u64> {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase())
        .collect();
    let of = |(at, word): (usize, &String)| {
        let own = word.strip_prefix("bs=");
        let next = words.get(at + 1).is_some_and(|next| OF_BLOCKS.contains(&next.as_str()));
        own.or(next.then_some(word)).and_then(size)
    };
    words.iter().enumerate().filter_map(of).collect()
}

/// `4k` of `4k-randread`.
fn in_name(name: &str) -> Vec<u64> {
    let lower = name.to_ascii_lowercase();
    let parts: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    if !parts.iter().any(|part| OF_LOADS.iter().any(|load| part.contains(load))) {
        return Vec::new();
    }
    parts.into_iter().filter_map(size).collect()
}

/// A size with its unit.
fn size(word: &str) -> Option<u64> {
    let has_unit = word.ends_with(|c: char| c.is_ascii_alphabetic());
    let bytes = parse_bytes(word).ok().filter(|_| has_unit)?;
    (512..=LARGEST).contains(&bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_another_block_size_are_found() {
        let run = |title: &str, block: &str, below: &str| {
            let text = format!(
                "{title}\n$ gdsio -D /d -d 0 -w 32 -s 1G -i {block} -x 0 -I 0 -T 120\nIoType: READ \
                 XferType: GPUD Threads: 32 DataSetSize: 1196929024/33554432(KiB) IOSize: \
                 1024(KiB) Throughput: 9.482088 GiB/sec, Avg_Latency: 3295.183817 usecs ops: \
                 1168876 total_time 120.382817 secs\n{below}\n"
            );
            let all = hold(&crate::post::read("post", &text), &[]);
            all.into_iter().map(|one| (one.lines, one.words)).collect::<Vec<_>>()
        };
        let said = run("4K random reads:", "1M", "");
        assert_eq!(said[0].0, [1, 2]);
        assert_eq!(said[0].1, "The title above it names blocks of 4K, the command has 1M.");
        let said = run("", "1M", "So with 4K blocks we reach 9.48 GiB/s.");
        assert!(said.len() == 1 && said[0].0 == [2, 4], "{said:?}");
        for (title, block, below) in [
            ("1M reads, 32 threads:", "1M", "With 1 MiB blocks: 9.48 GiB/s"),
            ("4K and 1M reads:", "1M", "With 4K blocks we reach 95 MiB/s"),
            ("the 10G files are there", "1M", ""),
            ("256K IOPS wanted:", "1M", ""),
        ] {
            assert_eq!(run(title, block, below), [], "{title}");
        }
        let fio = |name: &str| {
            let text = format!(
                "$ fio --name={name} --filename=/dev/md0 --rw=randread --bs=1M --numjobs=8\n"
            );
            hold(&crate::post::read("post", &text), &[]).len()
        };
        assert_eq!(["4k-randread", "randread1", "read_1m", "job4k"].map(fio), [1, 0, 0, 0]);
    }
}
