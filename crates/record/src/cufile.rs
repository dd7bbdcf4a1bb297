//! The cuFile library of a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// NVIDIA's cuFile library as a run used it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CufileUsed {
    /// The file that it was loaded from.
    pub library: String,
    /// Its release as (major, minor), where it reports one.
    pub version: Option<(u32, u32)>,
    /// Version of the kernel module nvidia-fs as (major, minor); absent where it is not loaded.
    /// Without it bytes go through host memory (compatibility mode) or by peer-to-peer DMA.
    pub nvidia_fs: Option<(u32, u32)>,
    /// Whether the library may go through host memory, as the library reports it.
    pub compat_allowed: Option<bool>,
    /// Whether the library polls for the completion of small I/Os, as the library reports it.
    pub poll_mode: Option<bool>,
    /// The largest I/O that it polls for, in KiB, as the library reports it.
    pub poll_threshold_kib: Option<u64>,
    /// Whether it is gpuio's stand-in over plain file I/O: a test double.
    pub stand_in: bool,
    /// Whether it is gpuio's own `libcufile` (docs/dropin.md).
    #[serde(default)]
    pub gpuio: bool,
    /// The configuration file of the user's that stood below this run's settings.
    pub config_from: Option<String>,
    /// The configuration in force, keys joined by dots, values as JSON. Keys that are absent have
    /// the library's own defaults.
    pub config: BTreeMap<String, String>,
}
