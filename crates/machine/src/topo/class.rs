//! How far two devices are from each other.

use serde::Serialize;

/// Distance between two devices with the names and meanings of `nvidia-smi topo`, nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Class {
    /// The same device.
    X,
    /// At most one PCIe switch between.
    Pix,
    /// Several PCIe switches, and not the host bridge.
    Pxb,
    /// The PCIe host bridge, which is part of the processor.
    Phb,
    /// Two host bridges of one NUMA node.
    Node,
    /// The interconnect between NUMA nodes.
    Sys,
}

impl Class {
    /// All, nearest first.
    pub const ALL: [Class; 6] =
        [Class::X, Class::Pix, Class::Pxb, Class::Phb, Class::Node, Class::Sys];

    /// As `nvidia-smi topo` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Class::X => "X",
            Class::Pix => "PIX",
            Class::Pxb => "PXB",
            Class::Phb => "PHB",
            Class::Node => "NODE",
            Class::Sys => "SYS",
        }
    }

    /// The parts that bytes pass on such a route.
    pub fn meaning(self) -> &'static str {
        match self {
            Class::X => "the device itself",
            Class::Pix => "at most one PCIe switch",
            Class::Pxb => "several PCIe switches, not the host bridge",
            Class::Phb => "the PCIe host bridge (the processor)",
            Class::Node => "two host bridges of one NUMA node",
            Class::Sys => "the interconnect between NUMA nodes",
        }
    }

    /// The class of a printed cell; `None` for NVLinks and anything else. `SOC` is what drivers
    /// before 384 printed for `SYS`.
    pub fn parse(cell: &str) -> Option<Class> {
        let cell = if cell == "SOC" { "SYS" } else { cell };
        Class::ALL.into_iter().find(|class| class.name() == cell)
    }
}
