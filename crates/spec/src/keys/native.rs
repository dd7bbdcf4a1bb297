//! gpuio's other keys, and those with the same spelling in several tools.

use gpuio_record::{Arrivals, VerifyMode};

use super::Dialect::{All, Native};
use super::Key;
use super::set::{self, key};
use crate::value;

pub(super) const KEYS: &[Key] = &[
    key("name", All, set::NAME, "name of the job; in `[global]`, of the run").tried(["x", "y"]),
    key(
        "do_verify",
        All,
        switch!(verify, |on| if on { VerifyMode::Pass } else { VerifyMode::Off }),
        "verify the data in a separate pass",
    )
    .tried(["1", "0"]),
    key(
        "cache_alike",
        Native,
        switch!(cache_alike),
        "every run finds the page cache in the same state: `pre_read` or `invalidate`, whichever \
         fits it",
    )
    .tried(["1", "0"]),
    key(
        "verify_time",
        Native,
        field!(verify_ns, value::some_time),
        "longest time for the verification after the run; a random sample of what fits into it is \
         checked, and the report says how much that was",
    )
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
        "shared",
        Native,
        switch!(shared_files),
        "all threads use the same files, thread i from `offset + i * size`",
    )
    .or(&["shared_files"])
    .tried(["1", "0"]),
    key(
        "gather_scatter",
        Native,
        switch!(gather_scatter),
        "path `gather`: blocks get separate, non-adjacent locations in GPU memory, as random ones \
         do",
    )
    .tried(["1", "0"]),
    key(
        "via_peer",
        Native,
        field!(via_peer, value::via_peer),
        "paths `routed` and `fan-out`: `peer` for direct copies between GPUs only, or `any` route \
         of the driver",
    )
    .tried(["peer", "any"]),
    key(
        "skip_bufregister",
        Native,
        switch!(skip_bufregister),
        "paths of cuFile: do not register GPU memory with it (gdsio's `-b`)",
    )
    .tried(["1", "0"]),
    key(
        "batch",
        Native,
        field!(batch, value::at_least_one_u32),
        "cuFile's batch paths: I/Os per batch (gdsio's `-B`), as `gather_batch`",
    )
    .tried(["2", "3"]),
    key("rdma_url", Native, text!(rdma_url), "gdsio's `-P`: always refused")
        .tried(["sockfs://a", "sockfs://b"]),
    key(
        "mix_percent",
        Native,
        field!(mix_percent, value::percent),
        "cuFile's batch paths: percentage of reads (gdsio's `-M`)",
    )
    .tried(["30", "70"]),
];
