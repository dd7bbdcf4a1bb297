//! An io_uring ring in memory of ours, which a thread of the kernel polls.
//!
//! Written from io_uring_setup(2), io_uring_register(2), io_uring_enter(2) and `linux/io_uring.h`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use super::waking::Polled;
use super::{ENTRIES, RingError};
use crate::sync::atomic::{AtomicU32, Ordering};

/// `IORING_SETUP_SQPOLL`: a thread of the kernel takes the entries (5.1; for every user since
/// 5.13).
const SQPOLL: u32 = 1 << 1;
/// `IORING_SETUP_ATTACH_WQ`: another ring's thread serves this one too (5.6; for `SQPOLL` since
/// 5.11).
const ATTACH_WQ: u32 = 1 << 5;
/// `IORING_SETUP_NO_MMAP`: the ring lies in memory of the caller (6.5).
const NO_MMAP: u32 = 1 << 14;
/// `IORING_SETUP_NO_SQARRAY`: entries are taken in their order (6.6).
const NO_SQARRAY: u32 = 1 << 16;
/// `IORING_REGISTER_BUFFERS` and `IORING_REGISTER_FILES`.
const REGISTER_BUFFERS: libc::c_uint = 0;
const REGISTER_FILES: libc::c_uint = 2;
/// `IORING_REGISTER_FILES2` and `IORING_REGISTER_BUFFERS2` (5.13), with
/// `IORING_RSRC_REGISTER_SPARSE` (5.19): tables whose places are filled later, by the two updates.
const REGISTER_FILES2: libc::c_uint = 13;
const REGISTER_FILES_UPDATE2: libc::c_uint = 14;
const REGISTER_BUFFERS2: libc::c_uint = 15;
const REGISTER_BUFFERS_UPDATE: libc::c_uint = 16;
const REGISTER_SPARSE: u32 = 1;
/// A place of the table of files that holds none.
const NO_FILE: RawFd = -1;
/// `IORING_ENTER_SQ_WAKEUP`.
const ENTER_SQ_WAKEUP: libc::c_uint = 1 << 1;

/// How long the kernel's thread polls without an entry before it sleeps, milliseconds. Until then
/// it takes a processor.
const IDLE_MS: u32 = 50;

/// `struct io_sqring_offsets`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct SubmissionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    resv1: u32,
    user_addr: u64,
}

/// `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct CompletionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    overflow: u32,
    cqes: u32,
    flags: u32,
    resv1: u32,
    user_addr: u64,
}

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    resv: [u32; 3],
    sq_off: SubmissionOffsets,
    cq_off: CompletionOffsets,
}

/// `struct io_uring_rsrc_register`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct Table {
    nr: u32,
    flags: u32,
    resv2: u64,
    data: u64,
    tags: u64,
}

/// `struct io_uring_rsrc_update2`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct Update {
    offset: u32,
    resv: u32,
    data: u64,
    tags: u64,
    nr: u32,
    resv2: u32,
}

/// Where the words of a ring are, in bytes from the first page, and how large it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) sq_head: usize,
    pub(super) sq_tail: usize,
    pub(super) sq_flags: usize,
    pub(super) cq_head: usize,
    pub(super) cq_tail: usize,
    pub(super) completions: usize,
    pub(super) entry_mask: u32,
    pub(super) completion_mask: u32,
}

