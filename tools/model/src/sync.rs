//! The module that the sources name `crate::sync`, made of loom's.

use loom::sync::{Condvar as LoomCondvar, Mutex as LoomMutex};
pub use loom::sync::{LockResult, MutexGuard};
pub use std::sync::{Arc, PoisonError};

pub mod atomic;
pub mod futex;

/// The smaller number: see the crates' own.
pub const fn size<T: Copy>(_real: T, model: T) -> T {
    model
}

pub fn thread_number() -> usize {
    use std::cell::Cell;
    loom::lazy_static! {
        static ref NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    }
    loom::thread_local! {
        static NUMBER: Cell<Option<usize>> = Cell::new(None);
    }
    NUMBER.with(|number| {
        let mine =
            number.get().unwrap_or_else(|| NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        number.set(Some(mine));
        mine
    })
}

/// Time says nothing here: others run.
pub fn sleep(_: std::time::Duration) {
    loom::thread::yield_now();
}

pub fn yield_now() {
    loom::thread::yield_now();
}

/// Each access is noted when it is asked for: two that are not in order, one of them a write, end
/// the test.
#[derive(Debug)]
pub struct Guarded<T>(loom::cell::UnsafeCell<T>);

// SAFETY: loom runs one thread at a time, and ends the test where accesses are not in order.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }

    pub fn read(&self) -> *const T {
        self.0.with(|place| place)
    }

    pub fn write(&self) -> *mut T {
        self.0.with_mut(|place| place)
    }
}

/// As the standard library's, which has more of it.
#[derive(Debug)]
pub struct Mutex<T>(LoomMutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(LoomMutex::new(value))
    }

    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.0.lock()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

#[derive(Debug)]
pub struct Condvar(LoomCondvar);

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl Condvar {
    pub fn new() -> Self {
        Self(LoomCondvar::new())
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut holds: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while holds(&mut guard) {
            guard = self.0.wait(guard)?;
        }
        Ok(guard)
    }
}
