//! NVIDIA GPUs as PCI and NVIDIA's kernel driver show them: `resource` of the PCI function and
//! `/proc/driver/nvidia/gpus/ADDRESS/information` (drivers 470 to 580). Facts that NVML knows
//! besides come in by [`merge`].

use gpuio_record::facts::{Bar1Facts, Fact, GpuFacts, PciFacts};

use crate::numa::normalize_pci;
use crate::parse::{field, keep};
use crate::{HostError, LineFault, Root};

const NVIDIA: u16 = 0x10de;
/// Base class of display controllers, 3D controllers without a display among them.
const DISPLAY: u32 = 0x03;
const ONLY_NVML: &str = "only NVML reports it";
const NO_DRIVER: &str = "NVIDIA's kernel driver shows no such GPU";
/// `IORESOURCE_MEM` of the flags in `resource`.
const MEMORY: u64 = 0x200;
/// Base address registers of a function; lines after them are the ROM and bridge windows.
const BARS: usize = 6;

/// The GPUs among `pci`, in its order. A value that cannot be understood goes to `problems`.
pub fn read(root: &Root, pci: &[PciFacts], problems: &mut Vec<HostError>) -> Vec<GpuFacts> {
    let is_gpu = |function: &&PciFacts| {
        function.vendor == Some(NVIDIA)
            && function.class.is_some_and(|class| class >> 16 == DISPLAY)
    };
    pci.iter().filter(is_gpu).map(|function| gpu(root, function, problems)).collect()
}

fn gpu(root: &Root, function: &PciFacts, problems: &mut Vec<HostError>) -> GpuFacts {
    let address = &function.address;
    let information = format!("proc/driver/nvidia/gpus/{address}/information");
    let information = keep(root.read(information), problems);
    let known = information.as_ref().map(|text| parse_information(&text.body)).unwrap_or_default();
    let resource = keep(root.read(format!("sys/bus/pci/devices/{address}/resource")), problems);
    let bar1 = resource.and_then(|text| keep(text.parse(parse_largest_bar), problems));
    GpuFacts {
        pci: Some(address.clone()),
        index: Fact::unknown(ONLY_NVML),
        minor: known.minor,
        name: Fact::or_unknown(known.name, NO_DRIVER),
        uuid: Fact::or_unknown(known.uuid, NO_DRIVER),
        node: function.node,
        bar1: Fact::or_unknown(
            bar1.map(|total_bytes| Bar1Facts { total_bytes, used_bytes: None }),
            "the kernel shows no memory of this PCI function",
        ),
        nvlinks: Fact::unknown(ONLY_NVML),
        c2c: Fact::unknown(ONLY_NVML),
        memory_node: None,
        near_nodes: Vec::new(),
        near_cpus: None,
        persistence: Fact::unknown(ONLY_NVML),
        pcie_now: Fact::unknown(ONLY_NVML),
        pcie_most: Fact::unknown(ONLY_NVML),
    }
}

/// Parses `/proc/driver/nvidia/version`: whether the kernel driver that is loaded is NVIDIA's open
/// one. Its first line names the `Open Kernel Module` or just the `Kernel Module` (drivers 515 to
/// 580); `None` for a text that names neither.
pub fn parse_is_open(text: &str) -> Option<bool> {
    let (_, line) = field(text, "NVRM version")?;
    line.contains("Kernel Module").then(|| line.contains("Open Kernel Module"))
}

/// The facts in the driver's `information`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Information {
    /// Product's name (`Model`).
    pub name: Option<String>,
    /// UUID; `None` while the driver has not started the GPU and prints question marks.
    pub uuid: Option<String>,
    /// Number of the node `/dev/nvidiaN`.
    pub minor: Option<u32>,
}

/// Parses `information`: lines of a name, a colon and a value.
pub fn parse_information(text: &str) -> Information {
    let value = |key: &str| {
        let (_, value) = field(text, key)?;
        (!value.is_empty() && !value.contains('?')).then(|| value.to_owned())
    };
    Information {
        name: value("Model"),
        uuid: value("GPU UUID"),
        minor: value("Device Minor").and_then(|minor| minor.parse().ok()),
    }
}

