//! The two borders between gpuio and what others can change.
//!
//! - [`objects`]: which variables and shared objects of its surroundings gpuio believes.
//! - [`outfile`]: files and directories that gpuio makes for its user. Nothing is followed,
//!   overwritten or truncated.
//!
//! Every other crate that reads a variable, loads an object or makes a file for the user goes
//! through here (`cargo xtask tidy` refuses the system's calls elsewhere). It must not hold the
//! readers of the kernel's files (`gpuio_host`), or the files of a load (`gpuio_dataset`).

pub mod objects;
pub mod outfile;
