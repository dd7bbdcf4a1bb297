//! The order in which offsets come.

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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
}

impl Distribution {
    /// As job files have it. Numbers as Rust prints an `f64`: the shortest text that reads back to
    /// the same value.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Uniform => "random".to_owned(),
            Self::Zipf { theta } => format!("zipf:{theta}"),
            Self::Pareto { h } => format!("pareto:{h}"),
            Self::Normal { deviation_percent } => format!("normal:{deviation_percent}"),
        }
    }
}
