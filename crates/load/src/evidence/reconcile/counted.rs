//! The counts of devices in the window of a group.

use gpuio_base::stat::LiveTotals;
use gpuio_record::facts::{BlockKind, IoLimit, Machine};
use gpuio_record::{ProcessorTime, StorageReading, WatchedGroup};
use gpuio_watch::{Change, Interval, way_to};

use crate::evidence::pcie_meter::{self, Links};

/// Counts of the devices below a group of jobs. Devices that could not be counted are not in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Counted {
    /// Time between the two readings.
    pub(crate) seconds: f64,
    pub(crate) block: Vec<Block>,
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) links: Vec<Link>,
    /// Time of the processors; absent where it could not be read.
    pub(crate) cpu: Option<ProcessorTime>,
    /// Storage in the window; absent where that began with the first I/O, since the results have
    /// it then.
    pub(crate) in_window: Option<InWindow>,
    /// Limits of this process's control group on the devices below the files.
    pub(crate) limits: Vec<IoLimit>,
}

/// Storage from a window's begin, at which I/Os were under way, to its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct InWindow {
    /// The amounts that each job had moved before.
    pub(crate) moved_before: Vec<LiveTotals>,
    /// Bytes that the process caused to be read and written.
    pub(crate) process: Option<[u64; 2]>,
    /// The devices right under the files.
    pub(crate) storage: Vec<StorageReading>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Block {
    pub(crate) name: String,
    /// Its kind, where the machine's facts have it.
    pub(crate) kind: Option<BlockKind>,
    /// Level of an array (`raid0`), maker of a volume (`LVM`, `mpath`).
    pub(crate) level: Option<String>,
    /// How paths to it are chosen.
    pub(crate) policy: Option<String>,
    /// Devices right below.
    pub(crate) made_of: Vec<String>,
    pub(crate) read_bytes: f64,
    pub(crate) written_bytes: f64,
    /// Requests in flight on average.
    pub(crate) queue: Option<f64>,
}

impl Block {
    pub(crate) fn bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }

    /// The device to which it is one of several paths (NVMe).
    pub(crate) fn way_to(&self) -> Option<String> {
        way_to(&self.name)
    }
}

/// A GPU's PCIe link.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Gpu {
    /// NVML's number.
    pub(crate) index: u32,
    pub(crate) uuid: Option<String>,
    pub(crate) received_per_s: f64,
    pub(crate) sent_per_s: f64,
    /// Whether the rates are the mean of samples of 20 ms, and not of the whole time.
    pub(crate) sampled: bool,
}

/// The route to an NFS server: an interface with its RDMA ports.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Link {
    pub(crate) name: String,
    /// Bytes that came and went, at the interface or at its RDMA ports, whichever is more: RDMA
    /// passes the interface's counters by.
    pub(crate) received_bytes: f64,
    pub(crate) sent_bytes: f64,
    /// Bytes that the client counted on the mounts over it (`/proc/self/mountstats`).
    pub(crate) nfs_read_bytes: f64,
    pub(crate) nfs_written_bytes: f64,
}

impl Counted {
    /// The counts between the snapshots, with the machine's facts of their devices. `metered` has
    /// the counters of the jobs' GPUs, added up by the PCIe meter.
    pub(crate) fn of(
        whole: &Interval,
        series: &WatchedGroup,
        machine: &Machine,
        metered: Option<&Links>,
    ) -> Counted {
        let gpu = |row| gpu(row, whole.seconds, series, machine, metered);
        Counted {
            seconds: whole.seconds,
            block: changes(whole, "block").filter_map(|row| block(row, machine)).collect(),
            gpus: changes(whole, "gpu").filter_map(gpu).collect(),
            links: links(whole, machine),
            cpu: None,
            in_window: None,
            limits: Vec::new(),
        }
    }

    pub(crate) fn block(&self, name: &str) -> Option<&Block> {
        self.block.iter().find(|device| device.name == name)
    }
}

fn changes<'i>(
    whole: &'i Interval,
    probe: &str,
) -> impl Iterator<Item = (&'i str, &'i Change)> + use<'i> {
    let rows = whole.table(probe).into_iter().flat_map(|table| &table.rows);
    rows.filter_map(|row| Some((row.name.as_str(), row.change.as_ref()?)))
}

