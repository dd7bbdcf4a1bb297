//! The names of the crate `gpu` that the sources use. Page-locked memory is addresses alone: its
//! words are loom's, found by address, and its bytes are the tests' own.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Clone, Copy)]
pub struct Context;
#[derive(Debug)]
pub struct GpuError;
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Piece;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawContext;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStream(pub u64);
#[derive(Debug)]
pub struct UserStream(pub RawStream);

impl RawStream {
    pub fn is_default(self) -> bool {
        false
    }
}

impl UserStream {
    pub fn raw(&self) -> RawStream {
        self.0
    }

    pub fn context(&self) -> RawContext {
        RawContext
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevPtr(pub u64);

impl DevPtr {
    pub fn byte_add(self, bytes: u64) -> DevPtr {
        DevPtr(self.0 + bytes)
    }
}

pub fn most_pieces(len: u64, piece_len: u64) -> u64 {
    len / piece_len + 1
}

#[derive(Debug, Clone, Copy)]
pub enum PageSize {
    Plain,
}

#[derive(Debug)]
pub struct Locked(usize);
#[derive(Debug, Clone, Copy)]
pub struct Leaked(usize);

impl Locked {
    pub fn new(_: &Context, len: usize, _: PageSize) -> Result<Locked, GpuError> {
        static NEXT: AtomicUsize = AtomicUsize::new(1 << 40);
        Ok(Locked(NEXT.fetch_add(len.next_multiple_of(1 << 21), Ordering::Relaxed)))
    }

    pub fn leak(self) -> Leaked {
        Leaked(self.0)
    }
}

impl Leaked {
    pub fn as_ptr(&self) -> NonNull<u8> {
        NonNull::new(std::ptr::without_provenance_mut(self.0)).unwrap()
    }

    pub fn ptr(&self) -> DevPtr {
        DevPtr(self.0 as u64)
    }
}
