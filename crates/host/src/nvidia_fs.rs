//! NVIDIA's nvidia-fs driver: its statistics and whether it counts: reads and writes only while the
//! module's parameter `rw_stats_enabled` is 1, which is not the default.

use gpuio_base::measured::nvidia_fs::parse;
pub use gpuio_base::measured::nvidia_fs::{Direction, Further, NvidiaFsSample, OfGpu};
use gpuio_record::facts::{CrossRootPort, Fact};

use crate::numa::normalize_pci;
use crate::parse::keep;
use crate::{HostError, LineFault, Root};

const STATS: &str = "proc/driver/nvidia-fs/stats";
const DRIVERS: &str = "proc/driver/nvidia-fs/modules";
const RW_STATS: &str = "sys/module/nvidia_fs/parameters/rw_stats_enabled";

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
pub fn parse_drivers(text: &str) -> Vec<String> {
    let words = text.lines().filter_map(|line| line.split([':', ' ', '\t']).next());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Parses the statistics; `counts` stays `None`, as it is not in this file.
///
/// # Errors
/// [`LineFault`] when a count of reads or writes is not a number.
pub fn parse_stats(text: &str) -> Result<NvidiaFsSample, LineFault> {
    parse(text).map_err(|index| {
        let line = text.lines().nth(index).unwrap_or_default();
        LineFault::new(index, line, "name=number, as nvidia-fs prints counts")
    })
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
