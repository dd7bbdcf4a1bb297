//! The memory that can be page-locked.

use std::ffi::c_void;

use crate::code::{Answer, INVALID_VALUE};

/// Refuses what a driver can't pin: pages past the end of a file, and for writing, pages that the
/// process may only read. All pages of a read-only range and of a file are touched, as pinning
/// does; of another range the first is. A kernel that can't do that (before Linux 5.14) leaves the
/// question open.
pub(crate) fn reachable(
    start: *mut c_void,
    len: usize,
    read_only: bool,
    of_file: bool,
) -> Answer<()> {
    let page = rustix::param::page_size();
    let first = start.map_addr(|address| address / page * page);
    let end = start.addr().saturating_add(len).checked_next_multiple_of(page);
    let whole = end.map_or(0, |end| end - first.addr());
    if read_only {
        return match populate(first, whole, libc::MADV_POPULATE_READ) {
            Err(libc::EFAULT | libc::ENOMEM) => Err(INVALID_VALUE),
            _ => Ok(()),
        };
    }
    let reads = populate(first, page, libc::MADV_POPULATE_READ);
    let touched = if of_file { whole } else { page };
    let writes = populate(first, touched, libc::MADV_POPULATE_WRITE);
    // Where the kernel can do either, EINVAL and EFAULT of the second mean a lack of permission.
    match (reads, writes) {
        (Ok(()), Err(libc::EINVAL | libc::EFAULT)) => Err(INVALID_VALUE),
        _ => Ok(()),
    }
}

/// Errno, where the kernel refuses.
fn populate(start: *mut c_void, len: usize, how: i32) -> Result<(), i32> {
    // SAFETY: the call changes no byte of any page; of addresses that are not mapped it says so.
    match unsafe { libc::madvise(start, len, how) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
    }
}
