//! What timed writes and the data set put into a file.
//!
//! Timed writes carry the pattern of their own offset, so that what a byte must be follows from its
//! location, independent of the last writer. Before the clock the bytes that a job may write are
//! given other contents ([`other_salt`]): a write that never arrived is then found.

/// Salt of what lies where timed writes will go, made from the pattern's own.
#[must_use]
pub fn other_salt(salt: u64) -> u64 {
    salt ^ 0xa5a5_5a5a_c3c3_3c3c
}
