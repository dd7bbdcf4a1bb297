//! The needs of the kernel's own peer-to-peer DMA.

use gpuio_record::facts::{Fact, Machine};

use super::Rule;
use crate::check::finding::Found;
use crate::check::gdscheck::interpret::open_driver;
use crate::check::machine::{known_module, linux, without_gpu};

pub(super) const RULE: Rule = Rule {
    name: "p2pdma",
    question: "Do the kernel and the NVMe driver support peer-to-peer DMA (P2PDMA)?",
    why: "With it O_DIRECT can go between a drive and GPU memory that the driver offers, without \
          nvidia-fs (Linux 6.2, NVIDIA's open driver). Without it only nvidia-fs is direct.",
    fix: "Use a kernel with CONFIG_PCI_P2PDMA=y and CONFIG_ZONE_DEVICE=y, 6.2 or newer, with \
           nvme_core.multipath=N on its command line, and NVIDIA's open driver with \
           NVreg_RegistryDwords=\"RMForceStaticBar1=1;RmForceDisableIomapWC=1;\".",
    source: "NVIDIA, GPUDirect Storage Installation and Troubleshooting Guide, NVMe P2PDMA \
             Troubleshooting; Documentation/driver-api/pci/p2pdma.rst; drivers/pci/Kconfig, \
             PCI_P2PDMA; block/bio.c, FOLL_PCI_P2PDMA (Linux 6.2)",
    shown_by: super::COLLECTED,
    evaluate,
};

const NEEDED: [&str; 2] = ["CONFIG_PCI_P2PDMA", "CONFIG_ZONE_DEVICE"];

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = without_gpu(machine) {
        return vec![found];
    }
    let mut found = vec![configuration(machine)];
    found.extend(release(machine));
    match open_driver(machine) {
        Fact::Known(true) => {}
        Fact::Known(false) => {
            let observed =
                "NVIDIA's driver is the closed one: only the open one offers GPU memory to peers";
            let fix = "install the open driver (nvidia-open), 565 or later";
            found.push(Found::info(observed).fix(fix));
        }
        Fact::Unknown(why) => {
            let observed = format!("whether NVIDIA's driver is the open one is not known: {why}");
            found.push(Found::unknown(observed));
        }
    }
    let nvme = known_module(machine, "nvme_core");
    let multipath = nvme.and_then(|nvme| nvme.parameters.get("multipath"));
    if multipath.is_none() && nvme.is_none_or(|nvme| nvme.loaded) {
        found.push(Found::unknown("the setting of NVMe's own multipath is not known"));
    }
    if multipath.is_some_and(|value| value == "Y") {
        let observed =
            "NVMe's own multipath is on, which NVIDIA's guide switches off for this mode";
        let fix = "boot with nvme_core.multipath=N, if no drive has two paths";
        found.push(
            Found::info(observed).fix(fix).at(["/sys/module/nvme_core/parameters/multipath"]),
        );
    }
    found
}

/// Reports a kernel before 6.2 as too old.
fn release(machine: &Machine) -> Option<Found> {
    let Some(release) = machine.host.kernel.release.as_deref() else {
        return Some(Found::unknown("the kernel's release was not read"));
    };
    (linux(machine)? < (6, 2)).then(|| {
        let observed =
            format!("Linux {release} has no O_DIRECT to memory of peers; 6.2 was the first");
        Found::info(observed).fix("use Linux 6.2 or newer; nvidia-fs does not need it")
    })
}

fn configuration(machine: &Machine) -> Found {
    if let Fact::Unknown(why) = &machine.config.source {
        let unknown = Found::unknown(format!("the kernel's configuration is not known: {why}"));
        return unknown.fix("mount or copy /boot/config-RELEASE to where gpuio can read it");
    }
    let option = |name: &&str| machine.config.options.get(*name).map(String::as_str);
    let silent: Vec<&str> = NEEDED.into_iter().filter(|name| option(name).is_none()).collect();
    if !silent.is_empty() {
        return Found::unknown("these options are not reported").at(silent);
    }
    let off: Vec<&str> = NEEDED.into_iter().filter(|name| option(name) != Some("y")).collect();
    if off.is_empty() {
        Found::pass(format!("{} are on", NEEDED.join(" and ")))
    } else {
        let observed = "these options are off; nvidia-fs does not need them";
        Found::info(observed).fix("use a kernel with these options").at(off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Severity, sample};

    #[test]
    fn old_kernels_and_multipath_are_reported() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.host.kernel.release = Some("5.15.0-91-generic".to_owned());
        assert!(release(&machine).unwrap().observed.contains("6.2 was the first"));
        machine.host.kernel.release = Some("6.2.0".to_owned());
        assert_eq!(release(&machine), None);
        let mut nvme = sample::module("nvme_core", true);
        nvme.parameters.insert("multipath".to_owned(), "Y".to_owned());
        machine.modules.push(nvme);
        machine.settings.open_driver = Fact::Known(false);
        let mut found = evaluate(&machine);
        let last = found.pop().unwrap();
        assert!(found.pop().unwrap().observed.contains("closed"));
        assert!(last.fix.unwrap().contains("nvme_core.multipath=N"));
    }

    #[test]
    fn each_answer() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown);
        machine.config.source = Fact::Known("/boot/config-6.8.0".to_owned());
        assert_eq!(evaluate(&machine)[0].locations, NEEDED);
        for (name, value) in NEEDED.into_iter().zip(["y", "n"]) {
            machine.config.options.insert(name.to_owned(), value.to_owned());
        }
        let found = evaluate(&machine);
        assert_eq!((found[0].severity, &found[0].locations[0][..]), (Severity::Info, NEEDED[1]));
        machine.config.options.insert(NEEDED[1].to_owned(), "y".to_owned());
        let found: Vec<Severity> = evaluate(&machine).iter().map(|found| found.severity).collect();
        assert_eq!(found, [Severity::Pass, Severity::Unknown, Severity::Unknown]);
        machine.settings.open_driver = Fact::Known(true);
        let mut nvme = sample::module("nvme_core", true);
        nvme.parameters.insert("multipath".to_owned(), "N".to_owned());
        machine.modules.push(nvme);
        assert_eq!(evaluate(&machine).len(), 1);
    }
}
