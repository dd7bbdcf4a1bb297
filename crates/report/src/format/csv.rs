//! One row per job and direction.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gpuio_base::document::{csv_of, unique};
use gpuio_base::stat::Percentile;
use gpuio_record::metric::{self, CsvColumn};
use gpuio_record::{
    ComputationPlan, DirectMode, HostJobExpected, JobPlan, Metric, RankGroup, RankHost, RankJob,
    RankJobRates, RankRow, Record, Side, TierResult,
};
use serde::Serialize;

use crate::Recheck;
use crate::doubts::{self, Held};
use crate::workload::{actual_engine, block_bounds, rw, sides};

/// A column. Its name never changes; new columns are added at the end.
#[derive(Debug, Clone)]
pub struct Column {
    /// Name in the header line; a unit is its last word.
    pub name: Cow<'static, str>,
    /// Its description, for the glossary.
    pub meaning: Cow<'static, str>,
    cell: Cell,
}

#[derive(Debug, Clone, Copy)]
enum Cell {
    Own(fn(&Side<'_>) -> String),
    Metric(Metric),
}

impl Column {
    pub(crate) fn cell(&self, side: &Side<'_>) -> String {
        match self.cell {
            Cell::Own(cell) => cell(side),
            Cell::Metric(metric) => maybe(metric.of(side)),
        }
    }
}

/// All columns in order, where these percentiles were asked for: the metrics with a number at their
/// places, the columns of `OWN` at the others, further percentiles at the end.
pub fn columns(asked: &[Percentile]) -> Vec<Column> {
    let mut placed = BTreeMap::new();
    let mut more = Vec::new();
    for metric in metric::all(asked) {
        let Some(CsvColumn { place, name, meaning }) = metric.csv() else { continue };
        let column =
            Column { name: name.into(), meaning: meaning.into(), cell: Cell::Metric(metric) };
        match place {
            Some(place) => drop(placed.insert(place, column)),
            None => more.push(column),
        }
    }
    let mut own = OWN.iter().cloned();
    let mut all = Vec::new();
    for place in 1.. {
        match placed.remove(&place).or_else(|| own.next()) {
            Some(column) => all.push(column),
            None => break,
        }
    }
    all.extend(more);
    all
}

fn group<'a>(side: &Side<'a>) -> Option<&'a RankGroup> {
    let groups = &side.record.ranks.as_ref()?.groups;
    groups.iter().find(|group| group.group == side.plan.group)
}

/// The rates of the job on all ranks.
fn rates<'a>(side: &Side<'a>) -> Option<&'a RankJobRates> {
    group(side)?.jobs.iter().find(|rates| rates.job == side.plan.name)
}

/// The counts of the job's tier in host memory.
fn tier(side: &Side<'_>) -> Option<TierResult> {
    side.result.feed.as_ref()?.tier
}

/// The record as CSV: a header line, then a row for each job and each requested direction, in plan
/// order, reads first. The last column is `doubt`: why the figures are not to be trusted.
///
/// Fields are quoted as in RFC 4180, and no name is a formula or holds a control character
/// ([`gpuio_base::units::csv_text`]). Lines end in a line feed only, so that awk and cut see no
/// carriage return. An empty field means that there is no figure. Numbers are not rounded.
pub fn render(record: &Record, recheck: &Recheck) -> String {
    let columns = columns(&record.percentiles());
    let heads = columns.iter().map(|column| column.name.to_string());
    let heads: Vec<String> = heads.chain([DOUBT.to_owned()]).collect();
    let line = |side: Side<'_>| {
        let cells = columns.iter().map(|column| column.cell(&side));
        let doubt = doubts::in_words(&Held { recheck, lacks: &[] }, record, side.plan, side.result);
        cells.chain([doubt]).collect()
    };
    csv_of([heads].into_iter().chain(sides(record).map(line)))
}

/// The column of doubts about the figures of a row.
pub(crate) const DOUBT: &str = "doubt";

