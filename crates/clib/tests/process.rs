//! Tests that concern the whole process: a reset of the device, children of fork(2), all leases.
#![allow(unsafe_code, reason = "the interface under test is unsafe")]
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]

mod support;

use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};

use support::{SURE, cuda, dir, file, gpuio, random_bytes, writer};

/// One test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Most leases of a process.
const LEASES: usize = 256;

#[test]
fn after_a_reset_of_the_device_files_are_mapped_again() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (dir, gpuio, cuda) = (dir(), gpuio(), cuda());
    let written = random_bytes(1, 100_000);
    let own = file(&dir.path().join("file"), &written);
    cuda.start();
    let before = gpuio.map(&own, 0, 1000);
    // SAFETY: the device's number; nothing is under way.
    assert_eq!(unsafe { (cuda.cuDevicePrimaryCtxReset_v2)(0) }, 0);
    // Its registration went with the context. The lease is still there.
    assert_eq!(gpuio.state(before), SURE);
    let code = gpuio.close(before);
    assert!(code == 0 || code == -libc::EIO, "{code}: {}", gpuio.error());
    cuda.start();
    let after = gpuio.map(&own, 4097, 50_000);
    assert!(cuda.get(gpuio.address(after), 50_000) == written[4097..54_097]);
    assert_eq!(gpuio.close(after), 0);
    assert!(writer(&dir.path().join("file")).is_ok(), "no lease is left");
}

#[test]
fn a_child_of_fork_maps_nothing_and_takes_no_lease_away() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (dir, gpuio, cuda) = (dir(), gpuio(), cuda());
    let path = dir.path().join("file");
    let written = random_bytes(1, 5000);
    let own = file(&path, &written);
    let fd = own.as_raw_fd();
    let map = gpuio.map(&own, 0, 5000);
    // SAFETY: the child uses nothing that another thread may hold, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = gpuio.open(fd, 0, 1, 0).is_err_and(|code| code == -libc::EPERM);
        let closed = gpuio.close(map) == 0;
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(c_int_of(refused && closed)) };
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: `status` is valid for the write of a number.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "{status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 7);
    // The parent's goes on.
    assert_eq!(gpuio.state(map), SURE);
    assert!(writer(&path).is_err());
    cuda.start();
    assert!(cuda.get(gpuio.address(map), 5000) == written);
    assert_eq!(gpuio.close(map), 0);
    assert!(writer(&path).is_ok());
}

/// The child's exit code: 7 where all was right.
fn c_int_of(right: bool) -> libc::c_int {
    if right { 7 } else { 1 }
}

/// Sets the limit of open files (soft) and returns what it was.
fn limit_files(most: libc::rlim_t) -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: valid for the write of the structure.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    let before = std::mem::replace(&mut limit.rlim_cur, most);
    // SAFETY: valid for the read of the structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    before
}

#[test]
fn too_few_descriptors_are_no_fault_of_the_file() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (dir, gpuio) = (dir(), gpuio());
    let own = file(&dir.path().join("file"), &random_bytes(1, 5000));
    // Now all is loaded, and all threads run.
    assert_eq!(gpuio.close(gpuio.map(&own, 1, 2)), 0);
    let free = own.try_clone().unwrap().as_raw_fd();
    for more in 0..3 {
        let before = limit_files(libc::rlim_t::try_from(free + more).unwrap());
        let code = gpuio.refusal(own.as_raw_fd(), 1, 2, 0);
        limit_files(before);
        assert_eq!(code, -libc::EMFILE, "{more} more: {}", gpuio.error());
        assert!(gpuio.error().contains("ulimit -n"), "{}", gpuio.error());
    }
    assert_eq!(gpuio.close(gpuio.map(&own, 1, 2)), 0);
}

#[test]
fn a_process_has_so_many_mappings_under_leases() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (dir, gpuio) = (dir(), gpuio());
    let own = file(&dir.path().join("file"), &random_bytes(1, 5000));
    let fd = own.as_raw_fd();
    let mut mapped: Vec<_> = (0..LEASES).map(|_| gpuio.map(&own, 1, 2)).collect();
    assert_eq!(gpuio.refusal(fd, 1, 2, 0), -libc::EMFILE);
    assert!(gpuio.error().contains("256 leases"), "{}", gpuio.error());
    assert_eq!(gpuio.close(mapped.remove(100)), 0);
    mapped.push(gpuio.map(&own, 1, 2));
    mapped.into_iter().for_each(|map| assert_eq!(gpuio.close(map), 0));
}
