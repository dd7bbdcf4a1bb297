//! Jobs that end once they are stable.

use gpuio_record::{EndedHow, WarningKind};

use crate::lab::{Lab, MS};

#[test]
fn a_job_that_converges_ends_then_and_its_neighbour_goes_on() {
    let lab = Lab::new();
    // A rate that is kept is steady; half of it is a wide limit. A busy machine takes longer.
    let ran = lab.run(
        "[global]\nengine=null\nsize=1m\nbs=4k\nrate_iops=2000\ndirectory=${DIR}\n\
         [a]\nfile_prefix=a\nss=iops:50%\nss_dur=300ms\nss_interval=100ms\nss_ramp=100ms\n\
         runtime=60\nthreads=2\n[b]\nfile_prefix=b\nruntime=3\n",
    );
    let [a, b] = &ran.jobs[..] else { panic!("{ran:?}") };
    assert_eq!([ran.ended, a.ended, b.ended], [EndedHow::Complete; 3]);
    let steady = a.steady.unwrap();
    let at = steady.attained_at_ns.unwrap();
    assert!(at >= 400 * MS && steady.checks >= 1, "{steady:?}");
    assert!(a.last_done_ns >= at - 100 * MS && a.last_done_ns < 60_000 * MS, "{a:?}");
    assert!(steady.mean.unwrap() > 0.0 && steady.observed.unwrap() < 50.0, "{steady:?}");
    // The neighbour's time went on: what was due in it either ran or was too late to begin.
    let never = b.never_started.map_or(0, |never| never.ios);
    assert!(b.steady.is_none(), "{b:?}");
    assert_eq!(b.read.ios + never, 3 * 2000, "{b:?}");
    let warned = |kind: &WarningKind| matches!(kind, WarningKind::NotSteady { .. });
    assert!(!ran.warnings.iter().any(|warning| warned(&warning.kind)));
}

#[test]
fn a_job_that_does_not_converge_is_reported() {
    let lab = Lab::new();
    let ran = lab.run(
        "[a]\nengine=null\nsize=1m\nbs=4k\ndirectory=${DIR}\nruntime=700ms\n\
         ss=bw:1\nss_dur=200ms\nss_interval=100ms\n",
    );
    let job = &ran.jobs[0];
    let steady = job.steady.unwrap();
    assert_eq!((job.ended, steady.attained_at_ns), (EndedHow::Complete, None));
    assert!(steady.checks >= 1 && steady.observed.unwrap() >= 1.0, "{steady:?}");
    let found = ran.warnings.iter().find_map(|warning| match &warning.kind {
        WarningKind::NotSteady { requested, observed: seen } => Some((requested.as_str(), *seen)),
        _ => None,
    });
    assert_eq!(found, Some(("bw:1", steady.observed)));
}
