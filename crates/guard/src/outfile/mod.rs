//! Creates, replaces and removes the files and directories that gpuio makes for its user: results,
//! reports, captures, job files, journals, locks, scratch directories.
//!
//! Four rules:
//!
//! - Creating a name succeeds or fails: no symbolic link is followed and no file is truncated.
//! - A name appears only when its file is complete. The file is written without a name
//!   (`O_TMPFILE`, open(2)), or as a draft under a lock where the file system lacks that, and gets
//!   its name only if nothing has it (`linkat`, `RENAME_NOREPLACE`).
//! - Only the file that the caller means, by device and inode, is replaced or removed. To replace
//!   it, the two names are exchanged (`RENAME_EXCHANGE`) and the old file is checked; another file
//!   that appeared in between goes back. Without that call (NFS) the old file is first moved away
//!   and checked, and readers wait for the lock. To remove a file, it first gets an unpredictable
//!   name and is checked there.
//! - Files of a killed process are recognised by a lock that the kernel released with it
//!   (flock(2)). A directory in `$TMPDIR` has mode 0700 and an owner file under such a lock; the
//!   next run of the same user removes abandoned ones, file by file, and names what it leaves.
//!
//! The crate `tempfile` does not fit: its unnamed files can't get a name, and its leftovers can't
//! be distinguished from files in use.

mod directory;
mod draft;
mod place;
mod private;

pub use directory::{Directory, Found, Identity, Mine, Removed};
pub use draft::{AbandonedDraft, Draft, Unnamed};
pub use place::{Place, make_place};
pub use private::{Abandoned, Private, own_directory};

/// Sixteen unpredictable hexadecimal digits: a seed of the system's, hashed.
fn random_name() -> String {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    format!("{:016x}", RandomState::new().build_hasher().finish())
}
