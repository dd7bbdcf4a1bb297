//! Sizes, durations, rates, percentages and index lists: one parse and one print each.
//!
//! Two families, never mixed:
//!
//! * `parse_*` and `format_*` are exact. What `format_*` prints, `parse_*` reads back to the
//!   same value. They are for options, job files and records.
//! * `human_*` rounds to three significant digits. It is for people and is never read back.
//!
//! Every function is pure, takes no lock, reads no locale, and can be called from any thread.

mod bytes;
mod decimal;
mod duration;
mod error;
mod human;
mod list;
mod percent;

pub use bytes::{format_bytes, parse_bytes};
pub use duration::{format_duration_ns, parse_duration_ns};
pub use error::UnitError;
pub use human::{human_bytes, human_count, human_ns, human_rate, human_transfers};
pub use list::{MAX_INDEX, format_cpu_list, parse_cpu_list, parse_index_list};
pub use percent::parse_percent;

#[cfg(test)]
mod tests;