/// Size of the largest memory region of a function's `resource` file: start, end and flags in
/// hexadecimal, a line for each register. The largest of an NVIDIA GPU's is BAR1, the window to
/// its memory: the other two are 16 and 32 MiB.
///
/// # Errors
/// [`LineFault`] for the first line of another form.
pub fn parse_largest_bar(text: &str) -> Result<Option<u64>, LineFault> {
    let mut largest = None;
    for (index, line) in text.lines().take(BARS).enumerate() {
        let malformed = || LineFault::new(index, line, "start, end and flags in hexadecimal");
        let mut words = line.split_whitespace().map(|word| {
            let digits = word.strip_prefix("0x").ok_or_else(malformed)?;
            u64::from_str_radix(digits, 16).map_err(|_| malformed())
        });
        let mut next = || words.next().unwrap_or_else(|| Err(malformed()));
        let (start, end, flags) = (next()?, next()?, next()?);
        if flags & MEMORY != 0 && end > start {
            let size = (end - start).saturating_add(1);
            largest = largest.max(Some(size));
        }
    }
    Ok(largest)
}

/// Puts readings of a library or tool into `gpus`: what a reading knows stands, what it does not
/// stays as it was, and reasons of the reading replace ours. A GPU is identified by its PCI address
/// (in any spelling), else by UUID, else by index; one that is not there yet is added.
pub fn merge(gpus: &mut Vec<GpuFacts>, readings: Vec<GpuFacts>) {
    for mut reading in readings {
        reading.pci =
            reading.pci.as_deref().map(|pci| normalize_pci(pci).unwrap_or(pci.to_owned()));
        match gpus.iter_mut().find(|gpu| same(gpu, &reading)) {
            Some(gpu) => take(gpu, reading),
            None => gpus.push(reading),
        }
    }
    gpus.sort_by_cached_key(|gpu| (gpu.pci.is_none(), gpu.pci.clone(), gpu.index.known().copied()));
}

fn same(gpu: &GpuFacts, reading: &GpuFacts) -> bool {
    if gpu.pci.is_some() && reading.pci.is_some() {
        return gpu.pci == reading.pci;
    }
    if let (Some(ours), Some(theirs)) = (gpu.uuid.known(), reading.uuid.known()) {
        return ours == theirs;
    }
    gpu.index.known().is_some() && gpu.index.known() == reading.index.known()
}

fn take(gpu: &mut GpuFacts, reading: GpuFacts) {
    let GpuFacts {
        pci,
        index,
        minor,
        name,
        uuid,
        node,
        bar1,
        nvlinks,
        c2c,
        memory_node,
        near_nodes,
        near_cpus,
        persistence,
        pcie_now,
        pcie_most,
    } = reading;
    gpu.pci = pci.or(gpu.pci.take());
    gpu.minor = minor.or(gpu.minor);
    gpu.node = gpu.node.or(node);
    fact(&mut gpu.index, index);
    fact(&mut gpu.name, name);
    fact(&mut gpu.uuid, uuid);
    fact(&mut gpu.bar1, bar1);
    fact(&mut gpu.nvlinks, nvlinks);
    fact(&mut gpu.c2c, c2c);
    gpu.memory_node = memory_node.or(gpu.memory_node);
    if !near_nodes.is_empty() {
        gpu.near_nodes = near_nodes;
    }
    gpu.near_cpus = near_cpus.or(gpu.near_cpus.take());
    fact(&mut gpu.persistence, persistence);
    fact(&mut gpu.pcie_now, pcie_now);
    fact(&mut gpu.pcie_most, pcie_most);
}

fn fact<T: PartialEq>(ours: &mut Fact<T>, reading: Fact<T>) {
    let says_nothing =
        reading.known().is_none() && (ours.known().is_some() || reading == Fact::default());
    if !says_nothing {
        *ours = reading;
    }
}