/// The ring: its descriptor and its words.
#[derive(Debug)]
pub(super) struct Uring {
    fd: OwnedFd,
    pages: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is the caller's, who promises that it lives as long as the ring; all access
// through the pointer is atomic.
unsafe impl Send for Uring {}
// SAFETY: as above; the system calls of a ring may be made by several threads at once.
unsafe impl Sync for Uring {}

impl Uring {
    /// Makes a ring of [`ENTRIES`] entries in the two pages of `page` bytes at `pages`: the words
    /// and completions in the first, the entries in the second. One page each, since the first
    /// kernels that have this take no more unless it is a huge one. The ring has a thread of its
    /// own, or that of the ring `served_by`.
    ///
    /// # Errors
    /// The kernel's refusal.
    ///
    /// # Safety
    /// The pages are mapped and writable, hold zeros, begin at a multiple of `page`, which is the
    /// system's, and live as long as the ring. From here on the host accesses them by this value
    /// only.
    pub(super) unsafe fn new(
        pages: NonNull<u8>,
        page: usize,
        served_by: Option<&Uring>,
    ) -> io::Result<Self> {
        let start = pages.addr().get() as u64;
        let mut params = Params {
            flags: SQPOLL | NO_MMAP | NO_SQARRAY,
            sq_thread_idle: IDLE_MS,
            ..Params::default()
        };
        if let Some(other) = served_by {
            params.flags |= ATTACH_WQ;
            params.wq_fd = other.fd.as_raw_fd().cast_unsigned();
        }
        params.cq_off.user_addr = start;
        params.sq_off.user_addr = start + page as u64;
        // SAFETY: `params` is the structure of the call, valid for its writes; the memory that it
        // names is the caller's promise.
        let made = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, &raw mut params) };
        let Ok(fd @ 0..) = RawFd::try_from(made) else {
            return Err(io::Error::last_os_error());
        };
        // SAFETY: a descriptor that the kernel just made, which nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let (sq, cq) = (params.sq_off, params.cq_off);
        let layout = Layout {
            sq_head: sq.head as usize,
            sq_tail: sq.tail as usize,
            sq_flags: sq.flags as usize,
            cq_head: cq.head as usize,
            cq_tail: cq.tail as usize,
            completions: cq.cqes as usize,
            entry_mask: params.sq_entries - 1,
            completion_mask: params.cq_entries - 1,
        };
        Ok(Self { fd, pages, layout })
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// Registers the files, which the kernel then knows by their numbers.
    pub(super) fn register_files(&self, files: &[RawFd]) -> Result<(), RingError> {
        // SAFETY: `files` is an array of descriptors, which the call only reads.
        unsafe { self.register(REGISTER_FILES, files.as_ptr().cast(), files.len()) }
            .map_err(|error| RingError::files(&error, files.len()))
    }

    /// Registers buffers of `len` bytes each, one behind the other from `start` on, `stride` bytes
    /// apart.
    ///
    /// # Safety
    /// They are mapped and writable, and nothing else uses them while I/O does.
    pub(super) unsafe fn register_buffers(
        &self,
        start: NonNull<u8>,
        stride: usize,
        count: u32,
    ) -> Result<(), RingError> {
        let buffers = buffers(start, stride, count);
        // SAFETY: `buffers` is an array of the call's structures, which it only reads; the memory
        // that they name is the caller's promise.
        unsafe { self.register(REGISTER_BUFFERS, buffers.as_ptr().cast(), buffers.len()) }
            .map_err(|error| RingError::buffers(&error, stride * count as usize))
    }

    /// Makes tables of so many files and buffers, all empty.
    pub(super) fn register_tables(&self, files: u32, buffers: u32) -> Result<(), RingError> {
        let table = |nr| Table { nr, flags: REGISTER_SPARSE, ..Table::default() };
        let (of_files, of_buffers) = (table(files), table(buffers));
        let size = size_of::<Table>();
        // SAFETY: the structure of the call, which it only reads, and its size.
        unsafe { self.register(REGISTER_FILES2, (&raw const of_files).cast(), size) }
            .map_err(|error| RingError::files(&error, files as usize))?;
        // SAFETY: as above.
        unsafe { self.register(REGISTER_BUFFERS2, (&raw const of_buffers).cast(), size) }
            .map_err(|error| RingError::buffers(&error, 0))
    }

    /// Puts a file into a place of the table, or empties it. I/O that has begun keeps its file.
    pub(super) fn set_file(&self, place: u32, file: Option<RawFd>) -> Result<(), RingError> {
        let fd = file.unwrap_or(NO_FILE);
        let data = (&raw const fd).addr() as u64;
        let update = Update { offset: place, data, nr: 1, ..Update::default() };
        // SAFETY: the structure of the call, which it only reads with the one descriptor that it
        // names.
        unsafe { self.update(REGISTER_FILES_UPDATE2, &update) }
            .map_err(|error| RingError::files(&error, 1))
    }

    /// Puts buffers of `stride` bytes each, one behind the other from `start` on, into the table's
    /// places from `first` on.
    ///
    /// # Safety
    /// They are mapped and writable, and nothing else uses them while I/O does.
    pub(super) unsafe fn set_buffers(
        &self,
        first: u32,
        start: NonNull<u8>,
        stride: usize,
        count: u32,
    ) -> Result<(), RingError> {
        let buffers = buffers(start, stride, count);
        let data = buffers.as_ptr().addr() as u64;
        let update = Update { offset: first, data, nr: count, ..Update::default() };
        // SAFETY: the structure of the call, which it only reads with the array that it names; the
        // memory is the caller's promise.
        unsafe { self.update(REGISTER_BUFFERS_UPDATE, &update) }
            .map_err(|error| RingError::buffers(&error, stride * count as usize))
    }

