//! PCIe links of GPUs, drives and network cards, and of the switches above them.

use crate::topo::slot;
use gpuio_record::facts::{Fact, GpuFacts, Lanes, Machine, PciFacts, PciPort};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{
    count, gpu_name, gpus_not_placed, none_of, placed_drives, placed_nics,
};

pub(super) const RULE: Rule = Rule {
    name: "pcie-link",
    question: "Do the PCIe links of GPUs, drives, network cards and switches run at their maximum?",
    why: "A link with half the lanes or half the speed carries half the bytes, for every device \
          below it.",
    fix: "Seat the card or drive anew, look at slot, riser and cable, and set the slot to its \
           full width and generation in the firmware; then read `lspci -s ADDRESS -vv`, LnkSta.",
    source: "PCI Express Base Specification, Link Status; drivers/pci/pci-sysfs.c, \
             current_link_speed and max_link_speed",
    shown_by: "lspci -vv",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let ends = ends(machine);
    if ends.is_empty() && machine.gpus.is_empty() {
        let listed = machine.listed;
        let whole = listed.pci && listed.block && listed.nics;
        return vec![none_of(whole, "GPU, drive or network card on PCI")];
    }
    let mut found = Vec::new();
    let unplaced = gpus_not_placed(machine).map(|gpu| {
        let only_named = PciFacts { address: gpu_name(gpu).into(), ..PciFacts::default() };
        (gpu_name(gpu), link(machine, &only_named, Some(gpu)))
    });
    let of =
        |end: &PciFacts| machine.gpus.iter().find(|gpu| gpu.pci.as_ref() == Some(&end.address));
    let ends =
        ends.into_iter().map(|end| (end.address.as_str().into(), link(machine, end, of(end))));
    let (mut silent, mut inside, mut full) = (Vec::new(), Vec::new(), 0);
    for (address, link) in unplaced.chain(ends) {
        match link {
            Link::None => inside.push(address),
            Link::Silent => silent.push(address),
            Link::Full => full += 1,
            Link::Bad(bad) => found.push(bad),
        }
    }
    if !silent.is_empty() {
        let why = "speed or width of the link, or their maximum, are not reported";
        found.push(Found::unknown(why).at(silent));
    }
    if full == 0 && found.is_empty() {
        let why = "no GPU, drive or network card here has a PCIe link of its own";
        found.push(Found::not_applicable(why).at(inside));
    } else if full > 0 {
        found.push(Found::pass(format!("{} at full speed and width", count(full, "link"))));
    }
    found
}

/// Devices that data goes through, and upstream ports of the switches above them: the lower ends
/// of all links on the route, each once.
fn ends(machine: &Machine) -> Vec<&PciFacts> {
    let gpus = machine.gpus.iter().filter_map(|gpu| gpu.pci.as_deref());
    let gpus = gpus.chain(machine.block.iter().flat_map(|device| &device.pci).map(String::as_str));
    let placed = placed_drives(machine).into_iter().chain(placed_nics(machine));
    let others: Vec<String> = placed.flat_map(|other| other.pci).collect();
    let mut ends: Vec<&PciFacts> = Vec::new();
    for address in gpus.chain(others.iter().map(String::as_str)) {
        for (step, end) in machine.upstream_path(address).into_iter().enumerate() {
            let lower = step == 0 || end.port.known() == Some(&PciPort::SwitchUpstream);
            if lower && !ends.iter().any(|known| is_of_one_link(known, end)) {
                ends.push(end);
            }
        }
    }
    ends
}

/// Functions of one device share its link.
fn is_of_one_link(one: &PciFacts, other: &PciFacts) -> bool {
    one.parent == other.parent && slot(&one.address) == slot(&other.address)
}

enum Link {
    /// It has none: conventional PCI, or inside the root complex.
    None,
    /// The kernel does not report it.
    Silent,
    /// At its maximum.
    Full,
    /// Below it, or a speed that means nothing while the GPU sleeps.
    Bad(Found),
}

