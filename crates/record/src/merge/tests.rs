//! Records of made-up ranks, merged.

use crate::{EndedHow, Record, TimeSpan, Warning, WarningKind};
use gpuio_base::stat::Histogram;

use super::*;

/// A record of one rank, as a run writes it, reduced to what is merged.
fn record(rank: u32, rank_bytes: u64, latencies: &[u64]) -> Record {
    let mut histogram = Histogram::default();
    latencies.iter().for_each(|ns| histogram.record(*ns));
    let text = include_str!("../../tests/record/merge/one_rank.json");
    let mut record: Record = serde_json::from_str(text).unwrap();
    let job = &mut record.jobs[0];
    job.read.bytes = rank_bytes;
    job.read.ios = latencies.len() as u64;
    job.read.bytes_per_s = rank_bytes as f64;
    job.read.latency.as_mut().unwrap().total = histogram.summary().unwrap();
    record.host.kernel.release = Some(format!("6.{rank}"));
    record
}

fn facts(ranks: u32) -> Vec<RankFacts> {
    let one = |rank: u32| RankFacts {
        host: format!("n{}", rank / 2),
        local_rank: rank % 2,
        pid: 100 + rank,
        times: [("job".to_owned(), TimeSpan { begin_ns: 10, end_ns: 1_000_000_010 })].into(),
        ..RankFacts::default()
    };
    (0..ranks).map(one).collect()
}

#[test]
fn counts_and_histograms_are_those_of_all_ranks() {
    let latencies =
        |rank: u64| (0..5000).map(|n| 1000 + rank * 70_000 + n * 13).collect::<Vec<_>>();
    let mut all = Histogram::default();
    let mut merger = None;
    for rank in 0..4_u32 {
        let own = latencies(u64::from(rank));
        own.iter().for_each(|ns| all.record(*ns));
        let record = record(rank, 1 << 20, &own);
        match &mut merger {
            None => merger = Some(Merger::new(record, facts(4))),
            Some(merger) => merger.add(rank, &record),
        }
    }
    let merged = merger.unwrap().finish(Started::default(), Vec::new(), None);
    let job = &merged.jobs[0];
    assert_eq!((job.read.bytes, job.read.ios), (4 << 20, 20_000));
    let total = &job.read.latency.as_ref().unwrap().total;
    let expected = all.summary().unwrap();
    assert_eq!(total.buckets, expected.buckets);
    assert_eq!((total.p50_ns, total.p99_9_ns), (expected.p50_ns, expected.p99_9_ns));
    assert_eq!((total.min_ns, total.max_ns), (expected.min_ns, expected.max_ns));
    assert_eq!(job.last_done_ns, 1_000_000_000);
    assert!((job.read.bytes_per_s - f64::from(4 << 20)).abs() < 1.0);
    let ranks = merged.ranks.unwrap();
    let hosts: Vec<_> = ranks.hosts.iter().map(|host| (host.name.as_str(), &host.ranks)).collect();
    assert_eq!(hosts, [("n0", &vec![0, 1]), ("n1", &vec![2, 3])]);
    assert_eq!(ranks.rows.len(), 4);
    assert_eq!(merged.ended, EndedHow::Complete);
}

#[test]
fn a_lost_rank_fails_the_run_and_is_named() {
    let mut merger = Merger::new(record(0, 1000, &[5, 6]), facts(3));
    merger.lost(2, "rank 2 died");
    merger.add(1, &record(1, 1000, &[7]));
    let merged = merger.finish(Started::default(), Vec::new(), Some("rank 2 died".to_owned()));
    assert_eq!((merged.ended, merged.error.as_deref()), (EndedHow::Failed, Some("rank 2 died")));
    let rows = merged.ranks.unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.rank).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((rows[2].ended, rows[2].error.as_deref()), (None, Some("rank 2 died")));
    assert_eq!(merged.jobs[0].read.bytes, 2000);
}

