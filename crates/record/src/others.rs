//! The part that others had in the work of drives and processors while jobs counted, in numbers:
//! warnings, marks and doubts about it follow from these.

use gpuio_base::units::{float, human_ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{OTHER_CPU_SHARE, WarningKind};

/// Fewer bytes are no finding: journals, logs and metadata of a machine at rest are a few MiB in a
/// minute.
pub const NOISE_BYTES: u64 = 4 << 20;
/// With more idle time than this share, a thread that wakes mostly finds a processor that is free,
/// which the kernel looks for.
const IDLE: f64 = 0.25;
/// Less time of processors is too few ticks: of 40, a share is known to about 8 %, and one of 10 %
/// is reported.
const LEAST_NS: u64 = 400_000_000;

/// The work of drives and processors, all programs together, and gpuio's part in it: from the
/// moment from which the first job of a group counted to the end of its last I/O. All jobs of the
/// group have the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OthersCounted {
    /// Time of the processors; absent where it could not be counted.
    pub processors: Option<ProcessorTime>,
    /// Bytes of the devices under the files, one entry for each direction in which gpuio's part is
    /// known.
    pub traffic: Vec<DeviceTraffic>,
}

/// The time of the processors that gpuio may use (`/proc/stat`, `/proc/self/stat`), and to whom it
/// went. The rest of it went to interrupts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessorTime {
    /// Processors that were online all the time.
    pub cpus: u32,
    /// All of their time, nanoseconds.
    pub all_ns: u64,
    /// The idle part.
    pub idle_ns: u64,
    /// The part of this process.
    pub ours_ns: u64,
    /// The part of other programs.
    pub programs_ns: u64,
    /// The part of the kernel that was not on behalf of this process.
    pub kernel_ns: u64,
    /// The part that the hypervisor gave to other virtual machines.
    pub stolen_ns: u64,
}

/// Bytes of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceTraffic {
    /// The device, or devices joined by `+`.
    pub device: String,
    /// `read` or `write`.
    pub direction: String,
    /// Bytes that this process moved or caused to be moved.
    pub ours_bytes: u64,
    /// Bytes that the device counted; of a partition, its whole disk, where that was counted.
    pub device_bytes: u64,
}

impl OthersCounted {
    /// Warnings that follow.
    pub fn warnings(&self) -> impl Iterator<Item = WarningKind> {
        // A tenth of what gpuio moved in both directions is what metadata, logs and the moments
        // between two readings make, and too little to slow it down.
        let both: u64 = self.traffic.iter().map(|one| one.ours_bytes).sum();
        let tolerated = (both / 10).max(NOISE_BYTES);
        let is_more =
            move |one: &&DeviceTraffic| one.device_bytes > one.ours_bytes.saturating_add(tolerated);
        let traffic = self.traffic.iter().filter(is_more).cloned();
        let traffic =
            traffic.map(|DeviceTraffic { device, direction, ours_bytes, device_bytes }| {
                WarningKind::OtherTraffic { device, direction, ours_bytes, device_bytes }
            });
        traffic.chain(self.processors.and_then(ProcessorTime::warning))
    }

    /// Why it is unknown whether others used the processors; `None` where it is known.
    pub fn processors_unknown(&self) -> Option<String> {
        let why = match self.processors {
            Some(time) if time.is_enough() => return None,
            Some(_) => format!(
                "the run was too short, less than {} of the CPUs' time",
                human_ns(float(LEAST_NS))
            ),
            None => "no time of the CPUs was counted in it".to_owned(),
        };
        Some(format!("whether others used the CPUs (other_cpu_time): {why}"))
    }
}

impl ProcessorTime {
    fn is_enough(self) -> bool {
        self.all_ns >= LEAST_NS
    }

    fn warning(self) -> Option<WarningKind> {
        let ProcessorTime { cpus, all_ns, idle_ns, ours_ns, programs_ns, kernel_ns, stolen_ns } =
            self;
        let share = |of: u64| float(of) / float(all_ns).max(1.0);
        let others = share(programs_ns.saturating_add(kernel_ns).saturating_add(stolen_ns));
        let warns = self.is_enough() && others >= OTHER_CPU_SHARE && share(idle_ns) <= IDLE;
        warns.then_some(WarningKind::OtherCpuTime {
            cpus,
            all_ns,
            ours_ns,
            programs_ns,
            kernel_ns,
            stolen_ns,
        })
    }
}
