//! The sources of the plan beside the request: facts of the machine, and gpuio's own paths and
//! engines.

use std::sync::Arc;

use gpuio_base::catalog::{Calls, Catalog};
use gpuio_record::Gpu;
use gpuio_record::facts::HostFacts;

/// GPUs of the driver that was chosen, or why there are none.
#[derive(Debug, Clone, PartialEq)]
pub enum Gpus {
    /// At least one.
    Present(Vec<Gpu>),
    /// None, and the reason in words.
    Absent {
        /// The reason, from the driver's loader.
        why: String,
    },
}

/// The facts that a plan rests on.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Paths and engines of this gpuio.
    pub catalog: Catalog,
    /// Processors, NUMA nodes, memory, kernel.
    pub host: &'a HostFacts,
    /// GPUs.
    pub gpus: &'a Gpus,
    /// Files, directories and devices.
    pub targets: &'a dyn TargetLookup,
    /// Engines that can't run here, with the reason; and [`GPU_RINGS`] in the place of a name.
    ///
    /// [`GPU_RINGS`]: gpuio_base::catalog::GPU_RINGS
    pub engine_missing: &'a dyn Fn(&str) -> Option<String>,
    /// Why NVIDIA's cuFile library can't do I/O by these calls here.
    pub cufile_missing: &'a dyn Fn(Calls) -> Option<String>,
    /// The proof that cuFile moves bytes between the storage of every job of path `auto` and GPU
    /// memory without host memory; or why there is none.
    pub cufile_direct: Result<&'a str, &'a str>,
}

impl std::fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facts").field("gpus", &self.gpus).finish_non_exhaustive()
    }
}

/// Answers about paths in the file system.
pub trait TargetLookup {
    /// Looks at `path`, or, when nothing is there, at the directory that it would be in: then one
    /// value may be that of many paths.
    fn look(&self, path: &str) -> Arc<TargetInfo>;

    /// Offset and length of the tensors in a file of the safetensors format, in the order of its
    /// header; what is wrong with it, with the offset.
    fn tensors(&self, path: &str) -> Result<Vec<(u64, u64)>, String>;

    /// The NUMA node of the drive beneath `path`, where it is known.
    fn drive_node(&self, path: &str) -> Option<u32>;
}

/// A file, device or future file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetInfo {
    /// Length in bytes; absent when nothing is there yet.
    pub length_bytes: Option<u64>,
    /// Whether it is a block device.
    pub device: bool,
    /// Whether it is a directory.
    pub directory: bool,
    /// Bytes free in its file system for new data.
    pub free_bytes: Option<u64>,
    /// Whether O_DIRECT works there.
    pub direct: DirectAnswer,
    /// File system type.
    pub filesystem: Option<String>,
    /// The symbolic link on the way to it.
    pub link: Option<LinkInfo>,
}

/// A file or directory that is reached by a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkInfo {
    /// The path that is used.
    pub path: String,
    /// The same without links.
    pub real: String,
    /// Type and mount point of the file system there.
    pub mount: Option<(String, String)>,
}

impl LinkInfo {
    pub(super) fn words(&self) -> String {
        let mount = self.mount.as_ref();
        let mount = mount.map(|(kind, at)| format!(" ({kind} on {at})")).unwrap_or_default();
        format!("{} is {} behind a symbolic link{mount}", self.path, self.real)
    }
}

/// Whether O_DIRECT works at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DirectAnswer {
    /// It does, with offsets and lengths in multiples of this many bytes.
    Works {
        /// Alignment in bytes.
        alignment: u32,
    },
    /// The file system refuses it.
    Refused,
    /// It could not be tried.
    #[default]
    Unknown,
}
