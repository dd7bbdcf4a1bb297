//! The whole machine for questions of topology: every reader once, in the order in which they
//! need each other.

use gpuio_record::facts::{Fact, Listed, Machine};

use crate::parse::keep;
use crate::{
    HostError, Root, build_config, collect, cufile, drive, module, mount, mounted, nic, nvidia_gpu,
    pci, settings,
};

/// Reads the machine. Never fails: what could not be read or understood is listed in `problems`,
/// and what the kernel lacks or hides is `None` or unknown with its reason.
///
/// Facts that only NVML knows of the GPUs are unknown; [`nvidia_gpu::merge`] puts its readings in.
pub fn read(root: &Root) -> Machine {
    let host = collect(root);
    let mut problems = Vec::new();
    let all_mounts = keep(mount::read(root).map(Some), &mut problems).unwrap_or_default();
    let pci = pci::read(root, &mut problems);
    let gpus = nvidia_gpu::read(root, &pci, &mut problems);
    let block = drive::read(root, &all_mounts, &mut problems);
    let nics = nic::read(root, &pci, &mut problems);
    let mounts = mounted::read(root, &all_mounts, &block, &nics, &mut problems);
    let modules = module::read(root, &mut problems);
    let config = build_config::read(root, host.kernel.release.as_deref(), &mut problems);
    let settings = settings::read(root, &mut problems);
    let mut problems: Vec<_> = problems.iter().map(HostError::to_problem).collect();
    problems.dedup();
    Machine {
        host,
        pci,
        gpus,
        block,
        nics,
        mounts,
        at_boot: Vec::new(),
        modules,
        config,
        settings,
        gdscheck: None,
        diagnoses: Vec::new(),
        printed: Vec::new(),
        cufile: cufile::read(root, Fact::unknown("the process's environment was not read")),
        listed: Listed {
            pci: is_listed(root, "sys/bus/pci/devices"),
            block: is_listed(root, "sys/class/block"),
            nics: is_listed(root, "sys/class/net"),
            mounts: root.exists("proc/self/mountinfo"),
            nodes: is_listed(root, "sys/devices/system/node"),
            modules: is_listed(root, "sys/module"),
        },
        problems,
    }
}

/// Whether the directory is there and could be read.
fn is_listed(root: &Root, directory: &str) -> bool {
    root.exists(directory) && root.list(directory).is_ok()
}
