//! SATA and SAS links.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{count, none_of};

pub(super) const RULE: Rule = Rule {
    name: "sata-link",
    question: "Do SATA and SAS links run at the rate that their ports can do?",
    why: "A SATA link at 3 Gb/s carries 300 MB/s at most, however many drives share \
          it: half of what one SSD gives at 6 Gb/s.",
    fix: "Use a cable and enclosure made for the port's rate, or another port, look for \
           libata.force on the kernel's command line, and read `dmesg | grep 'SATA link up'`.",
    source: "NVIDIA, Storage Performance Basics for Deep Learning (an eSATA box at 3 Gb/s); \
             Documentation/ABI/testing/sysfs-ata, sata_spd",
    shown_by: "dmesg",
    evaluate,
};

/// A rate that any SATA port since 2009 can do, in Mbit/s, where a port does not report its own.
const SATA_3: u64 = 6000;

fn evaluate(machine: &Machine) -> Vec<Found> {
    let (mut found, mut silent, mut full) = (Vec::new(), Vec::new(), 0);
    let linked = machine.block.iter().filter_map(|device| Some((device, device.link.as_ref()?)));
    for (device, link) in linked {
        let name = &device.facts.name;
        let location = format!("{name} ({})", link.port);
        match (link.now_megabits, link.most_megabits) {
            (None, _) => silent.push(location),
            (Some(now), Some(most)) if now >= most => full += 1,
            (Some(now), None) if now >= SATA_3 => full += 1,
            (Some(now), most) => found.push(slow(now, most, &location)),
        }
    }
    if !silent.is_empty() {
        found.push(Found::unknown("the rate of the link is not reported").at(silent));
    }
    if full > 0 {
        found.push(Found::pass(format!("{} at full rate", count(full, "link"))));
    }
    if found.is_empty() {
        found.push(none_of(machine.listed.block, "SATA or SAS link"));
    }
    found
}

fn slow(now: u64, most: Option<u64>, location: &str) -> Found {
    // 8b/10b: ten bits on the wire for each byte, at all SATA rates and SAS to 12 Gb/s.
    let carries = now / 10;
    let observed = format!("the link runs at {}, which carries {carries} MB/s at most", rate(now));
    let fix = "use a cable and enclosure made for the port's rate, or another port; then read \
                `dmesg | grep 'SATA link up'`";
    match most {
        Some(most) => {
            Found::fail(format!("{observed}; its port can do {}", rate(most)), fix).at([location])
        }
        None => {
            let observed =
                format!("{observed}; the port's maximum is not known, but most do 6.0 Gb/s");
            Found::warn(observed, fix).at([location])
        }
    }
}

fn rate(megabits: u64) -> String {
    format!("{}.{} Gb/s", megabits / 1000, megabits % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::DriveLink;

    use super::*;
    use crate::check::{Severity, sample};

    fn of(now_megabits: Option<u64>, most_megabits: Option<u64>) -> Found {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let port = "ata3".to_owned();
        machine.block[0].link = Some(DriveLink { port, now_megabits, most_megabits, lanes: 1 });
        evaluate(&machine).remove(0)
    }

    #[test]
    fn three_gigabits_are_reported_with_what_they_carry() {
        let found = of(Some(3000), Some(6000));
        assert_eq!(found.severity, Severity::Fail);
        assert!(found.observed.contains("300 MB/s"), "{}", found.observed);
        assert_eq!(found.locations, ["nvme0n1 (ata3)"]);
        assert_eq!(of(Some(3000), None).severity, Severity::Warn);
    }

    #[test]
    fn full_rates_pass_and_silence_is_unknown() {
        assert_eq!(of(Some(6000), Some(6000)).severity, Severity::Pass);
        assert_eq!(of(Some(3000), Some(3000)).severity, Severity::Pass);
        assert_eq!(of(Some(6000), None).severity, Severity::Pass);
        assert_eq!(of(None, Some(6000)).severity, Severity::Unknown);
    }
}
