//! Whether a record was made on a machine, by the data in the record.
//!
//! Two things prove it: the same boot of the kernel (`/proc/sys/kernel/random/boot_id`, random(4)),
//! and every hardware GPU of the record by its UUID at its PCI address. Other data of a record
//! (model of the processors, addresses of GPUs) can only disprove it.

use gpuio_record::facts::{GpuFacts, Machine};
use gpuio_record::{Gpu, Record};

/// A machine to compare a record with.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    pub machine: &'a Machine,
    /// Its boot ID; `None` if the kernel does not report it, and for captures.
    pub boot: Option<&'a str>,
    /// Whether the facts are from a capture, in which UUIDs may have been replaced.
    pub captured: bool,
}

/// Whether a record was made on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Yes, with this proof.
    Here(String),
    /// No, for this reason.
    Elsewhere(String),
    /// Unknown, for this reason.
    Unknown(String),
}

/// Compares a record with a machine.
pub fn origin(record: &Record, there: Candidate<'_>) -> Origin {
    let gpus = hardware_gpus(record);
    if let Some(why) = contradiction(record, &gpus, there) {
        return Origin::Elsewhere(why);
    }
    let boots = record.boot.as_deref().zip(there.boot);
    if boots.is_some_and(|(its, here)| its == here) {
        return Origin::Here("the same boot of the kernel".to_owned());
    }
    let known =
        |gpu: &&Gpu| at(there.machine, gpu).and_then(|one| one.uuid.known()) == Some(&gpu.uuid);
    if !gpus.is_empty() && gpus.iter().all(known) {
        return Origin::Here("the same GPUs, by UUID and PCI address".to_owned());
    }
    let boot = match (&record.boot, there.boot) {
        (None, _) => "the record has no boot ID",
        (Some(_), None) => "the boot ID of that machine is unknown",
        (Some(_), Some(_)) => "the kernel was booted since, or it is another machine",
    };
    let gpu = match gpus.is_empty() {
        true => "the record has no hardware GPU with a UUID",
        false => "the UUIDs of the GPUs there are unknown",
    };
    Origin::Unknown(format!("{boot}, and {gpu}"))
}

/// The GPUs of a record that are not gpuio's software GPU, each once.
fn hardware_gpus(record: &Record) -> Vec<&Gpu> {
    let mut gpus: Vec<&Gpu> = Vec::new();
    for gpu in record.plan.jobs.iter().flat_map(|job| &job.gpus).filter(|gpu| !gpu.software) {
        if !gpus.iter().any(|known| known.uuid == gpu.uuid) {
            gpus.push(gpu);
        }
    }
    gpus
}

fn at<'a>(machine: &'a Machine, gpu: &Gpu) -> Option<&'a GpuFacts> {
    machine
        .gpus
        .iter()
        .find(|one| one.pci.as_ref().is_some_and(|pci| pci.eq_ignore_ascii_case(&gpu.pci)))
}

fn contradiction(record: &Record, gpus: &[&Gpu], there: Candidate<'_>) -> Option<String> {
    let models = record.host.cpu.model.as_ref().zip(there.machine.host.cpu.model.as_ref());
    if let Some((its, here)) = models.filter(|(its, here)| its != here) {
        return Some(format!("its processors are {its}, there they are {here}"));
    }
    // The output of tools may lack GPUs, or their addresses.
    let all = &there.machine.gpus;
    let partial = there.captured && (all.is_empty() || all.iter().any(|one| one.pci.is_none()));
    for gpu in gpus {
        let Some(found) = at(there.machine, gpu) else {
            if partial {
                continue;
            }
            return Some(format!("its GPU {} is at {}, where there is none", gpu.index, gpu.pci));
        };
        let other = found.uuid.known().is_some_and(|uuid| *uuid != gpu.uuid);
        if other && !there.captured {
            return Some(format!("there is another GPU at {}", gpu.pci));
        }
    }
    None
}