    /// # Safety
    /// `update` is what io_uring_register(2) wants for the operation.
    unsafe fn update(&self, operation: libc::c_uint, update: &Update) -> io::Result<()> {
        let (from, size) = (std::ptr::from_ref(update).cast(), size_of::<Update>());
        // SAFETY: the caller's promise; the size is the structure's.
        unsafe { self.register(operation, from, size) }
    }

    /// # Safety
    /// `argument` is what io_uring_register(2) wants for the operation.
    unsafe fn register(
        &self,
        operation: libc::c_uint,
        argument: *const libc::c_void,
        count: usize,
    ) -> io::Result<()> {
        let fd = self.fd.as_raw_fd();
        // SAFETY: the caller's promise.
        let answer =
            unsafe { libc::syscall(libc::SYS_io_uring_register, fd, operation, argument, count) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Entries that the kernel has completed. Wraps at 2^32.
    pub(super) fn completed(&self) -> u32 {
        self.word(self.layout.cq_tail).load(Ordering::Acquire)
    }

    /// Entries without a completion: each entry has one. For the host, once the device publishes no
    /// more.
    pub(super) fn unfinished(&self) -> u32 {
        self.published().wrapping_sub(self.completed())
    }

    /// Takes all completions that there are, unread. While the device uses the ring no more.
    pub(super) fn discard(&self) {
        self.word(self.layout.cq_head).store(self.completed(), Ordering::Release);
    }

    /// The kernel's thread, by its number, where the kernel reports it (`SqThread`, in
    /// `/proc/self/fdinfo`).
    pub(super) fn thread(&self) -> Option<i32> {
        let name = format!("/proc/self/fdinfo/{}", self.fd.as_raw_fd());
        let text = std::fs::read_to_string(name).ok()?;
        let value = text.lines().find_map(|line| line.strip_prefix("SqThread:"))?;
        value.trim().parse().ok().filter(|&number| number > 0)
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the kernel's own offset, in the ring's first page.
        let word = unsafe { self.pages.add(at) };
        // SAFETY: a word of 32 bits, aligned, live as long as the ring by `new`'s contract; kernel
        // and device access it as a whole.
        unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
    }
}

impl Polled for Uring {
    fn flags(&self) -> &AtomicU32 {
        self.word(self.layout.sq_flags)
    }

    fn head(&self) -> &AtomicU32 {
        self.word(self.layout.sq_head)
    }

    fn tail(&self) -> &AtomicU32 {
        self.word(self.layout.sq_tail)
    }

    fn enter(&self) -> io::Result<()> {
        let (fd, none) = (self.fd.as_raw_fd(), std::ptr::null::<libc::sigset_t>());
        // SAFETY: the call takes no memory of ours: nothing is submitted, and no mask is set.
        let answer =
            unsafe { libc::syscall(libc::SYS_io_uring_enter, fd, 0, 0, ENTER_SQ_WAKEUP, none, 0) };
        if answer >= 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }
}

fn buffers(start: NonNull<u8>, stride: usize, count: u32) -> Vec<libc::iovec> {
    let one = |number: usize| libc::iovec {
        iov_base: start.as_ptr().wrapping_add(number * stride).cast(),
        iov_len: stride,
    };
    (0..count as usize).map(one).collect()
}

/// Makes such a ring and lets it go.
///
/// # Errors
/// The kernel's refusal.
pub(super) fn tried() -> io::Result<()> {
    let page = rustix::param::page_size();
    let (protection, flags) =
        (rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE, rustix::mm::MapFlags::PRIVATE);
    // SAFETY: a new mapping where the kernel chooses touches no other.
    let mapped =
        unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), 2 * page, protection, flags) }?;
    let Some(pages) = NonNull::new(mapped.cast::<u8>()) else {
        return Err(io::Error::from_raw_os_error(libc::ENOMEM));
    };
    // SAFETY: two fresh pages, which outlive the ring: they are unmapped below.
    let made = unsafe { Uring::new(pages, page, None) }.map(drop);
    // SAFETY: mapped above with this length; the ring is gone, and the kernel holds the pages that
    // it still uses.
    let _ = unsafe { rustix::mm::munmap(mapped, 2 * page) };
    made
}
