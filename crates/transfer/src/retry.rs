//! A value whose creation the driver may refuse for a while, for lack of memory or of a compiler.

use std::sync::{Mutex, OnceLock, PoisonError};

use gpuio_gpu::GpuError;

use crate::clock::{Clock, Nanos};

/// Pause after a refusal, in nanoseconds: loading a kernel may wait for all work on the device.
const PAUSE: Nanos = 500_000_000;

/// A value that is made on first use and then kept. After a refusal it is tried again after a
/// pause.
#[derive(Debug)]
pub(crate) struct RetryingCell<T> {
    had: OnceLock<T>,
    began: Clock,
    refused: Mutex<Option<(Nanos, GpuError)>>,
}

impl<T> RetryingCell<T> {
    pub(crate) fn new() -> Self {
        Self { had: OnceLock::new(), began: Clock::start(), refused: Mutex::new(None) }
    }

    /// The value, if it was made.
    pub(crate) fn had(&self) -> Option<&T> {
        self.had.get()
    }

    /// The value, made if necessary. No lock is held while it is made, so two threads may both make
    /// one at first.
    ///
    /// # Errors
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
