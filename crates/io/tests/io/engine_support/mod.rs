//! The common parts of the engine tests: files with known bytes, memory in slots, and a loop that
//! counts.
#![allow(unsafe_code)]

use gpuio_io::buf::Aligned;
use gpuio_io::engine::{
    Done, ENGINES, Engine, EngineConfig, EngineEntry, EngineFile, Inject, Io, LegCounters, Op,
    OpenedEngine, Push, Span, build,
};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

pub(crate) const PAGE: usize = 4096;

/// The byte that belongs at an offset of a fresh file.
pub(crate) fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56).to_le_bytes()[0] | 1
}

/// A file of `len` known bytes, none of them 0.
pub(crate) fn make_file(path: &Path, len: usize) -> File {
    let bytes: Vec<u8> = (0..len as u64).map(byte_at).collect();
    std::fs::write(path, bytes).unwrap();
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// Opens with O_DIRECT; nothing, with the reason printed, where the file system refuses.
pub(crate) fn open_direct(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path);
    let refused = match &file {
        Ok(file) => {
            // Some file systems take the flag and refuse the I/O.
            let mut page = Aligned::new(PAGE).unwrap();
            file.read_at(page.slice_mut(), 0).err()
        }
        Err(err) => Some(std::io::Error::from(err.kind())),
    };
    match refused {
        None => file.ok(),
        Some(err) => {
            eprintln!("skipped: O_DIRECT is refused on {}: {err}", path.display());
            None
        }
    }
}

/// Memory for `depth` I/Os of up to `size` bytes.
pub(crate) struct Slots {
    pub(crate) memory: Aligned,
    pub(crate) size: usize,
}

impl Slots {
    pub(crate) fn new(depth: u32, size: usize) -> Slots {
        let size = size.next_multiple_of(PAGE);
        Slots { memory: Aligned::new(size * depth as usize).unwrap(), size }
    }

    /// The bytes of a slot with no I/O out.
    pub(crate) fn bytes(&mut self, slot: u32) -> &mut [u8] {
        let from = slot as usize * self.size;
        // SAFETY: the slot lies inside the memory.
        let ptr = unsafe { self.memory.as_ptr().add(from) };
        // SAFETY: the tests touch a slot only while no I/O with it is out, and spans of other
        // slots do not reach it.
        unsafe { std::slice::from_raw_parts_mut(ptr, self.size) }
    }

    pub(crate) fn span(&self, slot: u32, len: u32) -> Span {
        // SAFETY: engines in the tests are dropped, or have given all back, before the memory.
        unsafe { self.memory.span(slot as usize * self.size, len) }.unwrap()
    }

    pub(crate) fn io(&self, op: Op, slot: u32, offset: u64, len: u32) -> Io {
        Io { op, file: 0, offset, span: self.span(slot, len), token: slot }
    }
}

pub(crate) fn config(
    files: &[&File],
    len: usize,
    depth: u32,
    slots: &Slots,
    direct: bool,
) -> EngineConfig {
    let file = |file: &&File| EngineFile { fd: file.as_raw_fd(), len: len as u64, writable: true };
    let files = files.iter().map(file).collect();
    // As the largest blocks of drives are: what holds at multiples of these holds at all.
    EngineConfig {
        depth,
        files,
        region: Some(slots.memory.region()),
        direct,
        direct_alignment: 4096,
    }
}

/// The whole stack, or nothing, with the reason printed, where the engine can't run.
pub(crate) fn open(
    row: &EngineEntry,
    config: &EngineConfig,
    inject: Option<&Inject>,
) -> Option<(Box<dyn Engine>, Arc<LegCounters>)> {
    if let Err(why) = (row.available)() {
        eprintln!("skipped: {}: {why}", row.info.name);
        return None;
    }
    let counters = Arc::new(LegCounters::default());
    let OpenedEngine { engine, .. } = build(row, config, inject, Arc::clone(&counters)).unwrap();
    assert_eq!(engine.synchronous(), !row.info.asynchronous);
    Some((engine, counters))
}

/// Pushes one I/O and takes what comes back of it and others; the engine has space in the end.
pub(crate) fn push(engine: &mut dyn Engine, mut io: Io, done: &mut Vec<Done>) {
    loop {
        match engine.push(io) {
            Push::Taken => return,
            Push::Done(back) => {
                done.push(back);
                return;
            }
            Push::Full(back) => {
                assert_eq!((back.token, back.offset), (io.token, io.offset));
                io = back;
                engine.reap(done, 1).unwrap();
            }
        }
    }
}

/// Waits for all that is out.
pub(crate) fn drain(engine: &mut dyn Engine, done: &mut Vec<Done>) {
    engine.reap(done, usize::MAX).unwrap();
    assert_eq!(engine.in_flight(), 0);
}

/// One I/O from push to answer.
pub(crate) fn one(engine: &mut dyn Engine, io: Io) -> Done {
    let mut done = Vec::new();
    push(engine, io, &mut done);
    drain(engine, &mut done);
    assert_eq!(done.len(), 1);
    assert_eq!((done[0].io.token, done[0].io.offset), (io.token, io.offset));
    assert_eq!(done[0].io.span.len(), io.span.len());
    done[0]
}

/// Engines that work with every file. Polled completions need `O_DIRECT` and a device with poll
/// queues (`nvme.poll_queues`), which no test may rely on: elsewhere each I/O fails.
pub(crate) fn on_any_file() -> impl Iterator<Item = &'static EngineEntry> {
    ENGINES.iter().filter(|row| row.info.name != "io_uring-iopoll")
}
