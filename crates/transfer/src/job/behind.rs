//! What a thread has not waited for when it goes on to the next call.
//!
//! The last piece of a call is under way to the GPU when all of them are taken. A thread that has
//! more to do reads the first piece of the next call meanwhile, with the same lane, if that is of
//! the same file, and settles the call before when the piece is in page-locked memory.

use std::sync::Arc;

use gpuio_gpu::GpuError;

use super::Job;
use crate::fault::Fault;
use crate::file::Inner;
use crate::gpus::Device;
use crate::lane::Lane;
use crate::moved::Route;

/// None or one call whose last pieces are under way, and the lane that they are in.
#[derive(Debug, Default)]
pub(crate) struct Behind(Option<(Flying, &'static Device, &'static mut Lane)>);

/// Pieces of a call that are under way.
#[derive(Debug)]
pub(super) struct Flying {
    pub(super) job: Arc<Job>,
    /// How many, with those that were passed over.
    pub(super) counted: u64,
    pub(super) route: Route,
}

impl Behind {
    /// Waits for what is under way, if anything is, and counts it off.
    pub(crate) fn settle(&mut self) {
        let Some((flying, device, lane)) = self.0.take() else {
            return;
        };
        let mut flying = Some(flying);
        let landed = device.context().entered(|| match flying.take() {
            Some(flying) => flying.land(lane),
            None => Ok(()),
        });
        match landed.flatten() {
            Ok(()) => device.give(lane),
            Err(error) => {
                // A context that is lost could not be entered, and somebody waits for the pieces.
                if let Some(flying) = flying {
                    flying.job.fail(0, Fault::Gpu(error));
                    flying.job.finish(flying.counted, &flying.route);
                }
                device.lose(lane);
            }
        }
    }

    /// Waits for what is under way unless it is of the same file: the next call's first read may
    /// wait for as long as its file has nothing to give, and nobody else's call shall.
    pub(super) fn settle_but_of(&mut self, file: &Inner) {
        if self.0.as_ref().is_some_and(|(flying, ..)| !flying.job.file().is_same(file)) {
            self.settle();
        }
    }

    /// Whether nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A lane of the device, with what is under way in it. The context is current.
    pub(super) fn lane(
        &mut self,
        device: &'static Device,
    ) -> Result<(&'static mut Lane, Option<Flying>), GpuError> {
        match self.0.take_if(|(_, other, _)| std::ptr::eq(*other, device)) {
            Some((flying, _, lane)) => Ok((lane, Some(flying))),
            None => {
                // Another device's: nobody waits for a lane while holding one.
                self.settle();
                Ok((device.lane()?, None))
            }
        }
    }

    pub(super) fn keep(
        &mut self,
        flying: Flying,
        device: &'static Device,
        lane: &'static mut Lane,
    ) {
        debug_assert!(self.0.is_none());
        self.0 = Some((flying, device, lane));
    }
}

impl Flying {
    /// Waits for all that is under way in the lane, which is of this call alone, and counts it off.
    /// The context is current.
    pub(super) fn land(mut self, lane: &mut Lane) -> Result<(), GpuError> {
        let drained = lane.drain();
        let by_resident_kernel = lane.take_by_resident_kernel();
        self.route.by_kernel += by_resident_kernel;
        self.route.by_copy = self.route.by_copy.saturating_sub(by_resident_kernel);
        if let Err(error) = &drained {
            self.job.fail(0, Fault::Gpu(error.clone()));
        }
        self.job.finish(self.counted, &self.route);
        drained
    }
}
