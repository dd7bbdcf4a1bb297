//! The measured rates, and their forms: text, JSON, and figures for `--spec`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use gpuio_base::document::{Cell, Columns, Document, Item, Layout, List, Part};
use gpuio_base::stat::infer::median;
use serde::Serialize;

use super::transfer::Counted;
use super::wire::{Direction, Port};
use crate::failure::Failure;

/// The network between two machines.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) gpuio: &'static str,
    /// When it began, in UTC.
    pub(super) time: String,
    pub(super) transport: &'static str,
    pub(super) server: String,
    pub(super) streams: u32,
    pub(super) ramp_s: f64,
    pub(super) runtime_s: f64,
    pub(super) client: Port,
    pub(super) server_port: Port,
    /// Nominal speed of the slower of both ports.
    pub(super) link_megabits: Option<u64>,
    /// Server to client.
    pub(super) read: Option<Rate>,
    /// Client to server.
    pub(super) write: Option<Rate>,
    /// Whether a signal ended it early.
    pub(super) interrupted: bool,
    pub(super) notes: Vec<String>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Rate {
    /// Median of the intervals.
    pub(super) bytes_per_s: f64,
    pub(super) lowest_bytes_per_s: f64,
    pub(super) highest_bytes_per_s: f64,
    /// In order.
    pub(super) intervals_bytes_per_s: Vec<f64>,
    /// Share of the link's nominal speed, the bytes of data alone.
    pub(super) link_percent: Option<f64>,
    /// As the sender and the receiver counted, the ramp included.
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    /// Counted by the sender.
    pub(super) retransmitted_segments: u64,
    pub(super) data_segments: u64,
    pub(super) path_mtu_bytes: u64,
    /// Processor seconds of each process for 10^9 bytes.
    pub(super) client_cpu_s_per_gb: f64,
    pub(super) server_cpu_s_per_gb: f64,
    /// The bytes that the client's interface received and sent meanwhile, all traffic and headers
    /// included.
    pub(super) client_interface_bytes: Option<[u64; 2]>,
}

impl Rate {
    /// From the counts of both ends.
    ///
    /// # Errors
    /// Why there is no rate, in words.
    pub(super) fn of(
        direction: Direction,
        client: &Counted,
        server: &Counted,
        client_interface_bytes: Option<[u64; 2]>,
    ) -> Result<Rate, String> {
        let (sender, receiver) = match direction {
            Direction::Read => (server, client),
            Direction::Write => (client, server),
        };
        if sender.bytes != receiver.bytes {
            return Err(format!("{} bytes were sent and {} arrived", sender.bytes, receiver.bytes));
        }
        let rates = receiver.rates();
        // Where processors are busy the median of intervals may be 0: that is a result.
        let middle = median(&rates).filter(|_| rates.iter().any(|rate| *rate > 0.0));
        let bytes_per_s = middle.ok_or_else(|| {
            let bytes = receiver.bytes;
            format!("no interval in which bytes arrived was measured, {bytes} bytes in all")
        })?;
        let cost = |end: &Counted| end.cpu_ns as f64 / end.bytes as f64;
        Ok(Rate {
            bytes_per_s,
            lowest_bytes_per_s: rates.iter().copied().fold(f64::INFINITY, f64::min),
            highest_bytes_per_s: rates.iter().copied().fold(0.0, f64::max),
            intervals_bytes_per_s: rates,
            link_percent: None,
            sent_bytes: sender.bytes,
            received_bytes: receiver.bytes,
            retransmitted_segments: sender.retransmitted_segments,
            data_segments: sender.data_segments,
            path_mtu_bytes: sender.path_mtu_bytes,
            client_cpu_s_per_gb: cost(client),
            server_cpu_s_per_gb: cost(server),
            client_interface_bytes,
        })
    }

    fn sent_again(&self) -> String {
        let again = 100.0 * self.retransmitted_segments as f64 / self.data_segments.max(1) as f64;
        format!("{} ({again:.3} %)", self.retransmitted_segments)
    }
}

