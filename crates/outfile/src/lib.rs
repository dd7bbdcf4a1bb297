//! Files and directories that gpuio makes for its user: results, journals, locks, scratch.
//!
//! Four rules hold for all of them. A name is created or it fails: no symbolic link is followed and
//! no file is truncated. What gets a name is whole: it is written under none (`O_TMPFILE`, open(2))
//! or as a draft, and named at the end. What is replaced or removed is the file that the caller
//! has in mind, by device and inode, or it stays. What a process leaves when it is killed is known
//! by a lock that died with it (flock(2)).

mod directory;
mod draft;
mod private;

pub use directory::{Directory, Found, Identity, Removed};
pub use draft::{Dead, Draft, Unnamed};
pub use private::{Abandoned, Private};

/// Sixteen hexadecimal digits that nobody can foresee: a seed of the system's, hashed.
fn random_name() -> String {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    format!("{:016x}", RandomState::new().build_hasher().finish())
}