fn link(machine: &Machine, end: &PciFacts, gpu: Option<&GpuFacts>) -> Link {
    let without = [PciPort::Integrated, PciPort::Conventional, PciPort::EventCollector];
    if end.port.known().is_some_and(|port| without.contains(port)) || is_in_chipset(end) {
        return Link::None;
    }
    let above = end.parent.as_deref().and_then(|parent| machine.function(parent));
    // NVIDIA's driver reports the most of GPU and slot together (`nvidia-smi --help-query-gpu`,
    // pcie.link.width.max).
    let driver = |pick: fn(&GpuFacts) -> &Fact<Lanes>| {
        gpu.and_then(|gpu| pick(gpu).known().copied()).unwrap_or_default()
    };
    let together = driver(|gpu| &gpu.pcie_most);
    let port = above.map(|above| above.link_most).unwrap_or_default();
    let now = end.link_now.or(driver(|gpu| &gpu.pcie_now));
    let most = both(both(end.link_most, port), together);
    let below = |now: Option<u64>, most: Option<u64>| now.zip(most).map(|(now, most)| now < most);
    let narrow = below(now.width, most.width);
    let slow = below(now.mega_transfers, most.mega_transfers);
    if narrow != Some(true) && slow != Some(true) {
        return if narrow.and(slow).is_some() { Link::Full } else { Link::Silent };
    }
    let both_are_read = port != Lanes::default() || together != Lanes::default();
    let whose = if both_are_read { "both ends" } else { "the device" };
    // Without what there is nothing to compare with.
    let could = Lanes {
        mega_transfers: now.mega_transfers.and(most.mega_transfers),
        width: now.width.and(most.width),
    };
    let observed = format!("the link runs at {now}, and {whose} could do {could}");
    if above.is_none() && together == Lanes::default() {
        let observed = format!("{observed}; what the port above it can do was not read");
        let fix = "read `lspci -vv` of all functions";
        return Link::Bad(Found::unknown(observed).fix(fix).at([&end.address]));
    }
    Link::Bad(if narrow == Some(true) || gpu.is_none() {
        Found::fail(observed, fix(&end.address)).at([&end.address])
    } else {
        let observed =
            format!("{observed}; an idle GPU saves power so, and whether it climbs is not known");
        let fix = "while a load runs, read `nvidia-smi --query-gpu=pci.bus_id,\
                    pcie.link.gen.current,pcie.link.gen.max --format=csv`";
        Found::unknown(observed).fix(fix).at([&end.address])
    })
}

/// Intel's X722 is a part of the chipset: it has no slot, and reports 2.5 GT/s x1 of a link that is
/// not there (drivers/net/ethernet/intel/i40e/i40e_main.c, i40e_probe: its NO_PCI_LINK_CHECK; the
/// numbers are those of i40e_devids.h and of its virtual function).
fn is_in_chipset(end: &PciFacts) -> bool {
    let x722 = |device: u16| (0x37cd..=0x37d3).contains(&device) || device == 0x0dda;
    match (end.vendor, end.device) {
        (Some(vendor), Some(device)) => vendor == 0x8086 && x722(device),
        _ => end.name.as_deref().is_some_and(|name| name.contains("Ethernet Connection X722")),
    }
}

/// The most that both ends of a link can do; where one does not report it, the other decides.
fn both(one: Lanes, other: Lanes) -> Lanes {
    let least = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(b.map_or(a, |b| a.min(b))));
    Lanes {
        mega_transfers: least(one.mega_transfers, other.mega_transfers),
        width: least(one.width, other.width),
    }
}

