//! The library's pool of host memory, as far as it limits the I/Os of batches in flight.
//!
//! In compatibility mode each I/O of a batch takes a buffer of the pool, and a submit that finds
//! none waits forever, without a log message: reported by users of ai-dynamo/nixl (issue 2070) with
//! batches of 128 and the pool's 64 buffers of 1 MiB. So gpuio counts the buffers in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Map, Value};

use crate::cufile::calls::InterfaceAbsent;
use crate::cufile::driver::Driver;

/// Default lengths of the pool's buffers in KiB and their numbers, as in release 1.15; for the last
/// one the documentation names 32 as well as 64.
const SIZES_KIB: [u64; 3] = [4, 1024, 16384];
const COUNTS: [u64; 3] = [128, 64, 32];

/// A reserved share of the pool, released when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    taken: Arc<AtomicU32>,
    count: u32,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // A count; it orders nothing else.
        self.taken.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// The pool by the configuration's keys: buffers per class, and the class of a block.
#[derive(Debug, PartialEq, Eq)]
struct Pool {
    counts: Vec<u64>,
    class: usize,
}

impl Pool {
    /// The pool for blocks of `block` bytes: the smallest class that holds them.
    fn of(keys: &Map<String, Value>, block: usize) -> Pool {
        let list = |key: &str, else_: &[u64]| -> Vec<u64> {
            let named = keys.get("properties").and_then(|group| group.get(key));
            let named = named.and_then(Value::as_array);
            named.map_or(else_.to_vec(), |list| list.iter().filter_map(Value::as_u64).collect())
        };
        let sizes = list("posix_pool_slab_size_kb", &SIZES_KIB);
        let counts = list("posix_pool_slab_count", &COUNTS);
        let fits = sizes.iter().position(|kib| kib.saturating_mul(1024) >= block as u64);
        let last = counts.len().saturating_sub(1);
        Pool { class: fits.unwrap_or(last).min(last), counts }
    }

    fn buffers(&self) -> u32 {
        let count = self.counts.get(self.class).copied().unwrap_or(0);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The counts with `wanted` buffers of the class, in the configuration's form.
    fn enlarged(&self, wanted: u32) -> String {
        let mut counts = self.counts.clone();
        match counts.get_mut(self.class) {
            Some(count) => *count = u64::from(wanted),
            None => counts.push(u64::from(wanted)),
        }
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        format!("[{}]", counts.join(","))
    }
}

/// Reserves `count` buffers, if the pool has as many.
fn grant(
    taken: &Arc<AtomicU32>,
    count: u32,
    block: usize,
    pool: Option<&Pool>,
) -> Result<Reservation, InterfaceAbsent> {
    let others = taken.fetch_add(count, Ordering::Relaxed);
    // Dropping it undoes this if the reservation is refused below.
    let reservation = Reservation { taken: Arc::clone(taken), count };
    let wanted = others.saturating_add(count);
    match pool {
        Some(pool) if wanted > pool.buffers() => Err(InterfaceAbsent::Pool {
            requested: count,
            others,
            buffers: pool.buffers(),
            block,
            counts: pool.enlarged(wanted),
        }),
        _ => Ok(reservation),
    }
}

/// Whether a key of this name, in any group, is true.
fn any_true(keys: &Map<String, Value>, name: &str) -> bool {
    keys.iter().any(|(key, value)| match value {
        Value::Object(group) => any_true(group, name),
        value => key == name && value.as_bool() == Some(true),
    })
}

impl Driver {
    /// Reserves `count` I/Os of `block` bytes in flight, if the pool limits them.
    pub(crate) fn reserve(&self, count: u32, block: usize) -> Result<Reservation, InterfaceAbsent> {
        grant(self.batched(), count, block, self.pool(block).as_ref())
    }

    /// The pool that batches share, if they use it: with NVIDIA's library without its kernel module
    /// and without peer-to-peer DMA.
    fn pool(&self, block: usize) -> Option<Pool> {
        let keys = self.environment().map(|environment| environment.keys.clone());
        let keys = keys.unwrap_or_default();
        let around = self.facts().nvidia_fs.is_some() || any_true(&keys, "use_pci_p2pdma");
        (!self.is_stand_in() && !around).then(|| Pool::of(&keys, block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_block_takes_a_buffer_of_the_smallest_class_that_holds_it() {
        let buffers = |keys: &Map<String, Value>, block| Pool::of(keys, block).buffers();
        let plain = keys("{}");
        let actual =
            [1, 4096, 4097, 1 << 20, (1 << 20) + 1, 64 << 20].map(|len| buffers(&plain, len));
        assert_eq!(actual, [128, 128, 64, 64, 32, 32]);
        let set = keys(
            "{\"properties\": {\"posix_pool_slab_size_kb\": [64, 2048], \
             \"posix_pool_slab_count\": [7, 300]}}",
        );
        assert_eq!([65536, 65537, 1 << 30].map(|len| buffers(&set, len)), [7, 300, 300]);
        let none = keys("{\"properties\": {\"posix_pool_slab_count\": []}}");
        assert_eq!((buffers(&none, 1), Pool::of(&none, 1).enlarged(9)), (0, "[9]".into()));
    }

    #[test]
    fn what_all_batches_have_under_way_stays_within_the_pool() {
        let (taken, pool) = (Arc::default(), Pool::of(&keys("{}"), 65536));
        let first = grant(&taken, 40, 65536, Some(&pool)).unwrap();
        let text = grant(&taken, 25, 65536, Some(&pool)).unwrap_err().to_string();
        for words in ["25 I/Os", "with 40 of", "the 64 buffers", "slab_count=[128,65,32]"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let second = grant(&taken, 24, 65536, Some(&pool)).unwrap();
        drop(first);
        let third = grant(&taken, 40, 65536, Some(&pool)).unwrap();
        drop((second, third));
        assert_eq!(taken.load(Ordering::Relaxed), 0);
        assert!(grant(&taken, 4000, 65536, None).is_ok(), "what goes round the pool is not bound");
    }

    #[test]
    fn peer_to_peer_is_seen_in_any_group() {
        assert!(any_true(&keys("{\"a\": {\"b\": {\"use_p\": true}}}"), "use_p"));
        assert!(!any_true(&keys("{\"a\": {\"use_p\": false}, \"use\": true}"), "use_p"));
    }
}
