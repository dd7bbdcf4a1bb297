//! NVIDIA's nvidia-fs driver: `/proc/driver/nvidia-fs/stats` and whether it counts.
//!
//! The layout is that of nvidia-fs 2.3 to 2.2x (statistics versions 2.0 to 4.0 and later); fields
//! are found by name, so lines that a version adds are passed over. Reads and writes count only
//! while the module's parameter `rw_stats_enabled` is 1, which is not the default. The line `Ops`
//! is not read: it holds operations in flight, and 0 there means nothing.

use gpuio_record::facts::{CrossRootPort, Fact};

use crate::numa::normalize_pci;
use crate::parse::keep;
use crate::{HostError, LineFault, Root};

const STATS: &str = "proc/driver/nvidia-fs/stats";
const DRIVERS: &str = "proc/driver/nvidia-fs/modules";
const RW_STATS: &str = "sys/module/nvidia_fs/parameters/rw_stats_enabled";
const MIB: u64 = 1 << 20;

/// One direction's counters since the module was loaded or its statistics were reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Direction {
    /// Operations begun (`n`).
    pub begun: u64,
    /// Operations that succeeded (`ok`).
    pub ok: u64,
    /// Operations that failed (`err`).
    pub failed: u64,
    /// Bytes moved, in whole MiB as the driver counts them (`readMiB`, `writeMiB`).
    pub bytes: u64,
}

/// The driver's own facts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NvidiaFsSample {
    /// Release of GPUDirect Storage, where it is printed.
    pub gds_version: Option<String>,
    /// Version of the statistics' layout (`2.0`, `4.0`).
    pub stats_version: Option<String>,
    /// Version of the driver (`2:7:47`).
    pub driver_version: Option<String>,
    /// Whether reads and writes are counted (`rw_stats_enabled`); `None` when the parameter can't
    /// be read.
    pub counts: Option<bool>,
    /// Whether it counts by peers, which `cross_root_port` needs (`peer IO stats`); `None` where
    /// it is not printed.
    pub peers_count: Option<bool>,
    /// Reads from storage into GPU memory.
    pub reads: Direction,
    /// Writes from GPU memory to storage.
    pub writes: Direction,
    /// PCI addresses of the GPUs that it lists, as printed.
    pub gpus: Vec<String>,
    /// Its other counts.
    pub further: Further,
    /// Its report of each of `gpus`, in that order.
    pub of_gpus: Vec<OfGpu>,
}

/// Counts other than reads and writes; `None` where this version does not print them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Further {
    /// Reads that met holes of files (`Sparse Reads`, `n`).
    pub sparse_reads: Option<u64>,
    /// Holes in them (`holes`), which the driver fills with zeros.
    pub sparse_holes: Option<u64>,
    /// Mappings of GPU memory into BAR1 (`Bar1-map`, `n`).
    pub bar1_maps: Option<u64>,
    /// Mappings that failed (`err`).
    pub bar1_map_errors: Option<u64>,
    /// Mappings that are there now (`active`).
    pub bar1_active: Option<u64>,
    /// Requests that mixed pages of processor and GPU (`Error`, `cpu-gpu-pages`).
    pub mixed_page_errors: Option<u64>,
    /// Scatter lists that could not be extended (`sg-ext`).
    pub scatter_errors: Option<u64>,
    /// Mappings for DMA that failed (`dma-map`).
    pub dma_map_errors: Option<u64>,
    /// References to such mappings that failed (`dma-ref`).
    pub dma_reference_errors: Option<u64>,
}

/// The driver's report of one GPU; `None` where this version does not print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfGpu {
    /// Memory registered for I/O, in bytes.
    pub registered_bytes: Option<u64>,
    /// Memory of bounce buffers, in bytes.
    pub cache_bytes: Option<u64>,
    /// The most that was pinned at once, in bytes.
    pub most_pinned_bytes: Option<u64>,
    /// Share of the I/O that went between root ports of the processor, in percent.
    pub cross_root_port_percent: Option<u64>,
}

impl NvidiaFsSample {
    /// Bytes read and written from this sample to a `later` one. `None` when reads and writes were
    /// not counted throughout, or a counter went back (the module was loaded anew or reset).
    #[must_use]
    pub fn delta(&self, later: &Self) -> Option<(u64, u64)> {
        if self.counts != Some(true) || later.counts != Some(true) {
            return None;
        }
        let read = later.reads.bytes.checked_sub(self.reads.bytes)?;
        let written = later.writes.bytes.checked_sub(self.writes.bytes)?;
        Some((read, written))
    }
}

