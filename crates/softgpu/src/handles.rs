//! Handles: numbers in the shape of pointers, so that one that was never given is refused, and a
//! stale one is known as that.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::code::{Answer, Code, INVALID_HANDLE};
use crate::undefined;

/// From one handle to the next.
const STEP: usize = 16;

/// The living things of one kind, by handle. A handle is never given twice.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    /// Their kind, in a word.
    kind: &'static str,
    first: usize,
    next: AtomicUsize,
    live: RwLock<HashMap<usize, Arc<T>>>,
}

impl<T> Handles<T> {
    /// None yet; the first handle is `first`, which keeps the kinds apart.
    pub(crate) fn from(kind: &'static str, first: usize) -> Self {
        Self { kind, first, next: AtomicUsize::new(first), live: RwLock::default() }
    }

    pub(crate) fn add(&self, thing: T) -> *mut c_void {
        // Only uniqueness matters.
        let handle = self.next.fetch_add(STEP, Ordering::Relaxed);
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.insert(handle, Arc::new(thing));
        std::ptr::without_provenance_mut(handle)
    }

    /// The one with this handle. A stale one ends the process.
    pub(crate) fn get(&self, handle: *mut c_void) -> Answer<Arc<T>> {
        self.find(handle).ok_or_else(|| self.refuse(handle))
    }

    /// The one with this handle, if it lives: for handles that may be stale by the manual.
    pub(crate) fn find(&self, handle: *mut c_void) -> Option<Arc<T>> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.get(&handle.addr()).cloned()
    }

    /// The answer for a handle of nothing that lives, if it was never given.
    fn refuse(&self, handle: *mut c_void) -> Code {
        let address = handle.addr();
        // Only what was given before counts, and its user has it from this thread or by
        // some order of his own.
        let given = (self.first..self.next.load(Ordering::Relaxed)).contains(&address);
        if given && (address - self.first).is_multiple_of(STEP) {
            let kind = self.kind;
            undefined::ends(format_args!("{kind} {address:#x} is used after it was destroyed"));
        }
        INVALID_HANDLE
    }

    /// All that live now.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.values().cloned().collect()
    }

    /// Removes those for which `which` is true.
    pub(crate) fn take(&self, which: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.extract_if(|_, thing| which(thing)).map(|(_, thing)| thing).collect()
    }

    /// Takes the one with this handle out. A stale one ends the process.
    pub(crate) fn remove(&self, handle: *mut c_void) -> Answer<Arc<T>> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        let removed = live.remove(&handle.addr());
        drop(live);
        removed.ok_or_else(|| self.refuse(handle))
    }
}
