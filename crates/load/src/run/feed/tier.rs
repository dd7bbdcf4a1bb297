//! A feed's tier in host memory: page-locked memory for whole samples that all its readers share.
//!
//! Which sample stands where is [`Lru`]'s, under one lock that is taken twice for each sample and
//! never for an I/O. The bytes are moved by paths (`gpuio_io::path::Place`): a miss is read from
//! its file into its place, a hit is copied from there to GPU memory. This module moves no bytes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use gpuio_gpu::{Context, Pinned};
use gpuio_io::path::{self, PathError, Place};
use gpuio_job::plan::TIER_KEY;
use gpuio_job::workload::lru::{Lru, Use};
use gpuio_record::{JobPlan, TierPlan, TierResult};

use super::hold;
use crate::run::RunError;

pub(super) struct Tier {
    memory: Arc<Pinned>,
    place_bytes: u64,
    state: Mutex<State>,
    memory_bytes: AtomicU64,
    storage_bytes: AtomicU64,
}

struct State {
    lru: Lru,
    hits: u64,
    misses: u64,
    not_kept: u64,
}

impl Tier {
    /// Allocates and touches the memory of a job's tier; nothing where the job has none.
    ///
    /// # Errors
    /// The driver does not give it.
    pub(super) fn open(
        job: &JobPlan,
        contexts: &BTreeMap<u32, Context>,
    ) -> Result<Option<Tier>, RunError> {
        let Some(plan) = job.feed.as_ref().and_then(|feed| feed.tier) else { return Ok(None) };
        let failed = |what: String| RunError::Path {
            job: job.name.clone(),
            thread: 0,
            source: Box::new(PathError::Setup {
                path: path::find(&job.path.choice.actual).map_or("", |row| row.info.name),
                what,
            }),
        };
        let context = job.gpus.first().and_then(|gpu| contexts.get(&gpu.index));
        let context = context.ok_or_else(|| failed("its tier needs a GPU".to_owned()))?;
        let TierPlan { places, place_bytes, .. } = plan;
        let len = usize::try_from(plan.bytes()).unwrap_or(usize::MAX);
        let memory = Pinned::zeroed(context, len).map_err(|error| {
            failed(format!(
                "memory for {places} samples could not be had; lower {TIER_KEY}. {error}"
            ))
        })?;
        let state = State { lru: Lru::new(places), hits: 0, misses: 0, not_kept: 0 };
        Ok(Some(Tier {
            memory: Arc::new(memory),
            place_bytes,
            state: Mutex::new(state),
            memory_bytes: AtomicU64::new(0),
            storage_bytes: AtomicU64::new(0),
        }))
    }

    /// The memory, for a path.
    pub(super) fn memory(&self) -> Arc<Pinned> {
        Arc::clone(&self.memory)
    }

    /// A reader begins to read a unit.
    pub(super) fn begin(&self, unit: u64) -> Use {
        hold(&self.state).lru.begin(unit)
    }

    /// Where the part of a unit that begins so many bytes in it is, or is to be.
    pub(super) fn place(&self, of: Use, bytes: u64) -> Place {
        let at = |place: u32| u64::from(place) * self.place_bytes + bytes;
        match of {
            Use::Hit(place) => Place::Kept(at(place)),
            Use::Enter(place) => Place::Into(at(place)),
            Use::Pass => Place::Slot,
        }
    }

    /// A reader has read a unit, all of it in memory if it is whole.
    pub(super) fn end(&self, of: Use, is_whole: bool) {
        let mut state = hold(&self.state);
        if let Use::Hit(place) | Use::Enter(place) = of {
            state.lru.end(place, is_whole);
        }
        if is_whole {
            match of {
                Use::Hit(_) => state.hits += 1,
                Use::Enter(_) => state.misses += 1,
                Use::Pass => {
                    (state.misses, state.not_kept) = (state.misses + 1, state.not_kept + 1)
                }
            }
        }
    }

    /// Adds what a reader moved, from the tier and from files.
    pub(super) fn add(&self, memory_bytes: u64, storage_bytes: u64) {
        self.memory_bytes.fetch_add(memory_bytes, Ordering::Relaxed);
        self.storage_bytes.fetch_add(storage_bytes, Ordering::Relaxed);
    }

    /// Its counts, once its readers are gone.
    pub(super) fn result(&self) -> TierResult {
        let state = hold(&self.state);
        TierResult {
            hits: state.hits,
            misses: state.misses,
            not_kept: state.not_kept,
            evictions: state.lru.evictions(),
            memory_bytes: self.memory_bytes.load(Ordering::Relaxed),
            storage_bytes: self.storage_bytes.load(Ordering::Relaxed),
        }
    }
}
