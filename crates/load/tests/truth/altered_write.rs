//! The verification covers the bytes that timed writes left: bytes that somebody changes before the
//! read-back, and writes that never arrive, are found where they are.

use std::fs::File;
use std::os::unix::fs::FileExt;

use gpuio_record::{JobResult, VerifySubject};

use crate::lab::Lab;

/// Every path of bytes that needs no hardware, both orders, and a job that reads at the same time.
const LOADS: &[&str] = &[
    "rw=write\nloops=1",
    "rw=randwrite\nio_size=1m",
    "rw=write\nruntime=30ms",
    "rw=write\nloops=1\ndirect=0",
    "rw=randrw\nrwmixread=10\nruntime=50ms",
    "rw=write\nloops=1\npath=staged\ngpu=software",
    "rw=write\nloops=1\nengine=mmap",
];

fn job(lab: &Lab, lines: &str) -> JobResult {
    lab.job(&format!("bs=16k\nsize=1m\nthreads=2\nkeep=1\nverify\n{lines}"))
}

/// One byte of the file is another once the clock has stopped.
fn alter(lab: &Lab, at: u64) {
    let path = lab.file("gpuio.1");
    lab.diary.when_verifying(move || {
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x40], at).unwrap();
        file.sync_all().unwrap();
    });
}

#[test]
fn a_byte_that_changed_is_found_at_its_offset() {
    for lines in LOADS {
        let lab = Lab::with_gpu();
        let right = job(&lab, lines).verify.unwrap();
        assert_eq!((right.subject, right.bad_blocks), (VerifySubject::TimedWrites, 0), "{lines}");
        assert!(right.is_fine() && right.pass_bytes > 0, "{lines}: {right:?}");
        let at = 300_005;
        alter(&lab, at);
        let wrong = job(&lab, lines).verify.unwrap();
        // A load for a time may not have reached the block: then nothing is said of it.
        if wrong.filled_bytes > 0 && wrong.bad_blocks == 0 {
            continue;
        }
        assert_eq!((wrong.bad_blocks, wrong.bad_words), (1, 1), "{lines}: {wrong:?}");
        let bad = &wrong.mismatches[0];
        assert_eq!(bad.offset, at - at % 8, "{lines}");
        assert!(bad.path.ends_with("gpuio.1"), "{lines}: {}", bad.path);
        assert!(!wrong.is_fine());
    }
}

/// A device that says that it wrote, and did not.
#[test]
fn a_write_that_never_arrived_is_found() {
    for lines in ["rw=write\nloops=1", "rw=randwrite\nio_size=1m", "rw=write\nloops=1\ndirect=0"] {
        let lab = Lab::new();
        for round in ["a new file", "one that holds its pattern"] {
            let verify = job(&lab, lines).verify.unwrap();
            assert!(verify.is_fine(), "{lines}, {round}: {verify:?}");
            let lost = format!("{lines}\ninject=lost=20%,seed=3");
            let verify = job(&lab, &lost).verify.unwrap();
            // 128 blocks of which a fifth is lost: none at all is a chance of 10⁻¹³.
            assert!(verify.bad_blocks > 0, "{lines}, {round}: {verify:?}");
            for bad in &verify.mismatches {
                let place = bad.found_belongs_at.as_deref().unwrap();
                assert!(place.ends_with("as it was before the load"), "{lines}: {place}");
                assert_eq!(bad.offset % (16 << 10), 0, "from the block's first word on");
            }
            // A later run finds the same of what is there.
            let text =
                "[a]\ndirectory=${DIR}\nrw=read\nsize=1m\nthreads=2\nbs=16k\nloops=1\nverify\n";
            let mut plan = lab.plan(text);
            let record = lab.carry_out(&mut plan).unwrap();
            let later = record.jobs[0].verify.clone().unwrap();
            assert_eq!(later.bad_places, verify.bad_places, "{lines}, {round}: {later:?}");
        }
    }
}

/// Data written anew after the clock says nothing of the timed writes, and does not claim to.
#[test]
fn data_that_was_rewritten_is_called_so() {
    let lab = Lab::new();
    alter(&lab, 300_005);
    let verify = job(&lab, "rw=write\nloops=1\nverify=rewrite").verify.unwrap();
    assert_eq!((verify.subject, verify.bad_blocks), (VerifySubject::Rewritten, 0));
}
