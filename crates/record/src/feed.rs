//! A training feed: samples that are read for accelerators which compute at the same time.

use gpuio_base::stat::{Percentile, Summary};
use gpuio_base::units::{digits, float, format_duration_ns, human_bytes, many};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::beside::ComputationKind;

/// The plan of a training feed: the samples to read, by whom and in which order, and the
/// computation meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FeedPlan {
    /// Files of the whole data set.
    pub full_files: u64,
    /// Share of it that is used: 1 is all.
    pub scale: f64,
    /// Files that are used.
    pub files: u64,
    /// Samples in each file.
    pub samples_per_file: u64,
    /// Size of the samples.
    pub sample: SampleSize,
    /// How many times smaller samples are stored; 1 where they are stored as they are.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub ratio: f64,
    /// Whether accelerators make the samples, which are written, and don't wait for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writes: bool,
    /// Columns of a sample, in their order in a file of columns; empty where a sample is one range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Samples that are read together, a row group of a file of columns; 1 otherwise.
    pub sample_group: u64,
    /// Samples of a step.
    pub batch_samples: u64,
    /// Order of the samples in an epoch.
    pub order: SampleOrder,
    /// Passes over the data set.
    pub epochs: u64,
    /// Accelerators that share the samples out.
    pub accelerators: u32,
    /// Reader threads of each.
    pub readers: u32,
    /// Batches that each reader may be ahead.
    pub prefetch: u32,
    /// The work of an accelerator on a batch.
    pub compute: FeedCompute,
    /// How long that takes, nanoseconds; 0 where nothing is computed.
    pub compute_ns: u64,
    /// Utilisation of the accelerators that is to be reached, per cent; absent where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_utilisation_percent: Option<f64>,
    /// Times in which batches are to be read or written; absent where none are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<ServiceLevel>,
    /// Host memory that keeps samples which were read; absent without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierPlan>,
    /// Settings that `--try` or another flag gave in place of the workload's own, each as
    /// `key=value (flag)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

impl FeedPlan {
    /// Batches that may be read ahead of an accelerator, where they are all that it takes: then the
    /// feed waits for storage at its start only, and its utilisation says nothing about storage.
    pub fn all_ahead(&self) -> Option<u64> {
        let ahead = self.ahead();
        (!self.writes && self.steps().saturating_mul(self.epochs) <= ahead).then_some(ahead)
    }

    /// Batches that may be read ahead of an accelerator, or wait to be written behind it.
    pub fn ahead(&self) -> u64 {
        u64::from(self.readers).saturating_mul(u64::from(self.prefetch))
    }

    /// Samples of an epoch.
    pub fn samples(&self) -> u64 {
        self.files.saturating_mul(self.samples_per_file)
    }

    /// Batches of an epoch.
    pub fn batches(&self) -> u64 {
        self.samples().div_ceil(self.batch_samples.max(1))
    }

    /// Steps of an epoch: its accelerators take a batch each.
    pub fn steps(&self) -> u64 {
        self.batches().div_ceil(u64::from(self.accelerators.max(1)))
    }

    /// Whether it is of a key-value cache: contexts that have a service level and are moved one by
    /// one, without computation.
    pub fn is_cache(&self) -> bool {
        self.slo.is_some() && self.compute == FeedCompute::None && self.batch_samples == 1
    }

    /// Bytes of a sample that are read from files, or written, on average.
    pub fn moved_bytes(&self) -> f64 {
        let read = self.columns.iter().filter(|column| column.read);
        match self.columns.as_slice() {
            [] => float(self.sample.mean_bytes) / self.ratio.max(1.0),
            _ => read.map(|column| f64::from(column.bytes)).sum(),
        }
    }

    /// Samples per second that the accelerators take while they never wait; absent where they
    /// compute nothing.
    pub fn needed_samples_per_s(&self) -> Option<f64> {
        let samples = float(self.batch_samples) * f64::from(self.accelerators);
        (self.compute_ns > 0).then(|| samples * 1e9 / float(self.compute_ns))
    }
}

/// Page-locked host memory that keeps whole samples which were read, the least recently used of
/// which leave for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TierPlan {
    /// Bytes that were requested.
    pub requested_bytes: u64,
    /// Samples, or groups that are read together, which it keeps at once: no more than there are.
    pub places: u32,
    /// Bytes of each place: the longest sample or group.
    pub place_bytes: u64,
}

impl TierPlan {
    /// Bytes of memory that it takes.
    pub fn bytes(self) -> u64 {
        u64::from(self.places).saturating_mul(self.place_bytes)
    }
}

