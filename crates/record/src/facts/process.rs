//! The mapped and open files of a running process, as far as they show which way its bytes go.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeviceNumber, Fact, ProcessIo};

/// A process at one moment. Descriptors and mappings that end while they are read may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUse {
    /// Its number, in the PID namespace of the reader.
    pub pid: u32,
    /// Its command line, words with a blank between; `null` where it hides it.
    pub command: Option<String>,
    /// Whether it sees the mounts that the reader sees (its mount namespace is the same).
    pub same_mounts: Fact<bool>,
    /// Libraries for I/O to GPUs that it has mapped, each once.
    pub libraries: Fact<Vec<MappedLibrary>>,
    /// Files and block devices that it has open, those with `O_DIRECT` first; without files of the
    /// kernel's own file systems, shared memory, pipes and sockets.
    pub files: Fact<Vec<OpenFile>>,
    /// Nodes of NVIDIA's drivers and of RDMA that it has open, each once.
    pub devices: Fact<Vec<String>>,
    /// The bytes that it moved since it began.
    pub io: Fact<ProcessIo>,
    /// Variables with which it was started that choose the way of the bytes. Later changes by the
    /// process are not seen.
    pub environment: Fact<BTreeMap<String, String>>,
}

/// A library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MappedLibrary {
    /// The file, links resolved, as the process sees it.
    pub path: String,
    /// Whether the file was removed or replaced since.
    pub deleted: bool,
    /// The version in the file's name (`1.13.0` of `libcufile.so.1.13.0`); `null` where the name
    /// has one number or none.
    pub version: Option<String>,
    /// The maker of a libcufile.
    pub made_by: Fact<LibraryMaker>,
}

/// The maker of a libcufile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LibraryMaker {
    /// gpuio's, by a mark in the file.
    Gpuio,
    /// Another's, as NVIDIA's is.
    Other,
}

/// An open file: descriptors with the same path, mode and mount are one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenFile {
    /// The file as the process sees it.
    pub path: String,
    /// The mount that serves it; `null` where it could not be found.
    pub mount_point: Option<String>,
    /// Its file system.
    pub fs_type: Option<String>,
    /// The file system's device number.
    pub device: Option<DeviceNumber>,
    /// Whether it is open with `O_DIRECT`.
    pub direct: bool,
    /// Whether it may be read.
    pub reads: bool,
    /// Whether it may be written.
    pub writes: bool,
    /// Descriptors.
    pub descriptors: u32,
}
