//! Registered buffers. Transfers need none: registration has its rules in the interface, saves the
//! query of the memory's location at each call, and is passed on to NVIDIA's library.
//!
//! Each thread reads its own copy of the map and drops it when a version counter has changed: a
//! read takes no lock and writes nothing shared.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpuio_transfer::MemoryLocation;

use crate::code::{
    CallError, INVALID_MAPPING_RANGE, MEMORY_ALREADY_REGISTERED, MEMORY_NOT_REGISTERED,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub(crate) len: usize,
    /// The GPU of its memory, if any.
    pub(crate) gpu: Option<u32>,
    /// Its memory's location, which stays valid while it is registered, by the interface.
    pub(crate) location: Option<MemoryLocation>,
}

type Map = BTreeMap<u64, Buffer>;
/// The map, locked.
pub(crate) type MapGuard<'b> = MutexGuard<'b, Arc<Map>>;

/// All buffers, by base.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    map: Mutex<Arc<Map>>,
    /// Changes with the map.
    version: AtomicU64,
}

thread_local! {
    /// The map that this thread saw last, and its version.
    static SEEN: Cell<Option<(u64, Arc<Map>)>> = const { Cell::new(None) };
}

impl Buffers {
    pub(crate) fn lock(&self) -> MapGuard<'_> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the map, then the version: who reads the new version finds the new map.
    fn change<T>(&self, change: impl FnOnce(&mut Map) -> T) -> T {
        let mut map = self.lock();
        let result = change(Arc::make_mut(&mut map));
        self.version.fetch_add(1, Ordering::Release);
        result
    }

    pub(crate) fn register(&self, base: u64, buffer: Buffer) -> Result<(), CallError> {
        self.change(|map| match map.entry(base) {
            std::collections::btree_map::Entry::Occupied(_) => {
                Err(MEMORY_ALREADY_REGISTERED.into())
            }
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(buffer);
                Ok(())
            }
        })
    }

    pub(crate) fn deregister(&self, base: u64) -> Result<Buffer, CallError> {
        self.change(|map| map.remove(&base)).ok_or(CallError::from(MEMORY_NOT_REGISTERED))
    }

    /// Removes all buffers and returns them.
    pub(crate) fn clear(&self) -> BTreeMap<u64, Buffer> {
        self.change(std::mem::take)
    }

    /// Bytes registered on a GPU.
    pub(crate) fn bytes_on(&self, gpu: u32) -> u64 {
        let map = self.lock();
        map.values().filter(|one| one.gpu == Some(gpu)).map(|one| one.len as u64).sum()
    }

    /// Refuses a range that begins at a registered base and is longer than its buffer. Any other
    /// base is accepted, even one inside a registered buffer. Returns the memory's location for a
    /// registered base.
    pub(crate) fn check(
        &self,
        base: u64,
        offset: u64,
        len: usize,
    ) -> Result<Option<MemoryLocation>, CallError> {
        let version = self.version.load(Ordering::Acquire);
        if version == 0 {
            return Ok(None);
        }
        let seen = SEEN.try_with(Cell::take).ok().flatten();
        let (version, map) = match seen {
            Some((known, map)) if known == version => (known, map),
            // A map newer than the version does no harm: it is copied once more.
            _ => (version, Arc::clone(&self.lock())),
        };
        let buffer = map.get(&base).copied();
        let fits = buffer.is_none_or(|buffer| {
            let end = offset.checked_add(len as u64);
            end.is_some_and(|end| end <= buffer.len as u64)
        });
        let location = buffer.and_then(|buffer| buffer.location);
        let _ = SEEN.try_with(|seen| seen.set(Some((version, map))));
        if fits { Ok(location) } else { Err(INVALID_MAPPING_RANGE.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_bases_and_lengths() {
        let buffers = Buffers::default();
        assert_eq!(buffers.check(0x1000, 0, 1 << 40), Ok(None));
        let buffer = Buffer { len: 4096, gpu: Some(0), location: None };
        assert_eq!(buffers.register(0x1000, buffer), Ok(()));
        assert_eq!(buffers.register(0x1000, buffer), Err(MEMORY_ALREADY_REGISTERED.into()));
        // A base inside another buffer is a buffer of its own.
        assert_eq!(
            buffers.register(0x1800, Buffer { len: 8192, gpu: None, location: None }),
            Ok(())
        );
        assert_eq!((buffers.bytes_on(0), buffers.bytes_on(1)), (4096, 0));
        assert_eq!(buffers.check(0x1000, 96, 4000), Ok(None));
        assert_eq!(buffers.check(0x1000, 97, 4000), Err(INVALID_MAPPING_RANGE.into()));
        assert_eq!(buffers.check(0x1000, u64::MAX, 2), Err(INVALID_MAPPING_RANGE.into()));
        assert_eq!(buffers.check(0x1400, 0, 1 << 20), Ok(None));
        assert_eq!(buffers.deregister(0x1000).map(|one| one.len), Ok(4096));
        assert_eq!(buffers.deregister(0x1000), Err(MEMORY_NOT_REGISTERED.into()));
        assert_eq!(buffers.check(0x1000, 0, 1 << 20), Ok(None));
        assert_eq!(buffers.clear().len(), 1);
        assert_eq!(buffers.deregister(0x1800), Err(MEMORY_NOT_REGISTERED.into()));
    }
}
