//! How many descriptors of this process are not the library's: the program's, and those of its
//! other libraries. CUDA's driver has some dozens for each GPU.
//!
//! The kernel is asked, since no counter of ours has all: Linux 6.2 and newer give the number as
//! the size of `/proc/self/fd`, for a microsecond; older ones list the numbers, for a microsecond
//! each ten. So one look is used for some milliseconds, or longer where it is dear. For files
//! that were opened since, one descriptor of the program's is added each.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const DIRECTORY: &std::ffi::CStr = c"/proc/self/fd";
/// A list of so many numbers is used for a tick.
const LISTED: u64 = 16;

/// The last look. Two threads may look at once, and one may find the values of two looks: then it
/// is out by what changed between them.
pub(super) struct Look {
    /// When there is another one.
    next: AtomicU32,
    /// The descriptors of others; all ones before the first look.
    others: AtomicU64,
    /// Our duplicates.
    files: AtomicU32,
}

/// The look of this process.
pub(super) static LOOK: Look = Look::new();

impl Look {
    const fn new() -> Self {
        let [next, files] = [AtomicU32::new(0), AtomicU32::new(0)];
        Self { next, others: AtomicU64::new(u64::MAX), files }
    }

    /// The descriptors of others, where the library has `files` duplicates and `spares`. Where
    /// they can't be counted, one for each duplicate. `now`: milliseconds of any origin.
    pub(super) fn others(&self, files: u32, spares: u32, now: u32) -> u64 {
        let waits = self.next.load(Ordering::Relaxed).wrapping_sub(now).cast_signed() > 0;
        if !waits || self.others.load(Ordering::Relaxed) == u64::MAX {
            let Some((open, used_for)) = open() else { return u64::from(files) };
            let others = open.saturating_sub(u64::from(files) + u64::from(spares));
            self.others.store(others, Ordering::Relaxed);
            self.files.store(files, Ordering::Relaxed);
            self.next.store(now.wrapping_add(used_for), Ordering::Relaxed);
        }
        let since = files.saturating_sub(self.files.load(Ordering::Relaxed));
        self.others.load(Ordering::Relaxed) + u64::from(since)
    }
}

/// How many descriptors this process has, and for how many milliseconds the answer is used.
fn open() -> Option<(u64, u32)> {
    let size = rustix::fs::stat(DIRECTORY).ok()?.st_size;
    match u64::try_from(size) {
        Ok(1..) => Some((size.cast_unsigned(), 1)),
        _ => {
            let open = listed()?;
            Some((open, u32::try_from(open / LISTED).unwrap_or(u32::MAX / 4).max(1)))
        }
    }
}

/// The numbers that the kernel lists, without that of the list.
fn listed() -> Option<u64> {
    use rustix::fs::{Mode, OFlags, RawDir};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let list = rustix::fs::open(DIRECTORY, flags, Mode::empty()).ok()?;
    let mut room = [std::mem::MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&list, &mut room);
    let mut count = 0_u64;
    while let Some(entry) = entries.next() {
        let name = entry.ok()?;
        count += u64::from(name.file_name().to_bytes().first() != Some(&b'.'));
    }
    Some(count.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_number_and_its_list_agree() {
        // Other tests of this process open and close files meanwhile.
        let agree = || open().map(|(open, _)| open) == listed();
        assert!((0..1000).any(|_| agree()));
    }

    #[test]
    fn files_that_were_opened_since_the_last_look_count_twice() {
        let look = Look::new();
        let first = look.others(3, 0, 5);
        assert!(first > 0);
        look.next.store(1000, Ordering::Relaxed);
        assert_eq!(look.others(3, 0, 999), first);
        assert_eq!(look.others(5, 9, 999), first + 2, "two more");
        assert_eq!(look.others(1, 0, 999), first, "closed ones count at the next look");
        look.others.store(1 << 40, Ordering::Relaxed);
        assert!(look.others(3, 0, 1000) < 1 << 40, "another look");
    }
}
