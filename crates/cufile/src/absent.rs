//! Why cuFile can't be used.

use std::fmt;
use std::path::PathBuf;

use crate::codes::CufileError;
use crate::whose::Whose;

/// Why there is no cuFile library to use. Each state asks for another remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absent {
    /// The loader opened none of the libraries.
    NoLibrary {
        /// What was tried, in this order, and what came of it.
        tried: Vec<(String, String)>,
    },
    /// The library lacks a function that gpuio needs.
    SymbolMissing {
        /// The library.
        library: PathBuf,
        /// The function.
        symbol: &'static str,
    },
    /// No CUDA driver is loaded: NVIDIA's library of release 1.20 would spin for ever in its open.
    NoCuda {
        /// The library.
        library: PathBuf,
    },
    /// gpuio's stand-in beside a real GPU, or another library beside the software GPU.
    Mixed {
        /// The library.
        library: PathBuf,
        /// Whose it is.
        whose: Whose,
    },
    /// The library is there and does not open.
    Open(CufileError),
}

impl std::error::Error for Absent {}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrary { tried } => {
                f.write_str("no cuFile library (libcufile.so.0) could be loaded")?;
                for (place, why) in tried {
                    // The loader's words name the file themselves, as a rule.
                    let why = why.strip_prefix(&format!("{place}: ")).unwrap_or(why);
                    write!(f, "; {place}: {why}")?;
                }
                f.write_str(
                    ". Install NVIDIA's cuFile (package libcufile of the CUDA toolkit, or the \
                     Python wheel nvidia-cufile), or name the library with --cufile-lib",
                )
            }
            Self::SymbolMissing { library, symbol } => write!(
                f,
                "{} has no function {symbol}: it is no cuFile library; name another with \
                 --cufile-lib",
                library.display()
            ),
            Self::NoCuda { library } => write!(
                f,
                "{} is there, but no CUDA driver (libcuda.so.1) is loaded, without which cuFile \
                 does not work and release 1.20 does not return; install the NVIDIA driver",
                library.display()
            ),
            Self::Mixed { library, whose: Whose::StandIn } => write!(
                f,
                "{} is gpuio's stand-in for cuFile, which goes with the software GPU only; leave \
                 out --cufile-lib or use --gpu software",
                library.display()
            ),
            Self::Mixed { library, whose } => write!(
                f,
                "{} is {whose}; paths of cuFile go to the software GPU by gpuio's stand-in alone: \
                 leave out --cufile-lib, or use a real GPU",
                library.display()
            ),
            Self::Open(error) => {
                write!(f, "the cuFile library is there and does not open: {error}")
            }
        }
    }
}
