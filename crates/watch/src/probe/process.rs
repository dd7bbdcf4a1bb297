//! Processes: `/proc/PID/stat` and `/proc/PID/io`, without threads of the kernel; memory on GPUs by
//! NVML, and paths of programs with a live page. Bytes are those that reached or came from storage,
//! of processes that the user may look at (proc_pid_io(5)); none where a child ended in the
//! interval, since the kernel then adds the child's. 100 % is one processor.

use std::collections::BTreeMap;

use crate::page::read::{Found, Owner};
use crate::page::{LivePageRoot, REGISTERED, SOFTWARE, Snapshot, read as pages};
use gpuio_base::units::human_bytes;
use gpuio_host::process_time::{ProcessSample, samples};
use gpuio_host::{proc_io, process};

use crate::metric::{self, Change, Figure, Form, Kind, Metric, bytes, figure, milliseconds, moved};
use crate::probe::{Eye, Probe, Reading, both};

/// Kernel threads are remembered by number; beyond so many the memory is emptied, since numbers are
/// used again.
const MOST_REMEMBERED: usize = 1 << 16;

/// The system's first PID namespace (`PROC_PID_INIT_INO` in include/linux/proc_ns.h). NVML's
/// numbers of processes are of this one: in another they would name other processes.
const FIRST_NAMESPACE: u64 = 0xefff_fffc;

const METRICS: [Metric; 5] = [
    milliseconds("user_seconds", "Time in its own code"),
    milliseconds("system_seconds", "Time in the kernel"),
    bytes("read_bytes", "Bytes that storage read for it"),
    bytes("written_bytes", "Bytes that it sent to storage"),
    Metric { kind: Kind::Gauge, ..bytes("gpu_memory_bytes", "Its memory on all GPUs") },
];

const FIGURES: [Figure; 6] = [
    metric::READ_BYTES,
    metric::WRITTEN_BYTES,
    figure("cpu_percent", "%CPU", Form::Percent, true, cpu),
    figure("user_percent", "%user", Form::Percent, false, |c| {
        Some(c.rate("user_seconds")? * 100.0)
    }),
    figure("system_percent", "%system", Form::Percent, false, |c| {
        Some(c.rate("system_seconds")? * 100.0)
    }),
    figure("gpu_memory_bytes", "GPU GiB", Form::Gibibytes, true, |c| c.of("gpu_memory_bytes")),
];

fn cpu(change: &Change) -> Option<f64> {
    Some((change.rate("user_seconds")? + change.rate("system_seconds")?) * 100.0)
}

pub(super) const PROBE: Probe = Probe {
    name: "process",
    title: "Processes by I/O",
    source: "/proc/PID/stat and /proc/PID/io, NVML, live pages",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: both(moved),
    most: 8,
    // By bytes; those without any by processor time, which is below one byte.
    rank: Some(|change| {
        Some(moved(change).unwrap_or(0.0) + cpu(change).unwrap_or(0.0).min(1e6) / 1e7)
    }),
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    if eye.kernels_own.len() > MOST_REMEMBERED {
        eye.kernels_own.clear();
    }
    let processes = samples(&eye.root, &mut eye.kernels_own).map_err(|error| error.to_string())?;
    let faults = processes.iter().map(|one| ((one.pid, one.began), one.child_faults)).collect();
    let faults = std::mem::replace(&mut eye.child_faults, faults);
    let gpus = on_gpus(eye);
    let paths = paths(eye);
    let reading = |one: ProcessSample| {
        let [user, system] = [one.user, one.system].map(|ticks| Some(eye.milliseconds(ticks)));
        // One that may not be looked at, or that ended meanwhile, has no counters.
        let io = proc_io::sample_of(&eye.root, one.pid).ok().flatten().map(|sample| sample.total);
        // The kernel adds all bytes of a child at once when its parent has waited for it.
        let before = faults.get(&(one.pid, one.began));
        let has_jumped = before.is_some_and(|before| *before != one.child_faults);
        let io = io.filter(|_| !has_jumped);
        let gpu = gpus.get(&one.pid);
        let mut about: Vec<String> = Vec::new();
        about.extend(gpu.map(|(_, words)| words.clone()));
        about.extend(paths.get(&one.pid).cloned());
        about.extend(has_jumped.then(|| "bytes unknown: a child ended".to_owned()));
        let values = vec![
            user,
            system,
            io.as_ref().map(|io| io.storage_read_bytes),
            io.as_ref().map(|io| io.storage_write_bytes),
            gpu.and_then(|(bytes, _)| *bytes),
        ];
        Reading {
            identity: one.began,
            about: about.join("; "),
            ..Reading::new(format!("{} {}", one.pid, one.name), values)
        }
    };
    Ok(processes.into_iter().map(reading).collect())
}

/// Memory on GPUs by process, where NVML's numbers are those of `/proc` here.
fn on_gpus(eye: &Eye) -> BTreeMap<u32, (Option<u64>, String)> {
    let mut found: BTreeMap<u32, (Option<u64>, String)> = BTreeMap::new();
    let Ok(library) = &eye.gpus else { return found };
    if process::namespace(&eye.root) != FIRST_NAMESPACE {
        return found;
    }
    for (nth, uuid) in library.uuids().unwrap_or_default().iter().enumerate() {
        let users = library.gpu(uuid).and_then(|gpu| gpu.processes());
        for user in users.unwrap_or_default() {
            let memory = user.memory.map(|bytes| format!(" {}", human_bytes(bytes as f64)));
            let words = format!("GPU{nth}{}", memory.unwrap_or_default());
            let (bytes, known) = found.entry(user.pid).or_insert((Some(0), String::new()));
            *bytes = bytes.zip(user.memory).map(|(sum, more)| sum + more);
            if !known.is_empty() {
                known.push_str(", ");
            }
            known.push_str(&words);
        }
    }
    found
}

/// Paths with their GPUs of the programs that publish a live page: `gpuio bench`, and those on our
/// libraries. GPU numbers are CUDA's in that process.
fn paths(eye: &Eye) -> BTreeMap<u32, String> {
    let running = programs(eye).into_iter();
    running.filter_map(|found| Some((found.pid, words(&found.page.ok()?)))).collect()
}

/// Live pages of programs that run.
pub(super) fn programs(eye: &Eye) -> Vec<Found> {
    if !eye.root.is_live() {
        return Vec::new();
    }
    let listing = pages::list(&LivePageRoot::live(), &eye.root);
    listing.found.into_iter().filter(|found| found.owner == Owner::Runs).collect()
}

fn words(page: &Snapshot) -> String {
    let mut words: Vec<String> = Vec::new();
    for counters in page.paths.iter().filter(|counters| counters.path != REGISTERED) {
        let kind = if counters.is_software() { SOFTWARE } else { "CUDA" };
        let gpu = counters.gpu.map(|gpu| format!(" {kind} GPU {gpu}")).unwrap_or_default();
        let one = format!("{}{gpu}", counters.path);
        if !words.contains(&one) {
            words.push(one);
        }
    }
    words.extend(page.saves.as_ref().map(|saves| format!("{} {}", saves.directory, saves.state())));
    format!("{}: {}", page.program, words.join(", "))
}
