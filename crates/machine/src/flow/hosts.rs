//! The expected rates of streams of several hosts together.

use std::collections::{BTreeMap, BTreeSet};

use gpuio_record::{Expected, HostJobExpected, JobExpected, Record, Towards};
use serde::Serialize;

use crate::flow::expectation::{Laid, StreamExpected, filled};
use crate::flow::jobs::{hold_against, part};
use crate::flow::portion::{Portion, is_shared};
use crate::flow::processors;
use crate::flow::{Filled, Limit, Network};

/// Names of parts, and groups of parts, that a bottleneck in words has.
const NAMED: usize = 3;
/// Sentences that are kept of a sum.
const BECAUSE: usize = 32;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostPortions {
    pub host: String,
    pub portions: Vec<Portion>,
}

/// The expected rates of all streams of all hosts while all run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostsExpected {
    /// The hosts, in their order.
    pub hosts: Vec<HostExpected>,
    /// All together.
    pub total: Expected,
}

/// One host's part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostExpected {
    pub host: String,
    /// One for each stream, in their order.
    pub streams: Vec<StreamExpected>,
    /// Its streams together.
    pub total: Expected,
}

/// The expected rates of the jobs of all ranks of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RanksExpected {
    /// Each direction of each job, all ranks together.
    pub jobs: Vec<JobExpected>,
    /// Each job on each host, reads and writes together.
    pub hosts: Vec<HostJob>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HostJob {
    pub host: String,
    pub job: String,
    /// All ranks of that host together.
    pub expected: Expected,
}

/// The part that saturated for a stream: its name, its figure and its host (none for a part of all
/// hosts). A limit of the stream itself has no figure.
type Saturated = (String, String, Option<String>);

/// A stream's answer with what a sum needs of it.
struct Answered<'p> {
    host: &'p str,
    portion: &'p Portion,
    expected: Expected,
    saturated: Vec<Saturated>,
}

/// The expected rates of every stream, of every host and of all hosts together while all streams
/// run; the groups of the portions do not matter.
///
/// Parts of a host are its own. Servers (`[server]`, `--server`) and the network (`[network]`) are
/// parts of all hosts: hosts that mount the same server share it.
pub fn of_hosts(hosts: &[HostPortions]) -> HostsExpected {
    let pairs: Vec<(&str, &Portion)> = hosts
        .iter()
        .flat_map(|one| one.portions.iter().map(|portion| (one.host.as_str(), portion)))
        .collect();
    let all = answers(&pairs);
    let every: Vec<&Answered<'_>> = all.iter().collect();
    let mut rest = all.as_slice();
    let host = |one: &HostPortions| {
        let (own, more) = rest.split_at(one.portions.len());
        rest = more;
        let streams = own.iter().map(|one| StreamExpected {
            name: one.portion.name.clone(),
            expected: one.expected.clone(),
        });
        HostExpected {
            host: one.host.clone(),
            streams: streams.collect(),
            total: sum(&own.iter().collect::<Vec<_>>()),
        }
    };
    HostsExpected { hosts: hosts.iter().map(host).collect(), total: sum(&every) }
}

/// The expected rates of the jobs of all ranks, each rank with its host and its portions. Portions
/// of one group run at the same time; jobs of one name are one job.
pub fn of_ranks(ranks: &[(String, Vec<Portion>)]) -> RanksExpected {
    let mut groups: BTreeMap<u32, Vec<(&str, &Portion)>> = BTreeMap::new();
    for (host, portions) in ranks {
        for portion in portions {
            groups.entry(portion.group).or_default().push((host, portion));
        }
    }
    let mut answer = RanksExpected::default();
    for mut pairs in groups.into_values() {
        // Processors are counted for each host by itself.
        pairs.sort_by_key(|(host, _)| *host);
        let all = answers(&pairs);
        for name in each(all.iter().map(|one| one.portion.name.as_str())) {
            let of_job: Vec<&Answered<'_>> =
                all.iter().filter(|one| one.portion.name == name).collect();
            for direction in [Towards::Read, Towards::Write] {
                let (of_direction, shares): (Vec<&Answered<'_>>, Vec<f64>) = of_job
                    .iter()
                    .filter_map(|one| Some((*one, share(one.portion, direction)?)))
                    .unzip();
                let Some(share) = shares.first() else { continue };
                let expected = part(&sum(&of_direction), *share);
                let job = name.to_owned();
                answer.jobs.push(JobExpected { job, direction, expected, percent: None });
            }
            for host in each(of_job.iter().map(|one| one.host)) {
                let own: Vec<&Answered<'_>> =
                    of_job.iter().copied().filter(|one| one.host == host).collect();
                let (host, job) = (host.to_owned(), name.to_owned());
                answer.hosts.push(HostJob { host, job, expected: sum(&own) });
            }
        }
    }
    answer
}

/// Sets what the merged record of several ranks should have reached: each job on all ranks and on
/// each host, with how much of it was. `ranks` are all ranks of the run, each with its host.
pub fn set_expected(merged: &mut Record, ranks: &[(String, Vec<Portion>)]) {
    let answer = of_ranks(ranks);
    merged.expected = answer.jobs;
    hold_against(&mut merged.expected, &merged.jobs);
    let Some(all) = &mut merged.ranks else { return };
    for one in answer.hosts {
        let of_host = all.rows.iter().filter(|row| row.host == one.host);
        let rates = of_host.flat_map(|row| &row.jobs).filter(|job| job.job == one.job);
        let measured: f64 = rates.map(|job| job.bytes_per_s).sum();
        let percent = one.expected.bytes_per_s.map(|expected| measured / expected * 100.0);
        let Some(host) = all.hosts.iter_mut().find(|host| host.name == one.host) else { continue };
        host.expected.push(HostJobExpected {
            job: one.job,
            expected: one.expected,
            measured_bytes_per_s: measured,
            percent,
        });
    }
}

/// Each once, in the order in which they come.
fn each<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = BTreeSet::new();
    names.filter(|name| known.insert(*name)).collect()
}

