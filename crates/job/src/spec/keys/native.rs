//! gpuio's other keys, and those with the same spelling in several tools.

use super::Dialect::{All, Native};
use super::Key;
use super::loads::{FEED, RANGES, REPLAY};
use super::printed::{self, REST, WHERE, switch};
use super::set::{self, key};
use super::unused::{OWN_FILES, not_between_gpus, when};
use crate::spec::value;
use gpuio_base::units::format_duration_ns;
use gpuio_record::{Arrivals, VerifyMode};

pub(super) const KEYS: &[Key] = &[
    key("name", All, set::NAME, "name of the job; in `[global]`, of the run").tried(["x", "y"]),
    key(
        "do_verify",
        All,
        switch!(verify, |on| if on { VerifyMode::Pass } else { VerifyMode::Off }),
        "verify the data in a separate pass",
    )
    .prints(REST + 61, |p| (p.fio_headers && p.verify == VerifyMode::Off).then(|| switch(false)))
    .tried(["1", "0"]),
    key(
        "cache_alike",
        Native,
        switch!(cache_alike),
        "every run finds the page cache in the same state: `pre_read` or `invalidate`, whichever \
         fits it",
    )
    .unused(|s| {
        when(
            s.requested.cache_alike == Some(true)
                && (s.requested.pre_read.is_some() || s.requested.invalidate == Some(true)),
            "pre_read or invalidate sets the state of the page cache; leave one out",
        )
    })
    .tried(["1", "0"]),
    key(
        "verify_time",
        Native,
        field!(verify_ns, value::some_time),
        "longest time for the verification after the run; a random sample of what fits into it is \
         checked, and the report says how much that was",
    )
    .not_of(REPLAY)
    .unused(|s| {
        when(
            !matches!(s.plan.verify, VerifyMode::Pass | VerifyMode::Rewrite),
            "it limits verification after the run, which is not requested; add verify=pass, or \
         leave it out",
        )
    })
    .prints(REST + 62, |p| p.verify_ns.map(format_duration_ns))
    .tried(["1", "2"]),
    key("arrivals", Native, set::ARRIVALS, "spacing under a rate limit: `steady` or `poisson`")
        .tried(["steady", "poisson"]),
    key(
        "poisson",
        Native,
        switch!(arrivals, |on| if on { Arrivals::Poisson } else { Arrivals::Steady }),
        "the same as `arrivals=poisson`",
    )
    .tried(["1", "0"]),
    key(
        "percentiles",
        All,
        field!(percentiles, value::percentiles),
        "percentiles of latencies in tables, in place of the usual ones: `50,95,99.99`",
    )
    .or(&["percentile_list"])
    .prints(REST + 69, |p| {
        let all: Vec<String> = p.percentiles.iter().map(ToString::to_string).collect();
        (!all.is_empty()).then(|| all.join(","))
    })
    .tried(["95", "50,99.99"]),
    key("read_percent", Native, set::READ_PERCENT, "percentage of reads in a mix")
        .tried(["30", "70"]),
    key("coverage", Native, switch!(coverage), "access every block once before any block twice")
        .tried(["1", "0"]),
    key(
        "distribution",
        Native,
        set::DISTRIBUTION,
        "random offsets: `random`, `zipf:THETA`, `pareto:POWER`, `normal:PERCENT`",
    )
    .tried(["zipf:1.2", "normal:10"]),
    key(
        "shared_files",
        Native,
        switch!(shared_files),
        "all threads use the same files, thread i from `offset + i * size`",
    )
    .or(&["shared"])
    .not_of(FEED | RANGES | REPLAY)
    .unused(|s| {
        when(
            s.requested.shared_files == Some(true)
                && s.requested.filenames.is_none()
                && !s.plan.shared_files,
            OWN_FILES,
        )
        .or_else(|| {
            when(s.requested.layout.is_some(), "layout says how threads share files; leave one out")
        })
    })
    .prints(REST + 29, |p| {
        (p.has_size() && printed::shared_layout(p).is_none()).then(|| switch(p.shared_files))
    })
    .tried(["1", "0"]),
    key(
        "gather_scatter",
        Native,
        switch!(gather_scatter),
        "path `gather`: blocks get separate, non-adjacent locations in GPU memory, as random ones \
         do",
    )
    .unused(|s| {
        when(
            s.plan.gather_scatter.is_none(),
            format!(
                "it concerns path gather; path {} has one block in each slot; leave it out",
                s.path.name
            ),
        )
    })
    .prints(WHERE + 7, |p| p.gather_scatter.map(switch))
    .tried(["1", "0"]),
    key(
        "via_peer",
        Native,
        field!(via_peer, value::via_peer),
        "paths `routed` and `fan-out`: `peer` for direct copies between GPUs only, or `any` route \
         of the driver",
    )
    .unused(not_between_gpus)
    .prints(WHERE + 9, printed::via_peer)
    .tried(["peer", "any"]),
    key(
        "skip_bufregister",
        Native,
        switch!(skip_bufregister),
        "paths of cuFile: do not register GPU memory with it (gdsio's `-b`)",
    )
    .not_of(REPLAY)
    .unused(|s| {
        when(
            s.requested.skip_bufregister == Some(true) && !s.path.uses_cufile(),
            format!(
                "path {} registers no buffer with cuFile, so there is none to skip; leave it out",
                s.path.name
            ),
        )
    })
    .prints(WHERE + 10, |p| p.register_buffer.map(|register| switch(!register)))
    .tried(["1", "0"]),
    key(
        "batch",
        Native,
        field!(batch, value::at_least_one_u32),
        "cuFile's batch paths: I/Os per batch (gdsio's `-B`), as `gather_batch`",
    )
    .not_of(FEED | REPLAY)
    .tried(["2", "3"]),
    key("rdma_url", Native, text!(rdma_url), "gdsio's `-P`: always refused")
        .tried(["sockfs://a", "sockfs://b"]),
    key(
        "mix_percent",
        Native,
        field!(mix_percent, value::percent),
        "cuFile's batch paths: percentage of reads (gdsio's `-M`)",
    )
    .not_of(FEED | REPLAY)
    .tried(["30", "70"]),
];
