//! Settings that contradict each other. Those that depend on the machine are rules of `gpuio
//! check`.

use crate::cufilejson::fault::{EntryFault, FaultKind};
use crate::cufilejson::{Config, find};

/// Each checks one combination.
const ALL: [fn(&Config) -> Option<EntryFault>; 9] = [
    slabs_and_sizes,
    slabs_of_two_lengths,
    posix_slabs_of_two_lengths,
    batch_without_buffers,
    poll_large,
    poll_without_mode,
    no_route,
    route_without_switch,
    forced_and_forbidden,
];

pub(crate) fn all(config: &Config) -> Vec<EntryFault> {
    ALL.iter().filter_map(|look| look(config)).collect()
}

fn at(config: &Config, path: &str, message: String, fix: &str) -> Option<EntryFault> {
    let entry = config.get(path)?;
    Some(EntryFault::at(entry, FaultKind::Combination, message, fix.to_owned()))
}

/// A key's value, or its default.
fn number(config: &Config, path: &str) -> Option<u64> {
    let default = || find(path)?.default?.parse().ok();
    config.number(path).or_else(default)
}

const SLABS: &str = "properties.gpu_bounce_buffer_slab_config";

fn slabs_and_sizes(config: &Config) -> Option<EntryFault> {
    let uniform = [
        "properties.max_direct_io_size_kb",
        "properties.max_device_cache_size_kb",
        "properties.per_buffer_cache_size_kb",
    ];
    config.get(&format!("{SLABS}.slab_size_kb"))?;
    let both = uniform.into_iter().find(|path| config.get(path).is_some())?;
    let message = format!("is set together with {SLABS}, which replaces it");
    at(config, both, message, "remove one of them: they must not be set together")
}

fn lengths(config: &Config, sizes: &str, counts: &str) -> Option<EntryFault> {
    let length = |path: &str| Some(config.get(path)?.value.as_array()?.len());
    let (one, other) = (length(sizes)?, length(counts)?);
    if one == other {
        return None;
    }
    let message = format!("has {other} counts for {one} sizes");
    at(config, counts, message, "give each size its count")
}

fn slabs_of_two_lengths(config: &Config) -> Option<EntryFault> {
    lengths(config, &format!("{SLABS}.slab_size_kb"), &format!("{SLABS}.slab_count"))
}

fn posix_slabs_of_two_lengths(config: &Config) -> Option<EntryFault> {
    let (sizes, counts) =
        ("properties.posix_pool_slab_size_kb", "properties.posix_pool_slab_count");
    lengths(config, sizes, counts)
}

/// Best Practices Guide, cuFile Configuration Settings: the cache divided by the buffer is the
/// number of buffers, and a batch needs one for each of its I/Os.
fn batch_without_buffers(config: &Config) -> Option<EntryFault> {
    let cache = number(config, "properties.max_device_cache_size_kb")?;
    let buffer = number(config, "properties.per_buffer_cache_size_kb")?;
    let batch = number(config, "properties.io_batchsize")?;
    let buffers = cache.checked_div(buffer)?;
    if buffers >= batch {
        return None;
    }
    let set = [
        "properties.per_buffer_cache_size_kb",
        "properties.max_device_cache_size_kb",
        "properties.io_batchsize",
    ];
    let named = set.into_iter().find(|path| config.get(path).is_some())?;
    let message = format!(
        "leaves {buffers} bounce buffers ({cache} KiB of {buffer} KiB each) for batches of {batch}"
    );
    at(
        config,
        named,
        message,
        "enlarge max_device_cache_size_kb, or lessen per_buffer_cache_size_kb or io_batchsize",
    )
}

/// Polling keeps a processor busy for as long as the I/O takes; NVIDIA's own limit is 4 KiB.
fn poll_large(config: &Config) -> Option<EntryFault> {
    let most = number(config, "properties.poll_mode_max_size_kb")?;
    if config.switch("properties.use_poll_mode") != Some(true) || most <= 64 {
        return None;
    }
    let message = format!("lets a thread spin through I/Os of up to {most} KiB");
    at(
        config,
        "properties.poll_mode_max_size_kb",
        message,
        "4 to 16 KiB: polling gains microseconds, which large I/Os don't notice",
    )
}

fn poll_without_mode(config: &Config) -> Option<EntryFault> {
    let size = config.number("properties.poll_mode_max_size_kb")?;
    if config.switch("properties.use_poll_mode") == Some(true) || size == 4 {
        return None;
    }
    let message = "has no effect while properties.use_poll_mode is off".to_owned();
    at(
        config,
        "properties.poll_mode_max_size_kb",
        message,
        "switch properties.use_poll_mode on, or take it out",
    )
}

