//! BAR1, the window to a GPU's memory.

use gpuio_base::units::format_bytes;
use gpuio_record::facts::{Fact, GdsCheck, GdsGpu, GpuFacts, Machine};

use super::Rule;
use crate::check::finding::Found;
use crate::check::gdscheck::interpret::or_printed;
use crate::check::machine::{gpu_name, without_gpu};

pub(super) const RULE: Rule = Rule {
    name: "bar1",
    question: "Is the window to each GPU's memory (BAR1) large, and does it have free space?",
    why: "Drives and cards reach GPU memory through BAR1 only: buffers registered for direct I/O \
          take space in it, and a window of 256 MiB holds few of them.",
    fix: "Switch on Above 4G Decoding and Resizable BAR in the firmware; data-centre GPUs then \
           show all of their memory. Look with `nvidia-smi -q -d MEMORY`, BAR1.",
    source: "NVIDIA, GPUDirect RDMA, PCI BAR sizes and Displaying GPU BAR space",
    shown_by: "nvidia-smi -q",
    evaluate,
};

/// Windows up to this are those of GPUs without Resizable BAR.
const SMALL: u64 = 256 << 20;

fn evaluate(machine: &Machine) -> Vec<Found> {
    let own = match without_gpu(machine) {
        Some(found) => vec![found],
        None => machine.gpus.iter().map(|gpu| one(gpu).at([gpu_name(gpu)])).collect(),
    };
    or_printed(machine, own, from_gdscheck)
}

/// The findings by gdscheck's lines, in place of GPUs whose window was not read. All its lines
/// are used: CUDA's numbers need not be those of `nvidia-smi`.
fn from_gdscheck(check: &GdsCheck, printed: &str, open: Vec<Found>) -> Vec<Found> {
    if check.gpus.iter().all(|gpu| gpu.bar1_bytes.known().is_none()) {
        return open;
    }
    let one = |gpu: &GdsGpu| {
        let location = gpu.index.known().map(|index| format!("GPU index {index}"));
        let found = match &gpu.bar1_bytes {
            Fact::Unknown(why) => unknown(why),
            Fact::Known(bytes) => {
                let observed = format!("{printed} a BAR1 of {}", format_bytes(*bytes));
                if *bytes <= SMALL {
                    Found::warn(observed, FIX_SMALL)
                } else {
                    Found::info(observed)
                }
            }
        };
        found.at(location)
    };
    check.gpus.iter().map(one).collect()
}

fn unknown(why: &str) -> Found {
    Found::unknown(format!("its size is not known: {why}"))
}

const FIX_SMALL: &str = "switch on Above 4G Decoding and Resizable BAR in the firmware";

fn one(gpu: &GpuFacts) -> Found {
    let bar1 = match &gpu.bar1 {
        Fact::Known(bar1) => bar1,
        Fact::Unknown(why) => return unknown(why),
    };
    let used = match bar1.used_bytes {
        Some(used) => format!("{} in use", format_bytes(used)),
        None => "how much is in use is not known".to_owned(),
    };
    let observed = format!("BAR1 has {}, {used}", format_bytes(bar1.total_bytes));
    let full = bar1.used_bytes.is_some_and(|used| used > bar1.total_bytes / 10 * 9);
    if full {
        Found::warn(observed, "end the programs that hold GPU memory mapped (`nvidia-smi`)")
    } else if bar1.total_bytes <= SMALL {
        Found::warn(observed, FIX_SMALL)
    } else if bar1.used_bytes.is_none() {
        Found::info(observed)
    } else {
        Found::pass(observed)
    }
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::Bar1Facts;

    use super::*;
    use crate::check::{Severity, sample};

    #[test]
    fn sizes_that_gdscheck_printed_count_where_the_driver_s_were_not_read() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let bar1 = Bar1Facts { total_bytes: 64 << 30, used_bytes: Some(0) };
        machine.gpus[0].bar1 = Fact::Known(bar1);
        let mut gpu = GdsGpu {
            index: Fact::Known(0),
            name: Fact::default(),
            bar1_bytes: Fact::Known(128 << 30),
            support: Fact::default(),
            iommu: Fact::default(),
        };
        machine.gdscheck = Some(GdsCheck { gpus: vec![gpu.clone()], ..GdsCheck::default() });
        assert_eq!(evaluate(&machine)[0].severity, Severity::Pass, "the driver's goes before");
        machine.gpus[0].bar1 = Fact::unknown("a list");
        let printed = Found::info("gdscheck printed a BAR1 of 128G").at(["GPU index 0"]);
        assert_eq!(evaluate(&machine), [printed]);
        gpu.bar1_bytes = Fact::unknown("no");
        machine.gdscheck = Some(GdsCheck { gpus: vec![gpu], ..GdsCheck::default() });
        assert_eq!(evaluate(&machine)[0].observed, "its size is not known: a list");
    }
}
