//! The load generator: from a plan to its results.
//!
//! [`run`] carries a `Plan` (`gpuio_job` makes it) out on worker threads and returns the results
//! with evidence and warnings. It must not hold option parsing, planning, printing, report formats
//! or code that moves bytes (`gpuio_io` does that). Only this crate spawns workers of jobs.
//!
//! - [`live_targets`], [`direct_try`]: look up for the plan what a path is and whether O_DIRECT
//!   works there.
//! - [`run`]: groups, workers, sampling, verification, totals.
//! - `ceiling`: upper bounds of a job's throughput, found after the jobs.
//! - [`machine`]: facts of the machine, GPUs included.
//! - [`evidence`]: counters around a group of jobs, and what follows from them.
//! - [`ranks`]: the processes of one job, what they exchange, and which of them died or hangs.
//!
//! One run: [`run::run`] checks that every file may be touched (`DataSet::guard`). For each group
//! it makes the files (`prepare`) and starts the workers (`Group::run`). `Group::gather` waits
//! until all have opened their paths. `Group::measure` takes the snapshot before
//! (`crate::evidence::Collector`), opens the `Gate`, so that all workers start at the same moment,
//! samples the series, and takes the snapshot after the last I/O. Then the workers verify data,
//! outside the clock.
//!
//! One I/O, in `run::timed`:
//!
//! 1. `Loop::fill` takes a free slot, asks `Pacer::due` whether an I/O is due and
//!    `BlockSequence::next` for its block, and calls `Path::start` (`gpuio_io`).
//! 2. `Path::advance` moves requests on and returns completions.
//! 3. `Loop::complete` frees the slot, counts bytes and latency in `Live` (`gpuio_base::stat`),
//!    and checks the data where verification is inline.
//!
//! Which thread does what, and what may block:
//!
//! - The run's thread (the caller) makes files, starts groups, samples the series and calls
//!   [`run::RunObserver`]. It may block on file I/O and on workers.
//! - A worker, one for each thread of a job, opens its path, then runs steps 1 to 3 and verifies.
//!   It may block on its own I/O, copies, flushes and verification, sleep until an I/O is due, and
//!   wait at the `Gate` before the start and after the end.
//! - The device sampler, `gpuio-watch` (`evidence/sampler.rs`), reads counters of devices once per
//!   interval. It may block on the kernel's files and on NVML; runs never ask DCGM.
//! - The computation thread (`run::computation`) keeps a GPU busy where the key `beside` is set. It
//!   may block on events of its CUDA stream.
//! - The threads of accelerators (`run::feed`), one for each of a training feed, take batches and
//!   keep their GPU busy. They may block on events of their CUDA streams, on readers and on each
//!   other.
//! - Threads of `ceiling/cpu_copy` copy memory to find out how fast the processor does; `dataset`
//!   fills files with a few threads before the clock, and `run::threads` tries before that whether
//!   a group's threads can be had.
//! - `gpuio-stops` (`run::stops`) sleeps 20 ms at a time, and thereby notices that the process was
//!   stopped. It may block on the kernel's file of its own statistics.
//! - The PCIe meter, `gpuio-pcie` (`evidence/pcie_meter.rs`), adds up the 32-bit counters of GPU
//!   links. It may block on NVML.
//! - In runs that mpirun or srun started: `gpuio-ranks` (`crate::ranks`) makes all calls of MPI. It
//!   sleeps 1 ms between two, 10 ms while the clock runs. A thread of the `cli` writes the results
//!   so far once a second. In a sweep or `--ab` on several ranks, `gpuio-to-child` and
//!   `gpuio-of-child` pass messages on between the sockets of a run's process and `gpuio-ranks`.
//!
//! While the clock runs, a worker waits for no other thread of gpuio, with six exceptions:
//! `gpuio-stops`, where it is overdue, because the process was stopped; the threads of engine
//! `pool`; those of `transfer` on the paths `library*`; the accelerator of a training feed, once
//! its
//! reader is as far ahead as it may be; the workers whose calls must end before one of a replay may
//! begin (`run::replay`); and the end of a ramp, where the workers of a job take one reading of the
//! process's CPU time together. A worker that has finished takes the lock of the gate. Readers of a
//! training feed take a lock for each batch, and with a tier two for each sample. All other
//! exchange is by atomics: a sampler never waits for a worker, nor a worker for a sampler.

pub(crate) mod ceiling;
pub mod direct_try;
pub mod evidence;
pub mod live_targets;
pub mod machine;
pub mod ranks;
pub mod run;
