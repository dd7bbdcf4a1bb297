//! A request: one direction of a job.

use gpuio_record::Towards;

/// One direction of a job: where its bytes lie, where they go, and in what pieces.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// Name, for the answer.
    pub name: String,
    /// Where the bytes lie; several share the load evenly.
    pub storage: Vec<Storage>,
    /// The memory at the other end.
    pub end: End,
    /// How they get to GPU memory; without effect for [`End::Host`].
    pub by: By,
    /// File to memory, or memory to file.
    pub towards: Towards,
    /// Bytes of one I/O.
    pub block_bytes: u64,
    /// Order of offsets.
    pub pattern: Pattern,
    /// I/Os in flight at once, over all threads; `None` where there are always enough.
    pub in_flight: Option<u64>,
    /// The requested rate, in bytes per second; `None` for as fast as it goes.
    pub requested_bytes_per_s: Option<f64>,
}

/// Where bytes lie.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Storage {
    /// A block device by kernel name: a drive, partition, array or volume.
    Device(String),
    /// A mount by its mount point.
    Mount(String),
}

/// Memory where bytes end or begin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Host memory, of any NUMA node.
    Host,
    /// GPU memory, by the GPU's PCI address.
    Gpu(String),
    /// Memory of several GPUs by their PCI addresses, evenly.
    Gpus(Vec<String>),
    /// GPU memory, where no path to it is counted: a software GPU, or a GPU on paper.
    Uncounted,
}

impl End {
    /// The GPUs whose links count.
    pub(crate) fn gpus(&self) -> &[String] {
        match self {
            End::Gpu(gpu) => std::slice::from_ref(gpu),
            End::Gpus(gpus) => gpus,
            End::Host | End::Uncounted => &[],
        }
    }
}

/// How bytes get from storage to GPU memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// Through host memory.
    Host,
    /// Between the devices, peer to peer.
    Direct,
}

/// Order of offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// One after another.
    Sequential,
    /// By chance.
    Random,
}
