//! Counters of devices, and pages of processes, in directories of the tests' own.

mod intervals;
mod page;
