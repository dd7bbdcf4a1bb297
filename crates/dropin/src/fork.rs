//! What a child of `fork(2)` gets.
//!
//! A child has one thread, and the memory as it was: a lock that another thread held stays locked.
//! So the thread that forks takes our two locks first, and gives them back on both sides. CUDA does
//! not survive a fork, which is for the transfers to tell; what was registered stays known, and
//! calls on memory of the host work.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::buffers::MapGuard;
use crate::library::{self, Library, StateGuard};

/// In the order in which everybody takes them.
type Locks = (StateGuard<'static>, MapGuard<'static>);

/// Forks between the first process and this one. Whatever remembers it can tell that it is from
/// before.
static GENERATION: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The locks, from before the fork until after it, in the thread that forks.
    static HELD: Cell<Option<Locks>> = const { Cell::new(None) };
}

/// Which process of a line of forks this is.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Has the three below called round every fork from now on (`pthread_atfork(3)`).
pub(crate) fn install_handlers() {
    // SAFETY: the functions live as long as the process: the object is never unloaded. Without
    // memory for it, a fork may leave the child with a locked lock, and nothing else happens.
    let _ = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(inside)) };
}

unsafe extern "C" fn before() {
    // A driver that forks while this thread calls it with the lock held: its child runs another
    // program at once. To wait for the lock here would be to wait for ever.
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
