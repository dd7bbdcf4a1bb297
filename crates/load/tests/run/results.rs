//! Figures agree with each other.

use gpuio_record::{DirectionResult, EndedHow, JobResult};

use crate::lab::{Lab, MS};

fn ios(job: &JobResult) -> u64 {
    job.read.ios + job.write.ios
}

fn bytes(job: &JobResult) -> u64 {
    job.read.bytes + job.write.bytes
}

fn rates_fit(direction: &DirectionResult, elapsed_ns: u64) {
    let per_second = |count: u64| count as f64 * 1e9 / elapsed_ns as f64;
    assert!((direction.bytes_per_s - per_second(direction.bytes)).abs() < 1.0);
    assert!((direction.iops - per_second(direction.ios)).abs() < 1e-3);
    let counted = direction.latency.as_ref().map_or(0, |latency| latency.total.count);
    assert_eq!(counted, direction.ios, "each I/O that completed has a latency");
}

#[test]
fn the_figures_of_a_job_agree() {
    let lab = Lab::new();
    let text = "[a]\ndirectory=${DIR}\nrw=randrw\nrwmixread=70\nbssplit=4k/50:64k/50\nthreads=3\n\
                size=4m\nio_size=16m\ndirect=0\nengine=pool\ndepth=4\n";
    let ran = lab.run(text);
    assert_eq!(ran.ended, EndedHow::Complete);
    let job = &ran.jobs[0];
    assert_eq!(job.ended, EndedHow::Complete);
    rates_fit(&job.read, job.last_done_ns);
    rates_fit(&job.write, job.last_done_ns);

    // Each thread moves its bytes and at most a block more.
    assert_eq!(job.workers.len(), 3);
    for (thread, worker) in (0..).zip(&job.workers) {
        assert_eq!(worker.thread, thread);
        assert!((16 << 20..(16 << 20) + (64 << 10)).contains(&worker.bytes), "{worker:?}");
    }
    assert_eq!(job.workers.iter().map(|worker| worker.bytes).sum::<u64>(), bytes(job));
    assert_eq!(job.workers.iter().map(|worker| worker.ios).sum::<u64>(), ios(job));
    let share = job.read.ios as f64 / ios(job) as f64;
    assert!((0.6..0.8).contains(&share), "{share} of the I/Os are reads");

    let done = job.workers.iter().map(|worker| worker.done_ns);
    assert_eq!(done.clone().min(), Some(job.first_done_ns));
    assert_eq!(done.max(), Some(job.last_done_ns));
    assert!(job.first_done_bytes <= bytes(job) && job.first_done_bytes >= 16 << 20);

    // No ramp: the engine's interface saw exactly what counts.
    let leg = &job.file_leg;
    assert_eq!((leg.read_ios, leg.read_bytes), (job.read.ios, job.read.bytes));
    assert_eq!((leg.write_ios, leg.write_bytes), (job.write.ios, job.write.bytes));
    assert_eq!((leg.faults, job.failed), (0, 0));

    let of_series = |of: fn(&gpuio_record::Point) -> u64| job.series.iter().map(of).sum::<u64>();
    assert_eq!(of_series(|point| point.read_bytes), job.read.bytes);
    assert_eq!(of_series(|point| point.write_bytes), job.write.bytes);
    assert_eq!(of_series(|point| point.read_ios + point.write_ios), ios(job));

    let total = &ran.totals[0];
    assert_eq!((total.read.ios, total.write.bytes), (job.read.ios, job.write.bytes));
    assert_eq!((total.first_done_ns, total.last_done_ns), (job.first_done_ns, job.last_done_ns));
    assert_eq!(job.engine.len(), 1);
    assert_eq!(job.engine[0].workers, 3);
    assert_eq!(job.cache.resident_after.map(|share| share > 0.9), Some(true), "buffered");
    assert!(job.cpu.user_s + job.cpu.system_s > 0.0);
}

#[test]
fn the_totals_of_a_group_are_those_of_its_jobs() {
    let lab = Lab::new();
    let text = "[global]\nengine=null\nsize=1m\nbs=4k\ndirectory=${DIR}\n\
                [short]\nruntime=100ms\nfile_prefix=s\n[long]\nruntime=300ms\nrw=write\n\
                file_prefix=l\n";
    let ran = lab.run(text);
    let [short, long] = &ran.jobs[..] else { panic!("{} jobs", ran.jobs.len()) };
    let [total] = &ran.totals[..] else { panic!("{} groups", ran.totals.len()) };
    assert_eq!((short.write.ios, long.read.ios), (0, 0));
    assert_eq!((total.read.ios, total.write.ios), (short.read.ios, long.write.ios));
    assert_eq!(total.first_done_ns, short.first_done_ns);
    assert_eq!(total.last_done_ns, long.last_done_ns);
    // Rates are over the time in which both ran: that of the short one.
    let common = total.common.unwrap();
    let [first, last] = [short, long].map(|job| job.measured.unwrap());
    assert_eq!(common.begin_ns, first.begin_ns);
    assert!((first.end_ns..=last.end_ns).contains(&common.end_ns), "{common:?}");
    let reads = total.read.iops.unwrap() * common.length_ns() as f64 / 1e9;
    assert!((reads - short.read.ios as f64).abs() < 1.0, "{reads} of {}", short.read.ios);
    let writes = total.write.iops.unwrap() * common.length_ns() as f64 / 1e9;
    assert!(writes < long.write.ios as f64, "{writes} of {}", long.write.ios);
    let merged = total.write.latency.as_ref().unwrap().total.p99_ns;
    assert_eq!(merged, long.write.latency.as_ref().unwrap().total.p99_ns);
}

