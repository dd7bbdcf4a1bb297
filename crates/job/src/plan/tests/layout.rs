//! The data of all threads and ranks in files.

use gpuio_record::{LayoutKind, Region, Stripe};

use super::*;
use crate::spec::RankPlace;
use crate::workload::blocks;
use crate::workload::sequence::BlockSequence;

fn of_rank(text: &str, rank: u32, ranks: u32) -> Result<JobPlan, PlanError> {
    let mut spec = parsed(&format!("[a]\n{text}"));
    spec.jobs[0].rank =
        Some(RankPlace { rank, ranks, on_next_host: Err("all ranks run on host h".to_owned()) });
    Bench::default().plan(&spec).map(|mut plan| plan.jobs.remove(0))
}

fn regions(job: &JobPlan) -> Vec<Region> {
    job.workers.iter().flat_map(|worker| worker.regions.clone()).collect()
}

/// The blocks of all threads of a job, in the order of each.
fn blocks_of(job: &JobPlan) -> Vec<Vec<(u64, u32)>> {
    let of = |worker| {
        let config = blocks::config(job, worker, Some);
        let mut blocks = BlockSequence::new(&config).unwrap();
        let count = job.size_bytes / job.blocks[0].max_bytes;
        (0..count).map(|_| blocks.next().unwrap()).map(|block| (block.offset, block.len)).collect()
    };
    job.workers.iter().map(of).collect()
}

#[test]
fn ranks_and_threads_have_the_same_parts() {
    for kind in ["segmented", "strided"] {
        for order in ["write", "randwrite"] {
            let text = |threads: u32| {
                format!(
                    "directory=/d\nlayout={kind}\nsize=1m\nbs=64k\nrw={order}\nthreads={threads}"
                )
            };
            let alone = job(&text(6));
            assert_eq!(alone.targets.len(), 1);
            assert_eq!(alone.targets[0].path, "/d/gpuio.shared");
            assert_eq!(alone.targets[0].length_bytes, 6 * MIB);
            assert!(alone.shared_files && !alone.is_common());
            for (ranks, threads) in [(6, 1), (3, 2), (2, 3)] {
                let jobs: Vec<_> =
                    (0..ranks).map(|rank| of_rank(&text(threads), rank, ranks).unwrap()).collect();
                assert!(jobs.iter().all(|job| job.targets == alone.targets && job.is_common()));
                let all: Vec<_> = jobs.iter().flat_map(regions).collect();
                assert_eq!(all, regions(&alone), "{kind}, {ranks} ranks");
                let all: Vec<_> = jobs.iter().flat_map(blocks_of).collect();
                assert_eq!(all, blocks_of(&alone), "{kind} {order}, {ranks} ranks");
            }
        }
    }
}

#[test]
fn segments_follow_one_another_and_strided_blocks_take_turns() {
    let text = "filename=/d/one\nsize=256k\nbs=64k\noffset=4k\nrw=write\nthreads=2";
    let segmented = of_rank(&format!("{text}\nlayout=segmented"), 1, 2).unwrap();
    let at = |offset| Region::range(0, offset, 256 * KIB);
    assert_eq!(regions(&segmented), [at(4 * KIB + 512 * KIB), at(4 * KIB + 768 * KIB)]);
    let strided = of_rank(&format!("{text}\nlayout=strided"), 1, 2).unwrap();
    let stripe = Some(Stripe { block_bytes: 64 * KIB, stride_bytes: 256 * KIB });
    let at = |offset| Region { stripe, ..at(offset) };
    assert_eq!(regions(&strided), [at(132 * KIB), at(196 * KIB)]);
    assert_eq!(regions(&strided)[1].end(), strided.targets[0].length_bytes);
    let third = |n: u64| (132 * KIB + n * 256 * KIB, 64 * 1024);
    assert_eq!(blocks_of(&strided)[0], [third(0), third(1), third(2), third(3)]);
}

