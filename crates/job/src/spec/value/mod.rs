//! Parsers of values. Every error has the offset of the byte that does not fit.

mod beside;
mod choice;
mod feed;
mod list;
mod number;
mod steady;

pub(crate) use beside::{BESIDE, beside};
pub(crate) use choice::{
    ARRIVALS, CPU_POLICIES, DIRECTIONS, DISTRIBUTIONS, FADVISE_HINTS, SHIFTS, STAGE, VERIFY,
    arrivals, ceilings, cpu_policy, cuda_io, distribution, engine, fadvise_hint, file_service,
    fill, fills, fio_engine, fio_memory, gpu, gpu_words, layout, layouts, memories, memory,
    on_or_number, on_or_off, read_shift, rw, sequencer, stage, sync, verify, via_peer, words_of,
};
pub(crate) use feed::{
    COMPUTE, columns, compute, ranges, ratio, repeat, sample_order, sample_size, scale, share, slo,
};
pub use list::one_name;
pub(crate) use list::{
    FIO_NAMES, block_range, block_split, blocks, cpu_mask, cpus, file_names, file_size,
    filename_format, formatted_name, named_format, percentiles, random_percent, words, zones,
};
pub(crate) use number::{
    at_least_one, at_least_one_u32, by_direction, bytes, chunk, device, duration, fio_count,
    fio_microseconds, fio_milliseconds, integer, io_size, node, percent, rate, size, size_percent,
    some_time, xfer_type,
};
pub(crate) use steady::{STEADY, steady};

use gpuio_base::units::UnitError;

/// Why a value is invalid, before its key is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueError {
    /// Byte offset in the value of what does not fit; the value's length where it ends too early.
    pub(crate) at: usize,
    /// The error or the expected value, and the text to write instead.
    pub(crate) meaning: String,
}

impl ValueError {
    pub(crate) fn new(at: usize, meaning: impl Into<String>) -> Self {
        Self { at, meaning: meaning.into() }
    }

    /// Moves the position for a value that began `by` bytes into a longer one.
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        self.at += by;
        self
    }
}

impl From<UnitError> for ValueError {
    fn from(error: UnitError) -> Self {
        Self::new(error.at, format!("expected {}", error.expected))
    }
}

/// The result of a value parser.
pub(crate) type Read<T> = Result<T, ValueError>;

/// An error at this byte.
pub(crate) fn wrong<T>(at: usize, meaning: impl Into<String>) -> Read<T> {
    Err(ValueError::new(at, meaning))
}

/// A text as it stands.
pub(crate) fn text(value: &str) -> Read<String> {
    Ok(value.to_owned())
}

/// The pieces between `separator`s, each with its byte offset. An empty text is one empty piece.
pub(crate) fn pieces(text: &str, separator: char) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split(separator).map(move |piece| {
        let start = at;
        at += piece.len() + separator.len_utf8();
        (start, piece)
    })
}

/// Prepares user text for one line of an error: escapes control characters, and cuts long texts.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut line = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == LONGEST {
            line.push('…');
            break;
        }
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}
