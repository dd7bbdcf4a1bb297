use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use super::*;

fn opened(flags: libc::c_int, bytes: &[u8]) -> (tempfile::TempDir, std::fs::File) {
    let dir = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    (dir, file.unwrap())
}

fn read(file: &File, len: usize, offset: u64, large: bool) -> (Vec<u8>, FileBytes) {
    let mut bounce = BounceBuffer::new(len + 8192, 4096);
    let at = bounce.as_mut_ptr().wrapping_add(file.0.skip(offset));
    // SAFETY: the buffer is aligned and two pages longer than the request.
    let file_bytes =
        unsafe { file.0.read(ReadBuffer { at, slack: true }, len, offset, large) }.unwrap();
    // SAFETY: so many bytes were just read there.
    let bytes = unsafe { std::slice::from_raw_parts(at, file_bytes.total()) }.to_vec();
    (bytes, file_bytes)
}

use crate::bounce::BounceBuffer;

#[test]
fn other_descriptors_are_refused() {
    let (pipe, _end) = std::io::pipe().unwrap();
    let refused = File::new(pipe.as_fd(), UncachedReads::Direct).unwrap_err();
    assert!(refused.to_string().contains("is a pipe"), "{refused}");
    let dir = std::fs::File::open("/").unwrap();
    assert!(
        File::new(dir.as_fd(), UncachedReads::Direct)
            .unwrap_err()
            .to_string()
            .contains("a directory")
    );
}

#[test]
fn cached_ranges_come_from_the_cache_and_cold_ones_go_past_it() {
    let content = vec![7_u8; 100_000];
    for flags in [0, libc::O_DIRECT] {
        let (_dir, own) = opened(flags, &content);
        let file = File::new(own.as_fd(), UncachedReads::Direct).unwrap();
        let (bytes, file_bytes) = read(&file, 50_001, 3, true);
        assert_eq!((bytes.len(), file_bytes.direct), (50_001, 0), "just written, so in the cache");
        own.sync_all().unwrap();
        // SAFETY: the call takes numbers only.
        unsafe { libc::posix_fadvise(own.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        let (bytes, file_bytes) = read(&file, 60_001, 3, true);
        assert_eq!(bytes, content[..60_001]);
        assert!(file_bytes.direct > 0, "{file_bytes:?}");
    }
}

#[test]
fn a_plain_descriptor_stays_plain_on_request() {
    let (_dir, own) = opened(0, &[7; 100_000]);
    let file = File::new(own.as_fd(), UncachedReads::AsOpened).unwrap();
    own.sync_all().unwrap();
    // SAFETY: the call takes numbers only.
    unsafe { libc::posix_fadvise(own.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(read(&file, 60_000, 0, true).1, FileBytes { cached: 60_000, direct: 0 });
}

#[test]
fn edges_without_a_buffered_descriptor_are_rewritten_in_their_blocks() {
    let content: Vec<u8> = (0..20_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    let (dir, own) = opened(libc::O_DIRECT, &content);
    let file = File::new(own.as_fd(), UncachedReads::Direct).unwrap();
    file.0.buffered.refuse();
    let mut model = content;
    for (offset, len) in [(0_usize, 10), (4090, 12), (5000, 9000), (19_990, 30), (30_000, 1)] {
        let bytes = vec![0xA5_u8; len];
        model.resize(model.len().max(offset + len), 0);
        model[offset..offset + len].copy_from_slice(&bytes);
        // SAFETY: the vector's bytes.
        unsafe { file.0.write(bytes.as_ptr(), len, offset as u64) }.unwrap();
        assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), model, "{len} at {offset}");
        let mut back = vec![0_u8; len];
        let buffer = ReadBuffer { at: back.as_mut_ptr(), slack: false };
        // SAFETY: the vector's bytes.
        let file_bytes = unsafe { file.0.read(buffer, len, offset as u64, false) }.unwrap();
        assert_eq!((file_bytes.total(), back), (len, bytes));
    }
}

#[test]
fn a_file_that_bypasses_the_cache_is_not_read_from_the_page_cache() {
    let content: Vec<u8> = (0..40_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    for (flags, strict, cached) in [
        (libc::O_DIRECT, BypassCache::All, false),
        (libc::O_DIRECT, BypassCache::BlockDevices, true),
        (libc::O_DIRECT, BypassCache::None, true),
        (0, BypassCache::All, true),
    ] {
        let (_dir, own) = opened(flags, &content);
        let file = File::open(own.as_fd(), UncachedReads::Direct, strict).unwrap();
        // Some file systems can't tell what the cache holds.
        let (bytes, file_bytes) = read(&file, 9000, 5000, false);
        assert_eq!(bytes, content[5000..14_000]);
        assert!(
            cached || file_bytes.cached == 0,
            "{file_bytes:?} of a file that bypasses the cache"
        );
        assert!(flags != 0 || file_bytes.direct == 0, "{file_bytes:?} without O_DIRECT");
        // Into memory that direct I/O can't use, and beyond the end.
        let mut rest = vec![0_u8; 9000];
        let buffer = ReadBuffer { at: rest.as_mut_ptr(), slack: false };
        // SAFETY: the vector's bytes.
        let file_bytes = unsafe { file.0.read(buffer, 9000, 35_001, false) }.unwrap();
        assert_eq!(rest[..file_bytes.total()], content[35_001..]);
        assert!(
            cached || file_bytes.cached == 0,
            "{file_bytes:?} of a file that bypasses the cache"
        );
    }
}

#[test]
fn an_appending_descriptor_is_written_at_offsets() {
    let (dir, own) = opened(libc::O_APPEND, b"0123456789");
    let file = File::new(own.as_fd(), UncachedReads::Direct).unwrap();
    // SAFETY: a static string's bytes.
    unsafe { file.0.write(b"xy".as_ptr(), 2, 3) }.unwrap();
    assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"012xy56789");
}

#[test]
fn an_appending_descriptor_that_cannot_be_reopened_is_not_written() {
    for flags in [libc::O_APPEND, libc::O_APPEND | libc::O_DIRECT] {
        let (dir, own) = opened(flags, &[7; 8192]);
        let file = File::new(own.as_fd(), UncachedReads::Direct).unwrap();
        file.0.buffered.refuse();
        file.0.direct.refuse();
        let mut block = BounceBuffer::new(4096, 4096);
        // SAFETY: the buffer's bytes.
        let written = unsafe { file.0.write(block.as_mut_ptr(), 4096, 0) };
        assert_eq!(written.unwrap_err().errno, libc::EOPNOTSUPP);
        assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), [7; 8192]);
    }
}

#[test]
fn the_callers_descriptor_may_be_closed_and_ours_close_with_the_last_clone() {
    let (_dir, mut own) = opened(0, b"abc");
    own.write_all(b"xyz").unwrap();
    let file = File::new(own.as_fd(), UncachedReads::Direct).unwrap();
    drop(own);
    assert_eq!(read(&file, 10, 0, false).0, b"xyz");
    let fd = file.0.own.raw();
    let other = file.clone();
    drop(file);
    assert_eq!(read(&other, 10, 0, false).0, b"xyz");
    let link = format!("/proc/self/fd/{fd}");
    let before = std::fs::read_link(&link).unwrap();
    drop(other);
    assert_ne!(std::fs::read_link(&link).ok(), Some(before));
}
