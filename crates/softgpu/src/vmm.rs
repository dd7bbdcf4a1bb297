//! Physical memory of the virtual memory management calls.

use std::sync::Arc;

use crate::backing::Pages;
use crate::code::{Answer, INVALID_VALUE};
use crate::device::Device;

/// The size that lengths and addresses must be multiples of, in bytes; that of real GPUs.
pub(crate) const GRANULARITY: usize = 2 << 20;

/// Memory of `cuMemCreate`. It lives on in its mappings after the handle is released.
#[derive(Debug)]
pub(crate) struct Physical {
    pub(crate) pages: Arc<Pages>,
}

impl Physical {
    /// Makes `len` bytes, a multiple of the granularity.
    pub(crate) fn new(device: &Device, len: usize) -> Answer<Self> {
        if len == 0 || !len.is_multiple_of(GRANULARITY) {
            return Err(INVALID_VALUE);
        }
        Ok(Self { pages: Arc::new(Pages::of_device(&device.budget, len)?) })
    }
}
