//! Pages as JSON: `docs/stats.md` names the fields. An unknown value is `null`.

use gpuio_base::stat::Percentile;
use serde_json::{Map, Value, json};

use super::{PERCENTILES, Shown, class_name, per_second};
use crate::page::bucket::SIZES;
use crate::page::layout::VERSION;
use crate::page::snapshot::{Counts, Library, LibraryCounts, LibraryGpu, PathCounters, Saves};

/// One page at this level: 1 totals, 2 also sizes, 3 also paths.
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
        "files_opened": snapshot.files_opened(),
        "threads": total.threads,
        "slots": total.slots,
        "in_flight": total.in_flight,
        "seconds": total.seconds(),
        "read": side(&total.read, total.seconds(), level),
        "write": side(&total.write, total.seconds(), level),
    });
    if let Some(saves) = &snapshot.saves {
        (page["read"], page["write"]) = (Value::Null, Value::Null);
        page["saves"] = of_saves(saves, shown.rate_now());
    } else if let Some(earlier) = shown.earlier {
        let then = earlier.snapshot.total();
        let seconds = Some(earlier.seconds);
        page["last"] = json!({
            "seconds": earlier.seconds,
            "read": side(&total.read.since(&then.read), seconds, level),
            "write": side(&total.write.since(&then.write), seconds, level),
        });
    }
    if level >= 3 {
        page["ways"] = snapshot.paths.iter().map(one_path).collect();
        page["library"] = snapshot.library.as_ref().map(of_library).into();
    }
    page
}

fn of_saves(saves: &Saves, rate: Option<f64>) -> Value {
    json!({
        "directory": saves.directory,
        "state": saves.state(),
        "error": Some(&saves.error).filter(|error| !error.is_empty()),
        "rank": saves.rank,
        "ranks": saves.ranks,
        "under_way": saves.under_way,
        "bytes": saves.bytes,
        "staged_bytes": saves.staged,
        "written_bytes": saves.written,
        "all_staged_bytes": saves.all_staged,
        "all_written_bytes": saves.all_written,
        "written_bytes_per_s": rate,
    })
}

fn of_library(library: &Library) -> Value {
    let side = |of: &LibraryCounts| {
        json!({
            "pieces": of.all,
            "nvidia_fs": of.nvidia_fs,
            "p2p": of.p2p,
            "posix": of.posix,
            "by_another_gpu": of.routed,
            "unaligned": of.unaligned,
            "failed": of.failed,
        })
    };
    let gpu = |gpu: &LibraryGpu| {
        json!({
            "gpu": gpu.gpu,
            "read": side(&gpu.read),
            "write": side(&gpu.write),
            "sparse": gpu.sparse,
            "inline": gpu.inline,
            "registered": gpu.registered,
            "register_failed": gpu.register_failed,
            "freed": gpu.freed,
            "registered_bytes": gpu.registered_bytes,
        })
    };
    json!({
        "release": format!("{}.{}", library.version.0, library.version.1),
        "absent": library.why_absent(),
        "gpus": library.gpus.iter().map(gpu).collect::<Vec<_>>(),
        "not_given": Library::NOT_GIVEN,
    })
}

fn one_path(counters: &PathCounters) -> Value {
    json!({
        "gpu": counters.gpu,
        "pci": Some(&counters.pci).filter(|pci| !pci.is_empty()),
        "path": counters.path,
        "engine": counters.engine,
        "threads": counters.threads,
        "files_opened": counters.files,
        "registered": counters.registered,
        "slots": counters.slots,
        "in_flight": counters.in_flight,
        "seconds": counters.seconds(),
        "read": side(&counters.read, counters.seconds(), 3),
        "write": side(&counters.write, counters.seconds(), 3),
    })
}

fn side(side: &Counts, seconds: Option<f64>, level: u8) -> Value {
    let ios = side.ios();
    let mut latency = Map::from_iter([("mean".to_owned(), json!(side.mean_ns()))]);
    let of = |at: &Percentile| (at.key(), json!(side.percentile_ns(*at)));
    latency.extend(PERCENTILES.iter().map(of));
    let mut all = json!({
        "ios": ios,
        "bytes": side.bytes,
        "failed": side.failed,
        "unaligned": side.unaligned,
        "bytes_per_s": per_second(side.bytes, seconds),
        "iops": per_second(ios, seconds),
        "latency_ns": latency,
    });
    if level >= 2 {
        let class = |class: usize| json!({ "size": class_name(class), "ios": side.sizes[class] });
        all["sizes"] = (0..SIZES).map(class).collect();
    }
    all
}
