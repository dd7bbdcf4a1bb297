//! The assignment: exact, by successive shortest paths.

use std::collections::BTreeMap;
use std::ops::{Add, Neg};

use crate::pair::distance::Distance;

/// The cost of an assignment, compared part by part in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Cost {
    /// Minus the bins that have something.
    cover: i64,
    /// Sum of distances by class.
    class: i64,
    /// Sum over bins of the squares of what they have, halved: least when all have alike.
    sharing: i64,
    /// The same over those of a bin that are equally far from it.
    mates: i64,
    /// Sum of distances by switches and bridges.
    hops: i64,
    /// How far it is from giving in the lists' own order.
    order: i64,
}

impl Add for Cost {
    type Output = Cost;
    fn add(self, other: Cost) -> Cost {
        Cost {
            cover: self.cover + other.cover,
            class: self.class + other.class,
            sharing: self.sharing + other.sharing,
            mates: self.mates + other.mates,
            hops: self.hops + other.hops,
            order: self.order + other.order,
        }
    }
}

impl Neg for Cost {
    type Output = Cost;
    fn neg(self) -> Cost {
        Cost {
            cover: -self.cover,
            class: -self.class,
            sharing: -self.sharing,
            mates: -self.mates,
            hops: -self.hops,
            order: -self.order,
        }
    }
}

/// Pairs of (GPU, store), by GPU and store. Each GPU has at least one store if there is one.
///
/// Where there are at least as many stores as GPUs, each store goes to one GPU and each GPU has
/// one or more; else each GPU has one store, which may serve several, and a store that is far
/// from all may serve none. Among such assignments the one with the nearest classes in sum is
/// taken, then the most even, then the one that is most even among those that are equally far,
/// then the one with fewest switches and bridges, then the one that keeps the order of both lists.
/// `distance[gpu][store]`, a row for each GPU, all of one length.
pub(crate) fn assign(distance: &[Vec<Distance>]) -> Vec<(usize, usize)> {
    let gpus = distance.len();
    let stores = distance.first().map_or(0, Vec::len);
    if gpus == 0 || stores == 0 {
        return Vec::new();
    }
    let stores_are_items = stores >= gpus;
    let (items, bins) = if stores_are_items { (stores, gpus) } else { (gpus, stores) };
    let ends = |item: usize, bin: usize| {
        if stores_are_items { (bin, item) } else { (item, bin) }
    };
    let cost = |item: usize, bin: usize| -> Cost {
        let (gpu, store) = ends(item, bin);
        let Distance { class, hops } = distance[gpu][store];
        let apart = signed(item * bins).abs_diff(signed(bin * items));
        let apart = i64::try_from(apart).unwrap_or(i64::MAX >> 32);
        Cost { class, hops, order: apart * apart, ..Cost::default() }
    };
    let mut flow = Flow::of(items, bins, cost, stores_are_items);
    while flow.augment() {}
    let mut pairs: Vec<(usize, usize)> =
        flow.taken().into_iter().map(|(item, bin)| ends(item, bin)).collect();
    pairs.sort_unstable();
    pairs
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX >> 32)
}

/// An arc of capacity one and, next to it in the list, its opposite.
#[derive(Debug)]
struct Arc {
    from: usize,
    to: usize,
    free: bool,
    cost: Cost,
}

/// Source 0, items, bins, sink, and a node for each bin and distance between items and bin.
#[derive(Debug)]
struct Flow {
    arcs: Vec<Arc>,
    items: usize,
    bins: usize,
    nodes: usize,
}

impl Flow {
    fn of(items: usize, bins: usize, cost: impl Fn(usize, usize) -> Cost, fill_all: bool) -> Flow {
        let mut flow = Flow { arcs: Vec::new(), items, bins, nodes: 2 + items + bins };
        let sink = flow.sink();
        (0..items).for_each(|item| flow.arc(0, 1 + item, Cost::default()));
        for bin in 0..bins {
            // Marginal costs grow with each that a bin has: shortest paths stay exact.
            let mut mates: BTreeMap<i64, (usize, i64)> = BTreeMap::new();
            for item in 0..items {
                let cost = cost(item, bin);
                let (node, index) = *mates.entry(cost.class).or_insert((flow.nodes, 0));
                flow.nodes = flow.nodes.max(node + 1);
                mates.insert(cost.class, (node, index + 1));
                flow.arc(1 + item, node, cost);
                flow.arc(node, 1 + items + bin, Cost { mates: index, ..Cost::default() });
            }
            for index in 0..items {
                let cover = if fill_all && index == 0 { -1 } else { 0 };
                let sharing = Cost { cover, sharing: signed(index), ..Cost::default() };
                flow.arc(1 + items + bin, sink, sharing);
            }
        }
        flow
    }

