//! One row per job and direction.

use gpuio_record::{
    ComputationPlan, CpuScope, DirectMode, DirectionResult, EndedHow, HostJobExpected, JobExpected,
    JobPlan, JobResult, RankGroup, RankHost, RankJob, RankJobRates, RankRow, Record, TierResult,
};
use gpuio_stat::Summary;

use crate::ceilings;
use crate::workload::{Direction, actual_engine, block_bounds, directions, jobs, rw};

/// A column. Its name never changes; new columns are added at the end.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name in the header line; a unit is its last word.
    pub name: &'static str,
    /// Its description, for the glossary.
    pub meaning: &'static str,
    cell: fn(&Line<'_>) -> String,
}

/// Data for one row.
#[derive(Clone, Copy)]
struct Line<'a> {
    record: &'a Record,
    plan: &'a JobPlan,
    job: &'a JobResult,
    direction: Direction,
}

impl<'a> Line<'a> {
    fn result(&self) -> &'a DirectionResult {
        self.direction.of(self.job)
    }

    /// The row for the run without the computation.
    fn alone(&self) -> Option<&'a DirectionResult> {
        let alone = &self.job.beside.as_ref()?.alone;
        Some(if self.direction.name() == "read" { &alone.read } else { &alone.write })
    }

    /// What the job's tier in host memory did.
    fn tier(&self) -> Option<TierResult> {
        self.job.feed.as_ref()?.tier
    }

    /// The group on all ranks.
    fn group(&self) -> Option<&'a RankGroup> {
        let groups = &self.record.ranks.as_ref()?.groups;
        groups.iter().find(|group| group.group == self.plan.group)
    }

    /// The rates of the job on all ranks.
    fn rates(&self) -> Option<&'a RankJobRates> {
        self.group()?.jobs.iter().find(|rates| rates.job == self.plan.name)
    }

    fn expected(&self) -> Option<&'a JobExpected> {
        crate::expected::find(self.record, &self.plan.name, self.direction)
    }
}

/// The record as CSV: a header line, then a row for each job and each requested direction, in plan
/// order, reads first.
///
/// Fields are quoted as in RFC 4180, and no name is a formula or holds a control character
/// ([`gpuio_units::csv_text`]). Lines end in a line feed only, so that awk and cut see no carriage
/// return. An empty field means that there is no figure. Numbers are not rounded.
#[must_use]
pub fn render(record: &Record) -> String {
    let mut lines = Lines::new();
    lines.push(COLUMNS.iter().map(|column| column.name.to_owned()));
    for (plan, job) in jobs(record) {
        for direction in directions(plan) {
            lines.push(cells(record, plan, job, *direction));
        }
    }
    lines.text()
}

/// The same with a row for each job of each host with an expectation, then for each job of each
/// rank. Such a row has what the record has of a host or rank, reads and writes together; the other
/// fields are empty, of a host that of the rank too. Without ranks it is [`render`].
#[must_use]
pub fn render_per_rank(record: &Record) -> String {
    let mut text = render(record);
    let mut lines = Lines::new();
    for host in record.ranks.iter().flat_map(|all| &all.hosts) {
        for job in &host.expected {
            let plan = record.plan.jobs.iter().find(|plan| plan.name == job.job);
            let cell = |column: &Column| host_cell(column.name, record, plan, (host, job));
            lines.push(COLUMNS.iter().map(cell));
        }
    }
    for row in record.ranks.iter().flat_map(|all| &all.rows) {
        for job in &row.jobs {
            let plan = record.plan.jobs.iter().find(|plan| plan.name == job.job);
            let cell = |column: &Column| rank_cell(column.name, record, plan, (row, job));
            lines.push(COLUMNS.iter().map(cell));
        }
    }
    text.push_str(&lines.text());
    text
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
    column: &str,
    record: &Record,
    plan: Option<&JobPlan>,
    (row, job): (&RankRow, &RankJob),
) -> String {
    match column {
        "job" => job.job.clone(),
        "ended" => maybe(row.ended.map(ended_word)),
        "gpus" => {
            let number = |gpu: &String| gpu.split(' ').next().unwrap_or_default().to_owned();
            row.gpus.iter().map(number).collect::<Vec<_>>().join(" ")
        }
        "ios" => job.ios.to_string(),
        "bytes" => job.bytes.to_string(),
        "failed_ios" => job.failed.to_string(),
        "throughput_bytes_per_s" => job.bytes_per_s.to_string(),
        "latency_p99_ns" => maybe(job.p99_ns),
        "latency_max_ns" => maybe(job.max_ns),
        "cpu_cores_busy" => job.cores_busy.to_string(),
        "cpu_us_per_mib" => maybe(job.us_per_mib),
        "verdict" => maybe(job.verdict.as_ref()),
        "measured_begin_ns" => maybe(job.measured.map(|span| span.begin_ns)),
        "measured_end_ns" => maybe(job.measured.map(|span| span.end_ns)),
        "last_done_ns" => maybe(job.measured.map(|span| span.length_ns())),
        "rank" => row.rank.to_string(),
        "host" => row.host.clone(),
        "nics" => row.nics.join(" "),
        _ => part_cell(column, record, plan),
    }
}

