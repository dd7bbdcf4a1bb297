//! The types that the parts without locks are made of. `cargo xtask model` runs their sources with
//! loom's in the place of these: every order of threads, and every value that a load may see.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};

/// A number that the model makes smaller, where its size adds nothing but work.
pub(crate) const fn size<T: Copy>(real: T, _model: T) -> T {
    real
}

/// A number of the calling thread, which no other thread of the process has or had.
pub(crate) fn thread_number() -> usize {
    use atomic::{AtomicUsize, Ordering::Relaxed};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HERE: usize = NEXT.fetch_add(1, Relaxed);
    }
    // A thread that is ending may have lost it.
    HERE.try_with(|here| *here).unwrap_or(usize::MAX)
}
