//! DRIVER CONFIGURATION: the data path of each kind of storage.
//!
//! A kind of storage goes by nvidia-fs (`nvfs`) where its kernel module has registered there, by
//! names of nvidia-fs's source (`nvfs-dma.h`, version 2.2x); through host memory (`compat`) where
//! cuFile may; by the kernel's peer-to-peer DMA where it is set up, which only the library knows.

use gpuio_record::facts::{Fact, GdsLine, Machine};

use super::settings::valid;
use super::{LibraryReport, Software};
use crate::check::machine::{module, modules_not_read, modules_were_read};

/// Kinds of storage in gdscheck's order, each with the module that registers with nvidia-fs, the
/// setting for peer-to-peer DMA, and the word of `drivers::cufile` for the library's flag.
pub(super) const STORAGE: [(&str, Option<&str>, &str, &str); 12] = [
    ("NVMe", Some("nvme"), "block.nvme.use_pci_p2pdma", "NVMe"),
    ("NVMeOF", Some("nvme_rdma"), "block.nvmeof.use_pci_p2pdma", "NVMe-oF"),
    ("SCSI", Some("scsi_mod"), "", "SCSI"),
    ("ScaleFlux CSD", Some("sfxvdriver"), "", "ScaleFlux"),
    ("NVMesh", Some("nvmeib_common"), "", "NVMesh"),
    ("DDN EXAScaler", Some("lnet"), "fs.lustre.use_pci_p2pdma", "Lustre"),
    ("IBM Spectrum Scale", Some("mmfslinux"), "fs.gpfs.use_pci_p2pdma", "GPFS"),
    ("NFS", Some("rpcrdma"), "fs.nfs.use_pci_p2pdma", "NFS"),
    ("BeeGFS", Some("beegfs"), "fs.beegfs.use_pci_p2pdma", "BeeGFS"),
    ("ScaTeFS", None, "fs.scatefs.use_pci_p2pdma", "ScaTeFS"),
    ("VIRTIOFS", None, "fs.virtiofs.use_pci_p2pdma", "virtiofs"),
    ("WekaFS", Some("wekafsio"), "", "WekaFS"),
];

/// No kind of storage reaches a GPU by cuFile.
const NOTHING: &str = "Unsupported";

pub(super) fn lines(machine: &Machine, software: &Software, settings: &[GdsLine]) -> Vec<GdsLine> {
    let storage = STORAGE.iter().map(|(name, module, p2p, word)| GdsLine {
        name: (*name).to_owned(),
        value: match &software.library {
            Some(library) => by_library(machine, software, library, (*module, word)),
            None => one(machine, software, settings, *module, p2p),
        },
    });
    storage.chain(rdma(machine)).collect()
}

/// By the library's own flags: `nvfs` where the module has registered too, else just `Supported`,
/// as releases before 1.16 have it, since the flag does not name the path.
fn by_library(
    machine: &Machine,
    software: &Software,
    library: &LibraryReport,
    (module, word): (Option<&str>, &str),
) -> Fact<String> {
    let reports = |wanted: &str| library.storage.iter().any(|known| known == wanted);
    let direct = reports(word);
    let nvfs = direct && through_nvidia_fs(machine, software, module) == Ok(true);
    let p2p = word == "NVMe" && reports("NVMe by peer-to-peer DMA");
    if direct && !nvfs && !p2p {
        return Fact::Known("Supported".to_owned());
    }
    joined(&[(p2p, "p2pdma"), (nvfs, "nvfs"), (library.compat, "compat")])
}

/// The names of the paths that are available.
fn joined(paths: &[(bool, &str)]) -> Fact<String> {
    let paths: Vec<&str> = paths.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    Fact::Known(if paths.is_empty() { NOTHING.to_owned() } else { paths.join(", ") })
}

