//! Kernel modules: `/sys/module` (Documentation/ABI/stable/sysfs-module) and the parameters that
//! NVIDIA's driver prints in `/proc/driver/nvidia/params`.

use std::collections::BTreeMap;

use gpuio_record::facts::ModuleFacts;

use crate::parse::keep;
use crate::{HostError, Root};

/// The modules that I/O between storage and GPUs depends on.
pub const MODULES: [&str; 22] = [
    "nvidia",
    "nvidia_uvm",
    "nvidia_fs",
    "nvidia_peermem",
    "nv_peer_mem",
    "gdrdrv",
    "mlx5_core",
    "mlx5_ib",
    "ib_core",
    "ib_uverbs",
    "nvme",
    "nvme_core",
    "nvme_rdma",
    "nvme_tcp",
    "nfs",
    "rpcrdma",
    "lustre",
    "lnet",
    "ko2iblnd",
    "beegfs",
    "wekafsio",
    "mmfslinux",
];

/// Reads the modules that matter, those that are not loaded too. A value that cannot be understood
/// goes to `problems`.
pub fn read(root: &Root, problems: &mut Vec<HostError>) -> Vec<ModuleFacts> {
    MODULES.iter().map(|name| module(root, name, problems)).collect()
}

fn module(root: &Root, name: &str, problems: &mut Vec<HostError>) -> ModuleFacts {
    let dir = format!("sys/module/{name}");
    if !root.exists(&dir) {
        return ModuleFacts { name: name.to_owned(), ..ModuleFacts::default() };
    }
    let version = keep(root.word(format!("{dir}/version")), problems);
    let mut parameters = BTreeMap::new();
    let names = keep(root.list(format!("{dir}/parameters")).map(Some), problems);
    for parameter in names.unwrap_or_default() {
        let value = keep(root.word(format!("{dir}/parameters/{parameter}")), problems);
        parameters.extend(value.map(|value| (parameter, value)));
    }
    if name == "nvidia" {
        let text = keep(root.read("proc/driver/nvidia/params"), problems);
        parameters.extend(text.map(|text| parse_params(&text.body)).unwrap_or_default());
    }
    ModuleFacts { name: name.to_owned(), loaded: true, version, parameters }
}

/// Parses `/proc/driver/nvidia/params`: a name, a colon and a value per line; empty strings
/// (`""`) are left out.
pub fn parse_params(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let pairs = pairs.map(|(name, value)| (name.trim(), value.trim().trim_matches('"')));
    let set = pairs.filter(|(name, value)| !name.is_empty() && !value.is_empty());
    set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
