//! Limits of control groups on this process's I/O.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;

pub(super) const RULE: Rule = Rule {
    name: "io-limit",
    question: "Is the I/O of this process free of limits of its control group?",
    why: "A limit of a control group holds each load of its processes back, whatever the drive can \
          do, and no counter of the drive shows that: the I/Os wait before its queue.",
    fix: "Raise the limit: `systemctl set-property UNIT IOReadBandwidthMax=`, the container's \
          `--device-read-bps`, or the file itself; or run outside the group.",
    source: "Documentation/admin-guide/cgroup-v2.rst, io.max; \
             Documentation/admin-guide/cgroup-v1/blkio-controller.rst, blkio.throttle",
    shown_by: super::COLLECTED,
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let Some(io) = &machine.host.io_limits else {
        return vec![Found::unknown("the limits of this process's cgroup were not read")];
    };
    let mut found: Vec<Found> = Vec::new();
    for limit in &io.limits {
        let observed = format!("this process's cgroup limits {}", limit.words());
        let fix = format!("raise the limit in {}, or run outside this cgroup", limit.path);
        let name = if limit.device.is_empty() { limit.path.clone() } else { limit.device.clone() };
        found.push(Found::warn(observed, fix).at([name]));
    }
    if io.hidden {
        let observed = "groups above what this process sees may limit its I/O";
        found.push(Found::unknown(observed));
    } else if found.is_empty() {
        found.push(Found::pass("no limit of this process's cgroup on a block device"));
    }
    found
}