impl Measured {
    pub(super) fn new(
        server: &SocketAddr,
        streams: u32,
        (ramp, runtime): (Duration, Duration),
        client: Port,
    ) -> Measured {
        Measured {
            gpuio: env!("CARGO_PKG_VERSION"),
            time: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            transport: "tcp",
            server: server.to_string(),
            streams,
            ramp_s: ramp.as_secs_f64(),
            runtime_s: runtime.as_secs_f64(),
            client,
            server_port: Port::default(),
            link_megabits: None,
            read: None,
            write: None,
            interrupted: false,
            notes: Vec::new(),
        }
    }

    /// Draws the conclusions from both directions and both ports.
    pub(super) fn conclude(&mut self) {
        let speeds = [self.client.megabits, self.server_port.megabits];
        self.link_megabits = speeds.into_iter().flatten().min();
        let local = self.client.interface.as_deref() == Some("lo");
        if local {
            self.notes.push("Both ends are this machine: no network was measured.".to_owned());
        } else if self.link_megabits.is_none() {
            self.notes.push("The link's speed is not known: its driver does not say.".to_owned());
        }
        if self.interrupted {
            self.notes.push("A signal ended it early.".to_owned());
        }
        let both = [(&mut self.read, 0, "read"), (&mut self.write, 1, "write")];
        for (rate, counter, name) in both {
            let Some(rate) = rate else { continue };
            let percent =
                self.link_megabits.map(|link| 100.0 * rate.bytes_per_s / (link as f64 * 125_000.0));
            rate.link_percent = percent;
            if rate.bytes_per_s == 0.0 {
                self.notes.push(format!(
                    "{name}: in half of the intervals or more nothing arrived: the link was \
                     interrupted, or one end had no processor time."
                ));
            }
            let interface = self.client.interface.as_deref().unwrap_or("-");
            if let Some(carried) = rate.client_interface_bytes
                && carried[counter] < rate.received_bytes
            {
                self.notes.push(format!(
                    "{name}: {interface} counted {} bytes of {}: the others took another way.",
                    carried[counter], rate.received_bytes
                ));
            }
            let mtu = self.client.mtu_bytes.unwrap_or(0);
            if !local && rate.path_mtu_bytes < mtu {
                self.notes.push(format!(
                    "{name}: the path takes packets of {} bytes, and {interface} would of {mtu}.",
                    rate.path_mtu_bytes
                ));
            }
        }
    }

    fn directions(&self) -> impl Iterator<Item = (&'static str, &Rate)> {
        let both = [("read", &self.read), ("write", &self.write)];
        both.into_iter().filter_map(|(name, rate)| Some((name, rate.as_ref()?)))
    }

    fn by(&self) -> String {
        let streams = if self.streams == 1 { "stream" } else { "streams" };
        let day = self.time.split('T').next().unwrap_or_default();
        format!("measured by TCP with {} {streams} on {day}", self.streams)
    }

