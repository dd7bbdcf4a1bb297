//! What cuFile counted of its own transfers: how many through host memory and how many past it.

use gpuio_cufile::{Counting, DirectionStats, Stats};
use gpuio_record::JobPlan;

use super::verdict::{Flow, LibraryRoute, Observed};
use super::{
    APART, EvidenceContext, EvidenceSource, EvidenceSourceEntry, NOT_APART, Observation, Share,
    Subject, by_library, on_gpu, size,
};

pub(super) const ENTRY: EvidenceSourceEntry = EvidenceSourceEntry {
    name: "cufile_stats",
    source: "cuFileGetStatsL3, transfers of this process by the way they took",
    first: |context| Box::new(CufileStats::begin(context)),
};

/// One entry per GPU of the machine, whether or not CUDA may use it.
const GPUS: &str = "proc/driver/nvidia/gpus";

struct CufileStats {
    /// Counts until the second reading.
    counting: Option<Counting>,
    before: Result<Stats, String>,
    after: Result<Stats, String>,
    /// Whether the machine has one GPU only.
    lone_gpu: bool,
}

impl CufileStats {
    fn begin(context: &EvidenceContext<'_>) -> CufileStats {
        let started = start(context);
        let lone_gpu = context.root.list(GPUS).is_ok_and(|gpus| gpus.len() == 1);
        let (counting, before) = match started {
            Ok((counting, stats)) => (Some(counting), Ok(stats)),
            Err(why) => (None, Err(why)),
        };
        CufileStats { counting, before, after: Err("it was not read again".to_owned()), lone_gpu }
    }

    fn moved(&self, flow: Flow) -> Result<DirectionStats, String> {
        let (before, after) = (self.before.as_ref(), self.after.as_ref());
        let (before, after) = (before.map_err(String::clone)?, after.map_err(String::clone)?);
        let read = flow == Flow::Read;
        let moved = before.total(read).until(&after.total(read));
        moved.ok_or_else(|| "its counts were reset during the run".to_owned())
    }

    /// Whether nothing but this GPU's memory lies past host memory: cuFile has no other GPU to go
    /// through, and need not go through a buffer of its own where memory is registered.
    fn straight(&self, job: &JobPlan) -> bool {
        self.lone_gpu && job.register_buffer == Some(true)
    }
}

/// Has the library count, for groups that have a path of its own.
fn start(context: &EvidenceContext<'_>) -> Result<(Counting, Stats), String> {
    if !context.jobs.iter().any(by_library) {
        return Err("no path of this group uses cuFile".to_owned());
    }
    let driver = context.cufile.ok_or("cuFile is not open")?;
    let counting = Counting::start(driver).map_err(|absent| absent.to_string())?;
    let stats = counting.read().map_err(|absent| absent.to_string())?;
    Ok((counting, stats))
}

fn reading(stats: &Stats, flow: Flow) -> String {
    let total = stats.total(flow == Flow::Read);
    let DirectionStats { bytes, all, p2p, nvidia_fs, posix, .. } = total;
    format!("n={all} posix={posix} nvfs={nvidia_fs} p2p={p2p} bytes={bytes}")
}

impl EvidenceSource for CufileStats {
    fn again(&mut self, _root: &gpuio_host::Root) {
        if let Some(counting) = self.counting.take() {
            self.after = counting.read().map_err(|absent| absent.to_string());
        }
    }

    fn observe(&self, subject: &Subject<'_>) -> Observation {
        if !by_library(subject.job()) {
            return Observation::none("this path does not use cuFile");
        }
        let moved = match self.moved(subject.flow) {
            Ok(moved) => moved,
            Err(why) => return Observation::none(why),
        };
        let library = |at: usize| by_library(&subject.jobs[at]);
        let (of, share) = subject.share(moved.bytes, library);
        let straight = self.straight(subject.job());
        let (observed, why) = match (share, on_gpu(subject.job())) {
            (Some(Share::All), true) if !APART && moved.posix > 0 => {
                (Observed::Nothing, NOT_APART.to_owned())
            }
            (Some(Share::All), true) => tell(&moved, straight),
            (Some(Share::All), false) => {
                (Observed::Nothing, "the bytes were requested in host memory".to_owned())
            }
            _ => {
                let (counted, of) = (size(moved.bytes), size(of));
                (Observed::Nothing, format!("it counted {counted} of {of}: not these bytes alone"))
            }
        };
        let text = |stats: &Result<Stats, String>| {
            stats.as_ref().ok().map(|stats| reading(stats, subject.flow))
        };
        Observation {
            before: text(&self.before),
            after: text(&self.after),
            moved: Some(moved.bytes),
            of: Some(of),
            observed,
            why,
        }
    }
}

/// What counts of all transfers say. A large transfer counts as several of one kind.
fn tell(moved: &DirectionStats, straight: bool) -> (Observed, String) {
    let DirectionStats { all, p2p, nvidia_fs, posix, .. } = *moved;
    let past = nvidia_fs.saturating_add(p2p);
    let told = match (posix, past) {
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
    match told {
        Some((told, how)) => (Observed::Library(told), format!("all {all} transfers {how}")),
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
mod test {
    use super::*;

    fn told(all: u64, posix: u64, nvidia_fs: u64, p2p: u64) -> Observed {
        tell(&DirectionStats { all, posix, nvidia_fs, p2p, ..DirectionStats::default() }, false).0
    }

    #[test]
    fn counts_tell_only_where_every_transfer_has_a_kind() {
        assert_eq!(told(8, 8, 0, 0), Observed::Library(LibraryRoute::Host));
        assert_eq!(told(8, 0, 8, 0), Observed::Library(LibraryRoute::Past { straight: false }));
        assert_eq!(told(8, 0, 3, 5), Observed::Library(LibraryRoute::Past { straight: false }));
        assert_eq!(told(8, 1, 7, 0), Observed::Library(LibraryRoute::Both));
        for (all, posix, nvidia_fs) in [(0, 0, 0), (8, 7, 0), (8, 0, 7), (8, 8, 1), (8, 9, 0)] {
            assert_eq!(
                told(all, posix, nvidia_fs, 0),
                Observed::Nothing,
                "{all} {posix} {nvidia_fs}"
            );
        }
    }

    #[test]
    fn one_gpu_and_registered_memory_leave_no_other_way() {
        let moved = DirectionStats { all: 4, p2p: 4, ..DirectionStats::default() };
        assert_eq!(tell(&moved, true).0, Observed::Library(LibraryRoute::Past { straight: true }));
    }
}
