//! The thread that notices stops of the process (`gpuio_io::clock::stops`): it sleeps, and does
//! nothing else.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use gpuio_io::clock::stops::{TICK, Ticker};

/// Ticks until it is dropped.
pub(super) struct StopWatch {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl StopWatch {
    /// Starts the thread; `None` where none could be had, which ends no run: then a stop is not
    /// noticed.
    pub(super) fn begin() -> Option<StopWatch> {
        let over: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let seen = Arc::clone(&over);
        let body = move || {
            let Some(mut ticker) = Ticker::begin() else { return };
            let mut is_over = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
            while !*is_over {
                let waited = seen.1.wait_timeout(is_over, TICK);
                is_over = waited.unwrap_or_else(PoisonError::into_inner).0;
                ticker.tick();
            }
        };
        let builder = Builder::new().name("gpuio-stops".to_owned()).stack_size(64 << 10);
        let thread = builder.spawn(body).ok()?;
        Some(StopWatch { over, thread: Some(thread) })
    }
}

impl Drop for StopWatch {
    fn drop(&mut self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_all();
        // It holds nothing that a panic could leave broken.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