fn block((name, change): (&str, &Change), machine: &Machine) -> Option<Block> {
    let facts = machine.block.iter().find(|device| device.facts.name == name);
    let level = facts.and_then(|device| {
        let array = device.array.as_ref().and_then(|array| array.level.clone());
        array.or_else(|| device.mapper.clone())
    });
    Some(Block {
        name: name.to_owned(),
        kind: facts.map(|device| device.facts.kind),
        level,
        policy: facts.and_then(|device| device.nvme.as_ref()?.policy.clone()),
        made_of: facts.map(|device| device.made_of.clone()).unwrap_or_default(),
        read_bytes: change.of("read_bytes")?,
        written_bytes: change.of("written_bytes")?,
        queue: change.rate("queue_seconds"),
    })
}

fn gpu(
    (name, change): (&str, &Change),
    seconds: f64,
    series: &WatchedGroup,
    machine: &Machine,
    metered: Option<&Links>,
) -> Option<Gpu> {
    let index: u32 = name.strip_prefix("GPU")?.parse().ok()?;
    let facts = machine.gpus.iter().find(|gpu| gpu.index.known() == Some(&index));
    let uuid = facts.and_then(|gpu| gpu.uuid.known().cloned());
    let by_meter = uuid.as_ref().and_then(|uuid| pcie_meter::rates(metered?, uuid, seconds));
    let counted =
        by_meter.or_else(|| change.rate("pcie_received_bytes").zip(change.rate("pcie_sent_bytes")));
    let mean = |key| mean(series, name, key);
    let sampled = mean("pcie_received_bytes_per_second").zip(mean("pcie_sent_bytes_per_second"));
    let (received_per_s, sent_per_s) = counted.or(sampled)?;
    Some(Gpu { index, uuid, received_per_s, sent_per_s, sampled: counted.is_none() })
}

/// The mean of a GPU's samples. The last was taken when the jobs were done, so it is left out.
fn mean(series: &WatchedGroup, gpu: &str, key: &str) -> Option<f64> {
    let device = series.devices.iter().find(|one| one.probe == "gpu" && one.device == gpu)?;
    let values = &device.figures.iter().find(|figure| figure.key == key)?.values;
    let during: Vec<f64> = values.iter().rev().skip(1).filter_map(|value| *value).collect();
    let count = during.len() as f64;
    (count > 0.0).then(|| during.iter().sum::<f64>() / count)
}

/// The interfaces to the servers of the mounts that were watched.
fn links(whole: &Interval, machine: &Machine) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for (mount, change) in changes(whole, "nfs") {
        let facts = machine.mounts.iter().filter(|one| one.mount.mount_point == mount);
        let nfs = facts.filter_map(|one| one.nfs.as_ref()).next_back();
        let (Some(name), Some(read), Some(written)) = (
            nfs.and_then(|nfs| nfs.interface.known()),
            change.of("read_bytes"),
            change.of("written_bytes"),
        ) else {
            continue;
        };
        let place = links.iter().position(|link| link.name == *name);
        let link = match place {
            Some(place) => &mut links[place],
            None => {
                let Some(link) = link(whole, machine, name) else { continue };
                links.push(link);
                let last = links.len() - 1;
                &mut links[last]
            }
        };
        link.nfs_read_bytes += read;
        link.nfs_written_bytes += written;
    }
    links
}

fn link(whole: &Interval, machine: &Machine, name: &str) -> Option<Link> {
    let both = |change: &Change| change.of("received_bytes").zip(change.of("sent_bytes"));
    let has = |nic: &&gpuio_record::facts::NicFacts| {
        nic.interfaces.iter().any(|interface| interface.name == name)
    };
    let rdma: Vec<&str> = machine
        .nics
        .iter()
        .filter(has)
        .flat_map(|nic| &nic.rdma)
        .map(|device| device.name.as_str())
        .collect();
    let own = changes(whole, "interface").find(|(one, _)| *one == name);
    let own = own.and_then(|(_, change)| both(change));
    let ports = changes(whole, "rdma")
        .filter(|(port, _)| port.split('/').next().is_some_and(|device| rdma.contains(&device)));
    let mut ported = None;
    for (received, sent) in ports.filter_map(|(_, change)| both(change)) {
        let (so_far, and_sent) = ported.unwrap_or((0.0, 0.0));
        ported = Some((so_far + received, and_sent + sent));
    }
    let none = (0.0, 0.0);
    let ((received, sent), (by_port, sent_by_port)) = match (own, ported) {
        (None, None) => return None,
        (own, ported) => (own.unwrap_or(none), ported.unwrap_or(none)),
    };
    Some(Link {
        name: name.to_owned(),
        received_bytes: f64::max(received, by_port),
        sent_bytes: f64::max(sent, sent_by_port),
        ..Link::default()
    })
}
