//! The crate from outside, as others use it.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is a test's failure")]

mod check;
mod flow;
mod pair;
mod topo;