    fn sink(&self) -> usize {
        1 + self.items + self.bins
    }

    fn arc(&mut self, from: usize, to: usize, cost: Cost) {
        self.arcs.push(Arc { from, to, free: true, cost });
        self.arcs.push(Arc { from: to, to: from, free: false, cost: -cost });
    }

    /// Sends one more item along the cheapest path (Bellman and Ford, as costs may be negative);
    /// `false` when all are sent.
    fn augment(&mut self) -> bool {
        let sink = self.sink();
        let mut best: Vec<Option<(Cost, usize)>> = vec![None; self.nodes];
        best[0] = Some((Cost::default(), usize::MAX));
        loop {
            let mut changed = false;
            for (index, arc) in self.arcs.iter().enumerate().filter(|(_, arc)| arc.free) {
                let Some((so_far, _)) = best[arc.from] else { continue };
                let total = so_far + arc.cost;
                if best[arc.to].is_none_or(|(known, _)| total < known) {
                    best[arc.to] = Some((total, index));
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let mut at = sink;
        while at != 0 {
            let Some((_, index)) = best[at] else { return false };
            self.arcs[index].free = false;
            self.arcs[index ^ 1].free = true;
            at = self.arcs[index].from;
        }
        true
    }

    /// Items with their bins.
    fn taken(&self) -> Vec<(usize, usize)> {
        // From an item leads an arc to a node of its bin, and the arc listed next to it goes on.
        let pairs = self.arcs.windows(3).filter(|three| {
            !three[0].free && (1..=self.items).contains(&three[0].from) && three[0].to > self.sink()
        });
        pairs.map(|three| (three[0].from - 1, three[2].to - 1 - self.items)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(classes: &[&[i64]]) -> Vec<Vec<Distance>> {
        let one = |class: &i64| Distance { class: *class, hops: 0 };
        classes.iter().map(|row| row.iter().map(one).collect()).collect()
    }

    #[test]
    fn one_each_in_order_where_nothing_else_decides() {
        let same = near(&[&[2, 2, 2], &[2, 2, 2], &[2, 2, 2]]);
        assert_eq!(assign(&same), [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn a_store_that_all_want_goes_where_it_costs_least() {
        // Greedy would give store 0 to GPU 0, and GPU 1 would be left with 5.
        assert_eq!(assign(&near(&[&[1, 2], &[1, 5]])), [(0, 1), (1, 0)]);
    }

    #[test]
    fn several_stores_go_evenly_and_several_gpus_share() {
        let four = near(&[&[2, 2, 2, 2], &[2, 2, 2, 2]]);
        assert_eq!(assign(&four), [(0, 0), (0, 1), (1, 2), (1, 3)]);
        let shared = near(&[&[2, 5], &[2, 5], &[5, 2], &[5, 2]]);
        assert_eq!(assign(&shared), [(0, 0), (1, 0), (2, 1), (3, 1)]);
    }

    #[test]
    fn near_gpus_are_spread_too() {
        // Two stores near to GPUs 0 and 1, and far ones to make up the numbers.
        let rows: [&[i64]; 4] = [&[1, 1], &[1, 1], &[5, 5], &[5, 5]];
        let assigned = assign(&near(&rows));
        assert_ne!(assigned[0].1, assigned[1].1, "{assigned:?}");
        assert_ne!(assigned[2].1, assigned[3].1, "{assigned:?}");
    }

    #[test]
    fn no_gpu_goes_without_however_far_the_store_is() {
        let far = near(&[&[1, 1, 1], &[5, 5, 5]]);
        let assigned = assign(&far);
        assert_eq!(assigned.iter().filter(|(gpu, _)| *gpu == 1).count(), 1, "{assigned:?}");
        assert_eq!(assign(&near(&[&[1], &[5]])), [(0, 0), (1, 0)]);
    }

    #[test]
    fn nothing_is_given_where_there_is_nothing() {
        assert!(assign(&[]).is_empty());
        assert!(assign(&[Vec::new(), Vec::new()]).is_empty());
    }
}
