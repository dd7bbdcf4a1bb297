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

fn read(file: &File, len: usize, offset: u64, large: bool) -> (Vec<u8>, Got) {
    let mut bounce = Bounce::new(len + 8192, 4096);
    let at = bounce.as_mut_ptr().wrapping_add(file.0.skip(offset));
    // SAFETY: the buffer is aligned and two pages longer than what is asked for.
    let got = unsafe { file.0.read(Spot { at, slack: true }, len, offset, large) }.unwrap();
    // SAFETY: so many bytes were just read there.
    let bytes = unsafe { std::slice::from_raw_parts(at, got.bytes()) }.to_vec();
    (bytes, got)
}

use crate::bounce::Bounce;

#[test]
fn what_is_no_file_is_told() {
    let (pipe, _end) = std::io::pipe().unwrap();
    let told = File::new(pipe.as_fd(), Cold::Direct).unwrap_err();
    assert!(told.to_string().contains("is a pipe"), "{told}");
    let dir = std::fs::File::open("/").unwrap();
    assert!(File::new(dir.as_fd(), Cold::Direct).unwrap_err().to_string().contains("a directory"));
}

#[test]
fn cached_ranges_come_from_the_cache_and_cold_ones_go_past_it() {
    let content = vec![7_u8; 100_000];
    for flags in [0, libc::O_DIRECT] {
        let (_dir, own) = opened(flags, &content);
        let file = File::new(own.as_fd(), Cold::Direct).unwrap();
        let (bytes, got) = read(&file, 50_001, 3, true);
        assert_eq!((bytes.len(), got.direct), (50_001, 0), "just written, so in the cache");
        own.sync_all().unwrap();
        // SAFETY: the call takes numbers only.
        unsafe { libc::posix_fadvise(own.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        let (bytes, got) = read(&file, 60_001, 3, true);
        assert_eq!(bytes, content[..60_001]);
        assert!(got.direct > 0, "{got:?}");
    }
}

#[test]
fn a_plain_descriptor_stays_plain_if_that_is_asked() {
    let (_dir, own) = opened(0, &[7; 100_000]);
    let file = File::new(own.as_fd(), Cold::AsOpened).unwrap();
    own.sync_all().unwrap();
    // SAFETY: the call takes numbers only.
    unsafe { libc::posix_fadvise(own.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(read(&file, 60_000, 0, true).1, Got { cached: 60_000, direct: 0 });
}

#[test]
fn edges_without_a_buffered_descriptor_are_rewritten_in_their_blocks() {
    let content: Vec<u8> = (0..20_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    let (dir, own) = opened(libc::O_DIRECT, &content);
    let file = File::new(own.as_fd(), Cold::Direct).unwrap();
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
        let spot = Spot { at: back.as_mut_ptr(), slack: false };
        // SAFETY: the vector's bytes.
        let got = unsafe { file.0.read(spot, len, offset as u64, false) }.unwrap();
        assert_eq!((got.bytes(), back), (len, bytes));
    }
}

#[test]
fn a_strict_file_with_o_direct_is_not_read_from_the_page_cache() {
    let content: Vec<u8> = (0..40_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    for (flags, strict, cached) in [
        (libc::O_DIRECT, Strict::All, false),
        (libc::O_DIRECT, Strict::BlockDevices, true),
        (libc::O_DIRECT, Strict::None, true),
        (0, Strict::All, true),
    ] {
        let (_dir, own) = opened(flags, &content);
        let file = File::open(own.as_fd(), Cold::Direct, strict).unwrap();
        // Some file systems can't tell what the cache holds.
        let (bytes, got) = read(&file, 9000, 5000, false);
        assert_eq!(bytes, content[5000..14_000]);
        assert!(cached || got.cached == 0, "{got:?} of a strict file");
        assert!(flags != 0 || got.direct == 0, "{got:?} without O_DIRECT");
        // Into memory that direct I/O can't use, and beyond the end.
        let mut rest = vec![0_u8; 9000];
        let spot = Spot { at: rest.as_mut_ptr(), slack: false };
        // SAFETY: the vector's bytes.
        let got = unsafe { file.0.read(spot, 9000, 35_001, false) }.unwrap();
        assert_eq!(rest[..got.bytes()], content[35_001..]);
        assert!(cached || got.cached == 0, "{got:?} of a strict file");
    }
}

#[test]
fn an_appending_descriptor_is_written_at_offsets() {
    let (dir, own) = opened(libc::O_APPEND, b"0123456789");
    let file = File::new(own.as_fd(), Cold::Direct).unwrap();
    // SAFETY: a static string's bytes.
    unsafe { file.0.write(b"xy".as_ptr(), 2, 3) }.unwrap();
    assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"012xy56789");
}

#[test]
fn an_appending_descriptor_that_cannot_be_opened_anew_is_not_written() {
    for flags in [libc::O_APPEND, libc::O_APPEND | libc::O_DIRECT] {
        let (dir, own) = opened(flags, &[7; 8192]);
        let file = File::new(own.as_fd(), Cold::Direct).unwrap();
        file.0.buffered.refuse();
        file.0.direct.refuse();
        let mut block = Bounce::new(4096, 4096);
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
    let file = File::new(own.as_fd(), Cold::Direct).unwrap();
    drop(own);
    assert_eq!(read(&file, 10, 0, false).0, b"xyz");
    let fd = file.0.own.as_raw_fd();
    let other = file.clone();
    drop(file);
    assert_eq!(read(&other, 10, 0, false).0, b"xyz");
    let link = format!("/proc/self/fd/{fd}");
    let before = std::fs::read_link(&link).unwrap();
    drop(other);
    assert_ne!(std::fs::read_link(&link).ok(), Some(before));
}
