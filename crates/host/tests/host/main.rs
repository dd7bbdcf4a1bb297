//! Readers of the kernel, of small copies and of this machine.

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
