//! Network file systems that move bytes between card and GPU.

use gpuio_record::facts::{MountKind, NicFacts, RdmaFacts, RdmaPort};

use super::{Mode, shared};
use crate::check::configuration::config;
use crate::check::gdscheck::interpret::peer_direct;
use crate::check::machine::module;
use crate::check::verdict::layer::{self, Disk};
use crate::check::verdict::{About, Answer, Need, Pair, gpu};

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
            let fs_type = pair.mount.mount.fs_type.as_str();
            return vec![if over_rdma {
                Need::no(
                    About::FileSystem,
                    "its NVMe drives over RDMA go by mode nvidia-fs or p2pdma",
                )
            } else if fs_type.is_empty() && disks.is_empty() {
                Need::unknown(About::FileSystem, shared::FS_TYPE_NOT_READ)
            } else {
                let known = "none of the network file systems that cuFile moves to a GPU";
                Need::no(
                    About::FileSystem,
                    match fs_type {
                        "" => format!("a file system on local devices, {known}"),
                        fs_type => format!("{fs_type}, {known}"),
                    },
                )
            }];
        }
    };
    let mut needs = vec![gpu::real(pair), gpu::driver(pair), shared::not_forced(pair)];
    needs.extend(own);
    let printed = shared::nothing_direct(pair).filter(|need| !needs.contains(need));
    needs.extend(printed);
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
    let nics = &pair.machine.nics;
    let devices = nics.iter().flat_map(|nic| nic.rdma.iter().map(move |device| (nic, device)));
    let devices: Vec<(&str, Option<bool>)> =
        devices.map(|(nic, device)| (device.name.as_str(), is_active(nic, device))).collect();
    let names = |wanted: Option<bool>| -> Vec<&str> {
        devices.iter().filter(|(_, active)| *active == wanted).map(|(name, _)| *name).collect()
    };
    let (active, open) = (names(Some(true)), names(None));
    if !active.is_empty() {
        Need::yes(About::Network, format!("RDMA ports are active: {}", active.join(", ")))
    } else if !open.is_empty() {
        let why = "whether a port is active is not among what was read";
        Need::unknown(About::Network, format!("of {}, {why}: {SHOWN}", open.join(", ")))
    } else if pair.machine.listed.nics {
        Need::no(About::Network, "no RDMA port is active")
            .fix("look at `ibv_devinfo` and the cables")
    } else {
        let why = format!("no active RDMA port is among what was read: {SHOWN}");
        Need::unknown(About::Network, why)
    }
}

/// Commands that show the states of ports.
const SHOWN: &str = "`ibv_devinfo` or `rdma link` shows them";

/// Whether a port of an RDMA device is active: by its state, or as its interface is up.
fn is_active(nic: &NicFacts, device: &RdmaFacts) -> Option<bool> {
    let up = |port: &RdmaPort| {
        let named = port.interface.as_ref();
        let mut interfaces = nic.interfaces.iter();
        interfaces.any(|one| Some(&one.name) == named && one.state.as_deref() == Some("up"))
    };
    let state = |port: &RdmaPort| match port.state.as_deref() {
        Some(state) => Some(state == "ACTIVE"),
        None => up(port).then_some(true),
    };
    let states: Vec<Option<bool>> = device.ports.iter().map(state).collect();
    match states.as_slice() {
        all if all.contains(&Some(true)) => Some(true),
        all if all.is_empty() || all.contains(&None) => None,
        _ => Some(false),
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
    } else if let Some((true, line)) = peer_direct(pair.machine) {
        Need::yes(About::Network, line)
    } else if let Some(why) = crate::check::configuration::not_read(pair.machine) {
        Need::unknown(About::Network, format!("whether GPU memory is registered by dma-buf: {why}"))
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
