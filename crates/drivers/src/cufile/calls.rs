//! The library's interfaces for I/O, and whether this release has them.

use std::fmt;
use std::path::PathBuf;

use gpuio_base::catalog::Calls;

use crate::cufile::codes::CufileError;
use crate::cufile::table::Library;

/// A function that this release of the library lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionAbsent {
    pub symbol: &'static str,
    pub library: PathBuf,
    /// Its release, major and minor, if it reports one.
    pub version: Option<(u32, u32)>,
}

impl std::error::Error for FunctionAbsent {}

impl fmt::Display for FunctionAbsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.library.display())?;
        match self.version {
            Some((major, minor)) => write!(f, " is cuFile {major}.{minor} and")?,
            None => write!(f, " is a cuFile of unknown release and")?,
        }
        write!(f, " has no function {}; name a newer library with --cufile-lib", self.symbol)
    }
}

/// Why an interface is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceAbsent {
    /// The release lacks a function.
    #[error(transparent)]
    MissingFunction(#[from] FunctionAbsent),
    #[error(transparent)]
    Refused(#[from] CufileError),
    /// The library's pool of host memory has fewer buffers than batches may have I/Os in flight.
    #[error(
        "{requested} I/Os in flight in batches, with {others} of other threads, are more than the \
         {buffers} buffers that cuFile's pool has for blocks of {block} bytes. Without nvidia-fs \
         each takes one, and cuFileBatchIOSubmit of more of them may wait forever. Lower --depth \
         or --threads, or enlarge the pool: --cufile-set \
         properties.posix_pool_slab_count={counts}"
    )]
    Pool {
        /// I/Os that this batch may have in flight.
        requested: u32,
        /// Those that others have been granted.
        others: u32,
        buffers: u32,
        /// Length of the largest block in bytes.
        block: usize,
        /// Sufficient numbers of buffers per class, in the configuration's form.
        counts: String,
    },
}

impl Library {
    /// The first function of this interface that the library lacks.
    pub fn missing_function(&self, calls: Calls) -> Option<FunctionAbsent> {
        let needed: &[(&'static str, bool)] = match calls {
            Calls::Blocking => &[],
            Calls::Batch => &[
                ("cuFileBatchIOSetUp", self.cuFileBatchIOSetUp.is_some()),
                ("cuFileBatchIOSubmit", self.cuFileBatchIOSubmit.is_some()),
                ("cuFileBatchIOGetStatus", self.cuFileBatchIOGetStatus.is_some()),
                ("cuFileBatchIOCancel", self.cuFileBatchIOCancel.is_some()),
                ("cuFileBatchIODestroy", self.cuFileBatchIODestroy.is_some()),
            ],
            Calls::Streams => &[
                ("cuFileReadAsync", self.cuFileReadAsync.is_some()),
                ("cuFileWriteAsync", self.cuFileWriteAsync.is_some()),
            ],
        };
        let missing = needed.iter().find(|(_, there)| !there);
        missing.map(|(symbol, _)| self.without(symbol))
    }

    /// The error about one function.
    pub(crate) fn without(&self, symbol: &'static str) -> FunctionAbsent {
        FunctionAbsent { symbol, library: self.path.clone(), version: self.version() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_reported_with_release_and_remedy() {
        let missing_function = FunctionAbsent {
            symbol: "cuFileReadAsync",
            library: "/opt/libcufile.so.0".into(),
            version: Some((1, 2)),
        };
        assert_eq!(
            missing_function.to_string(),
            "/opt/libcufile.so.0 is cuFile 1.2 and has no function cuFileReadAsync; name a newer \
             library with --cufile-lib"
        );
        let silent = FunctionAbsent { version: None, ..missing_function };
        assert!(silent.to_string().contains("of unknown release"), "{silent}");
    }
}
