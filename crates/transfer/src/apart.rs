//! Threads with a table of descriptors of their own.
//!
//! A descriptor in the program's table takes the lowest free number, which the program may count on
//! getting itself (`close(0); open(…)`), may be closed or replaced by it, and drops all fcntl(2)
//! locks that the process has on a file when any descriptor of that file is closed. In a table of
//! its own a descriptor of ours does none of this: the locks of a process belong to its table
//! (`locks_remove_posix`, Linux 6.18).
//!
//! Such a thread has no standard error: it prints nothing.

use std::ffi::c_uint;

/// Gives the calling thread, for the rest of its life, a table without descriptors. False where
/// the system refuses: before Linux 5.9, or by a filter of system calls, if that refuses
/// unshare(2) too. Then it is the program's still.
pub fn leave_table() -> bool {
    // Without a copy of the program's descriptors, whose ends another process may wait for.
    // SAFETY: it closes numbers in a new table that only this thread sees, where none is owned.
    let left =
        unsafe { libc::syscall(libc::SYS_close_range, 0, c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) };
    if left == 0 {
        return true;
    }
    // SAFETY: it only gives this thread a copy of its table.
    if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
        return false;
    }
    let Ok(open) = std::fs::read_dir("/proc/thread-self/fd") else { return true };
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    for fd in numbers.collect::<Vec<libc::c_int>>() {
        // SAFETY: a number of the new table, where none is owned; the list's own is closed by now.
        unsafe { libc::close(fd) };
    }
    true
}

/// Runs `work` in a thread of this name apart from the program's table; `None` where the system
/// refuses that. The number is that of the calling thread: `/proc/self/task/NUMBER/fd` has the
/// program's descriptors.
pub fn run<T: Send + 'static>(
    name: &str,
    work: impl FnOnce(rustix::thread::Pid) -> Option<T> + Send + 'static,
) -> Option<T> {
    let caller = rustix::thread::gettid();
    let (done, result) = std::sync::mpsc::sync_channel(1);
    let body = move || {
        let found = if leave_table() { work(caller) } else { None };
        let _ = done.send(found);
    };
    crate::spawn_thread(name, body).then(|| result.recv().ok()).flatten()?
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn numbers_and_files_are_apart() {
        let ours = tempfile::tempfile().unwrap();
        let number = ours.as_raw_fd();
        let theirs = run("test", move |caller| {
            // SAFETY: numbers only.
            let is_open = unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0;
            let file = std::fs::File::open(format!("/proc/self/task/{caller}/fd/{number}"));
            Some((is_open, file.unwrap().as_raw_fd()))
        });
        // The lowest number is free there, and closing it closed nothing here.
        assert_eq!(theirs, Some((false, 0)));
        // SAFETY: as above.
        assert!(unsafe { libc::fcntl(0, libc::F_GETFD) } >= 0 && ours.metadata().is_ok());
    }
}
