//! cuFile's codes: names, meanings and remedies.

use std::fmt;

use crate::cufile::diagnosis::Diagnosis;

/// Code, name without its prefix `CU_FILE_`, and meaning.
type CodeEntry = (i32, &'static str, &'static str);

/// The codes of the "cuFile API Reference Guide"; those from 5039 on are of release 1.15 and later
/// (5039 meant IO_MAX before).
const CODES: &[CodeEntry] = &[
    (5001, "DRIVER_NOT_INITIALIZED", "cuFile was not opened"),
    (5002, "DRIVER_INVALID_PROPS", "a property in its configuration is wrong"),
    (5003, "DRIVER_UNSUPPORTED_LIMIT", "a limit in its configuration is out of range"),
    (5004, "DRIVER_VERSION_MISMATCH", "library and kernel module are of different releases"),
    (5005, "DRIVER_VERSION_READ_ERROR", "the kernel module's version can't be read"),
    (5006, "DRIVER_CLOSING", "cuFile is being closed"),
    (5007, "PLATFORM_NOT_SUPPORTED", "this platform is not supported"),
    (5008, "IO_NOT_SUPPORTED", "I/O on this file is not supported"),
    (5009, "DEVICE_NOT_SUPPORTED", "this GPU is not supported"),
    (5010, "NVFS_DRIVER_ERROR", "the kernel module nvidia-fs failed"),
    (5011, "CUDA_DRIVER_ERROR", "the CUDA driver failed"),
    (5012, "CUDA_POINTER_INVALID", "the address is not memory known to CUDA"),
    (5013, "CUDA_MEMORY_TYPE_INVALID", "this kind of memory is not supported"),
    (5014, "CUDA_POINTER_RANGE_ERROR", "the range leaves its allocation"),
    (5015, "CUDA_CONTEXT_MISMATCH", "the memory belongs to another CUDA context"),
    (5016, "INVALID_MAPPING_SIZE", "the GPU's BAR can't map that much memory"),
    (5017, "INVALID_MAPPING_RANGE", "the range can't be mapped"),
    (5018, "INVALID_FILE_TYPE", "the file is of a type that is not supported"),
    (5019, "INVALID_FILE_OPEN_FLAG", "the file is open with flags that are not supported"),
    (5020, "DIO_NOT_SET", "the file is open without O_DIRECT"),
    (5022, "INVALID_VALUE", "an argument is out of range"),
    (5023, "MEMORY_ALREADY_REGISTERED", "the memory is registered already"),
    (5024, "MEMORY_NOT_REGISTERED", "the memory is not registered"),
    (5025, "PERMISSION_DENIED", "this user is not permitted"),
    (5026, "DRIVER_ALREADY_OPEN", "cuFile is open already"),
    (5027, "HANDLE_NOT_REGISTERED", "the file is not registered"),
    (5028, "HANDLE_ALREADY_REGISTERED", "the file is registered already"),
    (5029, "DEVICE_NOT_FOUND", "the GPU was not found"),
    (5030, "INTERNAL_ERROR", "an error inside the library"),
    (5031, "GETNEWFD_FAILED", "no descriptor is free"),
    (5033, "NVFS_SETUP_ERROR", "the kernel module nvidia-fs could not be set up"),
    (5034, "IO_DISABLED", "I/O on this file was disabled"),
    (5035, "BATCH_SUBMIT_FAILED", "a batch could not be submitted"),
    (5036, "GPU_MEMORY_PINNING_FAILED", "GPU memory could not be pinned"),
    (5037, "BATCH_FULL", "the batch is full"),
    (5038, "ASYNC_NOT_SUPPORTED", "I/O in streams is not supported"),
    (5039, "INTERNAL_BATCH_SETUP_ERROR", "a batch could not be set up"),
    (5040, "INTERNAL_BATCH_SUBMIT_ERROR", "a batch could not be submitted"),
    (5041, "INTERNAL_BATCH_GETSTATUS_ERROR", "a batch's status is unavailable"),
    (5042, "INTERNAL_BATCH_CANCEL_ERROR", "a batch could not be cancelled"),
    (5043, "NOMEM_ERROR", "the library had no memory"),
    (5044, "IO_ERROR", "the I/O failed"),
    (5045, "INTERNAL_BUF_REGISTER_ERROR", "the library's own memory could not be registered"),
    (5046, "HASH_OPR_ERROR", "an error inside the library's tables"),
    (5047, "INVALID_CONTEXT_ERROR", "no CUDA context is current, or it is lost"),
    (5048, "NVFS_INTERNAL_DRIVER_ERROR", "an error inside the kernel module nvidia-fs"),
    (5049, "BATCH_NOCOMPAT_ERROR", "this batch can't run in compatibility mode"),
    (5050, "IO_MAX_ERROR", "more I/O than the library takes at once"),
];

