//! gpuio never destroys what it did not make, unless a flag says so.

use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::record::check_clean;
use crate::tool::{bench, file, scratch, tree};

const WRITE: &str = "--rw write --bs 64k --size 1m --loops 1";

/// Notes of the guard on the first job's targets.
fn notes(record: &Value) -> Vec<&str> {
    let targets = record["plan"]["jobs"][0]["targets"].as_array().unwrap();
    targets.iter().map(|target| target["guard"].as_str().unwrap()).collect()
}

#[test]
fn a_foreign_file() {
    let dir = scratch();
    let mine: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).take(3 << 20).collect();
    let path = dir.path().join("mine");
    std::fs::write(&path, &mine).unwrap();
    for line in [
        format!("{WRITE} --filename mine"),
        format!("{WRITE} --filename mine --set rw=randrw"),
        format!("{WRITE} --filename ./mine --verify"),
        format!("{WRITE} --filename mine --destroy-data-on mine"),
    ] {
        let ran = bench(dir.path(), &line).exits(2).prints(&["mine", "--overwrite"]);
        assert_eq!(ran.out, "");
        assert!(std::fs::read(&path).unwrap() == mine, "{line}: changed");
        assert_eq!(tree(dir.path()), ["mine"], "{line}");
    }
    let record = bench(dir.path(), &format!("{WRITE} --filename mine --overwrite --format json"));
    let record = record.exits(0).json();
    check_clean(&record);
    assert_eq!(notes(&record), ["foreign_overwrite"]);
    let after = std::fs::read(&path).unwrap();
    assert_eq!(after.len(), mine.len(), "it is not cut");
    assert!(after[1 << 20..] == mine[1 << 20..], "past the job nothing changes");
    assert!(after[..1 << 20] != mine[..1 << 20]);
    // Overwriting once does not make it gpuio's.
    bench(dir.path(), &format!("{WRITE} --filename mine")).exits(2).prints(&["--overwrite"]);
}

/// `--overwrite` gives away the bytes that the job uses, and no other.
#[test]
fn a_part_of_a_foreign_file() {
    let mine: Vec<u8> = (0..2_000_000_u32).flat_map(u32::to_le_bytes).take(4 << 20).collect();
    for load in [
        "--rw randrw --verify",
        "--rw randrw --verify=inline",
        "--rw randrw",
        "--rw write --verify",
        "--rw write --verify --engine mmap",
        "--rw randwrite --verify=rewrite --threads 2 --size 512k",
        "--rw rw --verify --threads 2 --size 512k --bs 4k",
        "--rw randwrite --engine mmap",
    ] {
        let dir = scratch();
        let path = dir.path().join("mine");
        std::fs::write(&path, &mine).unwrap();
        let size = if load.contains("--size") { "" } else { "--size 1m" };
        let line = format!("{load} --offset 2m {size} --filename mine --overwrite --loops 1");
        let record = bench(dir.path(), &format!("{line} --format json")).exits(0).json();
        check_clean(&record);
        assert_eq!(notes(&record), ["foreign_overwrite"], "{load}");
        let after = std::fs::read(&path).unwrap();
        assert_eq!(after.len(), mine.len(), "{load}");
        assert!(after[..2 << 20] == mine[..2 << 20], "{load}: bytes before the job's changed");
        assert!(after[3 << 20..] == mine[3 << 20..], "{load}: bytes after the job's changed");
        assert!(after[2 << 20..3 << 20] != mine[2 << 20..3 << 20], "{load}: nothing was written");
    }
}

/// A foreign file that is too short for a mixed load is made longer; what it holds stays.
#[test]
fn a_foreign_file_that_is_made_longer() {
    let dir = scratch();
    let path = dir.path().join("mine");
    std::fs::write(&path, vec![b'm'; 100_000]).unwrap();
    let line = "--rw randrw --offset 1m --size 1m --bs 4k --filename mine --overwrite --loops 1";
    bench(dir.path(), line).exits(0);
    let after = std::fs::read(&path).unwrap();
    assert_eq!(after.len(), 2 << 20);
    assert!(after[..100_000].iter().all(|byte| *byte == b'm'));
    assert!(after[100_000..1 << 20].iter().all(|byte| *byte == 0), "no job's: a hole");
}

