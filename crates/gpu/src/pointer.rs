//! The kind of memory of a program's address.

use std::ffi::{c_int, c_uint, c_void};

use crate::context::{Context, RawContext};
use crate::driver::Driver;
use crate::error::GpuError;
use crate::table;

/// Who holds the memory behind an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The driver does not know the address: plain memory of the host, freed memory, or nothing.
    Host,
    /// Host memory that is page-locked, from the driver or registered with it.
    Pinned,
    /// Memory of a device: of a context, of a pool, or mapped by the virtual memory calls.
    Device,
    /// Managed memory, whose pages are on the host or on a device.
    Managed,
}

/// The driver's report on an address. It holds for the moment of the query: the owner of the memory
/// may free it at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    /// Who holds the memory.
    pub owner: Owner,
    /// The device that it lies on, or on whose behalf it was page-locked or made; `None` for
    /// [`Owner::Host`].
    pub device: Option<u32>,
    /// The context that it was allocated or registered in. `None` for plain memory of the host, and
    /// for memory that belongs to a device and no context: pools (`cuMemAllocAsync`) and mappings
    /// (`cuMemMap`).
    pub context: Option<RawContext>,
    /// Where the allocation begins, and its length in bytes, where the driver reports it.
    pub range: Option<(u64, u64)>,
    /// False for addresses that were reserved and have no memory behind them, and for a mapping
    /// that its own device may not both read and write (`cuMemSetAccess`).
    pub mapped: bool,
    /// True if synchronous memory operations on the allocation always synchronize: see
    /// [`Driver::synchronize_memops`].
    ///
    /// It may read so before the operations have ended that were under way when it was set.
    pub sync_memops: bool,
    /// A number of the allocation that no other one of the process has or had
    /// (`CU_POINTER_ATTRIBUTE_BUFFER_ID`); 0 where there is none.
    pub id: u64,
}

impl Pointer {
    /// True if a kernel launched in `context` can use the memory without more ado: memory of the
    /// same context; of a pool or a mapping of the same device; page-locked and managed memory.
    pub fn is_reached_by(&self, context: &Context) -> bool {
        match self.owner {
            Owner::Host => false,
            Owner::Pinned | Owner::Managed => true,
            Owner::Device => {
                let same_device = self.device == Some(context.device());
                let same_context = self.context.is_none_or(|raw| raw == context.raw());
                self.mapped && same_device && same_context
            }
        }
    }
}

/// The attributes that are queried, in the order of the results.
const ATTRIBUTES: [c_int; 9] = [
    table::POINTER_MEMORY_TYPE,
    table::POINTER_CONTEXT,
    table::POINTER_IS_MANAGED,
    table::POINTER_DEVICE_ORDINAL,
    table::POINTER_RANGE_START,
    table::POINTER_RANGE_SIZE,
    table::POINTER_MAPPED,
    table::POINTER_SYNC_MEMOPS,
    table::POINTER_BUFFER_ID,
];

impl Driver {
    /// The facts about the memory at `address`: one call of the driver (`cuPointerGetAttributes`,
    /// CUDA driver API manual, "Unified Addressing"), which takes well under a microsecond, needs
    /// no current context, makes none and touches no memory. Any number is allowed.
    ///
    /// # Errors
    /// The driver's refusal: it is being taken down at the process's end, or this is a child of the
    /// process that initialised it.
    pub fn pointer(&self, address: u64) -> Result<Pointer, GpuError> {
        let mut attributes = ATTRIBUTES;
        // An attribute's value has 1, 4 or 8 bytes; of the shorter ones the rest stays 0, and is
        // the upper part on little-endian machines, which are all that CUDA runs on.
        let mut values = [0_u64; ATTRIBUTES.len()];
        let start = values.as_mut_ptr();
        let mut targets: [*mut c_void; ATTRIBUTES.len()] =
            std::array::from_fn(|at| start.wrapping_add(at).cast());
        // ATTRIBUTES has nine entries.
        let count = c_uint::try_from(ATTRIBUTES.len()).unwrap_or(0);
        let call = self.table().cuPointerGetAttributes;
        // SAFETY: `attributes` and `targets` have `count` entries, and each target has space for
        // the longest attribute.
        let code = unsafe { call(count, attributes.as_mut_ptr(), targets.as_mut_ptr(), address) };
        self.table()
            .check("cuPointerGetAttributes", code)
            .map_err(|e| e.with(format!("of the address {address:#x}")))?;
        let mut pointer = parsed(values);
        // Memory of a pool or a mapping: the owner of a mapping decides who may use it.
        if pointer.owner == Owner::Device
            && pointer.context.is_none()
            && let Some(device) = pointer.device
        {
            pointer.mapped &= self.allows(device, address);
        }
        Ok(pointer)
    }

