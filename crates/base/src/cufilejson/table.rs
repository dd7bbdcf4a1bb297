//! The keys that cuFile knows.

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// `true` or `false`.
    Switch,
    /// A whole number in this range, inclusive.
    Number(i64, i64),
    /// A size in KiB in this range, inclusive: a multiple of 4 KiB.
    Kib(u64, u64),
    Word(&'static [&'static str]),
    /// A list of these words, each once.
    Words(&'static [&'static str]),
    Text,
    Texts,
    /// A list of IPv4 addresses.
    Addresses,
    /// A list of sizes in KiB, multiples of 4 KiB, ascending.
    Sizes,
    /// A list of numbers from 1.
    Counts,
    /// A 32-bit number in hexadecimal, as text: `"0xffeeddcc"`.
    Hex,
    /// A group of mount points with lists of addresses.
    Mounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The parts joined by dots.
    pub path: &'static str,
    pub value_type: ValueType,
    /// Its default, as JSON; `None` if it is not documented.
    pub default: Option<&'static str>,
    /// The release of GPUDirect Storage that introduced it, if documented.
    pub since: Option<&'static str>,
    /// The key that replaced it.
    pub instead: Option<&'static str>,
}

const fn key(path: &'static str, value_type: ValueType, default: &'static str) -> Key {
    Key { path, value_type, default: Some(default), since: None, instead: None }
}

const fn bare(path: &'static str, value_type: ValueType) -> Key {
    Key { path, value_type, default: None, since: None, instead: None }
}

impl Key {
    const fn since(self, release: &'static str) -> Key {
        Key { since: Some(release), ..self }
    }

    const fn instead(self, other: &'static str) -> Key {
        Key { instead: Some(other), ..self }
    }
}

use ValueType::{
    Addresses, Counts, Hex, Kib, Mounts, Number, Sizes, Switch, Text, Texts, Word, Words,
};

