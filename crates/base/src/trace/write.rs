//! Writing gpuio's format.

use crate::trace::varint::{each_byte, folded, put};
use crate::trace::{Call, Holes, MAGIC, Op, TraceFile, VERSION, Within};

/// Kinds of records.
pub(crate) const PROGRAM: u8 = 0;
pub(crate) const FILE: u8 = 1;
pub(crate) const CALLS: u8 = 2;
pub(crate) const LOST: u8 = 3;
pub(crate) const END: u8 = 4;

/// Bits of the byte that says what a call is: neither in a batch nor in a stream, it is one of its
/// thread.
pub(crate) const WRITES: u8 = 1;
pub(crate) const IN_BATCH: u8 = 2;
pub(crate) const IN_STREAM: u8 = 4;
pub(crate) const HAS_GPU: u8 = 8;
/// Its operation, file, thread, batch or stream, and GPU are those of the call before.
pub(crate) const SAME: u8 = 16;
/// It requested as many bytes as the call before, and all were moved.
pub(crate) const WHOLE: u8 = 32;

/// Longest call: its flags, four numbers of 32 bits and five of 64.
const CALL_MOST: usize = 1 + 4 * 5 + 5 * 10;

/// The calls of one source, each written relative to the one before. A source is a place where
/// calls come one after another, such as the thread that records them.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    before: Call,
}

impl Default for Source {
    fn default() -> Source {
        Source { before: Call::NONE }
    }
}

impl Source {
    /// The bytes of the next call, for [`Frame::calls`] of this source in this order. None may be
    /// left out.
    #[inline]
    pub fn encode(&mut self, call: &Call) -> Encoded {
        let before = std::mem::replace(&mut self.before, *call);
        let is_same = (call.op, call.file, call.thread, call.within, call.gpu)
            == (before.op, before.file, before.thread, before.within, before.gpu);
        let is_whole = call.bytes == before.bytes && call.result == call.bytes.cast_signed();
        let mut out = Encoded { bytes: [0; _], length: 0 };
        let whole = if is_whole { WHOLE } else { 0 };
        if is_same {
            out.push(SAME | whole);
        } else {
            let (within, group) = match call.within {
                Within::Thread => (0, None),
                Within::Batch(number) => (IN_BATCH, Some(number)),
                Within::Stream(number) => (IN_STREAM, Some(number)),
            };
            let writes = if call.op == Op::Write { WRITES } else { 0 };
            out.push(writes | within | whole | if call.gpu.is_some() { HAS_GPU } else { 0 });
            out.put(call.file.into());
            out.put(call.thread.into());
            for number in [group, call.gpu].into_iter().flatten() {
                out.put(number.into());
            }
        }
        let end_offset = before.offset.wrapping_add(before.bytes);
        out.put(folded(call.offset.wrapping_sub(end_offset).cast_signed()));
        if !is_whole {
            out.put(call.bytes);
            out.put(folded(call.result.wrapping_sub(call.bytes.cast_signed())));
        }
        out.put(folded(call.begin_ns.wrapping_sub(before.begin_ns).cast_signed()));
        out.put(call.duration_ns);
        out
    }
}

/// A call as its source writes it.
#[derive(Debug, Clone, Copy)]
pub struct Encoded {
    /// One byte for the length, which whole words begin with.
    bytes: [u8; 8 * Encoded::WORDS_MOST],
    length: usize,
}

impl Encoded {
    /// Most [`Encoded::words`].
    pub const WORDS_MOST: usize = (1 + CALL_MOST).div_ceil(8);

    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(1..=self.length).unwrap_or_default()
    }

    /// Its length in the lowest byte, then its bytes, and zeros up to a whole word.
    #[inline]
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let (words, _) = self.bytes.as_chunks::<8>();
        let length = self.length as u64;
        let count = (1 + self.length).div_ceil(8);
        words
            .iter()
            .take(count)
            .enumerate()
            .map(move |(nth, word)| u64::from_le_bytes(*word) | if nth == 0 { length } else { 0 })
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        // There is space: `CALL_MOST`.
        if let Some(next) = self.bytes.get_mut(1 + self.length) {
            *next = byte;
            self.length += 1;
        }
    }

    #[inline]
    fn put(&mut self, value: u64) {
        each_byte(value, |byte| self.push(byte));
    }
}

/// The first bytes of a trace: mark and version.
pub fn header() -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// A checksum of a frame: FNV-1a of 64 bits over whole little-endian words of eight bytes, then
/// over each byte of the rest; its halves together.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let step = |hash: u64, next: u64| (hash ^ next).wrapping_mul(0x0000_0100_0000_01b3);
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let all = words.chain(rest.iter().map(|byte| u64::from(*byte)));
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, step);
    (hash >> 32) as u32 ^ (hash & 0xffff_ffff) as u32
}

/// Records that become a frame.
#[derive(Debug, Default)]
pub struct Frame {
    payload: Vec<u8>,
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

    /// Calls of a source, in its order: whole ones, as [`Source::encode`] made them.
    pub fn calls(&mut self, source: u32, encoded: &[u8]) {
        self.payload.push(CALLS);
        put(&mut self.payload, source.into());
        put(&mut self.payload, encoded.len() as u64);
        self.payload.extend_from_slice(encoded);
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
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}
