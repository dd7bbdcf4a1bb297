//! The facts about a machine that NVIDIA's gdscheck printed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Fact;

/// The output of `gdscheck -p`, as printed: the tool's own statements, which are never mixed with
/// what was read. A value is unknown where no such line was printed, or where the line itself says
/// that it is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GdsCheck {
    /// Whether gpuio's own gdscheck printed it, from its facts, and not NVIDIA's.
    pub by_gpuio: bool,
    /// Release of GPUDirect Storage (`1.13.0.11`).
    pub release: Fact<String>,
    /// Version of nvidia-fs (`2.17`). Not a proof that it is loaded.
    pub nvidia_fs: Fact<String>,
    /// The least version of nvidia-fs that the library takes (from 1.16 on).
    pub nvidia_fs_least: Fact<String>,
    /// Version of the library's interface (`2.12`).
    pub libcufile: Fact<String>,
    /// Architecture (`x86_64`).
    pub platform: Fact<String>,
    /// cuFile's environment variables.
    pub environment: Vec<GdsLine>,
    /// Kinds of storage and parts of RDMA, in the order of the lines, with what they are reported
    /// to do: `Supported` and `Unsupported`, from 1.16 on `nvfs, compat` and the like.
    pub drivers: Vec<GdsLine>,
    /// cuFile's settings in force, in the order of the lines, by gdscheck's names.
    pub settings: Vec<GdsLine>,
    /// GPUs by CUDA's index, which need not be that of `nvidia-smi`.
    pub gpus: Vec<GdsGpu>,
    /// State of the IOMMU in gdscheck's words.
    pub iommu: Fact<String>,
    /// PCI addresses of switches with ACS on, as printed. Empty without a line about one, which
    /// need not mean that it was looked for.
    pub acs: Vec<String>,
    /// Whether NVIDIA's kernel driver fits, in gdscheck's words.
    pub driver_status: Fact<String>,
    /// The CUDA version of NVIDIA's driver: 12080 is 12.8.
    pub cuda_version: Fact<u32>,
    /// Product, architecture and kernel.
    pub machine: Fact<String>,
    /// The result of the verification: `succeeded`, or another word.
    pub verification: Fact<String>,
    /// Lines that are none of these: warnings, and what other releases print.
    pub notes: Vec<GdsNote>,
}

/// A line with a name and a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GdsLine {
    /// The name as printed.
    pub name: String,
    /// The value as printed.
    pub value: Fact<String>,
}

impl GdsLine {
    /// Whether it is the line of this name: documents print blanks for underscores.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.replace(' ', "_") == name.replace(' ', "_")
    }
}

/// A line about a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GdsGpu {
    /// CUDA's index.
    pub index: Fact<u32>,
    /// Product's name.
    pub name: Fact<String>,
    /// Size of BAR1, in bytes.
    pub bar1_bytes: Fact<u64>,
    /// Whether GPUDirect Storage takes it, in gdscheck's words: `supports GDS`.
    #[serde(alias = "says")]
    pub support: Fact<String>,
    /// State of the IOMMU for this GPU in gdscheck's words (from 1.0 on).
    pub iommu: Fact<String>,
}

/// A line that is no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GdsNote {
    /// Line in the text, counted from 1; 0 where there is no text yet.
    pub line: u64,
    /// The line without blanks at its ends.
    pub text: String,
}

/// A result of a test of `dcgmi diag`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// The test, as printed: `PCIe`, `memory`.
    pub test: String,
    /// Its result.
    pub verdict: Verdict,
    /// The GPUs that it is of, as printed: `GPUs: 0, 1`, `All`; empty where it is of the machine.
    pub of: String,
    /// Warnings and errors below it.
    pub words: String,
}

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It passed.
    Pass,
    /// It failed.
    Fail,
    /// It passed, with a warning.
    Warn,
    /// It did not run.
    Skip,
}

/// Nothing was printed.
impl Default for GdsCheck {
    fn default() -> Self {
        fn absent<T>() -> Fact<T> {
            Fact::unknown("gdscheck did not print it")
        }
        GdsCheck {
            by_gpuio: false,
            release: absent(),
            nvidia_fs: absent(),
            nvidia_fs_least: absent(),
            libcufile: absent(),
            platform: absent(),
            environment: Vec::new(),
            drivers: Vec::new(),
            settings: Vec::new(),
            gpus: Vec::new(),
            iommu: absent(),
            acs: Vec::new(),
            driver_status: absent(),
            cuda_version: absent(),
            machine: absent(),
            verification: absent(),
            notes: Vec::new(),
        }
    }
}
