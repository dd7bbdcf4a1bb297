//! ZIP archives (PKWARE's APPNOTE 6.3): stored and deflated members, by the central directory.

use std::io::Read as _;
use std::path::PathBuf;

use gpuio_host::Entry;

use super::{LONG_NAMES, MOST_FILES, Member, TOO_LARGE};

/// The most bytes of one member.
const MOST_MEMBER: u64 = 64 << 20;

/// The files of an archive, up to so many bytes. An error comes after what could be read.
pub(super) fn members(
    bytes: &[u8],
    mut room: u64,
    members: &mut Vec<Member>,
) -> Result<(), String> {
    let broken = || "it can't be read as a zip: its directory is not whole".to_owned();
    let end = find_end(bytes).ok_or_else(broken)?;
    let count = usize::from(u16_at(bytes, end + 10).ok_or_else(broken)?);
    let mut at =
        usize::try_from(u32_at(bytes, end + 16).ok_or_else(broken)?).map_err(|_| broken())?;
    if count > MOST_FILES {
        return Err(format!("it holds more than {MOST_FILES} files"));
    }
    for _ in 0..count {
        let (member, next) = entry(bytes, at).ok_or_else(broken)?;
        at = next;
        let Some((path, body)) = member else { continue };
        if !gpuio_host::may_be_kept(&path) {
            return Err(LONG_NAMES.to_owned());
        }
        room = room.checked_sub(body.len() as u64).ok_or(TOO_LARGE)?;
        members.push(Member { path, entry: Entry::File(body) });
    }
    Ok(())
}

/// The end of the central directory: its mark stands in the last 64 KiB.
fn find_end(bytes: &[u8]) -> Option<usize> {
    let from = bytes.len().saturating_sub(66_000);
    let tail = &bytes[from..];
    let at = tail.windows(4).rposition(|window| window == b"PK\x05\x06")?;
    Some(from + at)
}

type Found = Option<(PathBuf, Vec<u8>)>;

/// A member of the central directory, and where the next one stands; no member for a directory and
/// for what is encrypted or of another method.
fn entry(bytes: &[u8], at: usize) -> Option<(Found, usize)> {
    if bytes.get(at..at + 4)? != b"PK\x01\x02" {
        return None;
    }
    let short = |offset: usize| u16_at(bytes, at + offset).map(usize::from);
    let (flags, method) = (short(8)?, short(10)?);
    let packed = usize::try_from(u32_at(bytes, at + 20)?).ok()?;
    let (name_length, extra, comment) = (short(28)?, short(30)?, short(32)?);
    let local = usize::try_from(u32_at(bytes, at + 42)?).ok()?;
    let name = bytes.get(at + 46..at + 46 + name_length)?;
    let next = at + 46 + name_length + extra + comment;
    let name = String::from_utf8_lossy(name).replace('\\', "/");
    if name.ends_with('/') || flags & 1 != 0 {
        return Some((None, next));
    }
    // The local head has an extra field of its own.
    let before =
        30 + usize::from(u16_at(bytes, local + 26)?) + usize::from(u16_at(bytes, local + 28)?);
    let data = bytes.get(local + before..)?;
    let data = &data[..packed.min(data.len())];
    let mut body = Vec::new();
    let read = match method {
        0 => data.take(MOST_MEMBER).read_to_end(&mut body),
        8 => flate2::read::DeflateDecoder::new(data).take(MOST_MEMBER).read_to_end(&mut body),
        _ => return Some((None, next)),
    };
    let whole = read.is_ok() || !body.is_empty();
    Some((whole.then(|| (PathBuf::from(name.trim_start_matches(['/', '.'])), body)), next))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
