//! The bytes that this process moved: `/proc/self/io` (proc_pid_io(5), Linux 2.6.20).

use gpuio_record::facts::ProcessIo;

use crate::{HostError, LineFault, Root};

/// The counters since the process began, all threads together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessIoSample {
    /// The counters, each counted from the start of the process.
    pub total: ProcessIo,
}

impl ProcessIoSample {
    /// The bytes from this sample to a `later` one. A counter that went back, which the kernel's do
    /// not, gives 0.
    pub fn delta(&self, later: &Self) -> ProcessIo {
        let (from, to) = (&self.total, &later.total);
        ProcessIo {
            read_call_bytes: to.read_call_bytes.saturating_sub(from.read_call_bytes),
            write_call_bytes: to.write_call_bytes.saturating_sub(from.write_call_bytes),
            read_calls: to.read_calls.saturating_sub(from.read_calls),
            write_calls: to.write_calls.saturating_sub(from.write_calls),
            storage_read_bytes: to.storage_read_bytes.saturating_sub(from.storage_read_bytes),
            storage_write_bytes: to.storage_write_bytes.saturating_sub(from.storage_write_bytes),
            cancelled_write_bytes: to
                .cancelled_write_bytes
                .saturating_sub(from.cancelled_write_bytes),
        }
    }
}

/// Samples the counters; `None` when the kernel was built without I/O accounting.
///
/// # Errors
/// [`HostError`] when the file cannot be read or understood.
pub fn sample(root: &Root) -> Result<Option<ProcessIoSample>, HostError> {
    sample_at(root, "proc/self/io")
}

/// The same of another process; `None` also when the caller may not read it: only its user and root
/// may (ptrace(2), `PTRACE_MODE_READ_FSCREDS`).
///
/// # Errors
/// [`HostError`] when the file cannot be read or understood.
pub fn sample_of(root: &Root, pid: u32) -> Result<Option<ProcessIoSample>, HostError> {
    sample_at(root, &format!("proc/{pid}/io"))
}

fn sample_at(root: &Root, file: &str) -> Result<Option<ProcessIoSample>, HostError> {
    let Some(text) = root.read(file)? else {
        return Ok(None);
    };
    text.parse(parse).map(Some)
}

/// Parses `/proc/self/io`. Keys this program does not know are passed over.
///
/// # Errors
/// [`LineFault`] when a line is not `key: number`.
pub fn parse(text: &str) -> Result<ProcessIoSample, LineFault> {
    let mut total = ProcessIo::default();
    for (index, line) in text.lines().enumerate() {
        let malformed = || LineFault::new(index, line, "key: number");
        let (key, value) = line.split_once(':').ok_or_else(malformed)?;
        let value: u64 = value.trim().parse().map_err(|_| malformed())?;
        match key {
            "rchar" => total.read_call_bytes = value,
            "wchar" => total.write_call_bytes = value,
            "syscr" => total.read_calls = value,
            "syscw" => total.write_calls = value,
            "read_bytes" => total.storage_read_bytes = value,
            "write_bytes" => total.storage_write_bytes = value,
            "cancelled_write_bytes" => total.cancelled_write_bytes = value,
            _ => {}
        }
    }
    Ok(ProcessIoSample { total })
}
