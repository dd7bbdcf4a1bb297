//! Verification: are the bytes where they should be what they should be? Never within a clock.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering;

use gpuio_base::pattern::{Salt, file_key, other_salt, unmix, word};
use gpuio_io::engine::Op;
use gpuio_io::path::{Completion, Leg, Mismatch, PatternBlock, Place, Request, Start, fio_headers};
use gpuio_record::{
    BlockShare, DirectMode, Distribution, InjectedFaults, JobPlan, Order, Stripe, VerifyMismatch,
    VerifyMode, VerifyOutcome, VerifySubject,
};

use self::other_length::OtherLength;
use super::RunError;
use super::failures::IoFaults;
use super::pattern_keys::{key, salt};
use super::reached::{Reached, Runs};
use super::task::{Task, Tools};
use gpuio_job::workload::blocks::unit;
use gpuio_job::workload::sequence::{Block, BlockSequence, RegionSpan, SequenceConfig};

mod other_length;

const KEPT: usize = VerifyOutcome::KEPT;

/// Different wrong blocks that are told apart; more of them are "at least" as many.
const PLACES_MOST: usize = 1 << 14;

#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    timed: (u64, u64),
    pass: (u64, u64),
    /// Bytes written by the pass.
    filled: u64,
    bad_blocks: u64,
    bad_words: u64,
    bad: Vec<(u32, Mismatch)>,
    /// The different ones: target and offset.
    bad_places: BTreeSet<(u32, u64)>,
    bad_places_at_least: bool,
    written_as: OtherLength,
    failures: IoFaults,
    /// Faults that `inject` made in the pass.
    pub(super) injected: InjectedFaults,
    /// Bytes of the pass that there were, where its time was limited.
    of_bytes: u64,
    /// Whether the time for the pass ended before its bytes did.
    pub(super) sampled: bool,
    pub(super) complete: bool,
}

impl Findings {
    fn add_place(&mut self, place: (u32, u64)) {
        if self.bad_places.len() < PLACES_MOST {
            self.bad_places.insert(place);
        } else if !self.bad_places.contains(&place) {
            self.bad_places_at_least = true;
        }
    }

    pub(super) fn merge(&mut self, other: Findings) {
        self.timed.0 += other.timed.0;
        self.timed.1 += other.timed.1;
        self.pass.0 += other.pass.0;
        self.pass.1 += other.pass.1;
        self.filled += other.filled;
        self.bad_blocks += other.bad_blocks;
        self.bad_words += other.bad_words;
        self.failures.merge(other.failures);
        self.injected += other.injected;
        self.of_bytes += other.of_bytes;
        self.sampled |= other.sampled;
        self.complete &= other.complete;
        other.bad_places.into_iter().for_each(|place| self.add_place(place));
        self.bad_places_at_least |= other.bad_places_at_least;
        self.written_as.merge(other.written_as);
        other.bad.into_iter().for_each(|bad| self.add_bad(bad));
    }

    /// Keeps what was wrong in a block, once however often it was read so.
    fn add_bad(&mut self, bad: (u32, Mismatch)) {
        if self.bad.len() < KEPT && !self.bad.contains(&bad) {
            self.bad.push(bad);
        }
    }

    /// `written_bytes`: those of all timed writes.
    pub(super) fn into_record(self, job: &JobPlan, written_bytes: u64) -> VerifyOutcome {
        // All that was reached is read back, unless something failed or ended it.
        let reached = if self.sampled { self.of_bytes } else { self.pass.1 };
        let is_whole = job.reads_writes_back() && self.complete && self.failures.total == 0;
        let repeated = written_bytes.saturating_sub(reached);
        VerifyOutcome {
            subject: VerifySubject::of(job),
            timed_blocks: self.timed.0,
            timed_bytes: self.timed.1,
            pass_blocks: self.pass.0,
            pass_bytes: self.pass.1,
            // A rewritten range is read back whole.
            filled_bytes: if job.reads_writes_back() { self.filled } else { 0 },
            repeated_bytes: (is_whole && repeated > 0).then_some(repeated),
            sample_of_bytes: self.sampled.then_some(self.of_bytes),
            checked_in: VerifyOutcome::place(job).into(),
            bad_blocks: self.bad_blocks,
            bad_places: (self.bad_blocks > 0).then_some(self.bad_places.len() as u64),
            bad_places_at_least: self.bad_places_at_least,
            written_as: self.written_as.into_record(job),
            bad_words: self.bad_words,
            mismatches: self.bad.iter().map(|(target, bad)| mismatch(job, *target, bad)).collect(),
            failed: self.failures.total,
            failures: self.failures.into_record(job),
            injected: self.injected,
            complete: self.complete,
        }
    }
}

