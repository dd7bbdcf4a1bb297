//! Tests of `pair` from outside.

mod machines;
mod random_trees;
