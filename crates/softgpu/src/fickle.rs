//! Copies that touch registered pages of files.
//!
//! A driver pins registered pages, and what it pinned outlives a truncation of the file. This one
//! can't pin, and an instruction that touches a page behind the end of its file is a SIGBUS. The
//! kernel copies such memory instead (process_vm_readv(2), of this process), and answers with an
//! errno. Pages that are not there any more read as zeros, and take no bytes. Where a filter of
//! system calls refuses that, this process copies, and a truncation ends it.
//!
//! With `GPUIO_SOFT_KEEP_PAGES` a page that has left the page table takes no bytes either, though
//! the file may have another one there by now, which the kernel would bring in: it is not the one
//! that was pinned. A folio that is split leaves it too, so this loses more than a driver does.

use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// At most a page of any machine that gpuio runs on.
const STEP: usize = 4096;

static ZEROS: [u8; STEP] = [0; STEP];

/// Whether a range holds pages of a file, by `/proc/self/maps` (proc(5)); yes where that can't be
/// read.
pub(crate) fn holds_pages_of_files(range: &Range<u64>) -> bool {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return true };
    maps.lines().any(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next().and_then(|word| word.split_once('-')).unwrap_or_default();
        let address = |word| u64::from_str_radix(word, 16).unwrap_or(0);
        let touches = address(start) < range.end && address(end) > range.start;
        // Permissions, offset and device stand before the inode's number.
        touches && words.nth(3).is_some_and(|inode| inode != "0")
    })
}

/// Whether pages that left the page table are lost.
static KEEPS: AtomicBool = AtomicBool::new(false);

/// From now on they are.
pub(crate) fn keep_pages() {
    KEEPS.store(true, Ordering::Release);
}

/// Whether the page at an address is still in this process's page table (proc(5), pagemap), where
/// registering put it, and how many bytes from there on, of `len`, are in pages of the same answer.
/// Yes to all where that can't be read.
fn are_there(address: *const u8, len: usize) -> (bool, usize) {
    /// Pages that are looked at together.
    const PAGES: usize = 64;
    static TABLE: OnceLock<Option<File>> = OnceLock::new();
    if !KEEPS.load(Ordering::Acquire) {
        return (true, len);
    }
    let Some(table) = TABLE.get_or_init(|| File::open("/proc/self/pagemap").ok()) else {
        return (true, len);
    };
    let skip = address.addr() % STEP;
    let count = (skip + len).div_ceil(STEP).min(PAGES);
    let mut entries = [0; 8 * PAGES];
    let entries = &mut entries[..8 * count];
    if table.read_exact_at(entries, (address.addr() / STEP * 8) as u64).is_err() {
        return (true, len);
    }
    let mut there = entries.as_chunks::<8>().0.iter().map(|it| u64::from_ne_bytes(*it) >> 63 == 1);
    let first = there.next().unwrap_or(true);
    let same = 1 + there.take_while(|one| *one == first).count();
    (first, (same * STEP - skip).min(len))
}

/// Copies `len` bytes, of which any page may be gone. `pinned`: of those to be written, too.
pub(crate) fn copy(to: *mut u8, from: *const u8, len: usize, pinned: bool) {
    let mut done = 0;
    while done < len {
        let (to, from) = (to.wrapping_add(done), from.wrapping_add(done));
        let (there, part) = if pinned { are_there(to, len - done) } else { (true, len - done) };
        if !there {
            done += part;
            continue;
        }
        match by_kernel(to, from, part) {
            0 => {
                // The page at one of the two ends is gone.
                let left = STEP - (to.addr() % STEP).max(from.addr() % STEP);
                let step = left.min(len - done);
                by_kernel(to, ZEROS.as_ptr(), step);
                done += step;
            }
            more => done += more,
        }
    }
}

/// Sets `len` bytes, of which any page may be gone.
pub(crate) fn fill(to: *mut u8, value: u8, len: usize) {
    let values = [value; STEP];
    let mut done = 0;
    while done < len {
        let to = to.wrapping_add(done);
        let step = (STEP - to.addr() % STEP).min(len - done);
        if are_there(to, step).0 {
            by_kernel(to, values.as_ptr(), step);
        }
        done += step;
    }
}

/// How many bytes the kernel copied.
fn by_kernel(to: *mut u8, from: *const u8, len: usize) -> usize {
    let local = libc::iovec { iov_base: to.cast(), iov_len: len };
    let remote = libc::iovec { iov_base: from.cast_mut().cast::<c_void>(), iov_len: len };
    let own = std::process::id().cast_signed();
    // SAFETY: the kernel checks every page of both ranges. Who copies looked both up: they are ours
    // or memory that the caller of the driver lets it use.
    let copied =
        unsafe { libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0) };
    if let Ok(copied) = usize::try_from(copied) {
        return copied;
    }
    let errno = std::io::Error::last_os_error().raw_os_error();
    if matches!(errno, Some(libc::ENOSYS | libc::EPERM)) {
        // SAFETY: as above, as long as all pages are there.
        unsafe { std::ptr::copy(from, to, len) };
        return len;
    }
    0
}
