//! Network interfaces: `/proc/net/dev`. Bytes that RDMA moves are in the ports' counters.

use crate::metric::{self, Figure, Form, Metric, bytes, count, figure};
use crate::probe::{Eye, Probe, Reading, both};

const METRICS: [Metric; 8] = [
    bytes("received_bytes", "Bytes received"),
    count("received_packets", "Packets received"),
    count("receive_errors", "Packets that came broken"),
    count("receive_dropped", "Packets that came and were dropped"),
    bytes("sent_bytes", "Bytes sent"),
    count("sent_packets", "Packets sent"),
    count("send_errors", "Packets that could not be sent"),
    count("send_dropped", "Packets dropped before they were sent"),
];

const FIGURES: [Figure; 6] = [
    metric::RECEIVED_BYTES,
    metric::SENT_BYTES,
    metric::RECEIVED_PACKETS,
    metric::SENT_PACKETS,
    figure("errors", "errors", Form::Number, true, |c| {
        Some(c.of("receive_errors")? + c.of("send_errors")?)
    }),
    figure("dropped", "dropped", Form::Number, true, |c| {
        Some(c.of("receive_dropped")? + c.of("send_dropped")?)
    }),
];

pub(super) const PROBE: Probe = Probe {
    name: "interface",
    title: "Network interfaces",
    source: "/proc/net/dev",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: both(metric::carried),
    most: usize::MAX,
    rank: None,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let all = gpuio_host::interface_io::samples(&eye.root).map_err(|error| error.to_string())?;
    eye.counters.interfaces.clone_from(&all);
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
