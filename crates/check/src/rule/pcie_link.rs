//! PCIe links of GPUs, drives and network cards, and of the switches above them.

use gpuio_record::facts::{Lanes, Machine, PciFacts, PciPort};
use gpuio_units::human_transfers;

use super::Rule;
use crate::finding::Found;
use crate::machine::{count, data_nics};

pub(super) const RULE: Rule = Rule {
    name: "pcie-link",
    asks: "Do the PCIe links of GPUs, drives, network cards and switches run at their maximum?",
    why: "A link with half the lanes or half the speed carries half the bytes, for every device \
          below it.",
    mend: "Seat the card or drive anew, look at slot, riser and cable, and set the slot to its \
           full width and generation in the firmware; then read `lspci -s ADDRESS -vv`, LnkSta.",
    source: "PCI Express Base Specification, Link Status; drivers/pci/pci-sysfs.c, \
             current_link_speed and max_link_speed",
    judge,
};

fn judge(machine: &Machine) -> Vec<Found> {
    let ends = ends(machine);
    if ends.is_empty() {
        return vec![Found::unknown("no PCI function of a GPU, drive or network card is known")];
    }
    let mut found = Vec::new();
    let (mut silent, mut full) = (Vec::new(), 0);
    for end in ends {
        match link(machine, end) {
            Link::None => {}
            Link::Silent => silent.push(end.address.clone()),
            Link::Full => full += 1,
            Link::Bad(bad) => found.push(bad),
        }
    }
    if !silent.is_empty() {
        let why = "speed and width of the link, or their maximum, are not told";
        found.push(Found::unknown(why).at(silent));
    }
    if full == 0 && found.is_empty() {
        found.push(Found::pass("no GPU, drive or network card here has a PCIe link"));
    } else if full > 0 {
        found.push(Found::pass(format!("{} at full speed and width", count(full, "link"))));
    }
    found
}

/// Devices that data goes through, and upstream ports of the switches above them: the lower ends
/// of all links on the way, each once.
fn ends(machine: &Machine) -> Vec<&PciFacts> {
    let gpus = machine.gpus.iter().filter_map(|gpu| gpu.pci.as_deref());
    let drives = machine.block.iter().flat_map(|device| &device.pci).map(String::as_str);
    let nics = data_nics(machine).into_iter().filter_map(|nic| nic.pci.as_deref());
    let mut ends: Vec<&PciFacts> = Vec::new();
    for address in gpus.chain(drives).chain(nics) {
        for (step, end) in machine.way_up(address).into_iter().enumerate() {
            let lower = step == 0 || end.port.known() == Some(&PciPort::SwitchUpstream);
            if lower && !ends.iter().any(|seen| seen.address == end.address) {
                ends.push(end);
            }
        }
    }
    ends
}

enum Link {
    /// It has none: conventional PCI, or inside the root complex.
    None,
    /// The kernel does not tell.
    Silent,
    /// At its maximum.
    Full,
    /// Below it, or a speed that says nothing while the GPU sleeps.
    Bad(Found),
}

fn link(machine: &Machine, end: &PciFacts) -> Link {
    let without = [PciPort::Integrated, PciPort::Conventional, PciPort::EventCollector];
    if end.port.known().is_some_and(|port| without.contains(port)) {
        return Link::None;
    }
    let above = end.parent.as_deref().and_then(|parent| machine.function(parent));
    let most = both(end.link_most, above.map(|above| above.link_most).unwrap_or_default());
    let (Some(speed), Some(width)) = (end.link_now.mega_transfers, end.link_now.width) else {
        return Link::Silent;
    };
    let (Some(most_speed), Some(most_width)) = (most.mega_transfers, most.width) else {
        return Link::Silent;
    };
    let now = words(speed, width);
    let seen =
        format!("the link runs at {now}, and both ends could do {}", words(most_speed, most_width));
    if width < most_width {
        return Link::Bad(Found::fail(seen, mend(end)).at([&end.address]));
    }
    if speed >= most_speed {
        return Link::Full;
    }
    let is_gpu = machine.gpus.iter().any(|gpu| gpu.pci.as_ref() == Some(&end.address));
    Link::Bad(if is_gpu {
        let seen =
            format!("{seen}; an idle GPU saves power so, and whether it climbs is not known");
        let mend = "while a load runs, read `nvidia-smi --query-gpu=pci.bus_id,\
                    pcie.link.gen.current,pcie.link.gen.max --format=csv`";
        Found::unknown(seen).mend(mend).at([&end.address])
    } else {
        Found::fail(seen, mend(end)).at([&end.address])
    })
}

/// The most that both ends of a link can do; what one does not tell, the other decides.
fn both(one: Lanes, other: Lanes) -> Lanes {
    let least = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(b.map_or(a, |b| a.min(b))));
    Lanes {
        mega_transfers: least(one.mega_transfers, other.mega_transfers),
        width: least(one.width, other.width),
    }
}

fn words(mega_transfers: u64, width: u64) -> String {
    format!("{} x{width}", human_transfers(mega_transfers))
}

fn mend(end: &PciFacts) -> String {
    format!(
        "seat it anew, look at slot, riser and cable, and set the slot to full width and \
         generation in the firmware; then read `lspci -s {} -vv`, LnkSta",
        end.address
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Severity, sample};

    fn worst(change: impl Fn(&mut PciFacts), address: &str) -> Found {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        change(machine.pci.iter_mut().find(|f| f.address == address).unwrap());
        let mut found = judge(&machine);
        found.sort_by_key(|found| found.severity);
        found.remove(0)
    }

    #[test]
    fn full_links_pass() {
        let found = judge(&sample::gpu_and_drive_below_a_switch());
        assert_eq!(found, [Found::pass("3 links at full speed and width")]);
    }

    #[test]
    fn lanes_that_are_missing_fail_on_a_switch_too() {
        let found = worst(|f| f.link_now.width = Some(8), sample::UP);
        assert_eq!((found.severity, found.places), (Severity::Fail, vec![sample::UP.to_owned()]));
        assert!(found.seen.contains("16 GT/s x8"), "{}", found.seen);
    }

    #[test]
    fn a_slow_drive_fails_and_a_slow_gpu_may_be_idle() {
        let slow = |f: &mut PciFacts| f.link_now.mega_transfers = Some(2500);
        assert_eq!(worst(slow, sample::DRIVE).severity, Severity::Fail);
        let gpu = worst(slow, sample::GPU);
        assert_eq!(gpu.severity, Severity::Unknown);
        assert!(gpu.mend.unwrap().contains("nvidia-smi"));
    }

    #[test]
    fn a_slot_that_can_do_less_is_the_maximum() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        for address in ["0000:02:01.0", sample::DRIVE] {
            let function = machine.pci.iter_mut().find(|f| f.address == address).unwrap();
            function.link_now.width = Some(4);
        }
        machine.pci.iter_mut().find(|f| f.address == "0000:02:01.0").unwrap().link_most.width =
            Some(4);
        assert_eq!(judge(&machine)[0].severity, Severity::Pass);
    }

    #[test]
    fn a_kernel_that_is_silent_is_unknown() {
        let found = worst(|f| f.link_now = Lanes::default(), sample::DRIVE);
        assert_eq!((found.severity, found.places.len()), (Severity::Unknown, 1));
    }
}
