//! What the driver may refuse for a while: for want of memory, of a compiler.

use std::sync::{Mutex, OnceLock, PoisonError};

use gpuio_gpu::GpuError;
use gpuio_io::clock::{Clock, Nanos};

/// After a refusal nothing is asked for so long, nanoseconds: to load a kernel may wait for all
/// that is under way on the device.
const PAUSE: Nanos = 500_000_000;

/// A thing that is made when it is first asked for, kept once it was had, and tried again some time
/// after a refusal.
#[derive(Debug)]
pub(crate) struct Attempt<T> {
    had: OnceLock<T>,
    began: Clock,
    refused: Mutex<Option<(Nanos, GpuError)>>,
}

impl<T> Attempt<T> {
    pub(crate) fn new() -> Self {
        Self { had: OnceLock::new(), began: Clock::start(), refused: Mutex::new(None) }
    }

    /// The thing if it was had, without an attempt.
    pub(crate) fn had(&self) -> Option<&T> {
        self.had.get()
    }

    /// The thing. No lock is held while it is made, so two threads may both make one at first.
    ///
    /// # Errors
    ///
    /// The last refusal.
    pub(crate) fn get(&self, make: impl FnOnce() -> Result<T, GpuError>) -> Result<&T, GpuError> {
        if let Some(had) = self.had.get() {
            return Ok(had);
        }
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, error)) = refused
            && self.began.now().saturating_sub(at) < PAUSE
        {
            return Err(error);
        }
        match make() {
            Ok(made) => Ok(self.had.get_or_init(|| made)),
            Err(error) => {
                let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                *refused = Some((self.began.now(), error.clone()));
                Err(error)
            }
        }
    }
}
