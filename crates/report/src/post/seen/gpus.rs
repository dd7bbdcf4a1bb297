//! PCIe traffic of GPUs: `nvidia-smi dmon -s t` (MB/s) and `dcgmi dmon -e 1009,1010` (bytes per
//! second; NVIDIA, DCGM field identifiers, PROF_PCIE_TX_BYTES and PROF_PCIE_RX_BYTES).

use crate::post::line::Line;
use crate::post::seen::{Sight, is_gap, words};

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

pub(super) fn dmon(lines: &[Line], index: usize) -> Option<(Sight, usize)> {
    let head = words(lines[index].text.trim().strip_prefix('#')?);
    if head.first() != Some(&"gpu") {
        return None;
    }
    let place = |name| head.iter().position(|word| *word == name);
    let (received, sent) = (place("rxpci")?, place("txpci")?);
    rows(lines, index, |text| {
        let row = words(text);
        let cell = |at: usize| row.get(at).and_then(|cell| cell.parse::<f64>().ok());
        let gpu = row.first()?.parse().ok().filter(|_| row.len() == head.len())?;
        Some(Traffic::row(gpu, cell(received)? * 1e6, cell(sent)? * 1e6))
    })
}

pub(super) fn dcgmi(lines: &[Line], index: usize) -> Option<(Sight, usize)> {
    let head = words(lines[index].text.trim().strip_prefix('#')?);
    if !head.first().is_some_and(|word| word.eq_ignore_ascii_case("entity")) {
        return None;
    }
    let place = |name| head.iter().position(|word| *word == name);
    let (sent, received) = (place("PCITX")?, place("PCIRX")?);
    rows(lines, index, |text| {
        let row = words(text.trim().strip_prefix("GPU ")?);
        let cell = |at: usize| row.get(at).and_then(|cell| cell.parse::<f64>().ok());
        let gpu = row.first()?.parse().ok()?;
        Some(Traffic::row(gpu, cell(received)?, cell(sent)?))
    })
}

/// The rows below a head, by GPU. Heads come again, and lines are cut.
fn rows(
    lines: &[Line],
    index: usize,
    row: impl Fn(&str) -> Option<Traffic>,
) -> Option<(Sight, usize)> {
    let mut all: Vec<(Traffic, f64)> = Vec::new();
    let mut at = index + 1;
    while let Some(line) = lines.get(at) {
        let text = line.text.trim();
        let found = row(text);
        let passed = text.starts_with('#') || text.eq_ignore_ascii_case("id");
        if found.is_none() && !passed && (!is_gap(text) || text.is_empty()) {
            break;
        }
        if let Some(one) = found {
            match all.iter_mut().find(|(known, _)| known.gpu == one.gpu) {
                Some((known, count)) => {
                    *count += 1.0;
                    known.add(&one, *count);
                }
                None => all.push((one, 1.0)),
            }
        }
        at += 1;
    }
    let all: Vec<Traffic> = all.into_iter().map(|(one, _)| one).collect();
    (!all.is_empty()).then_some((Sight::Gpus(all), at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::line::lines;

    #[test]
    fn columns_are_found_by_their_heads() {
        let text = "# gpu   pwr gtemp rxpci txpci\n# Idx     W     C  MB/s  MB/s\n    2    63    \
                    37  8923     0\n    2    63    37  8921     0\n\nThis";
        let (sight, until) = dmon(&lines(text), 0).unwrap();
        let Sight::Gpus(gpus) = sight else { panic!() };
        assert_eq!((gpus[0].gpu, gpus[0].received, until), (2, 8922e6, 4));
        assert_eq!(gpus[0].received_range, (8921e6, 8923e6));
        let text =
            "# Entity   PCITX   PCIRX\n      Id\n    GPU 0   471  523\n. . .\n    GPU 12  52  472";
        let (sight, until) = dcgmi(&lines(text), 0).unwrap();
        let Sight::Gpus(gpus) = sight else { panic!() };
        assert_eq!((gpus.len(), until), (2, 5));
        assert_eq!(gpus[1], Traffic::row(12, 472.0, 52.0));
        assert_eq!(dmon(&lines("# gpu   pwr  sm\n 0 1 2"), 0), None);
    }
}