/// From the first begin, which is rank 0's, until the last came to it, which began later.
#[test]
fn what_was_moved_until_a_stonewall_is_added_over_the_time_until_the_last_came_to_it() {
    let at = |rank: u32, time_ns, bytes| {
        let mut record = record(rank, 4000, &[5]);
        let bytes_per_s = 0.0;
        record.jobs[0].stonewall =
            Some(crate::Stonewall { time_ns, bytes, bytes_per_s, bytes_per_thread: 900 });
        record
    };
    let mut facts = facts(2);
    facts[1].times.insert("job".to_owned(), TimeSpan { begin_ns: 110, end_ns: 1_000_000_010 });
    let mut merger = Merger::new(at(0, 1_000_000_000, 3000), facts.clone());
    merger.add(1, &at(1, 999_999_950, 1000));
    let merged = merger.finish(Started::default(), Vec::new(), None);
    let wall = merged.jobs[0].stonewall.unwrap();
    assert_eq!((wall.time_ns, wall.bytes, wall.bytes_per_thread), (1_000_000_050, 4000, 900));
    assert!((wall.bytes_per_s - 4000.0).abs() < 0.001);
    // One of the ranks has none.
    let mut merger = Merger::new(at(0, 1_000_000_000, 3000), facts);
    merger.add(1, &record(1, 4000, &[5]));
    assert_eq!(merger.finish(Started::default(), Vec::new(), None).jobs[0].stonewall, None);
}

#[test]
fn slow_ranks_are_named_with_their_ratio() {
    let mut facts = facts(5);
    facts[3].nics = vec!["mlx5_1".to_owned()];
    let mut merger = Merger::new(record(0, 1000, &[5]), facts);
    for (rank, bytes) in [(1, 1000), (2, 1000), (3, 400), (4, 950)] {
        merger.add(rank, &record(rank, bytes, &[5]));
    }
    let job = crate::RankJobRates {
        job: "job".to_owned(),
        ends_by: None,
        until_first: crate::RateOver::default(),
        while_all: None,
        until_last: crate::RateOver::default(),
        stragglers: Vec::new(),
    };
    let group = RankGroup { group: 0, start_skew_ns: 0, skew_bound_ns: 0, jobs: vec![job] };
    let merged = merger.finish(Started::default(), vec![group], None);
    let ranks = merged.ranks.unwrap();
    assert_eq!((ranks.rows[3].nics.len(), ranks.rows[2].nics.len()), (1, 0));
    let rates = &ranks.groups[0].jobs[0];
    assert_eq!(rates.ends_by, Some(crate::RanksEnd::of(&merged.plan.jobs[0].stop)));
    let slow = &rates.stragglers;
    assert_eq!(slow.len(), 1);
    assert_eq!((slow[0].rank, slow[0].host.as_str()), (3, "n1"));
    assert_eq!(slow[0].nics, ["mlx5_1"]);
    assert!((slow[0].of_median - 0.4).abs() < 1e-9);
}

#[test]
fn the_evidence_of_a_rank_is_kept_for_each_verdict_on_each_host() {
    let with = |rank: u32, words: &str| {
        let mut record = record(rank, 1000, &[5]);
        let evidence = serde_json::json!({
            "name": "own", "direction": "read", "source": "gpuio", "before": null, "after": null,
            "observed_bytes": 1000, "expected_bytes": 1000, "assessment": "supports", "why": "w"
        });
        let proof = serde_json::json!({
            "requested": "host", "actual": "host", "as_requested": true,
            "verdict": { "words": words, "route": { "kind": "direct" }, "source": "storage" },
            "sentence": format!("{words}: by rank {rank}."), "evidence": [evidence]
        });
        record.jobs[0].proof = Some(serde_json::from_value(proof).unwrap());
        record
    };
    let ranks = 2 * u32::try_from(MOST_PROOFS).unwrap() + 6;
    let mut merger = Merger::new(with(0, "direct"), facts(ranks));
    for rank in 1..ranks {
        merger.add(rank, &with(rank, if rank == ranks - 1 { "other" } else { "direct" }));
    }
    let merged = merger.finish(Started::default(), Vec::new(), None);
    assert_eq!(merged.jobs[0].proof.as_ref().unwrap().evidence, []);
    let ranks = merged.ranks.unwrap();
    let sentence = |rank: usize| ranks.rows[rank].jobs[0].sentence.clone().unwrap();
    assert_eq!(
        (sentence(0), sentence(3)),
        ("direct: by rank 0.".into(), "direct: by rank 3.".into())
    );
    let kept = |nth: usize| {
        let one = &ranks.evidence[nth];
        (one.host.as_str(), one.rank, one.alike.as_slice(), one.proof.evidence.len())
    };
    assert_eq!(kept(0), ("n0", 0, &[1][..], 1));
    assert_eq!(kept(1), ("n1", 2, &[3][..], 1));
    // Bounded, and a verdict that no other rank has is among them.
    assert_eq!(ranks.evidence.len(), MOST_PROOFS + 1);
    assert_eq!(ranks.evidence[MOST_PROOFS].proof.verdict.words, "other");
}

