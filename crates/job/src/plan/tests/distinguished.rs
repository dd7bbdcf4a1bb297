//! Whether results that differ in a key are distinguished: `compare` refuses them or shows the
//! difference, and a figure of `report` draws one of them. The lists of both are of results, not
//! of keys: an entry joins keys (a rate, its I/Os and their arrivals), is about what ran (engine,
//! path) or has the word of another tool's result. So nothing derives them from the table of keys,
//! and a new key is decided here.

use std::collections::BTreeMap;

use gpuio_record::Record;
use gpuio_report::compare::{Options, Side, compare, of_record};
use gpuio_report::set::{Member, Set, figured};
use gpuio_testkit::jobs::result;

use super::effects::{LOADS, OF_OTHERS, OF_RANKS};
use super::*;
use crate::spec::{Status, keys};

/// Another value is shown and not refused: it is no other load, or does not decide how fast one is.
const SHOWN: &str = "\
     align bw_log cache_alike ceilings cpus directory end_fsync fdatasync_ios file_bytes \
     file_prefix filename_format filenames files_per_thread fill fsync_ios \
     gather_scatter gpu invalidate io_size iops_log keep lat_log layout log_ns loops \
     max_latency_ns name numa number_ios offset \
     offset_increment pre_read ramp_ns rings runtime_ns seed shared_fd shared_files size \
     skip_bufregister start_delay_ns steady steady_check_ns steady_ramp_ns steady_window_ns \
     streams think_ios think_ns think_spin_ns time_based verify_ns via_gpu via_peer wear_out";

/// Another value is not even shown: only names differ, or what was noted of the request.
const NOT_SHOWN: &str = "blocks_unaligned feed.slo feed.utilisation files_in_turn \
     fsync_on_close nvlinks percentiles stonewall verify";

/// A figure combines results with different values.
const COMBINED: &str = "\
     align blocks_unaligned bw_log ceilings compress_chunk cpus directory end_fsync \
     fdatasync_ios feed.slo feed.utilisation file_prefix filenames files_in_turn \
     files_per_thread fill fsync_ios fsync_on_close gather_scatter io_size iops_log keep \
     lat_log log_ns loops max_latency_ns name numa number_ios nvlinks \
     offset offset_increment percentiles ramp_ns repeat runtime_ns seed stage start_delay_ns \
     steady steady_check_ns steady_ramp_ns steady_window_ns stonewall think_ios think_ns \
     think_spin_ns time_based verify verify_ns via_peer wear_out";

/// A record of this plan, whose jobs all did the same.
fn record(plan: Plan) -> Record {
    let any = include_str!("../../../../report/tests/report/compare/fixtures/host.json");
    let mut record: Record = serde_json::from_str(any).unwrap();
    record.jobs = plan.jobs.iter().map(|job| result(job, 100)).collect();
    record.plan = plan;
    record
}

#[test]
fn every_key_is_distinguished_or_named_here() {
    // By field: whether `compare` refuses another value, or shows it, and a figure leaves it out.
    let mut fields = BTreeMap::<&str, [bool; 3]>::new();
    let others = [OF_OTHERS, OF_RANKS, &["rdma_url"]].concat();
    let supported = keys().filter(|key| matches!(key.status, Status::Supported(_)));
    for key in supported.filter(|key| !others.contains(&key.name)) {
        let [refused, differs, apart] = fields.entry(key.field().unwrap()).or_default();
        for load in LOADS {
            let text = |value| format!("[a]\n{load}\n{}={value}\n", key.name);
            let planned = key.tried.map(|value| Bench::default().plan(&parsed(&text(value))));
            let [Ok(one), Ok(two)] = planned else { continue };
            let records = [one, two].map(record);
            let side = |record: &Record| Side {
                runs: of_record::runs(record, "f", &[]),
                ..Side::default()
            };
            let compared = compare(&records.each_ref().map(side), &Options::default());
            *refused |= compared.refused().next().is_some() || !compared.alone.is_empty();
            *differs |= compared.pairs.iter().any(|pair| !pair.differences.is_empty());
            let fixed = |records: &[&Record]| {
                let member = |record: &&Record| Member {
                    name: "f".into(),
                    record: (*record).clone(),
                    at: Vec::new(),
                };
                let members = records.iter().map(member).collect();
                figured(&Set { members, ..Set::default() }, &["direction"], &[]).fixed
            };
            let [one, two] = &records;
            // Several jobs of one record are apart in any case.
            *apart |= fixed(&[one]).is_empty() && !fixed(&[one, two]).is_empty();
            if *refused && *apart {
                break;
            }
        }
    }
    let named = |which: fn([bool; 3]) -> bool| {
        let those = fields.iter().filter(|(_, by)| which(**by)).map(|(field, _)| *field);
        those.collect::<Vec<_>>().join(" ")
    };
    let shown = named(|[refused, differs, _]| !refused && differs);
    let not_shown = named(|[refused, differs, _]| !refused && !differs);
    let combined = named(|[.., apart]| !apart);
    assert_eq!([&*shown, &not_shown, &combined], [SHOWN, NOT_SHOWN, COMBINED]);
}
