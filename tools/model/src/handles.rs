//! Handles of files: `crates/dropin/src/handles.rs`.

use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use self::source::{Free, Table};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Guarded, sleep};
use crate::{Row, holds};

#[path = "../../../crates/dropin/src/handles.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod source;

pub const ROWS: &[Row] = &[
    holds("an entry that is held is not taken out", held),
    holds("two users and a closer", two_users).slow(),
    holds("a handle given back leads to nothing, also in a slot used again", again),
    holds("one of two closers closes", closers),
    holds("a handle that came to a thread in no order leads to the whole entry or to none", early),
];

/// The entry that a handle leads to: its number, and a place that is written when it is taken out.
type Entry = (u32, Guarded<bool>);

fn table() -> (Arc<Table<Arc<Entry>>>, Free) {
    (Arc::new(Table::new()), Free::default())
}

fn entry(number: u32) -> Arc<Entry> {
    Arc::new((number, Guarded::new(true)))
}

/// As the library does: uses the entry while it is held.
fn uses(table: &Table<Arc<Entry>>, handle: usize, number: u32) -> bool {
    let Some(held) = table.hold(std::ptr::without_provenance_mut(handle)) else {
        return false;
    };
    assert_eq!(held.0, number, "another handle's entry");
    // SAFETY: whoever takes the entry out waits for this.
    assert!(unsafe { *held.1.read() }, "used after it was taken out");
    true
}

fn close(table: &Table<Arc<Entry>>, free: &mut Free, handle: usize) -> bool {
    let Some(closing) = table.close(std::ptr::without_provenance_mut(handle)) else {
        return false;
    };
    closing.wait(|| ());
    let entry = closing.finish(free).expect("an open slot has an entry");
    // SAFETY: nobody uses it any more.
    unsafe { *entry.1.write() = false };
    true
}

fn users(count: usize) {
    loom::model(move || {
        let (table, mut free) = table();
        let handle = table.open(&mut free, entry(1)).unwrap().addr();
        let users: Vec<_> = (0..count)
            .map(|_| {
                let table = Arc::clone(&table);
                thread::spawn(move || uses(&table, handle, 1))
            })
            .collect();
        assert!(close(&table, &mut free, handle));
        let _: Vec<bool> = users.into_iter().map(|user| user.join().unwrap()).collect();
        assert!(!uses(&table, handle, 1), "found after it was closed");
    });
}

fn held() {
    users(1);
}

fn two_users() {
    users(2);
}

fn again() {
    loom::model(|| {
        let (table, mut free) = table();
        let first = table.open(&mut free, entry(1)).unwrap().addr();
        let theirs = Arc::clone(&table);
        let user = thread::spawn(move || {
            uses(&theirs, first, 1);
            uses(&theirs, first, 1)
        });
        assert!(close(&table, &mut free, first));
        let second = table.open(&mut free, entry(2)).unwrap().addr();
        assert_ne!(first, second);
        assert!(uses(&table, second, 2));
        assert!(close(&table, &mut free, second));
        user.join().unwrap();
    });
}

fn closers() {
    loom::model(|| {
        let (table, mut free) = table();
        let handle = table.open(&mut free, entry(1)).unwrap().addr();
        let theirs = Arc::clone(&table);
        // Who closes holds a lock for the list of free slots, and nothing more.
        let lock = Arc::new(crate::sync::Mutex::new(free));
        let other_lock = Arc::clone(&lock);
        let closes = move |table: &Table<Arc<Entry>>, lock: &crate::sync::Mutex<Free>| {
            let Some(closing) = table.close(std::ptr::without_provenance_mut(handle)) else {
                return false;
            };
            closing.wait(|| sleep(Duration::ZERO));
            let entry = closing.finish(&mut lock.lock().unwrap());
            assert!(entry.is_some(), "taken out twice");
            true
        };
        let other = thread::spawn(move || closes(&theirs, &other_lock));
        let mine = closes(&table, &lock);
        assert!(mine ^ other.join().unwrap());
    });
}

fn early() {
    loom::model(|| {
        let (table, mut free) = table();
        // The slot is there, and free.
        let handle = table.open(&mut free, entry(1)).unwrap().addr();
        assert!(close(&table, &mut free, handle));
        let place = Arc::new(AtomicUsize::new(0));
        let (theirs, sent) = (Arc::clone(&table), Arc::clone(&place));
        let user = thread::spawn(move || {
            let handle = sent.load(Ordering::Relaxed);
            handle != 0 && uses(&theirs, handle, 2)
        });
        let handle = table.open(&mut free, entry(2)).unwrap().addr();
        place.store(handle, Ordering::Relaxed);
        user.join().unwrap();
    });
}
