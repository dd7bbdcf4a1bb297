//! The results of one job on all ranks, added up.

use std::collections::BTreeMap;

use crate::{
    CacheReading, CpuCost, CpuScope, DirectMode, DirectionResult, DirectionTotal, EndedHow,
    HolesReading, IoFailure, JobResult, Latency, MappedResult, Proof, RankGroup, Route, Source,
    Stonewall, StorageReading, TimeSpan, Verdict, VerifyOutcome, WrittenAs,
};
use gpuio_base::stat::Histogram;
use gpuio_base::units::per_second;

use crate::merge::beside::CostSum;
use crate::merge::series::SeriesSum;
use crate::merge::{RankFacts, rank_list, worse};

/// Failures and mismatches that are kept.
const KEPT: usize = 64;

#[derive(Debug)]
pub(crate) struct JobSum {
    /// Starts as the result of rank 0 with nothing counted.
    result: JobResult,
    read: DirectionSum,
    write: DirectionSum,
    series: SeriesSum,
    beside: CostSum,
    /// The stonewalls of ranks that came to it.
    walls: Vec<(u32, Stonewall)>,
    /// Microseconds of CPU, where each rank's cost is known.
    cpu_us: Option<f64>,
    ranks: Vec<u32>,
    verdicts: Vec<(Proof, Vec<u32>)>,
    /// Devices by host, whose counters are of all ranks there.
    devices: BTreeMap<(String, String), StorageReading>,
    many_hosts: bool,
}

/// Reads or writes.
#[derive(Debug, Default)]
pub(crate) struct DirectionSum {
    ios: u64,
    bytes: u64,
    failed: u64,
    /// Queue, file, GPU, total.
    legs: [Histogram; 4],
}

impl DirectionSum {
    pub(crate) fn add(&mut self, one: &DirectionResult) {
        self.ios += one.ios;
        self.bytes += one.bytes;
        self.failed += one.failed;
        let Some(Latency { queue, file, gpu, total }) = &one.latency else { return };
        for (sum, leg) in self.legs.iter_mut().zip([queue, file, gpu]) {
            if let Some(leg) = leg {
                sum.merge(&Histogram::from_summary(leg));
            }
        }
        self.legs[3].merge(&Histogram::from_summary(total));
    }

    fn latency(&self) -> Option<Latency> {
        let [queue, file, gpu, total] = &self.legs;
        total.summary().map(|total| Latency {
            queue: queue.summary(),
            file: file.summary(),
            gpu: gpu.summary(),
            total,
        })
    }

    pub(crate) fn finish(&self, time_ns: u64) -> DirectionResult {
        DirectionResult {
            ios: self.ios,
            bytes: self.bytes,
            failed: self.failed,
            bytes_per_s: per_second(self.bytes, time_ns),
            iops: per_second(self.ios, time_ns),
            latency: self.latency(),
            of_ceiling: None,
        }
    }
}

/// Reads or writes of several jobs; rates where there is only one.
pub(crate) fn direction_total<'a>(
    parts: impl Iterator<Item = &'a DirectionResult> + Clone,
    alone: bool,
) -> DirectionTotal {
    let mut sum = DirectionSum::default();
    parts.clone().for_each(|one| sum.add(one));
    let only = parts.into_iter().next().filter(|_| alone);
    DirectionTotal {
        ios: sum.ios,
        bytes: sum.bytes,
        failed: sum.failed,
        bytes_per_s: only.map(|one| one.bytes_per_s),
        iops: only.map(|one| one.iops),
        latency: sum.latency(),
    }
}

/// Adds CPU time of processes that ran at the same time. The cost per byte is not added.
pub(crate) fn add_cpu(sum: &mut CpuCost, one: &CpuCost) {
    sum.user_s += one.user_s;
    sum.system_s += one.system_s;
    sum.cores_busy += one.cores_busy;
    sum.voluntary_switches += one.voluntary_switches;
    sum.involuntary_switches += one.involuntary_switches;
    // The weaker of different scopes holds.
    sum.scope = match (sum.scope, one.scope) {
        (CpuScope::Threads, _) | (_, CpuScope::Threads) => CpuScope::Threads,
        (CpuScope::Process, _) | (_, CpuScope::Process) => CpuScope::Process,
        _ => CpuScope::AllThreads,
    };
}

