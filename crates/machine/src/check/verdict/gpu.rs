//! The needs of every mode with a GPU.

use gpuio_record::facts::{Fact, Machine};

use super::ruled::of_rule;
use super::{About, Gpu, Need, Pair};
use crate::check::gdscheck::interpret::{self, model, printed};
use crate::check::machine::{count, gpu_name, known_module, module, modules_not_read};

/// The GPU in words.
pub(super) fn title(pair: &Pair<'_>) -> String {
    match pair.gpu {
        Gpu::Real(gpu) => {
            let own = gpu_name(gpu);
            let number = gpu.index.known().map(|index| format!("GPU{index}"));
            let number = number.filter(|number| *number != own).map(|number| number + " ");
            let model = model(pair.machine, gpu);
            let name = model.known().map(|name| format!(", {name}"));
            let number = number.unwrap_or_default();
            format!("{number}{own}{}", name.unwrap_or_default())
        }
        Gpu::Software => "the software GPU".to_owned(),
        Gpu::None if pair.machine.gpus.is_empty() && !pair.machine.listed.pci => {
            "an unknown GPU".to_owned()
        }
        Gpu::None => NO_GPU.to_owned(),
    }
}

/// The title of none.
pub(super) const NO_GPU: &str = "no GPU";

/// A GPU with memory that devices on PCI can reach.
pub(super) fn real(pair: &Pair<'_>) -> Need {
    match pair.gpu {
        Gpu::Real(_) => Need::yes(About::Gpu, title(pair)),
        Gpu::Software => Need::no(About::Gpu, "the software GPU has no memory on PCI"),
        Gpu::None => none(pair),
    }
}

/// The need where no GPU is known.
pub(super) fn none(pair: &Pair<'_>) -> Need {
    if !pair.machine.gpus.is_empty() {
        Need::no(About::Gpu, "no GPU was asked for")
    } else if pair.machine.listed.pci {
        Need::no(About::Gpu, "no GPU is here")
    } else {
        Need::unknown(About::Gpu, "no GPU is among what was read: `nvidia-smi -L` lists them")
    }
}

/// A module: loaded, or not.
pub(super) fn loaded(pair: &Pair<'_>, name: &str, fix: &str) -> Need {
    let about = match name {
        "nvidia" => About::Driver,
        "nvidia_fs" => About::NvidiaFs,
        _ => About::Network,
    };
    match known_module(pair.machine, name) {
        None => by_gdscheck(pair.machine, name)
            .unwrap_or_else(|| Need::unknown(about, modules_not_read(pair.machine))),
        Some(module) if module.loaded => {
            let version = module.version.as_ref().map(|version| format!(" {version}"));
            Need::yes(about, format!("{name}{} is loaded", version.unwrap_or_default()))
        }
        Some(_) => Need::no(about, format!("{name} is not loaded")).fix(fix),
    }
}

/// A module by gdscheck's lines, where its own facts were not read.
fn by_gdscheck(machine: &Machine, name: &str) -> Option<Need> {
    let (check, printed) = printed(machine)?;
    match name {
        // Without the driver cuFile names no GPU; gpuio takes them from PCI.
        "nvidia" if !check.by_gpuio && !check.gpus.is_empty() => Some(Need::yes(
            About::Driver,
            format!("{printed} {}, which the driver named", count(check.gpus.len(), "GPU")),
        )),
        "nvidia_fs" => of_rule(About::NvidiaFs, machine, "nvidia-fs"),
        _ => None,
    }
}

/// NVIDIA's driver.
pub(super) fn driver(pair: &Pair<'_>) -> Need {
    loaded(pair, "nvidia", "install NVIDIA's driver, and `modprobe nvidia`")
}

/// NVIDIA's open driver of release 565 or later.
pub(super) fn open_driver(pair: &Pair<'_>) -> Vec<Need> {
    let kind = Need::of(
        About::Driver,
        &interpret::open_driver(pair.machine),
        "NVIDIA's driver is the open one",
        "NVIDIA's driver is the closed one",
        "whether NVIDIA's driver is the open one is not known",
    );
    let version = module(pair.machine, "nvidia").and_then(|module| module.version.as_deref());
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    let release = match (version, major) {
        (Some(version), Some(major)) if major >= 565 => {
            Need::yes(About::Driver, format!("its release is {version}"))
        }
        (Some(version), Some(_)) => {
            Need::no(About::Driver, format!("its release is {version}; 565 was the first"))
                .fix("install 565 or later")
        }
        _ => Need::unknown(About::Driver, "the release of NVIDIA's driver is not reported"),
    };
    vec![kind, release]
}

/// GPUs that NVIDIA names for peer-to-peer DMA by the kernel.
const LISTED: [&str; 9] = ["A100", "A40", "L4", "L40S", "H100", "H200", "B100", "B200", "B300"];

pub(super) fn listed(pair: &Pair<'_>) -> Need {
    let Gpu::Real(gpu) = pair.gpu else { return real(pair) };
    match model(pair.machine, gpu) {
        Fact::Unknown(why) => {
            Need::unknown(About::Gpu, format!("the GPU's model is not known: {why}"))
        }
        Fact::Known(name) => {
            let mut words = name.split([' ', '-']);
            if words.any(|word| LISTED.contains(&word)) {
                Need::yes(About::Gpu, format!("{name} is on NVIDIA's list"))
            } else {
                Need::no(
                    About::Gpu,
                    format!("{name} is not on NVIDIA's list: {}", LISTED.join(", ")),
                )
            }
        }
    }
}
