//! I/O of kernels beside pread(2) and pwrite(2): on each file system that can be made here, on
//! files that change meanwhile, and on files whose I/O fails.

use std::path::Path;

use gpuio_testkit::faulty::{self, Cache, Fault};
use gpuio_testkit::file_systems::{self, READ_ONLY, Room, WRITABLE};
use gpuio_testkit::skip;

use super::{BUFFERED, DIRECT, agrees, program};
use crate::{dir, random_bytes};

const RANDOM: &str = "crates/clib/tests/rings/random.cu";
const TWIN: &str = "crates/clib/tests/rings/twin.cu";

/// Files that change in a directory: between I/Os, or during them.
fn change(twin: &Path, name: &str, place: &Path, seed: &str, (mode, direct, steps): Change) {
    let place = place.join(format!("{mode}{direct}"));
    std::fs::create_dir(&place).unwrap();
    agrees(twin, name, &[mode, place.to_str().unwrap(), seed, steps, direct]);
}

type Change<'a> = (&'a str, &'a str, &'a str);

/// Each kind of change once, with the fewest steps that have all.
const CHANGES: [Change; 3] =
    [("changes", BUFFERED, "6"), ("changes", DIRECT, "6"), ("beside", BUFFERED, "6")];
const MORE_CHANGES: [Change; 4] = [
    ("changes", BUFFERED, "20"),
    ("changes", DIRECT, "12"),
    ("beside", BUFFERED, "20"),
    ("beside", DIRECT, "12"),
];

#[test]
fn each_file_system_has_what_pread_and_pwrite_have() {
    let Some((_random, random)) = program(RANDOM) else { return };
    let Some((_twin, twin)) = program(TWIN) else { return };
    for (name, mount) in WRITABLE {
        file_systems::on(name, dir(), mount, |place| {
            let file = place.join("file");
            for direct in [BUFFERED, DIRECT] {
                agrees(&random, name, &[file.to_str().unwrap(), "4", "10", direct]);
            }
            for one in CHANGES {
                change(&twin, name, place, "5", one);
            }
        });
    }
    for (name, mount_of) in READ_ONLY {
        let mount = |room: &mut Room| {
            let source = room.create_dir("source");
            std::fs::write(source.join("file"), random_bytes(6, 200_001)).unwrap();
            mount_of(room, &source)
        };
        file_systems::on(name, dir(), mount, |place| {
            let file = place.join("file");
            let file = file.to_str().unwrap();
            for direct in [BUFFERED, DIRECT] {
                agrees(&twin, name, &["given", file, file, "7", "4", direct]);
            }
        });
    }
}

#[test]
fn files_that_change_while_kernels_read() {
    let Some((dir, twin)) = program(TWIN) else { return };
    let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
    for (place, seed) in [(dir.path(), "1"), (in_memory.path(), "2")] {
        for one in MORE_CHANGES {
            change(&twin, place.to_str().unwrap(), place, seed, one);
        }
    }
}

#[test]
fn errors_and_short_answers_of_a_file_system_are_those_of_pread_and_pwrite() {
    let Some((_twin, twin)) = program(TWIN) else { return };
    let mut room = match Room::new(dir()) {
        Ok(room) => room,
        Err(why) => return skip(&format!("a file whose I/O fails: {why}")),
    };
    let fault = |bytes, is_write, errno| Fault { bytes, is_write, errno };
    let errors = vec![
        fault(8192..8193, false, -libc::EIO),
        fault(30_000..50_000, false, -libc::EIO),
        fault(60_000..60_001, false, -libc::ENODATA),
        fault(20_000..20_001, true, -libc::EIO),
        fault(100_000..120_000, true, -libc::ENOSPC),
    ];
    // Reads alone: a write of io_uring that is answered short is EIO, as Linux has it.
    let stops = vec![fault(70_000..70_512, false, 0), fault(90_112..90_113, false, 0)];
    for (cache, faults) in [(Cache::Pages, errors.clone()), (Cache::None, [errors, stops].concat())]
    {
        let mut made = |name: &str| {
            let name = format!("{name}-{cache:?}");
            faulty::mount(&mut room, &name, random_bytes(8, 150_001), cache, faults.clone())
        };
        let (file, other) = match made("file").and_then(|file| Ok((file, made("twin")?))) {
            Ok(both) => both,
            Err(why) => return skip(&format!("a file whose I/O fails: {why}")),
        };
        for (seed, direct) in [("9", BUFFERED), ("10", DIRECT)] {
            let words =
                ["given", file.to_str().unwrap(), other.to_str().unwrap(), seed, "16", direct];
            if let Some(out) = agrees(&twin, &format!("FUSE, {cache:?}"), &words) {
                assert!(!out.contains(" 0 stop short") && !out.contains(" 0 fail"), "{out}");
            }
        }
    }
}
