//! After how many reads registering has paid, by made-up results.

use gpuio_record::CpuCost;

use super::*;
use gpuio_testkit::jobs::{planned, result};

const GIB: u64 = 1 << 30;

/// A mapped job, the same by `cached` and one that reads other blocks; all after one another.
fn plans() -> Vec<JobPlan> {
    let mut all = planned("path=mapped,cached,gather\nrw=randread\ndirect=0\nsize=1g").jobs;
    all[2].blocks[0].max_bytes = 8192;
    all
}

/// The mapped one reads 40 GiB in 10 s, the other 20 GiB.
fn results(plans: &[JobPlan]) -> Vec<JobResult> {
    let mut all: Vec<JobResult> = plans.iter().map(|plan| result(plan, 1000)).collect();
    for (result, (gib, us_per_mib)) in all.iter_mut().zip([(40, 25.0), (20, 425.0), (30, 10.0)]) {
        result.read.bytes = gib * GIB;
        result.read.bytes_per_s = float(gib * GIB) / 10.0;
        result.last_done_ns = 10_000_000_000;
        let scope = CpuScope::Process;
        result.cpu = CpuCost { us_per_mib: Some(us_per_mib), scope, ..CpuCost::default() };
    }
    all[0].mapped = Some(MappedResult {
        files: 1,
        mapped_bytes: GIB,
        pinned_bytes: GIB,
        resident_before: Some(1.0),
        map_ns: 100_000_000,
        register_ns: 350_000_000,
        unregister_ns: Some(50_000_000),
        cpu_ns: 1024 * 400_000,
        ..MappedResult::default()
    });
    all
}

fn found(change: impl Fn(&mut Vec<JobPlan>, &mut Vec<JobResult>)) -> MappedResult {
    let mut plans = plans();
    let mut results = results(&plans);
    change(&mut plans, &mut results);
    break_even(&plans, &mut results);
    results.remove(0).mapped.expect("it maps")
}

#[test]
fn the_cost_of_a_byte_over_what_each_read_of_it_saves() {
    let mapped = found(|_, _| {});
    let even = mapped.break_even.expect("a twin ran");
    // 0.5 s for the GiB; 0.25 s a GiB here, 0.5 s there.
    assert_eq!(even.against, "a-cached");
    assert!((even.reads_by_time.expect("slower") - 2.0).abs() < 1e-9, "{even:?}");
    // 400 us a MiB; 25 here, 425 there.
    assert!((even.reads_by_cpu.expect("dearer") - 1.0).abs() < 1e-9, "{even:?}");
    assert_eq!(mapped.break_even_unknown, None);
}

#[test]
fn a_path_that_is_not_slower_is_never_beaten() {
    let even = found(|_, results| results[1].last_done_ns /= 2).break_even.expect("a twin ran");
    assert_eq!(even.reads_by_time, None);
    let own = |results: &mut Vec<JobResult>| results[1].cpu.scope = CpuScope::Threads;
    let even = found(|_, results| own(results)).break_even.expect("a twin ran");
    assert_eq!(even.reads_by_cpu, None, "a part of the CPU time is no figure");
}

#[test]
fn what_was_not_measured_leaves_it_unknown() {
    let why = |change: fn(&mut Vec<JobPlan>, &mut Vec<JobResult>)| {
        let mapped = found(change);
        assert_eq!(mapped.break_even, None);
        mapped.break_even_unknown.expect("a reason")
    };
    let of = |change: fn(&mut MappedResult)| {
        let plans = plans();
        let mut results = results(&plans);
        change(results[0].mapped.as_mut().expect("it maps"));
        break_even(&plans, &mut results);
        results.remove(0).mapped.expect("it maps").break_even_unknown.expect("a reason")
    };
    let none = "no other path";
    assert!(why(|plans, _| plans[1].threads = 2).contains(none));
    assert!(why(|plans, _| plans[1].direct = DirectMode::Direct).contains(none));
    assert!(why(|plans, _| plans[1].group = plans[0].group).contains(none));
    assert!(why(|_, results| results[1].failed = 1).contains(none));
    assert!(why(|_, results| results[0].ended = EndedHow::Failed).contains("to its end"));
    assert!(of(|mapped| mapped.unregister_ns = None).contains("unregister"));
    assert!(of(|mapped| mapped.resident_before = None).contains("not known"));
    assert!(of(|mapped| mapped.resident_before = Some(0.5)).contains("50.0 %"));
}