/// Times in which batches are to be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceLevel {
    /// Longest time for 95 % of them, nanoseconds.
    pub p95_ns: u64,
    /// Longest time for 99 %, nanoseconds.
    pub p99_ns: u64,
}

impl ServiceLevel {
    /// The shares of batches that it is about, ascending.
    pub const AT: [Percentile; 2] = [Percentile::hundredths(95_00), Percentile::TAIL];

    /// The levels that have a name, of MLPerf Storage's benchmark of key-value caches.
    pub const NAMED: [(&'static str, ServiceLevel); 3] = [
        ("interactive", ServiceLevel::within([50_000_000, 100_000_000])),
        ("responsive", ServiceLevel::within([100_000_000, 200_000_000])),
        ("batch", ServiceLevel::within([1_000_000_000, 5_000_000_000])),
    ];

    /// These longest times, in nanoseconds, for the shares of [`ServiceLevel::AT`].
    pub const fn within([p95_ns, p99_ns]: [u64; 2]) -> ServiceLevel {
        ServiceLevel { p95_ns, p99_ns }
    }

    /// Its longest times, in nanoseconds, for the shares of [`ServiceLevel::AT`].
    pub fn times(self) -> [u64; 2] {
        [self.p95_ns, self.p99_ns]
    }

    /// Its name, where it has one.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMED.iter().find(|(_, level)| *level == self).map(|(name, _)| *name)
    }
}

fn one() -> f64 {
    1.0
}

fn is_one(ratio: &f64) -> bool {
    ratio.total_cmp(&1.0).is_eq()
}

impl FeedPlan {
    /// All of it in words, for comparison: where one differs, so does the load.
    pub fn words(&self) -> Vec<String> {
        let SampleSize { mean_bytes, deviation_bytes } = self.sample;
        let deviation = match deviation_bytes {
            0 => String::new(),
            bytes => format!(" +- {}", exact(bytes)),
        };
        let compute = match self.compute {
            FeedCompute::None => "compute none".to_owned(),
            _ => {
                format!(
                    "compute {} for {}",
                    self.compute.key(),
                    format_duration_ns(self.compute_ns)
                )
            }
        };
        let files = many(self.files, "file");
        let mut words = vec![
            "training feed".to_owned(),
            format!("scale {}", self.scale),
            format!("{files} of {}", many(self.samples_per_file, "sample")),
            format!("{}{deviation} a sample", exact(mean_bytes)),
        ];
        words.extend((!is_one(&self.ratio)).then(|| format!("stored at 1/{}", self.ratio)));
        if !self.columns.is_empty() {
            let of_sample = |column: &Column| u64::from(column.bytes) * u64::from(column.read);
            let read: u64 = self.columns.iter().map(of_sample).sum();
            words.push(format!("{} of it in columns", exact(read)));
            words.push(format!("groups of {}", self.sample_group));
        }
        words.extend(self.writes.then(|| "samples are written".to_owned()));
        words.extend([
            format!("order {}", self.order.key()),
            many(self.epochs, "epoch"),
            format!("batches of {}", self.batch_samples),
            many(u64::from(self.accelerators), "accelerator"),
            format!("{} for each", many(u64::from(self.readers), "reader")),
            format!("{} ahead", self.prefetch),
            compute,
        ]);
        words.extend(self.tier.map(|tier| {
            let TierPlan { places, place_bytes, .. } = tier;
            format!("{places} of {} kept in host memory", exact(place_bytes))
        }));
        words
    }
}

/// Bytes as people read them, and exactly where those are rounded.
fn exact(bytes: u64) -> String {
    let human = human_bytes(float(bytes));
    // Three digits of the unit that it is a whole number of.
    match bytes.checked_shr(bytes.trailing_zeros() / 10 * 10) {
        Some(..1000) => human,
        _ => format!("{human} ({} B)", digits(bytes)),
    }
}

/// Sizes of samples, drawn from a normal distribution by the number of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampleSize {
    /// Mean in bytes.
    pub mean_bytes: u64,
    /// Standard deviation in bytes; 0 where all have one size.
    pub deviation_bytes: u64,
}

/// A column of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Bytes of each sample in it.
    pub bytes: u32,
    /// Whether it is read.
    pub read: bool,
}

