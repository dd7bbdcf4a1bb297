//! The limit on libaio events in flight.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;

pub(super) const RULE: Rule = Rule {
    name: "aio-max-nr",
    question: "Are enough events of libaio left for deep queues?",
    why: "fs.aio-max-nr is one limit for all processes of the machine: when it is used up, \
          io_setup(2) fails with EAGAIN, in gpuio's engine libaio and in NVIDIA's library.",
    fix: "`sysctl fs.aio-max-nr=1048576`, for good in /etc/sysctl.d.",
    source: "Documentation/admin-guide/sysctl/fs.rst, aio-nr and aio-max-nr; io_setup(2)",
    shown_by: super::COLLECTED,
    evaluate,
};

/// 64 threads of depth 256.
const ENOUGH: u64 = 16_384;

fn evaluate(machine: &Machine) -> Vec<Found> {
    let kernel = &machine.host.kernel;
    let (Some(most), Some(used)) = (kernel.aio_max_events, kernel.aio_used_events) else {
        return vec![Found::unknown("fs.aio-max-nr or fs.aio-nr was not read")];
    };
    let left = most.saturating_sub(used);
    let observed = format!("{left} of {most} events are left");
    vec![if left >= ENOUGH {
        Found::pass(observed)
    } else {
        let observed = format!("{observed}; 64 threads of depth 256 take {ENOUGH}");
        Found::warn(observed, "`sysctl fs.aio-max-nr=1048576`").at(["fs.aio-max-nr"])
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Severity;

    #[test]
    fn what_others_hold_is_taken_off() {
        let mut machine = Machine::default();
        machine.host.kernel.aio_max_events = Some(65_536);
        machine.host.kernel.aio_used_events = Some(1);
        assert_eq!(evaluate(&machine), [Found::pass("65535 of 65536 events are left")]);
        machine.host.kernel.aio_used_events = Some(60_000);
        assert_eq!(evaluate(&machine)[0].severity, Severity::Warn);
    }
}
