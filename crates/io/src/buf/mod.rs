//! Host memory for I/O. One way to allocate is one file here.

pub mod aligned;

pub use aligned::{Aligned, AllocError};
