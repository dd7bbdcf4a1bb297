//! SATA and SAS links.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::finding::Found;
use crate::machine::{count, none_of};

pub(super) const RULE: Rule = Rule {
    name: "sata-link",
    asks: "Do SATA and SAS links run at the rate that their ports can do?",
    why: "A SATA link at 3 Gb/s carries 300 MB/s at most, however many drives a box holds behind \
          it: half of what one SSD gives at 6 Gb/s.",
    mend: "Use a cable and enclosure made for the port's rate, or another port, look for \
           libata.force on the kernel's command line, and read `dmesg | grep 'SATA link up'`.",
    source: "NVIDIA, Storage Performance Basics for Deep Learning (an eSATA box at 3 Gb/s); \
             Documentation/ABI/testing/sysfs-ata, sata_spd",
    judge,
};

/// A rate that any SATA port since 2009 can do, in Mbit/s, where a port does not tell its own.
const SATA_3: u64 = 6000;

fn judge(machine: &Machine) -> Vec<Found> {
    let (mut found, mut silent, mut full) = (Vec::new(), Vec::new(), 0);
    let linked = machine.block.iter().filter_map(|device| Some((device, device.link.as_ref()?)));
    for (device, link) in linked {
        let name = &device.facts.name;
        let place = format!("{name} ({})", link.port);
        match (link.now_megabits, link.most_megabits) {
            (None, _) => silent.push(place),
            (Some(now), Some(most)) if now >= most => full += 1,
            (Some(now), None) if now >= SATA_3 => full += 1,
            (Some(now), most) => found.push(slow(now, most, &place)),
        }
    }
    if !silent.is_empty() {
        found.push(Found::unknown("the rate of the link is not told").at(silent));
    }
    if full > 0 {
        found.push(Found::pass(format!("{} at full rate", count(full, "link"))));
    }
    if found.is_empty() {
        found.push(none_of(machine.listed.block, "SATA or SAS link"));
    }
    found
}

fn slow(now: u64, most: Option<u64>, place: &str) -> Found {
    // 8b/10b: ten bits on the wire for each byte, at all SATA rates and SAS to 12 Gb/s.
    let carries = now / 10;
    let seen = format!("the link runs at {}, which carries {carries} MB/s at most", rate(now));
    let mend = "use a cable and enclosure made for the port's rate, or another port; then read \
                `dmesg | grep 'SATA link up'`";
    match most {
        Some(most) => {
            Found::fail(format!("{seen}; its port can do {}", rate(most)), mend).at([place])
        }
        None => {
            let seen = format!("{seen}; what its port can do is not told, but most do 6.0 Gb/s");
            Found::warn(seen, mend).at([place])
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
    use crate::{Severity, sample};

    fn of(now_megabits: Option<u64>, most_megabits: Option<u64>) -> Found {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let port = "ata3".to_owned();
        machine.block[0].link = Some(DriveLink { port, now_megabits, most_megabits, lanes: 1 });
        judge(&machine).remove(0)
    }

    #[test]
    fn three_gigabits_are_told_with_what_they_carry() {
        let found = of(Some(3000), Some(6000));
        assert_eq!(found.severity, Severity::Fail);
        assert!(found.seen.contains("300 MB/s"), "{}", found.seen);
        assert_eq!(found.places, ["nvme0n1 (ata3)"]);
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
