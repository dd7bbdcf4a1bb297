//! Whose library a loaded one is, by what is in it.

use std::fmt;
use std::path::Path;

use crate::table::Library;

/// In gpuio's own `libcufile` and in no other: the name of a variable that it reads.
const MARK: &[u8] = b"GPUIO_CUFILE";

/// Who made a library with cuFile's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// gpuio's stand-in, which goes with the software GPU.
    StandIn,
    /// gpuio's own `libcufile` (docs/dropin.md).
    Gpuio,
    /// Another: NVIDIA's, as a rule.
    Other,
}

impl fmt::Display for Whose {
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
#[must_use]
pub fn is_gpuios(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") && bytes.windows(MARK.len()).any(|window| window == MARK)
}

impl Library {
    /// Whose it is. Reads its file, unless it is the stand-in, which says so itself.
    #[must_use]
    pub fn whose(&self) -> Whose {
        if self.is_stand_in() {
            return Whose::StandIn;
        }
        let path: &Path = self.path();
        match std::fs::read(path) {
            Ok(bytes) if is_gpuios(&bytes) => Whose::Gpuio,
            _ => Whose::Other,
        }
    }
}
