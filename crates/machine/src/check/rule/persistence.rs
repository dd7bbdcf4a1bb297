//! Persistence mode of GPUs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gpuio_record::facts::{Fact, Machine};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{gpu_name, without_gpu};

pub(super) const RULE: Rule = Rule {
    name: "persistence",
    question: "Is persistence mode on?",
    why: "Without it the driver sets the GPU up anew for each first program: seconds of start, and \
          clocks and settings that go back to their defaults between runs.",
    fix: "`systemctl enable --now nvidia-persistenced`, or `nvidia-smi -pm 1` until the \
           next boot.",
    source: "NVIDIA, Driver Persistence, Persistence Daemon; NVML, nvmlDeviceGetPersistenceMode",
    shown_by: "nvidia-smi -q",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = without_gpu(machine) {
        return vec![found];
    }
    let mut off = Vec::new();
    let mut unknown: BTreeMap<&str, Vec<Cow<'_, str>>> = BTreeMap::new();
    for gpu in &machine.gpus {
        match &gpu.persistence {
            Fact::Known(true) => {}
            Fact::Known(false) => off.push(gpu_name(gpu)),
            Fact::Unknown(why) => unknown.entry(why).or_default().push(gpu_name(gpu)),
        }
    }
    let mut found = Vec::new();
    if !off.is_empty() {
        let fix = "`systemctl enable --now nvidia-persistenced`, or `nvidia-smi -pm 1`";
        found.push(Found::warn("persistence mode is off", fix).at(off));
    }
    for (why, gpus) in unknown {
        found.push(Found::unknown(format!("persistence mode is not known: {why}")).at(gpus));
    }
    if found.is_empty() {
        found.push(Found::pass("persistence mode is on"));
    }
    found
}
