//! The mover of `staged`, `cached`, `managed` and `routed`: each slot crosses by itself, in stream
//! `n mod streams`, with an event of its own. How its bytes cross is a [`Crossing`].

use std::marker::PhantomData;

use super::crossing::Crossing;
use super::ends::{self, Ends};
use super::judge::Judge;
use super::lanes::{Ended, Lanes};
use super::two_legs::{self, Mover};
use super::{Config, Opened, PathError, Request};

pub(super) struct Ring<C> {
    lanes: Lanes,
    crossing: PhantomData<C>,
}

/// Opens a ring with one copy per block. Called on the worker's thread, which from then on has the
/// GPU's context current.
pub(super) fn open(name: &'static str, config: &Config) -> Result<Opened, PathError> {
    let gpu = ends::gpu(name, config)?;
    let driver = |source| PathError::Gpu { path: name, source };
    gpu.context.make_current().map_err(driver)?;
    let ends = Ends::new(name, config, &gpu, None)?;
    let judge = Judge::new(&gpu, ends.destination()).map_err(driver)?;
    let lanes = Lanes::new(&gpu.context, gpu.streams, config.slots).map_err(driver)?;
    two_legs::open(name, config, judge, ends, Ring::over(lanes))
}

impl<C: Crossing> Ring<C> {
    /// Over streams that have an event for each slot.
    pub(super) fn over(lanes: Lanes) -> Ring<C> {
        Ring { lanes, crossing: PhantomData }
    }

    fn stream(&self, slot: u32) -> usize {
        slot as usize % self.lanes.count()
    }
}

impl<C: Crossing> Mover for Ring<C> {
    type Slots = C;

    fn ready(&mut self, slots: &C, request: &Request, ended: &mut Vec<Ended>) -> bool {
        let Request { slot, len, .. } = *request;
        let at = self.stream(slot);
        let put = slots.ready(self.lanes.stream(at), slot, len);
        let any = !matches!(put, Ok(false));
        if any {
            self.lanes.mark(at, slot, put.map(|_| ()), ended);
        }
        any
    }

    fn put(&mut self, slots: &C, request: &Request, ended: &mut Vec<Ended>) {
        let Request { op, slot, len, .. } = *request;
        let at = self.stream(slot);
        // SAFETY: the slot is this request's alone until the event behind is done, and its memory
        // is dropped after the streams were waited for.
        let put = unsafe { slots.cross(self.lanes.stream(at), op, slot, len) };
        self.lanes.mark(at, slot, put, ended);
    }

    fn poll(&mut self, ended: &mut Vec<Ended>) {
        for at in 0..self.lanes.count() {
            while let Some(one) = self.lanes.poll(at) {
                ended.push(one);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.lanes.is_idle()
    }

    fn wait(&mut self, ended: &mut Vec<Ended>) -> bool {
        let one = self.lanes.any();
        let some = one.is_some();
        ended.extend(one);
        some
    }
}
