//! The settings of a job, each as a `key = value` line.

use std::collections::BTreeMap;

use gpuio_job::spec::{Key, keys};
use gpuio_record::{DirectMode, JobPlan, TierPlan};

use super::comment;

/// The order of the lines. Keys that are not named follow, in the order of their table.
const WHERE: &str = "path engine gpu memory streams gather_batch gather_scatter via_gpu via_peer \
    skip_bufregister numa cpus_allowed threads depth";
const LOAD: &str = "rw rwmixread bs bssplit blockalign unaligned norandommap random_distribution";
const FILES: &str = "directory file_prefix filename";
const REST: &str = "ranges loops files size full_threads scale samples_per_file sample_size ratio \
    columns sample_group batch_samples sample_order epochs accelerators readers prefetch \
    cache_memory compute compute_time utilisation slo filesize nrfiles file_service_type \
    offset_increment offset layout shared_files read_shift shared_fd io_size runtime time_based \
    wear_out steadystate steadystate_duration steadystate_ramp_time steadystate_check_interval \
    ramp_time startdelay thinktime thinktime_spin thinktime_blocks fsync fdatasync end_fsync \
    write_bw_log write_lat_log write_iops_log log_avg_msec rate rate_iops rate_process seed direct \
    pre_read invalidate sync verify do_verify verify_time fill refill buffer_compress_percentage \
    buffer_compress_chunk keep ceilings percentiles beside inject";

/// One setting.
pub(super) fn set(out: &mut String, key: &str, value: &str) {
    out.push_str(&format!("{key} = {value}\n"));
}

/// A name or other free text: `${` would be replaced from the environment, so it is written as
/// `$${`.
pub(super) fn text(out: &mut String, key: &str, value: &str) {
    let line = super::one_line(value);
    if line != value || line.trim() != line || ends_in_comment(&line) {
        comment(out, &format!("the next line can't represent {key} exactly: {value:?}"));
    }
    set(out, key, &line.replace("${", "$${"));
}

/// Whether a reader of job files would take the end of this value for a comment.
fn ends_in_comment(value: &str) -> bool {
    [" #", " ;"].iter().any(|mark| value.contains(mark)) || value.starts_with(['#', ';'])
}

/// The spellings with which keys are printed, in order.
fn ordered(job: &JobPlan) -> Vec<(&'static str, &'static Key)> {
    let order = match job.feed {
        Some(_) => [WHERE, FILES, LOAD, REST],
        None => [WHERE, LOAD, FILES, REST],
    };
    let names = order.into_iter().flat_map(str::split_whitespace);
    let named: Vec<(&str, &Key)> =
        names.filter_map(|name| Some((name, gpuio_job::spec::find(name)?))).collect();
    let others = keys().filter(|key| !named.iter().any(|(_, one)| one.name == key.name));
    let others: Vec<(&str, &Key)> = others.map(|key| (key.name, key)).collect();
    named.into_iter().chain(others).collect()
}

pub(super) fn write(out: &mut String, job: &JobPlan) {
    for (name, key) in ordered(job) {
        let Some(value) = key.prints.and_then(|value| value(job)) else { continue };
        if let Some(replay) = job.replay.as_ref().filter(|_| name == "shared_fd") {
            comment(out, &crate::workload::replay(replay));
            comment(out, "a job file has no calls of a trace: repeat this with gpuio replay");
        }
        text(out, name, &value);
        if let Some(remark) = remark(name, job) {
            comment(out, &remark);
        }
    }
}

/// What a value does not say.
fn remark(key: &str, job: &JobPlan) -> Option<String> {
    match (key, &job.feed, &job.part) {
        ("unaligned", ..) if job.skew_bytes > 0 => {
            Some(format!("unaligned: every offset moves by {} bytes", job.skew_bytes))
        }
        ("scale", Some(feed), _) => {
            Some(format!("scale {}: {} of {} files", feed.scale, feed.files, feed.full_files))
        }
        ("scale", None, Some(part)) => Some(crate::workload::part(job, part)),
        ("cache_memory", Some(feed), _) => {
            let TierPlan { places, place_bytes, .. } = feed.tier?;
            Some(format!("keeps {places} x {place_bytes} bytes of what is read, by LRU"))
        }
        ("beside", ..) => Some(
            "the job runs twice, first without the GPU computation; the computation alone is \
             measured for 2 s"
                .to_owned(),
        ),
        _ => None,
    }
}

pub(super) fn direct_word(mode: DirectMode) -> &'static str {
    match mode {
        DirectMode::Direct => "direct",
        DirectMode::Buffered => "buffered",
    }
}

/// cuFile settings; the same for all jobs.
pub(super) fn cufile(out: &mut String, settings: &BTreeMap<String, String>) {
    for (key, value) in settings {
        text(out, &format!("cufile.{key}"), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_names_keys_that_are_printed() {
        for name in [WHERE, LOAD, FILES, REST].into_iter().flat_map(str::split_whitespace) {
            assert!(gpuio_job::spec::find(name).is_some_and(|key| key.prints.is_some()), "{name}");
        }
    }
}
