//! NVIDIA's kernel module nvidia-peermem.

use gpuio_record::facts::{Machine, MountKind};

use super::Rule;
use crate::check::finding::Found;
use crate::check::gdscheck::interpret::peer_direct;
use crate::check::machine::{known_module, modules_not_read, modules_were_read, without_gpu};

pub(super) const RULE: Rule = Rule {
    name: "peermem",
    question: "Is nvidia_peermem loaded where RDMA cards and GPUs are together?",
    why: "File systems that do RDMA from user space (WEKA, IBM Storage Scale) register GPU memory \
          with the card through it; without it, and without dma-buf, their bytes go through host \
          memory.",
    fix: "`modprobe nvidia-peermem`, after the RDMA core.",
    source: "NVIDIA, GPUDirect RDMA, Using nvidia-peermem (driver 470; nv_peer_mem before); \
             NVIDIA, gds-diag (file systems with RDMA from user space)",
    shown_by: "lsmod",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = without_gpu(machine) {
        return vec![found];
    }
    let cards: Vec<&str> =
        machine.nics.iter().flat_map(|nic| &nic.rdma).map(|device| device.name.as_str()).collect();
    if cards.is_empty() && machine.listed.nics {
        return vec![Found::not_applicable("no RDMA device here")];
    }
    let modules = ["nvidia_peermem", "nv_peer_mem"].map(|name| known_module(machine, name));
    if let Some(loaded) = modules.into_iter().flatten().find(|module| module.loaded) {
        return vec![Found::pass(format!("{} is loaded", loaded.name))];
    }
    let printed = peer_direct(machine).filter(|_| modules.iter().all(Option::is_none));
    if let Some((true, line)) = printed {
        return vec![Found::pass(line)];
    }
    let printed = printed.map(|(_, line)| line);
    let whole = modules_were_read(machine) || modules.iter().all(Option::is_some);
    if printed.is_none() && (!whole || modules.iter().all(Option::is_none)) {
        return vec![Found::unknown(modules_not_read(machine))];
    }
    let user_space = [MountKind::Weka, MountKind::Gpfs];
    let needs: Vec<&str> = machine
        .mounts
        .iter()
        .filter(|mount| user_space.contains(&mount.kind))
        .map(|mount| mount.mount.mount_point.as_str())
        .collect();
    let state = printed.as_deref().unwrap_or("nvidia_peermem is not loaded");
    let fix = "`modprobe nvidia-peermem`";
    vec![if needs.is_empty() {
        let observed = format!(
            "{state}; no file system here is known to need it (local drives and NFS do not), RDMA \
             programs of yours may"
        );
        Found::info(observed).fix(fix).at(cards)
    } else {
        Found::warn(format!("{state}, and these mounts may need it"), fix).at(needs)
    }]
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{Fact, GdsCheck, GdsLine, NicFacts, RdmaFacts};

    use super::*;
    use crate::check::{Severity, sample};

    fn with_card(loaded: bool) -> Machine {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let rdma = vec![RdmaFacts { name: "mlx5_0".to_owned(), ..RdmaFacts::default() }];
        machine.nics.push(NicFacts { rdma, ..NicFacts::default() });
        machine.modules.push(sample::module("nvidia_peermem", loaded));
        machine
    }

    #[test]
    fn it_matters_where_a_file_system_needs_it() {
        let mut machine = with_card(false);
        assert_eq!(evaluate(&machine)[0].severity, Severity::Info);
        let mut mount = sample::mount("/weka", "");
        mount.kind = MountKind::Weka;
        machine.mounts.push(mount);
        let found = evaluate(&machine);
        assert_eq!((found[0].severity, &found[0].locations[0][..]), (Severity::Warn, "/weka"));
        assert_eq!(evaluate(&with_card(true))[0].severity, Severity::Pass);
    }

    #[test]
    fn what_gdscheck_printed_counts_where_no_list_of_modules_was_read() {
        for (state, severity) in [("Enabled", Severity::Pass), ("Disabled", Severity::Info)] {
            let mut machine = with_card(true);
            machine.modules.clear();
            machine.listed.modules = false;
            let value = Fact::Known(state.to_owned());
            let name = "--Mellanox PeerDirect".to_owned();
            let drivers = vec![GdsLine { name, value }];
            machine.gdscheck = Some(GdsCheck { drivers, ..GdsCheck::default() });
            let found = evaluate(&machine).remove(0);
            let line = format!("gdscheck printed `--Mellanox PeerDirect : {state}`");
            assert!(found.severity == severity && found.observed.starts_with(&line), "{found:?}");
        }
    }

    #[test]
    fn without_cards_it_is_not_needed() {
        let found = evaluate(&sample::gpu_and_drive_below_a_switch());
        assert_eq!(found[0].severity, Severity::NotApplicable);
    }
}