/// The same with a row for each job of each host with an expectation, then for each job of each
/// rank. Such a row has what the record has of a host or rank, reads and writes together; the other
/// fields are empty, of a host that of the rank too. Without ranks it is [`render`].
pub fn render_per_rank(record: &Record, recheck: &Recheck) -> String {
    let columns = &columns(&record.percentiles());
    let plan = |job: &str| record.plan.jobs.iter().find(|plan| plan.name == *job);
    let of_hosts = record.ranks.iter().flat_map(|all| &all.hosts).flat_map(|host| {
        host.expected.iter().map(move |job| -> Vec<String> {
            let cell =
                |column: &Column| host_cell(&column.name, record, plan(&job.job), (host, job));
            columns.iter().map(cell).chain([String::new()]).collect()
        })
    });
    let of_ranks = record.ranks.iter().flat_map(|all| &all.rows).flat_map(|row| {
        row.jobs.iter().map(move |job| -> Vec<String> {
            let cell = |column: &Column| rank_cell(column, record, plan(&job.job), (row, job));
            columns.iter().map(cell).chain([String::new()]).collect()
        })
    });
    render(record, recheck) + &csv_of(of_hosts.chain(of_ranks))
}

/// The field of a host in the column of this name.
fn host_cell(
    column: &str,
    record: &Record,
    plan: Option<&JobPlan>,
    (host, job): (&RankHost, &HostJobExpected),
) -> String {
    match column {
        "job" => job.job.clone(),
        "throughput_bytes_per_s" => job.measured_bytes_per_s.to_string(),
        "expected_bytes_per_s" => maybe(job.expected.bytes_per_s),
        "expected_percent" => maybe(job.percent),
        "expected_bottleneck" => maybe(job.expected.bottleneck.as_ref()),
        "expected_unknown" => maybe(job.expected.unknown.as_ref()),
        "verdict" => host.verdicts.join("; "),
        "ranks" => host.ranks.len().to_string(),
        "host" => host.name.clone(),
        _ => part_cell(column, record, plan),
    }
}

/// The field of a rank in the column of this name.
fn rank_cell(
    column: &Column,
    record: &Record,
    plan: Option<&JobPlan>,
    (row, job): (&RankRow, &RankJob),
) -> String {
    if let Cell::Metric(metric) = column.cell {
        return maybe(metric.of_rank(job));
    }
    match &*column.name {
        "job" => job.job.clone(),
        "ended" => maybe(row.ended.map(word)),
        "gpus" => {
            let number = |gpu: &String| gpu.split(' ').next().unwrap_or_default().to_owned();
            row.gpus.iter().map(number).collect::<Vec<_>>().join(" ")
        }
        "cpu_cores_busy" => job.cores_busy.to_string(),
        "cpu_us_per_mib" => maybe(job.us_per_mib),
        "verdict" => maybe(job.verdict.as_ref()),
        "measured_begin_ns" => maybe(job.measured.map(|span| span.begin_ns)),
        "measured_end_ns" => maybe(job.measured.map(|span| span.end_ns)),
        "last_done_ns" => maybe(job.measured.map(|span| span.length_ns())),
        "rank" => row.rank.to_string(),
        "host" => row.host.clone(),
        "nics" => row.nics.join(" "),
        name => part_cell(name, record, plan),
    }
}

/// The field that all hosts and ranks have in common.
fn part_cell(column: &str, record: &Record, plan: Option<&JobPlan>) -> String {
    match column {
        "group" => maybe(plan.map(|plan| plan.group)),
        "path" => maybe(plan.map(|plan| &plan.path.choice.actual)),
        "gpu_software" => maybe(plan.map(|plan| u8::from(plan.uses_software_gpu()))),
        "rw" => maybe(plan.map(rw)),
        "direction" => match plan.map(JobPlan::directions) {
            Some([only]) => only.name().to_owned(),
            _ => "both".to_owned(),
        },
        "block_min_bytes" => maybe(plan.map(|plan| block_bounds(plan.sizes()).0)),
        "block_max_bytes" => maybe(plan.map(|plan| block_bounds(plan.sizes()).1)),
        "threads" => maybe(plan.map(|plan| plan.threads)),
        "depth" => maybe(plan.map(|plan| plan.depth)),
        "size_bytes" => maybe(plan.map(|plan| plan.size_bytes)),
        "started_at" => record.started_at.clone(),
        "tool_version" => record.tool.version.clone(),
        "run_ended" => word(record.ended),
        _ => String::new(),
    }
}

fn maybe<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A value's name in JSON.
pub(crate) fn word(value: impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|word| Some(word.as_str()?.to_owned()))
        .unwrap_or_default()
}

/// Names of the warnings about this job or about all jobs, as in the record.
fn warnings(line: &Side<'_>) -> String {
    let about = |job: &Option<String>| job.as_ref().is_none_or(|job| *job == line.plan.name);
    let warnings = line.record.warnings.iter().filter(|warning| about(&warning.job));
    unique(warnings.map(|warning| warning.kind.id())).join(" ")
}

