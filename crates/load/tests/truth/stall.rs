//! One stall of known length is in the rate and in the latencies of the points that it is in.

use gpuio_record::{JobResult, Point};

use crate::lab::{Lab, MS};

const FROM_MS: u64 = 1400;
const STALL_MS: u64 = 400;
/// How long the device takes for an I/O. With as many in flight it gives 4000 a second at most.
const DELAY_MS: u64 = 8;
const DEPTH: u64 = 32;

fn stalled() -> JobResult {
    let lab = Lab::new();
    let mut plan = lab.plan(&format!(
        "[a]\ndirectory=${{DIR}}\nengine=null\nbs=4k\nsize=1m\ndepth={DEPTH}\nruntime=3\n\
         inject=delay={DELAY_MS}ms,stall={STALL_MS}ms@{FROM_MS}ms\n"
    ));
    plan.interval_ns = 1000 * MS;
    lab.carry_out(&mut plan).unwrap().jobs.remove(0)
}

#[test]
fn a_stall_is_in_the_rate_and_the_latency_of_the_same_point() {
    let job = stalled();
    assert!((1..=DEPTH).contains(&job.file_leg.injected.stall), "{job:?}");
    let ios: u64 = job.series.iter().map(|point| point.read_ios).sum();
    assert_eq!(ios, job.read.ios, "every I/O is in one point");
    // Every point has the latencies of its own I/Os, the first and the last too.
    for point in job.series.iter().filter(|point| point.read_ios > 0) {
        assert!(point.p50_ns.is_some() && point.max_ns.is_some(), "{point:?}");
        let enough = point.read_ios >= 1000;
        assert_eq!(point.p99_ns.is_some(), enough, "{point:?}");
    }
    // I/Os requested in the stall came back at its end, all of them at once, up to 400 ms late.
    let long = |point: &&Point| point.max_ns.is_some_and(|max| max >= (STALL_MS - 50) * MS);
    let late: Vec<&Point> = job.series.iter().filter(long).collect();
    let [late] = late[..] else { panic!("in {} points: {:?}", late.len(), job.series) };
    // The first I/O was at the begin or later, so that the stall ended then or later.
    let end = i64::try_from((FROM_MS + STALL_MS) * MS).unwrap();
    assert!(late.at_ns >= end, "{late:?}");
    // 32 of the I/Os of a second are more than one in a hundred of them.
    if late.read_ios >= 1000 && DEPTH * 100 > late.read_ios {
        assert!(late.p99_ns.unwrap() >= (STALL_MS - 50) * MS, "{late:?}");
    }
    // The device gives 32 in each 8 ms and nothing while it stalls.
    // Where the point began before the stall, all of the stall is in it.
    let before = late.at_ns - i64::try_from(late.span_ns).unwrap();
    let whole = before <= i64::try_from(FROM_MS * MS).unwrap();
    let stood = if whole { STALL_MS * MS } else { 0 };
    let most = |ns: u64| (ns / (DELAY_MS * MS) + 2) * DEPTH;
    assert!(late.read_ios <= most(late.span_ns - stood), "{late:?}, {stood} ns of them stalled");
    for point in &job.series {
        assert!(point.read_ios <= most(point.span_ns), "{point:?}");
    }
}
