//! The bridges from a PCI function up to its host bridge.

use super::{Machine, PciFacts};

/// The function at `address` and the bridges above it, nearest first, by a `function` that finds
/// one. Captures may name a bridge that they do not have, or even a ring: the list ends there.
pub fn upstream_path<'m>(
    address: &str,
    function: impl Fn(&str) -> Option<&'m PciFacts>,
) -> Vec<&'m PciFacts> {
    let mut path: Vec<&PciFacts> = Vec::new();
    let mut next = function(address);
    while let Some(found) = next {
        if path.iter().any(|seen| seen.address == found.address) {
            break;
        }
        path.push(found);
        next = found.parent.as_deref().and_then(&function);
    }
    path
}

impl Machine {
    /// The function at `address`.
    pub fn function(&self, address: &str) -> Option<&PciFacts> {
        self.pci.iter().find(|function| function.address == address)
    }

    /// [`upstream_path`] in this machine.
    pub fn upstream_path(&self, address: &str) -> Vec<&PciFacts> {
        upstream_path(address, |address| self.function(address))
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
        let path = |address| -> Vec<&str> {
            machine.upstream_path(address).into_iter().map(|one| one.address.as_str()).collect()
        };
        assert_eq!(path("a"), ["a", "b", "c"]);
        assert_eq!(path("d"), ["d"]);
        assert!(path("nowhere").is_empty());
    }
}
