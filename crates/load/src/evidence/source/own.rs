//! gpuio's own counters, leg by leg.

use gpuio_record::{
    DirectionResult, InitiatedResult, JobPlan, LibraryBytes, MappedResult, SegmentBytes, ViaResult,
};

use super::{JobFlow, Observation, Source, size};
use crate::evidence::group::{Flow, by_core};
use crate::evidence::verdict::{Observed, PathKind, Share};

/// Its counters begin at 0 with each job: no snapshot has them.
pub(super) const SOURCE: Source = Source {
    name: "own",
    source: "gpuio's counters at the engine's interface, and the I/Os that completed",
    observe,
};

fn observe(one: &JobFlow<'_>) -> Observation {
    if let Some(mapped) = &one.result().mapped {
        return of_mapping(mapped, one);
    }
    let completed: &DirectionResult = match one.flow {
        Flow::Read => &one.result().read,
        Flow::Write => &one.result().write,
    };
    let leg = one.bytes();
    let core = by_core(one.result(), one.flow);
    let gpu = match &core {
        // Its counters say which bytes crossed; how long that took it does not report.
        Some(core) => core.by_kernel_bytes + core.by_copy_bytes >= completed.bytes,
        None => completed.latency.as_ref().is_some_and(|latency| latency.gpu.is_some()),
    };
    let job: &JobPlan = one.job();
    let rings = one.result().initiated.filter(|_| completed.bytes > 0);
    let (observed, why) = if job.engine.actual == "null" {
        (Observed::Nothing, "engine null moves no bytes, so there is no path".to_owned())
    } else if completed.bytes == 0 {
        (Observed::Nothing, "no I/O completed".to_owned())
    } else if leg < completed.bytes {
        let why = format!(
            "{} completed, and only {} passed the file leg: the rest took another path",
            size(completed.bytes),
            size(leg)
        );
        (Observed::Legs { host: false, gpu }, why)
    } else {
        let legs = legs(PathKind::of(&job.path.choice.actual), gpu);
        (Observed::Legs { host: true, gpu }, legs.to_owned())
    };
    let (observed, why) = match &rings {
        Some(rings) => of_rings(rings, observed, &why),
        None => (observed, why),
    };
    Observation {
        before: Some("0 B".to_owned()),
        after: Some(after(leg, completed.bytes, core)),
        moved: Some(leg),
        of: Some(completed.bytes),
        observed,
        why,
    }
}

/// Whether the GPU started every I/O: the entries of its rings, by the operating system's count.
fn of_rings(found: &InitiatedResult, legs: Observed, why: &str) -> (Observed, String) {
    let InitiatedResult { entries, commands, rings } = *found;
    let words = format!(
        "the GPU started {entries} of {commands} I/Os (entries that the kernel completed in \
         {rings} rings, which nothing else writes); {why}"
    );
    let observed = match legs {
        Observed::Legs { gpu, .. } if entries < commands => Observed::Legs { host: false, gpu },
        legs => legs,
    };
    (observed, words)
}

/// The bytes that the GPU read out of mappings or wrote into them, compared with those that
/// completed; of what it wrote, whether the pages are still the files'.
fn of_mapping(mapped: &MappedResult, one: &JobFlow<'_>) -> Observation {
    let (completed, did, by_kernel, by_copy) = match one.flow {
        Flow::Read => {
            (one.result().read.bytes, "read", mapped.by_kernel_bytes, mapped.by_copy_bytes)
        }
        Flow::Write => {
            let by = (mapped.written_by_kernel_bytes, mapped.written_by_copy_bytes);
            (one.result().write.bytes, "wrote", by.0, by.1)
        }
    };
    let (moved, pinned) = (by_kernel + by_copy, size(mapped.pinned_bytes));
    let (observed, why) = if completed == 0 {
        (Observed::Nothing, "no I/O completed".to_owned())
    } else if moved < completed {
        let why = format!(
            "{} completed, and the GPU {did} only {} in the mapping",
            size(completed),
            size(moved)
        );
        (Observed::FromMapping(false), why)
    } else if one.flow == Flow::Read {
        let why = format!(
            "the GPU read every completed byte from {pinned} of pinned page cache; none went \
             through gpuio's buffers"
        );
        (Observed::FromMapping(true), why)
    } else {
        let kept = match mapped.lost_bytes {
            Some(0) => "all of it the files' until the end, by /proc/self/pagemap".to_owned(),
            Some(lost) => format!("of which the files may have lost {}", size(lost)),
            None => "and /proc/self/pagemap does not say whether the files kept it".to_owned(),
        };
        let why =
            format!("the GPU wrote every completed byte into {pinned} of pinned pages, {kept}");
        (Observed::FromMapping(mapped.lost_bytes == Some(0)), why)
    };
    let after = format!(
        "by kernel {}, by copy {}, completed {}",
        size(by_kernel),
        size(by_copy),
        size(completed)
    );
    Observation {
        before: Some("0 B".to_owned()),
        after: Some(after),
        moved: Some(moved),
        of: Some(completed),
        observed,
        why,
    }
}

