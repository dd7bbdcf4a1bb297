//! Files whose holes are known to the byte: what is said of them is that and no more.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use gpuio_host::extents::extents;
use gpuio_record::{Source, WarningKind};
use rustix::fs::{FallocateFlags, fallocate};

use crate::lab::Lab;

const MIB: u64 = 1 << 20;

/// A file of 8 MiB with data in `data` (MiB) and nothing written elsewhere.
fn file(lab: &Lab, data: std::ops::Range<u64>) -> File {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(lab.file("f")).unwrap();
    file.set_len(8 * MIB).unwrap();
    for at in data {
        file.write_all_at(&vec![7; usize::try_from(MIB).unwrap()], at * MIB).unwrap();
    }
    file.sync_all().unwrap();
    file
}

fn read(lab: &Lab, lines: &str) -> gpuio_load::run::Ran {
    lab.run(&format!("[a]\nfilename=${{DIR}}/f\nbs=64k\nsize=8m\nloops=1\ninvalidate=1\n{lines}\n"))
}

fn reported(ran: &gpuio_load::run::Ran) -> Option<(u64, u64, u64, bool)> {
    ran.warnings.iter().find_map(|warning| match warning.kind {
        WarningKind::Holes { hole_bytes, unwritten_bytes, range_bytes, reads } => {
            Some((hole_bytes, unwritten_bytes, range_bytes, reads))
        }
        _ => None,
    })
}

#[test]
fn known_holes_are_reported_to_the_byte() {
    for order in ["rw=read", "rw=randread", "rw=read\ndirect=0"] {
        let lab = Lab::new();
        file(&lab, 3..6);
        let ran = read(&lab, order);
        let found = ran.jobs[0].cache.holes.clone().unwrap();
        assert_eq!((found.range_bytes, found.absent_bytes()), (8 * MIB, 5 * MIB), "{order}");
        assert_eq!(reported(&ran), Some((5 * MIB, 0, 8 * MIB, true)), "{order}");
        let proof = ran.jobs[0].proof.as_ref().unwrap();
        assert_ne!(proof.verdict.source, Source::Storage, "{order}: {}", proof.sentence);
        assert!(!proof.sentence.contains("the page cache the rest"), "{}", proof.sentence);
        // A part that has none of them.
        let text = "[a]\nfilename=${DIR}/f\nbs=64k\nsize=3m\noffset=3m\nloops=1\n";
        let part = lab.run(text);
        let found = part.jobs[0].cache.holes.as_ref().unwrap();
        assert_eq!((found.range_bytes, found.absent_bytes(), reported(&part)), (3 * MIB, 0, None));
    }
}

#[test]
fn a_file_of_nothing_but_a_hole_was_read_from_no_device() {
    for order in ["rw=read", "rw=randread"] {
        let lab = Lab::new();
        file(&lab, 0..0);
        // The device counts for all processes: a run beside other reads of it proves nothing.
        let others = |ran: &gpuio_load::run::Ran| {
            let entries = ran.jobs[0].proof.iter().flat_map(|proof| &proof.evidence);
            entries
                .filter(|entry| entry.name == "block")
                .any(|entry| entry.observed_bytes > Some(0))
        };
        let mut tries = std::iter::repeat_with(|| read(&lab, order)).take(20);
        let Some(ran) = tries.find(|ran| !others(ran)) else {
            println!("SKIPPED: other programs read this device all the time; run it alone");
            return;
        };
        assert_eq!(reported(&ran), Some((8 * MIB, 0, 8 * MIB, true)), "{order}");
        let proof = ran.jobs[0].proof.as_ref().unwrap();
        // Where the process's counter can't be read nothing is known.
        let known = ran.jobs[0].cache.process_read_bytes.is_some();
        let source = if known { Source::Holes } else { Source::Unknown };
        assert_eq!(proof.verdict.source, source, "{order}: {}", proof.sentence);
        assert!(!proof.as_requested);
        let cached = |warning: &gpuio_record::Warning| {
            matches!(
                warning.kind,
                WarningKind::DirectButCached { .. } | WarningKind::PageCacheServedReads { .. }
            )
        };
        assert!(!ran.warnings.iter().any(cached), "{:?}", ran.warnings);
    }
}

#[test]
fn what_was_allocated_and_never_written_is_reported_as_that() {
    let lab = Lab::new();
    let file = file(&lab, 0..2);
    if fallocate(&file, FallocateFlags::empty(), 2 * MIB, 6 * MIB).is_err()
        || extents(&file, 0, 8 * MIB).unwritten_bytes.is_none()
    {
        println!("SKIPPED: this file system allocates nothing ahead, or does not tell");
        return;
    }
    let ran = read(&lab, "rw=randread");
    assert_eq!(reported(&ran), Some((0, 6 * MIB, 8 * MIB, true)));
}

/// Our own files have none, whatever wrote them.
#[test]
fn files_that_gpuio_made_have_none() {
    let lab = Lab::new();
    let own = "directory=${DIR}/d\nsize=1m\nbs=64k\nkeep=1\nthreads=2";
    for load in ["rw=randwrite\nruntime=5ms", "rw=randread\nloops=1", "rw=write\nruntime=1ms"] {
        let ran = lab.run(&format!("[a]\n{own}\n{load}\n"));
        let found = ran.jobs[0].cache.holes.as_ref().unwrap();
        assert_eq!((found.range_bytes, found.absent_bytes()), (2 * MIB, 0), "{load}");
        assert_eq!(reported(&ran), None);
    }
}
