//! The settings in effect. Parameters set by the program precede environment variables, these
//! precede `cufile.json`, and this precedes the defaults.
//!
//! Most keys control parts of NVIDIA's library that this one does not have (nvidia-fs, RDMA, bounce
//! buffers): they are accepted, stored and returned, and change nothing. docs/dropin.md lists those
//! that have an effect.

pub(crate) mod table;

use std::ffi::OsString;
use std::path::PathBuf;

use gpuio_base::cufilejson::{Config as File, DEFAULT_PATH, VARIABLE};
use serde_json::Value;

use crate::code::{CallError, INVALID_VALUE};
use table::{LOG_DIRECTORY, LOG_FILE, LOG_LEVEL, SIZES, SWITCHES, TEXTS, default, range};

/// The classes of a pool: sizes in KiB, and how many buffers of each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Slabs {
    pub(crate) sizes_kib: Vec<usize>,
    pub(crate) counts: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pool {
    /// Host memory of transfers without a direct path.
    Posix = 0,
    /// GPU memory of transfers with a direct path.
    GpuBounce = 1,
}

/// Keys of sizes and counts, by [`Pool`].
const POOLS: [[&str; 2]; 2] = [
    ["properties.posix_pool_slab_size_kb", "properties.posix_pool_slab_count"],
    [
        "properties.gpu_bounce_buffer_slab_config.slab_size_kb",
        "properties.gpu_bounce_buffer_slab_config.slab_count",
    ],
];

/// The program's settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Staged {
    pub(crate) sizes: [Option<usize>; SIZES.len()],
    pub(crate) switches: [Option<bool>; SWITCHES.len()],
    pub(crate) texts: [Option<String>; TEXTS.len()],
    pub(crate) pools: [Option<Slabs>; 2],
}

/// The settings in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) sizes: [usize; SIZES.len()],
    pub(crate) switches: [bool; SWITCHES.len()],
    pub(crate) texts: [String; TEXTS.len()],
    pub(crate) pools: [Slabs; 2],
    /// Whether a log level was configured.
    pub(crate) level_requested: bool,
    /// MiB after which a log file no longer grows; `None` for no limit.
    pub(crate) log_max_mib: Option<u64>,
    /// Invalid values, for the log.
    pub(crate) notes: Vec<String>,
}

pub(crate) struct Sources<'a> {
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Reads a file.
    pub(crate) file: &'a dyn Fn(&PathBuf) -> std::io::Result<String>,
}

impl Config {
    /// Reads all sources. A missing or invalid file leaves the defaults, with a note: DeepSpeed
    /// names a file that does not exist.
    pub(crate) fn read(sources: &Sources<'_>, staged: &Staged) -> Config {
        let mut notes = Vec::new();
        let file = file(sources, &mut notes);
        let mut resolver = Resolver { sources, file: &file, notes: &mut notes };
        let sizes = std::array::from_fn(|at| resolver.size(at, staged.sizes[at]));
        let switches = std::array::from_fn(|at| resolver.switch(at, staged.switches[at]));
        let texts: [String; TEXTS.len()] =
            std::array::from_fn(|at| resolver.text(at, staged.texts[at].as_deref()));
        let pools = [Pool::Posix, Pool::GpuBounce]
            .map(|pool| staged.pools[pool as usize].clone().unwrap_or_else(|| resolver.pool(pool)));
        let level_requested = resolver.given(LOG_LEVEL, staged).is_some();
        let log_max_mib = resolver.log_max_mib();
        Config { sizes, switches, texts, pools, level_requested, log_max_mib, notes }
    }

    /// The log file, if one is configured.
    pub(crate) fn log_path(&self) -> Option<PathBuf> {
        let (file, directory) = (&self.texts[LOG_FILE], &self.texts[LOG_DIRECTORY]);
        if !file.is_empty() {
            return Some(PathBuf::from(file));
        }
        let name = || format!("cufile_{}.log", std::process::id());
        (!directory.is_empty()).then(|| PathBuf::from(directory).join(name()))
    }
}

/// Refuses a size out of range.
pub(crate) fn check_size(at: usize, value: usize) -> Result<(), CallError> {
    let (least, most) = range(at);
    if (least..=most).contains(&value) { Ok(()) } else { Err(INVALID_VALUE.into()) }
}

/// Refuses a text that is invalid for its parameter.
pub(crate) fn check_text(at: usize, value: &str) -> Result<(), CallError> {
    let good = at != LOG_LEVEL || crate::log::Level::of(value).is_some();
    if good { Ok(()) } else { Err(INVALID_VALUE.into()) }
}

fn file(sources: &Sources<'_>, notes: &mut Vec<String>) -> File {
    let named = (sources.variable)(VARIABLE).filter(|path| !path.is_empty());
    let path = PathBuf::from(named.clone().unwrap_or_else(|| DEFAULT_PATH.into()));
    let text = match (sources.file)(&path) {
        Ok(text) => text,
        Err(error) => {
            if let Some(_named) = named {
                notes.push(format!(
                    "{VARIABLE} names {}, which can't be read ({error}). Defaults are used",
                    path.display()
                ));
            }
            return File::default();
        }
    };
    gpuio_base::cufilejson::read(&text).unwrap_or_else(|error| {
        notes.push(format!(
            "{}, line {}, column {}: {}. Defaults are used",
            path.display(),
            error.line,
            error.column,
            error.message
        ));
        File::default()
    })
}