/// The share of a portion's bytes that goes in a direction; the same on all ranks.
fn share(portion: &Portion, direction: Towards) -> Option<f64> {
    portion.directions.iter().find(|(one, _)| *one == direction).map(|(_, share)| *share)
}

fn answers<'p>(pairs: &[(&'p str, &'p Portion)]) -> Vec<Answered<'p>> {
    let mut network = Network::default();
    let counted: Vec<(&str, &Portion)> =
        pairs.iter().copied().filter(|(_, portion)| portion.beyond.is_none()).collect();
    let mut laid: Vec<Laid> =
        counted.iter().map(|(host, portion)| portion.lay(host, &mut network)).collect();
    let (mut streams, rates) = filled(&network, &mut laid);
    let mut at = 0;
    for of_host in counted.chunk_by(|a, b| a.0 == b.0) {
        let own = at..at + of_host.len();
        at = own.end;
        let processors = of_host[0].1.processors;
        processors::bound(processors, &laid[own.clone()], &mut streams[own]);
    }
    let mut known = laid.iter().zip(rates).zip(streams);
    let answer = |(host, portion): &(&'p str, &'p Portion)| {
        let unknown = |why: String| Expected { unknown: Some(why), ..Expected::default() };
        let (expected, saturated) = match &portion.beyond {
            Some(why) => (unknown(why.clone()), Vec::new()),
            None => {
                known.next().map_or((Expected::default(), Vec::new()), |((laid, rate), one)| {
                    (one.expected, saturated(&network, host, laid, &rate))
                })
            }
        };
        Answered { host, portion, expected, saturated }
    };
    pairs.iter().map(answer).collect()
}

fn saturated(network: &Network, host: &str, laid: &Laid, rate: &Filled) -> Vec<Saturated> {
    match &rate.limit {
        Limit::Nothing => Vec::new(),
        Limit::Own => {
            let why = laid.flow.own_limit.as_ref().map(|(_, why)| why.clone());
            why.into_iter().map(|why| (why, String::new(), Some(host.to_owned()))).collect()
        }
        Limit::Parts(parts) => {
            let uses = parts.iter().filter_map(|index| laid.flow.uses.get(*index));
            let words = uses.map(|one| {
                let own = !is_shared(network.key(one.part));
                let host = own.then(|| host.to_owned());
                (network.get(one.part).name.clone(), one.figure.clone(), host)
            });
            words.collect()
        }
    }
}

/// Streams together: rates are added, the least latency stands.
fn sum(all: &[&Answered<'_>]) -> Expected {
    let each = || all.iter().map(|one| &one.expected);
    let rate: Option<f64> = each().map(|one| one.bytes_per_s).sum();
    let rate = rate.filter(|_| !all.is_empty());
    let most: Option<f64> = each().map(|one| one.bytes_per_s.or(one.at_most)).sum();
    let floors: Option<Vec<f64>> = each().map(|one| one.latency_floor_ns).collect();
    let one_size = all.windows(2).all(|two| {
        let [a, b] = [two[0], two[1]].map(|one| one.portion.block_bytes);
        a == b
    });
    let mut because: Vec<String> = Vec::new();
    for line in each().flat_map(|one| &one.because) {
        if because.len() < BECAUSE && !because.contains(line) {
            because.push(line.clone());
        }
    }
    Expected {
        bytes_per_s: rate,
        iops: each()
            .map(|one| one.iops)
            .sum::<Option<f64>>()
            .filter(|_| one_size && rate.is_some()),
        bottleneck: bottleneck(all),
        at_most: most.filter(|_| rate.is_none() && !all.is_empty()),
        latency_floor_ns: floors.and_then(|all| all.into_iter().min_by(f64::total_cmp)),
        unknown: each().find_map(|one| one.unknown.clone()),
        because,
    }
}

/// The parts that saturated, those of the same figure together, each with the hosts that it is
/// of where there are several.
fn bottleneck(all: &[&Answered<'_>]) -> Option<String> {
    let several = all.iter().any(|one| one.host != all[0].host);
    let mut groups: Vec<(&str, BTreeMap<&str, BTreeSet<&str>>)> = Vec::new();
    for (name, figure, host) in all.iter().flat_map(|one| &one.saturated) {
        let at = groups.iter().position(|(known, _)| known == figure);
        let at = at.unwrap_or_else(|| {
            groups.push((figure, BTreeMap::new()));
            groups.len() - 1
        });
        groups[at].1.entry(name).or_default().extend(host.as_deref());
    }
    let named = |(name, hosts): (&&str, &BTreeSet<&str>)| match hosts.len() {
        0 => (*name).to_owned(),
        _ if !several => (*name).to_owned(),
        1 => format!("{name} of {}", hosts.iter().next().unwrap_or(&"")),
        many => format!("{name} on {many} hosts"),
    };
    let words = groups.iter().take(NAMED).map(|(figure, parts)| {
        let mut names: Vec<String> = parts.iter().take(NAMED).map(named).collect();
        if parts.len() > NAMED {
            let last = names.pop().unwrap_or_default();
            names.push(format!("{last} and {} more", parts.len() - NAMED));
        }
        let colon = if figure.is_empty() { "" } else { ": " };
        format!("{}{colon}{figure}", names.join(", "))
    });
    let mut words: Vec<String> = words.collect();
    if groups.len() > NAMED {
        words.push(format!("and {} more", groups.len() - NAMED));
    }
    (!words.is_empty()).then(|| words.join("; "))
}