/// Order of the samples in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SampleOrder {
    /// All samples in an order of chance, another one in each epoch.
    Shuffle,
    /// Files in an order of chance, and the samples of each one after another.
    ShuffleFiles,
    /// One after another.
    InOrder,
    /// One after another, from the last to the first.
    Reverse,
    /// As many as there are, each drawn by Zipf's law without regard to those before, the same hot
    /// ones in all epochs: some are read often, and some never.
    Zipf {
        /// Exponent, above 0.
        theta: f64,
    },
}

impl SampleOrder {
    /// As in job files.
    pub fn key(self) -> String {
        match self {
            SampleOrder::Shuffle => "shuffle".to_owned(),
            SampleOrder::ShuffleFiles => "shuffle-files".to_owned(),
            SampleOrder::InOrder => "in-order".to_owned(),
            SampleOrder::Reverse => "reverse".to_owned(),
            SampleOrder::Zipf { theta } => format!("zipf:{theta}"),
        }
    }

    /// Whether samples are drawn one by one, so that an epoch has some repeatedly and others never.
    pub fn draws(self) -> bool {
        matches!(self, SampleOrder::Zipf { .. })
    }
}

/// The work of an accelerator for the time of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum FeedCompute {
    /// A kernel that keeps its GPU busy.
    Kernel {
        /// The kind of its work.
        with: ComputationKind,
        /// Share of the multiprocessors in per cent.
        share_percent: f64,
    },
    /// Its thread sleeps; the GPU is idle.
    Sleep,
    /// Nothing: batches are taken as fast as they come.
    None,
}

impl FeedCompute {
    /// As in a job file.
    pub fn key(&self) -> String {
        match self {
            FeedCompute::Kernel { with, share_percent } => {
                let word = match with {
                    ComputationKind::Compute => "kernel",
                    ComputationKind::Memory => "memory",
                };
                match share_percent.total_cmp(&100.0).is_eq() {
                    true => word.to_owned(),
                    false => format!("{word}:{share_percent}%"),
                }
            }
            FeedCompute::Sleep => "sleep".to_owned(),
            FeedCompute::None => "none".to_owned(),
        }
    }
}

/// The outcome of a training feed. Its time begins with the first read and ends with the last step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FeedResult {
    /// From the first read to the end of the last step, nanoseconds.
    pub span_ns: u64,
    /// Samples that accelerators took.
    pub samples: u64,
    /// The same per second, over `span_ns`.
    pub samples_per_s: f64,
    /// Steps of all accelerators.
    pub steps: u64,
    /// Whether the last step of the last epoch was reached, and all that was made is written.
    pub complete: bool,
    /// Accelerator utilisation, the mean over epochs and accelerators, per cent: the time of the
    /// steps' computation alone, over the time from the end of the first step to the end of the
    /// last but one (MLPerf Storage leaves out the first and the last step). Absent where nothing
    /// was computed or an epoch had fewer than three steps.
    pub utilisation_percent: Option<f64>,
    /// Why it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation_unknown: Option<String>,
    /// Time in which accelerators waited for a batch, summed over them, nanoseconds. The wait for
    /// the first batch of all is not in it.
    pub stall_ns: u64,
    /// Wait for the first batch, the longest of all accelerators, nanoseconds.
    pub first_batch_ns: u64,
    /// Waits of a step for its batch, without the first of all; absent without any.
    pub wait: Option<Summary>,
    /// From the start of a batch's first I/O until its last byte was in memory, without the time in
    /// which the reader generated or checked data between I/Os.
    pub batch_read: Option<Summary>,
    /// Time in which readers began no I/O because they were as far ahead as they may be, summed
    /// over them, nanoseconds.
    #[serde(default)]
    pub rested_ns: u64,
    /// One entry for each accelerator.
    pub accelerators: Vec<AcceleratorResult>,
    /// The search of which this is the run that counts (`--accelerators auto`); absent without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<AcceleratorSearch>,
    /// One entry for each epoch that was begun.
    pub epochs: Vec<EpochResult>,
    /// MLPerf Storage's rules, whether kept or not; none for what MLPerf has no such workload of:
    /// feeds that write, go backwards, or have a service level and are of no key-value cache.
    pub rules: Vec<FeedRule>,
    /// The counts of the tier in host memory; absent without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierResult>,
}

impl FeedResult {
    /// The mean time of a step's computation during the feed, nanoseconds.
    pub fn mean_compute_ns(&self) -> Option<u64> {
        let sum = |of: fn(&AcceleratorResult) -> u64| {
            self.accelerators.iter().map(of).fold(0, u64::saturating_add)
        };
        let all = sum(|one| one.compute_ns.map_or(0, |mean| mean.saturating_mul(one.steps)));
        all.checked_div(sum(|one| one.steps)).filter(|mean| *mean > 0)
    }

