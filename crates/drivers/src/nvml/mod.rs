//! NVML, NVIDIA's management library (`libnvidia-ml.so.1`), loaded at run time: readings of a GPU
//! as plain values.
//!
//! A missing library is a value, and so is each missing reading: boards, drivers and containers
//! differ in what they answer. Nothing here is cached, nothing is changed on the GPU, and no
//! reading needs root. Functions and fields are those of the "NVML API Reference Guide" (driver
//! 580).
//!
//! Threads: NVML has its own locks. A [`Library`] may be shared; each call queries the kernel
//! driver and takes from microseconds to milliseconds.

mod counter;
mod gpu;
mod nvlink;

use std::ffi::OsStr;
use std::fmt;

use nvml_wrapper::error::NvmlError;

pub use counter::{Counter, Width};
pub use gpu::{Activity, Bar1, Gpu, Link, Process, Readings};
pub use nvlink::{NvLink, NvLinkEnd, NvLinks};

/// The library by the name that the driver installs; the one without a number comes with
/// development packages only.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Why there is no NVML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Absent {
    /// The loader did not open it.
    #[error(
        "NVML ({LIBRARY}) could not be loaded: {0}; it comes with NVIDIA's driver, and into a \
         container with the capability `utility`"
    )]
    NoLibrary(String),
    /// It is there and does not start.
    #[error("NVML does not start: {0}; see whether nvidia-smi runs")]
    Start(String),
}

/// A reading that was not given, and why, in NVML's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("NVML, {what}: {why}")]
pub struct ReadingAbsent {
    pub what: &'static str,
    /// NVML's answer.
    pub why: String,
}

impl ReadingAbsent {
    pub(crate) fn new(what: &'static str, why: &NvmlError) -> ReadingAbsent {
        let why = match why {
            NvmlError::NotSupported => "this GPU or driver does not report it".to_owned(),
            other => other.to_string(),
        };
        ReadingAbsent { what, why }
    }
}

/// NVML, started; stopped when dropped.
pub struct Library(nvml_wrapper::Nvml);

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("name", &LIBRARY).finish_non_exhaustive()
    }
}

impl Library {
    /// Loads and starts NVML. Takes up to a second where no other process keeps the driver awake.
    ///
    /// # Errors
    /// Why there is none.
    pub fn load() -> Result<Library, Absent> {
        Library::named(LIBRARY)
    }

    fn named(name: &str) -> Result<Library, Absent> {
        let started = nvml_wrapper::Nvml::builder().lib_path(OsStr::new(name)).init();
        started.map(Library).map_err(|error| match error {
            NvmlError::LibloadingError(error) => Absent::NoLibrary(loader(&error)),
            NvmlError::FailedToLoadSymbol(what) => Absent::NoLibrary(what),
            other => Absent::Start(other.to_string()),
        })
    }

    /// The GPU with this UUID, as the CUDA driver has it (`GPU-…`).
    ///
    /// # Errors
    /// When NVML has no such GPU.
    pub fn gpu(&self, uuid: &str) -> Result<Gpu<'_>, ReadingAbsent> {
        let found = self.0.device_by_uuid(uuid);
        found.map(Gpu).map_err(|error| ReadingAbsent::new("GPU by its UUID", &error))
    }

    /// UUIDs of all GPUs that NVML sees, those that are hidden from CUDA included.
    ///
    /// # Errors
    /// When it can't list them.
    pub fn uuids(&self) -> Result<Vec<String>, ReadingAbsent> {
        let failed = |error: NvmlError| ReadingAbsent::new("list of GPUs", &error);
        let count = self.0.device_count().map_err(failed)?;
        let uuid = |nth| self.0.device_by_index(nth)?.uuid();
        (0..count).map(|nth| uuid(nth).map_err(failed)).collect()
    }
}

/// The loader's error: the error's own text leaves it to its source.
fn loader(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_is_a_value_that_names_the_library() {
        let Err(absent) = Library::named("libgpuio-no-such-nvml.so.1") else {
            panic!("no such library exists");
        };
        let Absent::NoLibrary(why) = &absent else { panic!("{absent:?}") };
        assert!(why.contains("libgpuio-no-such-nvml.so.1"), "{why}");
        assert!(absent.to_string().contains("NVIDIA's driver"), "{absent}");
    }

    #[test]
    fn a_library_that_is_no_nvml_is_none() {
        let absent = Library::named("libc.so.6").err().map(|absent| absent.to_string());
        assert!(absent.is_some_and(|text| text.contains("nvmlInit_v2")));
    }

    #[test]
    fn a_reading_that_is_not_supported_says_so() {
        let unread = ReadingAbsent::new("PCIe link", &NvmlError::NotSupported);
        assert_eq!(unread.to_string(), "NVML, PCIe link: this GPU or driver does not report it");
    }
}
