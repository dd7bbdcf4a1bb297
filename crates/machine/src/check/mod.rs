//! Finds faults of a machine for I/O between storage and GPUs, and suggests fixes.
//!
//! A rule is a pure function from [`Machine`] to findings, in a file of its own, with a row in
//! [`RULES`]: its question, why it matters, the fix, its source. A finding is `fail` where
//! something can't work or hardware gives less than it could, `warn` where it costs, `unknown`
//! where facts are missing, with the reason. A test checks that every rule reports only *unknown*
//! for a machine without any facts. [`check`] runs rules; [`text`] and [`json`] print the
//! findings. Nothing here reads the system; all functions may be called from any thread.
//!
//! The verdict on a pair of one mount and one GPU: each row of `MODES` (`verdict/mode`) lists what
//! it needs; each need is met, not met or unknown, and together they give the answer. The machine
//! is narrowed to what the pair touches, so that the same rules apply to it. `prove` compares
//! measured results with that verdict; it is pure too. The `cli` measures (`verb/check/prove`): it
//! runs `gpuio bench` as a process for each path.
//!
//! [`why`] answers "is GDS on, and which way do the bytes go?" from verdicts, and for a process
//! also from what it has mapped and open. It has no rules of its own.
//!
//! [`gdscheck`] prints gdscheck's sections from the same facts. gdscheck's own output (read by
//! `capture`) is kept apart in a `Machine`, because it is a tool's statement: a rule uses it only
//! where it would be *unknown* otherwise, and says so.
//!
//! [`hosts`] compares several machines and puts equal findings of theirs together.
//!
//! To add a rule: a file in `rule/`, a row in [`RULES`], a case for each outcome in `CASES`
//! (`rule/tests/outcomes.rs`). To add a mode: a file in `verdict/mode/`, a row in `MODES`, a row in
//! docs/check.md.
//!
//! [`Machine`]: gpuio_record::facts::Machine

mod coherent;
mod configuration;
mod finding;
pub mod gdscheck;
pub mod hosts;
pub mod json;
mod machine;
pub mod prove;
mod rings;
mod rule;
#[cfg(test)]
pub(crate) mod sample;
pub mod text;
mod verdict;
pub mod why;

pub use coherent::coherent_links;
pub use configuration::{Compat, compat_mode};
pub use finding::{Finding, Found, Rule, Severity};
pub use rule::{RULES, all_through_host, check, find};
pub use verdict::{
    About, Answer, Gpu, MODES, Mode, ModeVerdict, Need, Pair, Verdict, Whole, drives_of, gpu_of,
    is_without_nvidia_fs, mount_of, narrow, verdict, whole_below,
};