    /// How much longer than planned steps computed, per cent, from 5 on, or how much shorter, below
    /// zero, from 10 on. Utilisation counts the planned time, as MLPerf Storage's does, so that
    /// storage has no part in what is lost by longer ones; of shorter ones, what they took.
    pub fn computed_off_percent(&self, plan: &FeedPlan) -> Option<f64> {
        let planned = Some(plan.compute_ns).filter(|planned| *planned > 0)?;
        let more = (float(self.mean_compute_ns()?) / float(planned) - 1.0) * 100.0;
        (!(-10.0..5.0).contains(&more)).then_some(more)
    }

    /// `stall_ns`, where it says something about storage: in as few steps as those of which no
    /// utilisation is known, nearly all waits are those for first batches, which it leaves out.
    pub fn stalled_ns(&self) -> Option<u64> {
        self.utilisation_percent.map(|_| self.stall_ns)
    }

    /// Share of the accelerators' time from the first read to the end of the last step in which
    /// they waited for batches, per cent. The wait for the first batch is in the time alone.
    pub fn stall_percent(&self, plan: &FeedPlan) -> Option<f64> {
        let whole = float(self.span_ns) * f64::from(plan.accelerators.max(1));
        let stalled = float(self.stalled_ns()?);
        Some(if whole > 0.0 { stalled * 100.0 / whole } else { 0.0 })
    }

    /// The time of all accelerators from the first read to the end of the last step, in parts that
    /// add up to it.
    pub fn time(&self) -> FeedTime {
        let of = |one| self.time_of(one);
        self.accelerators.iter().map(of).fold(FeedTime::default(), FeedTime::and)
    }

    /// The same time of one accelerator.
    pub fn time_of(&self, one: &AcceleratorResult) -> FeedTime {
        let computed_ns = one.compute_ns.unwrap_or(0).saturating_mul(one.steps);
        // The wait for the first batch is the longest of all accelerators, and that of a single
        // one.
        let alone = (self.accelerators.len() == 1).then_some(self.first_batch_ns);
        let first_batch_ns = one.first_batch_ns.or(alone);
        let known = computed_ns.saturating_add(one.stall_ns);
        let known = known.saturating_add(first_batch_ns.unwrap_or(0));
        let rest_ns = self.span_ns.saturating_sub(known);
        FeedTime { computed_ns, stall_ns: one.stall_ns, first_batch_ns, rest_ns }
    }

    /// Bytes per second that the accelerators take while they never wait, by the samples that were
    /// read or written: the mean of few is not that of the distribution. Absent where nothing is
    /// computed.
    pub fn needed_bytes_per_s(&self, plan: &FeedPlan) -> Option<f64> {
        let sum =
            |of: fn(&EpochResult) -> u64| self.epochs.iter().map(of).fold(0, u64::saturating_add);
        // It is not known how often samples were read again.
        let once = Some(sum(|epoch| epoch.once)).filter(|once| *once > 0);
        let once = once.filter(|_| sum(|epoch| epoch.repeated) == 0);
        let each = once.map(|once| float(sum(|epoch| epoch.read_bytes)) / float(once));
        Some(plan.needed_samples_per_s()? * each.unwrap_or_else(|| plan.moved_bytes()))
    }

    /// Samples that were read, or written: an accelerator hands those over that it makes, and not
    /// all of them are written where the feed is cut short.
    pub fn moved_samples(&self, plan: &FeedPlan) -> u64 {
        let written = self.epochs.iter().map(|epoch| epoch.once.saturating_add(epoch.repeated));
        if plan.writes { written.fold(0, u64::saturating_add) } else { self.samples }
    }
}

/// Time of accelerators in a feed, in parts that add up to it; nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedTime {
    /// Steps computed.
    pub computed_ns: u64,
    /// Waits for their own next batches.
    pub stall_ns: u64,
    /// Waits for their first batches; absent where these are in the rest.
    pub first_batch_ns: Option<u64>,
    /// The rest: waits for other accelerators, after each step and after the last.
    pub rest_ns: u64,
}

impl Default for FeedTime {
    fn default() -> FeedTime {
        FeedTime { computed_ns: 0, stall_ns: 0, first_batch_ns: Some(0), rest_ns: 0 }
    }
}

