//! cuFile's configuration: the user's, with the settings of this run on top, in a file of our own.
//!
//! cuFile reads one JSON file: the one that `CUFILE_ENV_PATH_JSON` names, or `/etc/cufile.json`. It
//! may hold comments, trailing commas and repeated keys (the last one counts). Without a
//! `logging.dir` cuFile writes `cufile.log` into the current directory, so a run of gpuio always
//! names one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gpuio_base::cufilejson::{DEFAULT_PATH, VARIABLE};
use gpuio_guard::objects::environment;
use gpuio_guard::outfile::Private;
use gpuio_host::input;
use serde_json::{Map, Value};

/// Why a configuration can't be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A part of a key names a value, not a group.
    #[error(
        "the setting {key} does not fit the configuration: {part} holds a value there, not a \
             group of keys"
    )]
    Shape {
        key: String,
        /// The part that is no group.
        part: String,
    },
    /// The user's configuration can't be read.
    #[error(
        "cuFile's configuration {path} can't be read: {why}; correct it, or unset \
             CUFILE_ENV_PATH_JSON"
    )]
    Read {
        path: PathBuf,
        /// The kernel's or the parser's message.
        why: String,
    },
    /// Ours can't be written.
    #[error(
        "cuFile's configuration for this run can't be written below {path}: {why}; check \
             TMPDIR"
    )]
    Write {
        /// The directory for temporary files.
        path: PathBuf,
        /// The kernel's error.
        why: std::io::Error,
    },
    /// The environment can't be changed once there are threads: libc's getenv takes no lock.
    #[error("cuFile's configuration can't be set: this process has {threads} threads already")]
    Threads {
        /// How many.
        threads: usize,
    },
}

/// A key of cuFile with its value; the parts of the key are nested groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// As given: `properties.allow_compat_mode`.
    pub key: String,
    pub value: Value,
}

/// The configuration that cuFile would read without gpuio.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Base {
    /// Its file; absent if there is none.
    pub path: Option<PathBuf>,
    pub keys: Map<String, Value>,
}

impl Base {
    /// Reads the file that `CUFILE_ENV_PATH_JSON` named when this process began, else
    /// `/etc/cufile.json` if it exists. The variable's value after [`reserve`] or
    /// [`Environment::apply`] does not count: that file is ours, and may be gone.
    ///
    /// # Errors
    /// The named file does not exist or is invalid.
    pub fn of_this_process() -> Result<Base, ConfigError> {
        let named = match USERS.get() {
            Some(before_us) => before_us.clone(),
            None => environment::variable(VARIABLE),
        };
        match named.filter(|path| !path.is_empty()) {
            Some(path) => Base::read(Path::new(&path)),
            None if Path::new(DEFAULT_PATH).exists() => Base::read(Path::new(DEFAULT_PATH)),
            None => Ok(Base::default()),
        }
    }

    /// Reads one file.
    ///
    /// # Errors
    /// It can't be read, or is not a JSON object (comments and trailing commas are allowed).
    pub fn read(path: &Path) -> Result<Base, ConfigError> {
        let wrong = |why: String| ConfigError::Read { path: path.to_owned(), why };
        let text = input::read_text(path, input::MOST_WRITTEN);
        let text = text.map_err(|error| wrong(error.to_string()))?;
        let keys = gpuio_base::cufilejson::keys(&text).map_err(wrong)?;
        Ok(Base { path: Some(path.to_owned()), keys })
    }

    /// All keys, joined by dots, with their values as JSON.
    pub fn flat(&self) -> BTreeMap<String, String> {
        let mut flat = BTreeMap::new();
        flatten("", &self.keys, &mut flat);
        flat
    }
}

/// The variable's value before this process changed it; empty until then.
static USERS: OnceLock<Option<OsString>> = OnceLock::new();
/// The directory that the variable names before it is there.
static RESERVED: OnceLock<PathBuf> = OnceLock::new();

