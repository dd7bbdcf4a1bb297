//! The IOMMU.

use gpuio_record::facts::{GdsCheck, Machine, PciFacts};

use super::Rule;
use crate::check::finding::{Found, Severity};
use crate::check::gdscheck::interpret::or_printed;
use crate::check::machine::{KERNEL_NOT_READ, gpus_not_placed, kernel_was_read, placed_drives};

pub(super) const RULE: Rule = Rule {
    name: "iommu",
    question: "Do GPUs and drives use DMA without translation by an IOMMU?",
    why: "Translation sends traffic between peers through the root complex, NVIDIA's direct path \
          may fail with it, and each mapping costs processor time at small blocks. It need not be \
          off: domains of kind identity (passthrough) translate nothing, and paths through host \
          memory work with either.",
    fix: "On x86 boot with `iommu=pt`, or with `intel_iommu=off` or `amd_iommu=off`, which NVIDIA \
           prefers, where no device is passed to virtual machines. On NVIDIA Grace leave it on, \
           without passthrough.",
    source: "NVIDIA, GPUDirect Storage Best Practices Guide, System Settings (x86 and Grace); \
             NVIDIA, GPUDirect Storage Installation and Troubleshooting Guide, Before You Install \
             GDS; \
             Documentation/admin-guide/kernel-parameters.txt, iommu=; \
             Documentation/ABI/testing/sysfs-kernel-iommu_groups",
    shown_by: "gdscheck -p",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let found = or_printed(machine, by_facts(machine), from_gdscheck);
    let (open, mut found): (Vec<Found>, Vec<Found>) =
        found.into_iter().partition(|one| one.severity == Severity::Unknown);
    if !open.is_empty() {
        found.extend(by_command_line(machine).map_or(open, |one| vec![one]));
    }
    found
}

/// The finding by arguments of the kernel (kernel-parameters.txt, `intel_iommu=`, `amd_iommu=`,
/// `iommu=`), where the state of devices is not known.
fn by_command_line(machine: &Machine) -> Option<Found> {
    let words = machine.settings.command_line.as_deref()?;
    let model = machine.host.cpu.model.as_deref().unwrap_or_default();
    // The other maker's argument has no effect.
    let others = match (model.contains("AMD"), model.contains("Intel")) {
        (true, _) => "intel_iommu=",
        (_, true) => "amd_iommu=",
        _ => "-",
    };
    let words = words.iter().map(String::as_str).filter(|word| !word.starts_with(others));
    let find = |starts: &[&str]| {
        words.clone().find(|word| starts.iter().any(|start| word.starts_with(start)))
    };
    let line = "the kernel's command line has";
    if let Some(off) = find(&["intel_iommu=off", "amd_iommu=off", "iommu=off"]) {
        return Some(Found::pass(format!("{line} `{off}`")));
    }
    if let Some(through) = find(&["iommu=pt", "iommu.passthrough=1"]) {
        let observed = format!("{line} `{through}`: an IOMMU translates for no GPU or data drive");
        return Some(Found::info(observed));
    }
    let on = find(&["intel_iommu=on", "amd_iommu=on", "amd_iommu=force_enable", "iommu=force"])?;
    let grouped: Vec<&str> = devices(machine)
        .into_iter()
        .filter(|function| function.iommu_group.is_some())
        .map(|function| function.address.as_str())
        .collect();
    let state = match grouped.is_empty() {
        true => "where firmware has an IOMMU on, it",
        false => "the IOMMU is on, and",
    };
    let observed =
        format!("{line} `{on}` without `iommu=pt`: {state} translates the DMA of GPUs and drives");
    Some(Found::warn(observed, "boot with `iommu=pt` beside it").at(grouped))
}

fn by_facts(machine: &Machine) -> Vec<Found> {
    if machine.pci.is_empty() && !machine.listed.pci {
        return vec![Found::unknown("no PCI function is known")];
    }
    if is_absent(machine) {
        if !kernel_was_read(machine) || !machine.listed.pci {
            return vec![Found::unknown(KERNEL_NOT_READ)];
        }
        return vec![Found::pass(absent(machine))];
    }
    let devices = devices(machine);
    let domain = |function: &&PciFacts| function.iommu_domain.clone();
    let translated: Vec<&str> = devices
        .iter()
        .filter(|function| domain(function).is_some_and(|kind| kind.starts_with("DMA")))
        .map(|function| function.address.as_str())
        .collect();
    let silent: Vec<&str> = devices
        .iter()
        .filter(|f| f.iommu_group.is_some() && f.iommu_domain.is_none())
        .map(|function| function.address.as_str())
        .collect();
    let mut found = Vec::new();
    if !translated.is_empty() && is_arm(machine) {
        let observed = format!(
            "an SMMU translates the DMA of {} GPUs and drives, as NVIDIA wants it on Grace",
            translated.len()
        );
        found.push(Found::info(observed).at(translated));
    } else if !translated.is_empty() {
        found.push(Found::warn(observed(&translated), fix(machine)).at(translated));
    }
    if !silent.is_empty() {
        let why =
            "an IOMMU is on, and it is not known whether it translates (Linux 5.11 reports it)";
        let read = "read `dmesg | grep -i 'default domain type'`";
        found.push(Found::unknown(why).fix(read).at(silent));
    }
    if gpus_not_placed(machine).next().is_some() || devices.len() < addresses(machine).len() {
        found.push(Found::unknown("an IOMMU is on, and not all GPUs and drives are known by PCI"));
    }
    if found.is_empty() {
        let observed = "an IOMMU is on and translates for no GPU or data drive; it need not be off";
        found.push(Found::info(observed));
    }
    found
}

