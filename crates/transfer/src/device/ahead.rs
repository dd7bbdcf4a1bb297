//! Rings that the workers make before the first large call needs them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::call::DeferredCompletion;
use crate::device::{Device, Devices};
use crate::pool::{Work, WorkOwner};

/// So many rings of a device. Each worker that comes makes some of them, so that all have a thread
/// and page-locked memory when the bytes are to move.
#[derive(Debug)]
pub(crate) struct RingsAhead {
    device: &'static Device,
    left: AtomicU32,
}

impl RingsAhead {
    pub(crate) fn new(device: &'static Device, count: u32) -> Self {
        Self { device, left: AtomicU32::new(count) }
    }
}

impl Work for RingsAhead {
    fn has_more(&self) -> bool {
        self.left.load(Ordering::SeqCst) > 0
    }

    fn work(self: Arc<Self>, _: &'static Devices, deferred: &mut DeferredCompletion) {
        deferred.complete();
        let less = |left: u32| left.checked_sub(1);
        while self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            self.device.add_ring();
        }
    }

    fn owner(&self) -> WorkOwner {
        WorkOwner::Either
    }

    fn may_leave_queue(&self) -> bool {
        !self.has_more()
    }
}
