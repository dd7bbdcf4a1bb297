//! Who made a loaded library, by its content.

use std::fmt;
use std::path::Path;

use crate::cufile::table::Library;

/// Only in gpuio's own `libcufile`: the name of a variable that it reads.
const MARK: &[u8] = b"GPUIO_CUFILE";

/// Who made a library with cuFile's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// gpuio's stand-in, which goes with the software GPU.
    StandIn,
    /// gpuio's own `libcufile` (docs/dropin.md).
    Gpuio,
    /// Another: usually NVIDIA's.
    Other,
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StandIn => "gpuio's stand-in for cuFile",
            Self::Gpuio => "gpuio's own libcufile",
            Self::Other => "a cuFile library for real GPUs, as NVIDIA's is",
        })
    }
}

/// Whether these are the bytes of gpuio's own `libcufile`: a shared object that reads
/// `GPUIO_CUFILE`.
pub fn is_gpuio_library(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") && bytes.windows(MARK.len()).any(|window| window == MARK)
}

impl Library {
    /// Who made it. Reads its file, except for the stand-in, which identifies itself.
    pub fn vendor(&self) -> Vendor {
        if self.is_stand_in() {
            return Vendor::StandIn;
        }
        let path: &Path = self.path();
        match std::fs::read(path) {
            Ok(bytes) if is_gpuio_library(&bytes) => Vendor::Gpuio,
            _ => Vendor::Other,
        }
    }
}
