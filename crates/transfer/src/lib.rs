//! Moves bytes between files and memory that callers own, on a GPU or in the host, for many
//! threads at once.
//!
//! A [`Transfer`] is asked for a range of a file and an address. It finds out what the address is
//! ([`Place`]), reads what is in the page cache from there and the rest from the device, and copies
//! through page-locked memory of its own. Nothing has to be announced first, and any alignment of
//! offset, address and length will do.
//!
//! Threads: everything here may be used from any thread and from many at once. A caller needs no
//! current CUDA context, and the one that it has is left as it was.
//!
//! At exit: nothing is given back to the driver, ever. Threads, page-locked memory and contexts are
//! left to the end of the process, for a driver that is being taken down must not be called.
//!
//! After `fork(2)` the child has none of the parent's threads, and no driver: calls on memory of
//! the host work in it, with state of its own, calls on memory of a GPU answer [`Fault::Forked`].
#![allow(unsafe_code)]

mod attempt;
mod batch;
mod born;
mod bounce;
mod crew;
mod desk;
mod fault;
mod file;
mod gpus;
mod job;
mod lane;
mod moved;
mod place;
mod settings;
mod spawn;
mod stream;
mod sync;
mod transfer;

pub use batch::{Batch, Entry, Event, Full};
pub use fault::{Fault, FileError, PlaceError};
pub use file::File;
pub use gpuio_gpu::RawStream;
pub use gpuio_io::engine::Op;
pub use moved::{Moved, Route};
pub use place::Place;
pub use settings::{Cold, Settings, Strict};
pub use stream::{Ended, Param, Params, Read};
pub use transfer::Transfer;
