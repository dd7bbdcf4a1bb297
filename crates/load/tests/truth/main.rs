//! Figures held against facts that are known from outside: a device of known rate, one stall of
//! known length, what a series shows, arrivals that somebody else counts, CPU time as the kernel
//! tells it, bytes that the test changed, holes that it left.
//!
//! Facts are injected, and claims are such that a busy machine can't make them false: what an
//! injected device can't exceed, counts, and which figures belong together.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod altered_write;
mod arrivals;
mod cpu;
mod holes;
#[path = "../run/lab.rs"]
#[expect(dead_code, reason = "the other program of tests needs all of it")]
mod lab;
mod overload;
mod rates;
mod stall;
mod steady;
