//! What a thread has not waited for when it goes on to the next call.
//!
//! The last piece of a call is under way to the GPU when all of them are taken. A thread that has
//! more to do reads the first piece of the next call meanwhile, with the same lane, if that is of
//! the same file, and settles the call before when the piece is in page-locked memory.

use std::sync::Arc;

use gpuio_gpu::GpuError;

use super::Job;
use crate::device::Device;
use crate::device::staging::StagingRing;
use crate::fault::Fault;
use crate::file::Inner;
use crate::transferred::RouteBytes;

/// None or one call whose last pieces are under way, and the lane that they are in.
#[derive(Debug, Default)]
pub(crate) struct DeferredCompletion(Option<(InFlight, &'static Device, &'static mut StagingRing)>);

/// Pieces of a call that are under way.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) job: Arc<Job>,
    /// How many, with those that were passed over.
    pub(super) counted: u64,
    pub(super) route: RouteBytes,
}

impl DeferredCompletion {
    /// Waits for what is under way, if anything is, and counts it off.
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
                // A context that is lost could not be entered, and somebody waits for the pieces.
                if let Some(in_flight) = in_flight {
                    in_flight.job.fail(0, Fault::Gpu(error));
                    in_flight.job.finish(in_flight.counted, &in_flight.route);
                }
                device.abandon(ring);
            }
        }
    }

    /// Waits for what is under way unless it is of the same file: the next call's first read may
    /// wait for as long as its file has nothing to give, and nobody else's call shall.
    pub(super) fn complete_unless_same_file(&mut self, file: &Inner) {
        if self.0.as_ref().is_some_and(|(in_flight, ..)| !in_flight.job.file().is_same(file)) {
            self.complete();
        }
    }

    /// Whether nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A lane of the device, with what is under way in it. The context is current.
    pub(super) fn take_ring(
        &mut self,
        device: &'static Device,
    ) -> Result<(&'static mut StagingRing, Option<InFlight>), GpuError> {
        match self.0.take_if(|(_, other, _)| std::ptr::eq(*other, device)) {
            Some((in_flight, _, ring)) => Ok((ring, Some(in_flight))),
            None => {
                // Another device's: nobody waits for a lane while holding one.
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
    /// Waits for all that is under way in the lane, which is of this call alone, and counts it off.
    /// The context is current.
    pub(super) fn complete(mut self, ring: &mut StagingRing) -> Result<(), GpuError> {
        let waited = ring.wait_for_all();
        let by_resident_kernel = ring.take_by_resident_kernel();
        self.route.by_kernel += by_resident_kernel;
        self.route.by_copy = self.route.by_copy.saturating_sub(by_resident_kernel);
        if let Err(error) = &waited {
            self.job.fail(0, Fault::Gpu(error.clone()));
        }
        self.job.finish(self.counted, &self.route);
        waited
    }
}
