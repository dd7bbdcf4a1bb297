//! PCIe relaxed ordering.

use gpuio_record::facts::{Fact, Machine, PciPort};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{count, gpu_name, none_of, placed_nics};

pub(super) const RULE: Rule = Rule {
    name: "relaxed-ordering",
    question: "May network cards and GPUs mark their packets as free to pass others (relaxed \
           ordering)?",
    why: "Without it writes of a card wait for each other on their way through switches and the \
          root complex, which on some processors costs most of the rate to memory far away.",
    fix: "`setpci -s ADDRESS CAP_EXP+0x08.w=0010:0010` until the next boot, and the card's own \
           setting (mlx5: `mlxconfig -d DEVICE set PCI_WR_ORDERING=1`). The kernel keeps it off \
           below root ports that get it wrong.",
    source: "PCI Express Base Specification, 7.5.3.4 Device Control; drivers/pci/probe.c, \
             pci_configure_relaxed_ordering; drivers/pci/quirks.c, quirk_relaxedordering_disable; \
             drivers/net/ethernet/mellanox/mlx5/core/en_common.c, mlx5e_mkey_set_relaxed_ordering",
    shown_by: "lspci -vv",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let cards = placed_nics(machine);
    let nics: Vec<&str> = cards.iter().flat_map(|card| &card.pci).map(String::as_str).collect();
    let gpus = machine.gpus.iter().filter_map(|gpu| gpu.pci.as_deref());
    let all: Vec<&str> = nics.iter().copied().chain(gpus).collect();
    if all.is_empty() && machine.gpus.is_empty() {
        let whole = machine.listed.pci && machine.listed.nics;
        return vec![none_of(whole, "GPU and no network card in use")];
    }
    let (mut off, mut on, mut hidden) = (Vec::new(), 0, Vec::new());
    for gpu in machine.gpus.iter().filter(|gpu| gpu.pci.is_none()) {
        hidden.push((gpu_name(gpu), "its PCI function is not known"));
    }
    for address in all {
        let Some(function) = machine.function(address) else {
            hidden.push((address.into(), "nothing is known of the function"));
            continue;
        };
        match &function.relaxed_ordering {
            _ if function.port.known() == Some(&PciPort::Conventional) => {}
            Fact::Known(true) => on += 1,
            Fact::Known(false) => off.push(address),
            Fact::Unknown(why) => hidden.push((address.into(), why.as_str())),
        }
    }
    let mut found: Vec<Found> = off.iter().map(|address| switched_off(address, &nics)).collect();
    for (address, why) in hidden {
        let fix = "run it as root, or read `lspci -vv`, DevCtl, RlxdOrd";
        found.push(Found::unknown(format!("it can't be read: {why}")).fix(fix).at([address]));
    }
    if found.is_empty() {
        found.push(match on {
            0 => Found::not_applicable("no GPU or network card on PCI Express is in use"),
            on => Found::pass(format!("{} may", count(on, "device"))),
        });
    }
    found
}

fn switched_off(address: &str, nics: &[&str]) -> Found {
    let observed = "it is switched off in Device Control";
    if nics.contains(&address) {
        let fix = format!(
            "`setpci -s {address} CAP_EXP+0x08.w=0010:0010` until the next boot; if the kernel \
             switched it off (`dmesg | grep -i 'relaxed ordering'`), leave it"
        );
        Found::warn(format!("a network card: {observed}"), fix).at([address])
    } else {
        Found::info(format!("a GPU: {observed}")).at([address])
    }
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{NicFacts, RdmaFacts};

    use super::*;
    use crate::check::{Severity, sample};

    fn with(gpu: Fact<bool>, card: Fact<bool>) -> Vec<Severity> {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        for (address, ordering) in [(sample::GPU, gpu), (sample::DRIVE, card)] {
            let function = machine.pci.iter_mut().find(|f| f.address == address).unwrap();
            function.relaxed_ordering = ordering;
        }
        machine.nics.push(NicFacts {
            pci: Some(sample::DRIVE.to_owned()),
            rdma: vec![RdmaFacts::default()],
            ..NicFacts::default()
        });
        evaluate(&machine).into_iter().map(|found| found.severity).collect()
    }

    #[test]
    fn a_card_matters_more_than_a_gpu() {
        let (on, off) = (Fact::Known(true), Fact::Known(false));
        assert_eq!(with(on.clone(), on.clone()), [Severity::Pass]);
        assert_eq!(with(off.clone(), off.clone()), [Severity::Warn, Severity::Info]);
        assert_eq!(with(on, Fact::unknown("needs root")), [Severity::Unknown]);
    }
}
