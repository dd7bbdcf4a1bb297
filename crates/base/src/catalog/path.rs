//! The properties of a path.

use crate::catalog::MemoryKind;

/// Path `gather`: blocks of at least this many bytes get a plain copy each, also in a batch: the
/// copy engine then needs some ten microseconds for a block, several times what the driver's call
/// takes, and multiprocessors are left to whoever computes.
pub const GATHER_PLAIN_BYTES: u64 = 512 << 10;

/// Path `mapped`: blocks of at least this many bytes get a copy of the driver each. The copy engine
/// then needs some twenty microseconds for a block, several times what the call takes. Below it,
/// many blocks share one launch of the kernel.
pub const MAPPED_COPY_BYTES: u64 = 1 << 20;

/// An interface of cuFile for I/O: of NVIDIA's library, or of gpuio's own in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// `cuFileRead` and `cuFileWrite`: each returns when its bytes have arrived.
    Blocking,
    /// `cuFileBatchIOSubmit` and related calls: many I/Os in one call, and events for completed
    /// ones.
    Batch,
    /// `cuFileReadAsync` and `cuFileWriteAsync`: in the order of a CUDA stream.
    Streams,
}

/// The part that moves the bytes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// One of our engines between file and host memory and, where there is a GPU, copies of ours:
    /// two legs that are distinguished.
    Engine,
    /// NVIDIA's cuFile library, from end to end, with these calls: one leg, and no engine.
    Cufile(Calls),
    /// gpuio's own library core, which its `libcufile.so.0` is made of, from end to end, with these
    /// calls: one leg, and no engine.
    Library(Calls),
    /// The GPU, in the page cache: the file is mapped and page-locked before. One leg, and no
    /// engine.
    Mapping,
    /// The GPU, through io_uring rings that a kernel fills and polls by itself: two legs that its
    /// clock distinguishes, and no engine.
    Rings,
}

/// One path: how bytes travel between a file and the requested memory.
#[derive(Debug, Clone, Copy)]
pub struct PathInfo {
    /// Name on the command line.
    pub name: &'static str,
    /// gdsio's `-x` number, if gdsio has the path.
    pub gdsio: Option<u8>,
    /// The name that gdsio prints as XferType, or would.
    pub gdsio_name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// Whether it needs a GPU (a software one counts).
    pub needs_gpu: bool,
    /// Whether its bytes go through a second GPU.
    pub via_gpu: bool,
    /// Whether each block ends in the memory of all GPUs of the job.
    pub fans_out: bool,
    /// Whether it must not open its files with O_DIRECT.
    pub buffered_only: bool,
    /// Why it opens them without O_DIRECT unless that is requested; absent where O_DIRECT is what
    /// the path is for.
    pub buffered_because: Option<&'static str>,
    /// The part that moves its bytes.
    pub backend: Backend,
    /// Whether it moves blocks in batches, so that a number of blocks per batch has an effect.
    pub batches: bool,
    /// Whether it spreads work over streams of the GPU, so that a number of streams has an effect.
    pub streams: bool,
    /// The kinds of memory in which its bytes may end; the first is the default.
    pub memory: &'static [MemoryKind],
    /// Whether a read may come from, or stay in, page-locked host memory that all workers of a job
    /// share, from where a copy of its own takes each block to GPU memory.
    pub has_tier: bool,
}

impl PathInfo {
    /// The values of a path that states nothing else: an engine moves its bytes, and none of the
    /// rest applies. Names, memory and whether it needs a GPU are each path's own.
    pub const PLAIN: PathInfo = PathInfo {
        name: "",
        gdsio: None,
        gdsio_name: "",
        summary: "",
        needs_gpu: false,
        via_gpu: false,
        fans_out: false,
        buffered_only: false,
        buffered_because: None,
        backend: Backend::Engine,
        batches: false,
        streams: false,
        memory: &[],
        has_tier: false,
    };

    /// Whether one of the engines takes part.
    pub fn uses_engine(&self) -> bool {
        self.backend == Backend::Engine
    }

    /// The calls of NVIDIA's cuFile that it needs, if it does.
    pub fn cufile(&self) -> Option<Calls> {
        match self.backend {
            Backend::Cufile(calls) => Some(calls),
            Backend::Engine | Backend::Library(_) | Backend::Mapping | Backend::Rings => None,
        }
    }

    /// Whether NVIDIA's cuFile moves its bytes.
    pub fn uses_cufile(&self) -> bool {
        self.cufile().is_some()
    }

    /// Whether gpuio's own library core moves its bytes.
    pub fn uses_library(&self) -> bool {
        matches!(self.backend, Backend::Library(_))
    }

    /// Whether the GPU reads and writes a mapping of the file itself.
    pub fn uses_mapping(&self) -> bool {
        self.backend == Backend::Mapping
    }

    /// Whether the GPU fills rings of the operating system.
    pub fn uses_rings(&self) -> bool {
        self.backend == Backend::Rings
    }

    /// Whether it needs several GPUs, and so runs only where it is named.
    pub fn needs_gpus(&self) -> bool {
        self.via_gpu || self.fans_out
    }

    /// Whether several blocks may be in flight whatever the engine: a library or the GPU itself
    /// overlaps them.
    pub fn overlaps(&self) -> bool {
        match self.backend {
            Backend::Engine => false,
            Backend::Mapping | Backend::Rings => true,
            Backend::Cufile(calls) | Backend::Library(calls) => calls != Calls::Blocking,
        }
    }

    /// Whether its time in the GPU leg is known.
    pub fn times_gpu_leg(&self) -> bool {
        self.needs_gpu && (self.uses_engine() || self.uses_mapping() || self.uses_rings())
    }

    /// Whether it has a leg between file and host memory, or one that can't be separated from it.
    pub fn has_file_leg(&self) -> bool {
        !self.uses_mapping()
    }
}