fn row(code: i32) -> Option<&'static CodeEntry> {
    CODES.iter().find(|row| row.0 == code)
}

/// The meaning of a code in one line with its name: for failures of single I/Os.
pub fn meaning(code: i32) -> String {
    match row(code) {
        Some((code, name, words)) => format!("cuFile returned {code} ({name}): {words}"),
        None => format!("cuFile returned {code}, a code that gpuio does not know"),
    }
}

/// A cuFile call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CufileError {
    /// The library's function.
    pub call: &'static str,
    /// The returned code: 5001 to 5050.
    pub code: i32,
    /// The CUDA driver's code with 5011; 0 otherwise.
    pub cuda: i32,
    /// The purpose of the call: a file, or a range of memory. May be empty.
    pub context: String,
    /// Facts about the cause.
    pub diagnosis: Diagnosis,
}

impl fmt::Display for CufileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&explain(self.code, self.call, &self.context, &self.diagnosis))?;
        if self.code == 5011 && self.cuda != 0 {
            write!(f, ". The CUDA driver's code is {}", self.cuda)?;
        }
        Ok(())
    }
}

/// Reports which call failed on what, with which code and meaning, and the most likely cause by
/// `diagnosis` with its remedy. Reads nothing.
pub fn explain(code: i32, call: &str, context: &str, diagnosis: &Diagnosis) -> String {
    let of = if context.is_empty() { String::new() } else { format!(" ({context})") };
    let mut text = match row(code) {
        Some((code, name, words)) => format!("{call}{of} returned {code} ({name}): {words}"),
        None => format!("{call}{of} returned {code}, a code that gpuio does not know"),
    };
    if let Some(cause) = cause(code, diagnosis) {
        text.push_str(". ");
        text.push_str(&cause);
    }
    if let Some(log) = &diagnosis.log {
        text.push_str(". cuFile's log ends with: ");
        text.push_str(log);
    }
    text
}

/// Codes by which the library refuses a file, or itself, for reasons outside the call.
fn is_setup(code: i32) -> bool {
    matches!(code, 5002 | 5005 | 5007..=5010 | 5018 | 5027 | 5030 | 5033 | 5034 | 5048)
}

/// The most likely cause, the most certain sign first.
fn cause(code: i32, diagnosis: &Diagnosis) -> Option<String> {
    if code == 5025 {
        return Some(
            "Check the permissions of the file, of /dev/nvidia* and of /dev/nvidia-fs*; in a \
             container, check which of them were passed to it"
                .into(),
        );
    }
    if code == 5019 && diagnosis.no_follow {
        return Some(
            "The file is open with O_NOFOLLOW, which cuFile refuses. gpuio opens files safely \
             without it by /proc or openat2(2), and could use neither here: mount /proc, or let \
             the sandbox pass openat2"
                .into(),
        );
    }
    if (code == 5020 || code == 5019) && !diagnosis.direct {
        return Some("Open the file with O_DIRECT: leave out --buffered".into());
    }
    if code == 5016 || code == 5036 {
        return Some(
            "Lower --depth, --threads or --bs, or do without registration: skip_bufregister (-b)"
                .into(),
        );
    }
    if code == 5028 {
        return Some("Leave out --shared-fd, so that each thread has a descriptor".into());
    }
    if !is_setup(code) {
        return None;
    }
    let compat_off = diagnosis.compat_allowed == Some(false);
    let module_and_mode = |module: &str| {
        format!(
            "The kernel module nvidia-fs {module} and compatibility mode is off: load the module, \
             or use --cufile-set properties.allow_compat_mode=true"
        )
    };
    // This code is about the module alone, whatever else the machine shows.
    if code == 5033 && compat_off && diagnosis.nvidia_fs != Some(true) {
        return Some(module_and_mode("can't be used"));
    }
    if diagnosis.udev_entry == Some(false) {
        let (major, minor) = diagnosis.device.unwrap_or_default();
        return Some(format!(
            "The udev database has nothing on the disk: /run/udev/data/b{major}:{minor} is missing \
             or has no ID_FS_USAGE, as in most containers and small virtual machines. Mount the \
             host's /run/udev into the container, or start udevd and run udevadm trigger"
        ));
    }
    if diagnosis.nvidia_fs == Some(false) && compat_off {
        return Some(module_and_mode("is not loaded"));
    }
    if let Some(fs_type) = diagnosis.fs_type.as_deref().filter(|name| !SUPPORTED.contains(name)) {
        return Some(format!(
            "The file is on {fs_type}, which cuFile may not support: use a file on ext4 or XFS"
        ));
    }
    (diagnosis.nvidia_fs == Some(false)).then(|| {
        "The kernel module nvidia-fs is not loaded, so only compatibility mode can work here".into()
    })
}

