//! Support for children of `fork(2)`.
//!
//! A child has one thread and a copy of the memory: a lock that another thread held stays locked.
//! So the forking thread takes our two locks first and releases them on both sides. CUDA does not
//! survive a fork, which the transfers report. Registrations stay valid, and calls on host memory
//! work.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::buffers::MapGuard;
use crate::library::{self, Library, StateGuard};

/// In the order in which all code takes them.
type Locks = (StateGuard<'static>, MapGuard<'static>);

/// Forks between the first process and this one. Stored values show whether they are from before.
static GENERATION: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The locks, held by the forking thread from before the fork until after it.
    static HELD: Cell<Option<Locks>> = const { Cell::new(None) };
}

/// The fork generation of this process.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Registers the three handlers below for every later fork (`pthread_atfork(3)`).
pub(crate) fn install_handlers() {
    // SAFETY: the functions live as long as the process: the object is never unloaded. If memory
    // for the handlers is lacking, a fork may leave the child with a locked lock, and nothing else
    // happens.
    let _ = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(inside)) };
}

unsafe extern "C" fn before() {
    // A driver that forks while this thread calls it under the lock: its child runs another program
    // at once. Waiting for the lock here would never end.
    if Library::is_locked_here() {
        return;
    }
    let library = library::get();
    let locks = (library.lock(), library.buffers.lock());
    let _ = HELD.try_with(|held| held.set(Some(locks)));
}

unsafe extern "C" fn after() {
    let _ = HELD.try_with(Cell::take);
}

unsafe extern "C" fn inside() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let library = library::get();
    library.files.forget_users();
    library.batches.forget_users();
    let _ = HELD.try_with(Cell::take);
}