fn mismatch(job: &JobPlan, target: u32, bad: &Mismatch) -> VerifyMismatch {
    let leg = match bad.leg {
        Some(Leg::File) => "file",
        Some(Leg::Gpu) => "gpu",
        None => "unknown",
    };
    let word = |word: u64| match bad.checksum_of {
        Some(_) => format!("{word:#010x}"),
        None => format!("{word:#018x}"),
    };
    let by_header = || fio_headers::belongs_at(bad).filter(|_| job.fio_headers);
    VerifyMismatch {
        path: job.targets[target as usize].path.clone(),
        offset: bad.offset,
        expected: word(bad.expected),
        found: word(bad.found),
        bad_words: bad.bad_words,
        checksum_of_bytes: bad.checksum_of,
        leg: leg.into(),
        gpu: bad.gpu,
        found_belongs_at: match bad.bad_words {
            0 => by_header().map(|offset| format!("offset {offset}")),
            _ => origin_of(job, bad.found),
        },
    }
}

/// Where a word belongs, if it is a word of the pattern of one of the job's files, or of what lay
/// there before the load: the mixing is a bijection, so its counter can be read back.
fn origin_of(job: &JobPlan, found: u64) -> Option<String> {
    let before = || origin(job, other_salt(salt(job)), found);
    let stale = || Some(format!("{}, as it was before the load", before()?));
    origin(job, salt(job), found).or_else(|| stale().filter(|_| job.reads_writes_back()))
}

fn origin(job: &JobPlan, salt: Salt, found: u64) -> Option<String> {
    const STEP_INVERSE: u64 = 0xf1de_83e1_9937_733d;
    let counter = unmix(found);
    job.targets.iter().find_map(|target| {
        let key = file_key(salt, target.file_number);
        let index = counter.wrapping_sub(key.seed).wrapping_mul(STEP_INVERSE);
        let offset = index.checked_mul(8).filter(|at| *at < target.length_bytes)?;
        (word(key, index) == found).then(|| format!("{} offset {offset}", target.path))
    })
}

/// Checks one completed block and keeps what is wrong.
pub(super) fn block(
    task: &Task<'_>,
    tools: &mut Tools,
    slot: u32,
    block: &Block,
    findings: &mut Findings,
    timed: bool,
) -> Result<(), RunError> {
    let target = tools.files.targets[block.file as usize];
    let holes = holes_in(&task.job.targets[target as usize].holes, block);
    let found = match task.job.against_file {
        true => against_file(task, tools, slot, block)?,
        false if !holes.is_empty() => with_holes(task, tools, slot, (block, holes))?,
        false => tools
            .path
            .check(PatternBlock::new(
                slot,
                tools.files.expected(block.file),
                block.offset,
                block.len,
            ))
            .map_err(|source| path_error(task, source))?,
    };
    let bad = found.as_ref().filter(|_| task.job.fio_headers && task.job.read_percent == 100);
    if bad.is_some_and(|bad| findings.written_as.explains(tools, block, bad)) {
        return Ok(());
    }
    let count = if timed { &mut findings.timed } else { &mut findings.pass };
    count.0 += 1;
    count.1 += u64::from(block.len);
    if let Some(bad) = found {
        findings.bad_blocks += 1;
        findings.bad_words += bad.bad_words;
        findings.add_place((target, block.offset));
        findings.add_bad((target, bad));
    }
    Ok(())
}

/// Compares a block in its memory with what the file holds, as the CPU reads it.
fn against_file(
    task: &Task<'_>,
    tools: &mut Tools,
    slot: u32,
    block: &Block,
) -> Result<Option<Mismatch>, RunError> {
    let mut there = vec![0; block.len as usize];
    let mut wanted = vec![0; block.len as usize];
    tools.path.copy_out(slot, &mut there).map_err(|source| path_error(task, source))?;
    tools.files.read_plain(task.job, (block.file, block.offset), &mut wanted)?;
    let found = differs(&there, &wanted, block.offset);
    if found.is_some() && tools.files.has_changed(block.file) {
        let target = tools.files.targets[block.file as usize] as usize;
        return Err(RunError::Changed { path: task.job.targets[target].path.clone() });
    }
    Ok(found)
}

/// The holes that a block meets, of all of its file in their order.
fn holes_in<'h>(holes: &'h [Range<u64>], block: &Block) -> &'h [Range<u64>] {
    let first = holes.partition_point(|hole| hole.end <= block.offset);
    let end = block.offset + u64::from(block.len);
    let last = holes.partition_point(|hole| hole.start < end);
    holes.get(first..last).unwrap_or_default()
}

