//! The kernel's counters of one moment, as `host` reads them.

use gpuio_host::Root;
use gpuio_host::block::BlockSample;
use gpuio_host::interface_io::InterfaceSample;
use gpuio_host::nfs_ops::MountSample;
use gpuio_host::nvidia_fs::NvidiaFsSample;
use gpuio_host::rdma_io::PortSample;

/// Counters of one moment. Each file is opened once for it, and the readings of a
/// [`Sample`](crate::Sample) of that moment are these values. Lists are empty where nothing of the
/// kind was selected or can be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// Block devices with their kernel names.
    pub block: Vec<(String, BlockSample)>,
    pub interfaces: Vec<InterfaceSample>,
    /// Ports of RDMA devices.
    pub ports: Vec<PortSample>,
    /// NFS mounts. The later of two at one mount point covers the earlier.
    pub mounts: Vec<MountSample>,
    /// The module nvidia-fs, `Ok(None)` where it is not loaded; `None` before it was read.
    pub nvidia_fs: Option<Result<Option<NvidiaFsSample>, String>>,
}

impl Counters {
    /// The module nvidia-fs, read by the first call.
    pub(crate) fn nvidia_fs(&mut self, root: &Root) -> &Result<Option<NvidiaFsSample>, String> {
        self.nvidia_fs.get_or_insert_with(|| {
            gpuio_host::nvidia_fs::sample(root).map_err(|error| error.to_string())
        })
    }

    /// The block device of this name.
    pub fn block(&self, name: &str) -> Option<&BlockSample> {
        self.block.iter().find(|(one, _)| one == name).map(|(_, sample)| sample)
    }
}
