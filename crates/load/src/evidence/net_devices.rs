//! Where bytes to and from an NFS server pass.

use std::net::IpAddr;

use gpuio_host::Root;
use gpuio_host::net::{self, NetSample, Port};
use gpuio_host::rdma_io::{UNIT_BYTES, known_units};
use gpuio_record::facts::{MountFacts, TargetStorage};
use gpuio_watch::Counters;

/// Where bytes to and from a server pass, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetDevice {
    Interface(String),
    /// A port that does RDMA, whose bytes no interface counts.
    Port(Port),
}

impl NetDevice {
    pub(crate) fn name(&self) -> String {
        match self {
            NetDevice::Interface(name) => name.clone(),
            NetDevice::Port(port) => format!("{}/{}", port.device, port.port),
        }
    }

    /// Probe and name for `gpuio-watch`.
    pub(crate) fn probe_and_name(&self) -> (&'static str, String) {
        let probe = match self {
            NetDevice::Interface(_) => "interface",
            NetDevice::Port(_) => "rdma",
        };
        (probe, self.name())
    }

    /// Its counts; `None` where it is gone or a counter stands at the end of its 32 bits.
    pub(crate) fn sample(&self, counters: &Counters) -> Option<NetSample> {
        match self {
            NetDevice::Interface(name) => {
                let found = counters.interfaces.iter().find(|one| one.name == *name)?;
                Some(NetSample { received: found.received_bytes, sent: found.sent_bytes })
            }
            NetDevice::Port(port) => {
                let number = port.port.to_string();
                let is = |one: &&gpuio_host::rdma_io::PortSample| {
                    one.device == port.device && one.port == number
                };
                let found = counters.ports.iter().find(is)?;
                let bytes = |units| {
                    known_units(units).map(|units: u64| units.saturating_mul(UNIT_BYTES.into()))
                };
                let (received, sent) = (bytes(found.received_units), bytes(found.sent_units));
                Some(NetSample { received: received?, sent: sent? })
            }
        }
    }
}

/// Where bytes to and from a job's files pass; a reason where they are on no NFS server that can
/// be located.
pub(crate) fn devices(root: &Root, storages: &[TargetStorage]) -> Result<Vec<NetDevice>, String> {
    let mut found = Vec::new();
    for storage in storages {
        let mount = storage.mount.as_ref();
        let mount = mount.filter(|mount| matches!(mount.fs_type.as_str(), "nfs" | "nfs4"));
        for device in devices_of(root, mount.ok_or("the files are not on NFS")?)? {
            if !found.contains(&device) {
                found.push(device);
            }
        }
    }
    if found.is_empty() { Err("the job has no files".to_owned()) } else { Ok(found) }
}

/// Where a mount's bytes pass: by the server's address among its options, and the routes.
pub(crate) fn devices_of(root: &Root, mount: &MountFacts) -> Result<Vec<NetDevice>, String> {
    let option = |key: &str| {
        let mut all = mount.super_options.iter().filter_map(|option| option.split_once('='));
        all.find_map(|(name, value)| (name == key).then_some(value))
    };
    let server = option("addr").ok_or("the mount does not name its server's address")?;
    // A link-local address has its interface behind it.
    let (bare, zone) = match server.split_once('%') {
        Some((bare, zone)) => (bare, Some(zone)),
        None => (server, None),
    };
    let address: IpAddr =
        bare.parse().map_err(|_| format!("{server} is no address of a server"))?;
    let leads = match zone {
        Some(zone) => Some(zone.to_owned()),
        None => net::interface_to(root, address).map_err(|error| error.to_string())?,
    };
    let interface = leads.ok_or_else(|| format!("no route leads to the server {server}"))?;
    if !option("proto").is_some_and(|proto| proto.starts_with("rdma")) {
        return Ok(vec![NetDevice::Interface(interface)]);
    }
    let ports = net::rdma_ports(root, &interface).map_err(|error| error.to_string())?;
    if ports.is_empty() {
        return Err(format!("NFS over RDMA, and {interface} shows no port that counts it"));
    }
    Ok(ports.into_iter().map(NetDevice::Port).collect())
}
