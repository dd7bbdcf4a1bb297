//! Tests of `topo` from outside.

mod machines;
mod page;
mod pictures;
mod r7525;
mod random_trees;
