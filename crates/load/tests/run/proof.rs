//! The way that bytes took, proven on real files.

use gpuio_record::{Assessment, DirectMode, Evidence, JobResult, Proof, Route, Source};
use gpuio_testkit::child;

use crate::lab::Lab;

fn proof(job: &JobResult) -> &Proof {
    job.proof.as_ref().unwrap()
}

fn assessment(proof: &Proof, name: &str) -> Assessment {
    proof.evidence.iter().find(|entry| entry.name == name).unwrap().assessment
}

/// Whether some evidence source shows what storage moved: not on every file system.
fn storage_is_observed(proof: &Proof) -> bool {
    let storage = ["process_io", "block", "nfs"];
    let conclusive = |name: &&str| assessment(proof, name) != Assessment::Inconclusive;
    storage.iter().any(conclusive)
}

#[test]
fn buffered_reads_over_and_over_come_from_the_page_cache() {
    // Alone: counts are a process's.
    child::alone(&[], || {
        // The first pass may come from storage, and others move bytes at the same device: both are
        // lost in so much.
        let job = Lab::new().job("size=1m\nbs=256k\nloops=1024\ndirect=0\nengine=psync");
        let proof = proof(&job);
        assert_eq!(assessment(proof, "own"), Assessment::Supports, "{proof:#?}");
        let leg = proof.evidence.iter().find(|entry| entry.name == "own").unwrap();
        assert_eq!((leg.observed_bytes, leg.expected_bytes), (Some(1 << 30), Some(1 << 30)));
        if storage_is_observed(proof) {
            assert_eq!(proof.verdict.words, "page cache", "{proof:#?}");
            assert!(proof.as_requested);
        }
        assert_ne!(proof.verdict.route, Route::Direct, "{proof:#?}");
        assert_ne!(proof.verdict.source, Source::Storage);
    });
}

#[test]
fn direct_is_reported_only_where_nothing_speaks_against_it() {
    let job = Lab::new().job("size=8m\nbs=256k\nloops=4\nengine=psync");
    let proof = proof(&job);
    if proof.verdict.route == Route::Direct {
        assert_eq!(job.direct_actual, DirectMode::Direct);
        assert_eq!(assessment(proof, "page_cache"), Assessment::Supports, "{proof:#?}");
        assert!(
            proof.evidence.iter().all(|entry| entry.assessment != Assessment::Contradicts),
            "{proof:#?}"
        );
        assert!(storage_is_observed(proof));
    }
    if job.direct_actual == DirectMode::Buffered {
        assert_ne!(proof.verdict.route, Route::Direct);
    }
}

#[test]
fn an_engine_that_moves_nothing_proves_nothing() {
    let job = Lab::new().job("engine=null\nsize=1m\nbs=4k\nruntime=100ms");
    let proof = proof(&job);
    assert_eq!(proof.verdict.words, "unknown", "{proof:#?}");
    assert!(!proof.as_requested);
    assert!(proof.sentence.contains("moved no bytes"), "{}", proof.sentence);
}

#[test]
fn a_ring_bounces_in_host_memory() {
    // Alone: counts are a process's.
    child::alone(&[], || {
        let lab = Lab::with_gpu();
        let job = lab.job("path=cached\nsize=1m\nbs=256k\nloops=1024\nengine=psync");
        let proof = proof(&job);
        assert_eq!(proof.verdict.route, Route::BounceHost, "{proof:#?}");
        assert!(proof.sentence.contains("software GPU"), "{}", proof.sentence);
        // I/O of others at the same device is counted too. Where all of it is little beside what
        // was read, the page cache gave the rest.
        let storage = proof.evidence.iter().filter(|entry| {
            ["process_io", "block", "nfs"].contains(&entry.name.as_str())
                && entry.assessment != Assessment::Inconclusive
        });
        let moved: Vec<u64> = storage.filter_map(|entry| entry.observed_bytes).collect();
        if !moved.is_empty() && moved.iter().all(|moved| moved * 100 <= job.read.bytes) {
            assert_eq!(proof.verdict.words, "bounce (host), from page cache", "{proof:#?}");
        }
    });
}

#[test]
fn jobs_that_ran_together_share_counters_and_report_it() {
    let lab = Lab::new();
    let text = "[global]\ndirectory=${DIR}\nsize=4m\nbs=64k\nloops=4\ndirect=0\nengine=psync\n\
                [a]\nfile_prefix=a\n[b]\nfile_prefix=b\nrw=rw\n";
    let ran = lab.run(text);
    let process = |job: &JobResult| {
        let found = proof(job).evidence.iter().find(|entry| entry.name == "process_io");
        found.unwrap().expected_bytes
    };
    let all = ran.jobs.iter().map(|job| job.file_leg.read_bytes).sum();
    for job in &ran.jobs {
        assert!(proof(job).sentence.contains("all jobs of the group"), "{job:#?}");
        assert!([Some(all), None].contains(&process(job)), "{job:#?}");
    }
    let directions = |job: &JobResult| {
        let mut words: Vec<String> =
            proof(job).evidence.iter().map(|entry| entry.direction.clone()).collect();
        words.dedup();
        words
    };
    assert_eq!(directions(&ran.jobs[0]), ["read"]);
    assert_eq!(directions(&ran.jobs[1]), ["read", "write"]);
}

