//! Results against each other.

use super::changes::{are_rows_alike, side_of};
use super::{Known, say, words};
use crate::foreign::Direction;
use crate::post::{About, Asked, Got, Post, Run, Statement};

/// A factor between runs of one load that chance does not explain.
const CHANCE: f64 = 1.25;
/// How much more than the threads a rate grows where more than the threads changed.
const MORE_THAN_THREADS: f64 = 1.15;
/// The tool of results in tables, whose rows have more settings than are read.
pub(super) const TABLE: &str = "table";

#[derive(Clone, Copy)]
struct Result<'r> {
    run: &'r Run,
    got: &'r Got,
}

fn results(post: &Post) -> Vec<Result<'_>> {
    let with = |run| Some(Result { run, got: Run::got_of(run)? });
    post.runs.iter().filter_map(with).collect()
}

impl Run {
    fn got_of(&self) -> Option<&Got> {
        self.got.as_ref()
    }

    /// The GPUs that the command names, in words.
    pub(super) fn gpus(&self) -> Option<String> {
        let asked = self.asked.as_ref().filter(|asked| !asked.gpus.is_empty())?;
        Some(words::gpus(&asked.gpus))
    }

    fn places(&self) -> Option<&[String]> {
        self.asked.as_ref().map(|asked| asked.places.as_slice()).filter(|all| !all.is_empty())
    }
}

/// The aspect of words in a table's row, which name its load.
pub(super) const ROW: &str = "row";

/// The settings in which two runs differ, GPUs and places aside: the words of both.
pub(super) fn unlike(a: &Run, b: &Run) -> Vec<(&'static str, String, String)> {
    let (Some(a), Some(b)) = (&a.got, &b.got) else { return Vec::new() };
    let mut all = Vec::new();
    let mut add = |aspect, a: Option<String>, b: Option<String>| {
        if let (Some(a), Some(b)) = (a, b)
            && a != b
        {
            all.push((aspect, a, b));
        }
    };
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let side = |got: &Got| Some(got.direction.name().to_owned());
    let order = |got: &Got| {
        got.random.map(|random| if random { "random" } else { "sequential" }.to_owned())
    };
    add("direction", side(a), side(b));
    add("offsets", order(a), order(b));
    add("block size", a.block.map(words::bytes), b.block.map(words::bytes));
    add("threads", number(a.threads), number(b.threads));
    add("depth", number(a.depth), number(b.depth));
    add("path", a.path.clone(), b.path.clone());
    add("engine", a.engine.clone(), b.engine.clone());
    if !are_rows_alike(&a.labels, &b.labels) {
        add(ROW, Some(a.labels.join(" ")), Some(b.labels.join(" ")));
    }
    all
}

/// Each result on another GPU or path than the one above it on the same place.
pub(super) fn pairs(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let results = results(post);
    let mut all = Vec::new();
    for (index, second) in results.iter().enumerate() {
        let Some(place) = second.run.places() else { continue };
        let fits = |first: &&Result<'_>| {
            let same = first.run.places() == Some(place);
            let way = first.got.direction == second.got.direction;
            same && way && first.got.random == second.got.random
        };
        let above = results[..index].iter().rev().filter(fits);
        let alike = |first: &&Result<'_>| {
            unlike(first.run, second.run).is_empty() && first.run.gpus() != second.run.gpus()
        };
        // The nearest one; before it one that differs in its GPU alone.
        let above = above.clone().find(alike).or(above.clone().next());
        all.extend(above.and_then(|first| pair(post, first, second)));
    }
    all
}

