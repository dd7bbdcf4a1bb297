//! gds_stats' sections and field names, filled with gpuio's counts (NVIDIA GPUDirect Storage
//! Benchmarking and Configuration Guide, 4.3.2 and 5.1).
//!
//! `0` is a count of none. A value that is not counted is `n/a`, which no parser reads as a number.
//! Sections of things that gpuio does not have (cuFile's pools of bounce buffers, its RDMA) have
//! their heading and no line; where NVIDIA's library has them, a line says why they are not given.

use std::fmt::Write as _;

use super::{class_name, per_second};
use crate::page::bucket::SIZES;
use crate::page::layout::REGISTERED;
use crate::page::snapshot::{Counts, Library, LibraryCounts, LibraryGpu, PathCounters, Snapshot};

const MIB: u64 = 1 << 20;
const GIB: f64 = (1_u64 << 30) as f64;

/// A GPU of the machine, whether the process uses it or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Its number.
    pub index: u32,
    /// Its PCI address, as the page spells it.
    pub pci: String,
}

/// The text at this level: 1 totals, 2 also sizes, 3 also GPUs: those that the process uses, and
/// those of `machine` that it does not.
pub fn text(snapshot: &Snapshot, level: u8, machine: &[Gpu]) -> String {
    let mut out = String::from("cuFile STATS VERSION : 3\nGLOBAL STATS:\n");
    let total = snapshot.total();
    let seconds = total.seconds();
    // Writing to a string can't fail, here and below.
    let _ = writeln!(out, "Total Files: {}", total.files);
    for (name, side) in [("Read", &total.read), ("Write", &total.write)] {
        let _ = writeln!(out, "Total {name} Errors : {}", side.failed);
        let _ = writeln!(out, "Total {name} Size (MiB): {}", side.bytes / MIB);
        let _ = writeln!(out, "{name} BandWidth (GiB/s): {}", bandwidth(side, seconds));
        let mean = side.mean_ns().map_or(0.0, |ns| (ns / 1e3).round());
        let _ = writeln!(out, "Avg {name} Latency (us): {mean}");
    }
    if level >= 2 {
        out.push_str("READ-WRITE SIZE HISTOGRAM :\n");
        for class in 0..SIZES {
            let counts = (total.read.sizes[class], total.write.sizes[class]);
            let _ = writeln!(out, "{}: {} {}", class_name(class), counts.0, counts.1);
        }
    }
    if level >= 3 {
        out.push_str("PER_GPU STATS:\n");
        let mut lines: Vec<(u32, String)> = snapshot
            .gpus()
            .iter()
            .map(|gpu| (gpu.gpu.unwrap_or(0), gpu_line(snapshot, gpu)))
            .collect();
        let unused = unused(snapshot, machine).map(|index| (index, unused_line(index)));
        lines.extend(unused.collect::<Vec<_>>());
        lines.sort_by_key(|(index, _)| *index);
        lines.iter().for_each(|(_, line)| out.push_str(line));
        for section in ["POOL BUFFER", "POSIX POOL BUFFER", "RDMA"] {
            let _ = writeln!(out, "PER_GPU {section} STATS:");
        }
        out.push_str("RDMA MRSTATS:\npeer name nr_mrs mr_size(MiB)\n");
        if let Some(library) = &snapshot.library {
            out.extend(library.why_absent().map(|why| format!("n/a: {why}\n")));
            let _ = writeln!(out, "n/a: {}: cuFileGetStats does not give them", Library::NOT_GIVEN);
        }
    }
    out
}

/// Numbers of the machine's GPUs that the process has nothing on. Where it counts GPUs otherwise
/// than the machine does (`CUDA_VISIBLE_DEVICES`), its own number stands, and no number twice.
fn unused(snapshot: &Snapshot, machine: &[Gpu]) -> impl Iterator<Item = u32> {
    let used = snapshot.gpus();
    machine.iter().map(|gpu| (gpu.index, gpu.pci.as_str())).filter_map(move |(index, pci)| {
        let is = |counters: &PathCounters| {
            counters.gpu == Some(index) || counters.pci.eq_ignore_ascii_case(pci)
        };
        (!used.iter().any(is)).then_some(index)
    })
}

