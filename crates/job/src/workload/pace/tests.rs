use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn rate(bytes_per_s: Option<u64>, iops: Option<u64>, arrivals: Arrivals) -> Pacing {
    Pacing { bytes_per_s, iops, arrivals }
}

const ALONE: ThreadPhase = ThreadPhase { thread: 0, threads: 1, mean_bytes: 4096 };

fn pacer(pacing: &Pacing) -> Pacer {
    Pacer::new(pacing, ALONE, 7, 1000).expect("the rate is good")
}

#[test]
fn the_first_is_due_at_the_start() {
    assert_eq!(pacer(&rate(None, Some(10), Arrivals::Steady)).due(), 1000);
}

/// Due times of all threads of a job over a second, counted by the millisecond.
fn arrivals_by_millisecond(pacing: &Pacing, threads: u32, mean_bytes: u32) -> Vec<u32> {
    let mut arrivals = vec![0; 1000];
    for thread in 0..threads {
        let turn = ThreadPhase { thread, threads, mean_bytes };
        let mut pacer = Pacer::new(pacing, turn, u64::from(thread), 0).expect("the rate is good");
        while pacer.due() < SECOND {
            arrivals[usize::try_from(pacer.due() / 1_000_000).unwrap()] += 1;
            pacer.took(mean_bytes);
        }
    }
    arrivals
}

#[test]
fn threads_take_turns() {
    // 8 threads at 200 I/Os a second each are 1.6 arrivals a millisecond: never more than 2.
    for pacing in [
        rate(None, Some(200), Arrivals::Steady),
        rate(Some(200 * 4096), None, Arrivals::Steady),
        rate(Some(200 * 4096), Some(100_000), Arrivals::Steady),
    ] {
        let arrivals = arrivals_by_millisecond(&pacing, 8, 4096);
        assert_eq!(arrivals.iter().sum::<u32>(), 1600);
        assert!(arrivals.iter().all(|count| (1..=2).contains(count)), "{arrivals:?}");
    }
    // At random, each thread by itself: no burst at the start, and as many on average.
    let poisson = arrivals_by_millisecond(&rate(None, Some(200), Arrivals::Poisson), 64, 4096);
    assert!((12_000..13_600).contains(&poisson.iter().sum::<u32>()));
    assert!(poisson[0] < 40, "{} of 64 threads began at once", poisson[0]);
}

#[test]
fn steady_iops_do_not_drift() {
    // A third of a second is no whole number of nanoseconds.
    let mut pacer = pacer(&rate(None, Some(3), Arrivals::Steady));
    for _ in 0..3_000_000 {
        pacer.took(4096);
    }
    assert_eq!(pacer.due(), 1000 + 1_000_000 * SECOND);
}

#[test]
fn steady_bytes_count_the_bytes() {
    let mut pacer = pacer(&rate(Some(7_000_000), None, Arrivals::Steady));
    for _ in 0..7000 {
        pacer.took(250);
        pacer.took(750);
    }
    assert_eq!(pacer.due(), 1000 + SECOND);
}

#[test]
fn with_two_limits_neither_is_exceeded() {
    // 1 MB/s and 1000 I/Os/s: 100-byte I/Os are held by their number, 10 kB ones by their bytes.
    let mut pacer = pacer(&rate(Some(1_000_000), Some(1000), Arrivals::Steady));
    for _ in 0..1000 {
        pacer.took(100);
    }
    assert_eq!(pacer.due(), 1000 + SECOND);
    for _ in 0..100 {
        pacer.took(10_000);
    }
    assert_eq!(pacer.due(), 1000 + 2 * SECOND, "small I/Os earn no credit for large ones");
}

#[test]
fn poisson_gaps_are_exponential() {
    let mut pacer = pacer(&rate(None, Some(1000), Arrivals::Poisson));
    let count = 200_000u32;
    let mut gaps = Vec::new();
    for _ in 0..count {
        let before = pacer.due();
        pacer.took(4096);
        gaps.push((pacer.due() - before) as f64);
    }
    let mean = gaps.iter().sum::<f64>() / f64::from(count);
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / f64::from(count);
    // An exponential's deviation is its mean; the mean of 200000 gaps is good to 0.22 %.
    assert!((mean / 1e6 - 1.0).abs() < 0.01, "mean {mean}");
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "deviation {}", variance.sqrt());
    let long = gaps.iter().filter(|gap| **gap > 2e6).count() as f64 / f64::from(count);
    assert!((long - (-2.0f64).exp()).abs() < 0.005, "beyond twice the mean: {long}");
    let short = gaps.iter().filter(|gap| **gap < 1e5).count() as f64 / f64::from(count);
    assert!((short - (1.0 - (-0.1f64).exp())).abs() < 0.005, "below a tenth: {short}");
}

#[test]
fn poisson_at_a_high_rate_keeps_its_mean() {
    // Gaps of 2.5 ns on average: rounding each one would lose a fifth.
    let mut pacer = pacer(&rate(None, Some(400_000_000), Arrivals::Poisson));
    let first = pacer.due();
    for _ in 0..1_000_000 {
        pacer.took(1);
    }
    let mean = (pacer.due() - first) as f64 / 1e6;
    assert!((mean / 2.5 - 1.0).abs() < 0.01, "{mean}");
}

#[test]
fn seeds_differ() {
    let pacing = rate(None, Some(1000), Arrivals::Poisson);
    let after = |seed| {
        let mut pacer = Pacer::new(&pacing, ALONE, seed, 0).expect("the rate is good");
        pacer.took(1);
        pacer.due()
    };
    assert_eq!(after(1), after(1));
    assert_ne!(after(1), after(2));
}

#[test]
fn rates_that_make_no_sense_are_refused() {
    let refuse = |bytes, iops, threads| {
        let pacing = rate(bytes, iops, Arrivals::Steady);
        Pacer::new(&pacing, ThreadPhase { threads, ..ALONE }, 0, 0).expect_err("no such rate")
    };
    assert_eq!(refuse(None, None, 1), PaceError::Nothing);
    assert_eq!(refuse(Some(0), None, 1), PaceError::Zero { what: "bytes" });
    assert_eq!(refuse(None, Some(0), 1), PaceError::Zero { what: "I/Os" });
    assert_eq!(refuse(None, Some(1), 0), PaceError::NoThreads);
}

proptest! {
    #[test]
    fn steady_sums_are_exact(
        bytes_per_s in 1u64..=u64::MAX,
        lens in prop::collection::vec(1u32..=u32::MAX, 1..50),
    ) {
        let mut pacer = pacer(&rate(Some(bytes_per_s), None, Arrivals::Steady));
        let mut total = 0u128;
        for len in lens {
            pacer.took(len);
            total += u128::from(len);
            let exact = total * NANOS_PER_S / u128::from(bytes_per_s);
            let wanted = u64::try_from(exact).unwrap_or(u64::MAX).saturating_add(1000);
            prop_assert_eq!(pacer.due(), wanted);
        }
    }

    #[test]
    fn due_times_never_step_back(
        bytes_per_s in prop::option::of(1u64..=u64::MAX),
        iops in 1u64..=u64::MAX,
        poisson: bool,
        lens in prop::collection::vec(1u32..=u32::MAX, 1..50),
    ) {
        let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Steady };
        let mut pacer = pacer(&rate(bytes_per_s, Some(iops), arrivals));
        for len in lens {
            let before = pacer.due();
            pacer.took(len);
            prop_assert!(pacer.due() >= before);
        }
    }
}