fn pair(post: &Post, first: &Result<'_>, second: &Result<'_>) -> Option<Statement> {
    let gpus = [first, second].map(|one| one.run.gpus());
    let is_same = gpus[0] == gpus[1];
    let unlike = unlike(first.run, second.run);
    let lines = [first.got.line, second.got.line];
    let only = |which: &str| unlike.iter().all(|(aspect, ..)| *aspect == which);
    let is_way = only("path") || is_same && only("engine");
    if is_same && (!is_way || unlike.is_empty()) {
        return None;
    }
    let named = match gpus {
        [Some(one), Some(two)] => Some((one, two)),
        _ if is_same => None,
        _ => return None,
    };
    if is_way {
        let from_gpu = named.as_ref().filter(|_| !is_same);
        let from_gpu = from_gpu.map(|(one, two)| format!("{one} to {two}"));
        let from_way = unlike.first().map(|(aspect, a, b)| format!("{aspect} {a} to {b}"));
        let what: Vec<String> = from_gpu.into_iter().chain(from_way).collect();
        let what = what.join(" and ");
        let ratio = |of: fn(&Got) -> Option<f64>| Some(of(second.got)? / of(first.got)?);
        let mut figures = Vec::new();
        figures.extend(ratio(|got| got.rate).map(|ratio| format!("{ratio:.2} of the rate")));
        figures.extend(ratio(|got| got.latency).map(|ratio| format!("{ratio:.2} of the latency")));
        let text = format!(
            "From {what}: {}. One run each: how much of it is chance is not known.",
            words::and(&figures)
        );
        return Some(say(post, About::Compared, &lines, text));
    }
    let listed: Vec<String> =
        unlike.iter().map(|(aspect, a, b)| format!("{aspect} ({a} and {b})")).collect();
    let (gpus, other) = named?;
    let text = format!(
        "{gpus} and {other} are not comparable: they differ in {} too.",
        words::and(&listed)
    );
    Some(say(post, About::Compared, &lines, text))
}

/// Results of one load, as far as lines and commands show it, that are far apart.
pub(super) fn alike(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let mut groups: Vec<Vec<Result<'_>>> = Vec::new();
    for one in results(post).into_iter().filter(|one| one.got.tool != TABLE) {
        let is_its = |group: &&mut Vec<Result<'_>>| is_same_load(post, &group[0], &one);
        match groups.iter_mut().find(is_its) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups.iter().filter_map(|group| far_apart(post, group)).collect()
}

fn is_same_load(post: &Post, a: &Result<'_>, b: &Result<'_>) -> bool {
    let asked = |one: &Result<'_>| one.run.asked.clone().map(|asked| Asked { line: 0, ..asked });
    let side = |one: &Result<'_>| side_of(post, one.got.line);
    let (one, two) = (a.got, b.got);
    // Reports of one run, each longer than the one before, are of one load that goes on.
    let is_as_long = match (one.seconds, two.seconds) {
        (Some(one), Some(two)) => one.max(two) < one.min(two) * CHANCE,
        _ => true,
    };
    is_as_long
        && one.tool == two.tool
        && one.set_bytes == two.set_bytes
        && asked(a) == asked(b)
        && a.run.host == b.run.host
        && side(a) == side(b)
        && unlike(a.run, b.run).is_empty()
}

fn far_apart(post: &Post, group: &[Result<'_>]) -> Option<Statement> {
    let rates: Vec<f64> = group.iter().map(|one| one.got.rate).collect::<Option<_>>()?;
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    if least <= 0.0 || most < least * CHANCE {
        return None;
    }
    let lines: Vec<usize> = group.iter().map(|one| one.got.line).collect();
    let rates: Vec<String> = rates.into_iter().map(words::rate).collect();
    let shown = match group[0].run.asked {
        Some(_) => "the commands and lines",
        None => "the lines",
    };
    let text = format!(
        "One load, as far as {shown} show it, with {}: {:.1} times apart. Something else differs \
         (another GPU, drive or cache state, another load beside it), so no mean of them is the \
         rate of either.",
        words::and(&rates),
        most / least
    );
    Some(say(post, About::Compared, &lines, text))
}

/// Results that differ in their threads alone or in their block size alone.
pub(super) fn series(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let results = results(post);
    let contested = contested(post, &results);
    let (reads, others): (Vec<_>, Vec<_>) =
        results.into_iter().partition(|one| one.got.direction == Direction::Read);
    let of = |results: &[Result<'_>]| {
        let chains = [Aspect::Threads, Aspect::Block].map(|by| chains(results, by, &contested));
        let said = |chain: &Vec<Result<'_>>, by| match (chain.as_slice(), by) {
            ([first, second], by) => two(post, first, second, by),
            (all, Aspect::Threads) => scaling(post, all),
            (all, Aspect::Block) => sizes(post, all),
        };
        let [threads, blocks] = &chains;
        let threads = threads.iter().map(|chain| said(chain, Aspect::Threads));
        threads.chain(blocks.iter().map(|chain| said(chain, Aspect::Block))).collect::<Vec<_>>()
    };
    [reads, others].iter().flat_map(|results| of(results)).collect()
}

/// The setting in which the results of a chain differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aspect {
    Threads,
    Block,
}