fn one(
    machine: &Machine,
    software: &Software,
    settings: &[GdsLine],
    module: Option<&str>,
    p2p: &str,
) -> Fact<String> {
    if let Some(value) = without_hardware(machine) {
        return value;
    }
    if let Fact::Unknown(why) = &software.libcufile {
        return Fact::unknown(why.clone());
    }
    let compat = match setting(settings, "properties.use_compat_mode") {
        Fact::Known(word) => word == "true",
        Fact::Unknown(why) => return Fact::unknown(why.clone()),
    };
    match setting(settings, "properties.force_compat_mode") {
        Fact::Known(word) if word == "true" => return Fact::Known("compat".to_owned()),
        Fact::Known(_) => {}
        Fact::Unknown(why) => return Fact::unknown(why.clone()),
    }
    if let Some(why) = peer_to_peer(settings, software, p2p) {
        return Fact::unknown(why);
    }
    let nvfs = match through_nvidia_fs(machine, software, module) {
        Ok(nvfs) => nvfs,
        Err(why) => return Fact::unknown(why),
    };
    joined(&[(nvfs, "nvfs"), (compat, "compat")])
}

/// Where there is no GPU, or no driver of NVIDIA's, no library helps.
fn without_hardware(machine: &Machine) -> Option<Fact<String>> {
    if machine.gpus.is_empty() {
        let why = "no GPU is among what was read, and the kernel's list of PCI was not";
        return Some(match machine.listed.pci {
            true => Fact::Known(NOTHING.to_owned()),
            false => Fact::unknown(why),
        });
    }
    if !modules_were_read(machine) {
        return Some(Fact::unknown(modules_not_read(machine)));
    }
    let driver = module(machine, "nvidia").is_some_and(|module| module.loaded);
    (!driver).then(|| Fact::Known(NOTHING.to_owned()))
}

fn setting<'s>(settings: &'s [GdsLine], name: &str) -> &'s Fact<String> {
    static ABSENT: Fact<String> = Fact::Unknown(String::new());
    settings.iter().find(|line| line.name == name).map_or(&ABSENT, |line| &line.value)
}

/// Why peer-to-peer DMA makes the line unknown, where it is on, or not known to be off.
fn peer_to_peer(settings: &[GdsLine], software: &Software, key: &str) -> Option<String> {
    let config = software.config.known();
    let own = config.and_then(|config| Some(valid(key, config.keys.get(key)?, config)));
    let mut on = false;
    for value in [Some(setting(settings, "properties.use_pci_p2pdma")), own.as_ref()] {
        match value {
            Some(Fact::Unknown(why)) => return Some(why.clone()),
            Some(Fact::Known(word)) => on |= word == "true",
            None => {}
        }
    }
    on.then(|| {
        "peer-to-peer DMA is switched on; only NVIDIA's library knows whether it works here"
            .to_owned()
    })
}

/// Whether the module of this storage has registered with nvidia-fs.
fn through_nvidia_fs(
    machine: &Machine,
    software: &Software,
    name: Option<&str>,
) -> Result<bool, String> {
    let loaded = module(machine, "nvidia_fs").is_some_and(|module| module.loaded);
    let Some(name) = name.filter(|_| loaded) else {
        return if loaded {
            Err("no source documents how nvidia-fs names its module".to_owned())
        } else {
            Ok(false)
        };
    };
    match &software.registered {
        Fact::Known(registered) => Ok(registered.iter().any(|one| one == name)),
        Fact::Unknown(why) => Err(format!("which modules use nvidia-fs is not known, {why}")),
    }
}

/// Lines about RDMA from user space. Its library is not loaded and its devices are not queried.
fn rdma(machine: &Machine) -> Vec<GdsLine> {
    let line = |name: &str, value| GdsLine { name: name.to_owned(), value };
    let not_loaded = || Fact::unknown("libcufile_rdma.so was not loaded");
    let peer = |name| module(machine, name).is_some_and(|module| module.loaded);
    let peers = match (modules_were_read(machine), peer("nvidia_peermem") || peer("nv_peer_mem")) {
        (false, _) => Fact::unknown(modules_not_read(machine)),
        (true, true) => Fact::Known("Enabled".to_owned()),
        (true, false) => Fact::Known("Disabled".to_owned()),
    };
    let no_hardware = without_hardware(machine);
    vec![
        line("Userspace RDMA", no_hardware.unwrap_or_else(not_loaded)),
        line("--Mellanox PeerDirect", peers),
        line("--rdma library", not_loaded()),
        line("--rdma devices", not_loaded()),
        line("--rdma_device_status", not_loaded()),
    ]
}
