//! Several GPUs in one job, in one process: bytes that end in one of them each, and bytes that go
//! through one to another.

use gpuio_record::EndedHow;
use gpuio_testkit::child;

use crate::lab::Lab;

const TWO: (&str, &str) = ("GPUIO_SOFT_GPUS", "2");
const THREE: (&str, &str) = ("GPUIO_SOFT_GPUS", "3");
/// Copies that run late: what was not waited for is wrong.
const LATE: (&str, &str) = ("GPUIO_SOFT_DELAY_US", "200");

#[test]
fn threads_of_one_job_spread_over_its_gpus() {
    child::alone(&[TWO, LATE], || {
        for path in ["staged", "cached", "gather", "managed", "mapped"] {
            let lines = format!(
                "path={path}\ngpu=software:0,1\nthreads=3\nbs=64k\nsize=1m\nio_size=1m\nverify=pass"
            );
            let job = Lab::with_gpu().job(&lines);
            assert_eq!(job.ended, EndedHow::Complete, "{path}");
            let verify = job.verify.unwrap();
            assert_eq!((verify.pass_bytes, verify.bad_blocks), (3 << 20, 0), "{path}");
            // Threads 0 and 2 on GPU 0, thread 1 on GPU 1.
            let parts: Vec<_> =
                job.gpus.iter().map(|one| (one.index, one.bytes, one.ios)).collect();
            assert_eq!(parts, [(0, 2 << 20, 32), (1, 1 << 20, 16)], "{path}");
            assert_eq!(job.via, None);
        }
        let order = "path=staged\ngpu=software:1,0\nbs=64k\nsize=1m\nio_size=1m";
        let parts: Vec<_> =
            Lab::with_gpu().job(order).gpus.iter().map(|one| (one.index, one.bytes)).collect();
        assert_eq!(parts, [(1, 1 << 20), (0, 0)], "one thread, on the first that was named");
        assert!(Lab::new().job("path=host\nbs=64k\nsize=1m\nio_size=1m").gpus.is_empty());
    });
}

#[test]
fn bytes_go_through_one_gpu_to_others() {
    child::alone(&[THREE, LATE], || {
        for rw in ["read", "randwrite", "randrw"] {
            let lines = format!(
                "path=routed\ngpu=software:0,2\nvia_gpu=1\nthreads=2\nbs=64k\nsize=1m\n\
                 io_size=1m\nrw={rw}\nverify=pass"
            );
            let job = Lab::with_gpu().job(&lines);
            let verify = job.verify.unwrap();
            let all = verify.pass_bytes + verify.filled_bytes;
            assert_eq!((all, verify.bad_blocks), (2 << 20, 0), "{rw}");
            assert_eq!(job.gpus.iter().map(|one| one.index).collect::<Vec<_>>(), [0, 2], "{rw}");
            let via = job.via.unwrap();
            assert_eq!((via.gpu, via.through_host), (1, false), "{rw}");
            for (hop, moved) in [(via.read, job.read.bytes), (via.write, job.write.bytes)] {
                assert_eq!((hop.host_near_bytes, hop.near_far_bytes), (moved, moved), "{rw}");
            }
        }
    });
}

#[test]
fn a_route_without_peer_access_ends_before_the_clock() {
    child::alone(&[TWO, ("GPUIO_SOFT_PEER", "0")], || {
        let lab = Lab::with_gpu();
        let lines = "path=routed\ngpu=software:0\nvia_gpu=1\nbs=64k\nsize=1m\nio_size=1m";
        let mut plan = lab.plan(&format!("[a]\ndirectory=${{DIR}}\n{lines}\n"));
        let error = lab.carry_out(&mut plan).unwrap_err().to_string();
        assert!(error.contains("can't reach each other's memory"), "{error}");
        let job = Lab::with_gpu().job(&format!("{lines}\nvia_peer=any"));
        assert!(job.via.unwrap().through_host);
        assert!(job.engine[0].steps_down[0].contains("through host memory"), "{:?}", job.engine);
    });
}

#[test]
fn a_block_is_read_once_and_placed_in_all_gpus() {
    child::alone(&[THREE, LATE], || {
        for (threads, verify) in [(3, "pass"), (2, "inline"), (5, "pass")] {
            let lines = format!(
                "path=fan-out\ngpu=software\nthreads={threads}\nbs=64k\nsize=1m\nio_size=1m\n\
                 verify={verify}"
            );
            let job = Lab::with_gpu().job(&lines);
            let read = threads << 20;
            let found = job.verify.unwrap();
            assert_eq!((found.timed_bytes + found.pass_bytes > 0, found.bad_blocks), (true, 0));
            assert_eq!(job.read.bytes, read, "once");
            let fan_out = job.fan_out.unwrap();
            assert_eq!(
                (fan_out.gpus, fan_out.placed_bytes, fan_out.through_host),
                (3, 3 * read, false)
            );
            assert_eq!((fan_out.from_host_bytes, fan_out.between_gpus_bytes), (read, 2 * read));
            assert!((fan_out.placed_bytes_per_s / job.read.bytes_per_s - 3.0).abs() < 1e-6);
            // The shares that GPUs took from storage.
            let shares: Vec<u64> = job.gpus.iter().map(|one| one.bytes >> 20).collect();
            assert_eq!(shares.iter().sum::<u64>(), threads);
            assert_eq!(shares.iter().filter(|share| **share > 0).count() as u64, threads.min(3));
        }
    });
}

#[test]
fn gpus_that_cannot_reach_one_another_end_it_before_the_clock() {
    child::alone(&[TWO, ("GPUIO_SOFT_PEER", "0")], || {
        let lab = Lab::with_gpu();
        let lines = "path=fan-out\ngpu=software\nbs=64k\nsize=1m\nio_size=1m";
        let mut plan = lab.plan(&format!("[a]\ndirectory=${{DIR}}\n{lines}\n"));
        let error = lab.carry_out(&mut plan).unwrap_err().to_string();
        assert!(error.contains("can't reach the memory of GPU"), "{error}");
        let job = Lab::with_gpu().job(&format!("{lines}\nvia_peer=any\nverify=pass"));
        assert!(job.fan_out.unwrap().through_host);
        assert_eq!(job.verify.unwrap().bad_blocks, 0);
    });
}

#[test]
fn a_wrong_block_in_one_of_the_gpus_is_found_and_the_gpu_named() {
    child::alone(&[TWO, ("GPUIO_SOFT_CORRUPT", "cuMemcpyPeerAsync:3")], || {
        let lines =
            "path=fan-out\ngpu=software\nthreads=1\nbs=64k\nsize=1m\nio_size=1m\nverify=inline";
        let job = Lab::with_gpu().job(lines);
        let found = job.verify.unwrap();
        assert_eq!(found.bad_blocks, 1);
        let bad = &found.mismatches[0];
        assert_eq!((bad.gpu, bad.leg.as_str()), (Some(1), "gpu"));
    });
}
