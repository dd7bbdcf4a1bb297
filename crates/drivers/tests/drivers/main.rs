//! The crate from outside, as others use it.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic is a test's failure")]

mod cufile;
mod dcgm;
mod mpi;