/// The largest 32-bit count of KiB: the limit where none is documented.
const MOST_KIB: u64 = u32::MAX as u64;
const LEVELS: &[&str] = &["NOTICE", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
const POLICIES: &[&str] =
    &["FirstFit", "MaxMinFit", "RoundRobin", "RoundRobinMaxMin", "Randomized"];
const ROUTES: &[&str] = &["GPU_MEM_NVLINKS", "GPU_MEM", "SYS_MEM", "P2P"];
const SLABS: &str = "properties.gpu_bounce_buffer_slab_config";

/// Every key, in the order of the file that NVIDIA installs.
pub static KEYS: &[Key] = &[
    bare("logging.dir", Text),
    key("logging.level", Word(LEVELS), "\"ERROR\""),
    key("logging.max_file_size_mb", Number(-1, i64::MAX), "32"),
    key("profile.nvtx", Switch, "false"),
    key("profile.cufile_stats", Number(0, 3), "0"),
    key("profile.io_batchsize", Number(1, 256), "128"),
    key("execution.max_io_queue_depth", Number(1, 256), "128"),
    key("execution.max_io_threads", Number(0, 128), "4"),
    key("execution.parallel_io", Switch, "true"),
    key("execution.min_io_threshold_size_kb", Kib(4, MOST_KIB), "8192"),
    key("execution.max_request_parallelism", Number(0, 8), "4"),
    key(
        "properties.gpu_bounce_buffer_slab_config.slab_size_kb",
        Sizes,
        "[1024, 8192, 16384, 65536]",
    )
    .since("1.17"),
    key("properties.gpu_bounce_buffer_slab_config.slab_count", Counts, "[128, 8, 4, 2]")
        .since("1.17"),
    bare("properties.gpu_bounce_buffer_mode", Text),
    key("properties.max_direct_io_size_kb", Kib(64, 16_384), "16384").instead(SLABS),
    key("properties.max_device_cache_size_kb", Kib(4, MOST_KIB), "131072").instead(SLABS),
    key("properties.per_buffer_cache_size_kb", Kib(64, 16_384), "1024").instead(SLABS),
    key("properties.max_device_pinned_mem_size_kb", Kib(4, 1 << 54), "33554432"),
    key("properties.posix_pool_slab_size_kb", Sizes, "[4, 1024, 16384]"),
    key("properties.posix_pool_slab_count", Counts, "[128, 64, 64]"),
    key("properties.use_poll_mode", Switch, "false"),
    key("properties.poll_mode_max_size_kb", Kib(4, MOST_KIB), "4"),
    key("properties.allow_compat_mode", Switch, "true"),
    key("properties.force_compat_mode", Switch, "false"),
    key("properties.vanilla_posix_io_mode", Switch, "false"),
    key("properties.gds_fallback_io", Switch, "false"),
    key("properties.use_pci_p2pdma", Switch, "false").since("1.13"),
    key("properties.gds_rdma_write_support", Switch, "true"),
    key("properties.force_odirect_mode", Switch, "false"),
    key("properties.prefer_iouring", Switch, "false"),
    key("properties.allow_system_memory", Switch, "true"),
    key("properties.io_batchsize", Number(1, 256), "128"),
    key("properties.max_batch_io_size", Number(1, 256), "128"),
    key("properties.max_batch_io_timeout_msecs", Number(1, 1000), "5"),
    key("properties.io_priority", Word(&["default", "low", "med", "high"]), "\"default\""),
    key("properties.compat_odirect_unaligned_read_split", Switch, "false"),
    key("properties.compat_odirect_unaligned_read_split_min_size_kb", Kib(4, MOST_KIB), "128"),
    key("properties.rdma_dev_addr_list", Addresses, "[]"),
    key("properties.rdma_load_balancing_policy", Word(POLICIES), "\"RoundRobin\""),
    key("properties.rdma_peer_affinity_policy", Word(POLICIES), "\"RoundRobin\"")
        .instead("properties.rdma_load_balancing_policy"),
    key("properties.rdma_topN_ranks", Number(1, i64::MAX), "1"),
    key("properties.rdma_dynamic_routing", Switch, "false"),
    key("properties.rdma_dynamic_routing_order", Words(ROUTES), "all four, in this order"),
    key("properties.rdma_peer_type", Word(&["peer_mem", "dmabuf"]), "\"peer_mem\""),
    key("properties.rdma_transport_type", Word(&["DC_V1", "EXT_RC_V1"]), "\"DC_V1\""),
    bare("properties.rdma_dc_key", Hex),
    bare("properties.rdma_access_mask", Hex),
    bare("properties.rdma_service_level", Number(0, 15)),
    key("properties.allow_rdma_token_reset", Switch, "false"),
    bare("properties.rdma_multipath_enabled", Switch),
    bare("properties.rdma_max_backup_devices", Number(0, i64::MAX)),
    bare("properties.rdma_io_retry_count", Number(0, i64::MAX)),
    bare("properties.rdma_io_retry_delay_ms", Number(0, i64::MAX)),
    bare("properties.rdma_failback_enabled", Switch),
    bare("properties.rdma_failback_delay_ms", Number(0, i64::MAX)),
    bare("properties.rdma_health_check_interval_ms", Number(0, i64::MAX)),
    bare("properties.rdma_async_event_monitoring", Switch),
    bare("properties.rdma_unhealthy_threshold", Number(0, i64::MAX)),
    key("fs.generic.posix_unaligned_writes", Switch, "false"),
    key("fs.lustre.posix_gds_min_kb", Kib(0, MOST_KIB), "0"),
    key("fs.lustre.rdma_dev_addr_list", Addresses, "[]"),
    key("fs.lustre.mount_table", Mounts, "{}"),
    key("fs.lustre.use_pci_p2pdma", Switch, "false"),
    key("fs.beegfs.posix_gds_min_kb", Kib(0, MOST_KIB), "0"),
    key("fs.beegfs.rdma_dev_addr_list", Addresses, "[]"),
    key("fs.beegfs.mount_table", Mounts, "{}"),
    key("fs.beegfs.use_pci_p2pdma", Switch, "false"),
    key("fs.scatefs.posix_gds_min_kb", Kib(0, MOST_KIB), "0"),
    key("fs.scatefs.use_pci_p2pdma", Switch, "false"),
    key("fs.nfs.rdma_dev_addr_list", Addresses, "[]"),
    key("fs.nfs.mount_table", Mounts, "{}"),
    key("fs.nfs.use_pci_p2pdma", Switch, "false"),
    key("fs.weka.rdma_write_support", Switch, "false"),
    key("fs.weka.rdma_dev_addr_list", Addresses, "[]"),
    key("fs.weka.mount_table", Mounts, "{}"),
    key("fs.gpfs.gds_write_support", Switch, "false"),
    key("fs.gpfs.gds_async_support", Switch, "true"),
    key("fs.gpfs.rdma_dev_addr_list", Addresses, "[]"),
    key("fs.gpfs.mount_table", Mounts, "{}"),
    key("fs.gpfs.use_pci_p2pdma", Switch, "false"),
    key("fs.virtiofs.use_pci_p2pdma", Switch, "false"),
    key("fs.panfs.use_pci_p2pdma", Switch, "false"),
    key("block.nvme.use_pci_p2pdma", Switch, "false"),
    key("block.nvmeof.use_pci_p2pdma", Switch, "false"),
    key("block.raid.use_pci_p2pdma", Switch, "false"),
    key("block.raid1.use_pci_p2pdma", Switch, "false"),
    key("block.raid10.use_pci_p2pdma", Switch, "false"),
    key("denylist.drivers", Texts, "[]"),
    key("denylist.devices", Texts, "[]"),
    key("denylist.mounts", Texts, "[]"),
    key("denylist.filesystems", Texts, "[]"),
    key("denylist.fsids", Texts, "[]"),
    key("blacklist.drivers", Texts, "[]").instead("denylist.drivers"),
    key("blacklist.devices", Texts, "[]").instead("denylist.devices"),
    key("blacklist.mounts", Texts, "[]").instead("denylist.mounts"),
    key("blacklist.filesystems", Texts, "[]").instead("denylist.filesystems"),
    key("miscellaneous.api_check_aggressive", Switch, "false"),
    bare("miscellaneous.rcu_library_used", Switch),
    key("miscellaneous.stream_memops_bypass", Switch, "false"),
    key("miscellaneous.skip_topology_detection", Switch, "false"),
    key("miscellaneous.enable_static_routing", Switch, "false").since("1.17"),
    key("miscellaneous.static_routing_filepath", Text, "\"/etc/topology.json\"").since("1.17"),
    bare("miscellaneous.enable_static_config", Switch),
    bare("miscellaneous.static_config_filepath", Text),
    key("miscellaneous.rdma_token_reset_timeout_secs", Number(0, i64::MAX), "30"),
    key("sparse.min_p2pdma_threshold_kb", Kib(4, MOST_KIB), "8"),
    key("sparse.p2p_compat_enable", Switch, "true"),
    bare("sparse.enable_static_routing", Switch).instead("miscellaneous.enable_static_routing"),
    bare("sparse.static_routing_filepath", Text).instead("miscellaneous.static_routing_filepath"),
];

pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Every key as a Markdown table, for the reference.
pub fn markdown_table() -> String {
    let row = |key: &Key| {
        let default = key.default.map(|value| format!("`{value}`")).unwrap_or_default();
        let note = match (key.since, key.instead) {
            (Some(release), _) => format!("since {release}"),
            (None, Some(other)) => format!("replaced by `{other}`"),
            (None, None) => String::new(),
        };
        format!("| `{}` | {} | {default} | {note} |\n", key.path, describe(key.value_type))
    };
    let rows: String = KEYS.iter().map(row).collect();
    format!("| Key | Values | Default | Note |\n| --- | --- | --- | --- |\n{rows}")
}

fn describe(value_type: ValueType) -> String {
    let range = |least: String, most: i64| {
        if most > i64::from(u32::MAX / 2) {
            format!("from {least}")
        } else {
            format!("{least} to {most}")
        }
    };
    match value_type {
        Switch => "true or false".to_owned(),
        Number(least, most) => range(least.to_string(), most),
        Kib(least, most) => {
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            format!("{} KiB, multiples of 4", range(least.to_string(), most))
        }
        Word(words) => words.join(", "),
        Words(words) => format!("list of {}", words.join(", ")),
        Text => "text".to_owned(),
        Texts => "list of texts".to_owned(),
        Addresses => "list of IPv4 addresses".to_owned(),
        Sizes => "list of KiB, multiples of 4, ascending".to_owned(),
        Counts => "list of numbers from 1".to_owned(),
        Hex => "32 bits in hexadecimal, as text".to_owned(),
        Mounts => "mount points, each with a list of IPv4 addresses".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_stands_there_once_and_others_are_there_too() {
        let mut paths: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
        paths.sort_unstable();
        assert!(paths.windows(2).all(|two| two[0] != two[1]));
        for key in KEYS {
            let known = |path: &str| KEYS.iter().any(|key| key.path.starts_with(path));
            assert!(key.instead.is_none_or(known), "{key:?}");
        }
    }

    #[test]
    fn defaults_are_what_their_keys_take() {
        for key in KEYS.iter().filter(|key| !matches!(key.value_type, Words(_))) {
            let Some(default) = key.default else { continue };
            let value = serde_json::from_str(default).unwrap();
            assert_eq!(crate::cufilejson::value::wrong(key, &value), None, "{key:?}");
        }
    }
}