fn traffic(ours: u64, device: u64) -> Warning {
    let kind = WarningKind::OtherTraffic {
        device: "nvme0n1".to_owned(),
        direction: "read".to_owned(),
        ours_bytes: ours,
        device_bytes: device,
    };
    Warning { job: None, kind, text: "other traffic".to_owned() }
}

#[test]
fn ranks_of_a_host_are_no_other_programs_to_each_other() {
    let warnings = |device: u64, many_hosts: bool| {
        let mut all = Warnings::default();
        for rank in 0..4 {
            all.add(rank, "n0", &[traffic(1 << 20, device)]);
        }
        all.finish(4, 4, many_hosts)
    };
    assert_eq!(warnings(4 << 20, false), []);
    for many_hosts in [false, true] {
        let found = warnings(8 << 20, many_hosts);
        assert_eq!(found.len(), 1);
        let all = "read 8.00 MiB during the run, 4.00 MiB of it from gpuio";
        assert!(found[0].text.contains(all), "{found:?}");
        assert_eq!(found[0].text.contains("host n0: "), many_hosts, "{found:?}");
    }
}

#[test]
fn ranks_of_a_host_are_no_others_on_its_processors() {
    let warnings = |strangers_s: u64| {
        let mut all = Warnings::default();
        for rank in 0..4 {
            let s = 1_000_000_000;
            let kind = WarningKind::OtherCpuTime {
                cpus: 8,
                all_ns: 80 * s,
                ours_ns: 10 * s,
                programs_ns: (30 + strangers_s) * s,
                kernel_ns: 4 * s,
                stolen_ns: 0,
            };
            all.add(rank, "n0", &[Warning { job: None, kind, text: String::new() }]);
        }
        all.finish(4, 4, false)
    };
    assert_eq!(warnings(3), [], "with the kernel's, 7 of 80 seconds are others'");
    let found = warnings(20);
    assert_eq!(found.len(), 1, "{found:?}");
    let words =
        "gpuio had 50 % of the time of its 8 CPUs during the run, other programs 25 %, the ";
    assert!(found[0].text.starts_with(words), "{found:?}");
}

#[test]
fn a_warning_of_some_ranks_names_them() {
    let note = |kind: WarningKind, text: &str| Warning {
        job: Some("job".to_owned()),
        kind,
        text: text.to_owned(),
    };
    let sync = || note(WarningKind::SyncWrites, "all have it");
    let soft = || note(WarningKind::SoftwareGpu, "some have it");
    let short = |ios: u64| {
        let kind = WarningKind::RunTooShort {
            elapsed_ns: 1,
            ios,
            of_files: false,
            of_bytes: false,
            bytes_of: None,
        };
        note(kind, &format!("only {ios} I/Os"))
    };
    let mut all = Warnings::default();
    all.add(0, "n0", &[sync(), soft(), short(5)]);
    all.add(1, "n1", &[sync(), short(6)]);
    all.add(2, "n1", &[sync(), soft(), short(7)]);
    let texts: Vec<String> = all.finish(3, 3, true).into_iter().map(|one| one.text).collect();
    let varied = "ranks 0-2, here as on rank 0: only 5 I/Os";
    assert_eq!(texts, ["all have it", "ranks 0,2: some have it", varied]);
}

