//! The kernel's swap areas: `/proc/swaps`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::parse::unescape_octal;
use crate::{HostError, LineFault, Root};

/// A device or file the kernel swaps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwapArea {
    /// The kernel's path of the device node or file.
    pub path: PathBuf,
    /// Whether it is a file and not a device.
    pub is_file: bool,
}

/// Reads the areas; none when the kernel was built without swapping.
pub(super) fn read(root: &Root) -> Result<Vec<SwapArea>, HostError> {
    let Some((path, bytes)) = root.read_bytes("proc/swaps")? else {
        return Ok(Vec::new());
    };
    parse_swaps(&bytes).map_err(|source| HostError::Malformed { path, source })
}

/// Parses `/proc/swaps`: a heading, then path, type, size, use and priority in columns.
///
/// # Errors
/// [`LineFault`] for the first line without a path and a type.
pub fn parse_swaps(text: &[u8]) -> Result<Vec<SwapArea>, LineFault> {
    let mut areas = Vec::new();
    let lines = text.split(|byte| *byte == b'\n').enumerate().skip(1);
    for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let is_space = |byte: &u8| *byte == b' ' || *byte == b'\t';
        let mut words = line.split(is_space).filter(|word| !word.is_empty());
        let (Some(path), Some(kind)) = (words.next(), words.next()) else {
            let line = String::from_utf8_lossy(line);
            return Err(LineFault::new(index, &line, "a path and a type"));
        };
        let path = PathBuf::from(OsString::from_vec(unescape_octal(path)));
        areas.push(SwapArea { path, is_file: kind == b"file" });
    }
    Ok(areas)
}
