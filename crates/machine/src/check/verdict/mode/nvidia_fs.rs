//! cuFile, direct through the module nvidia-fs, on drives of this machine.

use super::{Mode, shared};
use crate::check::gdscheck::interpret::drives_by_nvidia_fs;
use crate::check::verdict::layer::{self, Disk};
use crate::check::verdict::{About, Need, Pair, gpu};

pub(super) const MODE: Mode = Mode {
    name: "nvidia-fs",
    is: "cuFile, direct between drive and GPU through nvidia-fs",
    source: "NVIDIA, nvidia-fs, Key Features; NVIDIA, GPUDirect Storage Installation and \
             Troubleshooting Guide, NVMe and NVMe-oF; NVIDIA/gds-nvidia-fs, nvfs-dma.c \
             (a driver without NVIDIA's patches does not register)",
    needs,
};

fn needs(pair: &Pair<'_>) -> Vec<Need> {
    let file_system = shared::local_file_system(pair);
    let mut needs = vec![gpu::real(pair), gpu::driver(pair)];
    needs.push(gpu::loaded(
        pair,
        "nvidia_fs",
        "`modprobe nvidia-fs` (package nvidia-fs or nvidia-gds)",
    ));
    // The module's need may rest on the same lines.
    let printed = shared::nothing_direct(pair).filter(|need| !needs.contains(need));
    needs.extend(printed);
    let local = file_system.met == crate::check::Answer::Yes;
    needs.push(file_system);
    needs.push(shared::not_forced(pair));
    if local {
        needs.extend(shared::layers(pair, array));
        let drives = layer::below(pair.machine, pair.mount);
        let kinds: Vec<Disk> =
            drives.iter().filter(|d| layer::is_disk(d)).map(|d| layer::disk(d)).collect();
        let patched = "install the NVMe driver of MLNX_OFED or DOCA (with GDS), or use mode p2pdma";
        for (kind, driver) in [(Disk::Nvme, "nvme"), (Disk::NvmeRdma, "nvme_rdma")] {
            if kinds.contains(&kind) {
                needs.push(shared::registered(pair, driver, patched));
            }
        }
        // A driver of either kind is needed, and gdscheck has none.
        if kinds.contains(&Disk::NvmeUnknown)
            && let Some((false, line)) = drives_by_nvidia_fs(pair.machine, drives)
        {
            needs.push(Need::no(About::Storage, line).fix(patched));
        }
        needs.push(shared::no_translation(pair));
    }
    needs.push(shared::udev(pair));
    needs.push(shared::not_denied(pair));
    needs
}

fn array(name: &str, level: &str) -> Need {
    match level {
        "raid0" => Need::yes(About::Storage, format!("{name} is a RAID0")),
        other => {
            Need::unknown(About::Storage, format!("{name} is {other}; NVIDIA names RAID0 alone"))
                .fix("confirm it with --prove")
        }
    }
}
