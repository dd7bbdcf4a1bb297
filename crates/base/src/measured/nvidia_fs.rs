//! `/proc/driver/nvidia-fs/stats`: what NVIDIA's nvidia-fs driver counts.
//!
//! The layout is that of nvidia-fs 2.3 to 2.2x (statistics versions 2.0 to 4.0 and later); fields
//! are found by name, so lines that a version adds are passed over. The line `Ops` holds operations
//! in flight: 0 there means nothing.

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
    /// Bytes per second of the last interval (`Bandwidth(MiB/s)`), where they are printed.
    pub rate: Option<u64>,
    /// Microseconds of an operation on average (`Avg-Latency(usec)`), where they are printed.
    pub latency_us: Option<u64>,
    /// Operations in flight (line `Ops`), where they are printed.
    pub in_flight: Option<u64>,
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
    /// Buffers that programs mapped (`Mmap`, `n`).
    pub maps: Option<u64>,
    /// Those that succeeded (`ok`).
    pub maps_ok: Option<u64>,
    /// Those that failed (`err`).
    pub map_errors: Option<u64>,
    /// Buffers that were unmapped (`munmap`).
    pub unmaps: Option<u64>,
    /// Memory of shadow buffers that are there now, in MiB (`Active Shadow-Buffer`).
    pub shadow_mib: Option<u64>,
    /// Mappings of GPU memory into BAR1 (`Bar1-map`, `n`).
    pub bar1_maps: Option<u64>,
    /// Mappings that failed (`err`).
    pub bar1_map_errors: Option<u64>,
    /// Mappings that were freed (`free`).
    pub bar1_freed: Option<u64>,
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
    pub fn delta(&self, later: &Self) -> Option<(u64, u64)> {
        if self.counts != Some(true) || later.counts != Some(true) {
            return None;
        }
        let read = later.reads.bytes.checked_sub(self.reads.bytes)?;
        let written = later.writes.bytes.checked_sub(self.writes.bytes)?;
        Some((read, written))
    }
}

/// The beginnings of lines that the driver prints (nvidia-fs 2.3 to 2.2x).
const LINES: [&str; 19] = [
    "GDS Version",
    "NVFS",
    "Mellanox",
    "IO stats",
    "Logging level",
    "Active",
    "Reads",
    "Writes",
    "Sparse",
    "Mmap",
    "Bar1-map",
    "Error",
    "Ops",
    "GPU ",
    "pg-cache",
    "active=",
    "max_pinned",
    "Batches",
    "cuFile",
];

/// Whether the driver prints such a line.
pub fn is_line(line: &str) -> bool {
    LINES.iter().any(|start| line.trim_start().starts_with(start))
}

/// Parses the statistics; `counts` stays `None`, as it is not in this file. Unknown lines are
/// passed over.
///
/// # Errors
/// The index of the line where a count of reads or writes is not a number.
pub fn parse(text: &str) -> Result<NvidiaFsSample, usize> {
    let mut sample = NvidiaFsSample::default();
    let mut part = "";
    for (index, line) in text.lines().enumerate() {
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
            "Active Shadow-Buffer (MiB)" => {
                sample.further.shadow_mib = rest.trim().parse().ok();
                continue;
            }
            "GDS Version" => {
                sample.gds_version = Some(rest.trim().to_owned());
                continue;
            }
            "Reads" => (&mut sample.reads, "readMiB"),
            "Writes" => (&mut sample.writes, "writeMiB"),
            _ => continue,
        };
        for (name, value) in rest.split_whitespace().filter_map(|word| word.split_once('=')) {
            if name == "Bandwidth(MiB/s)" {
                direction.rate = value.parse().ok().map(|mib: u64| mib.saturating_mul(MIB));
                continue;
            }
            if name == "Avg-Latency(usec)" {
                direction.latency_us = value.parse().ok();
                continue;
            }
            let field = match name {
                "n" => &mut direction.begun,
                "ok" => &mut direction.ok,
                "err" => &mut direction.failed,
                name if name == size => &mut direction.bytes,
                _ => continue,
            };
            *field = value.parse().map_err(|_| index)?;
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
            ("Mmap", "n", _) => &mut further.maps,
            ("Mmap", "ok", _) => &mut further.maps_ok,
            ("Mmap", "err", _) => &mut further.map_errors,
            ("Mmap", "munmap", _) => &mut further.unmaps,
            ("Bar1-map", "n", _) => &mut further.bar1_maps,
            ("Bar1-map", "err", _) => &mut further.bar1_map_errors,
            ("Bar1-map", "free", _) => &mut further.bar1_freed,
            ("Bar1-map", "active", _) => &mut further.bar1_active,
            ("Ops", "Read", _) => &mut sample.reads.in_flight,
            ("Ops", "Write", _) => &mut sample.writes.in_flight,
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
