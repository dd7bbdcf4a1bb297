//! The files of a run: whether they may be used, whether they exist, which are gpuio's own.
//!
//! [`ownership`] decides what may happen to a target, [`make`] makes and extends files,
//! [`manifest`] knows which files gpuio made, [`clean`] removes what this run made. The order of a
//! run:
//!
//! 1. [`ownership::check`] each target; any refusal ends the run before a byte is written.
//! 2. [`make::make_directories`] and [`make::make`] for what is absent or must be made anew.
//! 3. [`manifest::begin`] for our files that the load will write.
//! 4. The load.
//! 5. [`manifest::finalize`] for the same files, after their last descriptor for writing was
//!    closed.
//! 6. [`clean::clean`], unless files are kept. Until then [`scratch`] says whose they are.
//!
//! Files of several processes go another way in step 2: [`shared_file`].
//!
//! A target is opened once, to be checked, and held ([`held`]). Code that makes, fills, reads,
//! writes or removes it gets a descriptor of that same file, whatever has its name by then.
//!
//! It must not hold plans, workers or GPUs. Functions block on file I/O; [`make::make`] has threads
//! of its own, which end before it returns.

pub mod clean;
mod content;
mod directory;
mod error;
mod fill;
pub mod held;
pub mod leftover;
mod look;
pub mod make;
pub mod manifest;
pub mod ownership;
pub mod ranges;
pub mod refusal;
pub mod scratch;
pub mod shared_file;
pub mod space;
#[cfg(test)]
mod tests;

use gpuio_host::statx::Stamp;

pub use content::Looks;
pub use error::MakeError;
pub use gpuio_guard::outfile::Identity;
pub use refusal::Refusal;

/// The identity of a file that was looked at.
pub fn identity_of(found: &Stamp) -> Identity {
    Identity { dev: found.dev, ino: found.ino }
}

/// Receives the number of bytes written. May be called from several threads at once.
pub trait Progress: Sync {
    /// This many more bytes are written.
    fn add(&self, bytes: u64);
}
