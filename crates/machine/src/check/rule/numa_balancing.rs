//! Automatic NUMA balancing.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::one_node;

pub(super) const RULE: Rule = Rule {
    name: "numa-balancing",
    question: "Is automatic NUMA balancing off?",
    why: "The kernel takes pages away to see who touches them and moves them between nodes: page \
          faults in the middle of I/O, while gpuio has placed threads and buffers already. Pages \
          that are pinned for DMA do not move, and are looked at all the same.",
    fix: "`sysctl kernel.numa_balancing=0`, for good in /etc/sysctl.d.",
    source: "Documentation/admin-guide/sysctl/kernel.rst, numa_balancing",
    shown_by: super::COLLECTED,
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let nodes = machine.host.numa.nodes.len();
    vec![match machine.settings.numa_balancing {
        Some(0) => Found::pass("automatic NUMA balancing is off"),
        _ if one_node(machine) => Found::not_applicable("one NUMA node only"),
        Some(_) if nodes < 2 => {
            Found::unknown("it is on, and the number of NUMA nodes was not read")
        }
        Some(_) => {
            let observed = format!("it is on, over {nodes} nodes");
            Found::warn(observed, "`sysctl kernel.numa_balancing=0`").at(["kernel.numa_balancing"])
        }
        None => Found::unknown("kernel.numa_balancing was not read"),
    }]
}
