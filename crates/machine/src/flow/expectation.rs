//! The answer.

use gpuio_base::document::{grouped, unique};
use gpuio_record::Expected;
use serde::Serialize;

use crate::flow::portion::is_of_network;
use crate::flow::processors::{self, Processors};
use crate::flow::{Filled, Flow, Limit, Network, Use, fill};

/// The expected rates of every stream, and of all together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expectation {
    /// One for each stream, in their order.
    pub streams: Vec<StreamExpected>,
    /// All streams running at the same time, together.
    pub total: Expected,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamExpected {
    pub name: String,
    /// The expected rate while the others run.
    pub expected: Expected,
}

/// A stream as it was laid through the network.
#[derive(Debug, Clone, Default)]
pub(crate) struct Laid {
    pub(crate) name: String,
    pub(crate) block_bytes: u64,
    pub(crate) in_flight: Option<u64>,
    pub(crate) flow: Flow,
    /// Access times of the parts on the path, in nanoseconds; `Err` names what is missing.
    pub(crate) access_ns: Option<Result<f64, String>>,
    /// Figures that are missing, as sentences.
    pub(crate) missing: Vec<String>,
    /// Parts left out of the count or taken for granted, as sentences.
    pub(crate) notes: Vec<String>,
}

pub(crate) fn expectation(
    network: &Network,
    mut laid: Vec<Laid>,
    processors: Processors,
) -> Expectation {
    let (mut streams, filled) = filled(network, &mut laid);
    for (index, one) in streams.iter_mut().enumerate() {
        shares_with_unknown(&mut one.expected, index, &laid, &filled);
    }
    processors::bound(processors, &laid, &mut streams);
    let total = total(&laid, &streams);
    Expectation { streams, total }
}

/// The rate of each stream while all run, before processors bound it.
pub(crate) fn filled(network: &Network, laid: &mut [Laid]) -> (Vec<StreamExpected>, Vec<Filled>) {
    let floors: Vec<Option<f64>> = laid.iter().map(|one| floor(network, one)).collect();
    for (one, floor) in laid.iter_mut().zip(&floors) {
        one.bound_by_depth(*floor);
    }
    let flows: Vec<Flow> = laid.iter().map(|one| one.flow.clone()).collect();
    let filled = fill(network, &flows);
    for (one, note) in laid.iter_mut().zip(network_alone(network, &flows)) {
        note.iter().for_each(|note| one.note(note));
    }
    let streams = laid.iter().zip(filled.iter().zip(floors)).map(|(one, (filled, floor))| {
        let expected = answer(network, one, filled, floor);
        StreamExpected { name: one.name.clone(), expected }
    });
    (streams.collect(), filled)
}

/// The limits that ports and network set to each stream while all run, whatever storage delivers,
/// in words; nothing for a stream that passes none with a figure.
fn network_alone(network: &Network, flows: &[Flow]) -> Vec<Option<String>> {
    let of_network = |one: &&Use| is_of_network(network.key(one.part));
    let alone: Vec<Flow> = flows
        .iter()
        .map(|flow| Flow {
            uses: flow.uses.iter().filter(of_network).cloned().collect(),
            own_limit: None,
        })
        .collect();
    let filled = fill(network, &alone);
    let notes = alone.iter().zip(&filled).map(|(flow, filled)| {
        let Limit::Parts(full) = &filled.limit else { return None };
        let rate = gpuio_base::units::human_decimal_rate(filled.bytes_per_s);
        let parts = parts_text(network, flow, full);
        Some(format!("The network alone allows {rate}: {parts}."))
    });
    notes.collect()
}

impl Laid {
    /// Counts a part that one byte of the stream keeps busy for a time, unless it is none.
    pub(crate) fn uses(
        &mut self,
        network: &mut Network,
        (key, name): (&str, &str),
        busy_s_per_byte: f64,
        figure: String,
    ) {
        if busy_s_per_byte > 0.0 {
            let part = network.part(key, name);
            self.flow.uses.push(Use { part, busy_s_per_byte, figure });
        }
    }

    /// Reads and writes in a fixed ratio as one flow: of each byte `read_share` is read.
    pub(crate) fn mixed_with(mut self, write: Laid, read_share: f64) -> Laid {
        let scale = |uses: &mut Vec<Use>, share: f64| {
            uses.iter_mut().for_each(|one| one.busy_s_per_byte *= share);
        };
        let mut writes = write.flow.uses;
        scale(&mut self.flow.uses, read_share);
        scale(&mut writes, 1.0 - read_share);
        self.flow.uses.extend(writes);
        self.missing.extend(write.missing);
        write.notes.iter().for_each(|note| self.note(note));
        // The access times of both, and what depth allows, depend on how they follow each other.
        self.access_ns = None;
        self
    }

    /// Adds a note once.
    pub(crate) fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }

    /// Little's law: no more I/Os per second than are in flight over the time each takes.
    fn bound_by_depth(&mut self, floor: Option<f64>) {
        let Some(depth) = self.in_flight else { return };
        let Some(floor) = floor.filter(|floor| *floor > 0.0) else {
            if let Some(Err(why)) = self.access_ns.clone() {
                self.note(&format!("{}.", not_counted(depth, &why)));
            }
            return;
        };
        self.bound_by_latency(depth, floor);
    }

    /// The rate that so many I/Os in flight allow, which take so long each.
    pub(crate) fn bound_by_latency(&mut self, depth: u64, floor: f64) {
        let most = depth as f64 * self.block_bytes as f64 / (floor / 1e9);
        let lower = self.flow.own_limit.as_ref().is_none_or(|(own, _)| most < *own);
        if lower {
            let words =
                format!("{depth} in flight, each at least {}", gpuio_base::units::human_ns(floor));
            self.flow.own_limit = Some((most, words));
        }
    }
}

