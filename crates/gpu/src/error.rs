//! Why there is no driver, and what a driver refused.

use std::fmt;
use std::path::PathBuf;

use gpuio_base::nearest::use_instead;
use gpuio_guard::objects::SOFTWARE_GPU;
use thiserror::Error;

use crate::table;

/// Why no CUDA driver can be used. Each state asks for another remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absent {
    /// The loader opened none of the libraries.
    NoLibrary {
        /// The files that were tried, in this order.
        tried: Vec<PathBuf>,
        /// The loader's message for each.
        why: Vec<String>,
    },
    /// The library is there and its driver does not start.
    InitFailed {
        /// The call that failed, `cuInit` as a rule.
        call: &'static str,
        /// The code that it returned.
        code: i32,
        /// The code's name.
        name: String,
        /// The driver's own explanation.
        text: String,
        /// The next thing to look at.
        hint: &'static str,
    },
    /// The library lacks a function that gpuio needs.
    SymbolMissing {
        /// The library.
        library: PathBuf,
        /// The function.
        symbol: &'static str,
    },
    /// The driver works and shows this process no GPU.
    NoDevice,
}

impl std::error::Error for Absent {}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrary { tried, why } => {
                if let Some(word) = no_path(tried) {
                    let accepted = ["system", "software", "the path of a library"];
                    let instead = use_instead(word, &accepted);
                    return write!(f, "'{word}' names no CUDA driver; {instead}");
                }
                f.write_str("no CUDA driver library could be loaded")?;
                let mut missing = Vec::new();
                for (path, why) in tried.iter().zip(why) {
                    // The loader's words name the file themselves, as a rule.
                    let path = path.display().to_string();
                    match why.strip_prefix(&path) {
                        Some(why) if why.contains("No such file or directory") => {
                            missing.push(path);
                        }
                        Some(why) => write!(f, "; {path}{why}")?,
                        None => write!(f, "; {path}: {why}")?,
                    }
                }
                if !missing.is_empty() {
                    write!(f, "; not there: {}", missing.join(", "))?;
                }
                if tried.is_empty() {
                    f.write_str("; there was no place to look for it")?;
                }
                let is_named = matches!(&tried[..], [one] if one.is_absolute());
                f.write_str(match tried.iter().any(|path| path.ends_with(SOFTWARE_GPU)) {
                    true => {
                        ". The software GPU is a file of gpuio's packages; in a source tree make \
                         it with cargo build -p gpuio-softgpu"
                    }
                    false if is_named => {
                        ". GPUIO_LIBCUDA (of the program) or GPUIO_CUFILE_DRIVER (of the \
                         libraries) named that file: name another one, or none for the system's \
                         driver"
                    }
                    false => {
                        ". Install the NVIDIA driver's user-space libraries (in a container: start \
                         it with the NVIDIA container runtime)"
                    }
                })
            }
            Self::InitFailed { call, code, name, text, hint } => {
                write!(f, "the CUDA driver is installed but does not start: {call} returned ")?;
                write!(f, "{name} ({code}), {text}. {hint}")
            }
            Self::SymbolMissing { library, symbol } => write!(
                f,
                "{} has no function {symbol}: it is no CUDA driver, or one older than CUDA 11.0. \
                 Update the NVIDIA driver to release 450 or later, or name another library",
                library.display()
            ),
            Self::NoDevice => f.write_str(
                "the CUDA driver works and shows no GPU to this process. Look at \
                 CUDA_VISIBLE_DEVICES, at what nvidia-smi lists and, in a container, at the GPUs \
                 it was started with",
            ),
        }
    }
}

/// The only name that was tried, if it is a word and no library.
fn no_path(tried: &[PathBuf]) -> Option<&str> {
    match tried {
        [one] => one.to_str().filter(|name| !name.contains(['/', '.'])),
        _ => None,
    }
}

impl Absent {
    /// The state for a call that failed while the driver started.
    pub(crate) fn init(error: GpuError) -> Self {
        let hint = init_hint(error.code);
        let GpuError { call, code, name, text, .. } = error;
        Self::InitFailed { call, code, name, text, hint }
    }
}

