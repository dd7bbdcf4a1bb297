//! The kind of data on a device, by its first and last MiB.
//!
//! Marks of file systems, volume managers, RAID and partition tables, by their published disk
//! formats. The list errs towards finding too much: a mark left by an earlier use counts, since
//! only the owner knows that it is old.

mod magic;
mod scan;

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use gpuio_record::facts::Signature;

/// How much is read at each end of a device, in bytes.
pub const END_BYTES: usize = 1 << 20;

/// The two ends of a device or of an image of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    /// The first MiB, or all of a smaller device.
    head: Vec<u8>,
    /// The last MiB, or all of a smaller device.
    tail: Vec<u8>,
    /// Size of the device, in bytes.
    size: u64,
}

impl Ends {
    /// Reads both ends of an open device or file, by its own size. Moves the file's position.
    ///
    /// # Errors
    /// The errors of `lseek(2)` and `pread(2)`; an I/O error at either end is an error here, as an
    /// end that cannot be read may hold anything.
    pub fn read(file: &File) -> io::Result<Self> {
        let mut cursor = file;
        let size = cursor.seek(SeekFrom::End(0))?;
        let length = usize::try_from(size).map_or(END_BYTES, |size| size.min(END_BYTES));
        let (mut head, mut tail) = (vec![0; length], vec![0; length]);
        file.read_exact_at(&mut head, 0)?;
        file.read_exact_at(&mut tail, size - length as u64)?;
        Ok(Self { head, tail, size })
    }

    /// Ends that are in memory already; `tail` ends at `size`.
    pub fn of(head: Vec<u8>, tail: Vec<u8>, size: u64) -> Self {
        Self { head, tail, size }
    }

    /// Size of the device, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size
    }

    /// Whether both ends hold nothing but zeros.
    pub fn are_zero(&self) -> bool {
        self.head.iter().chain(&self.tail).all(|byte| *byte == 0)
    }

    /// Every mark found, by offset and then name, each once.
    pub fn signatures(&self) -> Vec<Signature> {
        scan::signatures(self)
    }

    /// `length` bytes at `offset` of the device, when an end covers them.
    fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        slice(&self.head, offset, length).or_else(|| {
            let start = self.size.checked_sub(self.tail.len() as u64)?;
            slice(&self.tail, offset.checked_sub(start)?, length)
        })
    }

    fn holds(&self, offset: u64, bytes: &[u8]) -> bool {
        self.at(offset, bytes.len()) == Some(bytes)
    }

    fn u16_le(&self, offset: u64) -> Option<u16> {
        Some(u16::from_le_bytes(self.at(offset, 2)?.try_into().ok()?))
    }

    fn u32_le(&self, offset: u64) -> Option<u32> {
        Some(u32::from_le_bytes(self.at(offset, 4)?.try_into().ok()?))
    }
}

fn slice(bytes: &[u8], offset: u64, length: usize) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(length)?)
}
