//! The counts of cuFile's own transfers: how many through host memory and how many past it.

use gpuio_drivers::cufile::{DirectionStats, Stats};

use super::{JobFlow, Observation, Source, size};
use crate::evidence::group::{APART, Flow, NOT_APART, by_foreign_library, on_gpu};
use crate::evidence::snapshot::Readings;
use crate::evidence::verdict::{LibraryRoute, Observed, Share};

pub(super) const SOURCE: Source = Source {
    name: "cufile_stats",
    source: "cuFileGetStatsL3, transfers of this process by path",
    observe,
};

fn moved(readings: &Readings, flow: Flow) -> Result<DirectionStats, String> {
    let stats = |one: &Result<Stats, String>| one.as_ref().map_err(String::clone).cloned();
    let (before, after) = (stats(&readings.before.cufile)?, stats(&readings.after.cufile)?);
    let read = flow == Flow::Read;
    let moved = before.total(read).until(&after.total(read));
    moved.ok_or_else(|| "its counts were reset during the run".to_owned())
}

fn reading(stats: &Stats, flow: Flow) -> String {
    let total = stats.total(flow == Flow::Read);
    let DirectionStats { bytes, all, p2p, nvidia_fs, posix, .. } = total;
    format!("n={all} posix={posix} nvfs={nvidia_fs} p2p={p2p} bytes={bytes}")
}

/// The counts of a reading.
fn read(text: &str) -> Option<DirectionStats> {
    let of = |key: &str| {
        let word = text.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        word?.parse().ok()
    };
    Some(DirectionStats {
        all: of("n")?,
        posix: of("posix")?,
        nvidia_fs: of("nvfs")?,
        p2p: of("p2p")?,
        bytes: of("bytes")?,
        ..DirectionStats::default()
    })
}

/// The reason between two readings, of a job whose bytes are all that they count.
pub(super) fn reason(before: &str, after: &str) -> Option<String> {
    Some(route(&read(before)?.until(&read(after)?)?, false).1)
}

fn observe(one: &JobFlow<'_>) -> Observation {
    if !by_foreign_library(one.job()) {
        return Observation::none("this path does not use cuFile");
    }
    let moved = match moved(one.readings, one.flow) {
        Ok(moved) => moved,
        Err(why) => return Observation::none(why),
    };
    let library = |at: usize| by_foreign_library(&one.jobs[at]);
    let (of, share) = one.share(moved.bytes, library);
    // Where nothing but this GPU's memory lies past host memory: cuFile has no other GPU to go
    // through, and need not go through a buffer of its own where memory is registered.
    let straight = one.readings.layout.lone_gpu && one.job().register_buffer == Some(true);
    let (observed, why) = match (share, on_gpu(one.job())) {
        (Some(Share::All), true) if !APART && moved.posix > 0 => {
            (Observed::Nothing, NOT_APART.to_owned())
        }
        (Some(Share::All), true) => route(&moved, straight),
        (Some(Share::All), false) => {
            (Observed::Nothing, "the bytes were requested in host memory".to_owned())
        }
        _ => {
            let (counted, of) = (size(moved.bytes), size(of));
            (Observed::Nothing, format!("it counted {counted} of {of}: not these bytes alone"))
        }
    };
    let text =
        |stats: &Result<Stats, String>| stats.as_ref().ok().map(|stats| reading(stats, one.flow));
    Observation {
        before: text(&one.readings.before.cufile),
        after: text(&one.readings.after.cufile),
        moved: Some(moved.bytes),
        of: Some(of),
        observed,
        why,
    }
}

/// The conclusion from the counts of all transfers. A large transfer counts as several of one kind.
fn route(moved: &DirectionStats, straight: bool) -> (Observed, String) {
    let DirectionStats { all, p2p, nvidia_fs, posix, .. } = *moved;
    let past = nvidia_fs.saturating_add(p2p);
    let found = match (posix, past) {
        _ if all == 0 => None,
        (posix, 0) if posix == all => {
            Some((LibraryRoute::Host, "by POSIX calls: through host memory"))
        }
        (0, past) if past == all => {
            let how = if p2p == 0 {
                "by nvidia-fs"
            } else if nvidia_fs == 0 {
                "by peer-to-peer DMA"
            } else {
                "by nvidia-fs and peer-to-peer DMA"
            };
            Some((LibraryRoute::Past { straight }, how))
        }
        (1.., 1..) if posix.saturating_add(past) == all => {
            Some((LibraryRoute::Both, "some by POSIX calls, others past host memory"))
        }
        _ => None,
    };
    match found {
        Some((route, how)) => (Observed::Library(route), format!("all {all} transfers {how}")),
        None => {
            let text = format!(
                "of {all} transfers {posix} by POSIX calls and {past} past host memory: what the \
                 others are is not known"
            );
            (Observed::Nothing, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: u64, posix: u64, nvidia_fs: u64, p2p: u64) -> Observed {
        route(&DirectionStats { all, posix, nvidia_fs, p2p, ..DirectionStats::default() }, false).0
    }

    #[test]
    fn counts_show_a_route_only_where_every_transfer_has_a_kind() {
        assert_eq!(of(8, 8, 0, 0), Observed::Library(LibraryRoute::Host));
        assert_eq!(of(8, 0, 8, 0), Observed::Library(LibraryRoute::Past { straight: false }));
        assert_eq!(of(8, 0, 3, 5), Observed::Library(LibraryRoute::Past { straight: false }));
        assert_eq!(of(8, 1, 7, 0), Observed::Library(LibraryRoute::Both));
        for (all, posix, nvidia_fs) in [(0, 0, 0), (8, 7, 0), (8, 0, 7), (8, 8, 1), (8, 9, 0)] {
            assert_eq!(
                of(all, posix, nvidia_fs, 0),
                Observed::Nothing,
                "{all} {posix} {nvidia_fs}"
            );
        }
    }

    #[test]
    fn one_gpu_and_registered_memory_leave_no_other_way() {
        let moved = DirectionStats { all: 4, p2p: 4, ..DirectionStats::default() };
        assert_eq!(route(&moved, true).0, Observed::Library(LibraryRoute::Past { straight: true }));
    }
}
