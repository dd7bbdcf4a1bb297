//! Bytes at the network interface behind an NFS mount.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gpuio_host::Root;
use gpuio_host::net::{self, NetSample, Port};
use gpuio_record::JobPlan;
use gpuio_record::facts::MountFacts;

use super::mounts;
use super::verdict::{Flow, Observed};
use super::{EvidenceSource, EvidenceSourceEntry, Observation, Share, Subject, size};

pub(super) const ENTRY: EvidenceSourceEntry = EvidenceSourceEntry {
    name: "nic",
    source: "/sys/class/net/*/statistics or /sys/class/infiniband/*/ports/*/counters, all \
             processes together",
    first: |context| {
        let (root, jobs) = (context.root, context.jobs);
        let doors: Vec<Result<Vec<Door>, String>> =
            jobs.iter().map(|job| doors(root, job)).collect();
        let before = read(root, doors.iter().flatten().flatten());
        Box::new(Nic { doors, before, after: Samples::new() })
    },
};

/// Where bytes to and from a server pass, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Door {
    /// An interface.
    Interface(String),
    /// A port that does RDMA, whose bytes no interface counts.
    Port(Port),
}

impl Door {
    fn name(&self) -> String {
        match self {
            Door::Interface(name) => name.clone(),
            Door::Port(port) => format!("{}/{}", port.device, port.port),
        }
    }
}

type Samples = BTreeMap<String, Option<NetSample>>;

struct Nic {
    /// Per job; a reason where its files are on no NFS server that can be located.
    doors: Vec<Result<Vec<Door>, String>>,
    before: Samples,
    after: Samples,
}

fn read<'a>(root: &Root, doors: impl Iterator<Item = &'a Door>) -> Samples {
    let of = |door: &Door| match door {
        Door::Interface(name) => net::interface(root, name).ok().flatten(),
        Door::Port(port) => net::port(root, port).ok().flatten(),
    };
    doors.map(|door| (door.name(), of(door))).collect()
}

fn doors(root: &Root, job: &JobPlan) -> Result<Vec<Door>, String> {
    let mut found = Vec::new();
    for storage in mounts::storages(root, job) {
        let mount = storage.mount.filter(|mount| matches!(mount.fs_type.as_str(), "nfs" | "nfs4"));
        let mount = mount.ok_or("the files are not on NFS")?;
        for door in behind(root, &mount)? {
            if !found.contains(&door) {
                found.push(door);
            }
        }
    }
    if found.is_empty() { Err("the job has no files".to_owned()) } else { Ok(found) }
}

/// Where a mount's bytes pass: by the server's address among its options, and the routes.
fn behind(root: &Root, mount: &MountFacts) -> Result<Vec<Door>, String> {
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
        return Ok(vec![Door::Interface(interface)]);
    }
    let ports = net::rdma_ports(root, &interface).map_err(|error| error.to_string())?;
    if ports.is_empty() {
        return Err(format!("NFS over RDMA, and {interface} shows no port that counts it"));
    }
    Ok(ports.into_iter().map(Door::Port).collect())
}

fn count(sample: &NetSample, flow: Flow) -> u64 {
    if flow == Flow::Read { sample.received } else { sample.sent }
}

impl Nic {
    fn moved(&self, doors: &[Door], flow: Flow) -> Option<u64> {
        let of = |door: &Door| {
            let name = door.name();
            let before = self.before.get(&name)?.as_ref()?;
            let moved = before.delta(self.after.get(&name)?.as_ref()?)?;
            Some(count(&moved, flow))
        };
        doors.iter().map(of).sum()
    }

    fn reading(samples: &Samples, doors: &[Door], flow: Flow) -> Option<String> {
        let of = |door: &Door| Some(count(samples.get(&door.name())?.as_ref()?, flow));
        let bytes: u64 = doors.iter().map(of).sum::<Option<u64>>()?;
        let what = if flow == Flow::Read { "received" } else { "sent" };
        Some(format!("{what} {bytes} ({})", names(doors)))
    }
}

fn names(doors: &[Door]) -> String {
    doors.iter().map(Door::name).collect::<Vec<String>>().join("+")
}

/// All bytes at the interface are a word; fewer are none, since another interface may have had the
/// rest (pNFS, a server with several addresses), and more are headers and others' traffic.
fn interpret(share: Option<Share>) -> Observed {
    match share {
        Some(Share::All) => Observed::Storage(Share::All),
        _ => Observed::Nothing,
    }
}

impl EvidenceSource for Nic {
    fn again(&mut self, root: &Root) {
        self.after = read(root, self.doors.iter().flatten().flatten());
    }

    fn observe(&self, subject: &Subject<'_>) -> Observation {
        let doors = match &self.doors[subject.at] {
            Ok(doors) => doors,
            Err(why) => return Observation::none(why),
        };
        let Some(moved) = self.moved(doors, subject.flow) else {
            return Observation::none(format!("{}: counts gone, reset or wrapped", names(doors)));
        };
        let covers = |at: usize| {
            let other = self.doors[at].as_ref();
            other.is_ok_and(|other| other.iter().any(|door| doors.contains(door)))
        };
        let (of, share) = subject.share(moved, covers);
        let observed = interpret(share);
        let mut why = format!("{} carried {}, gpuio {}", names(doors), size(moved), size(of));
        why.push_str(match (observed, moved > of) {
            (Observed::Storage(_), _) => "; what the server's own cache did is not seen",
            (_, true) => "; what is over is headers or others' traffic",
            (_, false) => "; other interfaces may lead to the server too",
        });
        Observation {
            before: Nic::reading(&self.before, doors, subject.flow),
            after: Nic::reading(&self.after, doors, subject.flow),
            moved: Some(moved),
            of: Some(of),
            observed,
            why,
        }
    }
}

#[cfg(test)]
#[path = "nic_test.rs"]
mod test;
