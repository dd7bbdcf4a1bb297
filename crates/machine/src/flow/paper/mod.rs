//! Systems on paper: a box or a cluster by its description, without a machine.
//!
//! A description is a file of sections, each a tier of equal units that all bytes of a job pass,
//! evenly spread: `[clients]`, `[switch]`, `[nodes]` (storage nodes or servers), `[drives]`,
//! `[link]`. `[drive MODEL]` gives figures of a model, `[job]` a load. See docs/plan.md.

mod lay;
mod read;
mod text;

use gpuio_record::{Expected, Towards};
use serde::Serialize;

use crate::flow::expectation::expectation;
use crate::flow::processors::Processors;
use crate::flow::{Figures, FileError, Network, Pattern};

pub use lay::Port;
pub use text::document;

#[derive(Debug, Clone, PartialEq)]
pub struct System {
    pub(crate) tiers: Vec<Tier>,
    pub(crate) jobs: Vec<Job>,
    /// Numbers of storage nodes to make a table of.
    pub(crate) counts: Vec<u64>,
    /// Numbers of clients, for each number of storage nodes.
    pub(crate) client_counts: Vec<u64>,
    pub(crate) figures: Figures,
}

/// A tier of equal units.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tier {
    pub(crate) name: String,
    pub(crate) count: Count,
    pub(crate) kind: Kind,
}

/// How many units a tier has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Fixed(u64),
    /// As many for each storage node.
    PerNode(u64),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Clients(Clients),
    Switch(Switch),
    Nodes(Nodes),
    Drives(Drives),
    Link(Port),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Clients {
    pub(crate) ports: Option<(u64, Port)>,
    /// PCIe above each port's card.
    pub(crate) nic_link: Option<Port>,
    pub(crate) gpus: Option<(u64, Option<Port>)>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Switch {
    /// Bytes per second in one direction through one of them.
    pub(crate) rate: Option<f64>,
    pub(crate) uplinks: Option<(u64, Port)>,
    /// Rate of the clients' ports over that of the uplink.
    pub(crate) oversubscription: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Nodes {
    pub(crate) ports: Option<(u64, Port)>,
    pub(crate) read: Option<f64>,
    pub(crate) write: Option<f64>,
    pub(crate) read_iops: Option<f64>,
    pub(crate) write_iops: Option<f64>,
    pub(crate) latency_ns: Option<f64>,
    pub(crate) drives: Option<Drives>,
    pub(crate) source: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Drives {
    /// Drives of one unit.
    pub(crate) each: u64,
    pub(crate) model: String,
    pub(crate) level: Option<crate::flow::Level>,
    pub(crate) chunk_bytes: Option<u64>,
}

/// A load on a described system.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) towards: Towards,
    pub(crate) pattern: Pattern,
    pub(crate) block_bytes: u64,
    pub(crate) in_flight: Option<u64>,
    pub(crate) rate: Option<f64>,
    /// Tiers on its path by name; empty for all.
    pub(crate) through: Vec<String>,
}

/// The expected rates of a described system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The jobs, as they run at the same time.
    pub jobs: Vec<JobAnswer>,
    /// All jobs together.
    pub total: Expected,
    /// The same for other numbers of storage nodes, of clients, or of both; empty where none was
    /// requested.
    pub scale: Vec<Scaled>,
}

/// One job's part in the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobAnswer {
    pub name: String,
    /// The job, in words.
    pub what: String,
    /// The expected rate.
    pub expected: Expected,
    /// Tiers on its path, in the order of the file.
    pub tiers: Vec<TierAnswer>,
}

/// The effect of a tier on a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierAnswer {
    /// The tier's name and what in it is counted.
    pub name: String,
    pub units: u64,
    /// Bytes per second that it would allow this job alone.
    pub allows_bytes_per_s: f64,
    /// Share of it that this job takes at its expected or highest rate, 0 to 1.
    pub used: f64,
    /// Its figure and where that is from.
    pub figure: String,
}

/// The whole at other numbers of storage nodes and clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scaled {
    /// Clients; `null` where no numbers of them were requested.
    pub clients: Option<u64>,
    pub nodes: u64,
    /// All jobs together.
    pub total: Expected,
}

