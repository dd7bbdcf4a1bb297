//! CUFILE CONFIGURATION: the settings in force, as far as the configuration shows.
//!
//! Sources: lines and their order, gdscheck 1.13 and 1.16 as printed by users; defaults, NVIDIA's
//! GPUDirect Storage parameter tables and what the getters of libraries 1.15 and 1.20 return
//! without a configuration. Where these differ, a setting that is not configured is unknown.

use gpuio_record::facts::{Fact, GdsLine};

use super::{Config, Software};

enum BuiltIn {
    /// All sources that have the setting agree.
    Same(&'static str),
    /// The sources differ: what each has.
    Differs(&'static str),
}
use BuiltIn::{Differs, Same};

/// A line: gdscheck's name, the configuration's key where that has another, what is built in.
struct SettingEntry(&'static str, Option<&'static str>, BuiltIn);

/// The one setting that gdscheck prints as 0 or 1 in all layouts.
const ROUTING: &str = "properties.rdma_dynamic_routing";

const SETTINGS: &[SettingEntry] = &[
    SettingEntry("properties.use_pci_p2pdma", None, Same("false")),
    SettingEntry("properties.use_compat_mode", Some("properties.allow_compat_mode"), Same("true")),
    SettingEntry("properties.force_compat_mode", None, Same("false")),
    SettingEntry("properties.gds_rdma_write_support", None, Same("true")),
    SettingEntry("properties.use_poll_mode", None, Same("false")),
    SettingEntry("properties.poll_mode_max_size_kb", None, Same("4")),
    SettingEntry("properties.max_batch_io_size", Some("properties.io_batchsize"), Same("128")),
    SettingEntry("properties.max_batch_io_timeout_msecs", None, Same("5")),
    SettingEntry(
        "properties.max_direct_io_size_kb",
        None,
        Differs("1024 in release 1.15, 16384 in 1.20"),
    ),
    SettingEntry("properties.max_device_cache_size_kb", None, Same("131072")),
    SettingEntry("properties.per_buffer_cache_size_kb", None, Same("1024")),
    SettingEntry(
        "properties.max_device_pinned_mem_size_kb",
        None,
        Differs("18014398509481980 in release 1.15, 4294967292 in 1.20"),
    ),
    SettingEntry("properties.posix_pool_slab_size_kb", None, Same("4 1024 16384")),
    SettingEntry(
        "properties.posix_pool_slab_count",
        None,
        Differs("128 64 64 in release 1.15, and documented as 128 64 32"),
    ),
    SettingEntry("properties.rdma_peer_affinity_policy", None, Same("RoundRobin")),
    SettingEntry(ROUTING, None, Same("false")),
    SettingEntry("fs.generic.posix_unaligned_writes", None, Same("false")),
    SettingEntry("fs.lustre.posix_gds_min_kb", None, Same("0")),
    SettingEntry("fs.beegfs.posix_gds_min_kb", None, Same("0")),
    SettingEntry("fs.scatefs.posix_gds_min_kb", None, Same("0")),
    SettingEntry("fs.weka.rdma_write_support", None, Same("false")),
    SettingEntry("fs.gpfs.gds_write_support", None, Same("false")),
    SettingEntry("fs.gpfs.gds_async_support", None, Same("true")),
    SettingEntry("profile.nvtx", None, Same("false")),
    SettingEntry("profile.cufile_stats", None, Same("0")),
    SettingEntry("miscellaneous.api_check_aggressive", None, Same("false")),
    SettingEntry("execution.max_io_threads", None, Differs("0 in release 1.15, 8 in 1.20")),
    SettingEntry("execution.max_io_queue_depth", None, Same("128")),
    SettingEntry("execution.parallel_io", None, Differs("false in release 1.15, true in 1.20")),
    SettingEntry("execution.min_io_threshold_size_kb", None, Same("1024")),
    SettingEntry(
        "execution.max_request_parallelism",
        None,
        Differs("0 in release 1.15, 4 in 1.20"),
    ),
    SettingEntry("properties.force_odirect_mode", None, Same("false")),
    SettingEntry("properties.prefer_iouring", None, Same("false")),
];

/// gdscheck's name for a key of the configuration.
pub(super) fn printed_name(key: &str) -> &str {
    let row = SETTINGS.iter().find(|row| row.1 == Some(key));
    row.map_or(key, |row| row.0)
}

/// Environment variables that stand above the configuration, by gdscheck's name of the setting.
const VARIABLES: [(&str, &str); 6] = [
    ("properties.use_pci_p2pdma", "CUFILE_USE_PCIP2PDMA"),
    ("properties.use_compat_mode", "CUFILE_ALLOW_COMPAT_MODE"),
    ("properties.force_compat_mode", "CUFILE_FORCE_COMPAT_MODE"),
    ("properties.max_device_cache_size_kb", "CUFILE_MAX_DEVICE_CACHE_SIZE"),
    ("properties.per_buffer_cache_size_kb", "CUFILE_PER_BUFFER_CACHE_SIZE"),
    ("profile.cufile_stats", "CUFILE_STATS_LEVEL"),
];

pub(super) fn lines(software: &Software) -> Vec<GdsLine> {
    let value = |row: &SettingEntry| match &software.config {
        Fact::Unknown(why) => Fact::unknown(why.clone()),
        Fact::Known(config) => match over(row, software).unwrap_or_else(|| configured(row, config))
        {
            Fact::Known(word) if row.0 == ROUTING => Fact::Known(digit(word)),
            value => value,
        },
    };
    SETTINGS.iter().map(|row| GdsLine { name: row.0.to_owned(), value: value(row) }).collect()
}

fn digit(word: String) -> String {
    match word.as_str() {
        "true" => "1".to_owned(),
        "false" => "0".to_owned(),
        _ => word,
    }
}

/// The value from a variable of the environment, where one is set.
fn over(row: &SettingEntry, software: &Software) -> Option<Fact<String>> {
    let (_, variable) = VARIABLES.iter().find(|(name, _)| *name == row.0)?;
    let set = software.environment.get(*variable)?;
    // Gone in 1.20 (its library no longer has the name), and there in 1.15.
    if *variable == "CUFILE_ALLOW_COMPAT_MODE" {
        return Some(Fact::unknown(format!(
            "{variable} is set, which 1.15 heeds and 1.20 does not"
        )));
    }
    Some(match set.to_ascii_lowercase().as_str() {
        "1" | "true" if matches!(row.2, Same("false")) => Fact::Known("true".to_owned()),
        "0" | "false" if matches!(row.2, Same("false")) => Fact::Known("false".to_owned()),
        level @ ("0" | "1" | "2" | "3") if *variable == "CUFILE_STATS_LEVEL" => {
            Fact::Known(level.to_owned())
        }
        _ => Fact::unknown(format!("{variable} is set and goes before")),
    })
}

/// The configured value, or the one that is built in.
fn configured(row: &SettingEntry, config: &Config) -> Fact<String> {
    let key = row.1.unwrap_or(row.0);
    if let Some(json) = config.keys.get(key) {
        return valid(key, json, config);
    }
    // Documented in both groups.
    let profile = (row.0 == "properties.max_batch_io_size").then_some("profile.io_batchsize");
    if let Some((key, json)) = profile.and_then(|key| Some((key, config.keys.get(key)?))) {
        return valid(key, json, config);
    }
    let file = config.file.as_deref().unwrap_or("/etc/cufile.json, which is absent");
    match row.2 {
        Same(value) => Fact::Known(value.to_owned()),
        Differs(words) => Fact::unknown(format!("not in {file}; built in is {words}")),
    }
}

/// A value that the key takes; for another value, it is not known what cuFile uses.
pub(super) fn valid(key: &str, json: &str, config: &Config) -> Fact<String> {
    let value = serde_json::from_str::<serde_json::Value>(json).unwrap_or_default();
    match gpuio_base::cufilejson::refused(key, &value) {
        None => Fact::Known(plain(json)),
        Some(words) => {
            let file = config.file.as_deref().unwrap_or("the configuration");
            Fact::unknown(format!("invalid in {file}, {words}"))
        }
    }
}

/// A JSON value as gdscheck prints it: lists with blanks, text without quotes.
fn plain(json: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(json) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(serde_json::Value::Array(all)) => {
            let words: Vec<String> = all.iter().map(|one| plain(&one.to_string())).collect();
            words.join(" ")
        }
        _ => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn software(keys: &[(&str, &str)], variables: &[(&str, &str)]) -> Software {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let config = Config { file: Some("/etc/cufile.json".to_owned()), keys: map(keys) };
        Software { config: Fact::Known(config), environment: map(variables), ..Software::default() }
    }

    fn value(software: &Software, name: &str) -> Fact<String> {
        lines(software).into_iter().find(|line| line.name == name).unwrap().value
    }

    fn known(text: &str) -> Fact<String> {
        Fact::Known(text.to_owned())
    }

    #[test]
    fn the_configuration_goes_before_what_is_built_in_and_the_environment_before_both() {
        let keys = [
            ("properties.allow_compat_mode", "false"),
            ("properties.posix_pool_slab_count", "[1,2]"),
            ("properties.rdma_peer_affinity_policy", "\"Randomized\""),
            ("profile.io_batchsize", "64"),
        ];
        let plain = software(&keys, &[]);
        assert_eq!(value(&plain, "properties.use_compat_mode"), known("false"));
        assert_eq!(value(&plain, "properties.posix_pool_slab_count"), known("1 2"));
        assert_eq!(value(&plain, "properties.rdma_peer_affinity_policy"), known("Randomized"));
        assert_eq!(value(&plain, "properties.max_batch_io_size"), known("64"));
        assert_eq!(value(&plain, "properties.use_poll_mode"), known("false"));
        let set = [("CUFILE_FORCE_COMPAT_MODE", "TRUE"), ("CUFILE_STATS_LEVEL", "3")];
        let set = software(&keys, &set);
        assert_eq!(value(&set, "properties.force_compat_mode"), known("true"));
        assert_eq!(value(&set, "profile.cufile_stats"), known("3"));
        let odd = software(&keys, &[("CUFILE_ALLOW_COMPAT_MODE", "1")]);
        assert!(value(&odd, "properties.use_compat_mode").known().is_none());
    }

    #[test]
    fn a_value_that_its_key_does_not_take_is_no_setting_in_force() {
        let keys = [
            ("properties.io_batchsize", "100000"),
            ("properties.use_poll_mode", "\"yes\""),
            ("profile.cufile_stats", "9"),
            ("execution.max_io_queue_depth", "64"),
        ];
        let odd = software(&keys, &[]);
        for name in
            ["properties.max_batch_io_size", "properties.use_poll_mode", "profile.cufile_stats"]
        {
            let value = value(&odd, name);
            let why = value.why().unwrap_or_else(|| panic!("{name}: {value:?}"));
            assert!(why.starts_with("invalid in /etc/cufile.json, "), "{why}");
        }
        assert_eq!(value(&odd, "execution.max_io_queue_depth"), known("64"));
    }

    #[test]
    fn defaults_that_differ_between_releases_are_unknown() {
        let why = value(&software(&[], &[]), "execution.parallel_io");
        assert!(why.why().unwrap().contains("false in release 1.15, true in 1.20"), "{why:?}");
        let unread = Software { config: Fact::unknown("no"), ..Software::default() };
        assert_eq!(value(&unread, "profile.nvtx"), Fact::unknown("no"));
    }
}
