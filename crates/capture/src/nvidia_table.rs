//! `nvidia-smi` without arguments: the table of GPUs with their bus addresses. Its process list and
//! usage say nothing about the machine.

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::{Fact, GpuFacts, ModuleFacts};

use crate::{CaptureError, Captured, Kind, MOST_GPUS, lines, merge, mig};

pub(crate) const KIND: Kind = Kind {
    command: "nvidia-smi",
    gives: "GPUs by address, names, MIG instances, the driver's release",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| gpu(line).is_some()),
    add,
};

const WHY: &str = "nvidia-smi's table does not have it";

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut gpus = Vec::new();
    let mut in_mig = false;
    for (index, line) in lines(text) {
        if let Some(gpu) = gpu(line) {
            gpus.push(gpu);
        } else if let Some((gpu, memory)) = mig::row(line).filter(|_| in_mig) {
            mig::put(captured, KIND.command, gpu, &memory);
        } else if let Some(module) = driver(line) {
            merge::module(&mut captured.machine, module);
        } else if line.contains("MIG devices:") {
            in_mig = true;
        } else if line.contains("Processes:") {
            in_mig = false;
        } else if !is_frame(line) {
            captured.skip(CaptureError::new(index, line, 0, "a row of nvidia-smi's table"));
        }
        if gpus.len() > MOST_GPUS {
            return Err(CaptureError::new(index, line, 0, "fewer GPUs"));
        }
    }
    merge::gpus(captured, gpus);
    Ok(())
}

/// `Driver Version: 570.133.07`, of the module that answered; `nvidia-smi -q` has blanks before the
/// colon.
pub(crate) fn driver(line: &str) -> Option<ModuleFacts> {
    let (_, rest) = line.split_once("Driver Version")?;
    let version = rest.trim_start().strip_prefix(':')?.split_whitespace().next()?;
    let version = Some(version).filter(|version| version.starts_with(|c: char| c.is_ascii_digit()));
    let name = "nvidia".to_owned();
    Some(ModuleFacts {
        name,
        loaded: true,
        version: Some(version?.to_owned()),
        ..Default::default()
    })
}

/// `|   0  NVIDIA H100 80GB HBM3   On  |   00000000:1B:00.0 Off |   0 |`.
fn gpu(line: &str) -> Option<GpuFacts> {
    let mut cells = line.trim().strip_prefix('|')?.split('|');
    let (name, place) = (cells.next()?, cells.next()?);
    let pci = place.split_whitespace().find_map(normalize_pci)?;
    let mut words: Vec<&str> = name.split_whitespace().collect();
    let index = words.first()?.parse().ok()?;
    words.remove(0);
    let persistence = match words.last().copied() {
        Some("On") => Fact::Known(true),
        Some("Off") => Fact::Known(false),
        _ => Fact::unknown(WHY),
    };
    if persistence.known().is_some() {
        words.pop();
    }
    let name = words.join(" ");
    // Narrow tables cut names: `Tesla V100-SXM2...`.
    let name = Some(name).filter(|name| !name.is_empty() && !name.ends_with("..."));
    Some(GpuFacts {
        pci: Some(pci),
        index: Fact::Known(index),
        name: Fact::or_unknown(name, "nvidia-smi's table has the name cut"),
        uuid: Fact::unknown(WHY),
        nvlinks: Fact::unknown(WHY),
        persistence,
        ..GpuFacts::default()
    })
}

/// Borders, heads, other rows of a GPU, the process list, the date above.
fn is_frame(line: &str) -> bool {
    let line = line.trim();
    let day = ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "];
    line.starts_with(['|', '+', '=']) || day.iter().any(|day| line.starts_with(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_release_is_that_of_its_module() {
        for text in [
            "| NVIDIA-SMI 570.1.7     Driver Version: 570.1.7     CUDA Version: 12.8 |\n\
             |   0  NVIDIA H100 PCIe     On  |   00000000:C1:00.0 Off |        0 |\n",
            "Driver Version                            : 570.1.7\nAttached GPUs : 1\n\
             GPU 00000000:C1:00.0\n    Product Name                 : NVIDIA H100 PCIe\n",
        ] {
            let mut captured = Captured::default();
            crate::read("text", text, &mut captured).unwrap();
            let module = &captured.machine.modules[0];
            assert_eq!((&*module.name, module.loaded), ("nvidia", true));
            assert_eq!(module.version.as_deref(), Some("570.1.7"));
            assert_eq!(captured.machine.gpus.len(), 1);
        }
    }
}
