//! The bytes on ports of RDMA devices: `/sys/class/infiniband/*/ports/*/counters`
//! (Documentation/ABI/stable/sysfs-class-infiniband). RDMA goes past the network stack, so the
//! interfaces' counters do not have it.

use crate::{HostError, Root};

/// Octets per unit of `port_rcv_data` and `port_xmit_data`, which count in units of 4.
pub const UNIT_BYTES: u32 = 4;

/// Counters of one port since they were last set to 0. `None` where the driver has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortSample {
    /// Device (`mlx5_0`).
    pub device: String,
    /// Port, from 1.
    pub port: String,
    /// Data received, in units of 4 bytes (`port_rcv_data`).
    pub received_units: Option<u64>,
    /// Data sent, in units of 4 bytes (`port_xmit_data`).
    pub sent_units: Option<u64>,
    /// Packets received (`port_rcv_packets`).
    pub received_packets: Option<u64>,
    /// Packets sent (`port_xmit_packets`).
    pub sent_packets: Option<u64>,
    /// Packets that came broken (`port_rcv_errors`); stays at its most, 65535.
    pub receive_errors: Option<u64>,
    /// Packets that were not sent (`port_xmit_discards`); stays at its most, 65535.
    pub send_discards: Option<u64>,
    /// Moments in which the port had data and could not send (`port_xmit_wait`), in the device's
    /// own ticks.
    pub send_waits: Option<u64>,
}

/// Units of data where they are known: counters of 32 bits, of cards without the extended ones,
/// stay at their most, and what is counted beyond it is unknown.
pub fn known_units(units: Option<u64>) -> Option<u64> {
    units.filter(|units| *units != u64::from(u32::MAX))
}

/// Samples all ports, by device and port; none where the machine has no RDMA device.
///
/// # Errors
/// [`HostError`] when a counter cannot be read or is no number.
pub fn samples(root: &Root) -> Result<Vec<PortSample>, HostError> {
    let mut found = Vec::new();
    for device in root.list("sys/class/infiniband")? {
        for port in root.list(format!("sys/class/infiniband/{device}/ports"))? {
            let dir = format!("sys/class/infiniband/{device}/ports/{port}/counters");
            let count = |name: &str| root.number(format!("{dir}/{name}"));
            found.push(PortSample {
                received_units: count("port_rcv_data")?,
                sent_units: count("port_xmit_data")?,
                received_packets: count("port_rcv_packets")?,
                sent_packets: count("port_xmit_packets")?,
                receive_errors: count("port_rcv_errors")?,
                send_discards: count("port_xmit_discards")?,
                send_waits: count("port_xmit_wait")?,
                device: device.clone(),
                port,
            });
        }
    }
    Ok(found)
}
