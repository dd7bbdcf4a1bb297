//! The cost of the harness itself: nanoseconds per I/O of a thread with an engine that moves no
//! byte, histograms on. The host path never waits, so time over I/Os is its cost; the threads' own
//! CPU time says the same on a machine that is busy with something else, or has fewer CPUs than
//! threads. More threads must cost each I/O no more: they share nothing that they store to. Rows of
//! the staged path run on the software GPU, whose copies dominate them. Each case runs twice,
//! without and with the page that `gpuio stats` reads.
//!
//! `cargo run --release -p gpuio-load --example harness_cost [SECONDS]`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gpuio_gpu::{Driver, Which};
use gpuio_host::Root;
use gpuio_job::plan::{Facts, Gpus, plan};
use gpuio_job::spec::{JobSpec, Spec, TakenKeys};
use gpuio_load::live_targets::LiveTargets;
use gpuio_load::run::{Means, Permit, Ran, RunObserver, Tick, run};
use gpuio_record::{JobPlan, JobResult, Plan};
use gpuio_testkit::gpu::software_gpu;
use gpuio_watch::page::{LivePage, LivePageRoot};

struct Silent;

impl RunObserver for Silent {
    fn making(&self, _: u64, _: u64) {}
    fn started(&self, _: &[JobPlan]) {}
    fn tick(&self, _: &Tick) {}
    fn verifying(&self, _: &[JobPlan]) {}
    fn job_done(&self, _: &JobPlan, _: &JobResult) {}
    fn group_done(&self, _: &Plan, _: &Ran) {}
}

/// Path, order, depth, threads.
const CASES: &[(&str, &str, u32, u32)] = &[
    ("host", "read", 32, 1),
    ("host", "randread", 32, 1),
    ("host", "randrw", 32, 1),
    ("host", "randread", 1, 1),
    ("host", "randread", 32, 2),
    ("host", "randread", 32, 8),
    ("host", "randread", 32, 16),
    ("host", "randread", 32, 32),
    ("host", "randread", 1, 2),
    ("host", "randread", 1, 8),
    ("host", "randread", 1, 16),
    ("host", "randread", 1, 32),
    ("staged", "randread", 32, 1),
    ("staged", "randread", 1, 1),
];

#[expect(clippy::print_stdout, reason = "a program whose product is this table")]
fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).unwrap_or_else(|| "3".into());
    let directory = tempfile::tempdir()?;
    let host = gpuio_host::collect(&Root::live());
    let driver = Driver::load(&Which::Software)?;
    let gpus = Gpus::Present(driver.devices()?.iter().map(software_gpu).collect());
    println!(
        "{:<8} {:<9} {:>5} {:>7} {:<4} {:>12} {:>9} {:>8} {:>9}",
        "path", "rw", "depth", "threads", "page", "I/Os", "ns/I/O", "CPU ns", "p99 ns"
    );
    let shared = LivePage::create(&LivePageRoot::live(), 64, "harness_cost", 0)?;
    let twice = CASES.iter().flat_map(|case| [(case, None), (case, Some(&shared))]);
    for (&(path, rw, depth, threads), page) in twice {
        let mut job = JobSpec::new("cost");
        let target = directory.path().display().to_string();
        let (depth, count) = (depth.to_string(), threads.to_string());
        let keys = [
            ("path", path),
            ("rw", rw),
            ("depth", &depth),
            ("threads", &count),
            ("directory", &target),
            ("runtime", &seconds),
            ("engine", "null"),
            ("bs", "4k"),
            ("size", "64m"),
            ("gpu", if path == "host" { "none" } else { "software" }),
        ];
        for (key, value) in keys {
            gpuio_job::spec::apply(&mut job, key, value, gpuio_job::spec::Origin::Flag("example"))?;
        }
        let result = one(job, &host, &driver, &gpus, page)?;
        let ios = result.read.ios + result.write.ios;
        let p99 = result.read.latency.map_or(0, |latency| latency.total.p99_ns.unwrap_or(0));
        let (elapsed, cpu, n) = (result.last_done_ns as f64, result.cpu, ios.max(1) as f64);
        let wall = elapsed * f64::from(threads) / n;
        let busy = (cpu.user_s + cpu.system_s) * 1e9 / n;
        let page = if page.is_some() { "page" } else { "-" };
        println!(
            "{path:<8} {rw:<9} {depth:>5} {threads:>7} {page:<4} {ios:>12} {wall:>9.1} {busy:>8.1} \
             {p99:>9}"
        );
    }
    Ok(())
}

fn one(
    job: JobSpec,
    host: &gpuio_record::facts::HostFacts,
    driver: &Driver,
    gpus: &Gpus,
    page: Option<&LivePage>,
) -> Result<JobResult, Box<dyn Error>> {
    let places = LiveTargets::default();
    let facts = Facts {
        catalog: gpuio_io::CATALOG,
        host,
        gpus,
        targets: &places,
        engine_missing: &|_| None,
        cufile_missing: &|_| Some("not opened".to_owned()),
        cufile_direct: Err("not opened"),
    };
    let mut planned = plan(&Spec { name: None, jobs: vec![job] }, &facts)?;
    let permit = Permit { make_missing: true, ..Permit::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let (driver, page) = (Some(driver), page.cloned());
    let means = Means {
        driver,
        host,
        stop,
        cufile: None,
        permit,
        live_page: page,
        replay: None,
        watched: false,
        peers: None,
        keys: TakenKeys::of(&[], &planned.jobs),
    };
    let mut ran = run(&mut planned, &means, &Silent)?;
    Ok(ran.jobs.remove(0))
}
