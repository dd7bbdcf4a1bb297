//! The processors' frequency governor.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{KERNEL_NOT_READ, kernel_was_read};

pub(super) const RULE: Rule = Rule {
    name: "governor",
    question: "Do processors run at full frequency?",
    why: "Threads that wait for I/O look idle to a governor that saves power: each wake-up is at a \
          low frequency, which shows in the latency of small blocks and differs from run to run.",
    fix: "`cpupower frequency-set -g performance`.",
    source: "Documentation/admin-guide/pm/cpufreq.rst; cpupower-frequency-set(1)",
    shown_by: super::COLLECTED,
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let governors = &machine.settings.governors;
    if governors.is_empty() {
        return vec![if kernel_was_read(machine) {
            Found::unknown("the kernel sets no frequencies here: firmware or a hypervisor may")
        } else {
            Found::unknown(KERNEL_NOT_READ)
        }];
    }
    let saving: Vec<String> = governors
        .iter()
        .filter(|(governor, _)| *governor != "performance")
        .map(|(governor, cpus)| format!("{cpus} processors at {governor}"))
        .collect();
    vec![if saving.is_empty() {
        Found::pass("all processors have the governor performance")
    } else {
        Found::warn(saving.join(", "), "`cpupower frequency-set -g performance`")
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Severity;

    #[test]
    fn one_processor_that_saves_power_is_reported() {
        let mut machine = Machine::default();
        machine.settings.governors.insert("performance".to_owned(), 7);
        assert_eq!(evaluate(&machine)[0].severity, Severity::Pass);
        machine.settings.governors.insert("powersave".to_owned(), 1);
        let found = evaluate(&machine).remove(0);
        assert_eq!(
            (found.severity, &found.observed[..]),
            (Severity::Warn, "1 processors at powersave")
        );
    }
}
