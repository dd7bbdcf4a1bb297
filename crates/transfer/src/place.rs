//! What an address is.

use gpuio_gpu::{Driver, GpuError, Owner};

use crate::fault::PlaceError;
use crate::gpus::Device;

/// What the memory at an address is, for the moment of the question.
///
/// It holds as long as the caller keeps the memory: an address whose memory was freed and allocated
/// anew has to be asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub(crate) kind: Kind,
    /// Start and length of the allocation, where known.
    pub(crate) range: Option<(u64, u64)>,
    /// Whether its pages move between host and GPU.
    pub(crate) managed: bool,
    /// Whether it belongs to no context: a mapping, or memory of a pool.
    pub(crate) loose: bool,
    /// The state of the device that it was asked of; 0 for memory of the host.
    pub(crate) serial: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    Gpu {
        device: u32,
        /// Whether our kernels, which run in the device's primary context, reach it.
        kernels: bool,
    },
}

impl Place {
    /// Memory of the host.
    #[must_use]
    pub fn host() -> Self {
        Self { kind: Kind::Host, range: None, managed: false, loose: false, serial: 0 }
    }

    /// Memory of a GPU's primary context, of unknown extent.
    #[cfg(test)]
    pub(crate) fn gpu(device: u32) -> Self {
        Self {
            kind: Kind::Gpu { device, kernels: true },
            range: None,
            managed: false,
            loose: false,
            serial: 0,
        }
    }

    /// The GPU that the memory lies on, by the driver's number; `None` for memory of the host,
    /// page-locked or not.
    #[must_use]
    pub fn device(&self) -> Option<u32> {
        match self.kind {
            Kind::Host => None,
            Kind::Gpu { device, .. } => Some(device),
        }
    }

    /// Whether it is managed memory, whose pages move between host and GPU.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.managed
    }

    /// Start and length in bytes of the allocation, where the driver tells.
    #[must_use]
    pub fn range(&self) -> Option<(u64, u64)> {
        self.range
    }

    /// Whether these bytes are all in the allocation that was asked about, where the driver told
    /// its extent.
    #[must_use]
    pub fn holds(&self, address: u64, len: usize) -> bool {
        self.range.is_some_and(|(start, length)| {
            let end = address.checked_add(len as u64);
            address >= start && end.is_some_and(|end| end <= start.saturating_add(length))
        })
    }

    /// Whether the memory belongs to the device's primary context, or to none.
    pub(crate) fn is_primary(&self) -> bool {
        matches!(self.kind, Kind::Gpu { kernels: true, .. })
    }

    /// Whether our kernels may touch these bytes. Beyond what the driver calls one allocation there
    /// may be nothing, which a copy reports and a kernel dies of.
    pub(crate) fn kernels(&self, address: u64, len: usize) -> bool {
        self.is_primary() && self.holds(address, len)
    }

    /// What the driver says of the address, `device` giving what we keep on a device.
    ///
    /// A transfer must not begin before the program's own `cudaMemcpy` or `cudaMemset` on that
    /// memory has ended, though such a call may return earlier. Once this returns, none is under
    /// way there, and later ones return after they have ended.
    pub(crate) fn ask(
        driver: &Driver,
        address: u64,
        device: impl FnOnce(u32) -> Result<&'static Device, GpuError>,
    ) -> Result<Self, PlaceError> {
        let told = driver.pointer(address)?;
        let (Owner::Device | Owner::Managed, Some(index)) = (told.owner, told.device) else {
            return Ok(Self { range: told.range, ..Self::host() });
        };
        let kept = device(index)?;
        if !told.sync_memops {
            kept.synchronize_memops(driver, address)?;
        }
        // Pages of managed memory may be on the host: a copy goes there, a kernel only where the
        // GPU can fault, and then page by page.
        let kernels = told.owner == Owner::Device && told.is_reached_by(kept.context());
        let managed = told.owner == Owner::Managed;
        let loose = told.context.is_none();
        let kind = Kind::Gpu { device: index, kernels };
        Ok(Self { kind, range: told.range, managed, loose, serial: kept.serial() })
    }
}
