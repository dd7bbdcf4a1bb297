//! The open library.

use std::ffi::c_int;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use crate::cufile::Calls;
use crate::cufile::abi::{self, CufileError as Answer, Properties};
use crate::cufile::absent::Absent;
use crate::cufile::calls::FunctionAbsent;
use crate::cufile::codes::CufileError;
use crate::cufile::config::Environment;
use crate::cufile::diagnosis::Diagnosis;
use crate::cufile::table::{self, Library};
use crate::cufile::vendor::Vendor;

/// The open library's report about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Its release, major and minor; absent before 1.12, which does not report it.
    pub version: Option<(u32, u32)>,
    /// The kernel module nvidia-fs's version; absent without the module, when only compatibility
    /// mode (pread and a copy, inside the library) or peer-to-peer DMA can move bytes.
    pub nvidia_fs: Option<(u32, u32)>,
    /// Whether the library may fall back to compatibility mode.
    pub compat_allowed: Option<bool>,
    /// Whether the library reports that it polls for completions of small I/Os.
    pub poll_mode: Option<bool>,
    /// The largest I/O that it polls for, in KiB.
    pub poll_threshold_kib: Option<u64>,
}

/// The open library, one per process. Cloning is cheap; it is closed with the last clone and the
/// last handle and buffer made from it.
#[derive(Clone)]
pub struct Driver(Arc<Inner>);

struct Inner {
    library: Library,
    facts: Facts,
    environment: Option<Environment>,
    /// I/Os that all batches together may have in flight.
    batched: Arc<AtomicU32>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("path", &self.0.library.path)
            .field("facts", &self.0.facts)
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// Opens the library with the applied environment. Takes up to a second with NVIDIA's. A CUDA
    /// driver must be loaded first; `software_gpu`: it is gpuio's.
    ///
    /// NVIDIA's library may close descriptor 0 while it opens; the descriptor is restored.
    ///
    /// # Errors
    /// [`Absent::NoCuda`] and [`Absent::Mixed`] before anything is called, [`Absent::Open`] after.
    pub fn open(
        library: Library,
        environment: Option<Environment>,
        software_gpu: bool,
    ) -> Result<Driver, Absent> {
        let stand_in = library.is_stand_in();
        if stand_in != software_gpu {
            let vendor = library.vendor();
            return Err(Absent::Mixed { library: library.path.clone(), vendor });
        }
        if !stand_in && !table::cuda_is_loaded() {
            return Err(Absent::NoCuda { library: library.path.clone() });
        }
        let stdin = Stdin::keep();
        // SAFETY: it takes no argument; a CUDA driver is loaded, without which it may not return.
        let answer = unsafe { (library.cuFileDriverOpen)() };
        stdin.put_back();
        if answer.code != 0 {
            let mut diagnosis = Diagnosis::machine(Path::new("/"));
            diagnosis.compat_allowed = environment.as_ref().and_then(Environment::compat_allowed);
            diagnosis.log = environment.as_ref().and_then(Environment::last_error);
            return Err(Absent::Open(error("cuFileDriverOpen", answer, String::new(), diagnosis)));
        }
        let facts = facts_in_force(&library, environment.as_ref());
        let batched = Arc::default();
        Ok(Driver(Arc::new(Inner { library, facts, environment, batched })))
    }

    /// The first function of this interface that the library lacks.
    pub fn missing_function(&self, calls: Calls) -> Option<FunctionAbsent> {
        self.0.library.missing_function(calls)
    }

    pub(crate) fn batched(&self) -> &Arc<AtomicU32> {
        &self.0.batched
    }

    /// The library's report about itself.
    pub fn facts(&self) -> Facts {
        self.0.facts
    }

    /// The file it was loaded from, as the loader reports it.
    pub fn path(&self) -> &Path {
        &self.0.library.path
    }

    /// True for gpuio's stand-in.
    pub fn is_stand_in(&self) -> bool {
        self.0.library.is_stand_in()
    }

    /// Who made it; reads its file.
    pub fn vendor(&self) -> Vendor {
        self.0.library.vendor()
    }

