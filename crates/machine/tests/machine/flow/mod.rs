//! Tests of `flow` from outside.

mod figures;
mod filling;
mod hosts;
mod jobs;
mod machines;
mod seeds;
