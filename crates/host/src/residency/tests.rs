//! Both calls must agree, and dropping pages must show.

use std::io::Write;

use super::*;

const PAGES: usize = 64;

fn cached_file() -> (tempfile::NamedTempFile, u64) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let length = PAGES * page_size() + 100;
    file.write_all(&vec![7u8; length]).unwrap();
    (file, length as u64)
}

#[test]
fn freshly_written_bytes_are_all_cached() {
    let (file, length) = cached_file();
    let found = residency(file.as_file(), 0, u64::MAX);
    assert_eq!(found.range_bytes, length);
    assert_eq!(found.cached_bytes, Some(length), "{found:?}");
    assert_eq!(found.fraction, Some(1.0));
    assert_eq!(found.reason, None);
}

#[test]
fn mincore_agrees_with_cachestat() {
    let (file, length) = cached_file();
    let page = page_size() as u64;
    for (offset, wanted) in [(0, length), (page * 3, page * 5), (page + 1, 10)] {
        let first = residency(file.as_file(), offset, wanted).cached_bytes;
        let second = by_mincore(file.as_file(), offset, wanted).unwrap();
        assert_eq!(first, Some(second), "offset {offset} length {wanted}");
        assert_eq!(second, wanted);
    }
}

#[test]
fn a_hole_is_not_cached() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let found = residency(&file, 0, 1 << 20);
    assert_eq!(found.cached_bytes, Some(0), "{found:?}");
    assert_eq!(by_mincore(&file, 0, 1 << 20).unwrap(), 0);
}

#[test]
fn an_empty_range_needs_no_answer() {
    let (file, length) = cached_file();
    let found = residency(file.as_file(), length, 4096);
    assert_eq!((found.range_bytes, found.fraction), (0, Some(0.0)));
}

#[test]
fn dropping_empties_the_cache_where_there_is_storage_behind_it() {
    let (file, length) = cached_file();
    drop_cache(file.as_file()).unwrap();
    let found = residency(file.as_file(), 0, length);
    let fs = rustix::fs::fstatfs(file.as_file()).unwrap();
    // tmpfs and ramfs are page cache, and overlay may lie on them: nothing to drop there.
    if matches!(fs.f_type, 0x0102_1994 | 0x8584_58f6 | 0x794c_7630) {
        println!("skipped: the temporary directory is in memory");
        return;
    }
    assert_eq!(found.cached_bytes, Some(0), "{found:?}");
    assert_eq!(found.dirty_bytes.unwrap_or(0), 0);
}

#[test]
fn what_cannot_be_queried_gives_a_reason() {
    let (reader, _writer) = rustix::pipe::pipe().unwrap();
    let found = residency(&File::from(reader), 0, 4096);
    assert_eq!(found.fraction, None);
    assert!(found.reason.unwrap().contains("neither a regular file"));
}