/// Whether the kernel shows no IOMMU: no unit, and no function in a group.
pub(crate) fn is_absent(machine: &Machine) -> bool {
    let grouped = machine.pci.iter().any(|function| function.iommu_group.is_some());
    !grouped && machine.settings.iommu_units.is_empty()
}

/// That in words: a virtual machine does not see its host's.
pub(crate) fn absent(machine: &Machine) -> String {
    let guest = machine.host.kernel.containment.hypervisor == Some(true);
    let of = if guest { " that this virtual machine can see; its host may use one" } else { "" };
    format!("no IOMMU is at work{of}")
}

/// The finding by gdscheck's line: it has one word for passing through and for translating. Devices
/// in IOMMU groups show more.
fn from_gdscheck(check: &GdsCheck, printed: &str, open: Vec<Found>) -> Vec<Found> {
    let Some(state) = check.iommu.known() else { return open };
    if open.iter().any(|one| !one.locations.is_empty()) {
        return open;
    }
    vec![if state.eq_ignore_ascii_case("disabled") {
        Found::pass(format!("{printed} `IOMMU: {state}`"))
    } else {
        let read = "read `dmesg | grep -i 'default domain type'`";
        let why = "which does not show whether it translates";
        Found::unknown(format!("{printed} `IOMMU: {state}`, {why}")).fix(read)
    }]
}

fn observed(translated: &[&str]) -> String {
    format!("an IOMMU translates the DMA of {} GPUs and drives", translated.len())
}

/// Whether the IOMMU is Arm's: GPUDirect Storage between peers needs it on NVIDIA Grace.
fn is_arm(machine: &Machine) -> bool {
    let units = &machine.settings.iommu_units;
    units.iter().any(|unit| unit.starts_with("smmu") || unit.starts_with("arm-smmu"))
}

fn fix(machine: &Machine) -> &'static str {
    let units = &machine.settings.iommu_units;
    if units.iter().any(|unit| unit.starts_with("ivhd")) {
        "boot with `iommu=pt`, or `amd_iommu=off` where no device is passed to virtual machines"
    } else {
        "boot with `iommu=pt`, or `intel_iommu=off` where no device is passed to virtual machines"
    }
}

/// GPUs and data drives, in the order of addresses.
fn devices(machine: &Machine) -> Vec<&PciFacts> {
    let addresses = addresses(machine);
    addresses.iter().filter_map(|address| machine.function(address)).collect()
}

fn addresses(machine: &Machine) -> Vec<String> {
    let gpus = machine.gpus.iter().filter_map(|gpu| gpu.pci.clone());
    let drives = placed_drives(machine).into_iter().flat_map(|drive| drive.pci);
    let mut addresses: Vec<String> = gpus.chain(drives).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::sample;

    fn domain(kind: Option<&str>) -> Machine {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.settings.iommu_units = vec!["ivhd0".to_owned()];
        for function in &mut machine.pci {
            function.iommu_group = Some(1);
            function.iommu_domain = kind.map(str::to_owned);
        }
        machine
    }

    #[test]
    fn translation_costs_and_passthrough_need_not_be_off() {
        let found = evaluate(&domain(Some("DMA-FQ")));
        assert_eq!((found[0].severity, found[0].locations.len()), (Severity::Warn, 2));
        assert!(found[0].fix.as_ref().unwrap().contains("amd_iommu=off"));
        let found = evaluate(&domain(Some("identity")));
        assert_eq!(found[0].severity, Severity::Info);
        assert_eq!(evaluate(&domain(None))[0].severity, Severity::Unknown);
    }

    /// Groups alone, as `lspci -vv` shows them, say that an IOMMU is on.
    #[test]
    fn the_kernel_s_command_line_decides_where_devices_do_not_show_it() {
        let with = |words: &[&str], model: &str| {
            let mut machine = domain(None);
            machine.settings.iommu_units.clear();
            machine.settings.command_line = Some(words.iter().map(|w| (*w).to_owned()).collect());
            machine.host.cpu.model = Some(model.to_owned());
            evaluate(&machine).remove(0)
        };
        let on = with(&["intel_iommu=on", "pci=realloc"], "Intel Xeon");
        assert_eq!((on.severity, on.locations.len()), (Severity::Warn, 2));
        let through = with(&["intel_iommu=on", "iommu=pt"], "Intel Xeon");
        assert_eq!(through.severity, Severity::Info);
        assert_eq!(with(&["amd_iommu=off"], "AMD EPYC").severity, Severity::Pass);
        for words in [&["intel_iommu=off"][..], &["quiet"]] {
            assert_eq!(with(words, "AMD EPYC").severity, Severity::Unknown, "{words:?}");
        }
    }

    #[test]
    fn on_arm_translation_is_as_it_should_be() {
        let mut machine = domain(Some("DMA-FQ"));
        machine.settings.iommu_units = vec!["smmu3.0x0000000011000000".to_owned()];
        let found = evaluate(&machine);
        assert_eq!((found[0].severity, found[0].fix.clone()), (Severity::Info, None));
    }

    #[test]
    fn without_units_and_groups_it_is_off_where_the_kernel_was_read() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        assert_eq!(evaluate(&machine), [Found::pass("no IOMMU is at work")]);
        machine.host.kernel.containment.hypervisor = Some(true);
        assert!(evaluate(&machine)[0].observed.contains("virtual machine"));
        machine.modules.clear();
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown);
    }
}
