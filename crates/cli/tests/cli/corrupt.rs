//! Wrong bytes are found, with file, offset and leg, on every path.

use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;

use crate::record::{check, n};
use crate::tool::{bench, file, gpuio, scratch};

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
        assert_eq!(n(&verify["bad_places"]), 1, "{way}: {verify}");
        assert!(text.contains("1 BAD BLOCK"), "{way}: {text}");
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

/// fio's headers say which block is wrong, and no more: neither a word nor a number of them.
#[test]
fn a_checksum_blames_the_block() {
    let dir = scratch();
    let data = "--path host --bs 64k --size 1m --threads 1 --loops 1 --directory d --keep \
                --set verify=crc32c";
    bench(dir.path(), &format!("--rw write {data}")).exits(0);
    let path = dir.path().join("d/gpuio.0");
    let time = path.metadata().unwrap().modified().unwrap();
    damage(&path, (5 * BLOCK + 3 * 4096) / 4096, false);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let line = format!("--rw read {data}");
    let text = bench(dir.path(), &line).exits(1).out;
    assert!(text.contains(&format!("block at {}, length {BLOCK}", 5 * BLOCK)), "{text}");
    assert!(!text.contains("wrong word") && text.contains("1 BAD BLOCK"), "{text}");
    let record = bench(dir.path(), &format!("{line} --format json")).exits(1).json();
    check(&record);
    let bad = &record["jobs"][0]["verify"]["mismatches"][0];
    assert_eq!((n(&bad["offset"]), n(&bad["checksum_of_bytes"])), (5 * BLOCK, BLOCK), "{bad}");
    assert_eq!(n(&bad["bad_words"]), 0, "{bad}");
}

/// Blocks that an earlier run wrote with another length are not checked, and nothing is said to be
/// wrong; a block that is wrong is.
#[test]
fn blocks_of_another_length_are_no_wrong_ones() {
    let dir = scratch();
    let data = "--path host --size 1m --threads 1 --loops 1 --directory d --keep \
                --set verify=crc32c";
    bench(dir.path(), &format!("--rw write --bs 64k {data}")).exits(0);
    for (bs, words, blocks) in [("128k", "128K", 8), ("32k", "32K", 32)] {
        let line = format!("--rw read --bs {bs} {data}");
        let text = bench(dir.path(), &line).exits(1).out;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = format!("written with bs=64K and read with bs={words}: use bs=64K");
        assert!(text.contains(&said), "{text}");
        assert!(!text.contains("BAD BLOCK") && !text.contains("corrupted"), "{text}");
        let record = bench(dir.path(), &format!("{line} --format json")).exits(1).json();
        check(&record);
        let verify = &record["jobs"][0]["verify"];
        assert_eq!(n(&verify["bad_blocks"]), 0, "{verify}");
        assert!(n(&verify["written_as"]["blocks"]) >= blocks, "{verify}");
        assert_eq!(n(&verify["written_as"]["block_bytes"]), BLOCK, "{verify}");
    }
    let path = dir.path().join("d/gpuio.0");
    let time = path.metadata().unwrap().modified().unwrap();
    // A block of another offset is named by its own header.
    let mut all = std::fs::read(&path).unwrap();
    let block = usize::try_from(BLOCK).unwrap();
    all.copy_within(5 * block..6 * block, 2 * block);
    std::fs::write(&path, all).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let text = bench(dir.path(), &format!("--rw read --bs 64k {data}")).exits(1).out;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = format!("this is the block of offset {}", 5 * BLOCK);
    assert!(text.contains(&said), "{text}");
    damage(&path, 32, true);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let text = bench(dir.path(), &format!("--rw read --bs 128k {data}")).exits(1).out;
    assert!(text.contains("BAD BLOCK") && text.contains("NOT CHECKED"), "{text}");
}

