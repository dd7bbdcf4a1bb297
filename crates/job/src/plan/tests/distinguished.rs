//! Whether results that differ in a key are distinguished: `compare` refuses them or shows the
//! difference, and a figure of `report` draws one of them. The lists of both are of results, not
//! of keys: an entry joins keys (a rate, its I/Os and their arrivals), is about what ran (engine,
//! path) or has the word of another tool's result. So nothing derives them from the table of keys,
//! and a new key is decided here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use gpuio_record::Record;
use gpuio_report::Recheck;
use gpuio_report::compare::{Options, Run, Side, compare, of_record};
use gpuio_report::set::{Member, Set, figured};
use gpuio_testkit::jobs::result;

use super::effects::{LOADS, OF_OTHERS, OF_RANKS};
use super::*;
use crate::spec::{Status, keys};

/// Another value is shown and not refused: it is no other load, or does not decide how fast one is.
const SHOWN: &str = "\
    align bw_log cache_alike ceilings cpus directory file_prefix filenames fsync_on_close \
    gather_scatter gpu invalidate io_size iops_log keep lat_log log_ns log_offset loops \
    max_latency_ns name numa number_ios offset per_job_logs pre_read ramp_ns rings runtime_ns seed \
    size skip_bufregister split_cpus steady steady_check_ns steady_ramp_ns steady_window_ns \
    streams time_based verify_ns via_gpu via_peer wear_out";

/// Another value is not even shown: only names differ, or what was noted of the request.
const NOT_SHOWN: &str = "\
    blocks_unaligned feed.slo feed.utilisation nvlinks percentiles require_path stonewall verify";

/// A figure combines results with different values.
const COMBINED: &str = "\
    align blocks_unaligned bw_log ceilings compress_chunk cpus directory feed.slo feed.utilisation \
    file_prefix filenames fsync_on_close gather_scatter io_size iops_log keep lat_log log_ns \
    log_offset loops max_latency_ns numa number_ios nvlinks per_job_logs percentiles repeat \
    require_path runtime_ns seed split_cpus stage steady steady_check_ns steady_ramp_ns \
    steady_window_ns stonewall time_based verify verify_ns via_peer wear_out";

/// A record of this plan, whose jobs all did the same.
fn record(plan: Plan) -> Record {
    static ANY: LazyLock<Record> = LazyLock::new(|| {
        let any = include_str!("../../../../report/tests/report/compare/fixtures/host.json");
        serde_json::from_str(any).unwrap()
    });
    let mut record = ANY.clone();
    record.jobs = plan.jobs.iter().map(|job| result(job, 100)).collect();
    record.plan = plan;
    record
}

#[test]
fn every_key_is_distinguished_or_named_here() {
    // By field: whether `compare` refuses another value, or shows it, and a figure leaves it out;
    // and whether `compare` shows or refuses a value that the other side does not have.
    let mut fields = BTreeMap::<&str, [bool; 4]>::new();
    let others = [OF_OTHERS, OF_RANKS, &["rdma_url"]].concat();
    let supported = keys().filter(|key| matches!(key.status, Status::Supported(_)));
    let planned = |load: &str, line: &str| {
        let plan = Bench::default().plan(&parsed(&format!("[a]\n{load}\n{line}"))).ok()?;
        let record = record(plan);
        let runs = of_record::runs(&record, "f", &[]);
        Some((record, runs))
    };
    let compared = |sides: [&[Run]; 2]| {
        let side = |runs: &[Run]| Side { runs: runs.to_vec(), ..Side::default() };
        let compared = compare(&sides.map(side), &Options::default());
        let refused = compared.refused().next().is_some() || !compared.alone.is_empty();
        let mut pairs = compared.pairs.iter();
        [refused, refused || pairs.any(|pair| !pair.differences.is_empty())]
    };
    let without_key: Vec<_> = LOADS.iter().map(|load| (load, planned(load, ""))).collect();
    for key in supported.filter(|key| !others.contains(&key.name)) {
        let [refused, differs, apart, lone] = fields.entry(key.field().unwrap()).or_default();
        for (load, none) in &without_key {
            let [one, two] =
                [0, 1].map(|nth| planned(load, &format!("{}={}\n", key.name, key.tried[nth])));
            let Some((one, runs)) = one else { continue };
            // One of the two may be what a plan takes without the key.
            let beside_none =
                |some: &[Run]| none.as_ref().is_some_and(|(_, none)| compared([none, some])[1]);
            *lone = *lone || beside_none(&runs);
            let Some((two, others)) = two else { continue };
            *lone = *lone || beside_none(&others);
            if !*refused {
                let [refuses, shows] = compared([&runs, &others]);
                (*refused, *differs) = (refuses, *differs || shows);
            }
            let fixed = |records: &[&Record]| {
                // Whether its figures follow from its counts is of no interest here.
                let member = |record: &&Record| Member {
                    name: "f".to_owned(),
                    file: "f".to_owned(),
                    record: (*record).clone(),
                    at: Vec::new(),
                    within_limit: None,
                    digest: None,
                    recheck: Recheck::default(),
                };
                let members = records.iter().map(member).collect();
                figured(&Set { members, ..Set::default() }, &["direction"], &[]).fixed
            };
            // Several jobs of one record are apart in any case.
            *apart = *apart || fixed(&[&one]).is_empty() && !fixed(&[&one, &two]).is_empty();
            if *refused && *apart && *lone {
                break;
            }
        }
    }
    let named = |which: fn([bool; 4]) -> bool| {
        let those = fields.iter().filter(|(_, by)| which(**by)).map(|(field, _)| *field);
        those.collect::<Vec<_>>().join(" ")
    };
    let shown = named(|[refused, differs, ..]| !refused && differs);
    let not_shown = named(|[refused, differs, ..]| !refused && !differs);
    let combined = named(|[_, _, apart, _]| !apart);
    assert_eq!([&*shown, &not_shown, &combined], [SHOWN, NOT_SHOWN, COMBINED]);
    let silent = named(|[.., lone]| !lone);
    let known = |field: &str| NOT_SHOWN.split(' ').any(|name| name == field);
    assert!(silent.split(' ').all(known), "{silent}");
}