/// Takes each setting from the first source that has it.
struct Resolver<'a> {
    sources: &'a Sources<'a>,
    file: &'a File,
    notes: &'a mut Vec<String>,
}

impl Resolver<'_> {
    fn variable(&self, name: Option<&str>) -> Option<String> {
        let value = (self.sources.variable)(name?)?.into_string().ok()?;
        (!value.is_empty()).then_some(value)
    }

    fn refuse(&mut self, what: &str, value: &str) {
        self.notes.push(format!("{what} can't be {value}. It is ignored"));
    }

    fn size(&mut self, at: usize, staged: Option<usize>) -> usize {
        let row = SIZES[at];
        if let Some(value) = staged {
            return value;
        }
        if let Some(text) = self.variable(row.variable) {
            match text.trim().parse() {
                Ok(value) if check_size(at, value).is_ok() => return value,
                _ => self.refuse(row.variable.unwrap_or_default(), &text),
            }
        }
        // Files may use either name.
        let alias = (at == table::BATCH).then_some("profile.io_batchsize");
        let entry = self.file.get(row.key).or_else(|| self.file.get(alias?)).cloned();
        if let Some(entry) = entry {
            let value = entry.value.as_u64().and_then(|value| usize::try_from(value).ok());
            match value.filter(|value| check_size(at, *value).is_ok()) {
                Some(value) => return value,
                None => self.refuse(&entry.path, &entry.value.to_string()),
            }
        }
        let default_value = default(row.key).and_then(|value| value.as_u64());
        default_value.and_then(|value| usize::try_from(value).ok()).unwrap_or(0)
    }

    fn switch(&mut self, at: usize, staged: Option<bool>) -> bool {
        let row = SWITCHES[at];
        if let Some(value) = staged {
            return value;
        }
        if let Some(text) = self.variable(row.variable) {
            match switch_of(&text) {
                Some(value) => return value,
                None => self.refuse(row.variable.unwrap_or_default(), &text),
            }
        }
        if let Some(entry) = self.file.get(row.key).cloned() {
            match entry.value.as_bool() {
                Some(value) => return value,
                None => self.refuse(&entry.path, &entry.value.to_string()),
            }
        }
        default(row.key).and_then(|value| value.as_bool()).unwrap_or(false)
    }

    /// The configured value of a text.
    fn given(&self, at: usize, staged: &Staged) -> Option<String> {
        let file = || self.file.text(TEXTS[at].key).map(str::to_owned);
        staged.texts[at].clone().or_else(|| self.variable(TEXTS[at].variable)).or_else(file)
    }

    fn text(&mut self, at: usize, staged: Option<&str>) -> String {
        let row = TEXTS[at];
        if let Some(value) = staged {
            return value.to_owned();
        }
        if let Some(value) = self.variable(row.variable) {
            if check_text(at, &value).is_ok() {
                return value;
            }
            self.refuse(row.variable.unwrap_or_default(), &value);
        }
        if let Some(value) = self.file.text(row.key) {
            if check_text(at, value).is_ok() {
                return value.to_owned();
            }
            self.refuse(row.key, value);
        }
        let default_value = default(row.key);
        default_value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }

    fn pool(&mut self, pool: Pool) -> Slabs {
        let [sizes, counts] = POOLS[pool as usize];
        let list = |value: &Value| -> Option<Vec<usize>> {
            let number = |one: &Value| usize::try_from(one.as_u64()?).ok();
            value.as_array()?.iter().map(number).collect()
        };
        let from_file = |key| self.file.get(key).and_then(|entry| list(&entry.value));
        if let (Some(sizes_kib), Some(counts)) = (from_file(sizes), from_file(counts)) {
            let slabs = Slabs { sizes_kib, counts };
            if slabs.check().is_ok() {
                return slabs;
            }
            let list = |numbers: &[usize]| {
                let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
                numbers.join(", ")
            };
            let [sizes_kib, counts] = [&slabs.sizes_kib, &slabs.counts].map(|all| list(all));
            self.refuse(sizes, &format!("{sizes_kib} with counts {counts}"));
        }
        let default_value = |key| default(key).as_ref().and_then(list).unwrap_or_default();
        Slabs { sizes_kib: default_value(sizes), counts: default_value(counts) }
    }

    fn log_max_mib(&mut self) -> Option<u64> {
        let given = self.variable(Some("CUFILE_LOGFILE_MAX_SIZE_MB"));
        let key = "logging.max_file_size_mb";
        let file = || self.file.get(key).and_then(|entry| entry.value.as_i64());
        let default_value = || default(key).and_then(|value| value.as_i64());
        let value =
            given.and_then(|text| text.trim().parse().ok()).or_else(file).or_else(default_value);
        // -1 is for no limit.
        value.and_then(|mib: i64| u64::try_from(mib).ok())
    }
}

impl Slabs {
    /// Refuses lists that are empty or differ in length, and sizes or counts of 0.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        let same = self.sizes_kib.len() == self.counts.len() && !self.counts.is_empty();
        let some = self.sizes_kib.iter().chain(&self.counts).all(|value| *value > 0);
        if same && some { Ok(()) } else { Err(INVALID_VALUE.into()) }
    }
}

/// Variables have switches as numbers or words.
fn switch_of(text: &str) -> Option<bool> {
    let text = text.trim();
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
