//! The transport of NFS mounts.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{nfs_mounts, without_nfs};

pub(super) const RULE: Rule = Rule {
    name: "nfs-transport",
    question: "Do NFS mounts use RDMA, or several connections over TCP?",
    why: "GPUDirect Storage reaches NFS over RDMA only; over TCP the processor copies every byte, \
          and one connection is served by one processor at a time.",
    fix: "Mount with `-o proto=rdma,port=20049` where card and server can, else with `nconnect=8` \
           (up to 16).",
    source: "NVIDIA, GPUDirect Storage Installation and Troubleshooting Guide, NFS; nfs(5), proto \
             and nconnect; Documentation/admin-guide/nfs/nfs-rdma.rst",
    shown_by: "mount",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = without_nfs(machine) {
        return vec![found];
    }
    let has_rdma = machine.nics.iter().any(|nic| !nic.rdma.is_empty());
    let findings = nfs_mounts(machine).into_iter().map(|(at, nfs)| {
        let found = match nfs.transport.as_deref() {
            Some(rdma) if rdma.starts_with("rdma") => Found::pass("over RDMA"),
            Some(other) => {
                let observed =
                    format!("over {other}, {} to the server", connections(nfs.connections));
                if has_rdma {
                    let fix =
                        "if the server can: unmount, and mount with `-o proto=rdma,port=20049`";
                    Found::warn(format!("{observed}; this machine has RDMA cards"), fix)
                } else if nfs.connections < 2 {
                    Found::warn(observed, "unmount, and mount with `-o nconnect=8` (Linux 5.3)")
                } else {
                    Found::info(observed)
                }
            }
            None => Found::unknown("its options do not show the transport"),
        };
        found.at([at])
    });
    findings.collect()
}

fn connections(number: u32) -> String {
    crate::check::machine::count(usize::try_from(number).unwrap_or(usize::MAX), "connection")
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{NicFacts, RdmaFacts};

    use super::*;
    use crate::check::{Severity, sample};

    #[test]
    fn tcp_is_judged_by_what_the_machine_has() {
        let mut machine =
            Machine { mounts: vec![sample::nfs("/n", "tcp", "eth0")], ..Machine::default() };
        let fix = |machine: &Machine| evaluate(machine)[0].fix.clone().unwrap();
        assert!(fix(&machine).contains("nconnect"));
        let rdma = vec![RdmaFacts::default()];
        machine.nics.push(NicFacts { rdma, ..NicFacts::default() });
        assert!(fix(&machine).contains("proto=rdma"));
        machine.mounts = vec![sample::nfs("/n", "rdma", "ib0")];
        assert_eq!(evaluate(&machine)[0].severity, Severity::Pass);
    }

    #[test]
    fn many_connections_without_cards_are_fine() {
        let mut machine =
            Machine { mounts: vec![sample::nfs("/n", "tcp", "eth0")], ..Machine::default() };
        machine.mounts[0].nfs.as_mut().unwrap().connections = 8;
        assert_eq!(evaluate(&machine)[0].severity, Severity::Info);
        machine.mounts[0].nfs.as_mut().unwrap().transport = None;
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown);
    }
}
