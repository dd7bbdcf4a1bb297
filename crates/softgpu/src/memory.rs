//! Addresses and the memory behind them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

use crate::backing::{MemoryRange, Pages};
use crate::code::{ALREADY_REGISTERED, Answer, INVALID_VALUE, NOT_REGISTERED, OUT_OF_MEMORY};
use crate::device::Device;
use crate::managed::Managed;
use crate::undefined;

/// Where the addresses of devices begin. Linux puts nothing of a 64-bit program there: executables
/// lie above `0x5500_0000_0000`, libraries and mappings below `0x7fff_ffff_ffff`.
const FIRST: u64 = 0x0900_0000_0000;
/// Addresses of each device: the lower half for plain allocations, the upper for reservations.
const SPAN: u64 = 1 << 40;
/// Past the addresses of the 64th device.
const END: u64 = FIRST + 64 * SPAN;
/// Alignment of an allocation: what CUDA promises is 256; real ones are at least 512.
const ALIGN: u64 = 512;
/// Addresses left out after an allocation, so that a range too long reaches no neighbour.
const GUARD: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From `cuMemAlloc`.
    Device,
    /// From `cuMemAllocAsync`.
    Pool,
    /// Mapped by `cuMemMap`; `true` once access was granted.
    Mapped(bool),
    /// From `cuMemHostAlloc`.
    Pinned,
    /// Registered by `cuMemHostRegister`.
    Registered,
    /// From `cuMemAllocManaged`.
    Managed,
}

/// The facts about an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) kind: Kind,
    /// As in the range.
    pub(crate) context: usize,
}

/// Synchronous operations on an allocation that are in flight though their calls returned.
#[derive(Debug)]
pub(crate) struct MemOps {
    /// The allocation's number (`CU_POINTER_ATTRIBUTE_BUFFER_ID`).
    id: u64,
    /// The attribute `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`: such calls wait.
    synchronize: AtomicBool,
    pending: Mutex<u32>,
    ended: Condvar,
}

impl Default for MemOps {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let (synchronize, pending) = (AtomicBool::new(false), Mutex::new(0));
        Self { id, synchronize, pending, ended: Condvar::new() }
    }
}

impl MemOps {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Sets the attribute, and nothing more.
    pub(crate) fn mark(&self, on: bool) {
        self.synchronize.store(on, Ordering::Release);
    }

    /// Sets the attribute. On, it waits for what is in flight.
    pub(crate) fn synchronize(&self, on: bool) {
        self.mark(on);
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if on {
            drop(self.ended.wait_while(pending, |pending| *pending > 0));
        }
    }

    /// Whether the attribute is set.
    pub(crate) fn is_synchronized(&self) -> bool {
        self.synchronize.load(Ordering::Acquire)
    }

    /// One more in flight, until the answer is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> MemOp {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        MemOp(Arc::clone(self))
    }
}

/// One operation in flight.
#[derive(Debug)]
pub(crate) struct MemOp(Arc<MemOps>);

impl Drop for MemOp {
    fn drop(&mut self) {
        *self.0.pending.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.ended.notify_all();
    }
}

#[derive(Debug, Clone)]
struct Range {
    memops: Arc<MemOps>,
    len: u64,
    kind: Kind,
    /// The context that it was made in, by handle; 0 for pools and mappings.
    context: usize,
    /// Where the first byte lies in this process.
    at: *mut u8,
    pages: Option<Arc<Pages>>,
    managed: Option<Arc<Managed>>,
    /// Registered pages of a file.
    is_fickle: bool,
}

// SAFETY: it names memory and owns a share of pages, both free to cross threads.
unsafe impl Send for Range {}
// SAFETY: as for Send; nothing in it changes through a shared reference.
unsafe impl Sync for Range {}

impl Range {
    /// A range of no context, backed by nothing of ours.
    fn new(at: *mut u8, len: u64, kind: Kind) -> Self {
        let (context, is_fickle) = (0, false);
        let (memops, pages, managed) = (Arc::default(), None, None);
        Self { memops, len, kind, context, at, pages, managed, is_fickle }
    }
}

/// The device to which an address belongs, if to any.
pub(crate) fn owner(start: u64) -> Option<u32> {
    let inside = (FIRST..END).contains(&start).then(|| (start - FIRST) / SPAN)?;
    u32::try_from(inside).ok()
}

