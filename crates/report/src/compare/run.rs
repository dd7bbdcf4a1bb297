//! One job and direction of one run.

use std::collections::BTreeMap;

use crate::copies::{Content, Copies};
use crate::foreign::Direction;
use gpuio_base::document::unique;
use gpuio_base::stat::infer::Spread;
use gpuio_base::stat::{Percentile, Summary};
use gpuio_record::{Metric, Pacing, RunOf};

use crate::compare::aspect::{DUE, SINCE};
use crate::compare::keys::Keys;
use crate::others::Others;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The value, in the metric's unit.
    pub value: f64,
    /// Possible error by rounding or buckets, as a share of the value.
    pub off: f64,
    /// Possible error of the mean by variation within the run, if its series is known.
    pub spread: Option<Spread>,
}

/// One job and direction of one run of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub from: String,
    /// Identity of its file: a record's values, another tool's text.
    pub content: Content,
    pub tool: String,
    /// The job's name; `None` if the tool has none.
    pub job: Option<String>,
    /// Read or write.
    pub direction: Direction,
    /// Its point in a sweep: axis and value, in the sweep's order.
    pub at: Vec<(String, String)>,
    /// Its known properties, by the keys of [`crate::compare::ASPECTS`].
    pub properties: BTreeMap<&'static str, String>,
    /// Further keys of job files that make its load.
    pub(crate) keys: Keys,
    /// Requested options that are not understood.
    pub(crate) unread: Vec<String>,
    /// Further facts of a record, by their place in it; none of another tool's result.
    pub facts: BTreeMap<String, String>,
    /// Its figures, by the names of metrics ([`Metric::word`]).
    pub figures: BTreeMap<String, Figure>,
    /// Requested rates of all threads together, by the names of metrics.
    pub rates: BTreeMap<&'static str, f64>,
    /// All latencies of a record's run; none of another tool's result.
    pub latency: Option<Summary>,
    /// The same from submission on, as other tools count, where `latency` counts from when an I/O
    /// was due and the record has it.
    pub since_submission: Option<Summary>,
    pub percentiles: Vec<Percentile>,
    /// Traffic of other programs beside a record's run.
    pub(crate) others: Option<Others>,
    /// Whether its record says that others' use of the processors is unknown.
    pub(crate) others_unknown: bool,
    /// Why nothing is concluded from its figures: what another tool printed can't all be right, or
    /// a record was changed.
    pub doubts: Vec<String>,
    /// Why its record says that its figures are not those of a whole run of storage alone, each
    /// with its name, as in a report.
    pub standing: Vec<(&'static str, String)>,
    pub notes: Vec<String>,
}

/// gpuio's histograms give a percentile within this share of a recorded value.
pub(crate) const BUCKET: f64 = 1.0 / 256.0;

/// The share of the requested rate by which a run that met it may miss it.
const MET: f64 = 0.01;

impl Run {
    /// The tool without its release.
    pub(crate) fn tool_word(&self) -> &str {
        self.tool.split(' ').next().unwrap_or_default()
    }

    /// A metric; a percentile also of the histogram.
    pub(crate) fn figure(&self, metric: &Metric) -> Option<Figure> {
        let known = self.figures.get(&metric.word()).copied();
        known.or_else(|| {
            let Metric::Percentile(_, at) = metric else { return None };
            let value = self.latency.as_ref()?.percentile(*at)? as f64;
            Some(Figure { value, off: BUCKET, spread: None })
        })
    }

    /// A latency that counts from submission, as other tools' do; `None` if that is unknown.
    pub(crate) fn figure_since_submission(&self, metric: &Metric) -> Option<Figure> {
        if self.properties.get(SINCE).is_none_or(|since| since != DUE) {
            return self.figure(metric);
        }
        let all = self.since_submission.as_ref()?;
        let value = match metric {
            Metric::Percentile(_, at) => all.percentile(*at)? as f64,
            _ => all.mean_ns,
        };
        (value > 0.0).then_some(Figure { value, off: BUCKET, spread: None })
    }

    /// The requested rate, if this metric met it.
    pub(crate) fn met(&self, metric: &Metric) -> Option<f64> {
        let rate = *self.rates.get(metric.word().as_str())?;
        let value = self.figure(metric)?.value;
        ((value / rate - 1.0).abs() <= MET).then_some(rate)
    }
}

/// The rate by which each metric is limited, where one is requested. `pacing` is of one thread.
pub(crate) fn rates(
    pacing: &Pacing,
    block: Option<u64>,
    threads: u64,
) -> BTreeMap<&'static str, f64> {
    let all = |rate: Option<u64>| rate.map(|rate| rate.saturating_mul(threads) as f64);
    let (bytes, iops, block) =
        (all(pacing.bytes_per_s), all(pacing.iops), block.map(|bytes| bytes as f64));
    let lower = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).min_by(f64::total_cmp);
    let by_iops = iops.zip(block).map(|(iops, block)| iops * block);
    let by_bytes = bytes.zip(block).map(|(bytes, block)| bytes / block);
    let known = [("throughput", lower(bytes, by_iops)), ("iops", lower(iops, by_bytes))];
    known.into_iter().filter_map(|(name, rate)| Some((name, rate?))).collect()
}

/// Drops copies: of files with the same content the first counts, with a note on each other. A
/// side that has only copies is left out, and its notes go to the side before it.
pub fn count_once(sides: &mut Vec<Side>) {
    let mut copies = Copies::default();
    for (nth, side) in sides.iter_mut().enumerate() {
        let mut notes = Vec::new();
        side.runs.retain(|run| {
            let copy = copies.of(run.content, nth, &run.from);
            notes.extend(copy.clone());
            copy.is_none()
        });
        side.notes.extend(unique(notes));
    }
    let mut left: Vec<Side> = Vec::new();
    for side in sides.drain(..) {
        match left.last_mut() {
            Some(before) if side.runs.is_empty() => before.notes.extend(side.notes),
            _ => left.push(side),
        }
    }
    *sides = left;
}

/// All runs of one side: the baseline, or one that is compared with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Side {
    /// Its name: the file or directory, or a value of an axis.
    pub name: String,
    /// Its runs. Those of the same job and load are repeats.
    pub runs: Vec<Run>,
    /// Notes on all of them: how the tool measures, what was skipped.
    pub notes: Vec<String>,
    /// Which runs of a sweep or of `--ab` its records say that they are.
    pub made: Vec<RunOf>,
    /// Why they are not all runs that were made.
    pub lacks: Vec<String>,
}
