//! hwloc's matrix of NVLinks: `distances2` with the name `NVLinkBandwidth`.
//!
//! It has the bandwidth between two GPUs in MB/s (hwloc, `topology-nvml.c`), for all links between
//! them together; a diagonal that stands for the GPU's own memory, and 0 where there is none.

use std::collections::BTreeMap;

use gpuio_record::facts::{Fact, NvLinkEnd, NvLinkPeer};

use crate::xml::{Tag, Tags};

/// More GPUs and switches than any machine has.
const MOST: usize = 256;

/// The parts of the matrix that were read.
#[derive(Default)]
pub(crate) struct Links {
    /// PCI functions of system devices by their number in the text.
    functions: BTreeMap<u64, String>,
    inside: bool,
    indexes: Vec<u64>,
    values: Vec<u64>,
}

impl Links {
    /// Takes in a tag of the matrix; `false` for another one.
    pub(crate) fn tag(&mut self, tag: &Tag<'_>, tags: &Tags<'_>) -> bool {
        match tag.name {
            "distances2" | "distances2hetero" => {
                let named = tag.get("name") == Some("NVLinkBandwidth");
                self.inside = named && !tag.closes && self.values.is_empty();
            }
            "indexes" if self.inside && tag.opens => {
                // Objects of different kinds have their kind before them: `OSDev:12`.
                let words = tags.content().split_whitespace();
                let numbers = words.filter_map(|word| word.rsplit(':').next()?.parse::<u64>().ok());
                self.indexes.extend(numbers.take(MOST));
            }
            "u64values" if self.inside && tag.opens => {
                let numbers = tags.content().split_whitespace();
                let numbers = numbers.filter_map(|word| word.parse::<u64>().ok());
                self.values.extend(numbers.take(MOST * MOST));
            }
            "indexes" | "u64values" => {}
            _ => return false,
        }
        true
    }

    /// Remembers the function of a system device.
    pub(crate) fn named(&mut self, tag: &Tag<'_>, pci: &str) {
        if let Some(number) = tag.get("gp_index").and_then(|number| number.parse().ok()) {
            self.functions.insert(number, pci.to_owned());
        }
    }

    /// The NVLinks of the GPU at an address; unknown without a matrix.
    pub(crate) fn of(&self, address: &str) -> Fact<Vec<NvLinkPeer>> {
        let size = self.indexes.len();
        let own = self.indexes.iter().position(|index| {
            self.functions.get(index).is_some_and(|function| function == address)
        });
        let Some(own) = own.filter(|_| self.values.len() == size * size) else {
            return Fact::unknown("lstopo's text has no matrix of NVLinks with this GPU");
        };
        let row = &self.values[own * size..(own + 1) * size];
        let others = row.iter().enumerate().filter(|(at, rate)| *at != own && **rate > 0);
        let peers = others.map(|(at, rate)| {
            let pci = self.functions.get(&self.indexes[at]).cloned();
            let (links, each) = links(*rate);
            NvLinkPeer {
                kind: if pci.is_some() { NvLinkEnd::Gpu } else { NvLinkEnd::Switch },
                pci,
                links,
                version: None,
                bytes_per_second: Some(each * 1_000_000),
            }
        });
        Fact::Known(peers.collect())
    }
}

/// How many links make a rate in MB/s, and the rate of each: 25 GB/s since NVLink 2, 20 GB/s of
/// NVLink 1 (hwloc has these two).
fn links(rate: u64) -> (u32, u64) {
    let each =
        [25_000, 20_000].into_iter().find(|each| rate.is_multiple_of(*each)).unwrap_or(25_000);
    let count = u32::try_from((rate + each / 2) / each).unwrap_or(u32::MAX);
    (count.max(1), each)
}