/// That a limit in flight is none of the figures.
pub(crate) fn not_counted(depth: u64, why: &str) -> String {
    format!("{NOT_COUNTED} {depth} I/Os in flight is not counted: {why}")
}

const NOT_COUNTED: &str = "The limit of";

/// The sentence that the limit in flight is none of the figures, where it is none: the rate is a
/// bound then.
pub fn uncounted_depth(expected: &Expected) -> Option<&str> {
    let mut lines = expected.because.iter().map(String::as_str);
    lines.find(|line| line.starts_with(NOT_COUNTED))
}

/// The least that one I/O takes: access, and its bytes at the rate that it would have alone.
fn floor(network: &Network, laid: &Laid) -> Option<f64> {
    let access = laid.access_ns.as_ref()?.as_ref().ok()?;
    let bytes_only = laid.flow.uses.iter().filter(|one| !network.get(one.part).name.ends_with(IOS));
    let alone = Flow { uses: bytes_only.cloned().collect(), own_limit: None };
    let rate = fill(network, &[alone]).first()?.bytes_per_s;
    let moving = if rate.is_finite() { laid.block_bytes as f64 / rate * 1e9 } else { 0.0 };
    Some(access + moving)
}

/// How the name of a part that counts commands ends.
pub(crate) const IOS: &str = "'s I/Os";

fn answer(network: &Network, laid: &Laid, filled: &Filled, floor: Option<f64>) -> Expected {
    let rate = Some(filled.bytes_per_s).filter(|rate| rate.is_finite());
    let bottleneck = match &filled.limit {
        Limit::Parts(parts) => Some(parts_text(network, &laid.flow, parts)),
        Limit::Own => laid.flow.own_limit.as_ref().map(|(_, why)| why.clone()),
        Limit::Nothing => None,
    };
    let because = laid.flow.uses.iter();
    let mut because =
        unique(because.map(|one| format!("{}: {}.", network.get(one.part).name, one.figure)));
    because.extend(laid.notes.iter().cloned());
    let nothing = rate.is_none().then(|| "no part of the data path has a figure".to_owned());
    let missing = laid.missing.first().cloned().or(nothing);
    let known = rate.filter(|_| missing.is_none());
    Expected {
        bytes_per_s: known,
        iops: known.filter(|_| laid.block_bytes > 0).map(|rate| rate / laid.block_bytes as f64),
        bottleneck,
        at_most: rate.filter(|_| missing.is_some()),
        latency_floor_ns: floor,
        unknown: missing,
        because,
    }
}

/// Names of the parts that saturate with their figures, those of the same figures together.
fn parts_text(network: &Network, flow: &Flow, full: &[usize]) -> String {
    let uses = full.iter().filter_map(|index| flow.uses.get(*index));
    let parts = uses.map(|one| (network.get(one.part).name.as_str(), one.figure.as_str()));
    let parts = grouped(parts).into_iter();
    let groups = grouped(parts.map(|(name, figures)| (unique(figures).join(" and "), name)));
    let words = groups.iter().map(|(figures, names)| match names.len() {
        1..=4 => format!("{}: {figures}", names.join(", ")),
        more => format!("{} and {} more: {figures}", names[..3].join(", "), more - 3),
    });
    words.collect::<Vec<_>>().join("; ")
}

/// A known share of a part that another stream uses too, whose own rate is not known, may be
/// more.
fn shares_with_unknown(expected: &mut Expected, index: usize, laid: &[Laid], filled: &[Filled]) {
    let Limit::Parts(full) = &filled[index].limit else { return };
    let parts: Vec<_> = full.iter().map(|at| laid[index].flow.uses[*at].part).collect();
    let others = laid.iter().enumerate().filter(|(other, one)| {
        *other != index
            && !one.missing.is_empty()
            && one.flow.uses.iter().any(|one| parts.contains(&one.part))
    });
    let names: Vec<&str> = others.map(|(_, one)| one.name.as_str()).collect();
    if !names.is_empty() {
        expected.because.push(format!(
            "It shares its bottleneck with {}, whose rate is not known: it may get more.",
            names.join(", ")
        ));
    }
}

fn total(laid: &[Laid], streams: &[StreamExpected]) -> Expected {
    let all = || streams.iter().map(|one| &one.expected);
    let bytes_per_s: Option<f64> = all().map(|one| one.bytes_per_s).sum();
    let bytes_per_s = bytes_per_s.filter(|_| !streams.is_empty());
    let bounded: Option<f64> = all().map(|one| one.bytes_per_s.or(one.at_most)).sum();
    let one_size = laid.windows(2).all(|pair| pair[0].block_bytes == pair[1].block_bytes);
    let bottlenecks = unique(all().filter_map(|one| one.bottleneck.as_deref()));
    Expected {
        bytes_per_s,
        iops: all()
            .map(|one| one.iops)
            .sum::<Option<f64>>()
            .filter(|_| one_size && bytes_per_s.is_some()),
        bottleneck: (!bottlenecks.is_empty()).then(|| bottlenecks.join("; ")),
        at_most: bounded.filter(|_| bytes_per_s.is_none() && !streams.is_empty()),
        latency_floor_ns: None,
        unknown: all().find_map(|one| one.unknown.clone()),
        because: Vec::new(),
    }
}
