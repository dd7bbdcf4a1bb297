//! One PCIe link, with both ends' maxima.

use gpuio_record::facts::{Lanes, PciFacts};
use serde::Serialize;

/// The link above a function, up to the port that it hangs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Address of the function at its lower end.
    pub address: String,
    /// As it is now. An idle link may run slower than it will under load.
    pub now: Lanes,
    /// The most that both ends can do.
    pub most: Lanes,
    /// The most that the lower end could do at a better port.
    pub device_most: Lanes,
    /// Bytes per second in one direction after the line code, or in flits (see
    /// [`gpuio_base::units::pcie_bytes_per_second`]), packets' headers included; `null` when speed
    /// or width is not known.
    pub bytes_per_second: Option<u64>,
}

impl Link {
    /// The link between `lower` and the port `upper`, where that is known; `None` when nothing is
    /// known of it.
    pub(crate) fn above(lower: &PciFacts, upper: Option<&PciFacts>) -> Option<Link> {
        let now = lower.link_now;
        let known = now != Lanes::default() || lower.link_bytes_per_second.is_some();
        if !known {
            return None;
        }
        let both = |pick: fn(&Lanes) -> Option<u64>| {
            let upper = upper.and_then(|upper| pick(&upper.link_most));
            [pick(&lower.link_most), upper].into_iter().flatten().min()
        };
        let most =
            Lanes { mega_transfers: both(|lanes| lanes.mega_transfers), width: both(|l| l.width) };
        Some(Link {
            address: lower.address.clone(),
            now,
            most,
            device_most: lower.link_most,
            bytes_per_second: lower.link_bytes_per_second.or_else(|| rate(now)),
        })
    }

    /// Whether it runs slower or narrower than both ends could.
    pub fn is_below_most(&self) -> bool {
        less(self.now, self.most)
    }

    /// Whether the device could do more at a better port.
    pub fn is_held_by_port(&self) -> bool {
        less(self.most, self.device_most)
    }

    /// Speed and width now: `8 GT/s x16`; the rate where only that is known.
    pub fn text(&self) -> String {
        match self.bytes_per_second {
            _ if self.now != Lanes::default() => self.now.to_string(),
            Some(rate) => rate_text(rate),
            None => "link unknown".to_owned(),
        }
    }

    /// The most that both ends can do, as [`Link::text`] spells it; empty when not known.
    pub fn most_text(&self) -> String {
        self.most.to_string()
    }

    /// The most that the lower end could do; empty when not known.
    pub fn device_most_text(&self) -> String {
        self.device_most.to_string()
    }

    /// Notes other than its speed, empty when all is well.
    pub fn mark(&self) -> String {
        let most = self.most_text();
        if self.is_below_most() {
            return format!("! below {most}");
        }
        if self.is_held_by_port() {
            return format!("! port: {most}, device: {}", self.device_most_text());
        }
        String::new()
    }
}

fn less(now: Lanes, most: Lanes) -> bool {
    let below = |now: Option<u64>, most: Option<u64>| now.zip(most).is_some_and(|(n, m)| n < m);
    below(now.mega_transfers, most.mega_transfers) || below(now.width, most.width)
}

/// `15.8 GB/s`, in powers of ten as links are counted.
pub(crate) fn rate_text(bytes_per_second: u64) -> String {
    let tenths = bytes_per_second.saturating_add(50_000_000) / 100_000_000;
    format!("{}.{} GB/s", tenths / 10, tenths % 10)
}

fn rate(lanes: Lanes) -> Option<u64> {
    let (mega, width) = lanes.mega_transfers.zip(lanes.width)?;
    gpuio_base::units::pcie_bytes_per_second(mega, width)
}

/// An address without domain 0000, as people write it.
pub(crate) fn short(address: &str) -> &str {
    address.strip_prefix("0000:").unwrap_or(address)
}
