//! BAR1, the window to a GPU's memory.

use gpuio_base::units::format_bytes;
use gpuio_record::facts::{Fact, GdsGpu, GpuFacts, Machine};

use super::Rule;
use crate::check::finding::Found;
use crate::check::gdscheck::interpret::printed;
use crate::check::machine::{gpu_name, without_gpu};

pub(super) const RULE: Rule = Rule {
    name: "bar1",
    question: "Is the window to each GPU's memory (BAR1) large, and does it have free space?",
    why: "Drives and cards reach GPU memory through BAR1 only: buffers registered for direct I/O \
          take space in it, and a window of 256 MiB holds few of them.",
    fix: "Switch on Above 4G Decoding and Resizable BAR in the firmware; data-centre GPUs then \
           show all of their memory. Look with `nvidia-smi -q -d MEMORY`, BAR1.",
    source: "NVIDIA, GPUDirect RDMA, PCI BAR sizes and Displaying GPU BAR space",
    evaluate,
};

/// Windows up to this are those of GPUs without Resizable BAR.
const SMALL: u64 = 256 << 20;

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let (true, Some(found)) = (machine.gpus.is_empty(), from_gdscheck(machine)) {
        return found;
    }
    if let Some(found) = without_gpu(machine) {
        return vec![found];
    }
    machine.gpus.iter().map(|gpu| one(gpu).at([gpu_name(gpu)])).collect()
}

/// The findings by gdscheck's lines, where no GPU was read; `None` without such lines.
fn from_gdscheck(machine: &Machine) -> Option<Vec<Found>> {
    let (check, printed) = printed(machine)?;
    let one = |gpu: &GdsGpu| {
        let location = gpu.index.known().map(|index| format!("GPU index {index}"));
        let found = match &gpu.bar1_bytes {
            Fact::Unknown(why) => Found::unknown(format!("its size is not known: {why}")),
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
    (machine.pci.is_empty() && !check.gpus.is_empty()).then(|| check.gpus.iter().map(one).collect())
}

const FIX_SMALL: &str = "switch on Above 4G Decoding and Resizable BAR in the firmware";

fn one(gpu: &GpuFacts) -> Found {
    let bar1 = match &gpu.bar1 {
        Fact::Known(bar1) => bar1,
        Fact::Unknown(why) => return Found::unknown(format!("its size is not known: {why}")),
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
