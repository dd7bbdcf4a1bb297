//! Which parameter of the interface is which key of `cufile.json` and which environment variable.
//! Ranges and defaults come from the key table (`gpuio_base::cufilejson::KEYS`), so that the two
//! can't diverge.

use gpuio_base::cufilejson::{ValueType, find};

/// A parameter: its key, and the variable that precedes it, if any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) key: &'static str,
    pub(crate) variable: Option<&'static str>,
}

const fn row(key: &'static str) -> Parameter {
    Parameter { key, variable: None }
}

const fn with(key: &'static str, variable: &'static str) -> Parameter {
    Parameter { key, variable: Some(variable) }
}

/// `CUFileSizeTConfigParameter_t`, in order.
pub(crate) static SIZES: [Parameter; 12] = [
    with("profile.cufile_stats", "CUFILE_STATS_LEVEL"),
    row("execution.max_io_queue_depth"),
    row("execution.max_io_threads"),
    row("execution.min_io_threshold_size_kb"),
    row("execution.max_request_parallelism"),
    row("properties.max_direct_io_size_kb"),
    with("properties.max_device_cache_size_kb", "CUFILE_MAX_DEVICE_CACHE_SIZE"),
    with("properties.per_buffer_cache_size_kb", "CUFILE_PER_BUFFER_CACHE_SIZE"),
    row("properties.max_device_pinned_mem_size_kb"),
    row("properties.io_batchsize"),
    row("properties.poll_mode_max_size_kb"),
    row("properties.max_batch_io_timeout_msecs"),
];

/// Indexes of [`SIZES`].
pub(crate) const STATS_LEVEL: usize = 0;
pub(crate) const MAX_DIRECT_IO: usize = 5;
pub(crate) const MAX_DEVICE_CACHE: usize = 6;
pub(crate) const PER_BUFFER_CACHE: usize = 7;
pub(crate) const MAX_PINNED: usize = 8;
pub(crate) const BATCH: usize = 9;
pub(crate) const POLL_THRESHOLD: usize = 10;
pub(crate) const BATCH_TIMEOUT: usize = 11;

/// `CUFileBoolConfigParameter_t`, in order; the last two are of release 1.20.
pub(crate) static SWITCHES: [Parameter; 14] = [
    row("properties.use_poll_mode"),
    with("properties.allow_compat_mode", "CUFILE_ALLOW_COMPAT_MODE"),
    with("properties.force_compat_mode", "CUFILE_FORCE_COMPAT_MODE"),
    row("miscellaneous.api_check_aggressive"),
    row("execution.parallel_io"),
    with("profile.nvtx", "CUFILE_NVTX"),
    row("properties.allow_system_memory"),
    with("properties.use_pci_p2pdma", "CUFILE_USE_PCIP2PDMA"),
    row("properties.prefer_iouring"),
    row("properties.force_odirect_mode"),
    with("miscellaneous.skip_topology_detection", "CUFILE_SKIP_TOPOLOGY_DETECTION"),
    with("miscellaneous.stream_memops_bypass", "CUFILE_STREAM_MEMOPS_BYPASS"),
    row("properties.vanilla_posix_io_mode"),
    row("properties.gds_fallback_io"),
];

/// Indexes of [`SWITCHES`].
pub(crate) const POLL_MODE: usize = 0;
pub(crate) const ALLOW_COMPAT: usize = 1;
pub(crate) const MEMOPS_BYPASS: usize = 11;

/// `CUFileStringConfigParameter_t`, in order; the last is of release 1.20. The second has no key in
/// the file.
pub(crate) static TEXTS: [Parameter; 4] = [
    with("logging.level", "CUFILE_LOGGING_LEVEL"),
    with("", "CUFILE_LOGFILE_PATH"),
    row("logging.dir"),
    row("properties.rdma_transport_type"),
];

/// Indexes of [`TEXTS`].
pub(crate) const LOG_LEVEL: usize = 0;
pub(crate) const LOG_FILE: usize = 1;
pub(crate) const LOG_DIRECTORY: usize = 2;

/// The range of a size, inclusive.
pub(crate) fn range(at: usize) -> (usize, usize) {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    match find(SIZES[at].key).map(|key| key.value_type) {
        Some(ValueType::Kib(least, most)) => (number(least), number(most)),
        Some(ValueType::Number(least, most)) => {
            (number(least.unsigned_abs()), number(most.unsigned_abs()))
        }
        _ => (0, usize::MAX),
    }
}

/// The default of a key, from its table.
pub(crate) fn default(key: &str) -> Option<serde_json::Value> {
    serde_json::from_str(find(key)?.default?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_a_known_key_with_a_default_of_its_type() {
        for (at, row) in SIZES.iter().enumerate() {
            let value = default(row.key).and_then(|value| value.as_u64()).expect(row.key);
            let (least, most) = range(at);
            let value = usize::try_from(value).unwrap();
            assert!((least..=most).contains(&value), "{}: {value}", row.key);
        }
        for row in &SWITCHES {
            assert!(default(row.key).is_some_and(|value| value.is_boolean()), "{}", row.key);
        }
        assert!(SWITCHES[ALLOW_COMPAT].key.contains("allow_compat"));
        assert!(TEXTS.iter().all(|row| row.key.is_empty() || find(row.key).is_some()));
        let named = [(STATS_LEVEL, "stats"), (BATCH, "batchsize"), (BATCH_TIMEOUT, "timeout")];
        assert!(named.iter().all(|(at, part)| SIZES[*at].key.contains(part)));
        let named = [(MAX_PINNED, "pinned"), (POLL_THRESHOLD, "poll"), (MAX_DIRECT_IO, "direct")];
        assert!(named.iter().all(|(at, part)| SIZES[*at].key.contains(part)));
        let named = [(MAX_DEVICE_CACHE, "device_cache"), (PER_BUFFER_CACHE, "per_buffer")];
        assert!(named.iter().all(|(at, part)| SIZES[*at].key.contains(part)));
    }
}
