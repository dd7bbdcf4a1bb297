//! What is wrong with a machine for I/O between storage and GPUs, and how to mend it.
//!
//! Each rule is a pure function from [`Machine`] to what it found, in a file of its own, with a
//! row in [`RULES`]. A rule whose facts are absent says *unknown* with the reason, and never
//! guesses. [`check`] runs rules; [`text`] and [`json`] print what came out. Nothing here reads
//! the system, and all functions may be called from any thread. [`gdscheck`] has gdscheck's
//! sections from the same facts.
//!
//! [`Machine`]: gpuio_record::facts::Machine

mod configuration;
mod finding;
pub mod gdscheck;
pub mod json;
mod machine;
pub mod prove;
mod rule;
#[cfg(test)]
mod sample;
pub mod text;
mod verdict;

pub use finding::{Finding, Found, Severity};
pub use rule::{RULES, Rule, check, find};
pub use verdict::{
    Answer, Gpu, MODES, Mode, ModeVerdict, Need, Pair, Verdict, gpu_of, mount_of, narrow, verdict,
};