    /// The configuration that it was opened with, if gpuio wrote one.
    pub fn environment(&self) -> Option<&Environment> {
        self.0.environment.as_ref()
    }

    pub(crate) fn library(&self) -> &Library {
        &self.0.library
    }

    /// An error with a diagnosis, or `Ok`.
    pub(crate) fn check(
        &self,
        call: &'static str,
        answer: Answer,
        context: impl FnOnce() -> (String, Diagnosis),
    ) -> Result<(), CufileError> {
        if answer.code == 0 {
            return Ok(());
        }
        let (context, mut diagnosis) = context();
        diagnosis.compat_allowed = self.0.facts.compat_allowed;
        diagnosis.log = self.0.environment.as_ref().and_then(Environment::last_error);
        Err(error(call, answer, context, diagnosis))
    }
}

fn error(call: &'static str, answer: Answer, context: String, diagnosis: Diagnosis) -> CufileError {
    CufileError { call, code: answer.code, cuda: answer.cuda, context, diagnosis }
}

impl Library {
    /// Its release, major and minor; available before it is opened too.
    pub(crate) fn version(&self) -> Option<(u32, u32)> {
        let call = self.cuFileGetVersion?;
        let mut coded: c_int = 0;
        // SAFETY: `coded` is valid for the write of one int.
        let answer = unsafe { call(&raw mut coded) };
        let coded = u32::try_from(coded).ok().filter(|&coded| answer.code == 0 && coded > 0)?;
        // Release 1.15 is coded as 1150.
        Some((coded / 1000, coded % 1000 / 10))
    }
}

/// The facts. If the library reports that the configuration alone did not enable poll mode, it is
/// first enabled by its function.
fn facts_in_force(library: &Library, environment: Option<&Environment>) -> Facts {
    let found = facts(library);
    let requested = environment.and_then(Environment::poll_mode) == Some(true);
    let (true, Some(false), Some(set)) =
        (requested, found.poll_mode, library.cuFileDriverSetPollMode)
    else {
        return found;
    };
    let threshold = environment.and_then(Environment::poll_threshold_kib);
    let threshold = threshold.or(found.poll_threshold_kib).unwrap_or(0);
    // SAFETY: numbers only; the library is open. The effect is read below.
    let _ = unsafe { set(true, usize::try_from(threshold).unwrap_or(0)) };
    facts(library)
}

fn facts(library: &Library) -> Facts {
    let properties = Properties::read(library);
    let flag = |bit: u32| properties.as_ref().map(|properties| properties.control_flags & bit != 0);
    Facts {
        version: library.version(),
        nvidia_fs: properties.as_ref().and_then(Properties::nvidia_fs),
        compat_allowed: flag(abi::CONTROL_ALLOW_COMPAT),
        poll_mode: flag(abi::CONTROL_POLL_MODE),
        poll_threshold_kib: properties
            .as_ref()
            .map(|properties| properties.poll_threshold_kib as u64),
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let close = self.library.cuFileDriverClose_v2.or(self.library.cuFileDriverClose);
        if let Some(close) = close {
            // SAFETY: opened once by this value, whose handles and buffers are gone: each holds a
            // clone.
            let _ = unsafe { close() };
        }
    }
}

/// A second descriptor of standard input.
struct Stdin(c_int);

impl Stdin {
    fn keep() -> Stdin {
        // SAFETY: fcntl(2) with numbers only; -1 if there is no descriptor 0.
        Stdin(unsafe { libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3) })
    }

    fn put_back(self) {
        if self.0 < 0 {
            return;
        }
        // SAFETY: fcntl(2) with numbers only.
        let gone = unsafe { libc::fcntl(0, libc::F_GETFD) } < 0;
        if gone {
            // SAFETY: the kept descriptor is ours and open; 0 is free.
            let _ = unsafe { libc::dup2(self.0, 0) };
        }
        // SAFETY: opened by `keep` and closed once.
        let _ = unsafe { libc::close(self.0) };
    }
}
