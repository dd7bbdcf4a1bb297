//! In the place of `order.rs` and `serve.rs`: a transfer whose file's side is one access.

use std::sync::Arc;

use super::Read;
use super::area::{Area, Areas};
use super::rounds::{Part, Progress};
use super::threads::Threads;
use super::watch::{Key, Pace};
use crate::engine::Op;
use crate::fault::Fault;
use crate::sync::Guarded;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::{RawStream, UserStream};

#[derive(Debug, Clone, Copy)]
pub enum Way {
    Gather,
    #[expect(dead_code, reason = "the sources ask for it")]
    Call(()),
}

#[derive(Debug)]
pub struct Served {
    pub areas: &'static Areas,
}

#[derive(Debug)]
pub struct Known {
    pub read: Read,
    pub refused: Option<Fault>,
    pub len: u64,
    pub offset: u64,
    pub address: u64,
}

/// The bytes of the two parts, in two pieces each.
#[derive(Debug)]
pub struct Memory([[Guarded<u64>; 2]; 2], usize);

impl Memory {
    /// What the stream's kernel does with a part.
    pub fn seen(&self, part: usize, value: u64) {
        for piece in &self.0[part][..self.1] {
            // SAFETY: whether others write it now is what the model asks.
            assert_eq!(unsafe { *piece.read() }, value, "bytes of another round");
        }
    }

    pub fn put(&self, part: usize, value: u64) {
        for piece in &self.0[part][..self.1] {
            // SAFETY: whether others use it now is what the model asks.
            unsafe { *piece.write() = value };
        }
    }
}

/// A transfer in a stream, as the sources know it.
#[derive(Debug)]
pub struct Order {
    pub served: Served,
    pub key: Key,
    pub pace: Arc<Pace>,
    pub op: Op,
    pub way: Way,
    pub area: Area,
    pub rounds: u64,
    pub part_len: u64,
    pub chunk: u64,
    pub progress: Progress,
    pub memory: Memory,
    threads: &'static Threads,
    known: Known,
    ended: Arc<AtomicU32>,
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

impl Order {
    /// `rounds`, bytes of each, and bytes that one thread moves at once.
    pub fn new(
        (areas, threads): (&'static Areas, &'static Threads),
        area: Area,
        (rounds, part_len, chunk): (u64, u64, u64),
        op: Op,
        way: Way,
    ) -> Self {
        let ended = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ended);
        let cells = || std::array::from_fn(|_| Guarded::new(0));
        let pieces = usize::try_from(part_len / chunk).unwrap();
        Self {
            served: Served { areas },
            key: Key::of(&UserStream(RawStream(1))),
            pace: super::watch::Watch::default().pace(Key::of(&UserStream(RawStream(1)))),
            op,
            way,
            area,
            rounds,
            part_len,
            chunk,
            progress: Progress::new(Box::new(move |_, outcome| {
                assert!(outcome.is_ok());
                count.fetch_add(1, Ordering::Relaxed);
            })),
            memory: Memory([cells(), cells()], pieces),
            threads,
            known: Known {
                read: Read,
                refused: None,
                len: rounds * part_len,
                offset: 0,
                address: 0,
            },
            ended,
        }
    }

    /// How often its end was told.
    pub fn ended(&self) -> u32 {
        self.ended.load(Ordering::Relaxed)
    }

    pub fn know(&self) -> &Known {
        &self.known
    }

    /// Time says nothing here.
    pub fn age(&self) -> u64 {
        0
    }

    pub fn note_reached(&self) {}

    pub fn threads(&self) -> &'static Threads {
        self.threads
    }

    pub fn gathers(&self) -> bool {
        true
    }

    /// The stream has it, and its words are waited for.
    pub fn is_put(&self) -> bool {
        true
    }

    pub fn part(&self, round: u64) -> usize {
        usize::from(round % 2 == 1)
    }

    /// Lists belong to the parts; no entries here.
    pub fn launch(&self, _: u64) -> (u32, ()) {
        (0, ())
    }

    pub fn list(&self, _: u64, _: u64) {}

    /// The file's side of a piece.
    pub fn serve(&self, part: Part) {
        let at = usize::try_from(part.start % self.part_len / self.chunk).unwrap();
        let piece = &self.memory.0[self.part(part.round)][at];
        // SAFETY: who has the piece is the only one to use its bytes, as the model sees to.
        match self.op {
            Op::Read => unsafe { *piece.write() = part.round + 1 },
            Op::Write => assert_eq!(unsafe { *piece.read() }, part.round + 1, "not the round's"),
        }
    }
}
