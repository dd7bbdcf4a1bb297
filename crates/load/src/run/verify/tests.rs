use proptest::prelude::*;

use super::*;
use gpuio_io::engine::IoFault;
use gpuio_io::path::Fault;
use gpuio_record::IoFailure;
use gpuio_testkit::jobs::job;

fn mixed(job: &JobPlan, target: u32, index: u64) -> u64 {
    word(key(job, target), index)
}

proptest! {
    #[test]
    fn unmixing_undoes_the_patterns_mixing(counter in any::<u64>()) {
        // Word 0 of a file is its key, mixed.
        prop_assert_eq!(unmix(word(counter, 0)), counter);
    }

    #[test]
    fn a_word_of_the_pattern_reports_where_it_belongs(target in 0_u32..2, index in 0_u64..1 << 17) {
        let job = job("filename=/x:/y\nsize=2m\nbs=4k");
        let origin = origin_of(&job, mixed(&job, target, index));
        let path = ["/x", "/y"][target as usize];
        prop_assert_eq!(origin, Some(format!("{path} offset {}", index * 8)));
    }

    #[test]
    fn other_words_belong_nowhere(found in any::<u64>()) {
        let job = job("filename=/x:/y\nsize=2m\nbs=4k");
        let belongs = (0..1 << 17).any(|index| mixed(&job, 0, index) == found);
        // One chance in 2^46 for each file: then the word is one of the pattern.
        prop_assert!(belongs || origin_of(&job, found).is_none());
    }
}

#[test]
fn a_word_of_before_the_load_is_reported() {
    let stale = word(file_key(other_salt(job("filename=/x").salt), 0), 3);
    for (lines, recorded) in [("rw=write\nverify=pass", true), ("rw=write\nverify=rewrite", false)]
    {
        let mut job = job(&format!("filename=/x\nsize=1m\nbs=4k\n{lines}"));
        job.targets[0].file_number = 0;
        let words = recorded.then(|| "/x offset 24, as it was before the load".to_owned());
        assert_eq!(origin_of(&job, stale), words);
    }
}

#[test]
fn a_word_past_the_end_of_its_file_belongs_nowhere() {
    let job = job("filename=/x\nsize=1m\nbs=4k");
    assert!(origin_of(&job, mixed(&job, 0, (1 << 17) - 1)).is_some());
    assert_eq!(origin_of(&job, mixed(&job, 0, 1 << 17)), None);
    assert_eq!(origin_of(&job, 0), None, "an empty block");
}

#[test]
fn findings_of_workers_add_up_and_the_first_mismatches_are_kept() {
    let bad = |offset| {
        (
            0,
            Mismatch {
                offset,
                expected: 1,
                found: 2,
                bad_words: 3,
                checksum_of: None,
                leg: Some(Leg::Gpu),
                gpu: None,
            },
        )
    };
    let mut faults = IoFaults::default();
    let unread = Request {
        op: Op::Read,
        file: 0,
        offset: 8192,
        len: 4096,
        slot: 0,
        place: Place::Slot,
        started: 0,
        due: 0,
    };
    faults.add(0, &unread, Fault::File(IoFault::Errno(libc::EIO)));
    let some = |n: u64, complete| Findings {
        timed: (1, 4096),
        pass: (n, n * 4096),
        filled: 0,
        of_bytes: n * 4096,
        sampled: false,
        bad_blocks: n,
        bad_words: 3 * n,
        bad: (0..n).map(bad).collect(),
        bad_places: (0..n).map(|n| (0, 8 * n)).collect(),
        bad_places_at_least: false,
        written_as: OtherLength::default(),
        failures: faults.clone(),
        injected: InjectedFaults { eio: n, ..InjectedFaults::default() },
        complete,
    };
    let mut all = some(10, true);
    all.merge(some(10, true));
    let job = job("filename=/x\nsize=1m\nbs=4k");
    let outcome = all.clone().into_record(&job, 0);
    assert_eq!((outcome.timed_blocks, outcome.timed_bytes), (2, 8192));
    assert_eq!((outcome.pass_blocks, outcome.pass_bytes), (20, 20 * 4096));
    assert_eq!((outcome.bad_blocks, outcome.bad_words, outcome.failed), (20, 60, 2));
    assert_eq!((outcome.bad_places, outcome.bad_places_at_least), (Some(10), false));
    assert_eq!(outcome.mismatches.len(), 10, "each place once");
    assert_eq!(outcome.mismatches[0].leg, "gpu");
    assert_eq!(outcome.mismatches[0].expected, "0x0000000000000001");
    assert!(outcome.complete);
    let IoFailure { path, offset, times, .. } = &outcome.failures[0];
    assert_eq!((path.as_str(), *offset, *times), ("/x", 8192, 2));
    assert_eq!(outcome.injected.eio, 20);
    all.merge(some(0, false));
    assert!(!all.into_record(&job, 0).complete, "one that was cut short");
}

#[test]
fn where_blocks_were_checked_is_reported() {
    let words = |lines: &str| Findings::default().into_record(&job(lines), 0).checked_in;
    assert_eq!(words("path=host"), "host memory, by the CPU");
    assert_eq!(words("path=staged"), "GPU memory, by a kernel");
    assert_eq!(words("path=staged\nmemory=pinned"), "host memory, by the CPU");
    let mut software = job("path=staged\nmemory=vmm");
    software.gpus[0].software = true;
    let checked_in = Findings::default().into_record(&software, 0).checked_in;
    assert_eq!(checked_in, "software GPU memory, by the kernel's software twin");
}

#[test]
fn a_block_that_is_not_its_file_is_found() {
    let file: Vec<u8> = (0..35).collect();
    assert_eq!(differs(&file, &file, 4096), None);
    for (at, word) in [(0, 0), (17, 16), (34, 32)] {
        let mut there = file.clone();
        there[at] ^= 0x80;
        let found = differs(&there, &file, 4096).unwrap();
        assert_eq!((found.offset, found.bad_words), (4096 + word, 1));
        assert_eq!(found.found ^ found.expected, 0x80 << (at % 8 * 8));
    }
    assert_eq!(differs(&[0xff; 35], &file, 0).unwrap().bad_words, 5);
}
