//! The route of a path on which the GPU reads and writes the page cache itself. Pure, as the
//! verdict that it is a part of.

use gpuio_record::{Route, Source};

use super::{DirectionVerdict, Flow, Observed, Requested, as_requested, memory};

/// The verdict. The source needs no other counter: pages that were pinned before the clock
/// started are in memory until it stops, and the GPU can reach nothing else. The bytes that storage
/// delivered meanwhile (`served`) are reported, since others may have caused them.
pub(super) fn verdict(
    requested: &Requested,
    all_observed: &[(&str, Observed)],
    served: &str,
) -> DirectionVerdict {
    let found = |wanted: Observed| all_observed.iter().any(|(_, observed)| *observed == wanted);
    let unknown = |why: &str| (Route::Unknown, Source::Unknown, why.to_owned());
    let (route, source, because) = if found(Observed::Reached(false)) {
        unknown("evidence disagrees: bytes completed, and the GPU's link carried next to none")
    } else if found(Observed::FromMapping(true)) {
        let gpu = memory(requested);
        let moved = match requested.flow {
            Flow::Read => format!("read all bytes into {gpu} straight from"),
            Flow::Write => format!("wrote all bytes of {gpu} straight into"),
        };
        let text = format!(
            "the GPU {moved} pinned page-cache pages: no gpuio buffer, no CPU copy; {served}"
        );
        (Route::Mapped, Source::PageCache, text)
    } else if found(Observed::FromMapping(false)) {
        unknown(match requested.flow {
            Flow::Read => "bytes completed that the GPU did not read out of the mapping",
            Flow::Write => {
                "bytes completed that the GPU did not write into the mapping, or into pages that \
                 are not known to be the file's"
            }
        })
    } else {
        unknown("gpuio itself moved no bytes")
    };
    let as_requested = as_requested(requested, route, source);
    DirectionVerdict { route, source, as_requested, because }
}
