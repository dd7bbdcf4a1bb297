//! The log of this library. It is silent unless configured.
//!
//! NVIDIA's library writes `cufile.log` into the working directory of every program that opens it;
//! users complain about it (rapidsai/cucim#514, NVIDIA/cuvs#2553). Here lines go to the file that
//! `CUFILE_LOGFILE_PATH` or `logging.dir` names; without one, to standard error, but only if a
//! level was configured. Otherwise nothing is written.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::config::Config;
use crate::config::table::LOG_LEVEL;

/// cuFile's log levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Notice,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    const ALL: [(Level, &'static str); 6] = [
        (Level::Notice, "NOTICE"),
        (Level::Error, "ERROR"),
        (Level::Warn, "WARN"),
        (Level::Info, "INFO"),
        (Level::Debug, "DEBUG"),
        (Level::Trace, "TRACE"),
    ];

    /// The level with this name, in any case of letters.
    pub(crate) fn of(text: &str) -> Option<Level> {
        let found = Level::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(text.trim()));
        found.map(|(level, _)| *level)
    }

    fn name(self) -> &'static str {
        Level::ALL.iter().find(|(level, _)| *level == self).map_or("", |(_, name)| name)
    }
}

enum Sink {
    Discard,
    StandardError,
    File { path: PathBuf, max_bytes: u64 },
}

struct Log {
    level: Level,
    sink: Sink,
}

static LOG: Mutex<Log> = Mutex::new(Log { level: Level::Error, sink: Sink::Discard });

/// Applies `config`.
pub(crate) fn set(config: &Config) {
    let level = Level::of(&config.texts[LOG_LEVEL]).unwrap_or(Level::Error);
    let sink = match config.log_path() {
        Some(path) => {
            let max_bytes = config.log_max_mib.map_or(u64::MAX, |mib| mib << 20);
            Sink::File { path, max_bytes }
        }
        None if config.level_requested => Sink::StandardError,
        None => Sink::Discard,
    };
    if let Ok(mut log) = LOG.try_lock() {
        *log = Log { level, sink };
    }
}

/// Whether a log file is configured.
pub(crate) fn has_file() -> bool {
    LOG.lock().is_ok_and(|log| matches!(log.sink, Sink::File { .. }))
}

/// Writes one line. Never fails a call: a line that can't be written is lost, and so is one that
/// comes while another is being written.
pub(crate) fn line(level: Level, message: impl FnOnce() -> String) {
    // A thread may hold it when the process forks, so never wait for it.
    let Ok(log) = LOG.try_lock() else { return };
    if level > log.level {
        return;
    }
    let text = || {
        let message = message();
        let message = gpuio_base::units::printable_short(&message);
        format!("gpuio cuFile {} [{}] {message}\n", level.name(), std::process::id())
    };
    match &log.sink {
        Sink::Discard => {}
        Sink::StandardError => {
            crate::standard_error::write(&text());
        }
        Sink::File { path, max_bytes } => {
            // Opened for each of the few lines: no descriptor of ours stays open in the program.
            let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) else {
                return;
            };
            if file.metadata().is_ok_and(|facts| facts.len() < *max_bytes) {
                let _ = file.write_all(text().as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_by_their_words() {
        assert_eq!(Level::of("warn"), Some(Level::Warn));
        assert_eq!(Level::of("WARNING"), None);
        assert!(Level::Error < Level::Warn && Level::Trace.name() == "TRACE");
    }
}
