//! The common code of the tests of several crates. No program is built with it: it is a
//! dev-dependency.
//!
//! [`tree`] writes small copies of `/sys` and `/proc`, whole machines among them, of which
//! [`machines`] has the tables. `jobs` plans jobs on a made-up machine. [`chromium`] opens pages
//! in a browser. [`programs`] has Python and the C compiler, `gpu` says which GPU tests run on.
//! [`child`] runs a test in a process of its own. [`file_systems`] mounts file systems for a test,
//! and [`faulty`] a file whose I/O fails where the test wants it.
//! [`docs`] compares tables of pages with code. A test that lacks something calls [`skip`] and
//! passes.
#![allow(clippy::new_without_default, reason = "an empty tree is made on purpose")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test says what it leaves out")]

pub mod child;
pub mod chromium;
pub mod docs;
pub mod faulty;
pub mod file_systems;
pub mod gpu;
#[cfg(feature = "jobs")]
pub mod jobs;
pub mod machines;
pub mod programs;
pub mod tree;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Says why a test can't be done here. A test that skips says so and where it can be done.
pub fn skip(why: &str) {
    println!("SKIPPED: {why}");
}

pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Processor time of this thread so far. The work of other processes on its core is not in it.
pub fn on_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap()
}

/// Bytes that differ by position and seed.
pub fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        })
        .collect()
}

/// Tests of one call each, by name.
#[macro_export]
macro_rules! tests {
    ($($name:ident: $call:expr;)*) => {
        $(
            #[test]
            fn $name() {
                $call;
            }
        )*
    };
}
