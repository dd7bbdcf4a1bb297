//! The changes between two samples.

use crate::metric::{Change, Kind, Metric};
use crate::probe::{PROBES, Probe, Reading};
use crate::sample::Sample;

/// The changes between two samples: a pure function of them.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Length; 0 where the later sample was not later, and then nothing is known.
    pub seconds: f64,
    /// One per probe, in the order of [`PROBES`].
    pub tables: Vec<Table>,
}

/// Devices of one kind.
#[derive(Debug, Clone)]
pub struct Table {
    pub probe: &'static Probe,
    /// Devices that were there at the end, in the probe's order; cut to the probe's most.
    pub rows: Vec<Row>,
    /// Why there are none, where the kind itself is absent.
    pub absent: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Row {
    pub name: String,
    /// The change; `None` where it can't be known.
    pub change: Option<Change>,
    /// Why it can't: the device is new, or its counters began again.
    pub why: Option<&'static str>,
    /// Words on it, such as the GPUs that a process uses; empty where there are none.
    pub about: String,
}

impl Row {
    /// The figures in the order of the probe's.
    pub fn figures(&self, probe: &Probe) -> Vec<Option<f64>> {
        let of = |change: &Change| probe.figures.iter().map(|figure| (figure.of)(change)).collect();
        self.change.as_ref().map_or_else(|| vec![None; probe.figures.len()], of)
    }
}

impl Interval {
    /// The changes from `earlier` to `later`. Devices that went are not in it; of devices that
    /// came, and of those whose counters began again, it is known that they are there.
    pub fn between(earlier: &Sample, later: &Sample) -> Interval {
        let seconds = later.at_ns.saturating_sub(earlier.at_ns) as f64 / 1e9;
        let pairs = PROBES.iter().zip(&later.probes).enumerate();
        let tables = pairs.map(|(nth, (probe, readings))| {
            let before = earlier.probes.get(nth).and_then(|read| read.as_deref().ok());
            match readings {
                Err(why) => Table { probe, rows: Vec::new(), absent: Some(why.clone()) },
                Ok(readings) => {
                    let rows = rows(probe, before.unwrap_or_default(), readings, seconds);
                    Table { probe, rows, absent: None }
                }
            }
        });
        Interval { seconds, tables: tables.collect() }
    }

    pub fn table(&self, probe: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.probe.name == probe)
    }
}

fn rows(probe: &'static Probe, before: &[Reading], after: &[Reading], seconds: f64) -> Vec<Row> {
    // By name and not by index: devices come and go between two samples.
    let known: std::collections::HashMap<(&str, u64), &Reading> =
        before.iter().map(|one| ((one.name.as_str(), one.identity), one)).collect();
    let mut rows: Vec<Row> = after
        .iter()
        .map(|later| {
            let earlier = known.get(&(later.name.as_str(), later.identity));
            let found = match earlier {
                None => Err("new"),
                Some(_) if seconds <= 0.0 => Err("no time passed"),
                Some(earlier) => {
                    change(probe.metrics, earlier, later, seconds).ok_or("its counters began again")
                }
            };
            let why = found.as_ref().err().copied();
            Row { name: later.name.clone(), change: found.ok(), why, about: later.about.clone() }
        })
        .collect();
    if probe.most < usize::MAX {
        let rank = |row: &Row| match probe.rank {
            Some(rank) => row.change.as_ref().and_then(rank).unwrap_or(-1.0),
            None => row.figures(probe).first().copied().flatten().unwrap_or(-1.0),
        };
        rows.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
        rows.truncate(probe.most);
    }
    rows
}

/// `None` when a counter of 64 bits went back: then counters of 32 bits, which can't be
/// distinguished, wrapped too.
fn change(
    metrics: &'static [Metric],
    earlier: &Reading,
    later: &Reading,
    seconds: f64,
) -> Option<Change> {
    let mut values = Vec::with_capacity(metrics.len());
    for ((metric, from), to) in metrics.iter().zip(&earlier.values).zip(&later.values) {
        values.push(match (metric.kind, from, to) {
            (Kind::Gauge, _, Some(to)) => Some(metric.base(*to)),
            (_, Some(from), Some(to)) => Some(metric.base(metric.counted(*from, *to)?)),
            _ => None,
        });
    }
    Some(Change { metrics, values, seconds })
}