fn fix(address: &str) -> String {
    format!(
        "seat it anew, look at slot, riser and cable, and set the slot to full width and \
         generation in the firmware; then read `lspci -s {address} -vv`, LnkSta"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Severity::{self, Fail as FAIL, Pass as PASS, Unknown as UNKNOWN};
    use crate::check::sample;

    fn worst(change: impl Fn(&mut PciFacts), address: &str) -> Found {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        change(machine.pci.iter_mut().find(|f| f.address == address).unwrap());
        let mut found = evaluate(&machine);
        found.sort_by_key(|found| found.severity);
        found.remove(0)
    }

    /// GPUs that a text shows by number alone are not taken for each other.
    #[test]
    fn each_gpu_without_an_address_has_its_own_link() {
        let lanes = |lanes| Fact::Known(Lanes::of_generation(Some(5), Some(lanes)));
        let gpu = |index, now| GpuFacts {
            index: Fact::Known(index),
            pcie_now: lanes(now),
            pcie_most: lanes(16),
            ..GpuFacts::default()
        };
        let machine = Machine { gpus: vec![gpu(0, 16), gpu(1, 4)], ..Machine::default() };
        let found = evaluate(&machine);
        assert_eq!(
            (found[0].severity, found[0].locations.as_slice()),
            (Severity::Fail, &["GPU1".to_owned()][..])
        );
        assert!(found[1].observed.starts_with("1 link at full"), "{found:?}");
    }

    #[test]
    fn full_links_pass() {
        let found = evaluate(&sample::gpu_and_drive_below_a_switch());
        assert_eq!(found, [Found::pass("3 links at full speed and width")]);
    }

    #[test]
    fn lanes_that_are_missing_fail_on_a_switch_too() {
        let found = worst(|f| f.link_now.width = Some(8), sample::UP);
        assert_eq!(
            (found.severity, found.locations),
            (Severity::Fail, vec![sample::UP.to_owned()])
        );
        assert!(found.observed.contains("16 GT/s x8"), "{}", found.observed);
    }

    #[test]
    fn a_slow_drive_fails_and_a_slow_gpu_may_be_idle() {
        let slow = |f: &mut PciFacts| f.link_now.mega_transfers = Some(2500);
        assert_eq!(worst(slow, sample::DRIVE).severity, Severity::Fail);
        let gpu = worst(slow, sample::GPU);
        assert_eq!(gpu.severity, Severity::Unknown);
        assert!(gpu.fix.unwrap().contains("nvidia-smi"));
    }

    #[test]
    fn functions_of_one_device_are_one_link() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let card = machine.pci.iter().find(|f| f.address == sample::DRIVE).unwrap();
        let mut second = card.clone();
        second.address = second.address.replace(".0", ".1");
        machine.block.clear();
        machine.listed = gpuio_record::facts::Listed::default();
        machine.pci.push(second);
        for function in
            machine.pci.iter_mut().filter(|f| f.address.starts_with(&sample::DRIVE[..10]))
        {
            function.class = Some(0x01_0802);
            function.link_now.width = Some(2);
        }
        let found = evaluate(&machine);
        let bad: Vec<_> = found.iter().filter(|it| it.severity == Severity::Fail).collect();
        assert_eq!(bad.len(), 1, "{found:?}");
    }

    /// `lspci -nn` of a server with Intel's C620 chipset: 8086:37d2, below a bridge of 16 lanes.
    #[test]
    fn a_card_inside_the_chipset_has_no_link_to_fix() {
        for by_number in [true, false] {
            let mut machine = sample::gpu_and_drive_below_a_switch();
            let card = machine.pci.iter_mut().find(|f| f.address == sample::DRIVE).unwrap();
            card.link_now = Lanes { mega_transfers: Some(2500), width: Some(1) };
            if by_number {
                (card.vendor, card.device) = (Some(0x8086), Some(0x37d2));
            } else {
                let name = "Intel Corporation Ethernet Connection X722 for 10GBASE-T";
                card.name = Some(name.to_owned());
            }
            let found = evaluate(&machine);
            assert_eq!(found, [Found::pass("2 links at full speed and width")]);
        }
    }

    #[test]
    fn drives_and_cards_that_are_known_by_class_alone_are_judged() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.block.clear();
        machine.listed = gpuio_record::facts::Listed::default();
        let drive = machine.pci.iter_mut().find(|f| f.address == sample::DRIVE).unwrap();
        drive.class = Some(0x01_0802);
        drive.link_now.width = Some(2);
        let found = evaluate(&machine);
        assert_eq!(
            (found[0].severity, &found[0].locations[0][..]),
            (Severity::Fail, sample::DRIVE)
        );
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
        assert_eq!(evaluate(&machine)[0].severity, Severity::Pass);
    }

    /// `lspci -vv -s GPU`: a slot of 8 lanes is no fault of a card that could do 16.
    #[test]
    fn a_port_that_was_not_read_may_allow_no_more() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.pci.retain(|f| f.address == sample::GPU);
        machine.pci[0].link_now.width = Some(8);
        let found = evaluate(&machine).remove(0);
        assert_eq!(found.severity, Severity::Unknown);
        assert!(found.observed.contains("was not read") && !found.observed.contains("both ends"));
    }

    #[test]
    fn lanes_that_nvidia_smi_reports_count_where_pci_has_none() {
        let of = |generation, lanes: u32, pci: bool| {
            let mut machine = sample::gpu_and_drive_below_a_switch();
            machine.pci.retain(|f| pci && f.address == sample::GPU);
            machine.pci.iter_mut().for_each(|f| f.link_now = Lanes::default());
            let link = |lanes| Fact::Known(Lanes::of_generation(generation, lanes));
            machine.gpus[0].pcie_now = link(Some(lanes));
            machine.gpus[0].pcie_most = link(Some(16));
            machine.block.clear();
            evaluate(&machine).remove(0)
        };
        for pci in [false, true] {
            let severity = |generation, lanes| of(generation, lanes, pci).severity;
            assert_eq!((severity(Some(4), 8), severity(Some(4), 16)), (FAIL, PASS));
            assert_eq!((severity(None, 8), severity(None, 16)), (FAIL, UNKNOWN), "width alone");
            let words = of(None, 8, pci).observed;
            assert!(words.starts_with("the link runs at x8, and both ends could do "), "{words}");
            assert!(words.ends_with("x16"), "{words}");
        }
    }

    #[test]
    fn a_kernel_that_is_silent_is_unknown() {
        let found = worst(|f| f.link_now = Lanes::default(), sample::DRIVE);
        assert_eq!((found.severity, found.locations.len()), (Severity::Unknown, 1));
    }
}
