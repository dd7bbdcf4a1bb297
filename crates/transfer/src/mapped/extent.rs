//! One extent: a part of a file that the GPU reads in the page cache by itself.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use gpuio_gpu::{DevPtr, MappedFile};

use super::users::Users;

/// Bytes of an extent. A shorter one would cost more registrations; a longer one would hold up
/// other users of the driver for longer while it is registered (50 µs for each MiB, H100).
pub(crate) const EXTENT: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct Registered {
    pub(super) file: MappedFile,
    /// The first byte as kernels of the device see it.
    pub(super) device_ptr: DevPtr,
    /// The state of the device that knows it.
    pub(super) serial: u32,
    /// Whether the file ends where the extent does.
    pub(super) ends_file: bool,
}

/// An extent's state. One thread, the mapper, changes what it holds.
#[derive(Debug, Default)]
pub(super) struct ExtentCell {
    /// Bytes that were read from the page cache while it was not mapped.
    heat: AtomicU64,
    /// The last use, in steps of [`super::tick`].
    last_used: AtomicU32,
    /// Taken when it is first mapped. Never freed, but used again for other extents.
    users: OnceLock<&'static Users>,
    registered: UnsafeCell<Option<Registered>>,
}

// SAFETY: `registered` is written by the mapper alone, while the extent is closed and has no users,
// and read by users, who keep it from being written: see `Users`.
unsafe impl Sync for ExtentCell {}
// SAFETY: all it holds is.
unsafe impl Send for ExtentCell {}

/// A use of an extent. It is not retired before this is dropped.
#[derive(Debug)]
pub(crate) struct ExtentUse {
    pub(super) users: &'static Users,
    pub(super) shard: usize,
    /// Its bytes in the file.
    pub(crate) part: Range<u64>,
    /// The first byte, for copies by the driver. The host never reads it.
    pub(crate) at: *const u8,
    /// The first byte as kernels see it.
    pub(crate) device_ptr: DevPtr,
    pub(crate) ends_file: bool,
}

// SAFETY: the pointer is an address for the driver; the count may be left by any thread.
unsafe impl Send for ExtentUse {}

impl Drop for ExtentUse {
    fn drop(&mut self) {
        self.users.leave(self.shard);
    }
}

impl ExtentCell {
    /// Begins a use, if it is mapped for this state of a device. `tick` is now.
    pub(super) fn enter(&self, serial: u32, tick: u32) -> Option<ExtentUse> {
        let users = *self.users.get()?;
        let shard = users.enter()?;
        // SAFETY: the users keep the mapper from writing.
        let registered = unsafe { &*self.registered.get() }.as_ref();
        let Some(registered) = registered.filter(|one| one.serial == serial) else {
            users.leave(shard);
            return None;
        };
        if self.last_used.load(Ordering::Relaxed) != tick {
            self.last_used.store(tick, Ordering::Relaxed);
        }
        Some(ExtentUse {
            users,
            shard,
            part: registered.file.part(),
            at: registered.file.as_ptr(),
            device_ptr: registered.device_ptr,
            ends_file: registered.ends_file,
        })
    }

    /// Counts bytes that were read from the page cache; true when they reach `hot`.
    pub(super) fn heats(&self, bytes: u64, hot: u64) -> bool {
        let before = self.heat.fetch_add(bytes, Ordering::Relaxed);
        before < hot && before.saturating_add(bytes) >= hot
    }

    /// Counts from 0 again.
    pub(super) fn cool(&self) {
        self.heat.store(0, Ordering::Relaxed);
    }

    pub(super) fn last_used(&self) -> u32 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// Whether users can enter.
    pub(super) fn is_open(&self) -> bool {
        self.users.get().is_some_and(|users| users.is_open())
    }

    /// From now on no thread enters.
    pub(super) fn close(&self) {
        if let Some(users) = self.users.get() {
            users.close();
        }
    }

    /// Puts in what was registered; the extent stays closed. Returns it if the extent holds
    /// something, or may have users.
    ///
    /// # Safety
    /// Only the mapper calls it.
    pub(super) unsafe fn put(&self, registered: Registered, tick: u32) -> Result<(), Registered> {
        let users = self.users.get_or_init(unused_users);
        if users.is_open() || !users.is_idle() {
            return Err(registered);
        }
        // SAFETY: closed, without users, and only the caller writes.
        let cell = unsafe { &mut *self.registered.get() };
        if cell.is_some() {
            return Err(registered);
        }
        *cell = Some(registered);
        self.last_used.store(tick, Ordering::Relaxed);
        Ok(())
    }

    /// Lets users in.
    pub(super) fn open(&self) {
        if let Some(users) = self.users.get() {
            users.open();
        }
    }

    /// Takes out what a closed extent holds; `None` if it is open, has users or holds nothing.
    ///
    /// # Safety
    /// Only the mapper calls it.
    pub(super) unsafe fn take(&self) -> Option<Registered> {
        let users = self.users.get()?;
        if users.is_open() || !users.is_idle() {
            return None;
        }
        // SAFETY: closed, without users, and only the caller writes.
        unsafe { &mut *self.registered.get() }.take()
    }

    /// Whether it holds something, open or not, by the count of its users.
    ///
    /// # Safety
    /// Only the mapper calls it.
    pub(super) unsafe fn holds(&self) -> bool {
        // SAFETY: only the mapper writes, and it is the caller.
        unsafe { &*self.registered.get() }.is_some()
    }

    /// Takes out what it holds. The caller alone has the cell, so no user enters; copies in
    /// streams may still be users.
    pub(super) fn end(&mut self) -> Option<Ended> {
        let users = self.users.take()?;
        users.close();
        let registered = self.registered.get_mut().take();
        if registered.is_none() && users.is_idle() {
            unused().push(users);
        }
        registered.map(|registered| Ended { registered, users })
    }
}

/// The mapping and the user counts of an extent whose file ended.
#[derive(Debug)]
pub(super) struct Ended {
    registered: Registered,
    users: &'static Users,
}

impl Ended {
    /// Whether it has no users left.
    pub(super) fn is_idle(&self) -> bool {
        self.users.is_idle()
    }

    /// The mapping, to be retired. It has no users left.
    pub(super) fn into_registered(self) -> Registered {
        unused().push(self.users);
        self.registered
    }
}

/// Counts that no extent uses.
fn unused() -> MutexGuard<'static, Vec<&'static Users>> {
    static UNUSED: Mutex<Vec<&'static Users>> = Mutex::new(Vec::new());
    UNUSED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unused_users() -> &'static Users {
    unused().pop().unwrap_or_else(|| Box::leak(Box::new(Users::new())))
}
