//! Processors' time per I/O: the bound that no data sheet has.

use serde::{Deserialize, Serialize};

use crate::flow::expectation::{Laid, StreamExpected};

/// I/Os smaller than this end at a rate of I/Os, each of which takes a processor's time.
const SMALL: u64 = 64 << 10;
/// I/Os a second of one processor below which its time is taken for enough: 10 µs for each. From
/// the page cache, with no drive and no GPU on the path, one made 1.08 million
/// (docs/lab-book/fio.md); file systems, interrupts and copies into GPU memory come on top.
const ENOUGH: f64 = 100e3;
/// The same where the number of processors is not known: the rate that one of them reached.
const SEEN: f64 = 1.08e6;

/// The processors that serve all streams.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Processors {
    /// So many, and no figure of what one does.
    Count(u64),
    /// So many machines, each with an unknown number of processors.
    Machines(u64),
    /// They are a part of the network, by a figure.
    Counted,
}

/// Makes bounds of the rates of small I/Os that processors may not reach.
pub(crate) fn bound(processors: Processors, laid: &[Laid], streams: &mut [StreamExpected]) {
    let (count, each, what) = match processors {
        Processors::Counted => return,
        Processors::Count(count) => (count, ENOUGH, "processor"),
        Processors::Machines(count) => (count, SEEN, "machine"),
    };
    let (count_f, blocks) = (
        count.max(1) as f64,
        laid.iter().map(|one| one.block_bytes.max(1) as f64).collect::<Vec<f64>>(),
    );
    let is_small = |index: usize| laid[index].block_bytes < SMALL;
    let rate = |one: &StreamExpected| one.expected.bytes_per_s.or(one.expected.at_most);
    let small = streams.iter().enumerate().filter(|(index, _)| is_small(*index));
    let ios: f64 = small.filter_map(|(index, one)| Some(rate(one)? / blocks[index])).sum();
    if ios <= count_f * each {
        return;
    }
    let why = format!(
        "{} I/Os a second are {} for each of {count} {what}{}, and what one can do is not known: \
         give it with --spec, [processor] ios=",
        gpuio_base::units::human_count(ios),
        gpuio_base::units::human_count(ios / count_f),
        if count == 1 { "" } else { "s" }
    );
    for (_, one) in streams.iter_mut().enumerate().filter(|(index, _)| is_small(*index)) {
        let expected = &mut one.expected;
        if let Some(rate) = expected.bytes_per_s.take() {
            expected.at_most = Some(rate);
            expected.iops = None;
            expected.unknown = Some(why.clone());
        }
    }
}
