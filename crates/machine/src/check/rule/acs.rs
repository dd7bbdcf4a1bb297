//! PCIe Access Control Services of the bridges above GPUs, drives and network cards.

use std::borrow::Cow;

use gpuio_record::facts::{Acs, AcsControl, GdsCheck, Machine, PciFacts, PciPort};

use super::Rule;
use crate::check::finding::Found;
use crate::check::gdscheck::interpret::or_printed;
use crate::check::machine::{
    count, gpu_name, gpus_not_placed, placed_drives, placed_nics, with_unknown_root_port,
    without_gpu,
};

pub(super) const RULE: Rule = Rule {
    name: "acs",
    question: "Do the PCIe bridges above GPUs, drives and network cards let peers' traffic \
               stay below them (ACS redirection off)?",
    why: "With ACS redirection the DMA of a drive or a card into GPU memory below the same switch \
          goes up to the root complex and down again: it takes the shared link twice, or does not \
          work at all.",
    fix: "Switch ACS off in the firmware (and with it, if need be, virtualization), or until the \
           next boot with `setpci -s BRIDGE ECAP_ACS+0x6.w=0000`. Leave it on where devices are \
           passed to virtual machines: it isolates them.",
    source: "NVIDIA, GPUDirect Storage Best Practices Guide, PCIe Access Control Service; PCI \
             Express Base Specification, 6.12; setpci(8)",
    shown_by: "lspci -vv",
    evaluate,
};

const REDIRECTS: [AcsControl; 2] = [AcsControl::RequestRedirect, AcsControl::CompletionRedirect];

fn evaluate(machine: &Machine) -> Vec<Found> {
    or_printed(machine, by_facts(machine), |check, printed, open| {
        from_gdscheck(machine, check, printed, open)
    })
}

fn by_facts(machine: &Machine) -> Vec<Found> {
    if machine.pci.is_empty() && !machine.listed.pci {
        return vec![Found::unknown("no PCI function is known")];
    }
    if let Some(found) = without_gpu(machine) {
        return vec![found];
    }
    let bridges = bridges(machine);
    let redirects = |bridge: &&&PciFacts| bridge.acs.known().is_some_and(redirects);
    let on: Vec<&&PciFacts> = bridges.iter().filter(redirects).collect();
    let (roots, ports): (Vec<&PciFacts>, Vec<&PciFacts>) =
        on.into_iter().partition(|bridge| bridge.port.known() == Some(&PciPort::RootPort));
    let mut found = Vec::new();
    if !ports.is_empty() {
        let observed =
            format!("{} redirect traffic between peers", count(ports.len(), "switch port"));
        let addresses: Vec<&str> = ports.iter().map(|port| port.address.as_str()).collect();
        found.push(Found::warn(observed, fix(&addresses)).at(addresses));
    }
    if !roots.is_empty() {
        let observed = "root ports redirect too, which concerns only peers below different root \
                    ports; NVIDIA's gdscheck names them";
        found.push(Found::info(observed).at(roots.iter().map(|port| &port.address)));
    }
    let hidden: Vec<&&PciFacts> = bridges.iter().filter(|b| b.acs.known().is_none()).collect();
    if let Some(why) = hidden.first().and_then(|bridge| bridge.acs.why()) {
        let found_hidden = Found::unknown(format!("ACS can't be read: {why}"));
        let fix = "run it as root, or read `lspci -vvv`, ACSCtl";
        found.push(found_hidden.fix(fix).at(hidden.iter().map(|bridge| &bridge.address)));
    }
    let ends = ends(machine);
    let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
    let open = with_unknown_root_port(machine, &ends).into_iter().map(Cow::Borrowed);
    let open: Vec<Cow<'_, str>> = open.chain(gpus_not_placed(machine).map(gpu_name)).collect();
    if ends.is_empty() || !open.is_empty() {
        let why = "bridges above these devices are not all known";
        found.push(Found::unknown(why).at(open));
    }
    if found.is_empty() {
        found.push(if bridges.is_empty() {
            Found::not_applicable("no bridge above GPUs, drives and network cards")
        } else {
            Found::pass(format!("{} without redirection", count(bridges.len(), "bridge")))
        });
    }
    found
}

