//! loom's atomics, with sequentially consistent accesses.
//!
//! loom takes `SeqCst` of an access for `AcqRel`, which is weaker than it is, and knows it for
//! fences only. So a sequentially consistent load that comes behind such a store of its thread has
//! a fence before it, unless a weaker store came between, which a fence would order too. That is
//! what such accesses are for here: of two threads that each store, then load what the other
//! stores, one sees the other. Independent readers of independent writers may see more here than
//! C11 allows.
//!
//! A store is a swap: loom 0.7 may put an addition before a store that it is not in order with, and
//! yet have the store's own thread read the sum afterwards, which C11 does not allow ("coherent" in
//! `litmus.rs`).

use std::collections::HashMap;
pub use std::sync::atomic::Ordering;

use Ordering::{AcqRel, Acquire, Release, SeqCst};

loom::thread_local! {
    /// This thread's last store was a sequentially consistent one, and no such load came behind it.
    static STORED: std::cell::Cell<bool> = std::cell::Cell::new(false);
}

fn store_order(order: Ordering) -> Ordering {
    STORED.with(|stored| stored.set(order == SeqCst));
    if order == SeqCst { Release } else { order }
}

fn load_order(order: Ordering) -> Ordering {
    if order == SeqCst {
        STORED.with(|stored| {
            if stored.replace(false) {
                fence(SeqCst);
            }
        });
        return Acquire;
    }
    order
}

/// The order of an access that does both: it loads the last value in any case.
fn both_order(order: Ordering) -> Ordering {
    STORED.with(|stored| stored.set(order == SeqCst));
    if order == SeqCst { AcqRel } else { order }
}

/// The order of an access that is a store where it changed the word, and a load where it did not.
fn changed<T>(done: Ordering, result: Result<T, T>) -> Result<T, T> {
    if result.is_ok() {
        STORED.with(|stored| stored.set(done == SeqCst));
    }
    result
}

pub fn fence(order: Ordering) {
    loom::sync::atomic::fence(order);
}

macro_rules! atomic {
    ($($name:ident: $value:ty { $($change:ident)* })*) => {$(
        #[derive(Debug)]
        pub struct $name(loom::sync::atomic::$name);

        impl $name {
            pub fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            pub fn load(&self, order: Ordering) -> $value {
                self.0.load(load_order(order))
            }

            pub fn store(&self, value: $value, order: Ordering) {
                self.0.swap(value, store_order(order));
            }

            /// A store that is no swap, and so hands nothing on that an earlier store released: for
            /// a word whose changes are all in order.
            pub fn set(&self, value: $value, order: Ordering) {
                self.0.store(value, store_order(order));
            }

            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.0.swap(value, both_order(order))
            }

            pub fn compare_exchange(
                &self,
                before: $value,
                after: $value,
                done: Ordering,
                refused: Ordering,
            ) -> Result<$value, $value> {
                let refused = load_order(refused);
                let order = if done == SeqCst { AcqRel } else { done };
                changed(done, self.0.compare_exchange(before, after, order, refused))
            }

            pub fn fetch_update(
                &self,
                done: Ordering,
                refused: Ordering,
                change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let refused = load_order(refused);
                let order = if done == SeqCst { AcqRel } else { done };
                changed(done, self.0.fetch_update(order, refused, change))
            }

            $(pub fn $change(&self, value: $value, order: Ordering) -> $value {
                self.0.$change(value, both_order(order))
            })*
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(Default::default())
            }
        }
    )*};
}

atomic! {
    AtomicBool: bool {}
    AtomicU32: u32 { fetch_add fetch_sub fetch_or fetch_and fetch_max fetch_min }
    AtomicU64: u64 { fetch_add fetch_sub fetch_or fetch_and fetch_max fetch_min }
    AtomicUsize: usize { fetch_add fetch_sub }
}

loom::lazy_static! {
    /// Words of memory that is shared with a device, by their addresses.
    static ref WORDS: std::sync::Mutex<HashMap<usize, &'static AtomicU32>> = Default::default();
}

impl AtomicU32 {
    /// The word at an address, which nothing is read from. It holds 0 at first, so whoever makes
    /// the memory has to touch its words before others do.
    ///
    /// # Safety
    /// None is needed here.
    pub unsafe fn from_ptr(word: *mut u32) -> &'static AtomicU32 {
        let mut words = WORDS.lock().unwrap();
        words.entry(word.addr()).or_insert_with(|| Box::leak(Box::new(AtomicU32::new(0))))
    }
}
