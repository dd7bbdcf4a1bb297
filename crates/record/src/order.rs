//! The order in which offsets come.

use gpuio_base::units::format_bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Order in which offsets come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Order {
    /// One after another, from the start again at the end.
    Sequential,
    /// By chance.
    Random {
        /// How offsets are spread.
        distribution: Distribution,
        /// Whether every block comes once before any comes twice.
        coverage: bool,
    },
}

/// How random offsets are spread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Distribution {
    /// Every block alike.
    Uniform,
    /// Zipf's law with this exponent, hot blocks scattered over the file.
    Zipf {
        /// Exponent, above 0.
        theta: f64,
    },
    /// Pareto with this shape, hot blocks scattered over the file.
    Pareto {
        /// Share `h` as fio has it: 0 < h < 1.
        h: f64,
    },
    /// Normal around the middle of the file.
    Normal {
        /// Standard deviation in per cent of the file.
        deviation_percent: f64,
    },
    /// Parts of the thread's region, one behind the other, each with a share of the I/Os, which are
    /// spread evenly within it.
    Zoned {
        /// Their lengths are in per cent of the region.
        zones: Vec<Zone>,
    },
    /// The same with lengths in bytes.
    ZonedAbs {
        /// Their lengths are in bytes.
        zones: Vec<Zone>,
    },
}

/// A part of a region, and how many of the I/Os go to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Zone {
    /// Share of the I/Os in per cent; those of all zones sum to 100.
    pub ios_percent: u8,
    /// Its length, in the unit of the distribution; above 0.
    pub length: u64,
}

/// Where an I/O begins that is neither the next block in order nor drawn by chance alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Follow {
    /// In order: so many bytes behind the end of the one before it, which may be less than 0. Past
    /// an end of the region it goes on from the other one. An I/O that ends where the region does
    /// is the last of a pass.
    Gap {
        /// The distance in bytes.
        bytes: i64,
    },
    /// By chance: the first of so many is drawn, and the others follow it.
    Run {
        /// I/Os from each offset that was drawn; at least 2.
        ios: u64,
        /// The others repeat its offset, instead of being the blocks behind it.
        same: bool,
    },
    /// By chance: a share of the I/Os is drawn, and each other one follows the last one of its
    /// direction.
    Share {
        /// Share of the reads that are drawn, in per cent.
        reads: u8,
        /// Share of the writes that are drawn, in per cent.
        writes: u8,
    },
}

impl Follow {
    /// In words, for results that differ in it.
    pub fn words(&self) -> String {
        match self {
            Self::Gap { bytes } => format!("{bytes} bytes from one to the next"),
            Self::Run { ios, same: false } => format!("{ios} in a row"),
            Self::Run { ios, same: true } => format!("{ios} at each offset"),
            Self::Share { reads, writes } if reads == writes => format!("{reads} % by chance"),
            Self::Share { reads, writes } => {
                format!("{reads} % of reads and {writes} % of writes by chance")
            }
        }
    }
}

impl Distribution {
    /// As job files have it. Numbers as Rust prints an `f64`: the shortest text that reads back to
    /// the same value.
    pub fn key(&self) -> String {
        match self {
            Self::Uniform => "random".to_owned(),
            Self::Zipf { theta } => format!("zipf:{theta}"),
            Self::Pareto { h } => format!("pareto:{h}"),
            Self::Normal { deviation_percent } => format!("normal:{deviation_percent}"),
            Self::Zoned { zones } => format!("zoned:{}", zone_words(zones, |it| it.to_string())),
            Self::ZonedAbs { zones } => format!("zoned_abs:{}", zone_words(zones, format_bytes)),
        }
    }
}

fn zone_words(zones: &[Zone], length: fn(u64) -> String) -> String {
    let word = |zone: &Zone| format!("{}/{}", zone.ios_percent, length(zone.length));
    zones.iter().map(word).collect::<Vec<_>>().join(":")
}

/// The pattern of accesses that the kernel is told of, for its reading ahead (posix_fadvise(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FadviseHint {
    /// That of the load.
    Load,
    /// Sequential, whatever the load is.
    Sequential,
    /// Random, whatever the load is.
    Random,
    /// Each byte once (`POSIX_FADV_NOREUSE`).
    Noreuse,
}

impl FadviseHint {
    /// As job files have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Load => "1",
            Self::Sequential => "sequential",
            Self::Random => "random",
            Self::Noreuse => "noreuse",
        }
    }
}
