//! Plans of several hosts as one: who mounts what, which card for which GPU, and the job file for
//! all ranks.
//!
//! Each host is paired by itself ([`crate::pair::pair()`]); here the plans are put side by side. A
//! rank is planned for each pair, in the order of the pairs: rank 0 of a host takes its first one.

mod job;
mod text;

use gpuio_record::Expected;
use gpuio_record::facts::Machine;
use serde::Serialize;

pub use job::{JobFileRefusal, hosts_job_file};
pub use text::document as hosts_document;

use crate::pair::{Given, Load, Pair, Pairing};

/// Version of [`HostsPlan`]'s JSON.
const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostsPlan {
    /// Version of this form.
    pub gpuio_plan_hosts: u32,
    pub load: Load,
    /// The hosts, in their order.
    pub hosts: Vec<HostPlan>,
    /// The expected rate of all together while all run; `null` until it was computed.
    pub total: Option<Expected>,
    /// Notes about all, as sentences.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostPlan {
    pub host: String,
    /// Network mounts that its pairs use.
    pub mounts: Vec<Mounted>,
    /// Its pairs, and what each and the host should reach while all hosts run.
    pub plan: Pairing,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Mounted {
    /// The source of the mount: the server's name or address, and its export.
    pub source: String,
    pub mount_point: String,
    /// The network card that leads to the server; `null` where it is not known.
    pub nic: Option<String>,
    /// Local ranks that use it.
    pub ranks: Vec<u32>,
}

impl HostsPlan {
    /// From the pairing of each host, which has the same load on all.
    pub fn of(hosts: Vec<(String, &Machine, Pairing)>) -> HostsPlan {
        let load = hosts.first().map(|(.., plan)| plan.load).unwrap_or_default();
        let host = |(host, machine, plan): (String, &Machine, Pairing)| {
            let mounts = mounts(machine, &plan);
            HostPlan { host, mounts, plan }
        };
        HostsPlan {
            gpuio_plan_hosts: SCHEMA,
            load,
            hosts: hosts.into_iter().map(host).collect(),
            total: None,
            notes: Vec::new(),
        }
    }

    pub fn ranks(&self) -> usize {
        self.hosts.iter().map(|host| ranks(&host.plan).count()).sum()
    }
}

/// A host's pairs that have storage, with the local rank of each.
fn ranks(plan: &Pairing) -> impl Iterator<Item = (u32, &Pair)> {
    (0..).zip(plan.pairs.iter().filter(|pair| !pair.stores.is_empty()))
}

fn mounts(machine: &Machine, plan: &Pairing) -> Vec<Mounted> {
    let mut all: Vec<Mounted> = Vec::new();
    for (rank, pair) in ranks(plan) {
        for given in &pair.stores {
            let Some(source) = source(machine, given) else { continue };
            match all.iter_mut().find(|known| known.mount_point == given.name) {
                Some(known) => known.ranks.push(rank),
                None => all.push(Mounted {
                    source,
                    mount_point: given.name.clone(),
                    nic: given.nic.clone(),
                    ranks: vec![rank],
                }),
            }
        }
    }
    all
}

/// The source of a network mount.
fn source(machine: &Machine, given: &Given) -> Option<String> {
    let is_network = given.kind == crate::pair::StoreKind::NetworkMount;
    let mounted = machine.mounts.iter().rev().find(|one| one.mount.mount_point == given.name)?;
    is_network.then(|| mounted.mount.source.clone())
}