#[test]
fn a_shift_reads_what_another_rank_wrote() {
    for kind in ["segmented", "strided", "file-per-thread"] {
        let text = format!("directory=/d\nsize=1m\nbs=64k\nthreads=2\nlayout={kind}\nrw=read");
        for (shift, by) in [("rank", 1), ("3", 3), ("5", 1)] {
            for rank in 0..4 {
                let own = of_rank(&text, (rank + by) % 4, 4).unwrap();
                let shifted = of_rank(&format!("{text}\nread_shift={shift}"), rank, 4).unwrap();
                assert_eq!(shifted.targets, own.targets, "{kind}, {shift}");
                assert_eq!(regions(&shifted), regions(&own));
                assert_eq!(shifted.layout.as_ref().unwrap().reads_rank, Some((rank + by) % 4));
                let made = on_own_files(&shifted);
                assert_eq!(made.targets, of_rank(&text, rank, 4).unwrap().targets);
            }
        }
    }
    let mut spec = parsed("[a]\ndirectory=/d\nsize=1m\nrw=read\nread_shift=node");
    spec.jobs[0].rank = Some(RankPlace { rank: 1, ranks: 4, on_next_host: Ok(3) });
    let job = Bench::default().plan(&spec).unwrap().jobs.remove(0);
    assert_eq!(job.targets[0].path, "/d/gpuio.3");
    let layout = job.layout.unwrap();
    assert_eq!(
        (layout.kind, layout.read_shift.as_deref()),
        (LayoutKind::FilePerThread, Some("node"))
    );
}

#[test]
fn without_a_word_about_it_there_is_no_layout() {
    for text in ["directory=/d\nsize=1m", "directory=/d\nsize=1m\nlayout=file-per-thread"] {
        let job = of_rank(text, 1, 2).unwrap();
        assert_eq!((job.layout, job.targets[0].path.as_str()), (None, "/d/gpuio.1"));
    }
}

#[test]
fn what_a_layout_can_not_be_is_refused() {
    let refused = |text: &str, ranks: u32, part: &str| {
        let outcome = match ranks {
            0 => Bench::default().plan(&parsed(&format!("[a]\n{text}"))).map(drop),
            ranks => of_rank(text, 0, ranks).map(drop),
        };
        let why = outcome.expect_err(text).to_string();
        assert!(why.contains(part), "{text}: {why}");
    };
    let scratch = "name a location that all of them see";
    refused("layout=segmented\nsize=1m", 2, scratch);
    refused("read_shift=1\nsize=1m", 2, scratch);
    refused("filename=/d/x\nlayout=file-per-thread\nsize=1m", 0, "no thread has one of its own");
    refused("filename=/d/x\nread_shift=1\nsize=1m", 2, "add layout=segmented or strided");
    refused("directory=/d\nread_shift=4\nsize=1m", 2, "it would read its own data");
    refused("directory=/d\nread_shift=node\nsize=1m", 2, "all ranks run on host h");
    refused("directory=/d\nread_shift=1\nsize=1m", 0, "there is no other rank");
    refused("directory=/d\nread_shift=1\nsize=1m\nrw=write", 2, "the load writes");
    refused("filename=/d/x\nlayout=strided\nshared=1\nsize=1m", 0, "leave one out");
    let strided = "directory=/d\nlayout=strided\n";
    refused(&format!("{strided}size=1m\nbssplit=64k/50:128k/50"), 0, "needs blocks of one size");
    refused(&format!("{strided}bs=64k\nsize=100k"), 0, "use size=65536 (1 block) or 131072");
    refused(
        &format!("{strided}bs=64k\nsize=1m\nrw=randread\nalign=4k\nnorandommap"),
        0,
        "its turn",
    );
    // IO500's hard transfers.
    let hard = format!("{strided}bs=47008\nsize=470080\nrw=write\n");
    refused(&hard, 0, "O_DIRECT here needs blocks in multiples of 512 bytes");
    let hard = job(&format!("{hard}direct=0\nthreads=2"));
    assert_eq!(blocks_of(&hard)[1][..2], [(47008, 47008), (3 * 47008, 47008)]);
}

#[test]
fn wear_out_ends_by_bytes() {
    let stop = |text: &str| job(&format!("directory=/d\nsize=1m\n{text}")).stop;
    let bytes = |bytes| Stop { runtime_ns: None, bytes_per_thread: Some(bytes), wear_out: false };
    assert_eq!(stop("wear_out"), bytes(MIB));
    assert!(stop("wear_out=0").runtime_ns.is_some());
    let refusal = |more: &str| {
        let spec = parsed(&format!("[a]\ndirectory=/d\nwear_out\nruntime=3\n{more}"));
        Bench::default().refusal(&spec).to_string()
    };
    let why = refusal("");
    assert!(why.contains("one thread runs"), "{why}");
    let why = refusal("threads=2\nio_size=1m");
    assert!(why.contains("the job ends after its bytes"), "{why}");
    let why = refusal("threads=2\nsteadystate=iops:2%\nss_dur=2");
    assert!(why.contains("once the load is steady"), "{why}");
    let both = Stop { runtime_ns: Some(3_000_000_000), bytes_per_thread: None, wear_out: true };
    assert_eq!(stop("wear_out\nruntime=3\nthreads=2"), both);
}
