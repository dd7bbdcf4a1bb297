//! Network interfaces: `/proc/net/dev`. Bytes that RDMA moves are in the ports' counters.

use crate::metric::{Change, Figure, Form, Kind, Metric};
use crate::probe::{Eye, Probe, Reading};

const fn metric(key: &'static str, unit: &'static str, help: &'static str) -> Metric {
    Metric { key, unit, scale: (1, 1), kind: Kind::Counter64, help }
}

const METRICS: [Metric; 8] = [
    metric("received_bytes", "bytes", "Bytes received"),
    metric("received_packets", "", "Packets received"),
    metric("receive_errors", "", "Packets that came broken"),
    metric("receive_dropped", "", "Packets that came and were dropped"),
    metric("sent_bytes", "bytes", "Bytes sent"),
    metric("sent_packets", "", "Packets sent"),
    metric("send_errors", "", "Packets that could not be sent"),
    metric("send_dropped", "", "Packets dropped before they were sent"),
];

const fn figure(
    key: &'static str,
    heading: &'static str,
    form: Form,
    of: fn(&Change) -> Option<f64>,
) -> Figure {
    Figure { key, heading, form, narrow: true, of }
}

const FIGURES: [Figure; 6] = [
    figure("received_bytes_per_second", "rx MiB/s", Form::Mebibytes, |c| c.rate("received_bytes")),
    figure("sent_bytes_per_second", "tx MiB/s", Form::Mebibytes, |c| c.rate("sent_bytes")),
    figure("received_packets_per_second", "rx pkt/s", Form::Number, |c| c.rate("received_packets")),
    figure("sent_packets_per_second", "tx pkt/s", Form::Number, |c| c.rate("sent_packets")),
    figure("errors", "errors", Form::Number, |c| {
        Some(c.of("receive_errors")? + c.of("send_errors")?)
    }),
    figure("dropped", "dropped", Form::Number, |c| {
        Some(c.of("receive_dropped")? + c.of("send_dropped")?)
    }),
];

pub(super) const PROBE: Probe = Probe {
    name: "interface",
    title: "Network interfaces",
    source: "/proc/net/dev",
    metrics: &METRICS,
    figures: &FIGURES,
    most: usize::MAX,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let all = gpuio_host::interface_io::samples(&eye.root).map_err(|error| error.to_string())?;
    let reading = |one: gpuio_host::interface_io::InterfaceSample| {
        let values = [
            one.received_bytes,
            one.received_packets,
            one.receive_errors,
            one.receive_dropped,
            one.sent_bytes,
            one.sent_packets,
            one.send_errors,
            one.send_dropped,
        ];
        Reading::new(one.name, values.map(Some).to_vec())
    };
    Ok(all.into_iter().map(reading).collect())
}
