//! PCIe traffic of GPUs: `nvidia-smi dmon -s t` (MB/s) and `dcgmi dmon -e 1009,1010` (bytes per
//! second; NVIDIA, DCGM field identifiers, PROF_PCIE_TX_BYTES and PROF_PCIE_RX_BYTES).

use gpuio_base::measured::Measured;

use crate::post::seen::Sight;

/// Means of a GPU, in bytes per second, headers of packets included. NVIDIA does not say whether
/// dmon's MB is 10^6 or 2^20; 10^6 is taken here.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Traffic {
    pub(crate) gpu: u32,
    /// Into the GPU.
    pub(crate) received: f64,
    /// Out of it.
    pub(crate) sent: f64,
    /// Lowest and highest row of each.
    pub(crate) received_range: (f64, f64),
    pub(crate) sent_range: (f64, f64),
}

impl Traffic {
    fn row(gpu: u32, received: f64, sent: f64) -> Traffic {
        let (received_range, sent_range) = ((received, received), (sent, sent));
        Traffic { gpu, received, sent, received_range, sent_range }
    }

    /// Adds a row, the count of all being given.
    fn add(&mut self, row: &Traffic, count: f64) {
        self.received += (row.received - self.received) / count;
        self.sent += (row.sent - self.sent) / count;
        let widen = |range: (f64, f64), value: f64| (range.0.min(value), range.1.max(value));
        self.received_range = widen(self.received_range, row.received);
        self.sent_range = widen(self.sent_range, row.sent);
    }
}

/// Columns of the two tools, with the bytes of one.
const RECEIVED: [(&str, f64); 2] = [("rxpci", 1e6), ("PCIRX", 1.0)];
const SENT: [(&str, f64); 2] = [("txpci", 1e6), ("PCITX", 1.0)];

/// The mean of the rows by GPU.
pub(super) fn of(tables: &[Measured]) -> Option<Sight> {
    let mut all: Vec<(Traffic, f64)> = Vec::new();
    for table in tables {
        for row in &table.rows {
            let value = |columns: [(&str, f64); 2]| {
                columns.iter().find_map(|(name, scale)| Some(table.value(row, &[name])? * scale))
            };
            let gpu = row.of.strip_prefix("GPU").and_then(|gpu| gpu.parse().ok());
            let (Some(gpu), Some(received), Some(sent)) = (gpu, value(RECEIVED), value(SENT))
            else {
                continue;
            };
            let one = Traffic::row(gpu, received, sent);
            match all.iter_mut().find(|(known, _)| known.gpu == gpu) {
                Some((known, count)) => {
                    *count += 1.0;
                    known.add(&one, *count);
                }
                None => all.push((one, 1.0)),
            }
        }
    }
    let all: Vec<Traffic> = all.into_iter().map(|(one, _)| one).collect();
    (!all.is_empty()).then_some(Sight::Gpus(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::line::lines;
    use crate::post::seen::read;

    #[test]
    fn columns_are_found_by_their_heads() {
        let text = "# gpu   pwr gtemp rxpci txpci\n# Idx     W     C  MB/s  MB/s\n    2    63    \
                    37  8923     0\n    2    63    37  8921     0\n\nThis";
        let (seen, until) = read(&lines(text), 0).unwrap();
        let Sight::Gpus(gpus) = seen.sight else { panic!() };
        assert_eq!((gpus[0].gpu, gpus[0].received, until), (2, 8922e6, 4));
        assert_eq!(gpus[0].received_range, (8921e6, 8923e6));
        let text =
            "# Entity   PCITX   PCIRX\n      Id\n    GPU 0   471  523\n. . .\n    GPU 12  52  472";
        let (seen, until) = read(&lines(text), 0).unwrap();
        let Sight::Gpus(gpus) = seen.sight else { panic!() };
        assert_eq!((gpus.len(), until), (2, 5));
        assert_eq!(gpus[1], Traffic::row(12, 472.0, 52.0));
        assert_eq!(read(&lines("# gpu   pwr  sm\n 0 1 2"), 0), None);
    }
}
