//! Threads and depth to start with.

use gpuio_base::units::{format_bytes, human_count, human_ns};
use gpuio_record::Expected;

use crate::pair::{Given, Load, Pair, Start, StoreKind};

/// Bytes in flight that keep one NVMe drive busy with large blocks. NVIDIA's "GPUDirect Storage
/// Benchmarking and Configuration Guide" has 6.5 of 6.8 GB/s from two drives with 8 threads of one
/// block of 1 MiB each.
const DRIVE_BYTES: u64 = 4 << 20;
/// Small blocks in flight for one drive: in that guide two drives gave 485 thousand I/Os a second
/// with 64 threads of one block each, and 850 thousand with 128.
const DRIVE_BLOCKS: u64 = 64;
/// Blocks in flight for a network card: the guide's runs over one port of 100 Gb/s have 32.
const CARD_BLOCKS: u64 = 32;
/// The rate of that card, in Mbit/s.
const CARD_MEGABITS: u64 = 100_000;
/// For a card of 200 Gb/s NVIDIA's slides on GPUDirect Storage ("Learnings / best practices") name
/// some 96 threads of one block each: bandwidth times delay, and delay grows with the load.
const FAST_CARD_BLOCKS: u64 = 96;
/// The rate of that card, in Mbit/s.
const FAST_CARD_MEGABITS: u64 = 200_000;
/// Small blocks in flight for a card, at least: the guide's random reads of 4 KiB over NFS made 234
/// thousand I/Os a second with 32 threads of one block each, and 580 thousand with 64.
const CARD_SMALL_BLOCKS: u64 = 64;
/// Blocks smaller than this end at a rate of I/Os, not of bytes.
const SMALL: u64 = 64 << 10;
/// Fewer threads leave a GPU path idle between file and copy (docs/lab-book/paths.md).
const THREADS_LEAST: u64 = 4;
/// More gained nothing on any path (docs/lab-book/paths.md: 12 threads fill a link of PCIe 5.0
/// x16).
const THREADS_MOST: u64 = 16;
/// So that a thread reads one block while others are in flight (docs/lab-book/staged.md: with
/// depth 1 `staged` makes 0.6 of its rate).
const DEPTH_LEAST: u64 = 4;
/// Depth of a thread that has no GPU to serve (gpuio's own default for large blocks).
const DEPTH_HOST: u64 = 8;
/// More in one queue only waits.
const DEPTH_MOST: u64 = 128;
/// Threads of one I/O each: the most that the guide's table has.
const SYNC_THREADS_MOST: u64 = 128;

/// Sets the start values of all pairs. `all_cpus` is how many there are on all nodes together.
pub(crate) fn set(pairs: &mut [Pair], load: Load, all_cpus: Option<usize>) {
    let shares: Vec<Option<(usize, usize)>> =
        pairs.iter().map(|pair| cpus(pairs, pair, all_cpus)).collect();
    for (pair, share) in pairs.iter_mut().zip(shares) {
        let wants = pair.stores.iter().map(|given| wants(given, load)).fold(0, u64::saturating_add);
        pair.start = values(wants.max(1), words(pair, load), share, pair.gpu.is_some());
    }
}

/// More by Little's law, where the least time of an I/O is known: twice the I/Os that the rate has
/// in flight on average, so that no drive waits for the next one. Never less than without it: under
/// load an I/O takes longer than its least time.
pub(crate) fn refine(
    pairs: &mut [Pair],
    index: usize,
    expected: &Expected,
    all_cpus: Option<usize>,
) {
    let Some((per_second, latency)) = expected.iops.zip(expected.latency_floor_ns) else { return };
    let share = cpus(pairs, &pairs[index], all_cpus);
    let pair = &mut pairs[index];
    let better = by_little(per_second, latency);
    if let Some((wants, why)) = better.filter(|(wants, _)| *wants > pair.start.in_flight) {
        pair.start = values(wants, why, share, pair.gpu.is_some());
    }
}

/// I/Os in flight, and why.
fn by_little(per_second: f64, latency_ns: f64) -> Option<(u64, String)> {
    let average = per_second * latency_ns / 1e9;
    if !average.is_finite() || average <= 0.0 {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and a cast of a float ends at the type's bounds"
    )]
    let wants = (2.0 * average).ceil() as u64;
    let why = format!(
        "twice the {average:.0} I/Os that {} a second of {} each have in flight",
        human_count(per_second),
        human_ns(latency_ns)
    );
    Some((wants, why))
}

/// Processors of a pair's node, or where that is not known of all, and how many pairs share them.
fn cpus(pairs: &[Pair], pair: &Pair, all: Option<usize>) -> Option<(usize, usize)> {
    let count = pair.cpus.as_ref().map(Vec::len).or(all)?;
    let mates = pairs.iter().filter(|other| other.node == pair.node).count();
    (count > 0).then_some((count, mates.max(1)))
}

/// I/Os in flight that a store wants of one of those that share it.
fn wants(given: &Given, load: Load) -> u64 {
    let parts = u64::try_from(given.of.max(1)).unwrap_or(1);
    let each = each(given, load);
    let sharers = u64::try_from(given.shared_with.len() + 1).unwrap_or(1);
    (parts * each).div_ceil(sharers)
}

fn each(given: &Given, load: Load) -> u64 {
    match given.kind {
        StoreKind::NetworkMount => card(given.nic_megabits, load.block_bytes),
        _ => (DRIVE_BYTES / load.block_bytes.max(1)).clamp(2, DRIVE_BLOCKS),
    }
}

