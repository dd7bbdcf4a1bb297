//! How far a store is from a GPU.

use crate::topo::{Class, Topology};

/// Counts as this many switches or bridges where it is not known.
const FAR: i64 = 100;

/// Mean distance of a store's parts, in fixed point so that sums are exact and the same
/// everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Distance {
    /// By class: 1 for PIX up to 5 for SYS, 6 where it is not known.
    pub(crate) class: i64,
    /// By switches, then bridges.
    pub(crate) hops: i64,
}

/// How far bytes go, as far as it decides what is left out: within one of these, distances differ
/// by little; NVIDIA's "GPUDirect Storage Benchmarking and Configuration Guide" measured a
/// seventeenth of the I/Os from the farthest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Below a switch: PIX, PXB.
    Switch,
    /// On the same NUMA node: PHB, NODE.
    Node,
    /// Beyond it: SYS.
    Beyond,
    Unknown,
}

impl Distance {
    /// By the mean class of its parts.
    pub(crate) fn reach(self) -> Reach {
        match self.class {
            class if class <= rank(Class::Pxb) * ONE => Reach::Switch,
            class if class <= rank(Class::Node) * ONE => Reach::Node,
            class if class < UNKNOWN * ONE => Reach::Beyond,
            _ => Reach::Unknown,
        }
    }

    /// Farther than all that is near enough, in the same order.
    pub(crate) fn out_of_reach(self) -> Distance {
        Distance { class: self.class + 2 * UNKNOWN * ONE, ..self }
    }
}

/// By class, where it is not known.
const UNKNOWN: i64 = 6;

/// One of [`Distance`]'s steps: divisible by every count of members up to 10.
const ONE: i64 = 2520;

/// The mean over the indices of `parts` in the topology; a store without a known part is at an
/// unknown distance.
pub(crate) fn mean(topology: &Topology, gpu: usize, parts: &[usize]) -> Distance {
    let all: Vec<Distance> = parts.iter().map(|part| one(topology, gpu, *part)).collect();
    let Ok(count @ 1..) = i64::try_from(all.len()) else { return unknown() };
    let sum = |pick: fn(&Distance) -> i64| all.iter().map(pick).sum::<i64>() / count;
    Distance { class: sum(|one| one.class), hops: sum(|one| one.hops) }
}

fn unknown() -> Distance {
    Distance { class: UNKNOWN * ONE, hops: 2 * FAR * FAR * ONE }
}

fn one(topology: &Topology, gpu: usize, part: usize) -> Distance {
    let Some(route) = topology.route(gpu, part) else { return unknown() };
    let Some(class) = route.class.known() else { return unknown() };
    let capped = |count: Option<u32>| count.map_or(FAR, |count| i64::from(count).min(FAR));
    let hops = capped(route.switches) * 2 * FAR + capped(route.bridges);
    Distance { class: rank(*class) * ONE, hops: hops * ONE }
}

/// 0 for the device itself, 1 for PIX, up to 5 for SYS.
fn rank(class: Class) -> i64 {
    let index = Class::ALL.iter().position(|known| *known == class);
    index.and_then(|index| i64::try_from(index).ok()).unwrap_or(UNKNOWN)
}

/// The class of a route, where it is known.
pub(crate) fn class(topology: &Topology, gpu: usize, part: usize) -> Option<Class> {
    topology.route(gpu, part)?.class.known().copied()
}
