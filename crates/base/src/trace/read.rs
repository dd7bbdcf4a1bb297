//! Reading traces.

use std::collections::BTreeMap;

use crate::trace::varint::{take, take_signed};
use crate::trace::write;
use crate::trace::{
    Call, End, FILES_MOST, Format, HOLES_MOST, Holes, MAGIC, Op, OtherActions, Trace, TraceFile,
    VERSION, Within, fio,
};

/// Longest frame: writers end one far earlier.
const FRAME_MOST: usize = 16 << 20;
/// Longest path and name of a program.
const TEXT_MOST: u64 = 64 << 10;
/// Most calls: a call of four bytes takes 72 in memory, and as many again in a script.
pub(crate) const CALLS_MOST: usize = 100_000_000;
/// Bytes before the first frame, and of a frame before its records.
const HEADER: usize = 12;
const FRAME_HEAD: usize = 8;

/// A file that is no trace, or a damaged one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {what}")]
pub struct TraceError {
    pub at: Place,
    /// The error there, and its meaning.
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A byte, from 0.
    Byte(u64),
    /// A line of a text and a column in it, both from 1; columns count characters.
    Text { line: u64, column: u64 },
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Byte(byte) => write!(f, "byte {byte}"),
            Place::Text { line, column } => write!(f, "line {line}, column {column}"),
        }
    }
}

/// Reads a trace in gpuio's format, or in fio's text format of version 2 or 3.
///
/// # Errors
/// It is no trace, one of another version or of too many calls, or the first wrong place of a text.
/// Damage behind the first bytes of gpuio's format is no error: see [`Trace::end`].
pub fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
    read_most(bytes, CALLS_MOST)
}

/// As [`read`], with at most so many calls.
pub(crate) fn read_most(bytes: &[u8], most: usize) -> Result<Trace, TraceError> {
    if bytes.starts_with(b"fio version ") {
        return fio::read(bytes, most);
    }
    let wrong = |byte: u64, what: String| TraceError { at: Place::Byte(byte), what };
    if bytes.is_empty() {
        return Err(wrong(0, "the file is empty: no trace was written into it".to_owned()));
    }
    if !bytes.starts_with(&MAGIC) {
        let what = "this is no trace: it begins neither as one of gpuio exec --record nor with \
                    \"fio version 2 iolog\" or \"fio version 3 iolog\"";
        return Err(wrong(0, what.to_owned()));
    }
    let Some(version) = bytes.get(8..10).and_then(|two| two.try_into().ok()) else {
        return Err(wrong(8, "the trace is cut before its version".to_owned()));
    };
    let version = u16::from_le_bytes(version);
    if version != VERSION {
        let other = if version > VERSION { "use a newer one" } else { "record it anew" };
        let what = format!(
            "the trace has version {version}, and this gpuio reads {VERSION}; {other}, or use the \
             gpuio that recorded it"
        );
        return Err(wrong(8, what));
    }
    let Some(frames) = bytes.get(HEADER..) else {
        return Err(wrong(10, "the trace is cut in its first bytes".to_owned()));
    };
    let mut trace = Trace {
        format: Format::Gpuio(version),
        program: None,
        began_unix_ns: 0,
        files: Vec::new(),
        calls: Vec::new(),
        lost: 0,
        senseless: 0,
        end: End::Open,
        other: OtherActions::default(),
    };
    let mut rest = frames;
    let mut sources = BTreeMap::new();
    while !rest.is_empty() {
        let at = (bytes.len() - rest.len()) as u64;
        let (payload, after) = match frame(rest) {
            Ok(split) => split,
            Err(wrong) => {
                trace.end = wrong.map_or(End::Cut(at), |what| End::Damaged(at, what));
                return Ok(trace);
            }
        };
        if trace.end == End::Whole {
            trace.end = End::Damaged(at, AFTER_END);
            return Ok(trace);
        }
        let from = at + FRAME_HEAD as u64;
        if let Err((at, what)) = records(payload, from, &mut trace, &mut sources) {
            trace.end = End::Damaged(at, what);
            return Ok(trace);
        }
        // A frame has 4 million at most.
        if trace.calls.len() > most {
            return Err(wrong(at, too_many(most)));
        }
        rest = after;
    }
    Ok(trace)
}

const AFTER_END: &str = "records follow the trace's end";

pub(crate) fn too_many(most: usize) -> String {
    format!("the trace has more than {most} calls, which is more than gpuio reads; record less")
}

/// The records of a frame, and what follows it.
type Split<'a> = (&'a [u8], &'a [u8]);

/// The records of the first frame and what follows it. The error is its reason, or none where the
/// frame is cut: also by a write that failed late, which leaves zeros up to the end.
fn frame(bytes: &[u8]) -> Result<Split<'_>, Option<&'static str>> {
    let (head, rest) = bytes.split_at_checked(FRAME_HEAD).ok_or(None)?;
    let word = |from: usize| {
        head.get(from..from + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes)
    };
    let (length, sum) = (word(0) as usize, word(4));
    if length == 0 && bytes.iter().all(|byte| *byte == 0) {
        return Err(None);
    }
    if length == 0 || length > FRAME_MOST {
        return Err(Some("a frame has an impossible length"));
    }
    let (payload, after) = rest.split_at_checked(length).ok_or(None)?;
    if write::checksum(payload) != sum {
        return Err(Some("the checksum of a frame does not match"));
    }
    Ok((payload, after))
}

