//! The files that have a spare descriptor ([`super::kept`]), the oldest first.

use std::collections::VecDeque;
use std::sync::{Mutex, Weak};

use super::{OpenFile, kept};

/// Whoever does not get it at once does without: in a child of `fork(2)` a thread of the parent may
/// have it for ever.
static FILES: Mutex<VecDeque<Weak<OpenFile>>> = Mutex::new(VecDeque::new());

/// Most that are looked at in one call.
const STEPS: usize = 64;

pub(super) fn add(file: &Weak<OpenFile>) {
    if let Ok(mut files) = FILES.try_lock() {
        files.push_back(Weak::clone(file));
    }
}

/// Closes spares that nobody uses, the oldest first, until there are not too many any more.
pub(super) fn close_those_too_many() {
    close(STEPS, || kept::spares_too_many() > 0);
}

/// Closes all that nobody uses.
pub(super) fn close_all_unused() {
    close(usize::MAX, || true);
}

fn close(steps: usize, goes_on: impl Fn() -> bool) {
    let Ok(mut files) = FILES.try_lock() else { return };
    for _ in 0..files.len().min(steps) {
        if !goes_on() {
            return;
        }
        let Some(file) = files.pop_front() else { return };
        if let Some(open) = file.upgrade() {
            open.close_unused_spares();
            if open.has_spares() {
                files.push_back(file);
            }
        }
    }
}
