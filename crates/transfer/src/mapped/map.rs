//! Maps files where the program can't put another one in the place of a descriptor.
//!
//! A number in the program's table may be of another file at any time, also between a look and the
//! next call. So a thread with a table of its own takes what the number is of (`pidfd_getfd(2)`,
//! Linux 5.6), looks which file that is, maps it, and closes it: there this drops no lock of the
//! program's. A description that is taken so is the program's, with its position. Where a filter of
//! system calls refuses that (containers), another description of the same file is opened there,
//! unless the program has a lease, which that would break.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use gpuio_gpu::MapError;
use rustix::fs::{Mode, OFlags};
use rustix::process::{PidfdFlags, PidfdGetfdFlags};
use rustix::thread::Pid;

use crate::apart;
use crate::file::{Place, has_write_lease, is_of};

/// The call by which a description is taken.
pub(super) const TAKE: &str = "pidfd_getfd";

/// How a file is to be mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// By a descriptor that reads, too, and does not append.
    Write,
}

/// Calls `map` with the file of a place, and no other one.
///
/// # Errors
/// Those of `map`; the program closed the descriptor, or its mode is another; the system refuses a
/// thread apart, or [`TAKE`].
pub(super) fn map<T: Send + 'static>(
    place: Place,
    access: Access,
    map: impl FnOnce(BorrowedFd<'_>) -> Result<T, MapError> + Send + 'static,
) -> Result<T, MapError> {
    // SAFETY: a number is looked at; what comes of it counts only where the file is the right one.
    let program = unsafe { BorrowedFd::borrow_raw(place.fd) };
    let may_open = !has_write_lease(program) && (access == Access::Read || may_be_filled(program));
    let mapped = move |caller| {
        let map = || {
            let file = taken(place.fd, caller, access, may_open)?;
            if !is_of(file.as_raw_fd(), place.file) {
                let call = "the program closed gpuio's descriptor of the file: mmap";
                return Err(MapError::Call { call, errno: libc::EBADF });
            }
            if access == Access::Write && !may_be_filled(file.as_fd()) {
                return Err(MapError::Call { call: "mmap", errno: libc::EACCES });
            }
            map(file.as_fd())
        };
        Some(map())
    };
    let refused = || Err(MapError::Call { call: "unshare", errno: libc::EPERM });
    apart::run("gpuio-map", mapped).unwrap_or_else(refused)
}

/// The description at a number of the program's, or another one of the same file.
fn taken(number: RawFd, caller: Pid, access: Access, may_open: bool) -> Result<OwnedFd, MapError> {
    let process = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty());
    let taken = process.and_then(|process| {
        rustix::process::pidfd_getfd(process, number, PidfdGetfdFlags::empty())
    });
    taken.or_else(|errno| {
        let refused = Err(MapError::Call { call: TAKE, errno: errno.raw_os_error() });
        if !may_open {
            return refused;
        }
        let mode = if access == Access::Write { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = mode | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let link = format!("/proc/self/task/{caller}/fd/{number}");
        rustix::fs::open(link, flags, Mode::empty()).or(refused)
    })
}

