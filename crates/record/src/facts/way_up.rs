//! The bridges from a PCI function up to its host bridge.

use super::{Machine, PciFacts};

/// The function at `address` and the bridges above it, nearest first, by a `function` that finds
/// one. Captures may name a bridge that they do not have, or even a ring: the list ends there.
pub fn climb<'m>(
    address: &str,
    function: impl Fn(&str) -> Option<&'m PciFacts>,
) -> Vec<&'m PciFacts> {
    let mut way: Vec<&PciFacts> = Vec::new();
    let mut next = function(address);
    while let Some(found) = next {
        if way.iter().any(|seen| seen.address == found.address) {
            break;
        }
        way.push(found);
        next = found.parent.as_deref().and_then(&function);
    }
    way
}

impl Machine {
    /// The function at `address`.
    #[must_use]
    pub fn function(&self, address: &str) -> Option<&PciFacts> {
        self.pci.iter().find(|function| function.address == address)
    }

    /// [`climb`] in this machine.
    #[must_use]
    pub fn way_up(&self, address: &str) -> Vec<&PciFacts> {
        climb(address, |address| self.function(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_ends_and_so_does_a_gap() {
        let one = |address: &str, parent: &str| PciFacts {
            address: address.to_owned(),
            parent: Some(parent.to_owned()),
            ..PciFacts::default()
        };
        let machine = Machine {
            pci: vec![one("a", "b"), one("b", "c"), one("c", "a"), one("d", "nowhere")],
            ..Machine::default()
        };
        let way = |address| -> Vec<&str> {
            machine.way_up(address).into_iter().map(|one| one.address.as_str()).collect()
        };
        assert_eq!(way("a"), ["a", "b", "c"]);
        assert_eq!(way("d"), ["d"]);
        assert!(way("nowhere").is_empty());
    }
}