impl System {
    /// Reads a description. `file` is the name that errors and sources print; `figures` are known
    /// in addition to those in the file.
    ///
    /// # Errors
    ///
    /// The first thing that can't be read or makes no sense, with line and column.
    pub fn read(file: &str, text: &str, figures: Figures) -> Result<System, FileError> {
        read::system(file, text, figures)
    }

    /// The expected rates.
    pub fn answer(&self) -> Answer {
        let nodes = self.nodes();
        let (jobs, total) = self.at(nodes);
        Answer { jobs, total, scale: self.scale(nodes) }
    }

    /// Every number of clients with every number of nodes.
    fn scale(&self, described: u64) -> Vec<Scaled> {
        if self.counts.is_empty() && self.client_counts.is_empty() {
            return Vec::new();
        }
        let nodes = if self.counts.is_empty() { vec![described] } else { self.counts.clone() };
        let at = |clients: Option<u64>, system: &System| -> Vec<Scaled> {
            let one = |nodes: &u64| Scaled { clients, nodes: *nodes, total: system.at(*nodes).1 };
            nodes.iter().map(one).collect()
        };
        if self.client_counts.is_empty() {
            return at(None, self);
        }
        let each = self.client_counts.iter().map(|clients| {
            let mut system = self.clone();
            let tiers = system.tiers.iter_mut();
            let of_clients = tiers.filter(|tier| matches!(tier.kind, Kind::Clients(_)));
            of_clients.for_each(|tier| tier.count = Count::Fixed(*clients));
            at(Some(*clients), &system)
        });
        each.flatten().collect()
    }

    /// Storage nodes as described.
    fn nodes(&self) -> u64 {
        let count = |tier: &Tier| match (&tier.kind, tier.count) {
            (Kind::Nodes(_), Count::Fixed(count)) => Some(count),
            _ => None,
        };
        self.tiers.iter().find_map(count).unwrap_or(1)
    }

    /// Machines that send requests: the clients, or one where none are described.
    fn clients(&self, nodes: u64) -> u64 {
        let count = |tier: &Tier| match (&tier.kind, tier.count) {
            (Kind::Clients(_), Count::Fixed(count)) => Some(count),
            (Kind::Clients(_), Count::PerNode(each)) => Some(each.saturating_mul(nodes)),
            _ => None,
        };
        self.tiers.iter().filter_map(count).fold(0, u64::saturating_add).max(1)
    }

    fn at(&self, nodes: u64) -> (Vec<JobAnswer>, Expected) {
        let mut network = Network::default();
        let mut all = Vec::new();
        let mut tiers = Vec::new();
        for job in &self.jobs {
            let (laid, units) = lay::lay(self, job, nodes, &mut network);
            tiers.push((laid.flow.uses.clone(), units));
            all.push(laid);
        }
        let answer = expectation(&network, all, Processors::Machines(self.clients(nodes)));
        let mut jobs = Vec::new();
        for ((job, one), (uses, units)) in self.jobs.iter().zip(answer.streams).zip(tiers) {
            let rate = one.expected.bytes_per_s.or(one.expected.at_most).unwrap_or(0.0);
            let tier = uses.into_iter().zip(units).map(|(one, units)| TierAnswer {
                name: network.get(one.part).name.clone(),
                units,
                allows_bytes_per_s: 1.0 / one.busy_s_per_byte,
                used: rate * one.busy_s_per_byte,
                figure: one.figure,
            });
            let tiers = tier.collect();
            jobs.push(JobAnswer {
                name: one.name,
                what: job.what(),
                expected: one.expected,
                tiers,
            });
        }
        (jobs, answer.total)
    }
}

impl Job {
    fn what(&self) -> String {
        let order = match self.pattern {
            Pattern::Sequential => "sequential",
            Pattern::Random => "random",
        };
        let towards = match self.towards {
            Towards::Read => "reads",
            Towards::Write => "writes",
        };
        let size = gpuio_base::units::human_bytes(self.block_bytes as f64);
        let depth = self.in_flight.map(|depth| format!(", {depth} in flight")).unwrap_or_default();
        format!("{order} {towards} of {size}{depth}")
    }
}
