//! `gds_stats -p PID -l 1`, `2` or `3`, NVIDIA's and gpuio's.

use gpuio_base::measured::Measured;
use gpuio_base::units::whole;

use crate::post::seen::Sight;

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

pub(super) fn of(tables: &[Measured]) -> Option<Sight> {
    let mut stats = CuFile::default();
    for (table, row) in tables.iter().flat_map(|one| one.rows.iter().map(move |row| (one, row))) {
        let value = |name: &str| table.value(row, &[name]);
        let both = |name: &str| {
            let side = |side| value(&format!("{side} {name}")).unwrap_or(0.0);
            side("Read") + side("Write")
        };
        let gpu = row.of.strip_prefix("GPU").and_then(|gpu| gpu.parse().ok());
        let count = |name| value(name).map(whole);
        let pool = || Some((gpu?, count("buffers used")?, count("buffers")?));
        if row.of == "process" {
            let value = |name: &str, scale: f64| value(name).map(|value| value * scale);
            stats.read_rate = value("Read BandWidth (GiB/s)", GIB);
            stats.write_rate = value("Write BandWidth (GiB/s)", GIB);
            stats.read_latency = value("Avg Read Latency (us)", 1e3);
            stats.write_latency = value("Avg Write Latency (us)", 1e3);
        } else if let Some(pool) = pool() {
            stats.pools.push(pool);
        } else if let Some((kib, _)) = row.of.strip_suffix(" KiB").and_then(|r| r.split_once('-')) {
            let from = kib.parse::<u64>().ok().and_then(|kib| kib.checked_mul(1024));
            let counts = value("reads").zip(value("writes"));
            stats.sizes.extend(from.zip(counts).map(|(from, (r, w))| (from, r, w)));
        } else if let Some(gpu) = gpu.filter(|_| both("n") > 0.0) {
            stats.gpus.push(OfGpu {
                gpu,
                ios: both("n"),
                posix: both("posix"),
                unaligned: both("unalign"),
                errors: both("err"),
            });
        }
    }
    (!tables.is_empty()).then_some(Sight::CuFile(stats))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::line::lines;
    use crate::post::seen::read;

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
        let (seen, until) = read(&lines(text), 0).unwrap();
        let Sight::CuFile(stats) = seen.sight else { panic!() };
        assert_eq!(until, 14, "{stats:?}");
        assert_eq!(stats.read_rate, Some(GIB / 2.0));
        assert_eq!(stats.pools, [(0, 63, 64)]);
        assert_eq!(stats.sizes, [(4096, 1_279_109.0, 0.0)]);
        let of = stats.gpus[0];
        assert_eq!((stats.gpus.len(), of.gpu, of.ios, of.posix), (1, 10, 1_279_109.0, 7.0));
        assert_eq!(read(&lines("gds_stats shows BandWidth"), 0), None);
    }
}
