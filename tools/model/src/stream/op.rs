//! Replaces `op.rs` and `file_io.rs`: a transfer whose file side is one access.

use std::sync::Arc;

use super::ResolvedParams;
use super::chunks::{PieceRange, Progress};
use super::latency::{StreamKey, StreamLatency};
use super::staging::{StagingBuffer, StagingBuffers};
use super::workers::StreamWorkers;
use crate::Op;
use crate::fault::Fault;
use crate::mapped::MappedRange;
use crate::sync::Guarded;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::{RawStream, UserStream};

#[derive(Debug, Clone, Copy)]
pub enum Method {
    Kernel,
    #[expect(dead_code, reason = "the sources ask for it")]
    BlockingCall(()),
}

#[derive(Debug)]
pub struct StreamDevice {
    pub buffers: &'static StagingBuffers,
}

#[derive(Debug)]
pub struct Resolved {
    pub read: ResolvedParams,
    pub refused: Option<Fault>,
    pub len: u64,
    pub offset: u64,
    pub address: u64,
}

/// The bytes of the two halves, in two pieces each.
#[derive(Debug)]
pub struct Memory([[Guarded<u64>; 2]; 2], usize);

impl Memory {
    /// The access of the stream's kernel to a half.
    pub fn seen(&self, half: usize, value: u64) {
        for piece in &self.0[half][..self.1] {
            // SAFETY: the model checks that no thread writes it now.
            assert_eq!(unsafe { *piece.read() }, value, "bytes of another chunk");
        }
    }

    pub fn put(&self, half: usize, value: u64) {
        for piece in &self.0[half][..self.1] {
            // SAFETY: the model checks that no thread uses it now.
            unsafe { *piece.write() = value };
        }
    }
}

/// A transfer in a stream, as far as the sources need it.
#[derive(Debug)]
pub struct StreamOp {
    pub stream_device: StreamDevice,
    pub key: StreamKey,
    pub latency: Arc<StreamLatency>,
    pub op: Op,
    pub method: Method,
    pub buffer: StagingBuffer,
    pub chunks: u64,
    pub chunk_len: u64,
    pub piece_len: u64,
    pub progress: Progress,
    pub memory: Memory,
    /// The chunk whose bytes are mapped, if any.
    pub mapped: Option<u64>,
    workers: &'static StreamWorkers,
    resolved: Resolved,
    ended: Arc<AtomicU32>,
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

impl StreamOp {
    /// Chunks, bytes of each, and bytes that one thread moves at once.
    pub fn new(
        (buffers, workers): (&'static StagingBuffers, &'static StreamWorkers),
        buffer: StagingBuffer,
        (chunks, chunk_len, piece_len): (u64, u64, u64),
        op: Op,
        method: Method,
    ) -> Self {
        let ended = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ended);
        let cells = || std::array::from_fn(|_| Guarded::new(0));
        let pieces = usize::try_from(chunk_len / piece_len).unwrap();
        Self {
            stream_device: StreamDevice { buffers },
            key: StreamKey::of(&UserStream(RawStream(1))),
            latency: super::pending::PendingOps::default()
                .latency(StreamKey::of(&UserStream(RawStream(1)))),
            op,
            method,
            buffer,
            chunks,
            chunk_len,
            piece_len,
            progress: Progress::new(Box::new(move |_, outcome| {
                assert!(outcome.is_ok());
                count.fetch_add(1, Ordering::Relaxed);
            })),
            memory: Memory([cells(), cells()], pieces),
            mapped: None,
            workers,
            resolved: Resolved {
                read: ResolvedParams,
                refused: None,
                len: chunks * chunk_len,
                offset: 0,
                address: 0,
            },
            ended,
        }
    }

    /// How often its completion was reported.
    pub fn ended(&self) -> u32 {
        self.ended.load(Ordering::Relaxed)
    }

    pub fn resolve(&self) -> &Resolved {
        &self.resolved
    }

    /// Time plays no role here.
    pub fn age(&self) -> u64 {
        0
    }

    pub fn note_reached(&self) {}

    pub fn workers(&self) -> &'static StreamWorkers {
        self.workers
    }

    pub fn uses_kernel(&self) -> bool {
        true
    }

    /// The stream has it and waits for its semaphores.
    pub fn is_enqueued(&self) -> bool {
        true
    }

    pub fn half(&self, chunk: u64) -> usize {
        usize::from(chunk % 2 == 1)
    }

    /// Lists belong to the halves; there are no entries here.
    pub fn launch(&self, _: u64) -> (u32, ()) {
        (0, ())
    }

    pub fn list(&self, _: u64, _: u64) {}

    pub fn find_mapped(&self, chunk: u64) -> Option<MappedRange> {
        (self.mapped == Some(chunk)).then_some(MappedRange)
    }

    /// The list that the stream's kernel reads: here the bytes.
    pub fn copy_mapped(&self, chunk: u64, _: MappedRange) {
        self.memory.put(self.half(chunk), chunk + 1);
    }

    /// The file side of a piece.
    pub fn move_piece(&self, range: PieceRange) {
        let at = usize::try_from(range.start % self.chunk_len / self.piece_len).unwrap();
        let piece = &self.memory.0[self.half(range.chunk)][at];
        // SAFETY: who has the piece is the only one to use its bytes, as the model checks.
        match self.op {
            Op::Read => unsafe { *piece.write() = range.chunk + 1 },
            Op::Write => assert_eq!(unsafe { *piece.read() }, range.chunk + 1, "not the chunk's"),
        }
    }
}
