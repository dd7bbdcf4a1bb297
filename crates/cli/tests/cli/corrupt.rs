//! Wrong bytes are found, with file, offset and leg, on every path.

use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;

use crate::record::{check, n};
use crate::tool::{bench, scratch};

const BLOCK: u64 = 64 << 10;

/// Runs a kept data set of two files through `change`, keeps the manifest's faith (size and time
/// of change), and gives the verification of a read over it.
fn after(more: &str, change: impl Fn(&Path)) -> (Value, String) {
    let dir = scratch();
    let data = "--bs 64k --size 1m --threads 2 --loops 1 --directory d --keep --verify";
    bench(dir.path(), &format!("--rw write {data}")).exits(0);
    let path = dir.path().join("d/gpuio.1");
    let time = path.metadata().unwrap().modified().unwrap();
    change(&path);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let line = format!("--rw read {data} {more}");
    let text = bench(dir.path(), &line).exits(1).out;
    assert!(text.contains("BAD BLOCK"), "{text}");
    let record = bench(dir.path(), &format!("{line} --format json")).exits(1).json();
    check(&record);
    (record["jobs"][0]["verify"].clone(), text)
}

const WAYS: [&str; 5] = [
    "--path host",
    "--path host --engine mmap",
    "--path staged --gpu software",
    "--path staged --gpu software --memory pinned",
    "--path cached --gpu software",
];

#[test]
fn one_wrong_byte() {
    let at = 5 * BLOCK + 3 * 4096 + 13;
    for way in WAYS {
        let (verify, text) = after(way, |path| {
            let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
        });
        assert!(n(&verify["bad_blocks"]) >= 1, "{way}: {verify}");
        assert_eq!(n(&verify["bad_words"]), n(&verify["bad_blocks"]), "{way}: one word: {verify}");
        let bad = &verify["mismatches"][0];
        assert!(bad["path"].as_str().unwrap().ends_with("d/gpuio.1"), "{way}: {bad}");
        assert_eq!(n(&bad["offset"]), at / 8 * 8, "{way}: {bad}");
        assert_eq!(bad["leg"], "file", "{way}: {bad}");
        assert_ne!(bad["expected"], bad["found"], "{way}: {bad}");
        assert!(text.contains(&(at / 8 * 8).to_string()), "{way}: {text}");
    }
}

/// Right bytes in the wrong place are wrong, and it is said where they belong.
#[test]
fn two_blocks_swapped() {
    for way in WAYS {
        let (verify, _) = after(way, |path| {
            let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
            let mut blocks = [vec![0; 64 << 10], vec![0; 64 << 10]];
            file.read_exact_at(&mut blocks[0], 2 * BLOCK).unwrap();
            file.read_exact_at(&mut blocks[1], 9 * BLOCK).unwrap();
            file.write_all_at(&blocks[0], 9 * BLOCK).unwrap();
            file.write_all_at(&blocks[1], 2 * BLOCK).unwrap();
        });
        let bad = verify["mismatches"].as_array().unwrap();
        for (at, home) in [(2, 9), (9, 2)] {
            let (at, home) = (at * BLOCK, format!("gpuio.1 offset {}", home * BLOCK));
            let found = bad.iter().find(|bad| n(&bad["offset"]) == at);
            let found = found.unwrap_or_else(|| panic!("{way}: nothing at {at}: {verify}"));
            let belongs = found["found_belongs_at"].as_str().unwrap();
            assert!(belongs.ends_with(&home), "{way}: {belongs}");
            assert_eq!(n(&found["bad_words"]), BLOCK / 8, "{way}: {found}");
        }
    }
}

/// A block of another file of the set, and one of zeros that no run wrote.
#[test]
fn blocks_from_elsewhere() {
    let (verify, _) = after("--path staged --gpu software", |path| {
        let other = std::fs::read(path.with_file_name("gpuio.0")).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.write_all_at(&other[..64 << 10], 0).unwrap();
        file.write_all_at(&vec![0; 64 << 10], 7 * BLOCK).unwrap();
    });
    let bad = verify["mismatches"].as_array().unwrap();
    let at = |offset| bad.iter().find(|bad| n(&bad["offset"]) == offset).unwrap();
    assert!(at(0)["found_belongs_at"].as_str().unwrap().ends_with("gpuio.0 offset 0"), "{bad:?}");
    assert!(at(7 * BLOCK)["found_belongs_at"].is_null(), "{bad:?}");
}

/// Inline verification sees it in the timed load itself.
#[test]
fn inline() {
    let at = 3 * BLOCK + 800;
    let change = |path: &Path| {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.write_all_at(&[0xff; 8], at).unwrap();
    };
    let (verify, _) = after("--set verify=inline", change);
    assert_eq!(n(&verify["bad_blocks"]), 1, "{verify}");
    assert_eq!(n(&verify["mismatches"][0]["offset"]), at);
}