impl JobSum {
    pub(crate) fn new(first: &JobResult, many_hosts: bool) -> JobSum {
        let mut result = first.clone();
        result.cpu = CpuCost { scope: CpuScope::AllThreads, ..CpuCost::default() };
        result.ended = EndedHow::Complete;
        result.direct_actual = DirectMode::Direct;
        (result.failed, result.between_ios_ns) = (0, 0);
        (result.never_started, result.verify, result.via) = (None, None, None);
        (result.library, result.mapped, result.measured) = (None, None, None);
        (result.fan_out, result.flushes, result.initiated) = (None, None, None);
        (result.proof, result.steady, result.beside) = (None, None, None);
        (result.stonewall, result.drawn_sizes) = (None, None);
        result.file_leg = crate::FileLegCounters::default();
        result.cache = CacheReading::default();
        result.engine.clear();
        result.failures.clear();
        result.workers.clear();
        result.gpus.clear();
        let series = SeriesSum::like(&result.series);
        result.series.clear();
        JobSum {
            result,
            read: DirectionSum::default(),
            write: DirectionSum::default(),
            series,
            beside: CostSum::default(),
            walls: Vec::new(),
            cpu_us: Some(0.0),
            ranks: Vec::new(),
            verdicts: Vec::new(),
            devices: BTreeMap::new(),
            many_hosts,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.result.name
    }

    pub(crate) fn add(&mut self, rank: u32, facts: &RankFacts, job: &JobResult) {
        let sum = &mut self.result;
        let first = self.ranks.is_empty();
        self.read.add(&job.read);
        self.write.add(&job.write);
        self.series.add(&job.series);
        sum.ended = worse(sum.ended, job.ended);
        sum.failed += job.failed;
        sum.between_ios_ns += job.between_ios_ns;
        if let Some(one) = &job.flushes {
            sum.flushes.get_or_insert_default().add(one);
        }
        if job.direct_actual == DirectMode::Buffered {
            sum.direct_actual = DirectMode::Buffered;
        }
        if let Some(one) = job.never_started {
            let all = sum.never_started.get_or_insert_default();
            all.ios += one.ios;
            all.longest_wait_ns = all.longest_wait_ns.max(one.longest_wait_ns);
        }
        if let Some(one) = job.drawn_sizes {
            *sum.drawn_sizes.get_or_insert_default() += one;
        }
        add_cpu(&mut sum.cpu, &job.cpu);
        // Unknown on one rank, it is unknown of all.
        if sum.others_cpu_unknown.is_none() {
            sum.others_cpu_unknown.clone_from(&job.others_cpu_unknown);
        }
        self.cpu_us = add_cpu_us(self.cpu_us, job);
        add_engines(sum, job);
        sum.file_leg += job.file_leg;
        add_routes(sum, job);
        let of = format!("rank {rank} ({})", facts.host);
        add_verify(&mut sum.verify, job.verify.as_ref(), &of);
        // The decision of rank 0 is that of all.
        if rank == 0 {
            sum.steady = job.steady;
        }
        self.walls.extend(job.stonewall.map(|wall| (rank, wall)));
        if let Some(cost) = &job.beside {
            self.beside.add(rank, cost);
        }
        add_failures(&mut sum.failures, &job.failures, &of);
        add_cache(&mut sum.cache, &job.cache, first);
        for device in &job.cache.storage {
            add_device(&mut self.devices, &facts.host, device);
        }
        if let Some(proof) = &job.proof {
            let same = |known: &&mut (Proof, Vec<u32>)| known.0.verdict == proof.verdict;
            match self.verdicts.iter_mut().find(same) {
                Some((_, ranks)) => ranks.push(rank),
                None => self.verdicts.push((proof.clone(), vec![rank])),
            }
        }
        let threads = u32::try_from(job.workers.len()).unwrap_or(u32::MAX);
        sum.workers.extend(job.workers.iter().map(|worker| {
            let thread = rank.saturating_mul(threads).saturating_add(worker.thread);
            crate::WorkerResult { thread, ..worker.clone() }
        }));
        self.ranks.push(rank);
    }

    pub(crate) fn finish(self, facts: &[RankFacts], groups: &[RankGroup]) -> JobResult {
        let mut result = self.result;
        let bytes = self.read.bytes + self.write.bytes;
        // All begin together within the skew; without common times the longest is the best known.
        let longest = result.workers.iter().map(|worker| worker.done_ns).max().unwrap_or(0);
        let spans: Vec<TimeSpan> = self
            .ranks
            .iter()
            .filter_map(|rank| facts.get(*rank as usize)?.times.get(&result.name).copied())
            .collect();
        let whole = spans.len() == self.ranks.len();
        let begin = spans.iter().map(|span| span.begin_ns).min().filter(|_| whole);
        let end = spans.iter().map(|span| span.end_ns).max();
        let measured = begin.zip(end).map(|(begin_ns, end_ns)| TimeSpan { begin_ns, end_ns });
        let time_ns = measured.map_or(longest, |span| span.length_ns());
        if self.walls.len() == self.ranks.len() {
            result.stonewall = stonewall(&self.walls, &result.name, facts);
        }
        let rates = groups.iter().flat_map(|group| &group.jobs).find(|job| job.job == result.name);
        result.first_done_ns = rates.map_or(result.first_done_ns, |job| job.until_first.time_ns);
        result.first_done_bytes = rates.map_or(bytes, |job| job.until_first.bytes);
        result.last_done_ns = time_ns;
        result.measured = measured;
        result.read = self.read.finish(time_ns);
        result.write = self.write.finish(time_ns);
        if let Some(fan_out) = &mut result.fan_out {
            fan_out.placed_bytes_per_s = per_second(fan_out.placed_bytes, time_ns);
        }
        let mib = bytes as f64 / f64::from(1 << 20);
        result.cpu.us_per_mib = self.cpu_us.filter(|_| bytes > 0).map(|us| us / mib);
        result.series = self.series.finish();
        result.beside = self.beside.finish();
        result.proof = proof(self.verdicts);
        let named = |((host, name), mut reading): ((String, String), StorageReading)| {
            reading.device = if self.many_hosts { format!("{host}:{name}") } else { name };
            reading
        };
        result.cache.storage = self.devices.into_iter().map(named).collect();
        result
    }
}

/// The bytes that all ranks had moved at the stonewall: from the first begin until the last came to
/// it.
fn stonewall(walls: &[(u32, Stonewall)], job: &str, facts: &[RankFacts]) -> Option<Stonewall> {
    let begin = |rank: u32| facts.get(rank as usize)?.times.get(job).map(|span| span.begin_ns);
    let first = walls.iter().map(|(rank, _)| begin(*rank)).min()??;
    let late = |rank: u32| begin(rank).map_or(0, |at| at - first);
    let time_ns = walls.iter().map(|(rank, wall)| late(*rank) + wall.time_ns).max()?;
    let bytes = walls.iter().map(|(_, wall)| wall.bytes).sum();
    let bytes_per_thread = walls.iter().map(|(_, wall)| wall.bytes_per_thread).max()?;
    Some(Stonewall { time_ns, bytes, bytes_per_s: per_second(bytes, time_ns), bytes_per_thread })
}

fn add_cpu_us(sum: Option<f64>, job: &JobResult) -> Option<f64> {
    let bytes = job.read.bytes + job.write.bytes;
    let mib = bytes as f64 / f64::from(1 << 20);
    match job.cpu.us_per_mib {
        Some(cost) => Some(sum? + cost * mib),
        None if bytes == 0 => sum,
        None => None,
    }
}

fn add_engines(sum: &mut JobResult, job: &JobResult) {
    for engine in &job.engine {
        let same = |known: &&mut crate::ActualEngine| {
            known.actual == engine.actual && known.steps_down == engine.steps_down
        };
        match sum.engine.iter_mut().find(same) {
            Some(known) => known.workers += engine.workers,
            None => sum.engine.push(engine.clone()),
        }
    }
}

fn add_routes(sum: &mut JobResult, job: &JobResult) {
    if let Some(one) = &job.via {
        let all = sum.via.get_or_insert_with(|| crate::ViaResult {
            gpu: one.gpu,
            ..crate::ViaResult::default()
        });
        *all += one;
    }
    if let Some(one) = job.library {
        *sum.library.get_or_insert_default() += one;
    }
    if let Some(one) = &job.fan_out {
        let all = sum.fan_out.get_or_insert_default();
        all.gpus = all.gpus.max(one.gpus);
        all.placed_bytes += one.placed_bytes;
        all.from_host_bytes += one.from_host_bytes;
        all.between_gpus_bytes += one.between_gpus_bytes;
        all.through_host |= one.through_host;
    }
    if let Some(one) = &job.initiated {
        let all = sum.initiated.get_or_insert_default();
        all.entries += one.entries;
        all.commands += one.commands;
        all.rings += one.rings;
    }
    if let Some(one) = &job.mapped {
        add_mapped(sum.mapped.get_or_insert_default(), one);
    }
}

/// Bytes are added; times are the longest, since ranks map at the same time.
fn add_mapped(sum: &mut MappedResult, one: &MappedResult) {
    sum.files += one.files;
    sum.mapped_bytes += one.mapped_bytes;
    sum.pinned_bytes += one.pinned_bytes;
    sum.map_ns = sum.map_ns.max(one.map_ns);
    sum.register_ns = sum.register_ns.max(one.register_ns);
    sum.unregister_ns = sum.unregister_ns.max(one.unregister_ns);
    if sum.unregister_failed.is_none() {
        sum.unregister_failed.clone_from(&one.unregister_failed);
    }
    sum.cpu_ns += one.cpu_ns;
    sum.by_kernel_bytes += one.by_kernel_bytes;
    sum.by_copy_bytes += one.by_copy_bytes;
    sum.written_by_kernel_bytes += one.written_by_kernel_bytes;
    sum.written_by_copy_bytes += one.written_by_copy_bytes;
    if let Some(lost) = one.lost_bytes {
        *sum.lost_bytes.get_or_insert(0) += lost;
    }
    sum.break_even_unknown = Some("the run was one of several ranks".to_owned());
}

pub(crate) fn add_verify(sum: &mut Option<VerifyOutcome>, one: Option<&VerifyOutcome>, of: &str) {
    let Some(one) = one else { return };
    let Some(sum) = sum else {
        let mut first = VerifyOutcome { failures: Vec::new(), ..one.clone() };
        add_failures(&mut first.failures, &one.failures, of);
        *sum = Some(first);
        return;
    };
    sum.timed_blocks += one.timed_blocks;
    sum.timed_bytes += one.timed_bytes;
    sum.sample_of_bytes = match (sum.sample_of_bytes, one.sample_of_bytes) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(sum.pass_bytes) + b.unwrap_or(one.pass_bytes)),
    };
    sum.pass_blocks += one.pass_blocks;
    sum.pass_bytes += one.pass_bytes;
    sum.filled_bytes += one.filled_bytes;
    if let Some(repeated) = one.repeated_bytes {
        *sum.repeated_bytes.get_or_insert(0) += repeated;
    }
    // Ranks may have met the same blocks.
    let both = sum.bad_blocks > 0 && one.bad_blocks > 0;
    let ((a, a_least), (b, b_least)) = (sum.different_bad(), one.different_bad());
    sum.bad_places = Some(a.max(b)).filter(|places| *places > 0);
    sum.bad_places_at_least = both || a_least || b_least;
    sum.bad_blocks += one.bad_blocks;
    sum.written_as = match (sum.written_as.take(), &one.written_as) {
        (Some(a), b) => {
            Some(WrittenAs { blocks: a.blocks + b.as_ref().map_or(0, |b| b.blocks), ..a })
        }
        (None, b) => b.clone(),
    };
    sum.bad_words += one.bad_words;
    sum.failed += one.failed;
    add_failures(&mut sum.failures, &one.failures, of);
    sum.injected += one.injected;
    sum.complete &= one.complete;
    let space = KEPT.saturating_sub(sum.mismatches.len());
    sum.mismatches.extend(one.mismatches.iter().take(space).cloned());
}