/// Samples the counters; `None` when the module is not loaded.
///
/// # Errors
/// [`HostError`] when a file cannot be read or understood.
pub fn sample(root: &Root) -> Result<Option<NvidiaFsSample>, HostError> {
    let Some(text) = root.read(STATS)? else {
        return Ok(None);
    };
    let mut sample = text.parse(parse_stats)?;
    // Module parameters of type bool print as Y or N, those of type int as 1 or 0.
    sample.counts = root.word(RW_STATS)?.map(|word| matches!(word.as_str(), "1" | "Y"));
    Ok(Some(sample))
}

/// Storage drivers that have registered with the module, by name: a line `nvme: 1` each. A file
/// that cannot be read goes to `problems`.
pub fn drivers(root: &Root, problems: &mut Vec<HostError>) -> Fact<Vec<String>> {
    let text = keep(root.read(DRIVERS), problems);
    let names = text.map(|text| parse_drivers(&text.body));
    Fact::or_unknown(names, "/proc/driver/nvidia-fs/modules is not there")
}

/// How much of each GPU's I/O went between root ports. A file that cannot be read goes to
/// `problems`.
pub fn cross_root_ports(root: &Root, problems: &mut Vec<HostError>) -> Fact<Vec<CrossRootPort>> {
    let sample = keep(sample(root), problems);
    sample
        .map_or_else(|| Fact::unknown("/proc/driver/nvidia-fs/stats is not there"), |s| crossed(&s))
}

/// The shares, where the module counted I/O and its peers.
#[must_use]
pub fn crossed(sample: &NvidiaFsSample) -> Fact<Vec<CrossRootPort>> {
    let shares = sample.gpus.iter().zip(&sample.of_gpus).filter_map(|(gpu, counts)| {
        let gpu = normalize_pci(gpu)?;
        Some(CrossRootPort { gpu, percent: counts.cross_root_port_percent? })
    });
    let shares: Vec<CrossRootPort> = shares.collect();
    let counted = sample.reads.begun.saturating_add(sample.writes.begun);
    if shares.iter().any(|share| share.percent > 0) {
        return Fact::Known(shares);
    }
    Fact::unknown(match (sample.peers_count, sample.counts) {
        (Some(false), _) => {
            "nvidia-fs does not count peers: set its parameter peer_stats_enabled to 1"
        }
        (_, Some(false) | None) => {
            "nvidia-fs does not count I/O: set its parameter rw_stats_enabled to 1"
        }
        _ if shares.is_empty() => "this version of nvidia-fs does not print cross_root_port",
        _ if counted == 0 => "nvidia-fs has counted no I/O since it was loaded or reset",
        _ => return Fact::Known(shares),
    })
}

