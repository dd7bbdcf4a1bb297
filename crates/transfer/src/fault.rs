//! What may go wrong.

use std::path::PathBuf;

use gpuio_gpu::GpuError;
use thiserror::Error;

/// Why a descriptor can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The kernel refused to tell of it or to duplicate it.
    #[error(
        "{call} of descriptor {fd}: {}; the descriptor must be open, and the limit of open files \
         (ulimit -n) leave room for three more", std::io::Error::from_raw_os_error(*errno)
    )]
    Call {
        /// The system call.
        call: &'static str,
        /// The descriptor.
        fd: i32,
        /// Its answer, errno(3).
        errno: i32,
    },
    /// It is open, and neither a regular file nor a block device.
    #[error(
        "descriptor {fd} is {what}: only regular files and block devices can be read by offset"
    )]
    Kind {
        /// The descriptor.
        fd: i32,
        /// What it is instead.
        what: &'static str,
    },
}

/// Why nobody can say what an address is, or bytes can't be put there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The driver's refusal.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// This is a child of the process that initialised the driver.
    #[error(
        "the memory at {address:#x} can't be looked at in a child process: CUDA does not survive \
         fork(2); start the child by exec, or fork before CUDA is used"
    )]
    Forked {
        /// The address.
        address: u64,
    },
}

/// Why a call moved nothing that counts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The kernel's refusal of the file's part.
    #[error(
        "{call} of {len} bytes at offset {offset} of {}: {}",
        path.display(), std::io::Error::from_raw_os_error(*errno)
    )]
    File {
        /// The system call.
        call: &'static str,
        /// Its answer, errno(3).
        errno: i32,
        /// Where in the file, in bytes.
        offset: u64,
        /// How many bytes.
        len: u64,
        /// The file, as the kernel knows it now.
        path: PathBuf,
    },
    /// The driver's refusal, or a failure of the copy.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// This is a child of the process that initialised the driver.
    #[error(
        "memory of a GPU can't be used in a child process: CUDA does not survive fork(2); start \
         the child by exec, or fork before CUDA is used"
    )]
    Forked,
    /// A parameter of a transfer in a stream, which was read when the stream came to it.
    #[error("{name} is {value}: offsets are 0 or more, a size is at most what was told before")]
    Parameter {
        /// Which one.
        name: &'static str,
        /// Its value.
        value: i64,
    },
    /// The range that a transfer in a stream came to leaves the memory that its base lies in.
    #[error(
        "{len} bytes at {address:#x} leave the memory that the transfer was put into the stream for"
    )]
    Outside {
        /// Where it begins.
        address: u64,
        /// Bytes.
        len: u64,
    },
    /// The stream is being captured into a graph, which file I/O can't be part of.
    #[error("the stream is being captured: end the capture first, files can't be in a graph")]
    Captured,
    /// The memory is of a context that the stream's context, another one of the device, shares no
    /// order with.
    #[error("the memory is of another context than the stream: use a stream of the same context")]
    OtherContext,
    /// There is no driver, so there are no streams.
    #[error("there is no CUDA driver in this process, so there are no streams")]
    NoDriver,
    /// A thread of gpuio panicked: a defect. What the call moved is not known.
    #[error("a defect in gpuio: a thread of its panicked; what was moved is not known")]
    Panicked,
    /// It was cancelled before it began.
    #[error("cancelled before it began")]
    Cancelled,
}

/// A system call on a file that failed, before it is known which call of ours it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) call: &'static str,
    pub(crate) errno: i32,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}
