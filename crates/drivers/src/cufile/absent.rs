//! Why cuFile can't be used.

use std::fmt;
use std::path::PathBuf;

use gpuio_guard::objects::STAND_IN;

use crate::cufile::codes::CufileError;
use crate::cufile::vendor::Vendor;

/// Why there is no usable cuFile library. Each case has its own remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absent {
    /// The loader opened none of the libraries.
    NoLibrary {
        /// The names that were tried, in this order, and why each failed.
        tried: Vec<(String, String)>,
    },
    /// The library lacks a function that gpuio needs.
    SymbolMissing { library: PathBuf, symbol: &'static str },
    /// No CUDA driver is loaded: NVIDIA's library of release 1.20 would hang in its open.
    NoCuda { library: PathBuf },
    /// gpuio's stand-in with a real GPU, or another library with the software GPU.
    Mixed { library: PathBuf, vendor: Vendor },
    /// The library exists but does not open.
    Open(CufileError),
}

impl std::error::Error for Absent {}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrary { tried } => {
                f.write_str("no cuFile library (libcufile.so.0) could be loaded")?;
                for (path, why) in tried {
                    // The loader's message usually begins with the file's name.
                    match why.starts_with(path.as_str()) {
                        true => write!(f, "; {why}")?,
                        false => write!(f, "; {path}: {why}")?,
                    }
                }
                f.write_str(match tried.iter().any(|(path, _)| path.ends_with(STAND_IN)) {
                    true => {
                        ". With the software GPU it is gpuio's stand-in, a file of gpuio's \
                         packages; in a source tree make it with cargo build -p gpuio-softcufile"
                    }
                    false => {
                        ". Install NVIDIA's cuFile (package libcufile of the CUDA toolkit, or the \
                         Python wheel nvidia-cufile), or name the library with --cufile-lib"
                    }
                })
            }
            Self::SymbolMissing { library, symbol } => write!(
                f,
                "{} has no function {symbol}, so it is no cuFile library. Name another with \
                 --cufile-lib",
                library.display()
            ),
            Self::NoCuda { library } => write!(
                f,
                "{} exists, but no CUDA driver (libcuda.so.1) is loaded. Without it cuFile can't \
                 work, and release 1.20 hangs. Install the NVIDIA driver",
                library.display()
            ),
            Self::Mixed { library, vendor: Vendor::StandIn } => write!(
                f,
                "{} is gpuio's stand-in for cuFile, which works with the software GPU only. Leave \
                 out --cufile-lib or use --gpu software",
                library.display()
            ),
            Self::Mixed { library, vendor } => write!(
                f,
                "{} is {vendor}. With the software GPU, cuFile's paths need gpuio's stand-in: \
                 leave out --cufile-lib, or use a real GPU",
                library.display()
            ),
            Self::Open(error) => {
                write!(f, "the cuFile library does not open: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NVIDIA's library is no remedy for a software GPU.
    #[test]
    fn the_remedy_is_for_the_gpu_in_use() {
        let lacks = |name: &str| {
            let tried = vec![(format!("/l/{name}"), "not there".to_owned())];
            Absent::NoLibrary { tried }.to_string()
        };
        let software = lacks(STAND_IN);
        assert!(software.contains("-p gpuio-softcufile") && !software.contains("NVIDIA"));
        assert!(lacks("libcufile.so.0").contains("Install NVIDIA's cuFile"));
    }
}