impl Aspect {
    fn name(self) -> &'static str {
        match self {
            Aspect::Threads => "threads",
            Aspect::Block => "block size",
        }
    }

    fn of(self, got: &Got) -> Option<u64> {
        match self {
            Aspect::Threads => got.threads,
            Aspect::Block => got.block,
        }
    }
}

/// Lines of results whose load another result repeats with a rate far from theirs: a step from or
/// to one of them says nothing.
fn contested(post: &Post, results: &[Result<'_>]) -> Vec<usize> {
    let apart = |a: &Result<'_>, b: &Result<'_>| match (a.got.rate, b.got.rate) {
        (Some(one), Some(two)) => one.max(two) >= one.min(two) * CHANCE,
        _ => false,
    };
    let is_contested = |one: &&Result<'_>| {
        let mut others = results.iter().filter(|two| two.got.line != one.got.line);
        others.any(|two| is_same_load(post, one, two) && apart(one, two))
    };
    results.iter().filter(is_contested).map(|one| one.got.line).collect()
}

/// Results of which each has more of one setting than the one before it, and nothing else differs.
/// Three that stand one after another are a series; others also have data sets of one size.
fn chains<'r>(results: &[Result<'r>], by: Aspect, contested: &[usize]) -> Vec<Vec<Result<'r>>> {
    let mut all = Vec::new();
    let mut taken = vec![false; results.len()];
    for first in 0..results.len() {
        if taken[first] {
            continue;
        }
        let mut chain = vec![first];
        let mut is_row = true;
        for next in first + 1..results.len() {
            let last = chain[chain.len() - 1];
            let is_next = next == last + 1;
            let clear = |at: usize| !contested.contains(&results[at].got.line);
            let stands = is_next || clear(last) && clear(next);
            let data = is_next || sets_are_alike(&results[last], &results[next], by);
            if !taken[next] && stands && data && follows(&results[last], &results[next], by) {
                is_row &= is_next;
                chain.push(next);
            }
        }
        let of_one_size = |at: &[usize]| sets_are_alike(&results[at[0]], &results[at[1]], by);
        let clear = chain.iter().all(|at| !contested.contains(&results[*at].got.line));
        let is_whole = is_row && chain.len() > 2;
        if chain.len() > 1 && (is_whole || clear && chain.windows(2).all(of_one_size)) {
            chain.iter().for_each(|at| taken[*at] = true);
            all.push(chain.into_iter().map(|at| results[at]).collect());
        }
    }
    all
}

/// Whether both have as much data: of each thread, where threads differ.
fn sets_are_alike(a: &Result<'_>, b: &Result<'_>, by: Aspect) -> bool {
    let set = |one: &Result<'_>| {
        let each = if by == Aspect::Threads { one.got.threads?.max(1) } else { 1 };
        Some(one.got.set_bytes? / gpuio_base::units::float(each))
    };
    match (set(a), set(b)) {
        (Some(one), Some(two)) => (one - two).abs() <= 0.01 * one,
        _ => false,
    }
}

fn follows(last: &Result<'_>, next: &Result<'_>, by: Aspect) -> bool {
    let same = last.run.places() == next.run.places()
        && last.run.gpus() == next.run.gpus()
        && last.got.tool == next.got.tool;
    let unlike = unlike(last.run, next.run);
    let more = by.of(last.got) < by.of(next.got);
    same && more && unlike.iter().all(|(aspect, ..)| *aspect == by.name())
}

