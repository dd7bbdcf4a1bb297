//! Traffic of GPUs between root ports of the processor.

use gpuio_record::facts::{Fact, Machine};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{
    known_module, modules_not_read, placed_drives, placed_nics, root_port, without_gpu,
};

pub(super) const RULE: Rule = Rule {
    name: "cross-root",
    question: "Do GPUs reach their storage without crossing between root ports of the processor?",
    why: "Bytes that go straight between a GPU and a drive or card of another root port pass the \
          processor, which moves them slower than a switch does, writes from GPU memory most of \
          all.",
    fix: "Give each GPU files on drives or cards below its own root port, or at least at its own \
           socket; where that can't be, go by host memory (paths gather, staged).",
    source: "NVIDIA, Magnum IO GPUDirect Storage (slides), Learnings / Best Practices; NVIDIA, \
             GPUDirect Storage Troubleshooting Guide, nvidia-fs statistics (cross_root_port)",
    shown_by: "cat /proc/driver/nvidia-fs/stats",
    evaluate,
};

/// Per cent of a GPU's I/O that may cross before it is a warning: a tenth of it at half the rate
/// costs some tenth of the whole.
const MUCH: u64 = 10;

fn evaluate(machine: &Machine) -> Vec<Found> {
    // The driver's own counts, also as a text, show all that is asked.
    let counted = machine.settings.cross_root_ports.known().is_some();
    if let Some(found) = without_gpu(machine).filter(|_| !counted) {
        return vec![found];
    }
    match known_module(machine, "nvidia_fs") {
        None if counted => {}
        None => return vec![Found::unknown(modules_not_read(machine))],
        Some(module) if !module.loaded => {
            return vec![Found::not_applicable("nvidia-fs, which counts it, is not loaded")];
        }
        Some(_) => {}
    }
    let shares = match &machine.settings.cross_root_ports {
        Fact::Known(shares) => shares,
        Fact::Unknown(why) => return vec![Found::unknown(why)],
    };
    let found = shares.iter().map(|share| {
        let (gpu, percent) = (share.gpu.as_str(), share.percent);
        let observed =
            format!("{percent} % of its I/O went between root ports since nvidia-fs began");
        match percent {
            0 => Found::pass("none of its I/O went between root ports"),
            1..MUCH => Found::info(observed),
            _ => Found::warn(observed, nearer(machine, gpu)),
        }
        .at([gpu])
    });
    found.collect()
}

/// The fix: use the drives and cards below the GPU's own root port.
fn nearer(machine: &Machine, gpu: &str) -> String {
    let Some(own) = root_port(machine, gpu) else {
        return "aim its jobs at drives or cards below its own root port (`gpuio topo`)".to_owned();
    };
    let others = placed_drives(machine).into_iter().chain(placed_nics(machine));
    let below = others.filter(|other| {
        other.pci.iter().any(|pci| root_port(machine, pci).is_some_and(|port| port == own))
    });
    let names: Vec<String> = below.map(|other| other.name).collect();
    if names.is_empty() {
        "no data drive or card is below its root port: go by host memory (paths gather, staged), \
         or move a drive or card there"
            .to_owned()
    } else {
        format!("aim its jobs at what is below its own root port: {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{CrossRootPort, PciPort};

    use super::*;
    use crate::check::sample;

    fn of(percent: u64, drive_far: bool) -> Vec<Found> {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.modules.push(sample::module("nvidia_fs", true));
        let share = CrossRootPort { gpu: sample::GPU.to_owned(), percent };
        machine.settings.cross_root_ports = Fact::Known(vec![share]);
        if drive_far {
            let other = "0000:80:01.0";
            machine.pci.push(sample::function(other, None, PciPort::RootPort));
            let drive = machine.pci.iter_mut().find(|one| one.address == sample::DRIVE);
            drive.unwrap().parent = Some(other.to_owned());
        }
        evaluate(&machine)
    }

    #[test]
    fn a_gpu_that_crosses_is_shown_what_is_below_its_own_root_port() {
        let found = of(40, false);
        assert_eq!(found[0].locations, [sample::GPU]);
        assert!(found[0].observed.starts_with("40 % of its I/O"), "{found:?}");
        let fix = |found: &[Found]| found[0].fix.clone().unwrap_or_default();
        assert_eq!(fix(&found), "aim its jobs at what is below its own root port: nvme0n1");
        assert!(fix(&of(40, true)).starts_with("no data drive or card is below"));
    }
}
