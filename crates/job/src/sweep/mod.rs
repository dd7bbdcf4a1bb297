//! Sweeps: which points there are, which run comes next, and when a point needs no more runs.
//!
//! All functions are pure: they run nothing, read nothing and have no clock. The next run follows
//! from the finished runs and a seed alone, so a killed sweep resumes by calling again.
//!
//! The `cli` (`verb/sweep`) runs each point as `gpuio bench` in a process of its own, which the
//! kernel kills with its parent: NVIDIA's library can crash a process, and no state carries over.
//! A run is finished when its record gets its name by one rename; `sweep.json` follows, and a
//! record that it does not list yet is added at the next start. A preset with `routes` gets its
//! axes from the machine (`cli/verb/sweep/routes`). docs/sweep.md has the reasons.
//!
//! To add a preset: a row in [`PRESETS`], a row in docs/sweep.md.

mod axis;
mod condition;
mod converge;
mod grid;
mod order;
mod preset;
mod search;

pub use axis::{Axis, AxisError};
pub use condition::{Condition, ConditionError};
pub use converge::{Interval, LOOKS_FROM, Rule};
pub use grid::{Mode, grid};
pub use order::{Progress, next};
pub use preset::{PRESETS, Preset, is_route, preset, routes};
pub use search::{Bound, BoundError, LEAD, RUNS_MOST, Step, Tried, step};
