//! Automatic NUMA balancing.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::finding::Found;

pub(super) const RULE: Rule = Rule {
    name: "numa-balancing",
    question: "Is automatic NUMA balancing off?",
    why: "The kernel takes pages away to see who touches them and moves them between nodes: page \
          faults in the middle of I/O, while gpuio has placed threads and buffers already. Pages \
          that are pinned for DMA do not move, and are looked at all the same.",
    fix: "`sysctl kernel.numa_balancing=0`, for good in /etc/sysctl.d.",
    source: "Documentation/admin-guide/sysctl/kernel.rst, numa_balancing",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let nodes = machine.host.numa.nodes.len();
    vec![match machine.settings.numa_balancing {
        Some(0) => Found::pass("automatic NUMA balancing is off"),
        _ if nodes == 1 => Found::not_applicable("one NUMA node only"),
        Some(_) if nodes == 0 => Found::unknown("it is on, and the NUMA nodes were not read"),
        Some(_) => {
            let observed = format!("it is on, over {nodes} nodes");
            Found::warn(observed, "`sysctl kernel.numa_balancing=0`").at(["kernel.numa_balancing"])
        }
        None => Found::unknown("kernel.numa_balancing was not read"),
    }]
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::NumaNode;

    use super::*;
    use crate::Severity;

    #[test]
    fn it_matters_with_more_than_one_node() {
        let mut machine = Machine::default();
        machine.settings.numa_balancing = Some(1);
        machine.host.numa.nodes = vec![NumaNode::default(); 2];
        assert_eq!(evaluate(&machine)[0].severity, Severity::Warn);
        machine.host.numa.nodes.truncate(1);
        assert_eq!(evaluate(&machine)[0].severity, Severity::NotApplicable);
        machine.host.numa.nodes.clear();
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown);
        machine.settings.numa_balancing = Some(0);
        assert_eq!(evaluate(&machine)[0].severity, Severity::Pass);
        machine.settings.numa_balancing = None;
        machine.host.numa.nodes = vec![NumaNode::default(); 2];
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown);
    }
}
