//! Saves of `gpuio.checkpoint`, from the live pages of the processes that write them. A device is
//! the directory that the checkpoints are in, and one rank of several: a name for each checkpoint
//! would make series without end.

use std::collections::HashSet;

use crate::metric::{Figure, Form, Kind, Metric, bytes, count, figure};
use crate::page::read::Found;
use crate::probe::{Eye, Probe, Reading, both, process};

const METRICS: [Metric; 7] = [
    bytes("staged_bytes", "Bytes that were copied into staged pages"),
    bytes("written_bytes", "Bytes that were written from there"),
    gauge(bytes("save_bytes", "Bytes of the save that is written, or was last")),
    gauge(bytes("save_staged_bytes", "Those of it in staged pages until now")),
    gauge(bytes("save_written_bytes", "Those of it that were written")),
    gauge(count("ranks", "Ranks that save together")),
    gauge(count("under_way", "Saves that are not complete yet")),
];

const fn gauge(metric: Metric) -> Metric {
    Metric { kind: Kind::Gauge, ..metric }
}

const FIGURES: [Figure; 6] = [
    figure("written_bytes_per_second", "wMiB/s", Form::Mebibytes, true, rate),
    figure("save_bytes", "save GiB", Form::Gibibytes, true, |c| c.of("save_bytes")),
    figure("save_staged_bytes", "staged", Form::Gibibytes, true, |c| c.of("save_staged_bytes")),
    figure("save_written_bytes", "written", Form::Gibibytes, true, |c| c.of("save_written_bytes")),
    figure("ranks", "ranks", Form::Number, false, |c| c.of("ranks")),
    figure("under_way", "under way", Form::Number, true, |c| c.of("under_way")),
];

fn rate(change: &crate::metric::Change) -> Option<f64> {
    change.rate("written_bytes")
}

pub(super) const PROBE: Probe = Probe {
    name: "checkpoint",
    title: "Checkpoints",
    source: "live pages of gpuio.checkpoint",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: both(rate),
    most: usize::MAX,
    rank: None,
    read,
};

#[expect(clippy::unnecessary_wraps, reason = "the form of all probes: without saves there is none")]
fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let mut seen = HashSet::new();
    let running = process::programs(eye);
    Ok(running.into_iter().filter_map(|found| reading(found, &mut seen)).collect())
}

fn reading(found: Found, seen: &mut HashSet<String>) -> Option<Reading> {
    let page = found.page.ok()?;
    let saves = page.saves?;
    let (above, own) = saves.directory.rsplit_once('/')?;
    let mut name = if above.is_empty() { "/".to_owned() } else { above.to_owned() };
    if saves.ranks > 1 {
        name.push_str(&format!(" rank {}", saves.rank));
    }
    // Labels of OpenMetrics are unique.
    if !seen.insert(name.clone()) {
        name.push_str(&format!(" process {}", page.pid));
    }
    let values = [
        saves.all_staged,
        saves.all_written,
        saves.bytes,
        saves.staged,
        saves.written,
        saves.ranks,
        saves.under_way,
    ];
    let about = saves.words(own);
    let identity = page.start_ticks;
    Some(Reading { identity, about, ..Reading::new(name, values.map(Some).to_vec()) })
}
