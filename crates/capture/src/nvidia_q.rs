//! `nvidia-smi -q`: a block for each GPU, keys and values by indentation.

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::{Bar1Facts, Fact, GpuFacts, Lanes};

use crate::nvidia_table::driver;
use crate::{CaptureError, Captured, Kind, MOST_GPUS, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "nvidia-smi -q",
    gives: "GPUs by address, links, BAR1, C2C, the driver's release",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        let block = text.lines().any(|line| heading(line).is_some() || bus_id(line).is_some());
        block && text.lines().any(|line| line.starts_with([' ', '\t']) && line.contains(" : "))
    },
    add,
};

const WHY: &str = "nvidia-smi -q did not print it";

/// `GPU 00000000:07:00.0`.
fn heading(line: &str) -> Option<String> {
    normalize_pci(line.strip_prefix("GPU ")?)
}

/// `Bus Id : 00000000:B1:00.0`, which shows a block whose heading was cut.
fn bus_id(line: &str) -> Option<String> {
    let (key, value) = line.trim_start().split_once(" : ")?;
    (key.trim() == "Bus Id").then(|| normalize_pci(value))?
}

/// The facts read of a GPU.
#[derive(Default)]
struct Block {
    facts: GpuFacts,
    generation: [Option<u32>; 2],
    lanes: [Option<u32>; 2],
    bar1: [Option<u64>; 2],
    c2c: Option<bool>,
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut attached = None;
    // A text whose head was cut begins inside of a block, at whatever indentation is left.
    let inside = !text.lines().any(|line| heading(line).is_some());
    // The keys above, with their indentation.
    let mut above: Vec<(usize, &str)> = Vec::new();
    for (index, line) in lines(text) {
        if let Some(module) = driver(line) {
            merge::module(&mut captured.machine, module);
        } else if let Some(pci) = heading(line) {
            blocks.push(Block::begin(Some(pci)));
            above.clear();
        } else if line.starts_with([' ', '\t']) || line.contains(" : ") && inside {
            if blocks.is_empty() {
                blocks.push(Block::begin(None));
            }
            let body = line.trim_start();
            let indent = line.len() - body.len();
            while above.last().is_some_and(|(known, _)| *known >= indent) {
                above.pop();
            }
            let (key, value) = match body.split_once(" : ").or_else(|| body.split_once(": ")) {
                Some((key, value)) => (key.trim(), value.trim()),
                None => (body.trim().trim_end_matches(':'), ""),
            };
            above.push((indent, key));
            if let Some(block) = blocks.last_mut() {
                block.take(&above, value);
            }
        } else if let Some((key, value)) = line.split_once(" : ") {
            if key.trim() == "Attached GPUs" {
                attached = value.trim().parse::<usize>().ok();
            }
        } else if !line.starts_with("====") {
            captured.skip(CaptureError::new(index, line, 0, "a GPU, like GPU 00000000:07:00.0"));
        }
        if blocks.len() > MOST_GPUS {
            return Err(CaptureError::new(index, line, 0, "fewer GPUs"));
        }
    }
    // Blocks are in the driver's order; numbers are known where all of them are there.
    if let Some(attached) = attached.filter(|attached| *attached < blocks.len()) {
        let others = blocks.split_off(attached);
        let places: Vec<String> = others.into_iter().filter_map(|block| block.facts.pci).collect();
        captured.conflict(format!(
            "`Attached GPUs` is {attached}, and others are below it: {}. They are of another \
             machine or time, and are left out.",
            places.join(", ")
        ));
    }
    let whole = attached == Some(blocks.len());
    let printed = format!("Attached GPUs : {}", attached.unwrap_or_default());
    captured.counted(KIND.command, &printed, attached, blocks.len());
    blocks.retain(|block| block.facts.pci.is_some());
    let gpus = blocks.into_iter().zip(0u32..).map(|(block, number)| {
        let mut facts = block.finish();
        facts.index = Fact::or_unknown(whole.then_some(number), WHY);
        facts
    });
    let gpus = gpus.collect();
    merge::gpus(captured, gpus);
    Ok(())
}

impl Block {
    fn begin(pci: Option<String>) -> Block {
        let facts = GpuFacts {
            pci,
            name: Fact::unknown(WHY),
            uuid: Fact::unknown(WHY),
            nvlinks: Fact::unknown(WHY),
            persistence: Fact::unknown(WHY),
            ..GpuFacts::default()
        };
        Block { facts, ..Block::default() }
    }

    fn take(&mut self, path: &[(usize, &str)], value: &str) {
        let key = |back: usize| path.len().checked_sub(back).map_or("", |at| path[at].1);
        if value.is_empty() || value == "N/A" || value.starts_with('[') {
            return;
        }
        let number = || value.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok();
        match (key(2), key(1)) {
            (_, "Product Name") => self.facts.name = Fact::Known(value.to_owned()),
            (_, "GPU UUID") => self.facts.uuid = Fact::Known(value.to_owned()),
            (_, "Bus Id") => {
                self.facts.pci = self.facts.pci.take().or_else(|| normalize_pci(value))
            }
            (_, "Minor Number") => self.facts.minor = number(),
            (_, "Persistence Mode") => {
                self.facts.persistence = match value {
                    "Enabled" => Fact::Known(true),
                    "Disabled" => Fact::Known(false),
                    _ => Fact::unknown(WHY),
                };
            }
            ("PCIe Generation", "Max") => self.generation[0] = number(),
            ("PCIe Generation", "Current") => self.generation[1] = number(),
            ("Link Width", "Max") => self.lanes[0] = number(),
            ("Link Width", "Current") => self.lanes[1] = number(),
            ("BAR1 Memory Usage", "Total") => self.bar1[0] = mebibytes(value),
            ("BAR1 Memory Usage", "Used") => self.bar1[1] = mebibytes(value),
            (_, "C2C Mode") => self.c2c = Some(value == "Enabled"),
            _ => {}
        }
    }

    fn finish(self) -> GpuFacts {
        let Block { mut facts, generation, lanes, bar1, c2c } = self;
        let link = |at: usize| {
            let link = Lanes::of_generation(generation[at], lanes[at]);
            Fact::or_unknown((link != Lanes::default()).then_some(link), WHY)
        };
        (facts.pcie_most, facts.pcie_now) = (link(0), link(1));
        let used_bytes = bar1[1];
        let bar1 = bar1[0].map(|total_bytes| Bar1Facts { total_bytes, used_bytes });
        facts.bar1 = Fact::or_unknown(bar1, WHY);
        facts.c2c = Fact::or_unknown(c2c, WHY);
        facts
    }
}

/// `131072 MiB`.
fn mebibytes(value: &str) -> Option<u64> {
    value.strip_suffix("MiB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 20)
}
