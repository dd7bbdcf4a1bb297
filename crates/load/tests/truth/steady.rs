//! When a job was steady follows from its series, by the rule as fio's manual has it.

use gpuio_record::{JobResult, Point};

use crate::lab::{Lab, MS};

const WINDOW: usize = 3;

/// A job with a point of its series for each check, and its rates from the second point on: until
/// the first one nothing is looked at.
fn job(lines: &str) -> (JobResult, Vec<(Point, f64)>) {
    let lab = Lab::new();
    let text = format!(
        "[a]\ndirectory=${{DIR}}\nengine=null\nbs=4k\nsize=1m\nss_dur=600ms\nss_interval=200ms\n\
         {lines}\n"
    );
    let mut plan = lab.plan(&text);
    plan.interval_ns = 200 * MS;
    let job = lab.carry_out(&mut plan).unwrap().jobs.remove(0);
    let rate = |point: &Point| (point.clone(), point.read_ios as f64 * 1e9 / point.span_ns as f64);
    let rates = job.series.iter().skip(1).map(rate).collect();
    (job, rates)
}

/// Mean of a window, and its largest deviation from it.
fn figures(window: &[(Point, f64)]) -> (f64, f64) {
    let count = f64::from(u32::try_from(window.len()).unwrap());
    let mean = window.iter().map(|(_, rate)| rate).sum::<f64>() / count;
    let far = window.iter().map(|(_, rate)| (rate - mean).abs());
    (mean, far.fold(0.0, f64::max))
}

#[track_caller]
fn same(found: Option<f64>, wanted: f64) {
    assert!((found.unwrap() / wanted - 1.0).abs() < 1e-9, "{found:?}, not {wanted}");
}

/// 32 I/Os of 8 ms at a time, 4000 a second, and none for half a second.
#[test]
fn a_job_is_steady_with_the_first_window_of_its_series_that_is() {
    let stall = "depth=32\nruntime=60\ninject=delay=8ms,stall=500ms@300ms\nss=iops:50%";
    let (job, rates) = job(stall);
    let steady = job.steady.unwrap();
    let is_steady = |(mean, far): (f64, f64)| mean > 0.0 && 100.0 * far / mean < 50.0;
    let mut windows = rates.windows(WINDOW);
    let nth = windows.position(|window| is_steady(figures(window))).unwrap();
    let window = &rates[nth..nth + WINDOW];
    let end = window[WINDOW - 1].0.at_ns;
    assert_eq!(steady.attained_at_ns.map(u64::cast_signed), Some(end), "{steady:?} {rates:?}");
    assert_eq!(steady.checks as usize, nth + 1);
    let (mean, far) = figures(window);
    same(steady.mean, mean);
    same(steady.observed, 100.0 * far / mean);
    // From outside: the device gives no more, and no window is steady that has the stall in it.
    assert!(mean <= 4000.0 * 1.2, "{mean}");
    let in_time = rates.iter().all(|(point, _)| point.span_ns < 240 * MS);
    assert!(!in_time || end >= 1300 * MS.cast_signed(), "{steady:?} {rates:?}");
}

#[test]
fn what_was_not_steady_has_the_figures_of_its_last_window() {
    // Nothing that moves is steady to a thousandth of an I/O per second.
    let (job, rates) = job("depth=8\nruntime=1500ms\ninject=delay=8ms\nss=iops:0.001");
    let steady = job.steady.unwrap();
    assert_eq!(steady.attained_at_ns, None);
    // A sample that comes when the last I/O was back is of the series alone.
    let checks = steady.checks as usize;
    assert!(checks > 0 && checks + WINDOW <= rates.len() + 1, "{checks} of {}", rates.len());
    let (mean, far) = figures(&rates[checks - 1..checks - 1 + WINDOW]);
    same(steady.mean, mean);
    same(steady.observed, far);
    assert!(mean <= 1000.0 * 1.2, "8 I/Os of 8 ms each: {mean}");
}
