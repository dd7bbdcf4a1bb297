//! The errors of this crate.

use std::path::PathBuf;

use gpuio_gpu::GpuError;
use thiserror::Error;

/// Why a descriptor can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileError {
    /// `fstat(2)` or duplicating it failed.
    #[error(
        "{call} of descriptor {fd}: {}. The descriptor must be open, and the limit of open files \
         (ulimit -n) must allow three more", std::io::Error::from_raw_os_error(*errno)
    )]
    Call {
        /// The system call.
        call: &'static str,
        /// The descriptor.
        fd: i32,
        /// errno(3).
        errno: i32,
    },
    /// It is open, but neither a regular file nor a block device.
    #[error(
        "descriptor {fd} is {what}: only regular files and block devices can be read by offset"
    )]
    Kind {
        /// The descriptor.
        fd: i32,
        /// Its actual kind.
        what: &'static str,
    },
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file side failed.
    #[error(
        "{call} of {len} bytes at offset {offset} of {}: {}",
        path.display(), std::io::Error::from_raw_os_error(*errno)
    )]
    File {
        /// The system call.
        call: &'static str,
        /// errno(3).
        errno: i32,
        /// Offset in the file, in bytes.
        offset: u64,
        /// How many bytes.
        len: u64,
        /// The file's current path.
        path: PathBuf,
    },
    /// The driver's error, or a failed copy.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// This is a child of the process that initialised the driver.
    #[error(
        "GPU memory can't be used in a child process: CUDA does not survive fork(2). Start the \
         child by exec, or fork before CUDA is used"
    )]
    Forked,
    /// The kernel can't reach the memory, in a child of the process that made the transfer: there
    /// the driver can't be asked whether it is of a GPU.
    #[error(
        "the memory at {address:#x} can't be reached (EFAULT), and this process is a child of \
         fork(2). If it is memory of a GPU: CUDA does not survive fork(2). Start the child by \
         exec, or fork before CUDA is used"
    )]
    Unreached {
        /// Where the memory begins.
        address: u64,
    },
    /// A parameter of a transfer in a stream was invalid when the stream reached it.
    #[error("{name} is {value}: an offset must be 0 or more, and a size at most the announced one")]
    Parameter {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: i64,
    },
    /// The range of a transfer in a stream leaves the memory of its base.
    #[error("{len} bytes at {address:#x} leave the memory that the transfer was enqueued for")]
    Outside {
        /// Its start.
        address: u64,
        /// Bytes.
        len: u64,
    },
    /// The stream is being captured into a graph, which can't contain file I/O.
    #[error("the stream is being captured. End the capture first: a graph can't contain file I/O")]
    Captured,
    /// The memory belongs to another context of the device than the stream.
    #[error(
        "the memory is of another context than the stream: use a stream of the memory's context"
    )]
    OtherContext,
    /// There is no driver, so there are no streams.
    #[error("there is no CUDA driver in this process, so there are no streams")]
    NoDriver,
    /// A thread of gpuio panicked: a defect. How much was transferred is unknown.
    #[error("a defect in gpuio: one of its threads panicked. How much was transferred is unknown")]
    Panicked,
    /// Cancelled before it began.
    #[error("cancelled before it began")]
    Cancelled,
}

/// A failed system call on a file, before it is known which call it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileFault {
    pub(crate) call: &'static str,
    pub(crate) errno: i32,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}