/// `NAME, MEANING, CELL;` for each column.
macro_rules! columns {
    ($($name:literal, $meaning:literal, $cell:expr;)*) => {
        &[$(Column {
            name: Cow::Borrowed($name),
            meaning: Cow::Borrowed($meaning),
            cell: Cell::Own($cell),
        }),*]
    };
}

/// The columns that are no metrics, in order.
const OWN: &[Column] = columns! {
    "job", "name of the job", |l| l.plan.name.clone();
    "group", "group of jobs that ran together, from 0", |l| l.plan.group.to_string();
    "path", "path that ran: `host`, `staged`, `cached`, `managed`, `gather`, `mapped`, \
     `resident`, `initiated`, `routed`, `fan-out`, `library` or another path of gpuio's library \
     core, `gds` or another cuFile path",
        |l| l.plan.path.choice.actual.clone();
    "gpu_software", "1 if the GPUs were gpuio's software GPU: not a hardware result",
        |l| u8::from(l.plan.uses_software_gpu()).to_string();
    "engine", "engine that ran; several joined by `+`", |l| actual_engine(l.plan, l.result);
    "rw", "load of the job, as in the `rw` key", |l| rw(l.plan).to_owned();
    "direction", "`read` or `write`: the direction of this row", |l| l.direction.name().to_owned();
    "ended", "`complete`, `interrupted` or `failed`", |l| word(l.result.ended);
    "block_min_bytes", "smallest block", |l| block_bounds(l.plan.sizes()).0.to_string();
    "block_max_bytes", "largest block", |l| block_bounds(l.plan.sizes()).1.to_string();
    "threads", "threads of the job", |l| l.plan.threads.to_string();
    "depth", "I/Os in flight per thread", |l| l.plan.depth.to_string();
    "direct", "1 if the files were open with O_DIRECT, 0 if not, as read back; not the verdict",
        |l| u8::from(l.result.direct_actual == DirectMode::Direct).to_string();
    "gpus", "GPU numbers, separated by blanks",
        |l| l.plan.gpus.iter().map(|gpu| gpu.index.to_string()).collect::<Vec<_>>().join(" ");
    "size_bytes", "size of each thread's region", |l| l.plan.size_bytes.to_string();
    "first_done_ns", "time from the end of the ramp until the first worker finished",
        |l| l.result.first_done_ns.to_string();
    "last_done_ns", "time from the end of the ramp until the last I/O ended, failed ones \
     included: the time of all rates",
        |l| l.result.last_done_ns.to_string();
    "cpu_user_s", "CPU time in user mode, the whole job (both directions)",
        |l| l.result.cpu.user_s.to_string();
    "cpu_system_s", "CPU time in the kernel, the whole job", |l| l.result.cpu.system_s.to_string();
    "cpu_cores_busy", "average number of CPUs used by the job",
        |l| l.result.cpu.cores_busy.to_string();
    "cpu_us_per_mib", "microseconds of CPU per MiB moved, both directions",
        |l| maybe(l.result.cpu.us_per_mib);
    "cpu_scope", "whose CPU time: `all_threads` of the job; the `process`, while only this job \
     ran; or the `threads` that are known, a lower bound because others add to it",
        |l| word(l.result.cpu.scope);
    "verify", "`off`, `pass`, `rewrite` or `inline`", |l| word(l.plan.verify);
    "verified_bytes", "bytes checked during the measured time and after it",
        |l| maybe(l.result.verify.as_ref().map(|found| found.timed_bytes + found.pass_bytes));
    "verify_bad_blocks",
        "blocks with wrong data, each as often as it was read; empty if not verified",
        |l| maybe(l.result.verify.as_ref().map(|found| found.bad_blocks));
    "verify_complete", "1 if verification ran to its end",
        |l| maybe(l.result.verify.as_ref().map(|found| u8::from(found.complete)));
    "between_ios_ns", "time that workers spent generating or checking data between I/Os, summed",
        |l| l.result.between_ios_ns.to_string();
    "cached_before", "share (0 to 1) of the files in the page cache before",
        |l| maybe(l.result.cache.resident_before);
    "cached_after", "the same afterwards", |l| maybe(l.result.cache.resident_after);
    "started_at", "time at the start of the run, RFC 3339", |l| l.record.started_at.clone();
    "tool_version", "version of gpuio", |l| l.record.tool.version.clone();
    "warnings", "names of the warnings about the job or the run", warnings;
    "verdict", "data path of the bytes, by the evidence (docs/proof.md)",
        |l| maybe(l.result.proof.as_ref().map(|proof| &proof.verdict.words));
    "verdict_sentence", "the evidence behind the verdict",
        |l| maybe(l.result.proof.as_ref().map(|proof| &proof.sentence));
    "ceiling", "lowest ceiling of the row; empty if none was measured",
        |l| maybe(l.figures().of_ceiling.as_ref().map(|of| &of.ceiling));
    "run_ended", "the run as a whole: as `ended`, or `unfinished` (the process crashed)",
        |l| word(l.record.ended);
    "expected_bottleneck", "part that saturates first, with its figure",
        |l| maybe(l.expected().and_then(|one| one.expected.bottleneck.as_ref()));
    "expected_unknown", "why there is no expected value",
        |l| maybe(l.expected().and_then(|one| one.expected.unknown.as_ref()));
    "measured_begin_ns", "end of the job's ramp on the run's clock",
        |l| maybe(l.result.measured.map(|span| span.begin_ns));
    "measured_end_ns", "completion of its last I/O, on the same clock",
        |l| maybe(l.result.measured.map(|span| span.end_ns));
    "never_started_ios", "I/Os of the job that were due and never started, and are in no \
     latency; empty without a rate",
        |l| maybe(l.result.never_started.map(|never| never.ios));
    "beside", "computation that kept the GPUs busy, as in the `beside` key; empty if none",
        |l| maybe(l.plan.beside.as_ref().map(ComputationPlan::key));
    "beside_compute_ratio", "share of its speed that the computation kept, on the GPU that lost \
     the most; empty if unknown",
        |l| maybe(l.result.beside.as_ref().and_then(|found| found.lowest()?.ratio));
    "beside_io_ratio", "share of its throughput that the job kept, both directions",
        |l| maybe(l.result.beside.as_ref().and_then(|found| found.io_ratio));
    "beside_alone_bytes_per_s", "the row's throughput without the computation",
        |l| maybe(l.alone().map(|side| side.bytes_per_s));
    "feed_scale", "share of a training feed's files that was used; empty for others",
        |l| maybe(l.plan.feed.as_ref().map(|feed| feed.scale));
    "tier_hits", "samples that a feed's tier in CPU memory had; empty without one",
        |l| maybe(tier(l).map(|tier| tier.hits));
    "tier_misses", "samples that it did not have, read from storage",
        |l| maybe(tier(l).map(|tier| tier.misses));
    "tier_evictions", "samples that left it for others",
        |l| maybe(tier(l).map(|tier| tier.evictions));
    "tier_bytes", "bytes that came from it, in no count of what was read",
        |l| maybe(tier(l).map(|tier| tier.memory_bytes));
    "part_scale", "share of each thread's bytes that was used; empty for whole loads",
        |l| maybe(l.plan.part.map(|part| part.scale));
    "part_full_threads", "threads of the load that the job is a part of",
        |l| maybe(l.plan.part.map(|part| part.full_threads));
    "ranks", "processes of a run on several ranks; empty for one process",
        |l| maybe(l.record.ranks.as_ref().map(|all| all.ranks));
    "hosts", "their hosts", |l| maybe(l.record.ranks.as_ref().map(|all| all.hosts.len()));
    "until_first_bytes_per_s", "bytes per second of all ranks, both directions, until the first \
     rank was done",
        |l| maybe(rates(l).map(|rates| rates.until_first.bytes_per_s));
    "while_all_bytes_per_s", "the same while all ranks ran; empty where there was no such time",
        |l| maybe(rates(l).and_then(|rates| rates.while_all).map(|rate| rate.bytes_per_s));
    "start_skew_ns", "time from the first rank's start to the last one's, by compared clocks",
        |l| maybe(group(l).map(|group| group.start_skew_ns));
    "rank", "the rank in rows of single ranks (`--per-rank`); empty for all", |_| String::new();
    "host", "its host, also in rows of single hosts (`--per-rank`), which have no rank; empty \
     for all",
        |_| String::new();
    "nics", "network cards that lead to the servers of a rank's files", |_| String::new();
    "stonewall_ns", "time from the end of the ramp until the last thread came to the stonewall; \
     empty where the load did not go on after it",
        |l| maybe(l.result.stonewall.map(|wall| wall.time_ns));
    "stonewall_bytes_per_s", "bytes per second until then, both directions",
        |l| maybe(l.result.stonewall.map(|wall| wall.bytes_per_s));
};
