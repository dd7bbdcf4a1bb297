//! Sweeps: which points there are, which run comes next, and when a point is settled.
//!
//! All functions are pure: they run nothing, read nothing and have no clock. What comes next is
//! worked out from the finished runs alone, so a sweep that was killed goes on by asking again.

mod axis;
mod condition;
mod grid;
mod order;
mod preset;
mod search;
mod settle;

pub use axis::{Axis, AxisError};
pub use condition::{Condition, ConditionError};
pub use grid::{Way, grid};
pub use order::{Progress, next};
pub use preset::{PRESETS, Preset, is_route, preset, routes};
pub use search::{Bound, BoundError, Figure, Step, Tried, step};
pub use settle::{Interval, LOOKS_FROM, Rule, interval};
