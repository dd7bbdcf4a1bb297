//! The load of a stream on each part, without its machine.
//!
//! A portion is some KiB of text, so each rank of a run sends its own to rank 0, which knows no
//! other machine. Put together by [`crate::flow::of_hosts`], portions make the network of all
//! hosts.

use gpuio_record::Towards;
use gpuio_record::facts::Machine;
use serde::{Deserialize, Serialize};

use crate::flow::expectation::Laid;
use crate::flow::machine::{Request, lay_requests};
use crate::flow::processors::Processors;
use crate::flow::{Figures, Flow, Network, Stream, Use};

/// Keys of parts that belong to no host begin with one of these.
pub(crate) const SERVER: &str = "server";
pub(crate) const NETWORK: &str = "network:";
/// How the key of a server begins that is one host's own.
const OWN: &str = "own ";
/// How the keys of ports of this host, and of servers' ports, begin.
pub(crate) const PORT: &str = "port:";
pub(crate) const SERVER_PORTS: &str = "server-ports:";

/// Whether the part with this key is a port or the network between hosts and servers.
pub(crate) fn is_of_network(key: &str) -> bool {
    let key = key.rsplit('\0').next().unwrap_or(key);
    let key = key.strip_prefix(OWN).unwrap_or(key);
    [NETWORK, PORT, SERVER_PORTS].iter().any(|start| key.starts_with(start))
}

/// The load of one stream on the parts on its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Portion {
    /// The stream's name: of a job, the job's.
    pub name: String,
    /// Streams of one group run at the same time.
    pub group: u32,
    /// Reads, writes or both, with their shares of its bytes.
    pub(crate) directions: Vec<(Towards, f64)>,
    /// Why no figures can describe it.
    pub(crate) beyond: Option<String>,
    pub(crate) block_bytes: u64,
    pub(crate) in_flight: Option<u64>,
    pub(crate) parts: Vec<Taken>,
    pub(crate) own_limit: Option<(f64, String)>,
    pub(crate) access_ns: Option<Result<f64, String>>,
    pub(crate) missing: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) processors: Processors,
}

/// The load on one part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Taken {
    key: String,
    name: String,
    busy_s_per_byte: f64,
    figure: String,
}

/// The load of each stream on the parts of this machine, for an answer over several hosts.
pub fn portions_of_streams(
    machine: &Machine,
    figures: &Figures,
    streams: &[Stream],
) -> Vec<Portion> {
    let portion = |stream: &Stream| {
        let portion = Portion::of(machine, figures, Request::One(stream.clone()));
        Portion { directions: vec![(stream.towards, 1.0)], ..portion }
    };
    streams.iter().map(portion).collect()
}

impl Portion {
    /// The portion of a request; the caller sets group and directions.
    pub(crate) fn of(machine: &Machine, figures: &Figures, request: Request) -> Portion {
        let (network, mut laid, processors) = lay_requests(machine, figures, &[request]);
        let laid = laid.pop().unwrap_or_default();
        let taken = laid.flow.uses.into_iter().map(|one| Taken {
            key: network.key(one.part).to_owned(),
            name: network.get(one.part).name.clone(),
            busy_s_per_byte: one.busy_s_per_byte,
            figure: one.figure,
        });
        Portion {
            name: laid.name,
            group: 0,
            directions: Vec::new(),
            beyond: None,
            block_bytes: laid.block_bytes,
            in_flight: laid.in_flight,
            parts: taken.collect(),
            own_limit: laid.flow.own_limit,
            access_ns: laid.access_ns,
            missing: laid.missing,
            notes: laid.notes,
            processors,
        }
    }

    /// The portion of a job that no figures can describe.
    pub(crate) fn beyond(
        name: &str,
        group: u32,
        directions: Vec<(Towards, f64)>,
        why: String,
    ) -> Portion {
        Portion {
            name: name.to_owned(),
            group,
            directions,
            beyond: Some(why),
            block_bytes: 0,
            in_flight: None,
            parts: Vec::new(),
            own_limit: None,
            access_ns: None,
            missing: Vec::new(),
            notes: Vec::new(),
            processors: Processors::Counted,
        }
    }

    /// The same where names and addresses of servers mean nothing to other hosts: a server with a
    /// name is the host's own. Figures of all servers together stay those of all.
    #[must_use]
    pub fn with_own_servers(mut self) -> Portion {
        for one in &mut self.parts {
            let together = one.key.split(':').nth(1) == Some("*");
            if one.key.starts_with(SERVER) && !together {
                one.key.insert_str(0, OWN);
            }
        }
        self
    }

    /// Lays it through the network of all hosts. Parts are its host's own, but for servers and the
    /// network, which all hosts share.
    pub(crate) fn lay(&self, host: &str, network: &mut Network) -> Laid {
        let uses = self.parts.iter().map(|one| {
            let key = match is_shared(&one.key) {
                true => one.key.clone(),
                false => format!("{host}\0{}", one.key),
            };
            let part = network.part(&key, &one.name);
            Use { part, busy_s_per_byte: one.busy_s_per_byte, figure: one.figure.clone() }
        });
        Laid {
            name: self.name.clone(),
            block_bytes: self.block_bytes,
            in_flight: self.in_flight,
            flow: Flow { uses: uses.collect(), own_limit: self.own_limit.clone() },
            access_ns: self.access_ns.clone(),
            missing: self.missing.clone(),
            notes: self.notes.clone(),
        }
    }
}

/// Whether a part is no host's own.
pub(crate) fn is_shared(key: &str) -> bool {
    key.starts_with(SERVER) || key.starts_with(NETWORK)
}