fn add_failures(sum: &mut Vec<IoFailure>, more: &[IoFailure], of: &str) {
    let space = KEPT.saturating_sub(sum.len());
    sum.extend(more.iter().take(space).map(|failure| {
        let what = format!("{of}: {}", failure.what);
        IoFailure { what, ..failure.clone() }
    }));
}

/// The bytes that the processes moved to and from storage, and in holes, are added. Shares of the
/// page cache are not: ranks may read the same files.
fn add_cache(sum: &mut CacheReading, one: &CacheReading, first: bool) {
    let add = |sum: Option<u64>, one: Option<u64>| match first {
        true => one,
        false => Some(sum?.saturating_add(one?)),
    };
    sum.process_read_bytes = add(sum.process_read_bytes, one.process_read_bytes);
    sum.process_write_bytes = add(sum.process_write_bytes, one.process_write_bytes);
    if first {
        sum.unknown = vec![
            "the share of the page cache is of each rank's own files: see the record of the rank"
                .to_owned(),
        ];
        sum.holes.clone_from(&one.holes);
        sum.content = one.content;
        return;
    }
    sum.content = sum.content.zip(one.content).map(|(mut all, one)| {
        all += one;
        all
    });
    sum.holes = match (sum.holes.take(), &one.holes) {
        (Some(all), Some(one)) => Some(HolesReading {
            range_bytes: all.range_bytes + one.range_bytes,
            hole_bytes: all.hole_bytes.zip(one.hole_bytes).map(|(a, b)| a + b),
            unwritten_bytes: all.unwritten_bytes.zip(one.unwritten_bytes).map(|(a, b)| a + b),
        }),
        _ => None,
    };
}

