//! Bytes at the network interface behind an NFS mount.

use gpuio_host::net::NetSample;
use gpuio_watch::Counters;

use super::{JobFlow, Observation, Source, size};
use crate::evidence::group::Flow;
use crate::evidence::net_devices::NetDevice;
use crate::evidence::verdict::{Observed, Share};

pub(super) const SOURCE: Source = Source {
    name: "nic",
    source: "/proc/net/dev or /sys/class/infiniband/*/ports/*/counters, all processes together",
    observe,
};

fn count(sample: &NetSample, flow: Flow) -> u64 {
    if flow == Flow::Read { sample.received } else { sample.sent }
}

fn moved(before: &Counters, after: &Counters, devices: &[NetDevice], flow: Flow) -> Option<u64> {
    let of = |device: &NetDevice| {
        let moved = device.sample(before)?.delta(&device.sample(after)?)?;
        Some(count(&moved, flow))
    };
    devices.iter().map(of).sum()
}

fn reading(counters: &Counters, devices: &[NetDevice], flow: Flow) -> Option<String> {
    let of = |device: &NetDevice| Some(count(&device.sample(counters)?, flow));
    let bytes: u64 = devices.iter().map(of).sum::<Option<u64>>()?;
    let what = if flow == Flow::Read { "received" } else { "sent" };
    Some(format!("{what} {bytes} ({})", names(devices)))
}

fn names(devices: &[NetDevice]) -> String {
    devices.iter().map(NetDevice::name).collect::<Vec<String>>().join("+")
}

/// All bytes at the interface support storage. Fewer prove nothing, since another interface may
/// have had the rest (pNFS, a server with several addresses). More are headers and others' traffic.
fn interpret(share: Option<Share>) -> Observed {
    match share {
        Some(Share::All) => Observed::Storage(Share::All),
        _ => Observed::Nothing,
    }
}

fn observe(one: &JobFlow<'_>) -> Observation {
    let devices = match &one.layout().net_devices {
        Ok(devices) => devices,
        Err(why) => return Observation::none(why),
    };
    let (before, after) = (&one.readings.before.devices, &one.readings.after.devices);
    let Some(moved) = moved(before, after, devices, one.flow) else {
        return Observation::none(format!("{}: counts gone, reset or wrapped", names(devices)));
    };
    let covers = |at: usize| {
        let other = one.readings.layout.jobs[at].net_devices.as_ref();
        other.is_ok_and(|other| other.iter().any(|device| devices.contains(device)))
    };
    let (of, share) = one.share(moved, covers);
    let observed = interpret(share);
    let mut why = format!("{} carried {}, gpuio {}", names(devices), size(moved), size(of));
    why.push_str(match (observed, moved > of) {
        (Observed::Storage(_), _) => "; what the server's own cache did is not seen",
        (_, true) => "; what is over is headers or others' traffic",
        (_, false) => "; other interfaces may lead to the server too",
    });
    Observation {
        before: reading(before, devices, one.flow),
        after: reading(after, devices, one.flow),
        moved: Some(moved),
        of: Some(of),
        observed,
        why,
    }
}

#[cfg(test)]
mod tests;