/// Whether a description reads and writes, and does not append.
fn may_be_filled(file: BorrowedFd<'_>) -> bool {
    rustix::fs::fcntl_getfl(file).is_ok_and(|flags| {
        flags & OFlags::ACCMODE == OFlags::RDWR && !flags.contains(OFlags::APPEND)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use gpuio_gpu::FilePages;

    use super::*;
    use crate::file::KeptFd;

    const LEN: u64 = 1 << 20;

    fn file(name: &str) -> File {
        let fd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, LEN).unwrap();
        File::from(fd)
    }

    fn mappings_of(name: &str) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains(&format!("/memfd:{name} "))).count()
    }

    /// The program's `dup2(2)` onto a number of ours.
    fn replace(number: RawFd, by: &File) {
        // SAFETY: what a program may do with any number.
        assert_eq!(unsafe { libc::dup2(by.as_raw_fd(), number) }, number);
    }

    #[test]
    fn the_file_that_the_program_puts_in_the_place_is_never_mapped() {
        for access in [Access::Read, Access::Write] {
            let (own, other) = (file("gpuio-own"), file("gpuio-other"));
            let kept = KeptFd::duplicate(own.as_fd()).unwrap();
            let place = kept.place();
            let (looked, has_looked) = std::sync::mpsc::channel();
            let (replaced, is_replaced) = std::sync::mpsc::channel();
            let pages = std::thread::scope(|scope| {
                let other = &other;
                scope.spawn(move || {
                    // In the program's table: after the look, before mmap(2).
                    has_looked.recv().unwrap();
                    replace(place.fd, other);
                    replaced.send(()).unwrap();
                });
                map(place, access, move |file| {
                    looked.send(()).unwrap();
                    is_replaced.recv().unwrap();
                    FilePages::map(file, 0..LEN)
                })
            });
            let pages = pages.unwrap();
            assert_eq!((mappings_of("gpuio-own"), mappings_of("gpuio-other")), (1, 0));
            drop(pages);
            // Before the look.
            let error = map(place, access, |file| FilePages::map(file, 0..LEN)).unwrap_err();
            assert!(matches!(error, MapError::Call { errno: libc::EBADF, .. }), "{error}");
            assert_eq!((mappings_of("gpuio-own"), mappings_of("gpuio-other")), (0, 0));
            // SAFETY: the program's number.
            unsafe { libc::close(place.fd) };
            let error = map(place, access, |file| FilePages::map(file, 0..LEN)).unwrap_err();
            assert!(matches!(error, MapError::Call { errno: libc::EBADF, .. }), "{error}");
        }
    }

    /// Refuses a system call to the calling thread and those that it starts.
    fn forbid(call: libc::c_long) {
        let [load, compare, answer] = [
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            libc::BPF_JMP | libc::BPF_JEQ,
            libc::BPF_RET,
        ]
        .map(|code| u16::try_from(code).unwrap());
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
        let mut steps = [
            libc::sock_filter { code: load, jt: 0, jf: 0, k: 0 },
            libc::sock_filter { code: compare, jt: 0, jf: 1, k: u32::try_from(call).unwrap() },
            libc::sock_filter { code: answer, jt: 0, jf: 0, k: refused },
            libc::sock_filter { code: answer, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
        ];
        let filter = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
        // SAFETY: numbers, as the call wants them.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        // SAFETY: a filter of four steps.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) }, 0);
    }

    #[test]
    fn where_a_description_can_not_be_taken_another_is_opened_unless_there_is_a_lease() {
        let own = tempfile::tempfile().unwrap();
        own.set_len(LEN).unwrap();
        let kept = KeptFd::duplicate(own.as_fd()).unwrap();
        let write_only =
            File::options().write(true).open(format!("/proc/self/fd/{}", own.as_raw_fd()));
        let write_only = KeptFd::duplicate(write_only.unwrap().as_fd()).unwrap();
        let mapped = |kept: &KeptFd| {
            std::thread::scope(|scope| {
                let mapped = scope.spawn(|| {
                    forbid(libc::SYS_pidfd_getfd);
                    let is_mapped = |access| map(kept.place(), access, |_| Ok(()));
                    [Access::Read, Access::Write].map(is_mapped)
                });
                mapped.join().unwrap()
            })
        };
        let refused = |result: &Result<(), MapError>| {
            matches!(result, Err(MapError::Call { call: TAKE, errno: libc::EPERM }))
        };
        let found = mapped(&kept);
        assert!(found.iter().all(Result::is_ok), "{found:?}");
        let found = mapped(&write_only);
        assert!(found[0].is_ok() && refused(&found[1]), "{found:?}");
        drop(write_only);
        // SAFETY: numbers only, here and below.
        if unsafe { libc::fcntl(own.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) } != 0 {
            println!("SKIPPED: F_SETLEASE: {}", std::io::Error::last_os_error());
            return;
        }
        let found = mapped(&kept);
        assert!(found.iter().all(refused), "{found:?}");
        // SAFETY: as above.
        assert_eq!(unsafe { libc::fcntl(own.as_raw_fd(), libc::F_GETLEASE) }, libc::F_WRLCK);
    }

    #[test]
    fn a_descriptor_that_can_not_be_filled_is_not_mapped_for_writing() {
        let own = file("gpuio-appends");
        let kept = KeptFd::duplicate(own.as_fd()).unwrap();
        let is_mapped = |kept: &KeptFd| map(kept.place(), Access::Write, |_| Ok(())).is_ok();
        assert!(is_mapped(&kept));
        rustix::fs::fcntl_setfl(&own, OFlags::APPEND).unwrap();
        assert!(!is_mapped(&kept));
        let link = format!("/proc/self/fd/{}", own.as_raw_fd());
        for (read, write) in [(true, false), (false, true)] {
            let one = File::options().read(read).write(write).open(&link).unwrap();
            assert!(!is_mapped(&KeptFd::duplicate(one.as_fd()).unwrap()));
        }
    }
}