/// The last call of each source.
type Sources = BTreeMap<u32, Call>;

/// Takes the records of a frame. The error is the byte from which on they can't be read, and why.
fn records(
    payload: &[u8],
    from: u64,
    trace: &mut Trace,
    sources: &mut Sources,
) -> Result<(), (u64, &'static str)> {
    let mut rest = payload;
    while let Some((&kind, after)) = rest.split_first() {
        let at = from + (payload.len() - rest.len()) as u64;
        let wrong = |what: &'static str| (at, what);
        rest = after;
        match kind {
            write::PROGRAM => {
                let read = program(&mut rest).ok_or_else(|| wrong("a bad record of a program"))?;
                (trace.began_unix_ns, trace.program) = read;
            }
            write::FILE => {
                let (number, file) =
                    file(&mut rest).ok_or_else(|| wrong("a bad record of a file"))?;
                match trace.files.len() as u64 {
                    next if number == next && next < FILES_MOST.into() => trace.files.push(file),
                    _ => return Err(wrong("files are not numbered in order")),
                }
            }
            write::CALLS => {
                let (source, mut bytes) =
                    source(&mut rest).ok_or_else(|| wrong("a bad record of calls"))?;
                let before = sources.entry(source).or_insert(Call::NONE);
                while !bytes.is_empty() {
                    let call =
                        call(&mut bytes, before).ok_or_else(|| wrong("a bad record of a call"))?;
                    *before = call;
                    // Times of 292 years.
                    if call.end_ns() > i64::MAX as u64 || call.file as usize >= trace.files.len() {
                        trace.senseless += 1;
                    } else {
                        trace.calls.push(call);
                    }
                }
            }
            write::LOST => {
                let count = take(&mut rest).ok_or_else(|| wrong("a bad record of lost calls"))?;
                trace.lost = trace.lost.saturating_add(count);
            }
            write::END if rest.is_empty() => trace.end = End::Whole,
            write::END => return Err(wrong(AFTER_END)),
            _ => return Err(wrong("a record of a kind that this version does not have")),
        }
    }
    Ok(())
}

fn program(from: &mut &[u8]) -> Option<(u64, Option<String>)> {
    let began = take(from)?;
    let name = text(from)?;
    Some((began, Some(name).filter(|name| !name.is_empty())))
}

fn file(from: &mut &[u8]) -> Option<(u64, TraceFile)> {
    let number = take(from)?;
    let flags = byte(from)?;
    let size = take(from).filter(|size| *size <= i64::MAX as u64)?;
    let device = (number_u32(from)?, number_u32(from)?);
    let path = if flags & 8 != 0 { Some(text(from)?) } else { None };
    let count = take(from).filter(|count| *count <= HOLES_MOST as u64)?;
    let mut holes = Vec::new();
    let mut at = 0_u64;
    for _ in 0..count {
        let start = at.checked_add(take(from)?)?;
        let end = start.checked_add(take(from)?).filter(|end| *end > start)?;
        holes.push(start..end);
        at = end;
    }
    let holes = match flags >> 1 & 3 {
        0 if holes.is_empty() => Holes::Unknown,
        1 => Holes::All(holes),
        2 => Holes::First(holes),
        _ => return None,
    };
    let is_device = flags & 1 != 0;
    (flags < 16).then_some((number, TraceFile { path, is_device, size, device, holes }))
}

/// A source and the bytes of its calls.
fn source<'a>(from: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    let source = number_u32(from)?;
    let length = usize::try_from(take(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some((source, bytes))
}

fn call(from: &mut &[u8], before: &Call) -> Option<Call> {
    let flags = byte(from)?;
    let mut call = *before;
    let kind = flags & !write::WHOLE;
    if kind & write::SAME == 0 {
        (call.file, call.thread) = (number_u32(from)?, number_u32(from)?);
        call.within = match kind & (write::IN_BATCH | write::IN_STREAM) {
            0 => Within::Thread,
            write::IN_BATCH => Within::Batch(number_u32(from)?),
            write::IN_STREAM => Within::Stream(number_u32(from)?),
            _ => return None,
        };
        call.gpu = if kind & write::HAS_GPU != 0 { Some(number_u32(from)?) } else { None };
        call.op = if kind & write::WRITES != 0 { Op::Write } else { Op::Read };
    }
    let end_offset = before.offset.wrapping_add(before.bytes);
    call.offset = end_offset.wrapping_add(take_signed(from)?.cast_unsigned());
    if flags & write::WHOLE == 0 {
        call.bytes = take(from)?;
        call.result = call.bytes.cast_signed().wrapping_add(take_signed(from)?);
    } else {
        call.result = call.bytes.cast_signed();
    }
    call.begin_ns = before.begin_ns.wrapping_add(take_signed(from)?.cast_unsigned());
    call.duration_ns = take(from)?;
    (kind <= write::SAME).then_some(call)
}

fn byte(from: &mut &[u8]) -> Option<u8> {
    let (first, rest) = from.split_first()?;
    *from = rest;
    Some(*first)
}

fn number_u32(from: &mut &[u8]) -> Option<u32> {
    u32::try_from(take(from)?).ok()
}

fn text(from: &mut &[u8]) -> Option<String> {
    let length = take(from).filter(|length| *length <= TEXT_MOST)?;
    let (text, rest) = from.split_at_checked(usize::try_from(length).ok()?)?;
    *from = rest;
    String::from_utf8(text.to_vec()).ok()
}
