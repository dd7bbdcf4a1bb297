//! A clock that goes by its readings, each of them a second: so whoever looks for a while looks
//! twice.

use std::sync::atomic::{AtomicU64, Ordering};

pub type Nanos = u64;

#[derive(Debug, Clone, Copy)]
pub struct Clock(&'static AtomicU64);

impl Clock {
    pub fn start() -> Self {
        Self(Box::leak(Box::default()))
    }

    /// 0 at the first reading.
    pub fn now(&self) -> Nanos {
        self.0.fetch_add(1_000_000_000, Ordering::Relaxed)
    }
}