impl FeedTime {
    fn and(self, other: FeedTime) -> FeedTime {
        let firsts = self.first_batch_ns.zip(other.first_batch_ns);
        FeedTime {
            computed_ns: self.computed_ns.saturating_add(other.computed_ns),
            stall_ns: self.stall_ns.saturating_add(other.stall_ns),
            first_batch_ns: firsts.map(|(a, b)| a.saturating_add(b)),
            rest_ns: self.rest_ns.saturating_add(other.rest_ns),
        }
    }
}

/// The counts of a tier in host memory. Samples that are read together count as one; those that
/// failed are in none of the counts, and those that were cut short by the end of the run are in the
/// bytes alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TierResult {
    /// Readings of samples that were in it: copied from there to GPU memory.
    pub hits: u64,
    /// Readings from storage.
    pub misses: u64,
    /// Those of `misses` which it did not keep: another thread was just reading the same sample,
    /// or all of its places were in use.
    pub not_kept: u64,
    /// Samples that left it for others.
    pub evictions: u64,
    /// Bytes that came from it. They are in no count and no rate of what was read from files.
    pub memory_bytes: u64,
    /// Bytes that were read from files: those of the job's reads.
    pub storage_bytes: u64,
}

/// A search for the largest number of accelerators that keep their utilisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceleratorSearch {
    /// Utilisation to keep, per cent.
    pub least_utilisation_percent: f64,
    /// The result, in the words of the terminal.
    pub answer: String,
    /// The runs, in the order in which they were made.
    pub tries: Vec<AcceleratorTry>,
}

/// One run of such a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceleratorTry {
    /// Accelerators that it had.
    pub accelerators: u32,
    /// Their utilisation; absent where it is unknown.
    pub utilisation_percent: Option<f64>,
    /// The outcome, in the words of the terminal: `90 % kept`.
    pub verdict: String,
    /// Samples per second.
    pub samples_per_s: f64,
    /// Bytes per second of the reads.
    pub bytes_per_s: f64,
}

/// One accelerator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceleratorResult {
    /// Its number in the job, from 0.
    pub number: u32,
    /// The driver's index of its GPU; absent on paths without one.
    pub gpu: Option<u32>,
    /// Steps that it made.
    pub steps: u64,
    /// Samples in those.
    pub samples: u64,
    /// Time in which it waited for a batch, without the first, nanoseconds.
    pub stall_ns: u64,
    /// Its wait for the first batch, nanoseconds; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_batch_ns: Option<u64>,
    /// Time of a step's computation as it was measured with nothing else going on; of `sleep` the
    /// requested time. Nanoseconds; absent where nothing is computed.
    pub alone_ns: Option<u64>,
    /// Mean time of a step's computation during the feed, nanoseconds.
    pub compute_ns: Option<u64>,
    /// Multiprocessors that the kernel occupied, read back from a launch; absent without a kernel.
    pub occupied: Option<u32>,
    /// Multiprocessors of the GPU.
    pub multiprocessors: Option<u32>,
    /// The failure that ended its computation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// One pass over the data set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpochResult {
    /// Its number, from 1.
    pub number: u64,
    /// Steps of the accelerator that made the most.
    pub steps: u64,
    /// From the end of the epoch before, or the first read, to the end of its last step, or of its
    /// last write, nanoseconds.
    pub span_ns: u64,
    /// Utilisation in it, the mean over accelerators, per cent; absent as for the whole feed.
    pub utilisation_percent: Option<f64>,
    /// Samples that were read in it exactly once; where samples are drawn (order `zipf`), readings
    /// of those that were read as often as they were drawn.
    pub once: u64,
    /// Samples that were not read in it; drawn ones that were not, each time.
    pub never: u64,
    /// Samples that were read in it more than once, or more often than they were drawn.
    pub repeated: u64,
    /// Bytes of the samples that were read in it, from files and from the tier.
    pub read_bytes: u64,
    /// Bytes that reads of this job brought from files, or its writes took, from the end of the
    /// epoch before to the end of this one's last step, or to the moment that cut it short. Readers
    /// are ahead by then, so that a part is of the next epoch.
    pub moved_bytes: u64,
    /// Bytes that this process caused to be read from storage in the same time
    /// (`/proc/self/io`); absent where that could not be read, and where another job of the group
    /// may read too.
    pub storage_read_bytes: Option<u64>,
}

/// A rule of MLPerf Storage, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedRule {
    /// Its requirement.
    pub rule: String,
    /// The finding.
    pub found: String,
    /// Whether it was kept; absent where that is not known.
    pub kept: Option<bool>,
}