/// File systems that the "GPUDirect Storage Release Notes" name, by the kernel's names.
const SUPPORTED: &[&str] =
    &["ext4", "xfs", "nfs", "nfs4", "lustre", "wekafs", "gpfs", "beegfs", "virtiofs", "panfs"];

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis() -> Diagnosis {
        Diagnosis {
            direct: true,
            nvidia_fs: Some(true),
            fs_type: Some("ext4".into()),
            ..Diagnosis::default()
        }
    }

    #[test]
    fn codes_are_in_order_and_each_once() {
        assert!(CODES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!((CODES[0].0, CODES[CODES.len() - 1].0), (5001, 5050));
        // Two numbers of the range have no code.
        let name = |code| row(code).map(|row| row.1);
        assert_eq!((CODES.len(), name(5021), name(5032)), (48, None, None));
        assert_eq!(name(5027), Some("HANDLE_NOT_REGISTERED"));
    }

    #[test]
    fn a_missing_udev_entry_is_named_with_its_file() {
        let diagnosis =
            Diagnosis { device: Some((252, 16)), udev_entry: Some(false), ..diagnosis() };
        let text = explain(5027, "cuFileHandleRegister", "/data/f", &diagnosis);
        for word in [
            "cuFileHandleRegister (/data/f)",
            "5027",
            "HANDLE_NOT_REGISTERED",
            "/run/udev/data/b252:16",
            "udevadm trigger",
        ] {
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn each_cause_has_its_words() {
        let off = Diagnosis { nvidia_fs: Some(false), compat_allowed: Some(false), ..diagnosis() };
        let off_without_udev =
            Diagnosis { nvidia_fs: None, udev_entry: Some(false), ..off.clone() };
        let overlay = Diagnosis { fs_type: Some("overlay".into()), ..diagnosis() };
        let buffered = Diagnosis { direct: false, ..diagnosis() };
        let compat =
            Diagnosis { nvidia_fs: Some(false), compat_allowed: Some(true), ..diagnosis() };
        let no_follow = Diagnosis { no_follow: true, ..diagnosis() };
        let log = Diagnosis { log: Some("udev property not found".into()), ..diagnosis() };
        let cases = [
            (5033, &off, "properties.allow_compat_mode=true"),
            (5033, &off_without_udev, "properties.allow_compat_mode=true"),
            (5008, &overlay, "on overlay"),
            (5020, &buffered, "leave out --buffered"),
            (5030, &compat, "only compatibility mode"),
            (5025, &off, "permissions"),
            (5016, &off, "-b"),
            (5028, &off, "--shared-fd"),
            (5019, &no_follow, "mount /proc"),
            (5012, &log, "log ends with: udev property not found"),
        ];
        for (code, diagnosis, words) in cases {
            let text = explain(code, "call", "", diagnosis);
            assert!(text.contains(words), "{code}: {text}");
        }
        // Without a likely cause the meaning stands alone.
        let plain = explain(5014, "call", "", &off);
        assert_eq!(
            plain,
            "call returned 5014 (CUDA_POINTER_RANGE_ERROR): the range leaves its \
                           allocation"
        );
        assert!(meaning(5999).contains("5999"), "{}", meaning(5999));
    }
}
