//! Handles: numbers in the shape of pointers, so that a stale one is refused and never followed.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::code::{Answer, INVALID_HANDLE};

/// The living things of one kind, by handle. A handle is never given twice.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    next: AtomicUsize,
    live: RwLock<HashMap<usize, Arc<T>>>,
}

impl<T> Handles<T> {
    /// None yet; the first handle is `first`, which keeps the kinds apart.
    pub(crate) fn from(first: usize) -> Self {
        Self { next: AtomicUsize::new(first), live: RwLock::default() }
    }

    /// Adds one.
    pub(crate) fn add(&self, thing: T) -> *mut c_void {
        // Only uniqueness matters.
        let handle = self.next.fetch_add(16, Ordering::Relaxed);
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.insert(handle, Arc::new(thing));
        std::ptr::without_provenance_mut(handle)
    }

    /// The one with this handle.
    pub(crate) fn get(&self, handle: *mut c_void) -> Answer<Arc<T>> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.get(&handle.addr()).cloned().ok_or(INVALID_HANDLE)
    }

    /// All that live now.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.values().cloned().collect()
    }

    /// Takes out those for which `which` says so.
    pub(crate) fn take(&self, which: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.extract_if(|_, thing| which(thing)).map(|(_, thing)| thing).collect()
    }

    /// Takes the one with this handle out.
    pub(crate) fn remove(&self, handle: *mut c_void) -> Answer<Arc<T>> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.remove(&handle.addr()).ok_or(INVALID_HANDLE)
    }
}
