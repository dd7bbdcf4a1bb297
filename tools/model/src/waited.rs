//! First uses of an allocation: `crates/transfer/src/device/waited.rs`.

use std::convert::Infallible;
use std::sync::Arc;

use loom::thread;

use self::source::WaitedAllocations;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Guarded, Mutex};
use crate::{Row, breaks, holds, often};

#[path = "../../../crates/transfer/src/device/waited.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod source;

pub const ROWS: &[Row] = &[
    holds("each of two first users finds the operation ended", || first_use(2, by_number)),
    holds("and one beside another library's", || first_use(1, by_number)),
    breaks("an attribute that is set stands for no wait", "ausality", || {
        first_use(2, by_attribute);
    }),
];

/// Memory with an operation under way, and the driver's view of it.
struct Memory {
    waited: WaitedAllocations,
    /// The attribute, which this driver shows before the wait has ended.
    attribute: AtomicBool,
    ended: Mutex<bool>,
    changed: Condvar,
    holds: Guarded<u32>,
}

/// The driver's steps when the attribute is set.
fn sets(memory: &Memory) -> Result<bool, Infallible> {
    memory.attribute.store(true, Ordering::Release);
    let ended = memory.ended.lock().unwrap();
    drop(memory.changed.wait_while(ended, |ended| !*ended));
    Ok(true)
}

fn by_number(memory: &Memory) {
    let is_set = memory.attribute.load(Ordering::Acquire);
    assert_eq!(memory.waited.ensure(7, is_set, || sets(memory)), Ok(true));
}

fn by_attribute(memory: &Memory) {
    if !memory.attribute.load(Ordering::Acquire) {
        assert_eq!(sets(memory), Ok(true));
    }
}

/// Uses by `users` threads, beside one of another library's that only sets the attribute.
fn first_use(users: usize, prepares: fn(&Memory)) {
    often(move || {
        let memory = Arc::new(Memory {
            waited: WaitedAllocations::new(),
            attribute: AtomicBool::new(false),
            ended: Mutex::new(false),
            changed: Condvar::new(),
            holds: Guarded::new(1),
        });
        let mut threads = Vec::new();
        if users == 1 {
            let theirs = Arc::clone(&memory);
            threads.push(thread::spawn(move || sets(&theirs).map(|_| 2).unwrap_or(0)));
        }
        for _ in 0..users {
            let theirs = Arc::clone(&memory);
            threads.push(thread::spawn(move || {
                prepares(&theirs);
                // SAFETY: whether the operation still writes it is what the model checks.
                unsafe { *theirs.holds.read() }
            }));
        }
        // SAFETY: as above.
        unsafe { *memory.holds.write() = 2 };
        *memory.ended.lock().unwrap() = true;
        memory.changed.notify_all();
        for user in threads {
            assert_eq!(user.join().unwrap(), 2);
        }
    });
}