/// Blocks in flight for a card: in step with its rate between the two that are known, and above
/// them; not fewer for a slower one, as its delay is no less.
fn card(megabits: Option<u64>, block_bytes: u64) -> u64 {
    let large = match megabits {
        Some(fast) if fast > CARD_MEGABITS => {
            let more = fast - CARD_MEGABITS;
            let slope = FAST_CARD_BLOCKS - CARD_BLOCKS;
            CARD_BLOCKS + (more * slope).div_ceil(FAST_CARD_MEGABITS - CARD_MEGABITS)
        }
        _ => CARD_BLOCKS,
    };
    if block_bytes < SMALL { large.max(CARD_SMALL_BLOCKS) } else { large }
}

/// A thread for each I/O in flight where a GPU is served, since path `gds` has one per thread; else
/// fewer that go deeper.
fn values(in_flight: u64, wants: String, cpus: Option<(usize, usize)>, to_gpu: bool) -> Start {
    let share = cpus.map(|(cpus, pairs)| (cpus / pairs).max(1));
    let most = share.and_then(|share| u64::try_from(share).ok()).unwrap_or(THREADS_MOST);
    let most = most.min(THREADS_MOST);
    let threads = if to_gpu { in_flight } else { in_flight.div_ceil(DEPTH_HOST) };
    let threads = threads.clamp(THREADS_LEAST.min(most), most);
    let depth = in_flight.div_ceil(threads).next_power_of_two().clamp(DEPTH_LEAST, DEPTH_MOST);
    let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let limit = match cpus {
        Some((cpus, pairs)) if threads == most && most < THREADS_MOST => {
            format!("; {cpus} CPUs for {pairs} {}", plural(pairs, "pair"))
        }
        _ => String::new(),
    };
    let whose = if to_gpu { "for each GPU" } else { "in total" };
    let why = format!("{wants}: {in_flight} in flight {whose}{limit}");
    let sync_threads = small(in_flight.clamp(THREADS_LEAST, SYNC_THREADS_MOST));
    Start { threads: small(threads), depth: small(depth), sync_threads, in_flight, why }
}

fn words(pair: &Pair, load: Load) -> String {
    let block = format_bytes(load.block_bytes);
    // Equal stores that stand together are counted.
    let mut all: Vec<(usize, String)> = Vec::new();
    for given in &pair.stores {
        let shared = match given.shared_with.len() {
            0 => String::new(),
            others => format!(", shared by {} GPUs", others + 1),
        };
        let part = match (given.kind == StoreKind::NetworkMount, given.nic_megabits) {
            (true, Some(megabits)) => format!("card@ ({} Gb/s)", megabits / 1000),
            (true, None) => "card@ (rate not known)".to_owned(),
            (false, _) => "drive@".to_owned(),
        };
        let each = each(given, load);
        let ios = plural(usize::try_from(each).unwrap_or(usize::MAX), "I/O");
        let words = format!("{part} with {each} {ios} of {block} each{shared}");
        let count = given.of.max(1);
        match all.last_mut().filter(|(_, last)| *last == words) {
            Some((known, _)) => *known += count,
            None => all.push((count, words)),
        }
    }
    if all.is_empty() {
        return "nothing to open".to_owned();
    }
    let part = |(count, words): (usize, String)| {
        format!("{count} {}", words.replacen('@', if count == 1 { "" } else { "s" }, 1))
    };
    all.into_iter().map(part).collect::<Vec<_>>().join(" and ")
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_gives_twice_the_average() {
        let (wants, why) = by_little(800_000.0, 80_000.0).unwrap();
        assert_eq!(wants, 128);
        assert!(why.contains("64 I/Os"), "{why}");
        assert_eq!(by_little(0.0, 80_000.0), None);
        assert_eq!(by_little(f64::NAN, 80_000.0), None);
    }

    #[test]
    fn threads_stay_within_the_processors() {
        let start = values(128, "x".to_owned(), Some((48, 8)), true);
        assert_eq!((start.threads, start.depth), (6, 32));
        assert!(start.why.ends_with("48 CPUs for 8 pairs"), "{}", start.why);
        let threads = |wants, cpus, to_gpu| values(wants, String::new(), cpus, to_gpu).threads;
        assert_eq!(threads(1, Some((1, 4)), true), 1);
        assert_eq!(threads(8, None, true), 8);
        assert_eq!(threads(1, None, true), 4);
        assert_eq!(threads(128, None, true), 16);
    }

    /// The guide's table, threads of one block of 4 KiB each on two drives: 16 make 100 928 I/Os a
    /// second, 64 make 484 612, 128 make 850 240.
    #[test]
    fn threads_of_one_io_each_are_as_many_as_wanted_in_flight() {
        let start = values(128, String::new(), Some((8, 1)), true);
        assert_eq!((start.threads, start.sync_threads), (8, 128));
        assert_eq!(values(4096, String::new(), None, true).sync_threads, 128);
        assert_eq!(values(1, String::new(), None, true).sync_threads, 4);
    }

    #[test]
    fn cards_get_blocks_by_their_rate() {
        let large = |megabits| card(megabits, 1 << 20);
        let rates = [None, Some(25_000), Some(100_000), Some(200_000), Some(400_000)];
        assert_eq!(rates.map(large), [32, 32, 32, 96, 224]);
        assert_eq!(card(Some(100_000), 4096), 64);
        assert_eq!(card(Some(200_000), 4096), 96);
    }

    #[test]
    fn to_host_memory_fewer_threads_go_deeper() {
        let start = values(32, String::new(), None, false);
        assert_eq!((start.threads, start.depth), (4, 8));
    }
}
