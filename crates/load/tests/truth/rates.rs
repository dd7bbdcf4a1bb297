//! Rates of devices that are known, of jobs that ran together and one after the other, and of jobs
//! that ended in a failure.
#![expect(clippy::print_stdout, reason = "a test that can't be done here says so")]

use gpuio_record::{EndedHow, JobResult};

use crate::lab::{Lab, MS};

#[test]
fn jobs_that_ran_one_after_the_other_have_no_total_rate() {
    let lab = Lab::new();
    let ran = lab.run(
        "[global]\nengine=null\nsize=1m\nbs=4k\ndirectory=${DIR}\nrate_iops=1000\n\
         [a]\nruntime=500ms\nfile_prefix=a\n\
         [b]\nstart_delay=900ms\nruntime=500ms\nfile_prefix=b\n",
    );
    let [a, b] = &ran.jobs[..] else { panic!("{ran:?}") };
    // On one clock the second began 900 ms after the first, to the nanosecond.
    let [first, second] = [a.measured.unwrap(), b.measured.unwrap()];
    assert_eq!(second.begin_ns - first.begin_ns, 900 * MS);
    assert_eq!([first, second].map(|s| s.length_ns()), [a.last_done_ns, b.last_done_ns]);
    let total = &ran.totals[0];
    assert_eq!((total.read.bytes_per_s, total.read.iops, total.common), (None, None, None));
    let why = total.why_no_rate.as_ref().unwrap();
    assert!(why.contains("'b' began to count") && why.contains("after 'a' had ended"), "{why}");
    // Counts and latencies are of both all the same, and the time is that of both.
    assert_eq!(total.read.ios, a.read.ios + b.read.ios);
    assert_eq!(total.last_done_ns, second.end_ns - first.begin_ns);
}

#[test]
fn a_total_is_over_the_time_in_which_all_jobs_ran() {
    let lab = Lab::new();
    let ran = lab.run(
        "[global]\nengine=null\nsize=1m\nbs=4k\ndirectory=${DIR}\n\
         [a]\nruntime=3\nrate_iops=500\nfile_prefix=a\n\
         [b]\nstart_delay=1\nruntime=600ms\nrate_iops=1500\nrw=write\nfile_prefix=b\n",
    );
    let [a, b] = &ran.jobs[..] else { panic!("{ran:?}") };
    let total = &ran.totals[0];
    let common = total.common.unwrap();
    assert_eq!(common.begin_ns, b.measured.unwrap().begin_ns);
    assert!(common.end_ns >= b.measured.unwrap().end_ns);
    // Both rates are over the common time: all writes lie in it, and of the reads a part does. Over
    // the time of the longest job they would be a fraction of that.
    let seconds = common.length_ns() as f64 / 1e9;
    let reads = total.read.iops.unwrap() * seconds;
    let writes = total.write.iops.unwrap() * seconds;
    let off = writes / b.write.ios as f64 - 1.0;
    assert!(off.abs() < 0.02, "{writes} of {}", b.write.ios);
    assert!(reads < a.read.ios as f64, "{reads} of {}", a.read.ios);
}

#[test]
fn a_job_by_itself_is_its_own_total() {
    let ran = Lab::new().run("[a]\ndirectory=${DIR}\nengine=null\nsize=1m\nbs=4k\nio_size=4m\n");
    let (job, total) = (&ran.jobs[0], &ran.totals[0]);
    assert_eq!(total.common, job.measured);
    assert_eq!(total.read.bytes_per_s, Some(job.read.bytes_per_s));
    assert_eq!(total.read.iops, Some(job.read.iops));
}

#[test]
fn failed_i_os_take_time_too() {
    let delay = "engine=psync\nsize=1m\nbs=4k\nio_size=8k\ndirect=0\n";
    // Both fail after 150 ms each: that is what the job did all the time.
    let job = Lab::new().job(&format!("{delay}inject=eio=100%,delay=150ms"));
    assert_eq!((job.ended, job.failed, job.read.ios), (EndedHow::Complete, 2, 0));
    assert!(job.last_done_ns >= 300 * MS, "{}", job.last_done_ns);
    assert_eq!(job.measured.unwrap().length_ns(), job.last_done_ns);
}

/// 128 I/Os are always in flight, and each takes half a second: 256 a second.
const DEVICE: &str = "engine=null\nbs=4k\nsize=1m\ndepth=128\ninject=delay=500ms";

/// No I/O may have come back later than this, or a busy machine made the device a slower one.
const ON_TIME: u64 = 580 * MS;

/// The result of a load when all of its I/Os came back in time: the rates of the device are known
/// then. Tries some times, since a busy machine delays them.
fn on_time<T>(load: impl Fn() -> (T, u64)) -> Option<T> {
    for _ in 0..8 {
        let (found, longest_ns) = load();
        if longest_ns < ON_TIME {
            return Some(found);
        }
    }
    println!("SKIPPED: this machine is too busy for a device of known rate; run it alone");
    None
}

fn longest(job: &JobResult) -> u64 {
    job.read.latency.as_ref().unwrap().total.max_ns
}

#[test]
fn a_short_window_after_a_ramp_has_the_rate_of_the_device() {
    // As long as the queue takes to drain. They come in rounds, at 1.5 and at 2 seconds: 256 in the
    // 0.75 seconds after the ramp. Only 128 of them begin in the window, at 1.5 seconds: 170 a
    // second.
    let job = || {
        let job = Lab::new().job(&format!("{DEVICE}\nramp=1250ms\nruntime=500ms"));
        (job.read.iops, longest(&job))
    };
    let Some(rate) = on_time(job) else { return };
    assert!((200.0..=360.0).contains(&rate), "the device gives 256 a second: {rate}");
}

#[test]
fn a_short_ceiling_is_no_lower_than_a_long_job_on_the_same_device() {
    let lab = Lab::with_gpu();
    let text = "[a]\ndirectory=${DIR}\npath=staged\ngpu=software\nengine=pool\ndirect=0\n\
         bs=4k\nsize=1m\ndepth=128\nramp=1250ms\nruntime=3\nceilings=600ms\n\
         inject=delay=500ms\n";
    let run = || {
        let ran = lab.run(text);
        let longest = longest(&ran.jobs[0]);
        (ran, longest)
    };
    let Some(ran) = on_time(run) else { return };
    let storage = ran.ceilings.iter().find(|one| one.plan.name.starts_with("storage")).unwrap();
    let rate = storage.iops.unwrap();
    // By when they began, 128 in 0.9 seconds would be counted, 142 a second, and the job would have
    // 166 % of that.
    assert!((200.0..=360.0).contains(&rate), "256 a second: {rate}");
    let percent = ran.jobs[0].read.iops / rate * 100.0;
    assert!((75.0..=130.0).contains(&percent), "{percent} % of the same device");
}
