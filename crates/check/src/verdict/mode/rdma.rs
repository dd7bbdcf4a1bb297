//! Network file systems that move bytes between card and GPU.

use gpuio_record::facts::MountKind;

use super::{Mode, shared};
use crate::configuration::config;
use crate::machine::module;
use crate::verdict::layer::{self, Disk};
use crate::verdict::{About, Answer, Need, Pair, gpu};

pub(super) const MODE: Mode = Mode {
    name: "rdma",
    is: "cuFile, direct between network card and GPU over RDMA",
    source: "NVIDIA, nvidia-fs, Key Features; NVIDIA/gds-nvidia-fs, nvfs-dma.c, modules_list; \
             NVIDIA, GPUDirect Storage Installation and Troubleshooting Guide, WekaFS and IBM \
             Spectrum Scale; NVIDIA, GPUDirect RDMA (nvidia-peermem)",
    needs,
};

fn needs(pair: &Pair<'_>) -> Vec<Need> {
    let own = match pair.mount.kind {
        MountKind::Nfs => nfs(pair),
        MountKind::Lustre => kernel_client(pair, "lnet"),
        MountKind::Beegfs => kernel_client(pair, "beegfs"),
        MountKind::Weka | MountKind::Gpfs => user_space(pair),
        _ => {
            let disks = layer::below(pair.machine, pair.mount);
            let over_rdma = disks.iter().any(|disk| layer::disk(disk) == Disk::NvmeRdma);
            return vec![if over_rdma {
                Need::no(
                    About::FileSystem,
                    "its NVMe drives over RDMA go by mode nvidia-fs or p2pdma",
                )
            } else {
                Need::no(About::FileSystem, "no network file system")
            }];
        }
    };
    let mut needs = vec![gpu::real(pair), gpu::driver(pair), shared::not_forced(pair)];
    needs.extend(own);
    needs.push(shared::not_denied(pair));
    needs
}

fn module_of_kernel(pair: &Pair<'_>) -> Need {
    gpu::loaded(pair, "nvidia_fs", "`modprobe nvidia-fs` (package nvidia-fs or nvidia-gds)")
}

/// A client in the kernel, by the name under which it registers with nvidia-fs.
fn kernel_client(pair: &Pair<'_>, driver: &str) -> Vec<Need> {
    let loaded = module_of_kernel(pair);
    let is_loaded = loaded.met == Answer::Yes;
    let mut needs = vec![loaded, active_card(pair)];
    if is_loaded {
        let fix = "install the maker's client that is built with GPUDirect Storage";
        needs.push(shared::registered(pair, driver, fix));
    }
    needs
}

fn nfs(pair: &Pair<'_>) -> Vec<Need> {
    let transport = pair.mount.nfs.as_ref().and_then(|nfs| nfs.transport.as_deref());
    let by_rdma = match transport {
        Some(rdma) if rdma.starts_with("rdma") => Need::yes(About::FileSystem, "NFS over RDMA"),
        Some(other) => Need::no(About::FileSystem, format!("NFS over {other}"))
            .fix("if the server can: unmount, and mount with `-o proto=rdma,port=20049`"),
        None => Need::unknown(About::FileSystem, "the options do not show the transport"),
    };
    let loaded = module_of_kernel(pair);
    let is_loaded = loaded.met == Answer::Yes;
    let mut needs = vec![by_rdma, loaded];
    if is_loaded {
        let patched = "install the NFS client of MLNX_OFED or DOCA (`--with-nfsrdma`), or VAST's";
        needs.push(shared::registered(pair, "rpcrdma", patched));
    }
    needs
}

fn active_card(pair: &Pair<'_>) -> Need {
    let devices = pair.machine.nics.iter().flat_map(|nic| &nic.rdma);
    let active = devices
        .filter(|device| device.ports.iter().any(|port| port.state.as_deref() == Some("ACTIVE")));
    let names: Vec<&str> = active.map(|device| device.name.as_str()).collect();
    if names.is_empty() {
        Need::no(About::Network, "no RDMA port is active")
            .fix("look at `ibv_devinfo` and the cables")
    } else {
        Need::yes(About::Network, format!("RDMA ports are active: {}", names.join(", ")))
    }
}

/// WEKA and IBM Storage Scale register GPU memory with the card from user space.
fn user_space(pair: &Pair<'_>) -> Vec<Need> {
    let config = config(pair.machine);
    let dmabuf = config.text("properties.rdma_peer_type") == Some("dmabuf");
    let loaded = ["nvidia_peermem", "nv_peer_mem"]
        .into_iter()
        .any(|name| module(pair.machine, name).is_some_and(|module| module.loaded));
    let memory = if dmabuf {
        Need::yes(About::Network, "GPU memory is registered by dma-buf (rdma_peer_type)")
    } else if loaded {
        Need::yes(About::Network, "nvidia_peermem is loaded")
    } else {
        gpu::loaded(pair, "nvidia_peermem", "`modprobe nvidia-peermem`, or rdma_peer_type dmabuf")
    };
    let named = config.entries.iter().any(|entry| {
        entry.path.ends_with("rdma_dev_addr_list") && !config.texts(&entry.path).is_empty()
    });
    let addresses = if named {
        Need::yes(About::Network, "cufile.json names addresses of cards")
    } else {
        Need::unknown(
            About::Network,
            "cufile.json names no address of a card: cuFile looks for them itself",
        )
        .fix("fill properties.rdma_dev_addr_list")
    };
    vec![memory, active_card(pair), addresses]
}
