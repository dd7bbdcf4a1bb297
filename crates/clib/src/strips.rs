//! Columns of a matrix by whole rows: where rows are short, one read of many whole rows and a copy
//! that takes them apart cost less than a read for each row.

use std::ops::Range as Span;

use gpuio_gpu::{Context, DevPtr, DeviceBuf, MemoryKind, Stream};
use gpuio_transfer::MemoryLocation;

use crate::error::CallError;
use crate::memory::Moved;
use crate::parts::{Range, Target};
use crate::process::{read, transfer};

/// A read costs as much as so many bytes: batches of rows of 4 KiB arrive at a fourth of the rate
/// of long reads (two H200).
const READ: u64 = 16 << 10;
/// Bytes of whole rows that are read at once.
const STRIP: u64 = 16 << 20;

/// Whole rows, of which columns go to memory of GPUs.
pub(crate) struct Strip {
    /// The rows that are read, from the first column on.
    pub(crate) rows: Range,
    columns: Vec<Column>,
}

/// Bytes of each row.
struct Column {
    /// From the first column on.
    skip: usize,
    len: usize,
    /// The first row's.
    to: Target,
}

/// Memory of a lane for whole rows of one device.
pub(crate) struct Rows {
    buffer: DeviceBuf,
    location: MemoryLocation,
    pub(crate) stream: Stream,
}

/// Takes ranges that are columns of the same rows, where strips cost less. `reach`: each GPU
/// reaches the others' memory.
pub(crate) fn take(ranges: &mut Vec<Range>, reach: bool) -> Vec<Strip> {
    let mut found: Vec<Range> = ranges.extract_if(.., |one| is_column(one)).collect();
    let key = |one: &Range| {
        let device = one.to.location.device().filter(|_| !reach);
        (one.fd, one.rows, one.stride, device, one.offset)
    };
    found.sort_by_key(key);
    let mut strips = Vec::new();
    let mut left = found.into_iter().peekable();
    while let Some(first) = left.next() {
        let (end, same) = (first.offset + first.stride, key(&first));
        let mut columns = vec![first];
        while let Some(next) = left.next_if(|next| {
            let (fd, rows, stride, device, offset) = key(next);
            (fd, rows, stride, device) == (same.0, same.1, same.2, same.3)
                && offset + next.len as u64 <= end
        }) {
            columns.push(next);
        }
        let by_rows: u64 = columns.iter().map(|one| (one.len as u64).max(READ)).sum();
        // A row of any length would take memory of its length.
        if columns[0].stride <= STRIP && columns[0].stride < by_rows {
            add(&columns, &mut strips);
        } else {
            ranges.append(&mut columns);
        }
    }
    strips
}

/// Whether it has several rows, and copies between devices reach its memory.
fn is_column(one: &Range) -> bool {
    let end = one.stride.checked_mul(one.rows).and_then(|all| all.checked_add(one.offset));
    let is_in_row = one.len as u64 <= one.stride;
    one.rows > 1
        && one.copies.is_empty()
        && end.is_some()
        && is_in_row
        && one.to.location.device().is_some()
}

/// Cuts rows into strips, each read by the GPU of another column.
fn add(columns: &[Range], strips: &mut Vec<Strip>) {
    let (rows, stride) = (columns[0].rows, columns[0].stride);
    let start = columns[0].offset;
    let width = columns.iter().map(|one| one.offset - start + one.len as u64).max().unwrap_or(0);
    let many = (STRIP / stride).max(1);
    let mut first = 0;
    while first < rows {
        let count = many.min(rows - first);
        let reader = &columns[strips.len() % columns.len()];
        let column = |one: &Range| Column {
            skip: usize::try_from(one.offset - start).unwrap_or(usize::MAX),
            len: one.len,
            to: Target { address: one.to.address + first * one.len as u64, ..one.to },
        };
        let len = (count - 1) * stride + width;
        strips.push(Strip {
            rows: Range {
                fd: reader.fd,
                file: reader.file.clone(),
                to: reader.to,
                copies: Vec::new(),
                offset: start + first * stride,
                len: usize::try_from(len).unwrap_or(usize::MAX),
                rows: count,
                stride,
            },
            columns: columns.iter().map(column).collect(),
        });
        first += count;
    }
}

impl Strip {
    /// The GPU to which a lane reads the whole rows.
    pub(crate) fn device(&self, lane: usize) -> Option<u32> {
        self.columns[lane % self.columns.len()].to.location.device()
    }

    /// Its columns, to be read row by row.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Range> {
        let Range { fd, file, offset, rows, stride, .. } = &self.rows;
        self.columns.iter().map(move |column| Range {
            fd: *fd,
            file: file.clone(),
            to: column.to,
            copies: Vec::new(),
            offset: offset + column.skip as u64,
            len: column.len,
            rows: *rows,
            stride: *stride,
        })
    }

    /// Reads the rows and begins the copies of its columns.
    pub(crate) fn read(&self, rows: &Rows) -> Result<Moved, CallError> {
        let Range { file, offset, len, .. } = &self.rows;
        let wrong = |error| CallError::of_gpu(&error);
        // The copies of the strip before use the memory.
        rows.stream.context().entered(|| rows.stream.sync()).flatten().map_err(wrong)?;
        let (at, to) = (rows.buffer.ptr(), rows.location);
        // SAFETY: the lane's own memory, of a strip's length at least.
        let done = unsafe { read(file, to, at.0, *len, *offset) };
        let done = done.map_err(|fault| CallError::of_fault(&fault))?;
        let stride = usize::try_from(self.rows.stride).unwrap_or(usize::MAX);
        let count = usize::try_from(self.rows.rows).unwrap_or(usize::MAX);
        let copied = rows.stream.context().entered(|| {
            self.columns.iter().try_for_each(|Column { skip, len, to }| {
                let (to, from) = (DevPtr(to.address), at.byte_add(*skip as u64));
                // SAFETY: the caller's promise for all of the call, which waits for the stream; the
                // rows are in the buffer.
                unsafe { rows.stream.copy_rows((to, *len), (from, stride), *len, count) }
            })
        });
        copied.flatten().map_err(wrong)?;
        let wanted = self.columns.iter().map(|column| wanted(done.bytes, column, stride, count));
        Ok(Moved::of_some(done, wanted.sum()))
    }
}

/// Bytes of a column in the first `bytes` of `count` rows.
fn wanted(bytes: usize, Column { skip, len, .. }: &Column, stride: usize, count: usize) -> u64 {
    let in_row = |span: Span<usize>| span.end.min(bytes).saturating_sub(span.start);
    let whole = bytes.saturating_sub(*skip) / stride;
    let (whole, at) = if whole < count { (whole, whole * stride + skip) } else { (count, bytes) };
    (whole * len + in_row(at..at + len)) as u64
}

impl Rows {
    /// Memory on the device of this context for a strip of the longest kind.
    pub(crate) fn new(context: &Context, len: usize) -> Result<Self, CallError> {
        let wrong = |error| CallError::of_gpu(&error);
        let buffer = DeviceBuf::alloc(context, MemoryKind::Device, len).map_err(wrong)?;
        let location = transfer().locate(buffer.ptr().0).map_err(wrong)?;
        Ok(Self { buffer, location, stream: Stream::new(context).map_err(wrong)? })
    }
}