/// Compares a block in its memory with zeros in holes and the pattern around them. The kernel that
/// checks a block knows the pattern only, so this one is copied back.
fn with_holes(
    task: &Task<'_>,
    tools: &mut Tools,
    slot: u32,
    (block, holes): (&Block, &[Range<u64>]),
) -> Result<Option<Mismatch>, RunError> {
    let mut there = vec![0; block.len as usize];
    let mut wanted = vec![0; block.len as usize];
    tools.path.copy_out(slot, &mut there).map_err(|source| path_error(task, source))?;
    gpuio_base::pattern::fill(&mut wanted, tools.files.expected(block.file), block.offset);
    let within = |at: u64| {
        let at = at.saturating_sub(block.offset).min(u64::from(block.len));
        usize::try_from(at).unwrap_or(usize::MAX)
    };
    for hole in holes {
        if let Some(part) = wanted.get_mut(within(hole.start)..within(hole.end)) {
            part.fill(0);
        }
    }
    Ok(differs(&there, &wanted, block.offset))
}

/// The first of the 8-byte words that differ, counted from the begin of a block.
fn differs(there: &[u8], wanted: &[u8], offset: u64) -> Option<Mismatch> {
    // At the speed of memory, whatever the build.
    if there == wanted {
        return None;
    }
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let pairs = there.chunks(8).zip(wanted.chunks(8)).enumerate();
    let mut bad = pairs.filter(|(_, (there, wanted))| there != wanted);
    let (at, (found, expected)) = bad.next()?;
    Some(Mismatch {
        offset: offset + 8 * at as u64,
        expected: word(expected),
        found: word(found),
        bad_words: 1 + bad.count() as u64,
        checksum_of: None,
        leg: None,
        gpu: None,
    })
}

/// Verifies the worker's share over the same path, as the job's mode has it.
pub(super) fn pass(
    task: &Task<'_>,
    tools: &mut Tools,
    left: &[Option<Block>],
) -> Result<Findings, RunError> {
    let mut findings = Findings { complete: true, ..Findings::default() };
    if task.replay.is_some() {
        for (slot, held) in (0u32..).zip(left) {
            if let Some(held) = held {
                block(task, tools, slot, held, &mut findings, true)?;
            }
        }
        replayed(task, tools, Replayed::All, &mut findings)?;
        return Ok(findings);
    }
    if task.job.reads_writes_back() {
        read_back(task, tools, &mut findings)?;
        return Ok(findings);
    }
    if task.job.verify == VerifyMode::Rewrite {
        sweep(task, tools, Op::Write, &mut findings)?;
    } else {
        for (slot, held) in (0u32..).zip(left) {
            if let Some(held) = held {
                block(task, tools, slot, held, &mut findings, true)?;
            }
        }
    }
    sweep(task, tools, Op::Read, &mut findings)?;
    Ok(findings)
}

/// Which calls of a replay are verified after the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replayed {
    All,
    /// Those that wrote.
    Writes,
}

/// Reads what the worker's calls read or wrote once more over the same path, each byte once, and
/// checks it.
pub(super) fn replayed(
    task: &Task<'_>,
    tools: &mut Tools,
    which: Replayed,
    findings: &mut Findings,
) -> Result<(), RunError> {
    let lane = task.replay.and_then(|all| all.script().lanes.get(task.plan.thread as usize));
    let steps = lane.map(|lane| lane.steps.as_slice()).unwrap_or_default();
    let mut all: Vec<(u32, u64, u64)> = steps
        .iter()
        .filter(|step| which == Replayed::All || step.op == Op::Write)
        .map(|step| (step.file, step.offset, step.offset + step.bytes))
        .collect();
    all.sort_unstable();
    let mut ranges: Vec<(u32, u64, u64)> = Vec::new();
    for (file, from, to) in all {
        match ranges.last_mut() {
            Some((last, _, end)) if *last == file && from <= *end => *end = to.max(*end),
            _ => ranges.push((file, from, to)),
        }
    }
    let most = task.job.sizes().map(|block| block.max_bytes).max().unwrap_or(1).max(1);
    let mut blocks = ranges.into_iter().flat_map(|(file, from, to)| {
        (0..(to - from).div_ceil(most)).filter_map(move |nth| {
            let offset = from + nth * most;
            let len = u32::try_from(most.min(to - offset)).ok()?;
            Some(Block { op: Op::Read, file, offset, len })
        })
    });
    drive(task, tools, &mut || blocks.next(), findings)
}

