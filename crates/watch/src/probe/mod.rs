//! Kinds of devices, one file each.

mod block;
mod checkpoint;
mod cpu;
mod gpu;
mod gpu_profile;
mod interface;
mod nfs;
mod nvidia_fs;
mod page_cache;
mod process;
mod rdma;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use gpuio_drivers::nvml::Library;
use gpuio_host::Root;
use gpuio_record::facts::NumaNode;

use crate::counters::Counters;
use crate::metric::{Change, Figure, Form, Metric, heading};

/// A kind of device.
#[derive(Debug)]
pub struct Probe {
    /// Name in JSON and of OpenMetrics' families: `block`.
    pub name: &'static str,
    /// Name on the screen.
    pub title: &'static str,
    /// Where the numbers come from.
    pub source: &'static str,
    /// The metrics that are read of each device.
    pub metrics: &'static [Metric],
    pub figures: &'static [Figure],
    /// The trend in the history of each device.
    pub trend: Option<Trend>,
    /// At most so many devices are shown, those of the highest rank.
    pub most: usize,
    /// The rank; the first figure where there is none.
    pub rank: Option<fn(&Change) -> Option<f64>>,
    /// Reads all devices of the kind; a reason where there can be none.
    pub read: fn(&mut Eye) -> Result<Vec<Reading>, String>,
}

/// One number that sums up what a device does, for its history.
#[derive(Debug, Clone, Copy)]
pub struct Trend {
    /// Its unit, as headings have it.
    pub heading: &'static str,
    /// How it is shown.
    pub form: Form,
    /// The number; `None` where it is not known.
    pub of: fn(&Change) -> Option<f64>,
}

impl Trend {
    /// Its heading as it is shown.
    pub fn title(&self) -> Cow<'static, str> {
        heading(self.heading)
    }
}

/// Bytes per second in both directions, by the names of two counters.
pub(crate) const fn both(of: fn(&Change) -> Option<f64>) -> Option<Trend> {
    Some(Trend { heading: "MiB/s", form: Form::Mebibytes, of })
}

/// The table of probes, in the order of the screen.
pub const PROBES: [Probe; 12] = [
    block::PROBE,
    gpu::PROBE,
    gpu_profile::PROBE,
    interface::PROBE,
    rdma::PROBE,
    nfs::PROBE,
    nvidia_fs::PROBE,
    nvidia_fs::GPUS,
    page_cache::PROBE,
    cpu::PROBE,
    checkpoint::PROBE,
    process::PROBE,
];

/// The values of one device's metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The device, by the name that users know.
    pub name: String,
    /// A number that tells it from another of the same name, such as a process's start; 0 where
    /// nothing does.
    pub identity: u64,
    /// Raw numbers in the order of the probe's metrics.
    pub values: Vec<Option<u64>>,
    /// Words on it, such as the GPUs that a process uses; empty where there are none.
    pub about: String,
}

impl Reading {
    pub(crate) fn new(name: impl Into<String>, values: Vec<Option<u64>>) -> Reading {
        Reading { name: name.into(), identity: 0, values, about: String::new() }
    }
}

/// The inputs and the state of all probes.
#[derive(Debug)]
pub struct Eye {
    /// Where kernel files are.
    pub root: Root,
    /// NVML, or why there is none.
    pub gpus: Result<Library, String>,
    /// DCGM's host engine, or why there is none; `None` where no GPU is wanted.
    pub profiles: Option<Result<gpuio_drivers::dcgm::Engine, String>>,
    /// Nodes with their processors: the groups that CPU time is shown by.
    pub nodes: Vec<NumaNode>,
    /// Numbers of the kernel's own threads, which are not looked at again.
    pub kernels_own: HashSet<u32>,
    /// Page faults of ended children, by the number of their parent and when that began, as of the
    /// last sample.
    pub child_faults: HashMap<(u32, u64), u64>,
    /// The counters that were read for the sample that is being taken.
    pub counters: Counters,
    /// Names of the block devices that are read from their own `stat` files; `None` for all, from
    /// `/proc/diskstats`.
    pub stat_files: Option<Vec<String>>,
    /// Ticks per second of processor time.
    pub ticks_per_second: u64,
}

impl Eye {
    /// Ticks in milliseconds.
    pub(crate) fn milliseconds(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(1000) / self.ticks_per_second.max(1)
    }
}