/// From one result to another.
fn two(post: &Post, first: &Result<'_>, second: &Result<'_>, by: Aspect) -> Statement {
    let [few, many] = [first, second].map(|one| by.of(one.got).unwrap_or(0));
    let what = match by {
        Aspect::Threads => format!("{few} to {many} threads"),
        Aspect::Block => format!("block size {} to {}", words::bytes(few), words::bytes(many)),
    };
    let ratio = |of: fn(&Got) -> Option<f64>| Some(of(second.got)? / of(first.got)?);
    let mut figures = Vec::new();
    figures.extend(ratio(|got| got.rate).map(|ratio| format!("{ratio:.2} of the rate")));
    figures.extend(ratio(|got| got.latency).map(|ratio| format!("{ratio:.2} of the latency")));
    let text = format!(
        "From {what}: {}. One run each: how much of it is chance is not known.",
        words::and(&figures)
    );
    say(post, About::Compared, &[first.got.line, second.got.line], text)
}

/// Three results or more, by block size.
fn sizes(post: &Post, results: &[Result<'_>]) -> Statement {
    let lines: Vec<usize> = results.iter().map(|one| one.got.line).collect();
    let step = |one: &Result<'_>| {
        let block = one.got.block.map_or_else(String::new, words::bytes);
        format!("{block}: {}", words::figures(one.got))
    };
    let steps: Vec<String> = results.iter().map(step).collect();
    let text = format!("By block size: {}. One run each.", steps.join("; "));
    say(post, About::Compared, &lines, text)
}

fn scaling(post: &Post, results: &[Result<'_>]) -> Statement {
    let lines: Vec<usize> = results.iter().map(|one| one.got.line).collect();
    let step = |one: &Result<'_>| {
        let threads = one.got.threads.unwrap_or(0);
        format!("{threads}: {}", words::figures(one.got))
    };
    let steps: Vec<String> = results.iter().map(step).collect();
    let last = &results[results.len() - 2..];
    let ratio = |of: &dyn Fn(&Got) -> Option<f64>| Some(of(last[1].got)? / of(last[0].got)?);
    let threads = ratio(&|got| got.threads.map(gpuio_base::units::float)).unwrap_or(1.0);
    let gain = ratio(&|got| got.iops.or(got.rate)).unwrap_or(1.0);
    let share = (gain - 1.0) / (threads - 1.0);
    let end = match share {
        share if share > 0.5 && gain > CHANCE => {
            "Rising up to the last step: more threads may give more"
        }
        share if share > 0.5 => "The last step may be chance: one with twice the threads shows it",
        share if share > 0.1 => "It flattens: the limit is near",
        _ => "More threads only add latency: something is saturated",
    };
    let mut text = format!(
        "By threads: {}. {end} (the last step has {threads:.1} times the threads and {gain:.2} \
         times the rate).",
        steps.join("; ")
    );
    let beyond = results.windows(2).filter_map(|pair| more_than_threads(pair[0].got, pair[1].got));
    for words in beyond {
        text.push_str(&words);
    }
    say(post, About::Compared, &lines, text)
}

