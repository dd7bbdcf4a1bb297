//! The means by which gpuio can move bytes, as data: kinds of memory, engines, paths, and faults
//! that can be put on an engine.
//!
//! The plan decides by this data, and a run opens what the plan chose. So that the plan can be
//! built without a GPU driver or a file, the data is here and the functions that open engines and
//! paths are in `gpuio_io`: an entry of its tables is a [`PathInfo`] or [`EngineInfo`] with an
//! `open` beside it, so that a path or engine is one file and one row. The plan gets all rows
//! as a value, [`Catalog`], which `gpuio_io` builds from its tables.
//!
//! Only data lives here: nothing that does something. Pure: no file, no clock, no environment.

mod engine;
mod inject;
mod memory;
mod op;
mod path;
mod rings;

pub use engine::EngineInfo;
pub use inject::{Inject, InjectError};
pub use memory::{MemoryKind, MemoryKindError};
pub use op::Op;
pub use path::{Backend, Calls, GATHER_PLAIN_BYTES, MAPPED_COPY_BYTES, PathInfo};
pub use rings::{GPU_RINGS, RING_ENTRIES, RINGS_SINCE, RingAnswer, RingRefusal};

/// The paths and engines of this gpuio.
#[derive(Debug, Clone, Copy)]
pub struct Catalog {
    /// Paths, in the order in which they are shown.
    pub paths: &'static [PathInfo],
    /// Engines, in the order in which they are shown.
    pub engines: &'static [EngineInfo],
}

impl Catalog {
    pub fn path(&self, name: &str) -> Option<&'static PathInfo> {
        self.paths.iter().find(|path| path.name == name)
    }

    pub fn engine(&self, name: &str) -> Option<&'static EngineInfo> {
        self.engines.iter().find(|engine| engine.name == name)
    }
}