/// Reads back and checks what timed writes reached. Parts that they did not reach, and those where
/// one failed, are not checked: they get their pattern, so that a later run can verify the whole
/// file. With a limited time a sample is read back and nothing is filled.
fn read_back(task: &Task<'_>, tools: &mut Tools, findings: &mut Findings) -> Result<(), RunError> {
    if task.job.direct == DirectMode::Buffered {
        tools.files.drop_cache(task.job)?;
    }
    if task.job.verify_ns.is_some() || task.job.fio_headers {
        let blocks: Vec<Block> = runs(task, tools, Reached::Written)
            .map(|(file, offset, len)| Block { op: Op::Read, file, offset, len })
            .collect();
        findings.of_bytes = blocks.iter().map(|block| u64::from(block.len)).sum();
        let mut order = scattered(blocks.len());
        let mut next = || order.next().and_then(|at| blocks.get(at).copied());
        return drive(task, tools, &mut next, findings);
    }
    for (kind, op) in [(Reached::Written, Op::Read), (Reached::Unknown, Op::Write)] {
        let mut runs = runs(task, tools, kind);
        let mut next = || {
            let (file, offset, len) = runs.next()?;
            Some(Block { op, file, offset, len })
        };
        drive(task, tools, &mut next, findings)?;
    }
    Ok(())
}

/// All numbers below `count`, each once, far from the one before: steps of about the golden section
/// spread the first of them over all, however many follow.
fn scattered(count: usize) -> impl Iterator<Item = usize> {
    let common = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let from = count / 1000 * 618 + count % 1000 * 618 / 1000;
    let step = (from.max(1)..).find(|step| common(*step, count) == 1).unwrap_or(1);
    (0..count).scan(0, move |at, _| {
        let this = *at;
        *at = (*at + step) % count;
        Some(this)
    })
}

/// The worker's share of what is in one state, as blocks that the path can take.
fn runs<'a>(task: &Task<'a>, tools: &Tools, kind: Reached) -> Runs<'a> {
    let (job, reached_maps) = (task.job, task.reached_maps);
    let stripe = stripe(task);
    let spans: Vec<_> = share(task, tools)
        .into_iter()
        .filter_map(|span| {
            let target = *tools.files.targets.get(span.file as usize)?;
            Some((&**reached_maps.get(target as usize)?, span))
        })
        .collect();
    let most = job.sizes().map(|block| block.max_bytes).max().unwrap_or(0);
    let unit = unit(job);
    let pieces = spans.into_iter().flat_map(move |(map, span)| {
        // The rest of a region below one unit is never written.
        let length = span.length - span.length % unit;
        let block = stripe.map_or(length, |stripe| stripe.block_bytes).max(1);
        (0..length.div_ceil(block)).map(move |nth| {
            let at = span.offset + nth * stripe.map_or(0, |stripe| stripe.stride_bytes);
            (map, span.file, at..at + block)
        })
    });
    Runs::new(kind, most, pieces)
}

/// How the worker's blocks lie apart.
fn stripe(task: &Task<'_>) -> Option<Stripe> {
    task.plan.regions.first().and_then(|region| region.stripe)
}

/// The part of each region that this worker verifies: threads that work on the same bytes share
/// them out, so that each byte is verified once.
fn share(task: &Task<'_>, tools: &Tools) -> Vec<RegionSpan> {
    let job = task.job;
    let alignment = unit(job).max(8);
    let same = |region: &gpuio_record::Region| {
        if job.feed.is_some() || job.ranges.is_some() {
            // Each of its files, or ranges, is one thread's.
            return vec![task.plan.thread];
        }
        let all = job.workers.iter();
        all.filter(|worker| worker.regions.contains(region)).map(|w| w.thread).collect::<Vec<_>>()
    };
    let regions = task.plan.regions.iter().filter_map(|region| {
        let file = tools.files.index_of(region.target)?;
        let sharers = same(region);
        let place = sharers.iter().position(|&thread| thread == task.plan.thread)? as u64;
        let each = (region.length / sharers.len() as u64).next_multiple_of(alignment);
        let begin = (place * each).min(region.length);
        let length = each.min(region.length - begin);
        Some(RegionSpan { file, offset: region.offset + begin, length })
    });
    regions.filter(|region| region.length >= unit(job)).collect()
}

