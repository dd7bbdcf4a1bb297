//! Which files gpuio wrote, so that `--force` replaces these and no other.
//!
//! A file that gpuio writes gets the attribute `user.gpuio` with the length and a checksum of its
//! bytes, where the file system has attributes (xattr(7)). It is gpuio's as long as the bytes are
//! those. Without the attribute nothing tells a user's own line from gpuio's, so such a file stays.

use std::fs::File;
use std::io::{Read as _, Seek as _};

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

const ATTRIBUTE: &str = "user.gpuio";
/// Longer files are not looked through, and not replaced.
const MOST_BYTES: u64 = 1 << 30;

/// Marks a file that holds these bytes. A file system without attributes is no error.
pub(crate) fn mark(file: &File, bytes: &[u8]) {
    let value = words(bytes.len() as u64, checksum(SEED, bytes));
    let _ = fsetxattr(file, ATTRIBUTE, value.as_bytes(), XattrFlags::empty());
}

/// Whether gpuio wrote the file and its bytes are still those.
pub(crate) fn is_ours(file: &File) -> std::io::Result<bool> {
    let mut value = [0_u8; 64];
    match fgetxattr(file, ATTRIBUTE, value.as_mut_slice()) {
        Ok(length) => {
            let marked = String::from_utf8_lossy(&value[..length.min(value.len())]).into_owned();
            Ok(marked == sum(file)?)
        }
        Err(_) => Ok(false),
    }
}

fn sum(file: &File) -> std::io::Result<String> {
    let mut file = file.try_clone()?;
    file.rewind()?;
    let (mut read, mut state, mut piece) = (0_u64, SEED, vec![0_u8; 64 << 10]);
    while read <= MOST_BYTES {
        let got = file.read(&mut piece)?;
        if got == 0 {
            return Ok(words(read, state));
        }
        read += got as u64;
        state = checksum(state, &piece[..got]);
    }
    Ok("too long".to_owned())
}

fn words(length: u64, checksum: u64) -> String {
    format!("{length} {checksum:016x}")
}

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, which finds any change that nobody made on purpose.
fn checksum(state: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(state, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