/// Nothing went there, so every count is none.
fn unused_line(index: u32) -> String {
    let none = |sparse: &str| format!("bw=0 util(%)=0 n=0 posix=0 unalign=0{sparse} err=0 MiB=0");
    let read = none(" r_sparse=0 r_inline=0");
    let write = none("");
    format!("GPU {index} Read: {read} Write: {write} BufRegister: n=0 err=0 free=0 MiB=0\n")
}

fn gpu_line(snapshot: &Snapshot, gpu: &PathCounters) -> String {
    let index = gpu.gpu.unwrap_or(0);
    let mine = |counters: &&PathCounters| counters.gpu == gpu.gpu;
    // The library does not report for each I/O whether it used its own path or POSIX calls.
    let uses_cufile =
        snapshot.paths.iter().filter(mine).any(|counters| is_of_cufile(&counters.path));
    let seconds = gpu.seconds();
    let side = |side: &Counts, own: Option<&LibraryCounts>, sparse: &str| {
        let ios = side.ios();
        let posix = match own {
            Some(own) => own.posix.to_string(),
            None if uses_cufile && ios > 0 => "n/a".to_owned(),
            None => ios.to_string(),
        };
        format!(
            "bw={} util(%)={} n={ios} posix={posix} unalign={}{sparse} err={} MiB={}",
            bandwidth(side, seconds),
            utilisation(side, seconds),
            side.unaligned,
            side.failed,
            side.bytes / MIB,
        )
    };
    let library = snapshot.library.as_ref().and_then(|library| library.gpu(gpu.gpu));
    // A program that registers may also have deregistered some, which is not counted.
    let registers = snapshot.paths.iter().filter(mine).any(|counters| counters.path == REGISTERED);
    let registered = match gpu.registered {
        _ if library.is_some() => library.map(registered).unwrap_or_default(),
        Some(0) if !registers => "n=0 err=0 free=0 MiB=0".to_owned(),
        Some(now) => format!("n={now} err=n/a free=n/a MiB=n/a"),
        None => "n=n/a err=n/a free=n/a MiB=n/a".to_owned(),
    };
    let sparse = library.map_or_else(
        || " r_sparse=n/a r_inline=n/a".to_owned(),
        |own| format!(" r_sparse={} r_inline={}", own.sparse, own.inline),
    );
    let read = side(&gpu.read, library.map(|own| &own.read), &sparse);
    let write = side(&gpu.write, library.map(|own| &own.write), "");
    format!("GPU {index} Read: {read} Write: {write} BufRegister: {registered}\n")
}

/// Whether NVIDIA's library moves the bytes of a path.
fn is_of_cufile(path: &str) -> bool {
    path.starts_with("gds") || path == "nvidia"
}

fn registered(own: &LibraryGpu) -> String {
    let LibraryGpu { registered, register_failed, freed, registered_bytes, .. } = own;
    format!("n={registered} err={register_failed} free={freed} MiB={}", registered_bytes / MIB)
}

/// GiB per second from the first I/O to the last.
fn bandwidth(side: &Counts, seconds: Option<f64>) -> String {
    six_digits(per_second(side.bytes, seconds).map_or(0.0, |rate| rate / GIB))
}

/// Mean number of I/Os in flight, in per cent: time of all I/Os over the time.
fn utilisation(side: &Counts, seconds: Option<f64>) -> String {
    let busy = per_second(side.latency_ns, seconds).unwrap_or(0.0);
    format!("{}", (busy / 1e9 * 100.0).round())
}

/// Six significant digits at most and no trailing zeros, as gds_stats prints.
fn six_digits(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a float")]
    let before = value.log10().floor() as i32 + 1;
    let decimals = usize::try_from((6 - before).clamp(0, 17)).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::six_digits;

    #[test]
    fn digits_are_as_in_the_guide() {
        for (value, text) in [
            (6.321_294, "6.32129"),
            (0.126_041_2, "0.126041"),
            (0.0, "0"),
            (10.0, "10"),
            (123_456_789.0, "123456789"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(six_digits(value), text);
        }
    }
}
