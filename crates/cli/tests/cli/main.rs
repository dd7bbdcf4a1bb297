//! The program as its users meet it: run, and judged by its output, its exit code and what it
//! leaves on disk.
//!
//! Nothing here links gpuio, but for the builder of trees that look like other machines and for
//! what says which words it takes. Loads are short and small: the question is whether they are
//! right.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests: a panic is their message"
)]

mod advice;
mod bad_days;
mod bad_input;
mod beside;
mod bundles;
mod ceilings;
mod check;
mod collect;
mod compare;
mod corrupt;
mod cufile;
mod documented;
mod dry_run;
mod example;
mod exec;
mod expected;
mod gdscheck;
mod gdsio;
mod gdsio_guide;
mod guard;
mod hang_up;
mod help;
mod hostile_text;
mod hosts;
mod install;
mod io_limit;
mod job_files;
mod journal;
mod layouts;
mod leftovers;
mod live_metrics;
mod loads;
mod many_threads;
mod mounts;
mod network;
mod network_hostile;
mod no_effect;
mod other_tools;
mod outputs;
mod paths;
mod plan;
mod prefetch;
mod quick;
mod ranks;
mod ranks_hosts;
mod ranks_verbs;
mod rates;
mod record;
mod replay;
mod report;
mod secure;
mod shown;
mod silence;
mod stats;
mod stopped;
mod sweep;
mod tool;
mod top;
mod topo;
mod why;
mod workload;