/// Names the configuration that this process will write in the environment, and writes nothing.
/// Call it before anything starts threads, as MPI's libraries do: [`Environment::write`] with the
/// same parent then makes what was named.
///
/// # Errors
/// As for [`Environment::apply`].
pub fn reserve(parent: &Path) -> Result<(), ConfigError> {
    let directory = RESERVED.get_or_init(|| parent.join(Private::name(PREFIX)));
    name(&directory.join(FILE))
}

/// Names a configuration in the environment.
fn name(file: &Path) -> Result<(), ConfigError> {
    let count = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    // A thread that was joined is listed until the kernel has taken it down.
    for _ in (0..500).take_while(|_| count() > 1) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let threads = count();
    if threads != 1 {
        return Err(ConfigError::Threads { threads });
    }
    USERS.get_or_init(|| environment::variable(VARIABLE));
    // SAFETY: this is the only thread, so no other reads the environment.
    unsafe { std::env::set_var(VARIABLE, file) };
    Ok(())
}

/// Adds the settings to the keys, and a directory for the log if none is named.
fn merge(
    mut keys: Map<String, Value>,
    settings: &[Setting],
    log: &Path,
) -> Result<Map<String, Value>, ConfigError> {
    for setting in settings {
        put(&mut keys, &setting.key, setting.value.clone())?;
    }
    let named = keys.get("logging").and_then(|logging| logging.get("dir"));
    if named.and_then(Value::as_str).is_none_or(str::is_empty) {
        put(&mut keys, "logging.dir", Value::String(log.display().to_string()))?;
    }
    Ok(keys)
}

fn put(keys: &mut Map<String, Value>, key: &str, value: Value) -> Result<(), ConfigError> {
    let (groups, last) = key.rsplit_once('.').map_or((None, key), |(g, last)| (Some(g), last));
    let mut at = keys;
    for part in groups.into_iter().flat_map(|groups| groups.split('.')) {
        let next = at.entry(part).or_insert_with(|| Value::Object(Map::new()));
        at = next
            .as_object_mut()
            .ok_or_else(|| ConfigError::Shape { key: key.to_owned(), part: part.to_owned() })?;
    }
    at.insert(last.to_owned(), value);
    Ok(())
}

/// The configuration of this run in a directory of its own, which is removed when this is dropped.
/// cuFile puts its log there too, unless the user named another directory.
#[derive(Debug)]
pub struct Environment {
    config_directory: ConfigDirectory,
    /// Directories of killed runs that hold foreign files and were left in place.
    pub left: Vec<PathBuf>,
    /// The user's file below the settings, if there was one.
    pub based_on: Option<PathBuf>,
    /// All keys that cuFile reads.
    pub keys: Map<String, Value>,
}

impl Environment {
    /// Writes the configuration below `parent`, readable by this user alone.
    ///
    /// # Errors
    /// A setting does not fit, or the directory can't be made.
    pub fn write(
        base: Base,
        settings: &[Setting],
        parent: &Path,
    ) -> Result<Environment, ConfigError> {
        let failed = |why| ConfigError::Write { path: parent.to_owned(), why };
        let left = clear(parent);
        let reserved = RESERVED.get().filter(|reserved| reserved.parent() == Some(parent));
        let config_directory = match reserved.and_then(|reserved| reserved.file_name()) {
            Some(name) => Private::make_named(parent, name.to_owned()),
            None => Private::make(parent, PREFIX),
        };
        let config_directory = config_directory.map_err(failed)?;
        // From here on dropping the value removes the directory, on errors too.
        let config_directory = ConfigDirectory(Arc::new(config_directory));
        let keys = Map::new();
        let mut environment = Environment { config_directory, left, based_on: base.path, keys };
        environment.keys = merge(base.keys, settings, &environment.directory())?;
        let text = serde_json::to_vec_pretty(&environment.keys).map_err(|e| failed(e.into()))?;
        let file = environment.config_directory.0.inside().create(OsStr::new(FILE));
        file.and_then(|mut file| file.write_all(&text)).map_err(failed)?;
        Ok(environment)
    }

