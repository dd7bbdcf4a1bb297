//! Sizes, durations, rates, percentages and index lists: one parse and one print each; what a PCIe
//! link carries; lists of hosts; and text from outside, made fit to be shown.
//!
//! Two families, never mixed:
//!
//! * `parse_*` and `format_*` are exact. A text from `format_*` is read back by `parse_*` to the
//!   same value. Both are for options, job files and records.
//! * `human_*` rounds to three significant digits. It is for people and is never read back.
//!
//! Every function takes no lock, reads no locale, can be called from any thread, and is pure but
//! for one setting of the process: the powers that [`print_in`] requests for all `human_*` forms.

mod bytes;
mod decimal;
mod duration;
mod error;
mod float;
mod hosts;
mod human;
mod list;
mod paragraph;
mod pcie;
mod percent;
mod printable;
mod rate;
mod wildcard;

pub use bytes::{format_bytes, parse_bytes};
pub use duration::{format_duration_ns, parse_duration_ns};
pub use error::UnitError;
pub use float::{float, whole};
pub use hosts::{host_list, hosts_of};
pub use human::{
    Powers, digits, human_bytes, human_count, human_decimal_rate, human_ns, human_rate,
    human_transfers, in_requested, many, place, powers, print_in, rate_unit,
};
pub use list::{MAX_INDEX, format_cpu_list, parse_cpu_list, parse_index_list};
pub use paragraph::paragraph;
pub use pcie::{parse_transfers, pcie_bytes_per_second, pcie_generation, pcie_mega_transfers};
pub use percent::parse_percent;
pub use printable::{
    MOST_SHOWN, ShellLine, csv_text, is_hidden, label_value, markup, printable, printable_lines,
    printable_short, shell_word,
};
pub use rate::{parse_bytes_per_second, parse_count, per_second};
pub use wildcard::fits_wildcard;

#[cfg(test)]
mod tests;
