//! Whole runs on small files and on gpuio's software GPU.
//!
//! Times are compared with wide margins: the machine that runs tests is busy. Cases that need an
//! environment of their own run in child processes: this program again, with the name of an
//! ignored test.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod ceilings;
mod ends;
mod gpus;
mod groups;
mod lab;
mod latencies;
mod layout;
mod mapped;
mod page;
mod proof;
mod results;
mod steady;
mod verification;
mod watched;
