//! Temporary aligned memory.

use std::alloc::{Layout, handle_alloc_error};
use std::ptr::NonNull;

/// Longest buffer, bytes: longer requests take several passes.
const MOST: usize = 256 << 10;

/// Aligned memory of the program's allocator, for the length of a call.
pub(crate) struct BounceBuffer {
    start: NonNull<u8>,
    layout: Layout,
}

impl BounceBuffer {
    /// `wanted` bytes, or as many as one pass takes: a multiple of `align`, a power of two.
    pub(crate) fn new(wanted: usize, align: usize) -> Self {
        let len = wanted.clamp(1, MOST).next_multiple_of(align);
        let Ok(layout) = Layout::from_size_align(len, align) else {
            handle_alloc_error(Layout::new::<u8>());
        };
        // SAFETY: the layout's size is not 0.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, layout }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for BounceBuffer {
    fn drop(&mut self) {
        // SAFETY: from this allocator with this layout, and freed once.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}
