//! The kind of memory of an address.

use gpuio_gpu::{Driver, GpuError, Owner};

use crate::device::Device;

/// The kind of memory of an address, at the time of the query.
///
/// Valid as long as the caller keeps the memory. Query again if the memory was freed and allocated
/// anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLocation {
    pub(crate) kind: LocationKind,
    /// Start and length of the allocation, if known.
    pub(crate) range: Option<(u64, u64)>,
    /// Whether its pages move between host and GPU.
    pub(crate) managed: bool,
    /// Whether it belongs to no context: a mapping, or memory of a pool.
    pub(crate) contextless: bool,
    /// The state of the device at the query; 0 for host memory.
    pub(crate) serial: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocationKind {
    Host,
    Gpu {
        device: u32,
        /// Whether our kernels, which run in the device's primary context, can access it.
        kernels: bool,
    },
}

impl MemoryLocation {
    /// Host memory.
    pub fn host() -> Self {
        Self {
            kind: LocationKind::Host,
            range: None,
            managed: false,
            contextless: false,
            serial: 0,
        }
    }

    /// Memory of a GPU's primary context, of unknown extent.
    #[cfg(test)]
    pub(crate) fn gpu(device: u32) -> Self {
        Self {
            kind: LocationKind::Gpu { device, kernels: true },
            range: None,
            managed: false,
            contextless: false,
            serial: 0,
        }
    }

    /// The GPU of the memory, by the driver's index; `None` for host memory, page-locked or not.
    pub fn device(&self) -> Option<u32> {
        match self.kind {
            LocationKind::Host => None,
            LocationKind::Gpu { device, .. } => Some(device),
        }
    }

    /// Whether it is managed memory, whose pages move between host and GPU.
    pub fn is_managed(&self) -> bool {
        self.managed
    }

    /// Start and length of the allocation in bytes, if the driver reports them.
    pub fn range(&self) -> Option<(u64, u64)> {
        self.range
    }

    /// Whether all these bytes are in the queried allocation, as far as the driver reports its
    /// extent.
    pub fn holds(&self, address: u64, len: usize) -> bool {
        self.range.is_some_and(|(start, length)| {
            let end = address.checked_add(len as u64);
            address >= start && end.is_some_and(|end| end <= start.saturating_add(length))
        })
    }

    /// Whether the memory belongs to the device's primary context, or to none.
    pub(crate) fn is_primary(&self) -> bool {
        matches!(self.kind, LocationKind::Gpu { kernels: true, .. })
    }

    /// Whether our kernels may access these bytes. Beyond one allocation there may be no memory; a
    /// copy reports that, a kernel crashes.
    pub(crate) fn is_reached_by_kernels(&self, address: u64, len: usize) -> bool {
        self.is_primary() && self.holds(address, len)
    }

    /// Queries the driver. `device` returns the state that is kept for a device.
    ///
    /// A transfer must not begin before the program's own `cudaMemcpy` or `cudaMemset` on that
    /// memory has ended, though such a call may return earlier. After this returns, none is running
    /// there, and later ones return only after they have ended.
    pub(crate) fn query(
        driver: &Driver,
        address: u64,
        device: impl FnOnce(u32) -> Result<&'static Device, GpuError>,
    ) -> Result<Self, GpuError> {
        let info = driver.pointer(address)?;
        let (Owner::Device | Owner::Managed, Some(index)) = (info.owner, info.device) else {
            return Ok(Self { range: info.range, ..Self::host() });
        };
        let device_state = device(index)?;
        let contextless = info.context.is_none();
        device_state.synchronize_memops(driver, address, &info)?;
        // Pages of managed memory may be on the host. A copy reaches them; a kernel only if the GPU
        // can fault, and then page by page.
        let kernels = info.owner == Owner::Device && info.is_reached_by(device_state.context());
        let managed = info.owner == Owner::Managed;
        let kind = LocationKind::Gpu { device: index, kernels };
        Ok(Self { kind, range: info.range, managed, contextless, serial: device_state.serial() })
    }
}