    pub(super) fn document(&self) -> Document {
        let mut page = Document::new(format!("Network to {}", self.server));
        let first = page.begin("", "");
        first.paragraph(format!(
            "gpuio {}  {}  network to {} by TCP, {} streams, {} s after {} s of ramp",
            self.gpuio, self.time, self.server, self.streams, self.runtime_s, self.ramp_s
        ));
        for (name, port) in [("client", &self.client), ("server", &self.server_port)] {
            first.item(Layout::labels(0), Item::new(name, port_text(port)));
        }
        let cost = |seconds: f64| Cell::shown(format!("{seconds:.2}"), seconds);
        let table = Columns::<(&str, &Rate)>::new()
            .words("direction", |(name, _)| *name)
            .figures("median", |(_, one)| Cell::decimal_rate(one.bytes_per_s))
            .part(Part::First)
            .figures("lowest", |(_, one)| Cell::decimal_rate(one.lowest_bytes_per_s))
            .part(Part::First)
            .figures("highest", |(_, one)| Cell::decimal_rate(one.highest_bytes_per_s))
            .part(Part::First)
            .figures("of link", |(_, one)| one.link_percent.map(|part| Cell::percent(part, 1)))
            .if_any()
            .part(Part::First)
            .figures("sent again", |(_, one)| one.sent_again())
            .part(Part::Second)
            .figures("client s/GB", move |(_, one)| cost(one.client_cpu_s_per_gb))
            .part(Part::Second)
            .figures("server s/GB", move |(_, one)| cost(one.server_cpu_s_per_gb))
            .part(Part::Second);
        page.begin("", "").table(table.table("rates", self.directions()));
        let last = page.begin("", "");
        for (name, rate) in self.directions() {
            let way = if name == "read" { "server to client" } else { "client to server" };
            last.paragraph(format!(
                "{name} ({way}): {} bytes sent, those of the ramp too, as many received; the rates \
                 are of {} intervals after it.",
                rate.sent_bytes,
                rate.intervals_bytes_per_s.len()
            ));
        }
        last.paragraph(
            "s/GB: processor seconds for 10^9 bytes; rates are in units of 10^9, as links'.",
        );
        let notes = self.notes.iter().map(|note| Item::new("note", note.as_str()));
        last.list(List::new(Layout::labels(0), notes));
        last.paragraph(
            "From memory to memory: no storage and no GPU took part. RDMA is not measured.",
        );
        page
    }

    /// A section of a file for `--spec`.
    ///
    /// # Errors
    /// Where no port can have these figures.
    pub(super) fn spec(&self) -> Result<String, Failure> {
        let interface = self.client.interface.as_deref().filter(|name| *name != "lo");
        let interface = interface.ok_or_else(|| {
            Failure::Ran(
                "--format spec: the bytes passed no port of this machine, so there are no figures \
                 of one; measure from another machine"
                    .to_owned(),
            )
        })?;
        let mut out =
            format!("# gpuio network {}, {}\n[port {interface}]\n", self.server, self.time);
        for (name, rate) in self.directions() {
            if rate.bytes_per_s < 1.0 {
                return Err(Failure::Ran(format!(
                    "--format spec: {name}: the median of the intervals is 0, which is no figure \
                     of a port; measure again, with idle processors at both ends"
                )));
            }
            let _ = writeln!(out, "{name} = {:.0}B/s", rate.bytes_per_s);
        }
        let _ = writeln!(out, "source = {}", self.by());
        Ok(out)
    }
}

fn port_text(port: &Port) -> String {
    let interface = port.interface.as_deref().unwrap_or("an interface that is not known");
    let mut out = format!("{} by {interface}", port.address);
    if !port.pci.is_empty() {
        let _ = write!(out, " ({})", port.pci.join(", "));
    }
    match port.megabits {
        Some(megabits) if megabits % 1000 == 0 => {
            let _ = write!(out, ", {} Gb/s", megabits / 1000);
        }
        Some(megabits) => {
            let _ = write!(out, ", {megabits} Mb/s");
        }
        None => out.push_str(", speed not known"),
    }
    if let Some(mtu) = port.mtu_bytes {
        let _ = write!(out, ", MTU {mtu}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bytes: &[u64]) -> Result<Rate, String> {
        let samples: Vec<_> =
            (1..).map(|nth| nth * 50_000_000).zip(bytes.iter().copied()).collect();
        let sent = bytes.last().copied().unwrap_or(700);
        let end = Counted { bytes: sent, samples, ..Counted::default() };
        Rate::of(Direction::Read, &end, &Counted { bytes: sent, ..Counted::default() }, None)
    }

    #[test]
    fn intervals_without_bytes_are_a_result_and_no_intervals_are_none() {
        assert!(rate(&[0, 0, 0, 500, 500]).is_ok_and(|rate| rate.bytes_per_s == 0.0));
        assert!(rate(&[0, 500, 1000]).is_ok_and(|rate| rate.bytes_per_s == 10_000.0));
        for none in [&[500, 500, 500][..], &[500], &[]] {
            let why = rate(none).expect_err("nothing was measured");
            assert!(why.contains("no interval") && why.contains("00 bytes in all"), "{why}");
        }
    }
}
