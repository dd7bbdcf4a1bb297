//! I/O schedulers and queues of data drives.

use gpuio_record::facts::{BlockDevice, Machine};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{data_drives, none_of};

pub(super) const RULE: Rule = Rule {
    name: "scheduler",
    question: "Do fast data drives use the I/O scheduler none, and queues that are deep enough?",
    why: "A scheduler sorts requests behind one lock: on NVMe it costs IOPS and latency and gives \
          nothing. A queue of few requests holds back deep loads.",
    fix: "`echo none > /sys/block/NAME/queue/scheduler`, for good in a udev rule; \
           `echo 1023 > /sys/block/NAME/queue/nr_requests`.",
    source: "Documentation/block/switching-sched.rst; Documentation/ABI/stable/sysfs-block, \
             scheduler and nr_requests",
    shown_by: super::COLLECTED,
    evaluate,
};

/// The I/Os in flight of one thread of a deep load.
const ENOUGH: u64 = 128;

fn evaluate(machine: &Machine) -> Vec<Found> {
    let fast: Vec<&BlockDevice> = data_drives(machine)
        .into_iter()
        .filter(|drive| drive.facts.rotational != Some(true))
        .collect();
    let names = |wanted: &dyn Fn(&BlockDevice) -> bool| -> Vec<&str> {
        let chosen = fast.iter().filter(|drive| wanted(drive));
        chosen.map(|drive| drive.facts.name.as_str()).collect()
    };
    let is_nvme = |drive: &BlockDevice| drive.facts.name.starts_with("nvme");
    let sorted = |drive: &BlockDevice| {
        drive.facts.scheduler.as_deref().is_some_and(|scheduler| scheduler != "none")
    };
    let silent =
        names(&|drive| drive.facts.scheduler.is_none() || drive.facts.queue_requests.is_none());
    let slow = names(&|drive| sorted(drive) && is_nvme(drive));
    let other = names(&|drive| sorted(drive) && !is_nvme(drive));
    let shallow = names(&|drive| drive.facts.queue_requests.is_some_and(|n| n < ENOUGH));
    let mut found = Vec::new();
    if !slow.is_empty() {
        let fix = each(&slow, "echo none > /sys/block/$d/queue/scheduler");
        found.push(Found::warn("NVMe drives have a scheduler", fix).at(slow));
    }
    if !other.is_empty() {
        let observed =
            "drives that do not spin have a scheduler; `none` may be faster at small blocks";
        let fix = each(&other, "echo none > /sys/block/$d/queue/scheduler");
        found.push(Found::info(observed).fix(fix).at(other));
    }
    if !shallow.is_empty() {
        let observed = format!("their queues hold fewer than {ENOUGH} requests (nr_requests)");
        let fix = each(&shallow, "echo 256 > /sys/block/$d/queue/nr_requests")
            + "; where the kernel refuses, the device can take no more";
        found.push(Found::info(observed).fix(fix).at(shallow));
    }
    if !silent.is_empty() {
        found.push(Found::unknown("their scheduler or nr_requests is not reported").at(silent));
    }
    if found.is_empty() {
        found.push(if fast.is_empty() {
            none_of(machine.listed.pci && machine.listed.block, "solid-state data drive on PCI")
        } else {
            Found::pass("all data drives have the scheduler none and deep queues")
        });
    }
    found
}

fn each(names: &[&str], command: &str) -> String {
    format!("`for d in {}; do {command}; done`", names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Severity, sample};

    fn of(scheduler: Option<&str>, requests: u64) -> Found {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.block[0].facts.scheduler = scheduler.map(str::to_owned);
        machine.block[0].facts.queue_requests = Some(requests);
        evaluate(&machine).remove(0)
    }

    #[test]
    fn a_scheduler_on_nvme_is_named_with_the_command() {
        let found = of(Some("mq-deadline"), 1023);
        assert_eq!(found.severity, Severity::Warn);
        let command = "`for d in nvme0n1; do echo none > /sys/block/$d/queue/scheduler; done`";
        assert_eq!(found.fix.as_deref(), Some(command));
        assert_eq!(of(Some("none"), 1023).severity, Severity::Pass);
    }

    #[test]
    fn shallow_queues_and_silence_are_reported() {
        assert_eq!(of(Some("none"), 31).severity, Severity::Info);
        assert_eq!(of(None, 1023).severity, Severity::Unknown);
    }
}
