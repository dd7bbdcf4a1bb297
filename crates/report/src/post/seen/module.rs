//! `/proc/driver/nvidia-fs/stats`, versions 1 to 4 of its form.

use crate::post::line::Line;
use crate::post::seen::{Sight, behind};

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

const MIB: f64 = 1024.0 * 1024.0;

pub(super) fn read(lines: &[Line], index: usize) -> Option<(Sight, usize)> {
    let first = lines[index].text.trim();
    if !(first.starts_with("NVFS statistics") || first.starts_with("GDS Version:")) {
        return None;
    }
    let mut module = Module::default();
    let mut last = index;
    for (at, line) in lines.iter().enumerate().skip(index).take(200) {
        if at > index && line.prompt.is_some() {
            break;
        }
        if module.line(line.text.trim()) {
            last = at;
        } else if at > last + 3 {
            break;
        }
    }
    Some((Sight::Module(module), last + 1))
}

impl Module {
    fn line(&mut self, text: &str) -> bool {
        let Some((name, rest)) = text.split_once(':') else { return false };
        let errors = behind(rest, "err=").unwrap_or(0.0);
        match name.trim() {
            "Reads" | "Read" if rest.contains("Bandwidth") => {
                self.read_rate = behind(rest, "Bandwidth(MiB/s)=").map(|rate| rate * MIB);
            }
            "Writes" | "Write" if rest.contains("Bandwidth") => {
                self.write_rate = behind(rest, "Bandwidth(MiB/s)=").map(|rate| rate * MIB);
            }
            "Reads" => {
                self.reads = behind(rest, "n=").unwrap_or(0.0);
                self.errors += errors;
            }
            "Writes" => {
                self.writes = behind(rest, "n=").unwrap_or(0.0);
                self.errors += errors;
            }
            name if name.starts_with("GPU ") => {
                let share = behind(rest, "cross_root_port(%)=").filter(|share| *share > 0.0);
                let address = text.trim_start_matches("GPU ").split(' ').next().unwrap_or_default();
                self.across.extend(share.map(|share| (address.to_owned(), share)));
            }
            _ => return KNOWN.iter().any(|known| name.trim().starts_with(known)),
        }
        true
    }
}

const KNOWN: [&str; 12] = [
    "GDS Version",
    "NVFS",
    "Mellanox PeerDirect",
    "IO stats",
    "Peer IO stats",
    "Logging level",
    "Active",
    "Batches",
    "Sparse Reads",
    "Mmap",
    "Bar1-map",
    "Error",
];

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
        assert_eq!(module.read_rate, Some(13_081.0 * MIB));
        assert_eq!(module.across, [("0000:be:00.0".to_owned(), 63.0)]);
        assert_eq!(until, 8);
    }
}
