//! The primitives of the lock-free parts. `cargo xtask model` replaces them with loom's and runs
//! every order of threads, and every value that a load may see.

pub(crate) use std::sync::atomic;
pub(crate) use std::thread::sleep;

use std::cell::UnsafeCell;

/// A number that the model makes smaller where its size would only add work.
pub(crate) const fn size<T: Copy>(real: T, _model: T) -> T {
    real
}

/// Small, and mostly different for threads that live at the same time.
pub(crate) fn thread_number() -> usize {
    use atomic::{AtomicUsize, Ordering::Relaxed};
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Relaxed);
    }
    // A thread that is exiting may have lost it; any number will do.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// A location that the surrounding code protects; the model checks each access.
pub(crate) struct Guarded<T>(UnsafeCell<T>);

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// For reads.
    pub(crate) fn read(&self) -> *const T {
        self.0.get()
    }

    /// For reads and writes.
    pub(crate) fn write(&self) -> *mut T {
        self.0.get()
    }
}