    /// The directory with the configuration and the log.
    pub fn directory(&self) -> PathBuf {
        self.config_directory.0.path()
    }

    /// The same, for owners that outlive this value.
    pub fn config_directory(&self) -> ConfigDirectory {
        self.config_directory.clone()
    }

    /// The file that cuFile is to read.
    pub fn file(&self) -> PathBuf {
        self.directory().join(FILE)
    }

    /// Points cuFile to the file through the environment, which cuFile reads when it is opened.
    ///
    /// # Errors
    /// [`reserve`] has not named it, and this process has more than one thread, or their number is
    /// unknown.
    pub fn apply(&self) -> Result<(), ConfigError> {
        let file = self.file();
        match std::env::var_os(VARIABLE).is_some_and(|named| Path::new(&named) == file) {
            true => Ok(()),
            false => name(&file),
        }
    }

    /// Whether these keys allow compatibility mode; `None` if they don't set it.
    pub fn compat_allowed(&self) -> Option<bool> {
        self.keys.get("properties")?.get("allow_compat_mode")?.as_bool()
    }

    /// Whether these keys request poll mode; `None` if they don't set it.
    pub fn poll_mode(&self) -> Option<bool> {
        self.keys.get("properties")?.get("use_poll_mode")?.as_bool()
    }

    /// The largest I/O to poll for, in KiB; `None` if these keys don't set it.
    pub fn poll_threshold_kib(&self) -> Option<u64> {
        self.keys.get("properties")?.get("poll_mode_max_size_kb")?.as_u64()
    }

    /// All keys, joined by dots, with their values as JSON.
    pub fn flat(&self) -> BTreeMap<String, String> {
        let mut flat = BTreeMap::new();
        flatten("", &self.keys, &mut flat);
        flat
    }

    /// The last error in cuFile's log, if the log is in our directory.
    pub fn last_error(&self) -> Option<String> {
        let entries = std::fs::read_dir(self.directory()).ok()?;
        let logs = entries.flatten().map(|entry| entry.path());
        let logs = logs.filter(|path| path.extension().is_some_and(|end| end == "log"));
        let texts = logs.filter_map(|log| std::fs::read(log).ok());
        let lines = texts.filter_map(|text| {
            let text = String::from_utf8_lossy(&text).into_owned();
            let last = text.lines().rev().find(|line| line.contains("ERROR"));
            last.map(|line| line.trim().to_owned())
        });
        lines.last()
    }
}

fn flatten(prefix: &str, keys: &Map<String, Value>, flat: &mut BTreeMap<String, String>) {
    for (key, value) in keys {
        let name = format!("{prefix}{key}");
        match value {
            Value::Object(group) => flatten(&format!("{name}."), group, flat),
            value => {
                flat.insert(name, value.to_string());
            }
        }
    }
}

/// The prefix of our directories' names.
const PREFIX: &str = "gpuio-cufile";
const FILE: &str = "cufile.json";

/// The directory of a configuration. Only this user may enter it, and a lock on it ends with the
/// process.
#[derive(Debug, Clone)]
pub struct ConfigDirectory(Arc<Private>);

impl ConfigDirectory {
    /// Removes configuration and logs, and the directory if it is then empty.
    pub fn remove(&self) {
        // Files that remain have no owner after this process: the next run finds them.
        let _ = self.0.remove(is_ours);
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        self.config_directory.remove();
    }
}

/// The configuration and cuFile's logs, by name.
fn is_ours(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == FILE || (name.starts_with("cufile") && name.ends_with(".log"))
}

/// Removes the directories of this user's killed runs. Returns those that hold something else.
fn clear(parent: &Path) -> Vec<PathBuf> {
    let abandoned = Private::abandoned(parent, PREFIX).unwrap_or_default();
    let stay = abandoned
        .iter()
        .filter(|config_directory| !config_directory.remove(is_ours).unwrap_or(false));
    stay.map(Private::path).collect()
}

#[cfg(test)]
mod tests;
