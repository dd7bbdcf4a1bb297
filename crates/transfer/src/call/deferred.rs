//! Deferred completion: the last copies of a call that a thread does not wait for yet.
//!
//! When all pieces of a call are taken, its last piece may still be in flight to the GPU. If the
//! thread's next call reads the same file, the thread first reads that call's first piece, with the
//! same ring, and then waits for the previous call.

use std::sync::Arc;

use gpuio_gpu::GpuError;

use super::Call;
use crate::device::Device;
use crate::device::staging::StagingRing;
use crate::fault::Fault;
use crate::file::OpenFile;
use crate::transferred::RouteBytes;

/// At most one call whose last pieces are in flight, and their ring.
#[derive(Debug, Default)]
pub(crate) struct DeferredCompletion(Option<(InFlight, &'static Device, &'static mut StagingRing)>);

/// Pieces of a call that are in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) call: Arc<Call>,
    /// How many, including skipped ones.
    pub(super) counted: u64,
    pub(super) route: RouteBytes,
}

impl DeferredCompletion {
    /// Waits for pieces in flight, if there are any, and counts them.
    pub(crate) fn complete(&mut self) {
        let Some((in_flight, device, ring)) = self.0.take() else {
            return;
        };
        let mut in_flight = Some(in_flight);
        let completed = device.context().entered(|| match in_flight.take() {
            Some(in_flight) => in_flight.complete(ring),
            None => Ok(()),
        });
        match completed.flatten() {
            Ok(()) => device.give_back(ring),
            Err(error) => {
                // A lost context could not be entered, and a caller waits for the pieces.
                if let Some(in_flight) = in_flight {
                    in_flight.call.fail(0, Fault::Gpu(error));
                    in_flight.call.finish(in_flight.counted, &in_flight.route);
                }
                device.abandon(ring);
            }
        }
    }

    /// Completes unless the next call reads the same file: its first read may wait as long as its
    /// file has no data, and that must not delay a call of another file.
    pub(super) fn complete_unless_same_file(&mut self, file: &OpenFile) {
        if self.0.as_ref().is_some_and(|(in_flight, ..)| !in_flight.call.file().is_same(file)) {
            self.complete();
        }
    }

    /// Whether nothing is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A ring of the device, with the pieces in flight in it. The context is current.
    pub(super) fn take_ring(
        &mut self,
        device: &'static Device,
    ) -> Result<(&'static mut StagingRing, Option<InFlight>), GpuError> {
        match self.0.take_if(|(_, other, _)| std::ptr::eq(*other, device)) {
            Some((in_flight, _, ring)) => Ok((ring, Some(in_flight))),
            None => {
                // The ring is another device's: a thread never waits for a ring while it holds one.
                self.complete();
                Ok((device.take_ring()?, None))
            }
        }
    }

    pub(super) fn defer(
        &mut self,
        in_flight: InFlight,
        device: &'static Device,
        ring: &'static mut StagingRing,
    ) {
        debug_assert!(self.0.is_none());
        self.0 = Some((in_flight, device, ring));
    }
}

impl InFlight {
    /// Waits for all copies in flight in the ring, which belong to this call alone, and counts
    /// them. The context is current.
    pub(super) fn complete(mut self, ring: &mut StagingRing) -> Result<(), GpuError> {
        let waited = ring.wait_for_all();
        self.settle(ring);
        if let Err(error) = &waited {
            self.call.fail(0, Fault::Gpu(error.clone()));
        }
        self.call.finish(self.counted, &self.route);
        waited
    }

    /// Counts what the resident copy kernel moved as moved by it. Nothing is in flight.
    pub(super) fn settle(&mut self, ring: &mut StagingRing) {
        let by_resident_kernel = ring.take_by_resident_kernel();
        self.route.by_kernel += by_resident_kernel;
        self.route.by_copy = self.route.by_copy.saturating_sub(by_resident_kernel);
    }
}
