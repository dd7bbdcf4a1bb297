//! Pages as JSON: `docs/stats.md` names the fields. What is not known is `null`.

use serde_json::{Value, json};

use super::{Shown, class_name, per_second};
use crate::bucket::SIZES;
use crate::layout::VERSION;
use crate::snapshot::{Counts, Way};

/// One page at this level: 1 totals, 2 also sizes, 3 also ways.
#[must_use]
pub fn value(shown: &Shown<'_>, level: u8) -> Value {
    let snapshot = shown.snapshot;
    let total = snapshot.total();
    let mut page = json!({
        "layout_version": VERSION,
        "pid": snapshot.pid,
        "uid": snapshot.uid,
        "user": shown.user,
        "program": snapshot.program,
        "release": snapshot.release,
        "command": shown.command,
        "since": shown.since,
        "state": shown.state(),
        "files_opened": total.files,
        "threads": total.threads,
        "slots": total.slots,
        "in_flight": total.in_flight,
        "seconds": total.seconds(),
        "read": side(&total.read, total.seconds(), level),
        "write": side(&total.write, total.seconds(), level),
    });
    if let Some(earlier) = shown.earlier {
        let then = earlier.snapshot.total();
        let seconds = Some(earlier.seconds);
        page["last"] = json!({
            "seconds": earlier.seconds,
            "read": side(&total.read.since(&then.read), seconds, level),
            "write": side(&total.write.since(&then.write), seconds, level),
        });
    }
    if level >= 3 {
        page["ways"] = snapshot.ways.iter().map(way).collect();
    }
    page
}

fn way(way: &Way) -> Value {
    json!({
        "gpu": way.gpu,
        "pci": Some(&way.pci).filter(|pci| !pci.is_empty()),
        "path": way.path,
        "engine": way.engine,
        "threads": way.threads,
        "files_opened": way.files,
        "registered": way.registered,
        "slots": way.slots,
        "in_flight": way.in_flight,
        "seconds": way.seconds(),
        "read": side(&way.read, way.seconds(), 3),
        "write": side(&way.write, way.seconds(), 3),
    })
}

fn side(side: &Counts, seconds: Option<f64>, level: u8) -> Value {
    let ios = side.ios();
    let at = |quantile| side.percentile_ns(quantile);
    let mut all = json!({
        "ios": ios,
        "bytes": side.bytes,
        "failed": side.failed,
        "unaligned": side.unaligned,
        "bytes_per_s": per_second(side.bytes, seconds),
        "iops": per_second(ios, seconds),
        "latency_ns": {
            "mean": side.mean_ns(),
            "p50": at(0.5),
            "p90": at(0.9),
            "p99": at(0.99),
            "p99_9": at(0.999),
        },
    });
    if level >= 2 {
        let class = |class: usize| json!({ "size": class_name(class), "ios": side.sizes[class] });
        all["sizes"] = (0..SIZES).map(class).collect();
    }
    all
}