/// The counters in words.
fn after(leg: u64, completed: u64, core: Option<LibraryBytes>) -> String {
    let legs = format!("file leg {}, completed {}", size(leg), size(completed));
    let Some(core) = core else { return legs };
    format!(
        "{legs}; page cache {}, O_DIRECT {}; to or from the GPU by kernel {}, by copy {}",
        size(core.cached_bytes),
        size(core.direct_bytes),
        size(core.by_kernel_bytes),
        size(core.by_copy_bytes)
    )
}

fn legs(way: PathKind, gpu: bool) -> &'static str {
    match (way, gpu) {
        (PathKind::User, false) => "all that completed passed the file leg, and there is no other",
        (PathKind::Ring | PathKind::Relay, true) => {
            "all that completed passed a buffer in host memory and a GPU copy"
        }
        (_, true) => "all that completed passed the file leg, and then a GPU copy",
        (_, false) => "all that completed passed the file leg, and no GPU copy was timed",
    }
}

/// The counts of a path through another GPU: those of the file leg's `bytes` that made both hops.
pub(super) fn relayed(via: &ViaResult, flow: Flow, bytes: u64) -> Observed {
    let SegmentBytes { host_near_bytes, near_far_bytes } = match flow {
        Flow::Read => via.read,
        Flow::Write => via.write,
    };
    let both = host_near_bytes.min(near_far_bytes);
    let share = if bytes == 0 {
        return Observed::Nothing;
    } else if both >= bytes - bytes / 10 {
        Share::All
    } else if both < bytes.div_ceil(20) {
        Share::Little
    } else {
        Share::Part
    };
    Observed::Relayed { gpu: via.gpu, share }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_less_than_commands_is_an_i_o_that_the_gpu_did_not_start() {
        let of = |entries| {
            let found = InitiatedResult { entries, commands: 9, rings: 2 };
            of_rings(&found, Observed::Legs { host: true, gpu: true }, "both legs")
        };
        let words = "the GPU started 9 of 9 I/Os (entries that the kernel completed in 2 rings, \
                     which nothing else writes); both legs";
        assert_eq!(of(9), (Observed::Legs { host: true, gpu: true }, words.to_owned()));
        assert_eq!(of(8).0, Observed::Legs { host: false, gpu: true });
    }

    #[test]
    fn all_bytes_have_to_have_made_both_hops() {
        let of = |host_near_bytes, near_far_bytes| {
            let read = SegmentBytes { host_near_bytes, near_far_bytes };
            relayed(&ViaResult { gpu: 3, read, ..ViaResult::default() }, Flow::Read, 1000)
        };
        let observed = |share| Observed::Relayed { gpu: 3, share };
        assert_eq!(of(1000, 1000), observed(Share::All));
        assert_eq!(of(1000, 899), observed(Share::Part));
        assert_eq!(of(1000, 0), observed(Share::Little));
        let unused = ViaResult { gpu: 3, ..ViaResult::default() };
        assert_eq!(relayed(&unused, Flow::Write, 0), Observed::Nothing);
    }

    #[test]
    fn the_core_is_shown_by_route() {
        let core = LibraryBytes {
            cached_bytes: 1 << 20,
            direct_bytes: 3 << 20,
            by_kernel_bytes: 4 << 20,
            by_copy_bytes: 0,
        };
        assert_eq!(
            after(4 << 20, 4 << 20, Some(core)),
            "file leg 4.00 MiB, completed 4.00 MiB; page cache 1.00 MiB, O_DIRECT 3.00 MiB; to or \
             from the GPU by kernel 4.00 MiB, by copy 0 B"
        );
    }
}
