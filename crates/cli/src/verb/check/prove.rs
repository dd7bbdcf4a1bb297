//! `--prove`: real I/O on the paths of the verdict.
//!
//! Each path runs in a process of its own, because NVIDIA's library can end the process that loads
//! it, and reads its configuration once. The loads are those of `gpuio bench`, with its guards.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use gpuio_base::units::ShellLine;
use gpuio_dataset::leftover;
use gpuio_guard::outfile::Private;
use gpuio_host::Root;
use gpuio_load::direct_try::{DirectTried, try_direct};
use gpuio_machine::check::prove::{Measured, Outcome, Proof, Run, Tried};
use gpuio_machine::check::{Answer, Gpu};
use gpuio_record::Record;
use gpuio_report::format::json;
use gpuio_report::verification;

use crate::failure::Failure;
use crate::interrupt;

/// Size of the data set, and how long each load reads it.
const SIZE: &str = "16M";
const RUNTIME: &str = "1s";

/// Tests O_DIRECT and each path, in a temporary directory below `directory` that is removed at the
/// end.
pub(super) fn prove(directory: &Path, gpu: Gpu<'_>) -> Result<Proof, Failure> {
    let direct = direct(&try_direct(directory));
    // Ctrl-C ends the current load, and then nothing may be left behind.
    let stop = interrupt::flag();
    let scratch = Scratch::below(directory)?;
    let runs = ["host", "staged", "gather", "gds"].map(|path| {
        let outcome = match not_tried(path, gpu) {
            _ if stop.load(Ordering::Relaxed) => Outcome::NotTried("interrupted".to_owned()),
            Some(why) => Outcome::NotTried(why.to_owned()),
            None => load(path, &scratch.0.path(), gpu),
        };
        Run { path, outcome }
    });
    Ok(Proof { direct, runs: runs.into() })
}

fn direct(tried: &DirectTried) -> Tried {
    match tried {
        DirectTried::Works { alignment, reported } => {
            let reported = reported.map_or_else(String::new, |reported| {
                format!(
                    "; the kernel requires offsets in multiples of {} and memory of {} bytes",
                    reported.offset_bytes, reported.memory_bytes
                )
            });
            let words = format!(
                "written and read back, with an alignment of {alignment} \
                bytes{reported}"
            );
            Tried { works: Answer::Yes, words }
        }
        DirectTried::Refused(words) => Tried { works: Answer::No, words: words.clone() },
        DirectTried::Failed(words) => Tried { works: Answer::Unknown, words: words.clone() },
    }
}

fn not_tried(path: &str, gpu: Gpu<'_>) -> Option<&'static str> {
    match (path, gpu) {
        ("host", _) => None,
        (_, Gpu::None) => Some("no GPU was found (try --gpu software)"),
        ("gds", Gpu::Software) => {
            Some("NVIDIA's library cannot use the software GPU; there a test double replaces it")
        }
        _ => None,
    }
}

fn load(path: &str, directory: &Path, gpu: Gpu<'_>) -> Outcome {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Outcome::Failed(format!("gpuio's own executable: {error}")),
    };
    let mut command = Command::new(program);
    command.args(["bench", "--rw", "read", "--bs", "1M", "--verify", "--quiet"]);
    command.args(["--path", path, "--size", SIZE, "--runtime", RUNTIME, "--format", "json"]);
    command.arg("--directory").arg(directory);
    if path != "host" {
        aim(&mut command, gpu);
    }
    match command.stdin(Stdio::null()).output() {
        Err(error) => Outcome::Failed(format!("gpuio bench could not be started: {error}")),
        Ok(output) => {
            let record = json::parse(&String::from_utf8_lossy(&output.stdout)).ok();
            let measured = record.as_ref().and_then(measured);
            let messages = || String::from_utf8_lossy(&output.stderr).into_owned();
            measured.unwrap_or_else(|| Outcome::Failed(reason(record.as_ref(), &messages())))
        }
    }
}

/// Selects the GPU so that CUDA's and NVML's numbers agree: by its UUID, else in the order of PCI
/// addresses.
fn aim(command: &mut Command, gpu: Gpu<'_>) {
    match gpu {
        Gpu::Software => {
            command.args(["--gpu", "software"]);
        }
        Gpu::Real(gpu) => {
            command.env("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
            if let Some(uuid) = gpu.uuid.known() {
                command.env("CUDA_VISIBLE_DEVICES", uuid).args(["--gpu", "0"]);
            } else {
                let index = gpu.index.known().copied().unwrap_or(0);
                command.arg("--gpu").arg(index.to_string());
            }
        }
        Gpu::None => {}
    }
}

/// The outcome of a load that moved bytes: its speed, whether the bytes are right, and the data
/// path.
fn measured(record: &Record) -> Option<Outcome> {
    let job = record.jobs.first()?;
    let proof = job.proof.as_ref()?;
    if record.error.is_some() || job.failed > 0 || job.read.bytes_per_s <= 0.0 {
        return None;
    }
    let verify = job.verify.as_ref();
    let unverified = verify.and_then(verification::trouble);
    Some(Outcome::Ran(Measured {
        bytes_per_s: job.read.bytes_per_s,
        verified: verify.is_some() && unverified.is_none(),
        unverified,
        data_path: proof.verdict.clone(),
        sentence: proof.sentence.clone(),
    }))
}

/// Why there is no result: the record's error, the first failed I/O, or the last output of the
/// process.
fn reason(record: Option<&Record>, messages: &str) -> String {
    let error = record.and_then(|record| record.error.clone());
    let failure = || {
        let failed = record?.jobs.first()?.failures.first()?;
        Some(format!("{} at offset {}: {}", failed.path, failed.offset, failed.what))
    };
    let words = || {
        let last = messages.lines().rev().find(|line| line.starts_with("error: "));
        last.map(|line| line.trim_start_matches("error: ").to_owned())
    };
    let outcome = || "the process ended without a message".to_owned();
    error.or_else(failure).or_else(words).unwrap_or_else(outcome)
}

/// A new temporary directory, removed with its data files when this is dropped.
struct Scratch(Private);

impl Scratch {
    fn below(directory: &Path) -> Result<Scratch, Failure> {
        const PREFIX: &str = ".gpuio-prove";
        for left in Private::abandoned(directory, PREFIX).unwrap_or_default() {
            remove(&left);
        }
        Private::make(directory, PREFIX).map(Scratch).map_err(|error| {
            Failure::Unavailable(format!(
                "--prove: can't create a directory in {}: {error}; name a directory that you may \
                 write to",
                directory.display()
            ))
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes the files that loads left, and then the directory. Loads remove their files themselves,
/// unless they are killed.
fn remove(private: &Private) {
    let mut lines = leftover::remove_files(private.inside(), &Root::live());
    if !private.remove(|_| false).unwrap_or(false) {
        let at = private.path();
        lines.push(format!(
            "{} is not removed because it holds other files; check them, then: {}",
            at.display(),
            ShellLine::new("rm -r").file(&at)
        ));
    }
    for line in lines {
        message!("note: {line}");
    }
}
