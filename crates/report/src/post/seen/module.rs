//! `/proc/driver/nvidia-fs/stats`, versions 1 to 4 of its form.

use gpuio_base::measured::nvidia_fs;

use crate::post::line::Line;
use crate::post::seen::{Sight, until};

/// Counters since the module was loaded; rates only where it counts them (`rw_stats_enabled`).
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Module {
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    pub(crate) errors: f64,
    /// Bytes per second of the last interval.
    pub(crate) read_rate: Option<f64>,
    pub(crate) write_rate: Option<f64>,
    /// The GPU by its PCI address, and per cent of its transfers across root ports; above 0.
    pub(crate) across: Vec<(String, f64)>,
}

impl Module {
    /// I/Os that went through it.
    pub(crate) fn counted(&self) -> f64 {
        self.reads + self.writes
    }
}

pub(super) fn read(lines: &[Line], index: usize) -> Option<(Sight, usize)> {
    let first = lines[index].text.trim();
    if !(first.starts_with("NVFS statistics") || first.starts_with("GDS Version:")) {
        return None;
    }
    let mut own = String::new();
    let until = until(lines, index, 3, |text| {
        let is_line = nvidia_fs::is_line(text);
        if is_line {
            own.push_str(text);
            own.push('\n');
        }
        is_line
    });
    let sample = nvidia_fs::parse(&own).ok()?;
    let float = |count: u64| count as f64;
    let across = sample.gpus.iter().zip(&sample.of_gpus).filter_map(|(gpu, one)| {
        let share = one.cross_root_port_percent.filter(|share| *share > 0)?;
        Some((gpu.clone(), float(share)))
    });
    let module = Module {
        reads: float(sample.reads.begun),
        writes: float(sample.writes.begun),
        errors: float(sample.reads.failed) + float(sample.writes.failed),
        read_rate: sample.reads.rate.map(float),
        write_rate: sample.writes.rate.map(float),
        across: across.collect(),
    };
    Some((Sight::Module(module), until))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::line::lines;

    #[test]
    fn counters_and_shares_across_root_ports_are_read() {
        let text = "GDS Version: 0.9.0.743\nNVFS statistics(ver: 2.0)\n\nReads : n=42 ok=40 err=2 \
                    readMiB=9 io_state_err=0\nReads : Bandwidth(MiB/s)=13081 \
                    Avg-Latency(usec)=9773\nWrites : n=7 ok=7 err=0 writeMiB=1\nOps : Read=128 \
                    Write=0\nGPU 0000:be:00.0  uuid:87e5 : Registered_MiB=0 \
                    cross_root_port(%)=63\n. .\n\nThe GDS stats\n";
        let (sight, until) = read(&lines(text), 0).unwrap();
        let Sight::Module(module) = sight else { panic!() };
        assert_eq!((module.reads, module.writes, module.errors), (42.0, 7.0, 2.0));
        assert_eq!(module.read_rate, Some(13_081.0 * 1024.0 * 1024.0));
        assert_eq!(module.across, [("0000:be:00.0".to_owned(), 63.0)]);
        assert_eq!(until, 8);
    }
}
