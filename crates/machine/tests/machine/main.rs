//! The crate from outside, as others use it.

mod check;
mod flow;
mod pair;
mod topo;