/// Troubleshooting Guide, Dynamic Routing: it infers the cards from the addresses of a mount.
fn no_route(config: &Config) -> Option<EntryFault> {
    if config.switch("properties.rdma_dynamic_routing") != Some(true) {
        return None;
    }
    let has_addresses = config.entries.iter().any(|entry| {
        entry.path.ends_with("rdma_dev_addr_list") && !config.texts(&entry.path).is_empty()
            || entry.path.ends_with("mount_table")
                && entry.value.as_object().is_some_and(|mounts| !mounts.is_empty())
    });
    let order = config.get("properties.rdma_dynamic_routing_order");
    let is_empty =
        |entry: &crate::cufilejson::Entry| entry.value.as_array().is_some_and(Vec::is_empty);
    let (message, fix) = if order.is_some_and(is_empty) {
        (
            "is on, and its order names no policy",
            "name policies in properties.rdma_dynamic_routing_order, or take that key out",
        )
    } else if !has_addresses {
        (
            "is on, and no address of a card is named, from which it would infer the cards",
            "fill properties.rdma_dev_addr_list, or the mount_table of the file system",
        )
    } else {
        return None;
    };
    at(config, "properties.rdma_dynamic_routing", message.to_owned(), fix)
}

/// Configuration Guide: the switch of one kind of storage is needed as well as the global one.
fn route_without_switch(config: &Config) -> Option<EntryFault> {
    let global = config.switch("properties.use_pci_p2pdma") == Some(true);
    let route = config.entries.iter().find(|entry| {
        let one = entry.path.starts_with("block.") || entry.path.starts_with("fs.");
        one && entry.path.ends_with(".use_pci_p2pdma") && entry.value.as_bool() == Some(true)
    });
    match (global, route) {
        (false, Some(entry)) => {
            let message = "is on, and properties.use_pci_p2pdma is not".to_owned();
            at(config, &entry.path, message, "switch properties.use_pci_p2pdma on too, or this off")
        }
        (true, None) => {
            let message = "is on, and so is it for no kind of storage".to_owned();
            let fix = "switch block.nvme.use_pci_p2pdma on too (or that of your storage)";
            at(config, "properties.use_pci_p2pdma", message, fix)
        }
        _ => None,
    }
}

fn forced_and_forbidden(config: &Config) -> Option<EntryFault> {
    let forced = config.switch("properties.force_compat_mode") == Some(true);
    let forbidden = config.switch("properties.allow_compat_mode") == Some(false);
    let message = "is on, and properties.allow_compat_mode is off".to_owned();
    let fix = "switch force_compat_mode off, or allow_compat_mode on";
    (forced && forbidden).then(|| at(config, "properties.force_compat_mode", message, fix))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cufilejson::read;

    fn of(keys: &str) -> Vec<String> {
        let config = read(&format!("{{ {keys} }}")).unwrap();
        all(&config).into_iter().map(|fault| fault.path).collect()
    }

    #[test]
    fn each_combination_is_found_and_its_good_twin_is_not() {
        let cases = [
            (
                r#""properties": { "gpu_bounce_buffer_slab_config":
                    { "slab_size_kb": [1024], "slab_count": [1] },
                    "max_direct_io_size_kb": 1024 }"#,
                r#""properties": { "gpu_bounce_buffer_slab_config":
                    { "slab_size_kb": [1024], "slab_count": [1] } }"#,
            ),
            (
                r#""properties": { "gpu_bounce_buffer_slab_config":
                    { "slab_size_kb": [1024], "slab_count": [1, 2] } }"#,
                "",
            ),
            (
                r#""properties": { "posix_pool_slab_size_kb": [4], "posix_pool_slab_count": [] }"#,
                r#""properties": { "posix_pool_slab_size_kb": [4], "posix_pool_slab_count": [1] }"#,
            ),
            (
                r#""properties": { "per_buffer_cache_size_kb": 16384 }"#,
                r#""properties": { "per_buffer_cache_size_kb": 16384, "io_batchsize": 8 }"#,
            ),
            (
                r#""properties": { "use_poll_mode": true, "poll_mode_max_size_kb": 1024 }"#,
                r#""properties": { "use_poll_mode": true, "poll_mode_max_size_kb": 16 }"#,
            ),
            (
                r#""properties": { "poll_mode_max_size_kb": 16 }"#,
                r#""properties": { "poll_mode_max_size_kb": 4 }"#,
            ),
            (
                r#""properties": { "rdma_dynamic_routing": true }"#,
                r#""properties": { "rdma_dynamic_routing": true,
                    "rdma_dev_addr_list": ["10.0.0.1"] }"#,
            ),
            (
                r#""properties": { "rdma_dynamic_routing": true, "rdma_dynamic_routing_order": [],
                    "rdma_dev_addr_list": ["10.0.0.1"] }"#,
                "",
            ),
            (
                r#""block": { "nvme": { "use_pci_p2pdma": true } }"#,
                r#""block": { "nvme": { "use_pci_p2pdma": true } },
                    "properties": { "use_pci_p2pdma": true }"#,
            ),
            (r#""properties": { "use_pci_p2pdma": true }"#, ""),
            (
                r#""properties": { "force_compat_mode": true, "allow_compat_mode": false }"#,
                r#""properties": { "force_compat_mode": true }"#,
            ),
        ];
        for (bad, good) in cases {
            assert_eq!(of(bad).len(), 1, "{bad}");
            assert_eq!(of(good), Vec::<String>::new(), "{good}");
        }
    }
}
