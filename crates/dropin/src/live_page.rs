//! Registrations and the statistics of NVIDIA's library on the live page, whose transfers
//! `gpuio_transfer` counts.

use std::sync::{Mutex, PoisonError};

pub(crate) use gpuio_transfer::live_page::{CompletedCall, begin, count, own_page};
use gpuio_watch::page::{Library, WorkerSlot};

/// The registrations for a GPU, or without one: files have no GPU.
struct Registrations {
    gpu: Option<u32>,
    files: i64,
    buffers: i64,
    slot: Option<WorkerSlot>,
}

static HELD: Mutex<Vec<Registrations>> = Mutex::new(Vec::new());

/// Counts registrations of files and buffers; negative for deregistrations.
pub(crate) fn count_registrations(gpu: Option<u32>, files: i64, buffers: i64) {
    // In a child the lock, too, may be the parent's.
    let Some(own) = own_page() else { return };
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if !held.iter().any(|one| one.gpu == gpu) {
        let slot = own.page.registrations(gpu, &own.pci(gpu));
        held.push(Registrations { gpu, files: 0, buffers: 0, slot });
    }
    let Some(one) = held.iter_mut().find(|one| one.gpu == gpu) else { return };
    one.files += files;
    one.buffers += buffers;
    // A deregistration by one thread may be counted before another's registration.
    let now = |count: i64| u64::try_from(count).unwrap_or(0);
    if let Some(slot) = &one.slot {
        slot.holds(now(one.files), now(one.buffers));
    }
}

/// The slots of NVIDIA's library's statistics: of no GPU, and of each.
static LIBRARY: Mutex<Vec<(Option<u32>, Option<WorkerSlot>)>> = Mutex::new(Vec::new());

/// Puts the statistics of NVIDIA's library on the page.
pub(crate) fn of_library(library: &Library) {
    let Some(own) = own_page() else { return };
    let mut slots = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    let of_gpus = library.gpus.iter().map(|gpu| (Some(gpu.gpu), gpu.numbers()));
    for (gpu, numbers) in std::iter::once((None, library.numbers())).chain(of_gpus) {
        if !slots.iter().any(|(known, _)| *known == gpu) {
            slots.push((gpu, own.page.library(gpu, &own.pci(gpu))));
        }
        let slot = slots.iter().find(|(known, _)| *known == gpu);
        if let Some((_, Some(slot))) = slot {
            slot.of_library(&numbers);
        }
    }
}