/// The field that all hosts and ranks have in common.
fn part_cell(column: &str, record: &Record, plan: Option<&JobPlan>) -> String {
    match column {
        "group" => maybe(plan.map(|plan| plan.group)),
        "path" => maybe(plan.map(|plan| &plan.path.choice.actual)),
        "gpu_software" => u8::from(record.plan.software_gpu).to_string(),
        "rw" => maybe(plan.map(rw)),
        "direction" => match plan.map(directions) {
            Some([only]) => only.name().to_owned(),
            _ => "both".to_owned(),
        },
        "block_min_bytes" => maybe(plan.map(|plan| block_bounds(&plan.blocks).0)),
        "block_max_bytes" => maybe(plan.map(|plan| block_bounds(&plan.blocks).1)),
        "threads" => maybe(plan.map(|plan| plan.threads)),
        "depth" => maybe(plan.map(|plan| plan.depth)),
        "size_bytes" => maybe(plan.map(|plan| plan.size_bytes)),
        "started_at" => record.started_at.clone(),
        "tool_version" => record.tool.version.clone(),
        "run_ended" => ended_word(record.ended).to_owned(),
        _ => String::new(),
    }
}

/// The fields of one row, in the order of [`COLUMNS`].
pub(crate) fn cells<'a>(
    record: &'a Record,
    plan: &'a JobPlan,
    job: &'a JobResult,
    direction: Direction,
) -> impl Iterator<Item = String> + use<'a> {
    let line = Line { record, plan, job, direction };
    COLUMNS.iter().map(move |column| (column.cell)(&line))
}

/// Lines of CSV in memory.
pub(crate) struct Lines(csv::Writer<Vec<u8>>);

impl Lines {
    pub(crate) fn new() -> Lines {
        let mut builder = csv::WriterBuilder::new();
        builder.terminator(csv::Terminator::Any(b'\n')).flexible(true);
        Lines(builder.from_writer(Vec::new()))
    }

    pub(crate) fn push(&mut self, fields: impl Iterator<Item = String>) {
        let fields = fields.map(|field| gpuio_units::csv_text(&field).into_owned());
        // A Vec takes every byte, and lines may differ in length.
        let _ = self.0.write_record(fields.map(String::into_bytes));
    }

    pub(crate) fn text(self) -> String {
        let bytes = self.0.into_inner().unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }
}

