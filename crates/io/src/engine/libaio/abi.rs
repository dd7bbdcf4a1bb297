//! The system calls and their memory layout: io_submit(2), io_getevents(2), and the facts of
//! the kernel's `linux/aio_abi.h`. libaio the library is not used: these calls have no wrapper
//! in the C library, and the layout is fixed for ever.

use super::answer;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// `IOCB_CMD_PREAD`.
pub(super) const PREAD: u16 = 0;
/// `IOCB_CMD_PWRITE`.
pub(super) const PWRITE: u16 = 1;

/// One request, `struct iocb`. The key and the flags, which swap places by byte order, are both
/// left 0.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Iocb {
    pub(super) data: u64,
    pub(super) key_and_flags: [u32; 2],
    pub(super) opcode: u16,
    pub(super) priority: i16,
    pub(super) file: u32,
    pub(super) buffer: u64,
    pub(super) bytes: u64,
    pub(super) offset: i64,
    pub(super) reserved: u64,
    pub(super) flags: u32,
    pub(super) event_file: u32,
}

/// One completion, `struct io_event`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Event {
    pub(super) data: u64,
    pub(super) iocb: u64,
    pub(super) res: i64,
    pub(super) res2: i64,
}

/// The head of the completion ring that the kernel maps into the process; the context's number
/// is its address. `count` events follow the header.
#[repr(C)]
struct Ring {
    id: u32,
    count: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    header_len: u32,
}

const _: () = assert!(size_of::<Iocb>() == 64);
const _: () = assert!(std::mem::offset_of!(Iocb, buffer) == 24);
const _: () = assert!(size_of::<Event>() == 32);
const _: () = assert!(size_of::<Ring>() == 32);

/// Says that the ring has the layout above; unchanged since 2.6.
const MAGIC: u32 = 0xa10a_10a1;

/// An AIO context: io_setup(2), io_destroy(2).
pub(super) struct Context {
    id: usize,
    ring: Option<NonNull<Ring>>,
}

impl Context {
    /// Room for `depth` requests at once.
    pub(super) fn new(depth: u32) -> io::Result<Context> {
        let mut id = 0_usize;
        // SAFETY: the kernel writes the context's number, an unsigned long, to `id`.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut id) };
        answer(result)?;
        Ok(Context { id, ring: readable_ring(id) })
    }

    /// Hands the requests over; how many were accepted, from the first.
    pub(super) fn submit(&self, blocks: &[*const Iocb]) -> io::Result<usize> {
        let (count, list) = (blocks.len(), blocks.as_ptr());
        // SAFETY: `list` holds `count` addresses of requests, whose buffers their makers keep
        // until the events are read.
        answer(unsafe { libc::syscall(libc::SYS_io_submit, self.id, count, list) })
    }

    /// Appends from `least` to `most` events, waiting for the first `least`, or until `timeout` is
    /// over; without, for ever.
    pub(super) fn get_events(
        &self,
        least: usize,
        most: usize,
        timeout: Option<Duration>,
        events: &mut Vec<Event>,
    ) -> io::Result<()> {
        events.reserve(most);
        let room = events.spare_capacity_mut().as_mut_ptr();
        let time = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let call = libc::SYS_io_getevents;
        // SAFETY: `room` has space for `most` events, which have the kernel's layout; `time` is
        // null or lives during the call.
        let result = unsafe { libc::syscall(call, self.id, least, most, room, time) };
        let len = events.len() + answer(result)?;
        // SAFETY: the kernel wrote that many.
        unsafe { events.set_len(len) };
        Ok(())
    }

    /// Whether [`Context::next_event`] sees the kernel's ring.
    #[inline]
    pub(super) fn ring_is_readable(&self) -> bool {
        self.ring.is_some()
    }

    /// The oldest event, without a system call. Saves io_getevents(2) where completions are
    /// already there, which at depth 1 is every second call.
    #[inline]
    pub(super) fn next_event(&mut self) -> Option<Event> {
        let pointer = self.ring?;
        // SAFETY: the kernel keeps the ring mapped until io_destroy, which is our drop; the
        // fields that it changes are atomics.
        let ring = unsafe { pointer.as_ref() };
        let head = ring.head.load(Ordering::Relaxed);
        // Acquire: the event was written before the tail.
        if head == ring.tail.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the events follow the header.
        let events = unsafe { pointer.add(1) }.cast::<Event>();
        // SAFETY: the head is below the count, and the kernel has events that far.
        let slot = unsafe { events.add(head as usize) };
        // SAFETY: written by the kernel, which leaves it alone until the head has passed.
        let event = unsafe { slot.read() };
        let next = if head + 1 >= ring.count { 0 } else { head + 1 };
        // Release: the event is read before the kernel may reuse its place.
        ring.head.store(next, Ordering::Release);
        Some(event)
    }
}

/// The ring at the context's address, when it has the known layout.
fn readable_ring(id: usize) -> Option<NonNull<Ring>> {
    let pointer = NonNull::new(id as *mut Ring)?;
    if !pointer.is_aligned() {
        return None;
    }
    // SAFETY: the number of a context is the address at which the kernel mapped its ring.
    let ring = unsafe { pointer.as_ref() };
    let known = ring.magic == MAGIC
        && ring.incompatible == 0
        && ring.header_len as usize == size_of::<Ring>()
        && ring.count > 0;
    known.then_some(pointer)
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: our context; the call waits for requests that are still out.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}