#[test]
fn a_ramp_runs_and_does_not_count() {
    // 400 are due in the ramp and 400 after it, at a rate that is kept, late or not.
    let lines = "engine=null\nsize=1m\nbs=4k\nramp=400ms\nruntime=400ms\nrate_iops=1000";
    let job = Lab::new().job(lines);
    assert_eq!(job.read.latency.as_ref().unwrap().total.count, job.read.ios);
    let never = job.never_started.unwrap().ios;
    assert_eq!(job.file_leg.read_ios + never, 800);
    let in_the_ramp = job.file_leg.read_ios - job.read.ios;
    assert!((1..=400).contains(&in_the_ramp), "{in_the_ramp} of 400 in the ramp");
    let series: u64 = job.series.iter().map(|point| point.read_ios).sum();
    assert_eq!(series, job.file_leg.read_ios, "the ramp is in the series");
    assert!(job.series[0].at_ns < 0, "{:?}", job.series[0]);
    assert!(job.series[0].p50_ns.is_some(), "a ramp has latencies: {:?}", job.series[0]);
}

#[test]
fn bytes_of_a_ramp_are_not_of_the_bytes_requested() {
    let job = Lab::new()
        .job("engine=null\nsize=1m\nbs=4k\nramp=100ms\nio_size=4m\nrate_iops=5000\ndepth=1");
    assert_eq!(job.read.bytes, 4 << 20);
    assert!(job.file_leg.read_bytes > job.read.bytes, "the ramp moved bytes as well");
}

#[test]
fn a_start_delay_is_before_the_clock() {
    let ran = Lab::new().run(
        "[global]\nengine=null\nsize=1m\nbs=4k\nruntime=100ms\ndirectory=${DIR}\n\
         [a]\nfile_prefix=a\n[b]\nstart_delay=300ms\nramp=50ms\nfile_prefix=b\n",
    );
    let [a, b] = &ran.jobs[..] else { panic!("{ran:?}") };
    let [first, later] = [a, b].map(|job| job.measured.unwrap().begin_ns);
    assert_eq!(later - first, 350 * MS);
    assert_eq!(a.file_leg.read_ios, a.read.ios);
}

/// Which blocks of a new file but the first a run wrote: all others still hold the pattern that the
/// file was laid out with, and these the one that the first block has.
fn written(seed: u64) -> Vec<u64> {
    let lab = Lab::new();
    let lines = "rw=randwrite\nnorandommap\nbs=4k\nsize=4m\nio_size=1m\ndirect=0\nkeep=1\n\
                 file_prefix=w\nengine=psync";
    let mut plan = lab.plan(&format!("[a]\ndirectory=${{DIR}}\n{lines}\nseed={seed}\n"));
    let ran = lab.carry_out(&mut plan).unwrap();
    assert_eq!(ran.jobs[0].write.bytes, 1 << 20);
    let job = &plan.jobs[0];
    let key = gpuio_base::pattern::file_key(job.salt, job.targets[0].file_number);
    let data = std::fs::read(lab.file("w.0")).unwrap();
    let blocks = (0_u64..).zip(data.chunks(4096));
    let laid_out =
        |at: u64, block: &[u8]| gpuio_base::pattern::check(block, key, at * 4096).is_none();
    blocks.filter(|(at, block)| !laid_out(*at, block)).map(|(at, _)| at).collect()
}

#[test]
fn one_seed_writes_the_same_blocks_and_another_seed_others() {
    let first = written(1);
    assert!((150..=256).contains(&first.len()), "256 draws of 1024, some twice: {first:?}");
    assert_eq!(first, written(1));
    assert_ne!(first, written(2));
}

#[test]
fn files_are_gone_unless_they_are_kept() {
    let lab = Lab::new();
    lab.job("size=1m\nrw=write\nio_size=1m\nfile_prefix=gone\nkeep=0");
    assert!(!lab.file("gone.0").exists());
    lab.job("size=1m\nrw=write\nio_size=1m\nfile_prefix=kept\nkeep=1");
    assert_eq!(std::fs::metadata(lab.file("kept.0")).unwrap().len(), 1 << 20);
}

#[test]
fn cpu_time_of_a_ramp_is_not_of_the_result() {
    let ran = Lab::new().run("[a]\nengine=null\nsize=1m\nbs=4k\nramp=400ms\nruntime=100ms");
    let job = &ran.jobs[0];
    // A worker without anything to wait for keeps at most its one CPU busy, ramp or not.
    let busy_ns = (job.cpu.user_s + job.cpu.system_s) * 1e9;
    assert!(busy_ns < job.last_done_ns as f64 * 1.05 + 5e6, "{:?}", job.cpu);
    assert_eq!(ran.totals[0].cpu.us_per_mib, None, "its bytes are not those of the ramp");
}