fn entry<'a>(proof: &'a Proof, name: &str, direction: &str) -> &'a Evidence {
    let mut of = proof.evidence.iter();
    of.find(|entry| entry.name == name && entry.direction == direction).unwrap()
}

#[test]
fn a_library_that_bounces_is_found_out_by_its_own_counts() {
    // Alone: counts are a process's.
    // The stand-in goes through host memory and reports it twice: by its counts and its properties.
    child::alone(&[], || {
        let lab = Lab::with_cufile();
        let text = "[global]\ndirectory=${DIR}\nsize=1m\nbs=128k\npath=gds\n\
                    [a]\nloops=8\nfile_prefix=a\n[b]\nstonewall\nloops=4\nrw=rw\nfile_prefix=b\n";
        let ran = lab.run(text);
        for job in &ran.jobs {
            let proof = proof(job);
            assert_eq!(proof.verdict.route, Route::BounceHost, "{proof:#?}");
            assert!(!proof.as_requested, "a library should go direct");
            assert!(proof.sentence.contains("cufile_stats and cufile_properties"), "{proof:#?}");
            let stats = entry(proof, "cufile_stats", "read");
            assert_eq!(stats.assessment, Assessment::Contradicts);
            assert_eq!(stats.observed_bytes, Some(job.file_leg.read_bytes));
            assert_eq!(stats.observed_bytes, stats.expected_bytes);
            let pcie = entry(proof, "gpu_pcie", "read");
            assert_eq!(
                (pcie.assessment, pcie.observed_bytes),
                (Assessment::Inconclusive, None),
                "a software GPU has no link"
            );
        }
        // The second group's counts begin where the first's ended, and are compared from there.
        let (first, second) = (&ran.jobs[0], &ran.jobs[1]);
        let count = |job| entry(proof(job), "cufile_stats", "read").before.clone().unwrap();
        assert!(count(first).starts_with("n=0 "), "{}", count(first));
        assert!(count(second).starts_with("n=64 posix=64 nvfs=0 p2p=0 "), "{}", count(second));
        let written = entry(proof(second), "cufile_stats", "write");
        assert_eq!(written.observed_bytes, Some(second.file_leg.write_bytes));
    });
}

#[test]
fn evidence_that_does_not_concern_a_job_is_inconclusive() {
    let job = Lab::new().job("size=1m\nbs=64k\nengine=psync");
    let proof = proof(&job);
    for (name, why) in [
        ("cufile_stats", "does not use cuFile"),
        ("cufile_properties", "does not use cuFile"),
        ("gpu_pcie", "no GPU"),
        ("nic", "not on NFS"),
    ] {
        let inconclusive = entry(proof, name, "read");
        assert_eq!(inconclusive.assessment, Assessment::Inconclusive, "{name}");
        assert!(inconclusive.why.contains(why), "{name}: {}", inconclusive.why);
    }
}

#[test]
fn files_read_beforehand_are_in_the_page_cache_when_the_clock_starts() {
    let cached = |pre_read: u32| {
        let lab = Lab::new();
        let requested = format!("size=8m\nbs=256k\nio_size=256k\ndirect=0\npre_read={pre_read}");
        lab.job(&requested).cache.resident_before
    };
    // Files are made past the cache, where the file system can.
    let (cold, warm) = (cached(0), cached(1));
    assert!(warm.is_none_or(|warm| warm > 0.99), "{warm:?}");
    assert!(cold <= warm, "{cold:?} {warm:?}");
}

/// Entries of evidence, the readings of storage and the table of devices have one value of each
/// counter, whatever else uses the machine.
#[test]
fn the_tables_of_a_record_agree_on_every_counter() {
    let lab = Lab::new();
    let ran =
        lab.run("[a]\ndirectory=${DIR}\nsize=8m\nbs=64k\nrw=rw\nruntime=300ms\nengine=psync\n");
    let (job, devices) = (&ran.jobs[0], &ran.watched.as_ref().unwrap().groups[0].devices);
    let mut compared = 0;
    for direction in ["read", "write"] {
        let (process, disk) = match direction {
            "read" => (job.cache.process_read_bytes, "read_bytes_per_second"),
            _ => (job.cache.process_write_bytes, "written_bytes_per_second"),
        };
        assert_eq!(entry(proof(job), "process_io", direction).observed_bytes, process);
        // The members of an array are the evidence, the array itself the reading.
        let [device] = &job.cache.storage[..] else { continue };
        let block = entry(proof(job), "block", direction);
        if !block
            .before
            .as_deref()
            .is_some_and(|text| text.contains(&format!("({})", device.device)))
        {
            continue;
        }
        let moved = if direction == "read" { device.read_bytes } else { device.write_bytes };
        assert_eq!(block.observed_bytes, Some(moved));
        let row = devices.iter().find(|row| row.probe == "block" && row.device == device.device);
        let figure = row.unwrap().figures.iter().find(|figure| figure.key == disk).unwrap();
        // The first sample is the snapshot before the start, so the time is a little longer than
        // the last end.
        let ends = &ran.watched.as_ref().unwrap().groups[0].ends_ns;
        let seconds = *ends.last().unwrap() as f64 / 1e9;
        let rate = figure.whole.unwrap();
        assert!(rate * seconds <= moved as f64 * 1.000_001, "{rate} {seconds} {moved}");
        assert!(rate * (seconds + 1.0) >= moved as f64, "{rate} {seconds} {moved}");
        compared += 1;
    }
    println!("{compared} directions compared at a disk");
}
