//! Users of mapped extents: `crates/transfer/src/mapped/users.rs`.

use std::sync::Arc;

use loom::thread;

use self::source::Users;
use crate::sync::{Guarded, yield_now};
use crate::{Row, holds};

#[path = "../../../crates/transfer/src/mapped/users.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod source;

pub const ROWS: &[Row] = &[
    holds("what users read is not taken out before they leave", taken_out),
    holds("of two users each keeps the extent", two_users).slow(),
    holds("a user of an extent that was used again sees what it holds now", used_again),
];

/// An extent: its users, and what it holds, which only they and the mapper touch.
struct Extent {
    users: Users,
    holds: Guarded<u32>,
}

fn open(holds: u32) -> Arc<Extent> {
    let extent = Extent { users: Users::new(), holds: Guarded::new(holds) };
    extent.users.open();
    Arc::new(extent)
}

/// A read: what the extent held, if it was open.
fn reads(extent: &Extent) -> Option<u32> {
    let shard = extent.users.enter()?;
    // SAFETY: whether another thread writes it now is what the model checks.
    let held = unsafe { *extent.holds.read() };
    extent.users.leave(shard);
    Some(held)
}

/// The steps of the mapper: closes the extent, waits, and puts in something else.
fn replaces(extent: &Extent, holds: u32) {
    extent.users.close();
    while !extent.users.is_idle() {
        yield_now();
    }
    // SAFETY: as above.
    unsafe { *extent.holds.write() = holds };
}

fn taken_out() {
    loom::model(|| {
        let extent = open(1);
        let theirs = Arc::clone(&extent);
        let user = thread::spawn(move || reads(&theirs));
        replaces(&extent, 2);
        assert_ne!(user.join().unwrap(), Some(2), "closed, and yet entered");
    });
}

fn two_users() {
    loom::model(|| {
        let extent = open(1);
        let users = [0, 1].map(|_| {
            let theirs = Arc::clone(&extent);
            thread::spawn(move || reads(&theirs))
        });
        replaces(&extent, 2);
        for user in users {
            assert_ne!(user.join().unwrap(), Some(2));
        }
    });
}

fn used_again() {
    loom::model(|| {
        let extent = open(1);
        let theirs = Arc::clone(&extent);
        let user = thread::spawn(move || reads(&theirs));
        replaces(&extent, 2);
        extent.users.open();
        assert_eq!(reads(&extent), Some(2));
        let held = user.join().unwrap();
        assert!(matches!(held, None | Some(1 | 2)), "{held:?}");
    });
}
