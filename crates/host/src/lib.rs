//! Reads what this machine is from the kernel, one interface per module, into `record::facts`.
//!
//! Every reader takes a [`Root`], so that the same code reads a live system, a directory and a
//! tree in memory. A root can record which files are read through it: that is what a capture
//! contains. Parsing is separate from reading. A missing file is not an error: the field stays
//! `None`. A line that does not have its documented form is a [`HostError`] with path and line;
//! [`collect`] gathers those in `HostFacts::problems` and continues, and so does
//! [`machine::read`], which reads the whole machine for topology, checks and plans. Configuration
//! space is read word by word, since each word costs a microsecond at the device.
//!
//! In a machine, lists refer to each other by PCI address and kernel name. A value that the caller
//! may not be allowed to read (root only, no NVML) is a `Fact`: known, or unknown with the reason.
//! Where the kernel simply does not report it, it is an `Option`.
//!
//! `target` checks whether a file or device may be written: it opens the target once (`O_PATH`),
//! and decides by what that descriptor reports. `input` reads files that a user names, with a
//! limit on their size. `answers` comes before both: no other call waits for a file system whose
//! server is gone.
//!
//! Nothing here writes (but to list a file's extents the kernel writes back its dirty pages), and
//! nothing is cached. All functions may be called from any thread;
//! `/proc/self` is the process, so affinity is that of its main thread. Tests have servers as
//! tables (`testkit/machines`), which a builder writes out as trees.

pub mod answers;
pub mod block;
pub mod build_config;
pub mod cgroup;
pub mod cpu;
pub mod cpu_time;
pub mod cufile;
pub mod drive;
mod error;
pub mod extents;
mod facts;
pub mod input;
pub mod interface_io;
pub mod kernel;
pub mod machine;
pub mod memory;
pub mod module;
pub mod mount;
pub mod mounted;
pub mod net;
pub mod nfs;
pub mod nfs_ops;
pub mod nic;
pub mod numa;
pub mod nvidia_fs;
pub mod nvidia_gpu;
pub mod page_cache;
mod parse;
pub mod pci;
pub mod proc_io;
pub mod process;
pub mod process_time;
pub mod process_use;
pub mod rdma_io;
mod recorder;
pub mod residency;
mod root;
pub mod settings;
pub mod signature;
pub mod statx;
pub mod target;
pub mod tcp_info;
mod tree;

pub use error::{HostError, LineFault};
pub use facts::{collect, target_storage};
pub use parse::parse_cpu_list;
pub use recorder::Recorder;
pub use root::{MOST_BYTES, Root, Text};
pub use tree::{Entry, Tree, may_be_kept};
