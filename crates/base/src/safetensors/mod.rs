//! Headers of files of the safetensors format: which tensors a file has, and where their bytes are.
//!
//! Format (huggingface/safetensors, README): 8 bytes with the length of the header, little endian;
//! the header, a JSON object of at most 100 MB with `dtype`, `shape` and `data_offsets` of each
//! tensor, offsets from the end of the header on, and texts under `__metadata__`; then the data of
//! all tensors, without holes. Where the README leaves something open, what the format's own
//! library (0.8) accepts is accepted here, and what it refuses is refused: `cases.txt`. A name that
//! two tensors have is not open: the README disallows it, though that library takes the last one.
//!
//! - [`read`]: the header of a file, for everyone who has one: `gpuio workload safetensors`, the C
//!   library, and through it the Python module.
//! - `json`: the JSON of a header, as strict as the format's library is.
//! - `other`: other kinds of files, by their first bytes, which are taken for models by mistake.
//! - [`arrange()`]: where the tensors go in memory.
//! - [`loader`]: how much is read at once where a model is loaded by `gpuio.safetensors`.
//! - [`Dtype`]: the types of elements. To add one: a row in its table.
//!
//! It neither opens a file nor moves tensors. Pure: no file, no clock, no environment; the caller
//! reads.

mod arrange;
mod dtype;
mod json;
pub mod loader;
mod other;

use std::collections::{HashMap, HashSet};
use std::io;

use crate::units::printable;

pub use arrange::{Arrangement, Place, Run, arrange};
pub use dtype::Dtype;

/// Longest header that the format allows, bytes.
pub const HEADER_MOST: u64 = 100_000_000;
/// Bytes of the length before the header.
pub const LENGTH_BYTES: u64 = 8;
/// First bytes of a file by which other kinds of files are recognised.
const KNOWN_BY: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The tensors, in the order of the header.
    pub tensors: Vec<Tensor>,
    /// Names and texts under `__metadata__`, each name once.
    pub metadata: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    pub name: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its shape, in elements.
    pub shape: Vec<u64>,
    /// First byte in the file.
    pub offset: u64,
    /// Length in bytes; 0 for tensors without elements.
    pub length: u64,
}

/// The error in a file, and its byte.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset}: {what}")]
pub struct SafetensorsError {
    /// Byte offset in the file.
    pub offset: u64,
    pub what: String,
}

/// Why a header could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is read, and is not of the format.
    #[error(transparent)]
    Wrong(#[from] SafetensorsError),
}

/// Text of a file for a message: short, and in one line.
fn shown(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        None => printable(text).into_owned(),
        Some((end, _)) => format!("{}…", printable(&text[..end])),
    }
}

fn wrong<T>(offset: u64, what: impl Into<String>) -> Result<T, SafetensorsError> {
    Err(SafetensorsError { offset, what: what.into() })
}

