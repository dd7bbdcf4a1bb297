//! The library's pool of host memory, as far as it bounds what batches may have under way.
//!
//! In compatibility mode each I/O of a batch takes a buffer of the pool, and a submit that finds
//! none waits for ever, without a word in its log: seen by users of ai-dynamo/nixl (issue 2070)
//! with batches of 128 and the pool's 64 buffers of 1 MiB. So what is asked of it is counted here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Map, Value};

use crate::calls::Unavailable;
use crate::driver::Driver;

/// Lengths of the pool's buffers in KiB, and how many there are of each, where the configuration
/// does not say: those of release 1.15; of the last the documentation names 32 as well as 64.
const SIZES_KIB: [u64; 3] = [4, 1024, 16384];
const COUNTS: [u64; 3] = [128, 64, 32];

/// A share of the pool, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    taken: Arc<AtomicU32>,
    count: u32,
}

impl Drop for Room {
    fn drop(&mut self) {
        // A count; it orders nothing else.
        self.taken.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// Buffers of the pool for blocks of `block` bytes by these keys.
fn buffers(keys: &Map<String, Value>, block: usize) -> u32 {
    let list = |key: &str, else_: &[u64]| -> Vec<u64> {
        let named = keys.get("properties").and_then(|group| group.get(key));
        let named = named.and_then(Value::as_array);
        named.map_or(else_.to_vec(), |list| list.iter().filter_map(Value::as_u64).collect())
    };
    let sizes = list("posix_pool_slab_size_kb", &SIZES_KIB);
    let counts = list("posix_pool_slab_count", &COUNTS);
    let fits = sizes.iter().position(|kib| kib.saturating_mul(1024) >= block as u64);
    let count = counts.get(fits.unwrap_or(sizes.len().saturating_sub(1))).or(counts.last());
    count.map_or(0, |&count| u32::try_from(count).unwrap_or(u32::MAX))
}

/// Whether a key of this name, in any group, is true.
fn any_true(keys: &Map<String, Value>, name: &str) -> bool {
    keys.iter().any(|(key, value)| match value {
        Value::Object(group) => any_true(group, name),
        value => key == name && value.as_bool() == Some(true),
    })
}

impl Driver {
    /// Grants `count` I/Os of `block` bytes under way, where the pool bounds them.
    pub(crate) fn room(&self, count: u32, block: usize) -> Result<Room, Unavailable> {
        let taken = Arc::clone(self.batched());
        let others = taken.fetch_add(count, Ordering::Relaxed);
        let room = Room { taken, count };
        let wanted = others.saturating_add(count);
        match self.pool_buffers(block) {
            Some(buffers) if wanted > buffers => {
                Err(Unavailable::Pool { asked: count, others, room: buffers, block, wanted })
            }
            _ => Ok(room),
        }
    }

    /// Buffers that batches share, where they go through the pool: NVIDIA's library without its
    /// kernel module and without peer-to-peer DMA.
    fn pool_buffers(&self, block: usize) -> Option<u32> {
        let keys = self.environment().map(|environment| environment.keys.clone());
        let keys = keys.unwrap_or_default();
        let around = self.facts().nvidia_fs.is_some() || any_true(&keys, "use_pci_p2pdma");
        (!self.is_stand_in() && !around).then(|| buffers(&keys, block))
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
        let plain = keys("{}");
        let got = [1, 4096, 4097, 1 << 20, (1 << 20) + 1, 64 << 20].map(|len| buffers(&plain, len));
        assert_eq!(got, [128, 128, 64, 64, 32, 32]);
        let set = keys(
            "{\"properties\": {\"posix_pool_slab_size_kb\": [64, 2048], \
             \"posix_pool_slab_count\": [7, 300]}}",
        );
        assert_eq!([65536, 65537, 1 << 30].map(|len| buffers(&set, len)), [7, 300, 300]);
        assert_eq!(buffers(&keys("{\"properties\": {\"posix_pool_slab_count\": []}}"), 1), 0);
    }

    #[test]
    fn peer_to_peer_is_seen_in_any_group() {
        assert!(any_true(&keys("{\"a\": {\"b\": {\"use_p\": true}}}"), "use_p"));
        assert!(!any_true(&keys("{\"a\": {\"use_p\": false}, \"use\": true}"), "use_p"));
    }
}
