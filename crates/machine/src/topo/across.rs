//! Classes across host bridges: what `nvidia-smi` printed for one pair holds for all pairs across
//! the same two.
//!
//! A host bridge is on one NUMA node. So two of one node (NODE) stand for each other, and what lies
//! between nodes (SYS) lies between all host bridges of these.

use std::collections::BTreeMap;

use gpuio_record::facts::Fact;

use crate::topo::{Class, Evidence, Route};

/// Host bridges with the classes between them.
#[derive(Debug, Default)]
pub(crate) struct Across<'m> {
    /// Maps each host bridge to another of its node; the one that stands for the node has none.
    same: BTreeMap<&'m str, &'m str>,
    /// Nodes, by the host bridges that stand for them, with the interconnect between.
    apart: Vec<(&'m str, &'m str)>,
}

impl<'m> Across<'m> {
    /// Takes in a printed class of two devices below these host bridges.
    pub(crate) fn note(&mut self, class: Class, one: &'m str, other: &'m str) {
        match class {
            Class::Node => {
                let (one, other) = (self.node(one), self.node(other));
                if one != other {
                    self.same.insert(one, other);
                }
            }
            Class::Sys => self.apart.push((one, other)),
            Class::X | Class::Pix | Class::Pxb | Class::Phb => {}
        }
    }

    fn node(&self, bridge: &'m str) -> &'m str {
        let mut at = bridge;
        while let Some(next) = self.same.get(at).copied() {
            at = next;
        }
        at
    }

    /// The class between two host bridges; `None` where it was not printed for any pair, or the
    /// printed ones differ.
    fn class(&self, one: &'m str, other: &'m str) -> Option<Class> {
        let pair = (self.node(one), self.node(other));
        let apart = self.apart.iter().any(|&(a, b)| {
            let known = (self.node(a), self.node(b));
            known == pair || (known.1, known.0) == pair
        });
        match (pair.0 == pair.1, apart) {
            (true, false) if one != other => Some(Class::Node),
            (false, true) => Some(Class::Sys),
            _ => None,
        }
    }

    /// Fills in a route between two host bridges.
    pub(crate) fn complete(&self, route: &mut Route, one: &'m str, other: &'m str) {
        if route.class.known().is_some() {
            return;
        }
        if let Some(class) = self.class(one, other) {
            route.class = Fact::Known(class);
            route.evidence = Evidence::PrintedElsewhere;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_bridges_of_one_node_stand_for_each_other() {
        let mut across = Across::default();
        across.note(Class::Sys, "a", "c");
        across.note(Class::Node, "a", "b");
        across.note(Class::Node, "c", "d");
        across.note(Class::Phb, "e", "e");
        assert_eq!(across.class("b", "d"), Some(Class::Sys));
        assert_eq!(across.class("d", "b"), Some(Class::Sys));
        assert_eq!(across.class("a", "b"), Some(Class::Node));
        assert_eq!(across.class("a", "e"), None, "of e nothing was printed");
        assert_eq!(across.class("a", "a"), None, "below one host bridge the tree decides");
        across.note(Class::Node, "a", "d");
        assert_eq!(across.class("a", "c"), None, "what contradicts itself says nothing");
    }
}