const fn column(
    name: &'static str,
    meaning: &'static str,
    cell: fn(&Line<'_>) -> String,
) -> Column {
    Column { name, meaning, cell }
}

fn maybe<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn total(line: &Line<'_>, figure: fn(&Summary) -> String) -> String {
    let latency = line.result().latency.as_ref();
    maybe(latency.map(|latency| figure(&latency.total)))
}

fn leg(
    line: &Line<'_>,
    leg: fn(&gpuio_record::Latency) -> Option<&Summary>,
    figure: fn(&Summary) -> Option<u64>,
) -> String {
    maybe(line.result().latency.as_ref().and_then(leg).and_then(figure))
}

fn gpus(line: &Line<'_>) -> String {
    let numbers: Vec<String> = line.plan.gpus.iter().map(|gpu| gpu.index.to_string()).collect();
    numbers.join(" ")
}

fn ended(line: &Line<'_>) -> String {
    ended_word(line.job.ended).to_owned()
}

pub(crate) fn ended_word(how: EndedHow) -> &'static str {
    match how {
        EndedHow::Complete => "complete",
        EndedHow::Interrupted => "interrupted",
        EndedHow::Failed => "failed",
        EndedHow::Unfinished => "unfinished",
    }
}

fn direct(line: &Line<'_>) -> String {
    u8::from(line.job.direct_actual == DirectMode::Direct).to_string()
}

fn cpu_scope(line: &Line<'_>) -> String {
    let word = match line.job.cpu.scope {
        CpuScope::Threads => "threads",
        CpuScope::AllThreads => "all_threads",
        CpuScope::Process => "process",
    };
    word.to_owned()
}

fn verify(line: &Line<'_>) -> String {
    line.plan.verify.word().to_owned()
}

fn verified_bytes(line: &Line<'_>) -> String {
    maybe(line.job.verify.as_ref().map(|found| found.timed_bytes + found.pass_bytes))
}

/// Names of the warnings about this job or about all jobs, as in the record.
fn warnings(line: &Line<'_>) -> String {
    let mut names: Vec<String> = Vec::new();
    for warning in &line.record.warnings {
        let about = warning.job.as_ref().is_none_or(|job| *job == line.plan.name);
        let id = warning.kind.id();
        if about && !names.contains(&id) {
            names.push(id);
        }
    }
    names.join(" ")
}