/// A sentence on a step with more gain than threads, which threads alone do not explain.
fn more_than_threads(few: &Got, many: &Got) -> Option<String> {
    let (from, to) = (few.threads?, many.threads?);
    let threads = gpuio_base::units::float(to) / gpuio_base::units::float(from);
    let gain = many.iops.or(many.rate)? / few.iops.or(few.rate)?;
    (gain > threads * MORE_THAN_THREADS).then(|| {
        format!(
            " From {from} to {to} threads the rate grows {gain:.2} times, more than the threads: \
             something else differs (cache or power state, another load beside it)."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(command: &str, threads: u32, block: u32, rate: f64) -> String {
        let kib = rate * 1024.0 * 1024.0;
        let (set, latency) = (kib * 90.0, f64::from(threads * block) * 1e6 / kib);
        let ops = set / f64::from(block);
        format!(
            "h> gdsio -D /d -w {threads} {command}\nIoType: READ XferType: GPUD Threads: {threads} \
             DataSetSize: {set:.0}/1(KiB) IOSize: {block}(KiB) Throughput: {rate} GiB/sec, \
             Avg_Latency: {latency:.1} usecs ops: {ops:.0} total_time 90.0 secs\n"
        )
    }

    fn said(text: &str) -> Vec<Statement> {
        let post = crate::post::read("post", text);
        [pairs(&post, &[]), series(&post, &[]), alike(&post, &[])].concat()
    }

    #[test]
    fn results_of_one_load_that_are_far_apart_are_named() {
        let [fast, slow, other] = [(64, 1.85), (64, 0.105), (32, 1.85)]
            .map(|(threads, rate)| line("-d 0", threads, 4, rate));
        let all = said(&(fast.clone() + &slow));
        assert!(all.len() == 1 && all[0].words.contains("17.6 times apart"), "{all:?}");
        assert_eq!(all[0].lines, [2, 4]);
        assert_eq!(said(&(fast.clone() + &other)), []);
        let near = line("-d 0", 64, 4, 1.6);
        assert_eq!(said(&(fast + &near)), []);
    }

    #[test]
    fn gpus_are_compared_where_nothing_else_differs() {
        let one = line("-d 0", 8, 1024, 6.0);
        let alike = said(&(one.clone() + &line("-d 8", 8, 1024, 3.0)));
        assert!(alike[0].words.contains("0.50 of the rate and 2.00 of the latency"), "{alike:?}");
        let unlike = said(&(one.clone() + &line("-d 8", 8, 2048, 5.0)));
        assert!(unlike[0].words.contains("block size (1M and 2M)"), "{unlike:?}");
        assert_eq!(said(&(one.clone() + &one)), []);
    }

    #[test]
    fn engines_are_compared_where_nothing_else_differs() {
        let fio = |engine: &str, depth: u32, rate: u32| {
            let mib = rate * 4000 / 1024;
            format!(
                "$ fio --name=a --filename=/dev/nvme0n1 --rw=randread --bs=4k --direct=1 \
                 --ioengine={engine} --iodepth={depth}\na: (g=0): rw=randread, bs=(R) \
                 4096B-4096B, ioengine={engine}, iodepth={depth}\nfio-3.33\nStarting 1 \
                 process\na: (groupid=0, jobs=1): err= 0: pid=7: Thu Jan  1 00:00:00 2026\n  \
                 read: IOPS={rate}k, BW={mib}MiB/s (9MB/s)({}MiB/20000msec)\n",
                mib * 20
            )
        };
        let all = said(&(fio("libaio", 64, 800) + &fio("io_uring", 64, 600)));
        assert_eq!(all.len(), 1, "{all:?}");
        let words = "From engine libaio to io_uring: 0.75 of the rate. One run each";
        assert!(all[0].words.starts_with(words), "{all:?}");
        assert_eq!(said(&(fio("libaio", 64, 800) + &fio("io_uring", 32, 600))), []);
    }

    #[test]
    fn two_results_that_differ_in_one_setting_are_compared() {
        let one = line("-d 0", 8, 1024, 6.0);
        let of = |all: &str| said(all).into_iter().map(|one| one.words).collect::<Vec<_>>();
        // The data set of `line` is its second number, the same in all.
        let sizes = of(&(one.clone() + &line("-d 0", 8, 2048, 9.0)));
        assert_eq!(sizes.len(), 1, "{sizes:?}");
        assert!(sizes[0].starts_with("From block size 1M to 2M: 1.50 of the rate"), "{sizes:?}");
        // Twice the threads have half as much each, which may fit a cache.
        assert_eq!(of(&(one.clone() + &line("-d 0", 16, 1024, 9.0))), [""; 0]);
        let each = line("-d 0", 16, 1024, 9.0).replace("/1(KiB)", "/2(KiB)");
        let threads = of(&(one.clone() + &line("-d 0", 8, 4, 0.1) + &each));
        assert!(threads.iter().any(|one| one.starts_with("From 8 to 16 threads: 1.50")));
        // A load with two rates is the beginning of nothing.
        let slow = line("-d 0", 8, 1024, 3.0);
        let contested = of(&(one + &slow + &each));
        assert!(contested.iter().all(|one| !one.starts_with("From")), "{contested:?}");
    }

    #[test]
    fn threads_make_a_series() {
        let text = [(4, 1.0), (8, 2.0), (16, 2.1)];
        let text: String = text.map(|(w, rate)| line("-d 0", w, 4, rate)).concat();
        let all = said(&text);
        assert_eq!(all.len(), 1);
        assert!(all[0].words.contains("4: ") && all[0].lines.len() == 3, "{all:?}");
    }
}
