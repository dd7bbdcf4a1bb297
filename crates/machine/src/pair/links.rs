//! Links that several pairs use.

use std::collections::{BTreeMap, BTreeSet};

use crate::topo::{Knot, KnotKind, Link, Topology, slot};
use gpuio_record::facts::Machine;

use crate::pair::{Given, Pair, SharedLink, When, nics};

/// A step on the path from the root down to a device.
#[derive(Debug, Clone, Copy)]
struct Step<'t> {
    address: &'t str,
    /// The link above it: of a device its bus and slot, since its functions share one link.
    key: &'t str,
    link: Option<&'t Link>,
    /// Whether different devices can share its link: those of switches and cards.
    counts: bool,
}

/// The paths from the root down to each device, by its name.
type RootPaths<'t> = BTreeMap<&'t str, Vec<Vec<Step<'t>>>>;

/// The pairs that use a link on one of the paths, and the bytes per second up and down.
#[derive(Debug, Default)]
struct Use {
    pairs: BTreeSet<usize>,
    up: Option<u64>,
    down: Option<u64>,
}

/// Who uses a link.
#[derive(Debug, Default)]
struct Users<'t> {
    /// The function that was met first at its lower end.
    above: &'t str,
    link: Option<&'t Link>,
    counts: bool,
    always: Use,
    by_host: Use,
}

impl Use {
    /// Adds what goes up towards the root or down; a rate that is not known leaves no sum.
    fn add(&mut self, pair: usize, up: bool, rate: Option<u64>) {
        if self.pairs.is_empty() {
            (self.up, self.down) = (Some(0), Some(0));
        }
        self.pairs.insert(pair);
        let sum = if up { &mut self.up } else { &mut self.down };
        *sum = sum.zip(rate).map(|(sum, rate)| sum.saturating_add(rate));
    }

    /// The need of the busier direction: both carry a link's full rate.
    fn most(&self) -> Option<u64> {
        self.up.zip(self.down).map(|(up, down)| up.max(down))
    }
}

pub(crate) fn shared(machine: &Machine, topology: &Topology, pairs: &[Pair]) -> Vec<SharedLink> {
    let root_paths = root_paths(topology);
    let mut users: BTreeMap<&str, Users<'_>> = BTreeMap::new();
    let sharers = |part: &str| {
        let has = |pair: &&Pair| pair.stores.iter().flat_map(parts).any(|other| other == part);
        u64::try_from(pairs.iter().filter(has).count().max(1)).unwrap_or(1)
    };
    for (index, pair) in pairs.iter().enumerate() {
        let Some(gpu) = pair.gpu.as_deref().and_then(|gpu| root_paths.get(gpu)?.first()) else {
            continue;
        };
        for part in pair.stores.iter().flat_map(parts) {
            let Some(from) = root_paths.get(part).and_then(|all| nearest(gpu, all)) else {
                continue;
            };
            let common = gpu.iter().zip(from).take_while(|(a, b)| a.key == b.key).count();
            let rate =
                own_rate(machine, topology, &root_paths, part).map(|rate| rate / sharers(part));
            let down = gpu.iter().enumerate().map(|(depth, step)| (depth, step, false));
            let up = from.iter().enumerate().map(|(depth, step)| (depth, step, true));
            for (depth, step, up) in down.chain(up) {
                let user = users.entry(step.key).or_default();
                if user.above.is_empty() {
                    user.above = step.address;
                }
                (user.link, user.counts) = (step.link, step.counts);
                user.by_host.add(index, up, rate);
                if depth >= common {
                    user.always.add(index, up, rate);
                }
            }
        }
    }
    let mut found = Vec::new();
    for user in users.into_values().filter(|user| user.counts) {
        let carries = user.link.and_then(|link| link.bytes_per_second);
        let enough = |used: &Use| used.most().zip(carries).map(|(need, carries)| need <= carries);
        let mut add = |when, used: &Use| {
            found.push(SharedLink {
                above: user.above.to_owned(),
                link: user.link.cloned(),
                gpus: used.pairs.iter().filter_map(|index| pairs[*index].gpu.clone()).collect(),
                when,
                need_bytes_per_second: used.most(),
                enough: enough(used),
            });
        };
        // All bytes of pairs that meet below the link cross it only through host memory. Where that
        // changes neither who shares it nor the answer, its need stands for both.
        let (always, by_host) = (&user.always, &user.by_host);
        let same = always.pairs == by_host.pairs && enough(always) == enough(by_host);
        if always.pairs.len() > 1 {
            add(When::Always, if same { by_host } else { always });
        }
        if by_host.pairs.len() > 1 && !same {
            add(When::ByHostMemory, by_host);
        }
    }
    found.sort_by(|a, b| (a.when, &a.above).cmp(&(b.when, &b.above)));
    found
}

/// Drives below a store, or the card that leads to it.
fn parts(given: &Given) -> impl Iterator<Item = &str> {
    given.drives.iter().chain(&given.nic).map(String::as_str)
}

fn root_paths(topology: &Topology) -> RootPaths<'_> {
    let mut root_paths = RootPaths::new();
    for branch in &topology.tree {
        for bridge in &branch.host_bridges {
            bridge
                .below
                .iter()
                .for_each(|knot| walk(knot, &mut Vec::new(), topology, &mut root_paths));
        }
    }
    root_paths
}

fn walk<'t>(
    knot: &'t Knot,
    above: &mut Vec<Step<'t>>,
    topology: &Topology,
    root_paths: &mut RootPaths<'t>,
) {
    let card = |name: &String| {
        let index = topology.find(name);
        index.is_some_and(|index| topology.devices[index].kind == crate::topo::DeviceKind::Nic)
    };
    let counts = knot.kind != KnotKind::Device || knot.names.iter().any(card);
    let address = knot.address.as_str();
    let key = if knot.kind == KnotKind::Device { slot(address) } else { address };
    above.push(Step { address, key, link: knot.link.as_ref(), counts });
    for name in &knot.names {
        root_paths.entry(name).or_default().push(above.clone());
    }
    knot.below.iter().for_each(|below| walk(below, above, topology, root_paths));
    above.pop();
}

/// The path to a device, among several, that shares most steps with another.
fn nearest<'w, 't>(up: &[Step<'t>], root_paths: &'w [Vec<Step<'t>>]) -> Option<&'w Vec<Step<'t>>> {
    root_paths
        .iter()
        .max_by_key(|path| up.iter().zip(*path).take_while(|(a, b)| a.key == b.key).count())
}

/// The most that a drive or card can send: its own links, and the wire of a card.
fn own_rate(
    machine: &Machine,
    topology: &Topology,
    root_paths: &RootPaths<'_>,
    name: &str,
) -> Option<u64> {
    let root_paths = root_paths.get(name)?;
    let link =
        root_paths.iter().map(|path| path.last()?.link?.bytes_per_second).sum::<Option<u64>>();
    let card = nics::facts(machine, &topology.devices[topology.find(name)?]);
    let wire = card.and_then(nics::megabits).map(|megabits| megabits * 125_000);
    link.into_iter().chain(wire).min()
}
