//! The crate from outside, as others use it.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]

mod pattern;
mod stat;
