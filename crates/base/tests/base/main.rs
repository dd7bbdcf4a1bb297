//! The crate from outside, as others use it.

mod pattern;
mod stat;
