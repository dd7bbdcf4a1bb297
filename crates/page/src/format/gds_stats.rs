//! gds_stats' sections and field names, filled with gpuio's counts (NVIDIA GPUDirect Storage
//! Benchmarking and Configuration Guide, 4.3.2 and 5.1).
//!
//! `0` is a count of none. What nobody counts is `n/a`, which no parser takes for a number.
//! Sections of things that gpuio does not have (cuFile's pools of bounce buffers, its RDMA) have
//! their heading and no line.

use std::fmt::Write as _;

use super::{class_name, per_second};
use crate::bucket::SIZES;
use crate::layout::REGISTERED;
use crate::snapshot::{Counts, Snapshot, Way};

const MIB: u64 = 1 << 20;
#[expect(clippy::cast_precision_loss, reason = "2^30 is exact")]
const GIB: f64 = (1_u64 << 30) as f64;

/// The text at this level: 1 totals, 2 also sizes, 3 also GPUs.
#[must_use]
pub fn text(snapshot: &Snapshot, level: u8) -> String {
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
        for gpu in snapshot.gpus() {
            out.push_str(&gpu_line(snapshot, &gpu));
        }
        for section in ["POOL BUFFER", "POSIX POOL BUFFER", "RDMA"] {
            let _ = writeln!(out, "PER_GPU {section} STATS:");
        }
        out.push_str("RDMA MRSTATS:\npeer name nr_mrs mr_size(MiB)\n");
    }
    out
}

fn gpu_line(snapshot: &Snapshot, gpu: &Way) -> String {
    let index = gpu.gpu.unwrap_or(0);
    let mine = |way: &&Way| way.gpu == gpu.gpu;
    // Whether cuFile went its own way or by POSIX calls, the library does not tell each time.
    let asked_cufile = snapshot.ways.iter().filter(mine).any(|way| way.path.starts_with("gds"));
    let seconds = gpu.seconds();
    let side = |side: &Counts, sparse: &str| {
        let ios = side.ios();
        let posix = if asked_cufile && ios > 0 { "n/a".to_owned() } else { ios.to_string() };
        format!(
            "bw={} util(%)={} n={ios} posix={posix} unalign={}{sparse} err={} MiB={}",
            bandwidth(side, seconds),
            utilisation(side, seconds),
            side.unaligned,
            side.failed,
            side.bytes / MIB,
        )
    };
    // A program that registers may also have taken some back, which nobody counts.
    let registers = snapshot.ways.iter().filter(mine).any(|way| way.path == REGISTERED);
    let registered = match gpu.registered {
        Some(0) if !registers => "n=0 err=0 free=0 MiB=0".to_owned(),
        Some(now) => format!("n={now} err=n/a free=n/a MiB=n/a"),
        None => "n=n/a err=n/a free=n/a MiB=n/a".to_owned(),
    };
    let read = side(&gpu.read, " r_sparse=n/a r_inline=n/a");
    let write = side(&gpu.write, "");
    format!("GPU {index} Read: {read} Write: {write} BufRegister: {registered}\n")
}

/// GiB per second from the first I/O to the last.
fn bandwidth(side: &Counts, seconds: Option<f64>) -> String {
    six_digits(per_second(side.bytes, seconds).map_or(0.0, |rate| rate / GIB))
}

/// Mean number of I/Os under way, in per cent: time of all I/Os over the time.
fn utilisation(side: &Counts, seconds: Option<f64>) -> String {
    let busy = per_second(side.latency_ns, seconds).unwrap_or(0.0);
    format!("{}", (busy / 1e9 * 100.0).round())
}

/// Six significant digits at most and no zeros behind them, as gds_stats prints.
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