fn sweep(
    task: &Task<'_>,
    tools: &mut Tools,
    op: Op,
    findings: &mut Findings,
) -> Result<(), RunError> {
    let job = task.job;
    let regions = share(task, tools);
    if regions.is_empty() {
        return Ok(());
    }
    let largest = job.sizes().map(|block| block.max_bytes).max().unwrap_or(0);
    let shortest = regions.iter().map(|region| region.length).min().unwrap_or(0);
    let unit = unit(job);
    let ranges = job.ranges.is_some();
    let size = if ranges { largest } else { largest.min(shortest - shortest % unit) };
    let sample = op == Op::Read && job.verify_ns.is_some();
    if sample {
        findings.of_bytes = regions.iter().map(|region| region.length).sum();
    }
    let order = match sample {
        true => Order::Random { distribution: Distribution::Uniform, coverage: true },
        false => Order::Sequential,
    };
    let config = SequenceConfig {
        order,
        follow: None,
        write_blocks: Vec::new(),
        blocks: vec![BlockShare { min_bytes: size, max_bytes: size, step_bytes: 0, percent: 100 }],
        align_bytes: unit,
        skew_bytes: 0,
        unit_bytes: unit,
        read_percent: if op == Op::Read { 100 } else { 0 },
        regions,
        stripe: stripe(task),
        in_turn: false,
        short_regions: ranges,
        seed: 0,
        passes: Some(1),
    };
    let mut blocks = BlockSequence::new(&config).map_err(|error| RunError::InvalidPlan {
        job: job.name.clone(),
        what: format!("verification: {error}"),
    })?;
    drive(task, tools, &mut || blocks.next(), findings)
}

/// Takes every block through the path, checking reads as they complete.
fn drive(
    task: &Task<'_>,
    tools: &mut Tools,
    next: &mut dyn FnMut() -> Option<Block>,
    findings: &mut Findings,
) -> Result<(), RunError> {
    let mut free: Vec<u32> = (0..task.job.depth).collect();
    let mut completed: Vec<Completion> = Vec::new();
    let mut pending: Option<Block> = None;
    let mut ended = false;
    let limit = task.job.verify_ns.filter(|_| findings.of_bytes > 0);
    let deadline = limit.map(|limit| task.gate.clock.now().saturating_add(limit));
    while !ended || tools.path.in_flight() > 0 {
        if task.gate.stop.load(Ordering::Relaxed) {
            ended = true;
            findings.complete = false;
        }
        if !ended && deadline.is_some_and(|deadline| task.gate.clock.now() >= deadline) {
            ended = true;
            findings.sampled = true;
        }
        while !ended && let Some(&slot) = free.last() {
            let Some(block) = pending.take().or_else(&mut *next) else {
                ended = true;
                break;
            };
            if !start(task, tools, slot, &block)? {
                pending = Some(block);
                break;
            }
            free.pop();
        }
        let advanced = tools.path.advance(&task.gate.clock, &mut completed, true);
        advanced.map_err(|source| path_error(task, source))?;
        for one in completed.drain(..) {
            free.push(one.request.slot);
            if let Err(fault) = one.result {
                let target = tools.files.targets[one.request.file as usize];
                findings.failures.add(target, &one.request, fault);
            } else if one.request.op == Op::Read {
                check(task, tools, &one.request, findings)?;
            } else {
                findings.filled += u64::from(one.request.len);
            }
        }
    }
    Ok(())
}

fn start(task: &Task<'_>, tools: &mut Tools, slot: u32, block: &Block) -> Result<bool, RunError> {
    if block.op == Op::Write {
        let key = key(task.job, tools.files.targets[block.file as usize]);
        let generated = tools.path.generate(PatternBlock::new(slot, key, block.offset, block.len));
        generated.map_err(|source| path_error(task, source))?;
    }
    let now = task.gate.clock.now();
    let request = Request {
        op: block.op,
        file: block.file,
        offset: block.offset,
        len: block.len,
        slot,
        place: Place::Slot,
        started: now,
        due: now,
    };
    Ok(matches!(tools.path.start(&task.gate.clock, request), Start::Taken))
}

fn check(
    task: &Task<'_>,
    tools: &mut Tools,
    request: &Request,
    findings: &mut Findings,
) -> Result<(), RunError> {
    let completed =
        Block { op: request.op, file: request.file, offset: request.offset, len: request.len };
    block(task, tools, request.slot, &completed, findings, false)
}

fn path_error(task: &Task<'_>, source: gpuio_io::path::PathError) -> RunError {
    let (job, thread) = (task.job.name.clone(), task.plan.thread);
    RunError::Path { job, thread, source: Box::new(source) }
}

#[cfg(test)]
mod tests;