/// Reads the header of a file of `file_bytes`. `read_at` fills what it is given from an offset of
/// the file on, and returns how many bytes it filled, 0 only at the end of the file.
///
/// # Errors
/// `read_at` fails, or the file is not of the format.
pub fn read(
    file_bytes: u64,
    mut read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> Result<Header, ReadError> {
    let mut whole = |bytes: &mut [u8], at: u64| {
        let mut known = 0;
        while known < bytes.len() {
            match read_at(&mut bytes[known..], at + known as u64) {
                Ok(0) => break,
                Ok(more) => known += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(known)
    };
    let mut first = [0; KNOWN_BY];
    let known = whole(&mut first, 0)?;
    let length = header_bytes(&first[..known], file_bytes)?;
    // At most what the format allows, and not more than the file has.
    let mut text = vec![0; usize::try_from(length).unwrap_or(0)];
    let known = whole(&mut text, LENGTH_BYTES)?;
    if known < text.len() {
        let end = LENGTH_BYTES + known as u64;
        wrong(end, "the file became shorter while its header was read")?;
    }
    if !text.trim_ascii_start().starts_with(b"{")
        && let Some(other) = other::kind(&first)
    {
        wrong(0, other)?;
    }
    Ok(header(&text, file_bytes)?)
}

/// Length of the header, from the first bytes of a file of `file_bytes`.
///
/// # Errors
/// The file is too short, or the header would be longer than the file or the format allows.
pub fn header_bytes(first: &[u8], file_bytes: u64) -> Result<u64, SafetensorsError> {
    if file_bytes == 0 {
        return wrong(0, "the file is empty");
    }
    let Some(length) = first.first_chunk::<8>() else {
        let what = "the file ends before the 8 bytes of the header's length";
        return wrong(first.len() as u64, what);
    };
    let length = u64::from_le_bytes(*length);
    let is_cut = length > file_bytes.saturating_sub(LENGTH_BYTES);
    if let Some(other) = other::kind(first).filter(|_| length > HEADER_MOST || is_cut) {
        return wrong(0, other);
    }
    if length > HEADER_MOST {
        let what = format!(
            "its header would have {length} bytes, and the format allows {HEADER_MOST}: it is no \
             file of this format, or a damaged one"
        );
        return wrong(0, what);
    }
    if is_cut {
        let what = format!("a header of {length} bytes in a file of {file_bytes}: it is cut short");
        return wrong(0, what);
    }
    if length == 0 {
        return wrong(0, "its header has 0 bytes: the file was perhaps made, and never filled");
    }
    Ok(length)
}

/// The header of a file of `file_bytes`, from its text.
///
/// # Errors
/// The error, with the offset in the file: for a tensor, that of its name.
pub fn header(text: &[u8], file_bytes: u64) -> Result<Header, SafetensorsError> {
    let data = LENGTH_BYTES + text.len() as u64;
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let at = LENGTH_BYTES + error.valid_up_to() as u64;
            return wrong(at, "the header is no UTF-8");
        }
    };
    let json::Parsed { entries, metadata } = json::parse(text)
        .map_err(|(at, what)| SafetensorsError { offset: LENGTH_BYTES + at as u64, what })?;
    let mut tensors = Vec::with_capacity(entries.len());
    let room = file_bytes.saturating_sub(data);
    let mut names = HashSet::with_capacity(entries.len());
    if let Some((name, _)) = entries.iter().find(|(name, _)| !names.insert(name.as_str())) {
        return at_name(text, name, "two tensors have its name, of which one would be lost");
    }
    for (name, entry) in entries {
        let length = length(&entry, room);
        let length = length.or_else(|what| at_name(text, &name, what))?;
        let json::Entry { dtype, shape, data_offsets: (begin, _) } = entry;
        tensors.push(Tensor { name, dtype, shape, offset: data + begin, length });
    }
    gapless(text, &tensors, (data, file_bytes))?;
    Ok(Header { tensors, metadata: last_of_each(metadata) })
}

/// Each name once, with what stands last under it, as the format's library takes it.
fn last_of_each<T>(all: Vec<(String, T)>) -> Vec<(String, T)> {
    let mut last: HashMap<&str, usize> = HashMap::with_capacity(all.len());
    for (at, (name, _)) in all.iter().enumerate() {
        last.insert(name, at);
    }
    if last.len() == all.len() {
        return all;
    }
    let is_last = |(at, (name, _)): (usize, &(String, T))| last[&**name] == at;
    let kept: Vec<bool> = all.iter().enumerate().map(is_last).collect();
    all.into_iter().zip(kept).filter_map(|(one, kept)| kept.then_some(one)).collect()
}

/// A fault of a tensor, where its name stands in the file.
fn at_name<T>(text: &str, name: &str, what: impl std::fmt::Display) -> Result<T, SafetensorsError> {
    let quoted = serde_json::Value::String(name.to_owned()).to_string();
    // A name that is escaped in another way is not found: the header's begin is said then.
    let at = LENGTH_BYTES + text.find(&quoted).unwrap_or(0) as u64;
    wrong(at, format!("tensor '{}': {what}", shown(name)))
}

/// Bytes of a tensor, where its shape, its type and its place agree.
fn length(entry: &json::Entry, room: u64) -> Result<u64, String> {
    let (begin, end) = entry.data_offsets;
    if begin > end || end > room {
        return Err(format!("bytes {begin} to {end} are not within the {room} bytes of data"));
    }
    let (dtype, has) = (entry.dtype.name(), end - begin);
    let elements = entry.shape.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
    let Some(bits) = elements.and_then(|all| all.checked_mul(entry.dtype.bits())) else {
        return Err("its shape has more elements than 64 bits can count".to_owned());
    };
    if bits % 8 != 0 {
        return Err(format!("its {bits} bits, by shape and dtype {dtype}, are no whole bytes"));
    }
    match bits / 8 == has {
        true => Ok(has),
        false => Err(format!("{has} bytes of data do not fit its shape and dtype {dtype}")),
    }
}

/// Whether the tensors are all of the data, once.
fn gapless(
    text: &str,
    all: &[Tensor],
    (data, file_bytes): (u64, u64),
) -> Result<(), SafetensorsError> {
    let mut order: Vec<&Tensor> = all.iter().collect();
    order.sort_by_key(|tensor| (tensor.offset, tensor.length));
    let mut end = data;
    for tensor in order {
        if tensor.offset != end {
            let how = if tensor.offset < end { "overlaps the one before" } else { "leaves a hole" };
            let what = format!("its data at offset {} {how}", tensor.offset);
            return at_name(text, &tensor.name, what);
        }
        end += tensor.length;
    }
    match end == file_bytes {
        true => Ok(()),
        false => wrong(end, "bytes follow that are of no tensor"),
    }
}

#[cfg(test)]
mod tests;
