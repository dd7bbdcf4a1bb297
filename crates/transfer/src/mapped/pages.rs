//! Short copies out of mapped files by the host.

use std::ffi::c_void;

/// Copies `len` bytes of a mapped file; true if that was done. Pages that the file has lost
/// meanwhile are zeros, as for the GPU. The kernel reads them (process_vm_readv(2), of this
/// process), since it answers with an errno; false where a filter of system calls refuses that.
///
/// # Safety
/// `to` is valid for the write of `len` bytes.
pub(crate) unsafe fn copy_pages(to: *mut u8, from: *const u8, len: usize) -> bool {
    let local = libc::iovec { iov_base: to.cast(), iov_len: len };
    let remote = libc::iovec { iov_base: from.cast_mut().cast::<c_void>(), iov_len: len };
    let own = std::process::id().cast_signed();
    // SAFETY: the kernel checks every page that it reads; what it writes is the caller's promise.
    let copied =
        unsafe { libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0) };
    let copied = match usize::try_from(copied) {
        Ok(copied) => copied,
        // The first page is gone.
        Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) => 0,
        Err(_) => return false,
    };
    // SAFETY: the caller's promise.
    unsafe { to.wrapping_add(copied).write_bytes(0, len - copied) };
    true
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn pages_that_a_file_has_lost_are_zeros_and_no_signal() {
        const LEN: usize = 16 << 10;
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &[7; LEN]).unwrap();
        let (fd, shared) = (file.as_raw_fd(), libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), LEN, libc::PROT_READ, shared, fd, 0) };
        for (left, lost) in [(LEN, 0), (4096, LEN - 4096), (0, LEN)] {
            file.set_len(left as u64).unwrap();
            let mut found = vec![1; LEN];
            // SAFETY: a buffer as long as this.
            assert!(unsafe { copy_pages(found.as_mut_ptr(), at.cast(), LEN) });
            assert_eq!(found, [vec![7; left], vec![0; lost]].concat());
        }
        // SAFETY: made above.
        unsafe { libc::munmap(at, LEN) };
    }
}