/// A file that a plain write left, and one that somebody cut: neither is written before it is
/// verified, and each refusal says how to get one that can be.
#[test]
fn files_that_are_to_be_verified_are_not_written_first() {
    let dir = scratch();
    let data = "--path host --bs 64k --size 1m --threads 1 --loops 1 --directory d --keep";
    let path = dir.path().join("d/gpuio.0");
    let read = || bench(dir.path(), &format!("--rw read {data} --verify"));
    bench(dir.path(), &format!("--rw randwrite {data}")).exits(0);
    let before = std::fs::read(&path).unwrap();
    let said = read().exits(2).err;
    assert!(said.contains("gpuio bench --rw write --directory d"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    bench(dir.path(), &format!("--rw write {data} --verify")).exits(0);
    read().exits(0);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(300 << 10).unwrap();
    let said = read().exits(2).err;
    assert!(said.contains("1048576 are wanted (gpuio left it with 1048576"), "{said}");
    assert_eq!(path.metadata().unwrap().len(), 300 << 10);
    // A file that holds its pattern and is read further than it goes is made longer, which is said.
    std::fs::remove_file(&path).unwrap();
    bench(dir.path(), &format!("--rw write {data} --verify")).exits(0);
    let longer = data.replace("--size 1m", "--size 2m");
    let text = bench(dir.path(), &format!("--rw read {longer} --verify")).exits(0).out;
    assert!(text.contains("[remade_before_verification]"), "{text}");
    // The same of jobs of one run: what can't be verified is known before the first begins.
    let line = "--directory e --path host --bs 64k --size 1m --name w --rw write \
                --name r --stonewall --rw read --verify";
    let said = bench(dir.path(), line).exits(2).err;
    assert!(said.contains("by an earlier job of this run"), "{said}");
    assert!(!dir.path().join("e").exists());
}

/// Wrong data is among the doubts of every format, and below the line of gdsio.
#[test]
fn wrong_data_is_a_doubt_in_every_format() {
    let dir = scratch();
    let data = "--path host --bs 64k --size 1m --threads 1 --loops 1 --directory d --keep --verify";
    bench(dir.path(), &format!("--rw write {data}")).exits(0);
    damage(&dir.path().join("d/gpuio.0"), 32, true);
    bench(dir.path(), &format!("--rw read {data} -o r.json")).exits(1);
    let said = "verification found 1 wrong block";
    for (verb, format) in
        [("show", "gdsio"), ("show", "fio-json"), ("report", "csv"), ("report", "openmetrics")]
    {
        let text = gpuio(dir.path(), &format!("{verb} r.json --format {format}")).out;
        assert!(text.contains(said), "{format}: {text}");
    }
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

/// Damages a block of a file: a bit of one byte, or all of it.
fn damage(path: &Path, block: u64, whole: bool) {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let length = if whole { 4096 } else { 1 };
    let at = block * 4096 + if whole { 0 } else { 1003 };
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at).unwrap();
    bytes.iter_mut().for_each(|byte| *byte ^= 0x10);
    file.write_all_at(&bytes, at).unwrap();
}

/// Any block of a file of gpuio's can be verified, whichever verb wrote it and however: what the
/// bytes should be does not follow from the bytes.
#[test]
fn every_block_of_every_writer_is_checked() {
    let dir = scratch();
    let many = |rw: &str| {
        let global = format!("[global]\nxfer_type=1\nrw={rw}\nbs=4k\nsize=4k\ndo_verify=1\n");
        let job = |nth| format!("[j{nth}]\nnum_threads=1\nfilename=m\nstart_offset={nth}k\n");
        let jobs: String = (0..8).map(|nth| job(4 * nth)).collect();
        file(dir.path(), &format!("{rw}.gdsio"), &(global + &jobs));
    };
    many("write");
    many("read");
    file(
        dir.path(),
        "feed.ini",
        "[mine]\nfiles=2\nsample_size=8192\nbatch_samples=1\nepochs=1\nreaders=1\ncompute=none\n\
         gpu=none\npath=host\nengine=psync\nverify=inline\ndirectory=w\nfile_prefix=s\nkeep=1\n",
    );
    let one = "gdsio -f o -i 4K -w 1 -x 1 -s 4K -V";
    let part = "gdsio -f p -i 4K -w 1 -x 1 -s 8K -V";
    let bench = "bench --path host --bs 4k --size 8k --threads 2 --loops 1 --directory b --keep \
                 --verify --rw";
    // Written, read back, the file, and its blocks.
    for (write, read, name, blocks) in [
        (&*format!("{one} -I 1"), &*format!("{one} -I 0"), "o", 1),
        ("gdsio write.gdsio", "gdsio read.gdsio", "m", 8),
        (&*format!("{part} -I 1"), &*format!("{part} -I 0"), "p", 2),
        (&*format!("{bench} write"), &*format!("{bench} read"), "b/gpuio.1", 2),
        ("workload feed.ini", "workload feed.ini", "w/s.0", 2),
    ] {
        if name == "m" || name == "p" {
            // A run that verifies nothing writes it first, in part behind what will be verified.
            gpuio(dir.path(), &format!("gdsio -f {name} -i 4K -w 1 -x 1 -s 64K -I 1")).exits(0);
        }
        gpuio(dir.path(), write).exits(0);
        gpuio(dir.path(), read).exits(0);
        let path = dir.path().join(name);
        let before = std::fs::read(&path).unwrap();
        for (block, whole) in (0..blocks).flat_map(|block| [(block, false), (block, true)]) {
            damage(&path, block, whole);
            let ran = gpuio(dir.path(), read).exits(1);
            let at = (block * 4096 + if whole { 0 } else { 1000 }).to_string();
            let both = format!("{} {}", ran.out, ran.err);
            assert!(both.contains(&at) && both.contains(name), "{name} {block} {whole}: {both}");
            std::fs::write(&path, &before).unwrap();
        }
    }
}
