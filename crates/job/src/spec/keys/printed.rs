//! A plan as lines of a job file: what rows of the table print.

use std::collections::BTreeSet;

use gpuio_base::units::format_bytes;
use gpuio_record::{
    Arrivals, BlockShare, Column, FeedPlan, Follow, JobPlan, LayoutPlan, Order, Pacing,
};

use crate::spec::value::one_name;

use super::{Key, keys};

/// Places of lines: below 100 where the load runs, then the load and its files (of a training feed
/// the files come first), then the rest. Lines of one place come in the order of the table.
pub(super) const WHERE: u16 = 0;
pub(super) const LOAD: u16 = 100;
pub(super) const FILES: u16 = 200;
pub(super) const REST: u16 = 300;

/// The keys that a job's plan is printed with, and their values, in the order of the lines.
pub fn plan_lines(plan: &JobPlan) -> Vec<(&'static Key, String)> {
    let line = |key: &'static Key| {
        let (line, value) = key.prints?;
        let files_first = plan.feed.is_some() && line / 100 == FILES / 100;
        Some((if files_first { line - FILES + LOAD / 2 } else { line }, key, value(plan)?))
    };
    let mut lines: Vec<_> = keys().filter_map(line).collect();
    lines.sort_by_key(|(line, ..)| *line);
    lines.into_iter().map(|(_, key, value)| (key, value)).collect()
}

/// Whether blocks are moved, and no samples of a training feed.
pub(super) fn of_blocks(plan: &JobPlan) -> bool {
    plan.feed.is_none()
}

pub(super) fn switch(on: bool) -> String {
    u8::from(on).to_string()
}

pub(super) fn rw(plan: &JobPlan) -> Option<String> {
    let word = match &plan.feed {
        Some(feed) if feed.writes => "write",
        Some(_) => "read",
        None => plan.rw(),
    };
    Some(match plan.follow {
        Some(Follow::Gap { bytes }) => format!("{word}:{bytes}"),
        Some(Follow::Run { ios, .. }) => format!("{word}:{ios}"),
        Some(Follow::Share { .. }) | None => word.to_owned(),
    })
}

/// The sizes of reads and writes: one text for both, or two with a comma.
pub(super) fn both(plan: &JobPlan, words: fn(&[BlockShare]) -> Option<String>) -> Option<String> {
    let reads = words(&plan.blocks)?;
    match plan.write_blocks.as_slice() {
        [] => Some(reads),
        writes => Some(format!("{reads},{}", words(writes)?)),
    }
}

/// The same of rates, of which one may have none.
pub(super) fn rate(plan: &JobPlan, words: fn(&Pacing) -> Option<String>) -> Option<String> {
    let of = |pacing: &Option<Pacing>| pacing.as_ref().and_then(words);
    let reads = of(&plan.pacing);
    if plan.write_pacing.is_none() {
        return reads;
    }
    let writes = of(&plan.write_pacing);
    let some = reads.is_some() || writes.is_some();
    some.then(|| format!("{},{}", reads.unwrap_or_default(), writes.unwrap_or_default()))
}

/// The size of all blocks.
pub(super) fn block(blocks: &[BlockShare]) -> Option<String> {
    let [one] = blocks else { return None };
    Some(range(one))
}

/// Several sizes with their shares.
pub(super) fn blocks(blocks: &[BlockShare]) -> Option<String> {
    let share = |share: &BlockShare| format!("{}/{}", range(share), share.percent);
    Some(blocks.iter().map(share).collect::<Vec<_>>().join(":"))
}

fn range(share: &BlockShare) -> String {
    if share.min_bytes == share.max_bytes {
        return format_bytes(share.min_bytes);
    }
    let [min, max, step] = [share.min_bytes, share.max_bytes, share.step_bytes].map(format_bytes);
    format!("{min}:{max}:{step}")
}

/// Whether every block is accessed before any is twice, where the order is random.
pub(super) fn covers(plan: &JobPlan) -> Option<bool> {
    match &plan.order {
        Order::Random { coverage, .. } if of_blocks(plan) => Some(*coverage),
        _ => None,
    }
}

pub(super) fn distribution(plan: &JobPlan) -> Option<String> {
    covers(plan)?;
    let Order::Random { distribution, .. } = &plan.order else { return None };
    Some(distribution.key())
}

pub(super) fn arrivals(plan: &JobPlan) -> Option<String> {
    let word = match plan.pacing.or(plan.write_pacing)?.arrivals {
        Arrivals::Steady => "linear",
        Arrivals::Poisson => "poisson",
    };
    Some(word.to_owned())
}

