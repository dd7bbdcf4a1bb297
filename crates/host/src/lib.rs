//! What this machine is, read from the kernel, one interface per module.
//!
//! Every reader takes a [`Root`], so that the same code reads a live system and a small tree
//! made by a test. Parsing is apart from reading. A file that the kernel lacks is no error: the
//! field stays `None`. A line that does not have its documented form is a [`HostError`] with
//! path and line; [`collect`] gathers those in `HostFacts::problems` and goes on, and so does
//! [`machine::read`], which reads the whole machine for questions of topology.
//!
//! Nothing here writes, and nothing is cached: each call reads anew. All functions may be called
//! from any thread; `/proc/self` names the process, so affinity is that of its main thread.

pub mod block;
pub mod build_config;
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
pub mod rdma_io;
mod recorder;
pub mod residency;
mod root;
pub mod settings;
pub mod signature;
pub mod statx;
pub mod target;
mod tree;

pub use error::{HostError, Malformed};
pub use facts::{collect, target_storage};
pub use parse::parse_cpu_list;
pub use recorder::Recorder;
pub use root::{MOST_BYTES, Root, Text};
pub use tree::{Entry, Tree};
