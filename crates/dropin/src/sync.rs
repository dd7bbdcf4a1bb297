//! What the parts without locks are made of. `cargo xtask model` runs their sources with loom's in
//! the place of these: every order of threads, and every value that a load may see.

pub(crate) use std::sync::atomic;
pub(crate) use std::thread::sleep;

use std::cell::UnsafeCell;

/// A number that the model makes smaller, where its size adds nothing but work.
pub(crate) const fn size<T: Copy>(real: T, _model: T) -> T {
    real
}

/// Small, and different for threads that live at the same time, mostly.
pub(crate) fn thread_number() -> usize {
    use atomic::{AtomicUsize, Ordering::Relaxed};
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Relaxed);
    }
    // A thread that is ending may have lost it; any will do.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// A place that is read and written as the code around it has it; the model notes each access.
#[derive(Debug)]
pub(crate) struct Guarded<T>(UnsafeCell<T>);

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The place, for reads.
    pub(crate) fn read(&self) -> *const T {
        self.0.get()
    }

    /// The place, for reads and writes.
    pub(crate) fn write(&self) -> *mut T {
        self.0.get()
    }
}