pub(super) fn size(plan: &JobPlan) -> Option<String> {
    plan.has_size().then(|| match (&plan.part, plan.size_percent) {
        (Some(part), _) => format_bytes(part.full_size_bytes),
        (None, Some(percent)) => format!("{percent}%"),
        (None, None) => format_bytes(plan.size_bytes),
    })
}

pub(super) fn scale(plan: &JobPlan) -> Option<String> {
    let part = plan.part.as_ref().filter(|_| plan.has_size()).map(|part| part.scale);
    Some(plan.feed.as_ref().map(|feed| feed.scale).or(part)?.to_string())
}

/// The part of the data that a part of a load uses.
pub(super) fn scaled(plan: &JobPlan) -> Option<String> {
    let files = |feed: &FeedPlan| {
        format!("scale {}: {} of {} files", feed.scale, feed.files, feed.full_files)
    };
    plan.feed.as_ref().map(files).or_else(|| Some(plan.part?.words(plan)))
}

pub(super) fn verify(plan: &JobPlan) -> Option<String> {
    let word = match plan.verify {
        _ if plan.against_file => "file",
        _ if plan.fio_headers => "crc32c",
        mode => mode.word(),
    };
    Some(word.to_owned())
}

/// Which GPUs, in the order in which threads take them.
pub(super) fn gpus(plan: &JobPlan) -> String {
    if plan.gpus.is_empty() {
        return "none".to_owned();
    }
    let numbers: Vec<String> = plan.gpus.iter().map(|gpu| gpu.index.to_string()).collect();
    let software = plan.gpus.iter().any(|gpu| gpu.software);
    let driver = if software { "software:" } else { "" };
    format!("{driver}{}", numbers.join(","))
}

/// The one place in which threads run.
pub(super) struct Pinned {
    pub(super) cpus: Vec<u32>,
    pub(super) node: Option<u32>,
    /// Whether each thread has one of those CPUs, in turn.
    pub(super) split: bool,
}

/// Where threads run, if all are in one place. Threads in different locations were placed near
/// their GPUs: the plan will place them there again, and no key could.
pub(super) fn pinned(plan: &JobPlan) -> Option<Pinned> {
    let first = plan.workers.first()?;
    let node = first.numa_node;
    if plan.workers.iter().any(|worker| worker.numa_node != node) {
        return None;
    }
    if plan.workers.iter().all(|worker| worker.cpus == first.cpus) {
        return Some(Pinned { cpus: first.cpus.clone(), node, split: false });
    }
    let own = plan.workers.iter().map(|worker| match worker.cpus.as_slice() {
        [cpu] => Some(*cpu),
        _ => None,
    });
    let own: Vec<u32> = own.collect::<Option<_>>()?;
    let cpus: Vec<u32> = own.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let split = own.iter().eq(cpus.iter().cycle().take(own.len()));
    split.then_some(Pinned { cpus, node, split })
}

pub(super) fn via_peer(plan: &JobPlan) -> Option<String> {
    let via = plan.via.as_ref().map(|via| via.any);
    let any = via.or(plan.fan_out.map(|fan_out| fan_out.any))?;
    Some(if any { "any" } else { "peer" }.to_owned())
}

pub(super) fn filename(plan: &JobPlan) -> Option<String> {
    let named = of_blocks(plan) && plan.directory.is_none();
    let names = || plan.targets.iter().map(|target| one_name(&target.path));
    named.then(|| names().collect::<Vec<_>>().join(":"))
}

/// The layout, where all threads share a file.
pub(super) fn shared_layout(plan: &JobPlan) -> Option<&LayoutPlan> {
    plan.layout.as_ref().filter(|layout| plan.has_size() && layout.kind.is_shared())
}

/// After how many writes files are flushed, by this call.
pub(super) fn flushes(plan: &JobPlan, data_only: bool) -> Option<String> {
    let flush = plan.flush.as_ref().filter(|flush| flush.data_only == data_only)?;
    Some(flush.every_ios?.to_string())
}

pub(super) fn sample_size(plan: &JobPlan) -> Option<String> {
    let size = plan.feed.as_ref()?.sample;
    Some(match size.deviation_bytes {
        0 => size.mean_bytes.to_string(),
        bytes => format!("{}+-{bytes}", size.mean_bytes),
    })
}

/// Neighbours that are alike as one.
pub(super) fn columns(plan: &JobPlan) -> Option<String> {
    let columns = &plan.feed.as_ref()?.columns;
    let alike = columns.chunk_by(|one, other| one == other);
    let words = alike.map(|run: &[Column]| {
        let read = if run[0].read { "+" } else { "" };
        match run.len() {
            1 => format!("{}{read}", run[0].bytes),
            count => format!("{}{read}*{count}", run[0].bytes),
        }
    });
    (!columns.is_empty()).then(|| words.collect::<Vec<_>>().join(","))
}