/// The counters of a device are of its host: of the ranks there, those that saw most stand.
fn add_device(
    devices: &mut BTreeMap<(String, String), StorageReading>,
    host: &str,
    one: &StorageReading,
) {
    let key = (host.to_owned(), one.device.clone());
    let most = devices.entry(key).or_insert_with(|| one.clone());
    most.reads = most.reads.max(one.reads);
    most.read_bytes = most.read_bytes.max(one.read_bytes);
    most.writes = most.writes.max(one.writes);
    most.write_bytes = most.write_bytes.max(one.write_bytes);
}

/// One verdict where all ranks agree; else mixed, with the ranks of each.
fn proof(mut verdicts: Vec<(Proof, Vec<u32>)>) -> Option<Proof> {
    let as_requested = verdicts.iter().all(|(proof, _)| proof.as_requested);
    for (_, ranks) in &mut verdicts {
        ranks.sort_unstable();
    }
    let (mut first, ranks) = verdicts.first().cloned()?;
    // Readings are of one process each.
    first.evidence.clear();
    first.as_requested = as_requested;
    if verdicts.len() == 1 {
        first.sentence = match ranks.len() {
            1 => first.sentence,
            many => format!("all {many} ranks agree: {}", first.sentence),
        };
        return Some(first);
    }
    let each: Vec<String> = verdicts
        .iter()
        .map(|(proof, ranks)| format!("{}: {}", rank_list(ranks), proof.verdict.words))
        .collect();
    first.sentence = format!("ranks took different paths: {}", each.join("; "));
    first.verdict =
        Verdict { words: "mixed".to_owned(), route: Route::Mixed, source: Source::Mixed };
    Some(first)
}