/// The checks to make after `cuInit` returned `code`.
fn init_hint(code: i32) -> &'static str {
    match code {
        table::NO_DEVICE => {
            "No GPU is visible: look at CUDA_VISIBLE_DEVICES, at what nvidia-smi lists and, in a \
             container, at the GPUs it was started with"
        }
        table::STUB_LIBRARY => {
            "This is the stub of the CUDA SDK, made for linking: take its directory out of \
             LD_LIBRARY_PATH and install the NVIDIA driver"
        }
        table::SYSTEM_NOT_READY => {
            "A service the GPUs need is not up: on NVSwitch machines start nvidia-fabricmanager"
        }
        table::SYSTEM_DRIVER_MISMATCH => {
            "The user-space driver and the kernel module differ in release: compare \
             /proc/driver/nvidia/version with the package, then reload the module or reboot"
        }
        table::COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            "The forward-compatibility libraries do not support this GPU: take cuda-compat out of \
             LD_LIBRARY_PATH"
        }
        table::UNKNOWN | table::NOT_INITIALIZED => {
            "Often the module nvidia_uvm is not loaded or /dev/nvidia-uvm is not accessible: run \
             nvidia-modprobe -u -c=0 as root and try again"
        }
        _ => "Run nvidia-smi and look at the kernel log for lines of NVRM",
    }
}

/// A driver call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct GpuError {
    /// The driver's function, or gpuio's own check before it.
    pub call: &'static str,
    /// The code that it returned (the enumeration `CUresult` in the driver API's manual).
    pub code: i32,
    /// The code's name.
    pub name: String,
    /// The driver's own explanation.
    pub text: String,
    /// The device, if one is known.
    pub device: Option<u32>,
    /// The request: sizes and addresses, in bytes. May be empty.
    pub detail: String,
}

impl GpuError {
    /// The same error, naming the device.
    pub(crate) fn on(mut self, device: u32) -> Self {
        self.device = Some(device);
        self
    }

    /// The same error with what was requested.
    pub(crate) fn with(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// True if the context is lost: each later call will fail too, until the process ends.
    pub fn is_sticky(&self) -> bool {
        // ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE, ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT, then
        // HARDWARE_STACK_ERROR to LAUNCH_FAILED.
        matches!(self.code, 214 | 220 | 700 | 702 | 710 | 714..=719)
    }

    /// True if the context was reset or destroyed: all that was made in it is gone, and a new one
    /// may be had.
    pub fn is_reset(&self) -> bool {
        self.code == table::CONTEXT_IS_DESTROYED
    }

    /// True if memory ran out, on the device or pinned on the host.
    pub fn is_out_of_memory(&self) -> bool {
        self.code == table::OUT_OF_MEMORY
    }

    fn hint(&self) -> &'static str {
        match self.code {
            table::OUT_OF_MEMORY => {
                "; request smaller or fewer buffers, or free memory that another process holds \
                 (nvidia-smi lists them; for pinned memory look at ulimit -l and the memory cgroup)"
            }
            table::INVALID_CONTEXT => {
                "; the calling thread has no current context: call Context::make_current first"
            }
            table::NO_BINARY_FOR_GPU | table::UNSUPPORTED_PTX_VERSION => {
                "; gpuio's kernels need a GPU of compute capability 7.0 or later"
            }
            table::HOST_MEMORY_ALREADY_REGISTERED => "; register each range of memory once",
            _ if self.is_sticky() => {
                "; the context is lost and this process cannot use the GPU any more: the cause may \
                 be an earlier copy or kernel, look at the kernel log for Xid lines of NVRM"
            }
            _ => "",
        }
    }
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.call)?;
        if let Some(device) = self.device {
            write!(f, " on GPU {device}")?;
        }
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        write!(f, ": {} ({}), {}{}", self.name, self.code, self.text, self.hint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_driver_is_answered_with_those_there_are() {
        let tried = |name: &str| {
            Absent::NoLibrary { tried: vec![name.into()], why: vec!["no".into()] }.to_string()
        };
        let word = tried("softwar");
        assert!(word.contains("use system, software or the path") && word.ends_with("software"));
        assert!(tried("libcuda.so.1").contains("Install the NVIDIA driver"));
        assert!(tried("/nowhere/libcuda.so.1").ends_with("none for the system's driver"));
        assert!(tried(SOFTWARE_GPU).contains("-p gpuio-softgpu"));
    }
}