/// Reading harms nothing and needs no flag; verification of foreign bytes makes no sense.
#[test]
fn reading_a_foreign_file() {
    let dir = scratch();
    file(dir.path(), "mine", &"z".repeat(1 << 20));
    let line = "--rw randread --bs 64k --loops 1 --filename mine";
    let record = bench(dir.path(), &format!("{line} --format json")).exits(0).json();
    check_clean(&record);
    assert_eq!(notes(&record), ["foreign_read_only"]);
    bench(dir.path(), &format!("{line} --verify")).exits(2).prints(&["mine", "--verify"]);
    bench(dir.path(), &format!("{line} --size 2m"))
        .exits(2)
        .prints(&["mine", "1048576", "2097152"]);
    assert_eq!(std::fs::read(dir.path().join("mine")).unwrap(), vec![b'z'; 1 << 20]);
}

/// A name that gpuio would have chosen says nothing of who made the file.
#[test]
fn a_foreign_file_named_as_ours() {
    let dir = scratch();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    file(&dir.path().join("d"), "gpuio.0", "diary");
    let ran = bench(dir.path(), &format!("{WRITE} --directory d")).exits(2);
    assert!(ran.err.contains("gpuio.0") && ran.err.contains("--overwrite"), "{ran:?}");
    let ran = bench(dir.path(), "--rw read --bs 64k --size 1m --loops 1 --directory d").exits(2);
    assert!(ran.err.contains("gpuio.0"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(dir.path().join("d/gpuio.0")).unwrap(), "diary");
}

/// Files that we made in one run are known in the next, and no longer once somebody changed them.
#[test]
fn our_own_files() {
    let dir = scratch();
    let write = format!("{WRITE} --directory d --keep --verify --threads 2 --format json");
    let first = bench(dir.path(), &write).exits(0).json();
    assert_eq!(notes(&first), ["make", "make"]);
    let second = bench(dir.path(), &write).exits(0).json();
    check_clean(&second);
    // They hold other data before a write that is read back, so that what it leaves out shows.
    assert_eq!(notes(&second), ["remake", "remake"]);
    let read = "--rw read --bs 64k --size 1m --loops 1 --directory d --keep --verify --format json";
    assert_eq!(notes(&bench(dir.path(), read).exits(0).json()), ["ours"]);
    let longer = read.replace("1m", "2m");
    assert_eq!(notes(&bench(dir.path(), &longer).exits(0).json()), ["remake"]);
    let path = dir.path().join("d/gpuio.1");
    std::fs::write(&path, "now it is mine").unwrap();
    bench(dir.path(), &write).exits(2).prints(&["gpuio.1", "--overwrite"]);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "now it is mine");
}

/// A run was killed; what stands under the name now is somebody's own.
#[test]
fn a_file_copied_over_what_a_killed_run_left() {
    let dir = scratch();
    let path = dir.path().join("model.bin");
    let write = format!("{WRITE} --filename model.bin");
    bench(dir.path(), &write).exits(0);
    // As a run leaves it that is killed while it writes.
    let list = dir.path().join(".gpuio-files.json");
    let text = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, text.replace("\"in_use\": false", "\"in_use\": true")).unwrap();
    bench(dir.path(), &write).exits(0);
    std::fs::write(&list, text.replace("\"in_use\": false", "\"in_use\": true")).unwrap();
    let mine: Vec<u8> =
        (0..1 << 18).flat_map(|n: u32| n.wrapping_mul(n | 1).to_le_bytes()).collect();
    std::fs::write(dir.path().join("mine"), &mine).unwrap();
    std::fs::copy(dir.path().join("mine"), &path).unwrap();
    bench(dir.path(), &write).exits(2).prints(&["model.bin", "made by gpuio", "--overwrite"]);
    assert!(std::fs::read(&path).unwrap() == mine);
}

/// Reading is always allowed, and so is verifying: it has to find the byte that somebody changed.
#[test]
fn our_files_that_were_changed_touched_or_copied() {
    let dir = scratch();
    bench(dir.path(), &format!("{WRITE} --directory d --keep --verify")).exits(0);
    let path = dir.path().join("d/gpuio.0");
    let read = "--rw read --bs 64k --size 1m --loops 1 --verify --format json";
    let in_directory = format!("{read} --directory d");
    let touched = std::fs::File::options().write(true).open(&path).unwrap();
    touched.set_modified(std::time::UNIX_EPOCH).unwrap();
    let record = bench(dir.path(), &in_directory).exits(0).json();
    assert_eq!(notes(&record), ["changed"]);
    std::fs::copy(&path, dir.path().join("copy")).unwrap();
    bench(dir.path(), &format!("{read} --filename copy")).exits(0);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[700_003] ^= 0x20;
    for (name, line) in
        [("d/gpuio.0", in_directory.as_str()), ("copy", &format!("{read} --filename copy"))]
    {
        std::fs::write(dir.path().join(name), &bytes).unwrap();
        let record = bench(dir.path(), line).exits(1).json();
        let wrong = &record["jobs"][0]["verify"]["mismatches"][0];
        assert_eq!(wrong["offset"], 700_000, "{name}: {wrong}");
        assert!(std::fs::read(dir.path().join(name)).unwrap() == bytes, "{name}: mended");
    }
    let write = format!("{WRITE} --directory d");
    let ran = bench(dir.path(), &write).exits(2);
    assert!(ran.err.contains("made by gpuio and is not as it left it"), "{ran:?}");
}

