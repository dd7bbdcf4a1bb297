//! How the kernel was built: `/proc/config.gz` (with `CONFIG_IKCONFIG_PROC`), or the file that
//! distributions put into `/boot` or in the directory of the modules.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use gpuio_record::facts::{Fact, KernelConfig};

use crate::parse::keep;
use crate::{HostError, Root};

/// The options that decide what I/O can be had.
pub const OPTIONS: [&str; 33] = [
    "CONFIG_64BIT",
    "CONFIG_AIO",
    "CONFIG_AMD_IOMMU",
    "CONFIG_ARM_SMMU_V3",
    "CONFIG_BLK_DEV_MD",
    "CONFIG_BLK_DEV_NVME",
    "CONFIG_DEVICE_PRIVATE",
    "CONFIG_DMA_SHARED_BUFFER",
    "CONFIG_HMM_MIRROR",
    "CONFIG_HZ",
    "CONFIG_INFINIBAND",
    "CONFIG_INFINIBAND_ON_DEMAND_PAGING",
    "CONFIG_INTEL_IOMMU",
    "CONFIG_INTEL_IOMMU_DEFAULT_ON",
    "CONFIG_IOMMU_DEFAULT_DMA_LAZY",
    "CONFIG_IOMMU_DEFAULT_DMA_STRICT",
    "CONFIG_IOMMU_DEFAULT_PASSTHROUGH",
    "CONFIG_IO_URING",
    "CONFIG_MD_RAID0",
    "CONFIG_MEMORY_HOTPLUG",
    "CONFIG_MLX5_CORE",
    "CONFIG_NFS_V3",
    "CONFIG_NFS_V4",
    "CONFIG_NFS_V4_1",
    "CONFIG_NFS_V4_2",
    "CONFIG_NUMA",
    "CONFIG_NUMA_BALANCING",
    "CONFIG_NVME_MULTIPATH",
    "CONFIG_PCI_P2PDMA",
    "CONFIG_SUNRPC_XPRT_RDMA",
    "CONFIG_TRANSPARENT_HUGEPAGE",
    "CONFIG_VMD",
    "CONFIG_ZONE_DEVICE",
];

/// A kernel's configuration has about 300 kB: more is no configuration.
const MAX_BYTES: u64 = 8 << 20;

/// Reads the configuration of the kernel `release`. A line that cannot be understood goes to
/// `problems`.
pub fn read(root: &Root, release: Option<&str>, problems: &mut Vec<HostError>) -> KernelConfig {
    let release = release.unwrap_or_default();
    let plain = [
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
        format!("lib/modules/{release}/build/.config"),
    ];
    for file in plain.iter().filter(|_| !release.is_empty()) {
        if let Some(text) = keep(root.read(file), problems) {
            return found(file, &text.body);
        }
    }
    let packed = "proc/config.gz";
    match keep(root.read_bytes(packed), problems) {
        Some((_, bytes)) => match unpack(&bytes) {
            Ok(text) => found(packed, &text),
            Err(why) => none(format!("/{packed} can't be unpacked: {why}")),
        },
        None => none(format!(
            "neither /boot/config-{release} nor /lib/modules/{release}/config nor /{packed} is \
             there"
        )),
    }
}

fn none(why: String) -> KernelConfig {
    KernelConfig { source: Fact::Unknown(why), options: BTreeMap::new() }
}

fn found(file: &str, text: &str) -> KernelConfig {
    KernelConfig { source: Fact::Known(format!("/{file}")), options: parse_config(text) }
}

fn unpack(bytes: &[u8]) -> std::io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(bytes).take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The options that matter of a configuration file. Those it does not have are `n`: an option is
/// left out when what it depends on is off.
pub fn parse_config(text: &str) -> BTreeMap<String, String> {
    let mut options: BTreeMap<String, String> =
        OPTIONS.iter().map(|name| ((*name).to_owned(), "n".to_owned())).collect();
    for (name, value) in text.lines().filter_map(|line| line.trim().split_once('=')) {
        if let Some(option) = options.get_mut(name) {
            value.trim_matches('"').clone_into(option);
        }
    }
    options
}
