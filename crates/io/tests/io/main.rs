//! Engines and paths from outside, on the software GPU or, by `GPUIO_TEST_GPU=system`, on hardware.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic is a test's failure")]

mod engine_fault;
mod engine_reference;
mod engine_support;
mod engine_wait_timeout;
mod engine_whole;
mod path_fan_out;
mod path_fault;
mod path_gather;
mod path_gds;
mod path_gds_async;
mod path_initiated;
mod path_library;
mod path_mapped;
mod path_reference;
mod path_routed;
mod path_support;
mod path_tier;
mod path_verify;