/// The findings by gdscheck's lines, of ports whose own registers were not read. It shows nothing
/// of other ports, which stay open where they are known.
fn from_gdscheck(
    machine: &Machine,
    check: &GdsCheck,
    printed: &str,
    open: Vec<Found>,
) -> Vec<Found> {
    let not_read =
        |port: &&str| machine.function(port).is_none_or(|port| port.acs.known().is_none());
    let ports: Vec<&str> = check.acs.iter().map(String::as_str).filter(not_read).collect();
    let mut found = if machine.pci.is_empty() { Vec::new() } else { open };
    if !ports.is_empty() {
        let observed =
            format!("{printed} ACS as enabled for {}", count(ports.len(), "switch port"));
        found.push(Found::warn(observed, fix(&ports)).at(ports));
    } else if found.is_empty() {
        let why = "no switch with ACS, and does not show whether it could look";
        let read = "read `lspci -vvv`, ACSCtl";
        found.push(Found::unknown(format!("{printed} {why}")).fix(read));
    }
    found
}

/// Bridges above the devices that may talk to each other, each once.
pub(crate) fn bridges(machine: &Machine) -> Vec<&PciFacts> {
    let mut bridges: Vec<&PciFacts> = Vec::new();
    for address in ends(machine) {
        for bridge in machine.upstream_path(&address).into_iter().skip(1) {
            if !bridges.iter().any(|known| known.address == bridge.address) {
                bridges.push(bridge);
            }
        }
    }
    bridges.sort_by(|a, b| a.address.cmp(&b.address));
    bridges
}

/// GPUs, drives and network cards.
fn ends(machine: &Machine) -> Vec<String> {
    let gpus = machine.gpus.iter().filter_map(|gpu| gpu.pci.clone());
    let others = placed_drives(machine).into_iter().chain(placed_nics(machine));
    gpus.chain(others.flat_map(|other| other.pci)).collect()
}

/// Whether it sends traffic between peers up.
pub(crate) fn redirects(acs: &Acs) -> bool {
    acs.enabled.iter().any(|control| REDIRECTS.contains(control))
}

fn fix(addresses: &[&str]) -> String {
    let commands = match addresses {
        [one] => format!("`setpci -s {one} ECAP_ACS+0x6.w=0000`"),
        many => format!("`for b in {}; do setpci -s $b ECAP_ACS+0x6.w=0000; done`", many.join(" ")),
    };
    format!(
        "switch ACS off in the firmware, or until the next boot: {commands} (not where devices are \
         passed to virtual machines)"
    )
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::Fact;

    use super::*;
    use crate::check::{Severity, sample};

    fn with(address: &str, acs: Fact<Acs>) -> Vec<Found> {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.pci.iter_mut().find(|f| f.address == address).unwrap().acs = acs;
        evaluate(&machine)
    }

    fn on(control: AcsControl) -> Fact<Acs> {
        Fact::Known(Acs { present: true, enabled: vec![control] })
    }

    #[test]
    fn a_switch_port_that_redirects_is_named_with_its_command() {
        let found = with("0000:02:01.0", on(AcsControl::RequestRedirect));
        assert_eq!(found[0].severity, Severity::Warn);
        let fix = found[0].fix.as_ref().unwrap();
        assert!(fix.contains("setpci -s 0000:02:01.0 ECAP_ACS+0x6.w=0000"), "{fix}");
    }

    #[test]
    fn root_ports_are_information_and_validation_is_nothing() {
        let found = with(sample::ROOT, on(AcsControl::CompletionRedirect));
        assert_eq!(found[0].severity, Severity::Info);
        let found = with("0000:02:01.0", on(AcsControl::SourceValidation));
        assert_eq!(found, [Found::pass("4 bridges without redirection")]);
    }

    #[test]
    fn a_way_up_that_is_not_known_is_no_pass() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.pci.retain(|function| function.address != sample::ROOT);
        let found = evaluate(&machine);
        assert_eq!(found[0].severity, Severity::Unknown, "{found:?}");
        machine.gpus[0].pci = None;
        machine.block.clear();
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown);
    }

    #[test]
    fn without_root_it_is_unknown() {
        let found = with(sample::UP, Fact::unknown("needs root"));
        assert_eq!(found[0].severity, Severity::Unknown);
        assert!(found[0].observed.contains("needs root"));
    }

    #[test]
    fn ports_that_gdscheck_named_count_where_their_registers_were_not_read() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let acs = vec![sample::UP.to_owned()];
        machine.gdscheck = Some(GdsCheck { acs, ..GdsCheck::default() });
        assert_eq!(evaluate(&machine)[0].severity, Severity::Pass, "its registers go before");
        machine.pci.iter_mut().for_each(|function| function.acs = Fact::unknown("a tree"));
        let found = evaluate(&machine);
        let severities: Vec<Severity> = found.iter().map(|found| found.severity).collect();
        assert_eq!(severities, [Severity::Unknown, Severity::Warn]);
        assert_eq!(found[1].observed, "gdscheck printed ACS as enabled for 1 switch port");
        assert_eq!(found[1].locations, [sample::UP]);
    }
}
