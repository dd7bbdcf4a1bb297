//! Readers of the kernel, of small copies and of this machine.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is a test's failure")]

mod fuzz;
mod guard;
mod live;
mod live_machine;
mod machine;
mod machine_readers;
mod machines;
mod net;
mod parsers;
mod pci;
mod proof_readers;
