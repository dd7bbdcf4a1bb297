//! Writing gpuio's format.

use crate::trace::varint::{put, put_signed};
use crate::trace::{Call, Holes, MAGIC, Op, TraceFile, VERSION, Within};

/// Kinds of records.
pub(crate) const PROGRAM: u8 = 0;
pub(crate) const FILE: u8 = 1;
pub(crate) const CALL: u8 = 2;
pub(crate) const LOST: u8 = 3;
pub(crate) const END: u8 = 4;

/// Bits of the byte that says what a call is.
pub(crate) const WRITES: u8 = 1;
pub(crate) const IN_BATCH: u8 = 2;
pub(crate) const IN_STREAM: u8 = 4;
pub(crate) const HAS_GPU: u8 = 8;

/// The base of relative values in records of calls, from the frame's start on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before {
    pub(crate) begin_ns: u64,
    pub(crate) end_offset: u64,
}

impl Before {
    /// That of the next call.
    pub(crate) fn after(call: &Call) -> Before {
        Before { begin_ns: call.begin_ns, end_offset: call.offset.wrapping_add(call.bytes) }
    }
}

/// The first bytes of a trace: mark and version.
pub fn header() -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// A checksum of a frame: FNV-1a of 64 bits, its halves together.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash >> 32) as u32 ^ (hash & 0xffff_ffff) as u32
}

/// Records that become a frame.
#[derive(Debug, Default)]
pub struct Frame {
    payload: Vec<u8>,
    before: Before,
}

impl Frame {
    pub fn new() -> Frame {
        Frame::default()
    }

    /// Bytes of its records.
    pub fn len(&self) -> usize {
        self.payload.len()
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// The program and when recording began, nanoseconds since 1970. An empty name is anonymous.
    pub fn program(&mut self, name: &str, began_unix_ns: u64) {
        self.payload.push(PROGRAM);
        put(&mut self.payload, began_unix_ns);
        text(&mut self.payload, name);
    }

    /// A file, before the first call that has its number. Numbers count from 0.
    pub fn file(&mut self, number: u32, file: &TraceFile) {
        let out = &mut self.payload;
        out.push(FILE);
        put(out, number.into());
        let (state, holes) = match &file.holes {
            Holes::Unknown => (0, &[][..]),
            Holes::All(all) => (1, &all[..]),
            Holes::First(first) => (2, &first[..]),
        };
        out.push(u8::from(file.is_device) | state << 1 | u8::from(file.path.is_some()) << 3);
        put(out, file.size);
        put(out, file.device.0.into());
        put(out, file.device.1.into());
        if let Some(path) = &file.path {
            text(out, path);
        }
        put(out, holes.len() as u64);
        let mut at = 0;
        for hole in holes {
            put(out, hole.start.saturating_sub(at));
            put(out, hole.end.saturating_sub(hole.start));
            at = hole.end;
        }
    }

    pub fn call(&mut self, call: &Call) {
        let out = &mut self.payload;
        out.push(CALL);
        let (within, group) = match call.within {
            Within::Thread => (0, None),
            Within::Batch(number) => (IN_BATCH, Some(number)),
            Within::Stream(number) => (IN_STREAM, Some(number)),
        };
        let writes = if call.op == Op::Write { WRITES } else { 0 };
        out.push(writes | within | if call.gpu.is_some() { HAS_GPU } else { 0 });
        put(out, call.file.into());
        put(out, call.thread.into());
        put_signed(out, call.offset.wrapping_sub(self.before.end_offset).cast_signed());
        put(out, call.bytes);
        // Mostly all bytes were moved.
        put_signed(out, call.result.wrapping_sub(call.bytes.cast_signed()));
        put_signed(out, call.begin_ns.wrapping_sub(self.before.begin_ns).cast_signed());
        put(out, call.duration_ns);
        for number in [group, call.gpu].into_iter().flatten() {
            put(out, number.into());
        }
        self.before = Before::after(call);
    }

    /// So many calls could not be recorded.
    pub fn lost(&mut self, count: u64) {
        self.payload.push(LOST);
        put(&mut self.payload, count);
    }

    pub fn end(&mut self) {
        self.payload.push(END);
    }

    /// The bytes to append to the trace; the frame is empty afterwards and can be used again.
    pub fn take(&mut self, out: &mut Vec<u8>) {
        if self.payload.is_empty() {
            return;
        }
        // Callers end a frame long before that.
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&checksum(&self.payload).to_le_bytes());
        out.extend_from_slice(&self.payload);
        self.payload.clear();
        self.before = Before::default();
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}