    /// Whether a device may read and write memory of its own that belongs to no context: a mapping
    /// (`cuMemMap`) as its owner decided, memory of a pool always. Where the driver does not tell
    /// that, the device may.
    fn allows(&self, device: u32, address: u64) -> bool {
        let (Some(call), Ok(id)) = (self.table().cuMemGetAccess, self.device(device)) else {
            return true;
        };
        let location = table::CUmemLocation { kind: table::MEM_LOCATION_TYPE_DEVICE, id };
        let mut flags = 0_u64;
        // SAFETY: both point at what the call reads and writes.
        let code = unsafe { call(&raw mut flags, &raw const location, address) };
        let readwrite = u64::from(table::MEM_ACCESS_READWRITE.unsigned_abs());
        code != table::SUCCESS || flags == readwrite || self.is_of_pool(address)
    }

    fn is_of_pool(&self, address: u64) -> bool {
        let mut pool: *mut c_void = std::ptr::null_mut();
        let attribute = table::POINTER_MEMPOOL_HANDLE;
        let call = self.table().cuPointerGetAttribute;
        // SAFETY: `pool` is valid for the write of one pointer, which the attribute is.
        let code = unsafe { call((&raw mut pool).cast(), attribute, address) };
        code == table::SUCCESS && !pool.is_null()
    }
}

/// Translates the driver's values.
fn parsed(values: [u64; ATTRIBUTES.len()]) -> Pointer {
    let [kind, context, managed, ordinal, start, len, mapped, sync_memops, id] = values;
    let owner = match kind {
        _ if managed & 0xff != 0 => Owner::Managed,
        table::MEMORY_TYPE_HOST => Owner::Pinned,
        table::MEMORY_TYPE_DEVICE => Owner::Device,
        _ => Owner::Host,
    };
    if owner == Owner::Host {
        let (mapped, sync_memops) = (false, false);
        let (device, context, range, id) = (None, None, None, 0);
        return Pointer { owner, device, context, range, mapped, sync_memops, id };
    }
    #[expect(clippy::cast_possible_truncation, reason = "an int in the low half of the word")]
    let ordinal = (ordinal as u32).cast_signed();
    let context = usize::try_from(context).ok().filter(|&handle| handle != 0).map(RawContext);
    Pointer {
        owner,
        device: u32::try_from(ordinal).ok(),
        context,
        range: (len != 0).then_some((start, len)),
        mapped: mapped & 0xff != 0,
        sync_memops: sync_memops & 0xff != 0 && context.is_some(),
        id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_does_not_know_is_of_the_host() {
        // The values that drivers return for the device: -2, or nothing at all.
        for ordinal in [0xffff_fffe, 0] {
            let pointer = parsed([0, 0, 0, ordinal, 0, 0, 0, 0, 0]);
            assert_eq!((pointer.owner, pointer.device, pointer.context), (Owner::Host, None, None));
            assert_eq!(pointer.range, None);
        }
    }

    #[test]
    fn managed_memory_is_that_whatever_its_type() {
        for kind in [1, 2] {
            let pointer = parsed([kind, 0x40, 1, 3, 4096, 64, 1, 1, 5]);
            assert_eq!((pointer.owner, pointer.device), (Owner::Managed, Some(3)));
            assert_eq!(pointer.context, Some(RawContext(0x40)));
            assert_eq!(pointer.range, Some((4096, 64)));
        }
    }

    #[test]
    fn the_attribute_counts_only_for_memory_of_a_context() {
        assert!(parsed([2, 0x40, 0, 0, 4096, 64, 1, 1, 5]).sync_memops);
        assert!(!parsed([2, 0x40, 0, 0, 4096, 64, 1, 0, 5]).sync_memops);
        // A pool's memory has the attribute once it was set, and it does nothing.
        assert!(!parsed([2, 0, 0, 0, 4096, 64, 1, 1, 5]).sync_memops);
    }
}
