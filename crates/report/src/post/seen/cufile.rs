//! `gds_stats -p PID -l 1`, `2` or `3`, NVIDIA's and gpuio's.

use crate::post::line::Line;
use crate::post::seen::{Sight, behind};

/// Statistics of a process since it opened the library.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CuFile {
    /// Bytes per second.
    pub(crate) read_rate: Option<f64>,
    pub(crate) write_rate: Option<f64>,
    /// Nanoseconds.
    pub(crate) read_latency: Option<f64>,
    pub(crate) write_latency: Option<f64>,
    pub(crate) gpus: Vec<OfGpu>,
    /// Bounce buffers of GPU memory: GPU, in use, of.
    pub(crate) pools: Vec<(u32, u64, u64)>,
    /// Smallest size of I/Os, in bytes, with reads and writes; only rows with any.
    pub(crate) sizes: Vec<(u64, f64, f64)>,
}

/// A GPU with I/Os.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct OfGpu {
    pub(crate) gpu: u32,
    /// Reads and writes, and those of them that took the POSIX path.
    pub(crate) ios: f64,
    pub(crate) posix: f64,
    pub(crate) unaligned: f64,
    pub(crate) errors: f64,
}

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

pub(super) fn read(lines: &[Line], index: usize) -> Option<(Sight, usize)> {
    let first = lines[index].text.trim();
    let begins = ["cuFile STATS VERSION", "GLOBAL STATS:", "Read BandWidth (GiB/s):"];
    if !begins.iter().any(|begin| first.starts_with(begin)) {
        return None;
    }
    let mut stats = CuFile::default();
    let mut at = index;
    let mut last = index;
    while let Some(line) = lines.get(at) {
        let text = line.text.trim();
        if at > index && (line.prompt.is_some() || text.starts_with("cuFile STATS VERSION")) {
            break;
        }
        if stats.line(text) {
            last = at;
        } else if at > last + 4 {
            break;
        }
        at += 1;
    }
    Some((Sight::CuFile(stats), last + 1))
}

impl CuFile {
    /// Whether it is a line of the tool; its figures are kept.
    fn line(&mut self, text: &str) -> bool {
        let value = |name: &str| text.strip_prefix(name).and_then(|rest| behind(rest, ":"));
        if let Some(rate) = value("Read BandWidth (GiB/s)") {
            self.read_rate = Some(rate * GIB);
        } else if let Some(rate) = value("Write BandWidth (GiB/s)") {
            self.write_rate = Some(rate * GIB);
        } else if let Some(us) = value("Avg Read Latency (us)") {
            self.read_latency = Some(us * 1e3);
        } else if let Some(us) = value("Avg Write Latency (us)") {
            self.write_latency = Some(us * 1e3);
        } else if text.starts_with("GPU") && text.contains("pool_size_MiB") {
            self.pools.extend(pool(text));
        } else if text.starts_with("GPU ") && text.contains(" Read: ") {
            self.gpus.extend(gpu(text).filter(|gpu| gpu.ios > 0.0));
        } else if text.contains("(KiB): ") && !text.starts_with("GPU") {
            self.sizes.extend(size(text).filter(|(_, reads, writes)| reads + writes > 0.0));
        } else {
            let heads = [
                "cuFile STATS",
                "GLOBAL STATS",
                "Total ",
                "READ-WRITE SIZE",
                "PER_GPU ",
                "GPU ",
                "RDMA MRSTATS",
                "peer name",
            ];
            return heads.iter().any(|head| text.starts_with(head));
        }
        true
    }
}

/// `GPU : 0 pool_size_MiB : 64 usage : 63/64 used_MiB : 63`.
fn pool(text: &str) -> Option<(u32, u64, u64)> {
    let gpu = text.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty())?;
    let usage = text.split_once("usage")?.1.trim_start_matches([' ', ':']);
    let (used, of) = usage.split_whitespace().next()?.split_once('/')?;
    Some((gpu.parse().ok()?, used.parse().ok()?, of.parse().ok()?))
}

fn gpu(text: &str) -> Option<OfGpu> {
    let (head, rest) = text.split_once(" Read: ")?;
    let (reads, rest) = rest.split_once("Write:")?;
    let writes = rest.split("BufRegister:").next().unwrap_or_default();
    let both =
        |name: &str| behind(reads, name).unwrap_or(0.0) + behind(writes, name).unwrap_or(0.0);
    Some(OfGpu {
        gpu: head.trim_start_matches("GPU").trim().parse().ok()?,
        ios: both(" n="),
        posix: both(" posix="),
        unaligned: both(" unalign="),
        errors: both(" err="),
    })
}

/// `4-8(KiB): 1279109  0`.
fn size(text: &str) -> Option<(u64, f64, f64)> {
    let (range, counts) = text.split_once("(KiB): ")?;
    let from: u64 = range.split('-').next()?.parse().ok()?;
    let mut counts = counts.split_whitespace().map(str::parse);
    Some((from.checked_mul(1024)?, counts.next()?.ok()?, counts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::line::lines;

    #[test]
    fn pools_gpus_and_sizes_are_read() {
        let text = "cuFile STATS VERSION : 3\nGLOBAL STATS:\nTotal Files: 64\nRead BandWidth \
                    (GiB/s): 0.5\nAvg Read Latency (us): 2036\nREAD-WRITE SIZE HISTOGRAM :\n\
                    0-4(KiB): 0  0\n4-8(KiB): 1279109  0\n. . .\nPER_GPU STATS:\nGPU 9 Read: bw=0 \
                    util(%)=0 n=0 posix=0 unalign=0 r_sparse=0 r_inline=0 err=0 MiB=0 Write: bw=0 \
                    util(%)=0 n=0 posix=0 unalign=0 err=0 MiB=0 BufRegister: n=0 err=0\nGPU 10 \
                    Read: bw=0.12 util(%)=6387 n=1279109 posix=7 unalign=0 r_sparse=0 r_inline=0 \
                    err=0 MiB=4996 Write: bw=0 util(%)=0 n=0 posix=0 unalign=0 err=0 MiB=0 \
                    BufRegister: n=64 err=0\nPER_GPU POOL BUFFER STATS:\nGPU : 0 pool_size_MiB : \
                    64 usage : 63/64 used_MiB : 63\n\nThe output\n";
        let (sight, until) = read(&lines(text), 0).unwrap();
        let Sight::CuFile(stats) = sight else { panic!() };
        assert_eq!(until, 14, "{stats:?}");
        assert_eq!(stats.read_rate, Some(GIB / 2.0));
        assert_eq!(stats.pools, [(0, 63, 64)]);
        assert_eq!(stats.sizes, [(4096, 1_279_109.0, 0.0)]);
        let of = stats.gpus[0];
        assert_eq!((stats.gpus.len(), of.gpu, of.ios, of.posix), (1, 10, 1_279_109.0, 7.0));
        assert_eq!(read(&lines("gds_stats shows BandWidth"), 0), None);
    }
}