/// The columns in order. The first eight identify the row.
pub const COLUMNS: &[Column] = &[
    column("job", "name of the job", |l| l.plan.name.clone()),
    column("group", "group of jobs that ran together, from 0", |l| l.plan.group.to_string()),
    column(
        "path",
        "path that ran: `host`, `staged`, `cached`, `managed`, `gather`, `mapped`, `resident`, \
         `routed`, `fan-out`, `library` or another path of gpuio's library core, `gds` or another \
         cuFile path",
        |l| l.plan.path.choice.actual.clone(),
    ),
    column("gpu_software", "1 if the GPUs were gpuio's software GPU: not a hardware result", |l| {
        u8::from(l.record.plan.software_gpu).to_string()
    }),
    column("engine", "engine that ran; several joined by `+`", |l| actual_engine(l.plan, l.job)),
    column("rw", "load of the job, as in the `rw` key", |l| rw(l.plan).to_owned()),
    column("direction", "`read` or `write`: the direction of this row", |l| {
        l.direction.name().to_owned()
    }),
    column("ended", "`complete`, `interrupted` or `failed`", ended),
    column("block_min_bytes", "smallest block", |l| block_bounds(&l.plan.blocks).0.to_string()),
    column("block_max_bytes", "largest block", |l| block_bounds(&l.plan.blocks).1.to_string()),
    column("threads", "threads of the job", |l| l.plan.threads.to_string()),
    column("depth", "I/Os in flight per thread", |l| l.plan.depth.to_string()),
    column(
        "direct",
        "1 if the files were open with O_DIRECT, 0 if not, as read back; not the verdict",
        direct,
    ),
    column("gpus", "GPU numbers, separated by blanks", gpus),
    column("size_bytes", "size of each thread's region", |l| l.plan.size_bytes.to_string()),
    column("ios", "I/Os that completed", |l| l.result().ios.to_string()),
    column("bytes", "bytes of those", |l| l.result().bytes.to_string()),
    column("failed_ios", "I/Os that failed", |l| l.result().failed.to_string()),
    column("throughput_bytes_per_s", "bytes per second until the last worker finished", |l| {
        l.result().bytes_per_s.to_string()
    }),
    column("iops", "I/Os per second over the same time", |l| l.result().iops.to_string()),
    column("latency_min_ns", "smallest latency, from due to completed", |l| {
        total(l, |s| s.min_ns.to_string())
    }),
    column("latency_mean_ns", "mean", |l| total(l, |s| s.mean_ns.to_string())),
    column("latency_stddev_ns", "standard deviation", |l| total(l, |s| s.stddev_ns.to_string())),
    column("latency_p50_ns", "median", |l| total(l, |s| s.p50_ns.to_string())),
    column("latency_p90_ns", "90th percentile; empty with fewer than 100 I/Os", |l| {
        total(l, |s| maybe(s.p90_ns))
    }),
    column("latency_p99_ns", "99th percentile; empty with fewer than 1000", |l| {
        total(l, |s| maybe(s.p99_ns))
    }),
    column("latency_p99_9_ns", "99.9th percentile; empty with fewer than 10000", |l| {
        total(l, |s| maybe(s.p99_9_ns))
    }),
    column("latency_p99_99_ns", "99.99th percentile; empty with fewer than 100000", |l| {
        total(l, |s| maybe(s.p99_99_ns))
    }),
    column("latency_max_ns", "largest", |l| total(l, |s| s.max_ns.to_string())),
    column("queue_p50_ns", "time from due to started, median; empty without a rate", |l| {
        leg(l, |legs| legs.queue.as_ref(), |s| Some(s.p50_ns))
    }),
    column("queue_p99_ns", "the same, 99th percentile", |l| {
        leg(l, |legs| legs.queue.as_ref(), |s| s.p99_ns)
    }),
    column("file_p50_ns", "between file and host memory, median", |l| {
        leg(l, |legs| legs.file.as_ref(), |s| Some(s.p50_ns))
    }),
    column("file_p99_ns", "the same, 99th percentile", |l| {
        leg(l, |legs| legs.file.as_ref(), |s| s.p99_ns)
    }),
    column("gpu_p50_ns", "between host and GPU memory, median; empty without a GPU leg", |l| {
        leg(l, |legs| legs.gpu.as_ref(), |s| Some(s.p50_ns))
    }),
    column("gpu_p99_ns", "the same, 99th percentile", |l| {
        leg(l, |legs| legs.gpu.as_ref(), |s| s.p99_ns)
    }),
    column("first_done_ns", "time from the end of the ramp until the first worker finished", |l| {
        l.job.first_done_ns.to_string()
    }),
    column(
        "last_done_ns",
        "time from the end of the ramp until the last I/O ended, failed ones included: the time \
         of all rates",
        |l| l.job.last_done_ns.to_string(),
    ),
    column("cpu_user_s", "CPU time in user mode, the whole job (both directions)", |l| {
        l.job.cpu.user_s.to_string()
    }),
    column("cpu_system_s", "CPU time in the kernel, the whole job", |l| {
        l.job.cpu.system_s.to_string()
    }),
    column("cpu_cores_busy", "average number of CPUs used by the job", |l| {
        l.job.cpu.cores_busy.to_string()
    }),
    column("cpu_us_per_mib", "microseconds of CPU per MiB moved, both directions", |l| {
        maybe(l.job.cpu.us_per_mib)
    }),
    column(
        "cpu_scope",
        "whose CPU time: `all_threads` of the job; the `process`, while only this job ran; or the \
         `threads` that are known, a lower bound because others add to it",
        cpu_scope,
    ),
    column("verify", "`off`, `pass`, `rewrite` or `inline`", verify),
    column("verified_bytes", "bytes checked during the measured time and after it", verified_bytes),
    column("verify_bad_blocks", "blocks with wrong data; empty if not verified", |l| {
        maybe(l.job.verify.as_ref().map(|found| found.bad_blocks))
    }),
    column("verify_complete", "1 if verification ran to its end", |l| {
        maybe(l.job.verify.as_ref().map(|found| u8::from(found.complete)))
    }),
    column(
        "between_ios_ns",
        "time that workers spent generating or checking data between I/Os, summed",
        |l| l.job.between_ios_ns.to_string(),
    ),
    column("cached_before", "share (0 to 1) of the files in the page cache before", |l| {
        maybe(l.job.cache.resident_before)
    }),
    column("cached_after", "the same afterwards", |l| maybe(l.job.cache.resident_after)),
    column("started_at", "time at the start of the run, RFC 3339", |l| l.record.started_at.clone()),
    column("tool_version", "version of gpuio", |l| l.record.tool.version.clone()),
    column("warnings", "names of the warnings about the job or the run", warnings),
    column("verdict", "data path of the bytes, by the evidence (docs/proof.md)", |l| {
        maybe(l.job.proof.as_ref().map(|proof| &proof.verdict.words))
    }),
    column("verdict_sentence", "the evidence behind the verdict", |l| {
        maybe(l.job.proof.as_ref().map(|proof| &proof.sentence))
    }),
    column("ceiling", "lowest ceiling of the row; empty if none was measured", |l| {
        maybe(l.result().of_ceiling.as_ref().map(|of| &of.ceiling))
    }),
    column("ceiling_bytes_per_s", "bytes per second of that ceiling", |l| {
        let of = l.result().of_ceiling.as_ref();
        maybe(of.and_then(|of| ceilings::rate(l.record, of)))
    }),
    column("ceiling_percent", "the row's throughput as a percentage of it", |l| {
        maybe(l.result().of_ceiling.as_ref().map(|of| of.percent))
    }),
    column(
        "run_ended",
        "the run as a whole: as `ended`, or `unfinished` (the process crashed)",
        |l| ended_word(l.record.ended).to_owned(),
    ),
    column(
        "expected_bytes_per_s",
        "expected bytes per second from the data sheets of the parts on the route \
         (docs/expectation.md); empty if unknown",
        |l| maybe(l.expected().and_then(|one| one.expected.bytes_per_s)),
    ),
    column("expected_percent", "the row's throughput as a percentage of it", |l| {
        maybe(l.expected().and_then(|one| one.percent))
    }),
    column("expected_bottleneck", "part that saturates first, with its figure", |l| {
        maybe(l.expected().and_then(|one| one.expected.bottleneck.as_ref()))
    }),
    column("expected_unknown", "why there is no expected value", |l| {
        maybe(l.expected().and_then(|one| one.expected.unknown.as_ref()))
    }),
    column("measured_begin_ns", "end of the job's ramp on the run's clock", |l| {
        maybe(l.job.measured.map(|span| span.begin_ns))
    }),
    column("measured_end_ns", "completion of its last I/O, on the same clock", |l| {
        maybe(l.job.measured.map(|span| span.end_ns))
    }),
    column(
        "never_started_ios",
        "I/Os of the job that were due and never started, and are in no latency; empty without a \
         rate",
        |l| maybe(l.job.never_started.map(|never| never.ios)),
    ),
    column(
        "beside",
        "computation that kept the GPUs busy, as in the `beside` key; empty if none",
        |l| maybe(l.plan.beside.as_ref().map(ComputationPlan::key)),
    ),
    column(
        "beside_compute_ratio",
        "share of its speed that the computation kept, on the GPU that lost the most; empty if \
         unknown",
        |l| maybe(l.job.beside.as_ref().and_then(|found| found.lowest()?.ratio)),
    ),
    column("beside_io_ratio", "share of its throughput that the job kept, both directions", |l| {
        maybe(l.job.beside.as_ref().and_then(|found| found.io_ratio))
    }),
    column("beside_alone_bytes_per_s", "the row's throughput without the computation", |l| {
        maybe(l.alone().map(|side| side.bytes_per_s))
    }),
    column("beside_alone_p99_ns", "the row's 99th percentile without it", |l| {
        maybe(l.alone().and_then(|side| side.latency.as_ref()?.total.p99_ns))
    }),
    column("feed_scale", "share of a training feed's files that was used; empty for others", |l| {
        maybe(l.plan.feed.as_ref().map(|feed| feed.scale))
    }),
    column("feed_utilisation_percent", "accelerator utilisation; empty if unknown", |l| {
        maybe(l.job.feed.as_ref().and_then(|feed| feed.utilisation_percent))
    }),
    column("feed_samples_per_s", "samples of a training feed per second", |l| {
        maybe(l.job.feed.as_ref().map(|feed| feed.samples_per_s))
    }),
    column("feed_stall_ns", "time in which its accelerators waited, summed over them", |l| {
        maybe(l.job.feed.as_ref().map(|feed| feed.stall_ns))
    }),
    column("tier_hits", "samples that a feed's tier in CPU memory had; empty without one", |l| {
        maybe(l.tier().map(|tier| tier.hits))
    }),
    column("tier_misses", "samples that it did not have, read from storage", |l| {
        maybe(l.tier().map(|tier| tier.misses))
    }),
    column("tier_evictions", "samples that left it for others", |l| {
        maybe(l.tier().map(|tier| tier.evictions))
    }),
    column("tier_bytes", "bytes that came from it, in no count of what was read", |l| {
        maybe(l.tier().map(|tier| tier.memory_bytes))
    }),
    column(
        "part_scale",
        "share of each thread's bytes that was used; empty for whole loads",
        |l| maybe(l.plan.part.map(|part| part.scale)),
    ),
    column("part_full_threads", "threads of the load that the job is a part of", |l| {
        maybe(l.plan.part.map(|part| part.full_threads))
    }),
    column("ranks", "processes of a run on several ranks; empty for one process", |l| {
        maybe(l.record.ranks.as_ref().map(|all| all.ranks))
    }),
    column("hosts", "their hosts", |l| maybe(l.record.ranks.as_ref().map(|all| all.hosts.len()))),
    column(
        "until_first_bytes_per_s",
        "bytes per second of all ranks, both directions, until the first rank was done",
        |l| maybe(l.rates().map(|rates| rates.until_first.bytes_per_s)),
    ),
    column(
        "while_all_bytes_per_s",
        "the same while all ranks ran; empty where there was no such time",
        |l| maybe(l.rates().and_then(|rates| rates.while_all).map(|rate| rate.bytes_per_s)),
    ),
    column(
        "start_skew_ns",
        "time from the first rank's start to the last one's, by compared clocks",
        |l| maybe(l.group().map(|group| group.start_skew_ns)),
    ),
    column("rank", "the rank in rows of single ranks (`--per-rank`); empty for all", |_| {
        String::new()
    }),
    column(
        "host",
        "its host, also in rows of single hosts (`--per-rank`), which have no rank; empty for all",
        |_| String::new(),
    ),
    column("nics", "network cards that lead to the servers of a rank's files", |_| String::new()),
    column(
        "stonewall_ns",
        "time from the end of the ramp until the last thread came to the stonewall; empty where \
         the load did not go on after it",
        |l| maybe(l.job.stonewall.map(|wall| wall.time_ns)),
    ),
    column("stonewall_bytes_per_s", "bytes per second until then, both directions", |l| {
        maybe(l.job.stonewall.map(|wall| wall.bytes_per_s))
    }),
];

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn another_reader_gets_the_fields_back() {
        let mut lines = Lines::new();
        lines.push(["job", "path"].into_iter().map(str::to_owned));
        lines.push(["a,\"b\"\n", "=1+1", ""].into_iter().map(str::to_owned));
        let text = lines.text();
        assert_eq!(text, "job,path\n\"a,\"\"b\"\"\\n\",'=1+1,\n");
        let mut reader = csv::ReaderBuilder::new();
        let mut rows = reader.has_headers(false).flexible(true).from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
        assert_eq!(rows[1], vec!["a,\"b\"\\n", "'=1+1", ""]);
    }
}