/// Every range of the driver, and where each device's next one goes.
#[derive(Debug)]
pub(crate) struct Memory {
    ranges: RwLock<BTreeMap<u64, Range>>,
    reserved: Mutex<BTreeMap<u64, u64>>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self { ranges: RwLock::default(), reserved: Mutex::default() }
    }

    /// Allocates device memory, of a context or of the pool (0).
    pub(crate) fn alloc(&self, device: &Device, context: usize, len: usize) -> Answer<u64> {
        if len == 0 {
            return Err(INVALID_VALUE);
        }
        let whole = len.checked_next_multiple_of(512).ok_or(OUT_OF_MEMORY)?;
        let pages = Arc::new(Pages::of_device(&device.budget, whole)?);
        let base = FIRST + u64::from(device.index) * SPAN;
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let taken = ranges.range(base..base + SPAN / 2).map(|(&start, range)| (start, range.len));
        let start = gap(taken, base, base + SPAN / 2, len as u64, ALIGN).ok_or(OUT_OF_MEMORY)?;
        let at = pages.start();
        let kind = if context == 0 { Kind::Pool } else { Kind::Device };
        let (len, pages) = (len as u64, Some(pages));
        ranges.insert(start, Range { context, pages, ..Range::new(at, len, kind) });
        Ok(start)
    }

    /// Allocates pinned host memory. For a length of 0 there is none and that is no error, as the
    /// CUDA driver has it.
    pub(crate) fn pin(&self, context: usize, len: usize) -> Answer<*mut u8> {
        if len == 0 {
            return Ok(std::ptr::null_mut());
        }
        // A real driver cuts small blocks out of larger ones, at multiples of 512 bytes and not
        // of a page: a program that relies on more fails here.
        const SMALL: usize = 1 << 20;
        const CUT: usize = 512;
        let off = if len < SMALL { CUT } else { 0 };
        let whole = len.checked_add(off).ok_or(OUT_OF_MEMORY)?;
        let pages = Arc::new(Pages::of_host(whole)?);
        let at = pages.start().wrapping_add(off);
        let (len, kind, pages) = (len as u64, Kind::Pinned, Some(pages));
        self.insert(at as u64, Range { context, pages, ..Range::new(at, len, kind) })?;
        Ok(at)
    }

    pub(crate) fn manage(&self, device: &Device, context: usize, len: usize) -> Answer<u64> {
        if len == 0 {
            return Err(INVALID_VALUE);
        }
        let managed = Managed::new(&device.budget, len)?;
        let at = managed.start();
        let (len, kind, managed) = (len as u64, Kind::Managed, Some(Arc::new(managed)));
        let range = Range { context, managed, ..Range::new(at, len, kind) };
        range.memops.synchronize(true);
        self.insert(at as u64, range)?;
        Ok(at as u64)
    }

    /// The managed memory that holds a range, and where in it that begins.
    pub(crate) fn managed(&self, start: u64, len: u64) -> Answer<(Arc<Managed>, usize)> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let (&first, range) = ranges.range(..=start).next_back().ok_or(INVALID_VALUE)?;
        let skip = start - first;
        let managed = range.managed.as_ref().ok_or(INVALID_VALUE)?;
        if len == 0 || skip.checked_add(len).is_none_or(|end| end > range.len) {
            return Err(INVALID_VALUE);
        }
        Ok((Arc::clone(managed), usize::try_from(skip).map_err(|_| INVALID_VALUE)?))
    }

    /// A range of managed memory as a kernel of `device` reaches it; `None` for other memory.
    pub(crate) fn managed_by_kernel(
        &self,
        device: u32,
        start: u64,
        len: u64,
    ) -> Option<Answer<MemoryRange>> {
        let (managed, skip) = self.managed(start, len).ok()?;
        let len = usize::try_from(len).map_err(|_| INVALID_VALUE);
        Some(len.and_then(|len| managed.by_kernel(device, skip, len)))
    }

    /// Takes host memory of the caller's as pinned. With `keeps`, the device sees the bytes of now
    /// for as long as it is registered. `is_fickle`: pages of a file.
    pub(crate) fn register(
        &self,
        context: usize,
        at: *mut u8,
        len: usize,
        (keeps, is_fickle): (bool, bool),
    ) -> Answer<()> {
        let start = at as u64;
        let inside = start < END && start.saturating_add(len as u64) > FIRST;
        if at.is_null() || len == 0 || inside {
            return Err(INVALID_VALUE);
        }
        let (at, pages) = if keeps {
            let pages = Arc::new(Pages::of_host(len)?);
            let kept = MemoryRange::new(pages.start(), Some(Arc::clone(&pages)));
            kept.copy_from(&MemoryRange { is_fickle, ..MemoryRange::new(at, None) }, len)?;
            (pages.start(), Some(pages))
        } else {
            (at, None)
        };
        let is_fickle = is_fickle && !keeps;
        let registered = Range::new(at, len as u64, Kind::Registered);
        let range = Range { context, pages, is_fickle, ..registered };
        self.insert(start, range).map_err(|_| ALREADY_REGISTERED)
    }

    /// Forgets what [`Memory::register`] took.
    pub(crate) fn unregister(&self, at: *mut u8) -> Answer<()> {
        self.remove(at as u64, |kind| kind == Kind::Registered).map_err(|_| NOT_REGISTERED)?;
        Ok(())
    }

    pub(crate) fn reserve(&self, device: &Device, len: u64, align: u64) -> Answer<u64> {
        let base = FIRST + u64::from(device.index) * SPAN + SPAN / 2;
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = reserved.range(base..base + SPAN / 2).map(|(&start, &len)| (start, len));
        let start = gap(taken, base, base + SPAN / 2, len, align).ok_or(OUT_OF_MEMORY)?;
        reserved.insert(start, len);
        Ok(start)
    }

    /// Gives reserved addresses back; nothing may be mapped there.
    pub(crate) fn unreserve(&self, start: u64, len: u64) -> Answer<()> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let mapped = ranges.range(start..start.saturating_add(len)).next().is_some();
        if mapped || reserved.get(&start) != Some(&len) {
            return Err(INVALID_VALUE);
        }
        reserved.remove(&start);
        Ok(())
    }

    /// Maps pages, from `offset` on, at reserved addresses.
    pub(crate) fn map(&self, start: u64, len: u64, pages: &Arc<Pages>, offset: u64) -> Answer<()> {
        let end = start.checked_add(len).ok_or(INVALID_VALUE)?;
        let reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let held = reserved.range(..=start).next_back().map(|(&at, &len)| at + len);
        let fits = offset.checked_add(len).is_some_and(|sum| sum <= pages.len() as u64);
        if len == 0 || !fits || held.is_none_or(|held| end > held) {
            return Err(INVALID_VALUE);
        }
        let skip = usize::try_from(offset).map_err(|_| INVALID_VALUE)?;
        let at = pages.start().wrapping_add(skip);
        let pages = Some(Arc::clone(pages));
        self.insert(start, Range { pages, ..Range::new(at, len, Kind::Mapped(false)) })
    }

    /// Grants or takes access to a whole mapping.
    pub(crate) fn allow(&self, start: u64, len: u64, access: bool) -> Answer<()> {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let range = ranges.get_mut(&start).ok_or(INVALID_VALUE)?;
        if range.len != len || !matches!(range.kind, Kind::Mapped(_)) {
            return Err(INVALID_VALUE);
        }
        range.kind = Kind::Mapped(access);
        Ok(())
    }

    /// Takes a whole mapping away.
    pub(crate) fn unmap(&self, start: u64, len: u64) -> Answer<()> {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        match ranges.get(&start) {
            Some(range) if range.len == len && matches!(range.kind, Kind::Mapped(_)) => {
                ranges.remove(&start);
                Ok(())
            }
            _ => Err(INVALID_VALUE),
        }
    }

    /// Frees what [`Memory::alloc`] or [`Memory::pin`] gave.
    pub(crate) fn free(&self, start: u64, kind: Kind) -> Answer<()> {
        self.remove(start, |found| found == kind)
    }

    /// Frees all that was made in a context.
    pub(crate) fn free_all_of(&self, context: usize) {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        ranges.retain(|_, range| range.context != context);
    }

    /// The known facts about an address.
    pub(crate) fn about(&self, address: u64) -> Option<About> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let (&start, range) = ranges.range(..=address).next_back()?;
        let Range { len, kind, context, .. } = *range;
        (address - start < len).then_some(About { start, len, kind, context })
    }

    /// The synchronous operations on the allocation that holds an address; none for memory that the
    /// driver does not know.
    pub(crate) fn memops(&self, address: u64) -> Option<Arc<MemOps>> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let (&start, range) = ranges.range(..=address).next_back()?;
        (address - start < range.len).then(|| Arc::clone(&range.memops))
    }

    /// Whether a synchronous call returns after its work on memory at one address, from memory at
    /// another if there is one, has ended (CUDA driver API manual, "API synchronization behavior"):
    /// not a copy from pageable memory to a device, not a copy on devices, not a memset of a
    /// device's memory. The attribute of an allocation changes that, except for memory of a pool:
    /// there it reads as set and does nothing (measured with driver 580.159 on an H100).
    pub(crate) fn synchronizes(&self, to: u64, from: Option<u64>) -> bool {
        let kind = |address| self.about(address).map(|it| it.kind);
        let is_device =
            |address| matches!(kind(address), Some(Kind::Device | Kind::Pool | Kind::Mapped(_)));
        let is_known = |address| self.about(address).is_some();
        let synchronized = |address| {
            kind(address) != Some(Kind::Pool)
                && self.memops(address).is_some_and(|ops| ops.is_synchronized())
        };
        let returns_early =
            is_device(to) && from.is_none_or(|from| is_device(from) || !is_known(from));
        !returns_early || synchronized(to) || from.is_some_and(synchronized)
    }

    /// Whether a copy into memory at one address from that at the other is waited for by the call,
    /// though it is put into a stream (CUDA driver API manual, "API synchronization behavior"):
    /// between memory of the host, page-locked or not, and into memory that is not page-locked.
    /// In the other direction drivers may wait, and this one does not.
    pub(crate) fn waits_for_copy(&self, to: u64, from: u64) -> bool {
        let kind = |address| self.about(address).map(|it| it.kind);
        let (to, from) = (kind(to), kind(from));
        let locked = |kind| matches!(kind, Some(Kind::Pinned | Kind::Registered));
        to.is_none() || locked(to) && (locked(from) || from.is_none())
    }

    fn insert(&self, start: u64, range: Range) -> Answer<()> {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let end = start.checked_add(range.len).ok_or(INVALID_VALUE)?;
        let before = ranges.range(..end).next_back();
        if before.is_some_and(|(at, other)| at + other.len > start) {
            return Err(INVALID_VALUE);
        }
        ranges.insert(start, range);
        Ok(())
    }

    fn remove(&self, start: u64, right: impl Fn(Kind) -> bool) -> Answer<()> {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        if !ranges.get(&start).is_some_and(|range| right(range.kind)) {
            return Err(INVALID_VALUE);
        }
        // Unmapping the pages is slow: not under the lock that every copy takes.
        let range = ranges.remove(&start);
        drop(ranges);
        drop(range);
        Ok(())
    }

    /// Memory that the device reaches by itself: its own, pinned or registered.
    pub(crate) fn on_device(&self, start: u64, len: u64) -> Answer<MemoryRange> {
        self.known(start, len).unwrap_or(Err(INVALID_VALUE))
    }

    /// Memory of the host: pinned, registered or plain.
    pub(crate) fn on_host(&self, start: u64, len: u64) -> Answer<MemoryRange> {
        if (FIRST..END).contains(&start) {
            return Err(INVALID_VALUE);
        }
        self.anywhere(start, len)
    }

    /// Memory of either. Memory that the driver does not know is host memory to it, also where
    /// a device's memory was: it touches that, and dies of it.
    pub(crate) fn anywhere(&self, start: u64, len: u64) -> Answer<MemoryRange> {
        match self.known(start, len) {
            Some(range) => range,
            None if start == 0 => Err(INVALID_VALUE),
            None if (FIRST..END).contains(&start) => undefined::ends(format_args!(
                "the driver is to find out what memory {start:#x} is, and there is none any more"
            )),
            None => {
                let address = usize::try_from(start).map_err(|_| INVALID_VALUE)?;
                let at = std::ptr::with_exposed_provenance_mut(address);
                Ok(MemoryRange::new(at, None))
            }
        }
    }

    /// A range of memory of the driver; `None` if no allocation holds `start`.
    fn known(&self, start: u64, len: u64) -> Option<Answer<MemoryRange>> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let (&first, range) = ranges.range(..=start).next_back()?;
        let skip = start - first;
        if skip >= range.len {
            return None;
        }
        let fits = skip.checked_add(len).is_some_and(|end| end <= range.len);
        if !fits || range.kind == Kind::Mapped(false) {
            return Some(Err(INVALID_VALUE));
        }
        let Ok(skip) = usize::try_from(skip) else {
            return Some(Err(INVALID_VALUE));
        };
        let at = range.at.wrapping_add(skip);
        let managed = range.managed.clone().map(|managed| (managed, skip));
        let is_fickle = range.is_fickle;
        Some(Ok(MemoryRange { managed, is_fickle, ..MemoryRange::new(at, range.pages.clone()) }))
    }
}

/// The lowest address for `len` bytes between `base` and `end` that keeps clear of what is taken,
/// which comes in order.
fn gap(
    taken: impl Iterator<Item = (u64, u64)>,
    base: u64,
    end: u64,
    len: u64,
    align: u64,
) -> Option<u64> {
    let mut at = base.checked_next_multiple_of(align)?;
    for (start, held) in taken {
        if at.checked_add(len)?.checked_add(GUARD)? <= start {
            break;
        }
        at = at.max((start + held + GUARD).checked_next_multiple_of(align)?);
    }
    (at.checked_add(len)? <= end).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_keeps_the_guard_on_both_sides() {
        let taken = [(0, 100), (4 * GUARD, 100)];
        let lowest = |len| gap(taken.into_iter(), 0, 8 * GUARD, len, 512);
        assert_eq!(lowest(GUARD), Some((100 + GUARD).next_multiple_of(512)));
        assert_eq!(lowest(2 * GUARD), Some((4 * GUARD + 100 + GUARD).next_multiple_of(512)));
        assert_eq!(lowest(4 * GUARD), None);
        assert_eq!(gap([].into_iter(), 0, GUARD, GUARD, 512), Some(0));
    }
}
