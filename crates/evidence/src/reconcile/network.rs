//! The network card against the bytes of NFS mounts over it.

use gpuio_record::WarningKind;

use super::counted::Link;
use super::{FLOWS, Flow, GroupContext, NOISE_BYTES, float, whole};

/// Headers of Ethernet, IP, TCP and RPC are 4 to 7 % of full packets (66 of 1514 bytes at an MTU
/// of 1500), and a little is sent again: up to a fifth over is no finding. Below nine tenths, bytes
/// came by another path.
pub(super) fn find(seen: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let links = seen.counted.links.iter();
    links.flat_map(|link| FLOWS.map(|flow| off(seen, link, flow))).flatten().collect()
}

fn off(seen: &GroupContext<'_>, link: &Link, flow: Flow) -> Option<(Option<usize>, WarningKind)> {
    let (bytes, counted) = match flow {
        Flow::Read => (link.nfs_read_bytes, link.received_bytes),
        Flow::Write => (link.nfs_written_bytes, link.sent_bytes),
    };
    let slack = float(NOISE_BYTES);
    let fits = counted >= bytes * 0.9 - slack && counted <= bytes * 1.2 + slack;
    // A direction in which nothing was requested is the other's acknowledgements.
    if fits || bytes < slack || seen.counted.seconds <= 0.0 {
        return None;
    }
    let kind = WarningKind::LinkDisagrees {
        link: link.name.clone(),
        direction: flow.name().to_owned(),
        bytes_per_s: whole(bytes / seen.counted.seconds),
        counted_bytes_per_s: whole(counted / seen.counted.seconds),
    };
    Some((None, kind))
}
