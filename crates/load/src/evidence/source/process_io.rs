//! The I/O that this process caused at storage: `/proc/self/io` (proc_pid_io(5), Linux 2.6.20).

use super::{JobFlow, Observation, Source, size};
use crate::evidence::group::Flow;
use crate::evidence::layout::Kept;
use crate::evidence::verdict::{Observed, Share};

pub(super) const SOURCE: Source =
    Source { name: "process_io", source: "/proc/self/io, read_bytes and write_bytes", observe };

const ELSEWHERE: &str = "files lie on ";
const UNCOUNTED: &str = ", which may move bytes past this counter";

/// The file system that a reason of this source names.
pub(super) fn elsewhere(why: &str) -> Option<&str> {
    why.strip_prefix(ELSEWHERE)?.strip_suffix(UNCOUNTED)
}

fn observe(one: &JobFlow<'_>) -> Observation {
    let (before, after) = match (&one.readings.before.process, &one.readings.after.process) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(why), _) | (_, Err(why)) => return Observation::none(why),
    };
    let moved = before.delta(after);
    let (name, first, second, moved) = match one.flow {
        Flow::Read => (
            "read_bytes",
            before.total.storage_read_bytes,
            after.total.storage_read_bytes,
            moved.storage_read_bytes,
        ),
        Flow::Write => (
            "write_bytes",
            before.total.storage_write_bytes,
            after.total.storage_write_bytes,
            moved.storage_write_bytes,
        ),
    };
    let (of, share) = one.share(moved, |_| true);
    let (observed, why) = interpret(one, moved, of, share);
    Observation {
        before: Some(format!("{name} {first}")),
        after: Some(format!("{name} {second}")),
        moved: Some(moved),
        of: Some(of),
        observed,
        why,
    }
}

fn interpret(one: &JobFlow<'_>, moved: u64, of: u64, share: Option<Share>) -> (Observed, String) {
    let (moved, of) = (size(moved), size(of));
    if one.flow == Flow::Write && one.result().passes_page_cache(one.job()) {
        let why = "writes to the page cache count here when pages are dirtied, not when \
                   storage has them";
        return (Observed::Nothing, why.to_owned());
    }
    let Some(share) = share else {
        return (Observed::Nothing, format!("{moved} of {of} leaves this job's part open"));
    };
    let kept = &one.layout().kept;
    // A file system that fetches bytes by other means than the block layer or NFS need not
    // count them here: a small figure then proves nothing.
    if let (Kept::Elsewhere(what), Share::Part | Share::Little) = (kept, share)
        && what != "overlay"
    {
        let why = format!("{ELSEWHERE}{what}{UNCOUNTED}");
        return (Observed::Nothing, why);
    }
    let why = format!("storage moved {moved} for this process, which moved {of}");
    (Observed::Storage(share), why)
}
