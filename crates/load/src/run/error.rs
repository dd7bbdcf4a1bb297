//! Why a run could not start or had to end.

use gpuio_base::units::format_cpu_list;
use gpuio_io::path::PathError;

/// The run as a whole failed: there is no result for the job concerned.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A thread could not be placed.
    #[error(
        "a thread could not be put on CPUs {}: {what}; see --numa and cpus_allowed",
        format_cpu_list(.cpus)
    )]
    Pin {
        cpus: Vec<u32>,
        /// The kernel's answer.
        what: String,
    },
    /// A target could not be opened.
    #[error("{path}: open{how}: {what}")]
    Open {
        path: String,
        /// Flags in words.
        how: String,
        /// The kernel's answer and what to do.
        what: String,
    },
    /// A path could not be opened or broke.
    #[error("job '{job}', thread {thread}: {source}")]
    Path {
        job: String,
        thread: u32,
        /// The path's own words.
        source: Box<PathError>,
    },
    /// The plan can't be run: it names what this gpuio lacks, or no block fits.
    #[error("job '{job}': {what}")]
    InvalidPlan { job: String, what: String },
    #[error(
        "job '{job}', thread {thread} of {threads} could not be started: {what}; lower --threads, \
         or raise the limit on processes (ulimit -u, cgroup pids.max) or memory"
    )]
    Spawn {
        job: String,
        thread: u32,
        threads: u32,
        /// The kernel's answer.
        what: String,
    },
    /// The GPU's context could not be had.
    #[error("GPU {index}: {what}")]
    Gpu {
        index: u32,
        /// The driver's answer.
        what: String,
    },
    /// A GPU can't run the computation that was to be concurrent.
    #[error("job '{job}': GPU {index} can't run the computation that 'beside' requests: {what}")]
    NoComputation {
        job: String,
        index: u32,
        /// The driver's answer.
        what: String,
    },
    #[error(
        "job '{job}': a worker thread panicked, which is a bug in gpuio; its results are lost: \
         {what}"
    )]
    Panic {
        job: String,
        /// The panic's message.
        what: String,
    },
    /// Another process of the run can't open a path that was not named.
    #[error("{what}")]
    Elsewhere {
        /// Why, in words that name the process.
        what: String,
    },
    /// The other processes of the run do not start, or this one may not.
    #[error("{what}")]
    NoStart {
        /// Why, in words that name the process.
        what: String,
    },
    /// A file of the user's own, which data is compared with.
    #[error(
        "{path} was written while it was read: what was read can't be compared with it; run again \
         when it stays as it is"
    )]
    Changed { path: String },
    /// The stop flag was raised before the clock started.
    #[error("{path}: stopped while it was being read into the page cache for the GPU")]
    Stopped { path: String },
    /// A file of the data set could not be made or guarded.
    #[error(transparent)]
    DataSet(#[from] super::data::DataSetError),
}
