//! Tests of `dcgm` from outside.

mod engine;