/// Parses the list of registered drivers: the first word of each line.
#[must_use]
pub fn parse_drivers(text: &str) -> Vec<String> {
    let words = text.lines().filter_map(|line| line.split([':', ' ', '\t']).next());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Parses the statistics; `counts` stays `None`, as it is not in this file. Unknown lines are
/// passed over.
///
/// # Errors
/// [`LineFault`] when a count of reads or writes is not a number.
pub fn parse_stats(text: &str) -> Result<NvidiaFsSample, LineFault> {
    let mut sample = NvidiaFsSample::default();
    let mut part = "";
    for (index, line) in text.lines().enumerate() {
        let malformed = || LineFault::new(index, line, "name=number, as nvidia-fs prints counts");
        if let Some((_, version)) = line.split_once("statistics(ver:") {
            sample.stats_version = inside(version);
        } else if let Some((_, version)) = line.split_once("Driver(version:") {
            sample.driver_version = inside(version);
        } else if let Some(gpu) = line.strip_prefix("GPU ") {
            sample.gpus.extend(gpu.split_whitespace().next().map(str::to_owned));
            sample.of_gpus.resize(sample.gpus.len(), OfGpu::default());
        }
        part = further(part, line, &mut sample);
        if let Some((_, peers)) = line.split_once("peer IO stats:") {
            sample.peers_count = Some(peers.trim_start().starts_with("Enabled"));
        }
        let Some((key, rest)) = line.split_once(':') else { continue };
        let (direction, size) = match key.trim() {
            "GDS Version" => {
                sample.gds_version = Some(rest.trim().to_owned());
                continue;
            }
            "Reads" => (&mut sample.reads, "readMiB"),
            "Writes" => (&mut sample.writes, "writeMiB"),
            _ => continue,
        };
        for (name, value) in rest.split_whitespace().filter_map(|word| word.split_once('=')) {
            let field = match name {
                "n" => &mut direction.begun,
                "ok" => &mut direction.ok,
                "err" => &mut direction.failed,
                name if name == size => &mut direction.bytes,
                _ => continue,
            };
            *field = value.parse().map_err(|_| malformed())?;
            if name == size {
                direction.bytes = direction.bytes.saturating_mul(MIB);
            }
        }
    }
    Ok(sample)
}

/// Takes a line's other counts, and returns the part that the next line belongs
/// to if it is indented: parts go over two lines. A word that is no number is passed over.
fn further<'t>(part: &'t str, line: &'t str, sample: &mut NvidiaFsSample) -> &'t str {
    let part = match line.split_once(':') {
        _ if line.starts_with("GPU ") => "GPU",
        Some((name, _)) if !line.starts_with([' ', '\t']) => name.trim(),
        _ => part,
    };
    let words = line.split_whitespace().filter_map(|word| word.split_once('='));
    let further = &mut sample.further;
    for (name, value) in words {
        let Ok(value) = value.parse::<u64>() else { continue };
        let gpu = sample.of_gpus.last_mut().filter(|_| part == "GPU");
        let field = match (part, name, gpu) {
            ("Sparse Reads", "n", _) => &mut further.sparse_reads,
            ("Sparse Reads", "holes", _) => &mut further.sparse_holes,
            ("Bar1-map", "n", _) => &mut further.bar1_maps,
            ("Bar1-map", "err", _) => &mut further.bar1_map_errors,
            ("Bar1-map", "active", _) => &mut further.bar1_active,
            ("Error", "cpu-gpu-pages", _) => &mut further.mixed_page_errors,
            ("Error", "sg-ext", _) => &mut further.scatter_errors,
            ("Error", "dma-map", _) => &mut further.dma_map_errors,
            ("Error", "dma-ref", _) => &mut further.dma_reference_errors,
            (_, "Registered_MiB", Some(gpu)) => {
                gpu.registered_bytes = Some(value.saturating_mul(MIB));
                continue;
            }
            (_, "Cache_MiB", Some(gpu)) => {
                gpu.cache_bytes = Some(value.saturating_mul(MIB));
                continue;
            }
            (_, "max_pinned_MiB", Some(gpu)) => {
                gpu.most_pinned_bytes = Some(value.saturating_mul(MIB));
                continue;
            }
            (_, "cross_root_port(%)", Some(gpu)) => &mut gpu.cross_root_port_percent,
            _ => continue,
        };
        *field = Some(value);
    }
    part
}

/// ` 4.0)` without the bracket and blanks.
fn inside(text: &str) -> Option<String> {
    let (word, _) = text.split_once(')')?;
    Some(word.trim().to_owned()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossing_is_known_where_io_was_counted() {
        let stats = |percent: u32, reads: u32, peers: &str| {
            let text = format!(
                "IO stats: Enabled, peer IO stats: {peers}\nReads : n={reads} ok={reads} err=0 \
                 readMiB=1\nGPU 0000:BE:00.0  uuid:1 : Registered_MiB=0 Cache_MiB=0 \
                 max_pinned_MiB=1 cross_root_port(%)={percent}\n"
            );
            let mut sample = parse_stats(&text).unwrap();
            sample.counts = Some(true);
            crossed(&sample)
        };
        let share = |percent| CrossRootPort { gpu: "0000:be:00.0".to_owned(), percent };
        assert_eq!(stats(40, 0, "Enabled"), Fact::Known(vec![share(40)]));
        assert_eq!(stats(0, 9, "Enabled"), Fact::Known(vec![share(0)]));
        assert!(stats(0, 0, "Enabled").why().unwrap().contains("counted no I/O"));
        assert!(stats(0, 9, "Disabled").why().unwrap().contains("peer_stats_enabled"));
        let old = NvidiaFsSample { counts: Some(true), ..NvidiaFsSample::default() };
        assert!(crossed(&old).why().unwrap().contains("does not print"));
    }

    #[test]
    fn drivers_are_the_first_words() {
        assert_eq!(parse_drivers("wekafsio: 1\nnvme: 1\n\n"), ["wekafsio", "nvme"]);
    }
}
