//! Ports of RDMA devices: `/sys/class/infiniband/*/ports/*/counters`, data in units of 4 bytes.

use gpuio_host::rdma_io::{UNIT_BYTES, known_units};

use crate::metric::{self, Figure, Form, Metric, bytes, count, figure};
use crate::probe::{Eye, Probe, Reading, both};

const fn data(key: &'static str, help: &'static str) -> Metric {
    Metric { scale: (UNIT_BYTES, 1), ..bytes(key, help) }
}

const METRICS: [Metric; 7] = [
    data("received_bytes", "Bytes received"),
    data("sent_bytes", "Bytes sent"),
    count("received_packets", "Packets received"),
    count("sent_packets", "Packets sent"),
    count("receive_errors", "Packets that came broken; stays at 65535"),
    count("send_discards", "Packets that were not sent; stays at 65535"),
    count("send_waits", "Ticks in which there was data and it could not be sent"),
];

const FIGURES: [Figure; 7] = [
    metric::RECEIVED_BYTES,
    metric::SENT_BYTES,
    metric::RECEIVED_PACKETS,
    metric::SENT_PACKETS,
    figure("receive_errors", "errors", Form::Number, true, |c| c.of("receive_errors")),
    figure("send_discards", "discards", Form::Number, false, |c| c.of("send_discards")),
    figure("send_waits_per_second", "waits/s", Form::Number, false, |c| c.rate("send_waits")),
];

pub(super) const PROBE: Probe = Probe {
    name: "rdma",
    title: "RDMA ports",
    source: "/sys/class/infiniband/*/ports/*/counters",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: both(metric::carried),
    most: usize::MAX,
    rank: None,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let ports = gpuio_host::rdma_io::samples(&eye.root).map_err(|error| error.to_string())?;
    eye.counters.ports.clone_from(&ports);
    if ports.is_empty() {
        return Err("the kernel shows no RDMA device".to_owned());
    }
    let reading = |port: gpuio_host::rdma_io::PortSample| {
        let values = vec![
            known_units(port.received_units),
            known_units(port.sent_units),
            port.received_packets,
            port.sent_packets,
            port.receive_errors,
            port.send_discards,
            port.send_waits,
        ];
        Reading::new(format!("{}/{}", port.device, port.port), values)
    };
    Ok(ports.into_iter().map(reading).collect())
}
