//! Compressed files. To add a format: a row of [`FORMATS`]. bzip2 has none: the crate that is kept
//! up, `libbz2-rs-sys`, has a licence that `deny.toml` does not list.

use std::io::{self, ErrorKind, Read as _};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use xz4rust::{DICT_SIZE_MIN, XzDecoder};

/// The most bytes that a decoder looks back, and so holds: `xz -9` needs half of it, and `zstd`
/// unpacks no more without `--long`.
const MOST_WINDOW: usize = 128 << 20;

/// A compression of one file.
pub(super) struct Format {
    /// How its files begin.
    mark: &'static [u8],
    /// How their names end, and those of a compressed tar.
    ends: (&'static str, &'static str),
    /// The command that unpacks them.
    pub(super) command: &'static str,
    /// Adds what the bytes hold, up to this length. An error comes after what could be read.
    pub(super) unpack: fn(&[u8], usize, &mut Vec<u8>) -> io::Result<()>,
}

const FORMATS: [Format; 3] = [
    Format { mark: b"\x1f\x8b", command: "gzip -d", ends: (".gz", ".tgz"), unpack: gunzip },
    Format { mark: b"\xfd7zXZ\0", command: "xz -d", ends: (".xz", ".txz"), unpack: unxz },
    Format { mark: b"(\xb5/\xfd", command: "zstd -d", ends: (".zst", ".tzst"), unpack: unzstd },
];

impl Format {
    pub(super) fn of(bytes: &[u8]) -> Option<&'static Self> {
        FORMATS.iter().find(|one| bytes.starts_with(one.mark))
    }

    /// `a.tar.gz` holds `a.tar`, `a.tgz` too.
    pub(super) fn name_inside(&self, name: &str) -> String {
        let (file, tar) = self.ends;
        match name.strip_suffix(tar) {
            Some(start) => format!("{start}.tar"),
            None => name.strip_suffix(file).unwrap_or(name).to_owned(),
        }
    }
}

fn gunzip(bytes: &[u8], most: usize, out: &mut Vec<u8>) -> io::Result<()> {
    flate2::read::MultiGzDecoder::new(bytes).take(most as u64).read_to_end(out).map(drop)
}

fn unxz(mut bytes: &[u8], most: usize, out: &mut Vec<u8>) -> io::Result<()> {
    let mut decoder = XzDecoder::in_heap_with_alloc_dict_size(DICT_SIZE_MIN, MOST_WINDOW);
    let mut piece = vec![0; 64 << 10];
    let mut ended = true;
    while !(ended && bytes.is_empty()) && out.len() < most {
        let step = decoder.decode(bytes, &mut piece).map_err(io::Error::other)?;
        let room = most - out.len();
        out.extend_from_slice(&piece[..step.output_produced().min(room)]);
        bytes = &bytes[step.input_consumed()..];
        ended = step.is_end_of_stream();
        if ended {
            decoder.reset();
            // Streams may follow one another, with zeros between them.
            bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
        } else if !step.made_progress() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

fn unzstd(mut bytes: &[u8], most: usize, out: &mut Vec<u8>) -> io::Result<()> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(MOST_WINDOW as u64);
    while !bytes.is_empty() && out.len() < most {
        match decoder.init(&mut bytes) {
            Ok(()) => frame(&mut decoder, &mut bytes, most, out)?,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                bytes = bytes.get(length as usize..).ok_or(ErrorKind::UnexpectedEof)?;
            }
            Err(why) => return Err(io::Error::other(why)),
        }
    }
    Ok(())
}

/// A frame of zstd (RFC 8878, section 3.1.1) after its header.
fn frame(
    decoder: &mut FrameDecoder,
    bytes: &mut &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    /// An empty block that is the last, and a checksum that is not compared.
    const END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
    let mut take = |decoder: &mut FrameDecoder| {
        let room = most.saturating_sub(out.len());
        decoder.take(room as u64).read_to_end(out).map(|_| out.len() < most)
    };
    while !decoder.is_finished() {
        let block = decoder.decode_blocks(&mut *bytes, BlockDecodingStrategy::UptoBlocks(1));
        if let Err(why) = block {
            // The decoder keeps a window of bytes back until a frame ends.
            if decoder.decode_blocks(&END[..], BlockDecodingStrategy::All).is_ok() {
                take(decoder)?;
            }
            return Err(io::Error::other(why));
        }
        if !take(decoder)? {
            return Ok(());
        }
    }
    match decoder.get_checksum_from_data() {
        Some(sum) if decoder.get_calculated_checksum() != Some(sum) => {
            Err(io::Error::new(ErrorKind::InvalidData, "its checksum is wrong"))
        }
        _ => Ok(()),
    }
}