#[test]
fn what_was_moved_until_a_moment_lies_between_its_readings() {
    let span = TimeSpan { begin_ns: 1000, end_ns: 2000 };
    let mut moved = Moved::default();
    for (at, bytes) in [(900, 0), (1100, 10), (1300, 50), (1500, 60)] {
        moved.read(at, bytes);
    }
    let until = |at| moved.until(at, span, 100);
    assert_eq!(until(1000), (0, 0));
    assert_eq!(until(1100), (10, 40));
    assert_eq!(until(1200), (30, 40));
    assert_eq!(until(1050), (5, 10), "from the begin, which is exact");
    assert_eq!(until(1750), (80, 40), "to the end, which is exact");
    assert_eq!((until(2000), until(5000)), ((100, 0), (100, 0)));
}

#[test]
fn readings_of_days_stay_bounded() {
    let mut moved = Moved::default();
    let last = 3_000_000_u64;
    (0..last).for_each(|n| moved.read(n * 20, n));
    let span = TimeSpan { begin_ns: 0, end_ns: last * 20 };
    let (bytes, bound) = moved.until(20 * 1_234_567, span, last);
    assert!(bytes.abs_diff(1_234_567) <= bound && bound < 100, "{bytes} {bound}");
}

#[test]
fn three_rates_have_three_times() {
    let times = |begin_ns, end_ns, bytes| JobTimes { span: TimeSpan { begin_ns, end_ns }, bytes };
    let all = [times(0, 100, 1000), times(20, 200, 2000)];
    let windows = windows(&all).unwrap();
    let parts = [[(200, 1), (1000, 0)], [(0, 0), (900, 2)]];
    let rates = rates("job", windows, &parts, 3000);
    assert_eq!((rates.until_first.time_ns, rates.until_first.bytes), (100, 1900));
    let together = rates.while_all.unwrap();
    assert_eq!((together.time_ns, together.bytes, together.bytes_bound), (80, 1700, 3));
    assert_eq!((rates.until_last.time_ns, rates.until_last.bytes), (200, 3000));
    // One rank was done before the other began.
    let apart = [times(0, 100, 1000), times(150, 200, 2000)];
    let parts = [[(1000, 0), (1000, 0)], [(0, 0), (0, 0)]];
    let apart = super::rates("job", super::windows(&apart).unwrap(), &parts, 3000);
    assert_eq!(apart.while_all, None);
    assert_eq!(super::windows(&[]), None);
}

#[test]
fn a_series_of_different_intervals_keeps_every_byte() {
    let point = |at_ns, span_ns, read_bytes, max_ns| crate::Point {
        at_ns,
        span_ns,
        read_bytes,
        read_ios: read_bytes / 7,
        p50_ns: Some(1),
        max_ns: Some(max_ns),
        ..crate::Point::default()
    };
    let first = [point(0, 100, 70, 1), point(100, 100, 700, 5), point(200, 100, 701, 6)];
    let mut sum = series::SeriesSum::like(&first);
    sum.add(&first);
    sum.add(&[point(50, 100, 333, 9), point(233, 183, 1003, 2)]);
    let series = sum.finish();
    let total: u64 = series.iter().map(|point| point.read_bytes).sum();
    assert_eq!(total, 70 + 700 + 701 + 333 + 1003);
    assert_eq!(series.last().unwrap().at_ns, 233);
    assert!(series.iter().all(|point| point.p50_ns.is_none()));
    assert_eq!(series.iter().filter_map(|point| point.max_ns).max(), Some(9));
}

#[test]
fn skew_is_the_spread_of_the_starts() {
    assert_eq!(skew(&[(100, 0), (130, 4), (90, 7)]), (40, 11));
    assert_eq!(skew(&[]), (0, 0));
}

/// A thousand ranks: what is kept does not grow with the records, only with their rows.
#[test]
fn a_thousand_records_are_merged() {
    let latencies: Vec<u64> = (0..2000).map(|n| 50_000 + n * 997 % 3_000_000).collect();
    let one = record(0, 1 << 30, &latencies);
    let text = serde_json::to_string(&one).unwrap();
    let mut merger = Merger::new(one, facts(1000));
    for rank in 1..1000 {
        let record: Record = serde_json::from_str(&text).unwrap();
        merger.add(rank, &record);
    }
    let merged = merger.finish(Started::default(), Vec::new(), None);
    assert_eq!(merged.jobs[0].read.ios, 2_000_000);
    assert_eq!(merged.ranks.unwrap().rows.len(), 1000);
}
