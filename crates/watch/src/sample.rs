//! Raw samples.

use std::collections::{HashMap, HashSet};

use gpuio_drivers::nvml::Library;
use gpuio_host::Root;
use gpuio_record::facts::NumaNode;

use crate::counters::Counters;
use crate::probe::{Eye, PROBES, Reading};
use crate::select::Selection;

/// All readings of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// When, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// Readings per probe in the order of [`PROBES`], or why there are none.
    pub probes: Vec<Result<Vec<Reading>, String>>,
}

/// Reads samples. Belongs to one thread at a time; a sample takes from half a millisecond to a few
/// milliseconds.
#[derive(Debug)]
pub struct Watcher {
    eye: Eye,
    selection: Selection,
}

impl Watcher {
    /// A watcher of what is selected. On the running system it starts NVML where GPUs are, which
    /// may take a second, and asks a host engine of DCGM that runs there for profiling fields.
    pub fn new(root: Root, nodes: Vec<NumaNode>, selection: Selection) -> Watcher {
        let gpus = if !selection.wants_probe("gpu") {
            Err("left out".to_owned())
        } else if root.is_live() {
            Library::load().map_err(|absent| absent.to_string())
        } else {
            Err("a copy of kernel files has no GPU to query".to_owned())
        };
        // Its counters run in the GPUs: not for a table that stays empty.
        let profiles =
            (selection.wants_probe("gpu_profile") && selection.wants_gpus()).then(|| {
                if !root.is_live() {
                    return Err("a copy of kernel files has no host engine".to_owned());
                }
                gpuio_drivers::dcgm::Engine::connect().map_err(|absent| absent.to_string())
            });
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        let eye = Eye {
            stat_files: selection.stat_files(&root),
            root,
            gpus,
            profiles,
            nodes,
            kernels_own: HashSet::new(),
            child_faults: HashMap::new(),
            counters: Counters::default(),
            ticks_per_second,
        };
        Watcher { eye, selection }
    }

    /// Watches another tree from now on: for tests that hold two snapshots.
    pub fn look_at(&mut self, root: Root) {
        self.eye.root = root;
    }

    #[must_use]
    pub fn sample(&mut self) -> Sample {
        self.sample_at(now_ns())
    }

    /// A sample with this moment as its time.
    #[must_use]
    pub fn sample_at(&mut self, at_ns: u64) -> Sample {
        self.eye.counters = Counters::default();
        let probes = PROBES.iter().map(|probe| {
            if !self.selection.wants_probe(probe.name) {
                return Err("left out".to_owned());
            }
            let mut readings = (probe.read)(&mut self.eye)?;
            readings.retain(|reading| self.selection.wants(probe.name, reading));
            Ok(readings)
        });
        Sample { at_ns, probes: probes.collect() }
    }

    /// The counters that the last sample was made of. Those of nvidia-fs are read now if its probe
    /// was left out.
    #[must_use]
    pub fn counters(&mut self) -> Counters {
        self.eye.counters.nvidia_fs(&self.eye.root);
        self.eye.counters.clone()
    }
}

/// Nanoseconds of the monotonic clock (clock_gettime(2)).
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}
