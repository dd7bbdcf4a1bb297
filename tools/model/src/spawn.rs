//! Starting the crate's threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

use loom::thread::JoinHandle;

use crate::sync::futex::{self, Over};

loom::lazy_static! {
    static ref STARTED: Mutex<Vec<JoinHandle<()>>> = Mutex::default();
}

/// As the crate's, which may fail; here it always succeeds.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    let thread = loom::thread::spawn(|| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work))
            && !panic.is::<Over>()
        {
            resume_unwind(panic);
        }
    });
    STARTED.lock().unwrap().push(thread);
    true
}

/// Ends threads that never return, once they have nothing to do. No other may be started during
/// this.
pub fn end_all() {
    futex::over();
    let started = std::mem::take(&mut *STARTED.lock().unwrap());
    started.into_iter().for_each(|thread| thread.join().unwrap());
}