#[test]
fn no_link_is_followed_below_a_directory() {
    let dir = scratch();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    file(dir.path(), "mine", &"m".repeat(1 << 20));
    symlink("../mine", dir.path().join("d/gpuio.0")).unwrap();
    for load in ["--rw write --overwrite", "--rw read"] {
        let line = format!("{load} --bs 64k --size 1m --loops 1 --directory d");
        bench(dir.path(), &line).exits(2).prints(&["d/gpuio.0", "symbolic link", "--filename"]);
    }
    let line = "--rw read --bs 64k --size 1m --loops 1 --filename d/gpuio.0";
    bench(dir.path(), line).exits(0);
    assert!(std::fs::read(dir.path().join("mine")).unwrap().iter().all(|byte| *byte == b'm'));
}

/// A file that is too short is reported, without advice to make it longer.
#[test]
fn a_foreign_file_that_is_too_short() {
    let dir = scratch();
    file(dir.path(), "passwd", &"x".repeat(1221));
    for size in ["", "--size 1m"] {
        let line = format!("--rw read --bs 64k {size} --loops 1 --filename passwd");
        let ran = bench(dir.path(), &line).exits(2).prints(&["passwd", "1221 bytes"]);
        assert!(!ran.err.contains("longer,") && !ran.err.contains("--rw write"), "{ran:?}");
    }
}

/// A scratch directory goes when the run ends; what a user put there stays.
#[test]
fn scratch_directories() {
    let dir = scratch();
    let line = "--rw read --bs 64k --size 1m --loops 1";
    bench(dir.path(), line).exits(0);
    assert_eq!(tree(dir.path()), Vec::<String>::new());
    bench(dir.path(), &format!("{line} --keep")).exits(0);
    assert!(tree(dir.path()).contains(&"gpuio-scratch/gpuio.0".to_owned()));
    let dir = scratch();
    std::fs::create_dir(dir.path().join("gpuio-scratch")).unwrap();
    file(&dir.path().join("gpuio-scratch"), "letter", "to a friend");
    bench(dir.path(), line).exits(0);
    let left = tree(dir.path());
    assert!(left.contains(&"gpuio-scratch/letter".to_owned()), "{left:?}");
    assert!(!left.contains(&"gpuio-scratch/gpuio.0".to_owned()), "{left:?}");
    // A directory that was named is the user's: with its files it stays, unless told to unlink.
    bench(dir.path(), &format!("{line} --directory named --set unlink=1")).exits(0);
    assert!(!dir.path().join("named/gpuio.0").exists());
}

/// A link is followed and named with where it leads; what it leads to is judged.
#[test]
fn links() {
    let dir = scratch();
    file(dir.path(), "real", &"r".repeat(2 << 20));
    symlink("real", dir.path().join("link")).unwrap();
    let ran = bench(dir.path(), &format!("{WRITE} --filename link")).exits(2);
    assert!(ran.err.contains("a link to") && ran.err.contains("real"), "{ran:?}");
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    let ran = bench(dir.path(), &format!("{WRITE} --filename dangling"));
    assert_ne!(ran.code, 101, "{ran:?}");
    assert!(std::fs::read(dir.path().join("real")).unwrap().iter().all(|byte| *byte == b'r'));
}

/// One refusal among several targets stops everything before a byte is written.
#[test]
fn all_or_nothing() {
    let dir = scratch();
    file(dir.path(), "b", "mine");
    let line = format!("{WRITE} --filename a --filename b");
    bench(dir.path(), &line).exits(2).prints(&["b", "--overwrite"]);
    assert_eq!(tree(dir.path()), ["b"]);
}

/// A list of our files that nobody can read: nothing in that directory is touched.
#[test]
fn a_broken_list() {
    let dir = scratch();
    bench(dir.path(), &format!("{WRITE} --directory d --keep")).exits(0);
    let before = std::fs::read(dir.path().join("d/gpuio.0")).unwrap();
    file(&dir.path().join("d"), ".gpuio-files.json", "{ not json");
    bench(dir.path(), &format!("{WRITE} --directory d")).exits(2).prints(&[".gpuio-files.json"]);
    assert!(std::fs::read(dir.path().join("d/gpuio.0")).unwrap() == before);
}
