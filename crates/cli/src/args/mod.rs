//! Defines the command line. Values are parsed by the key table in `spec`, so that a flag and the
//! job-file key of the same name mean the same.

#![allow(rustdoc::broken_intra_doc_links, reason = "help texts name defaults in brackets")]

mod examples;
mod exec;
mod generate;
mod keys_as_flags;
mod machine;
mod mistaken;
mod network;
mod ranks;
mod rebuild;
mod replay;
mod results;
mod save;
mod stats;
mod sweep;
#[cfg(test)]
mod tests;
mod top;
mod why;
mod workflow;
mod workload;

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

pub(crate) use exec::Exec;
pub(crate) use generate::{Explain, Generate, What};
pub(crate) use keys_as_flags::replaced as keys_as_flags;
pub(crate) use machine::{Check, Plan, Topo};
pub(crate) use mistaken::{for_fio, for_gdsio, meant, value_apart};
pub(crate) use network::Network;
pub(crate) use ranks::{RankFlags, RankLimits};
pub(crate) use replay::Replay;
pub(crate) use results::{Compare, Report, Show};
pub(crate) use save::Save;
pub(crate) use stats::Stats;
pub(crate) use sweep::{Sweep, Vary};
pub(crate) use top::Top;
pub(crate) use why::Why;
pub(crate) use workflow::command;
pub(crate) use workload::Workload;

/// Measure the path from storage to GPU memory, with evidence for every number.
#[derive(Debug, Parser)]
#[command(name = "gpuio", version, disable_version_flag = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Print the version
    #[arg(long, short = 'V', visible_short_alias = 'v', action = ArgAction::Version)]
    version: Option<bool>,
    /// Powers of sizes and rates in text: si (MB = 10^6 bytes) or iec (MiB = 2^20 bytes) [iec;
    /// figures of data sheets si]
    #[arg(long, global = true, value_name = "si|iec", value_parser = ["si", "iec"],
          help_heading = "Every verb")]
    pub(crate) units: Option<String>,
    /// Colours: auto, always or never [auto: on a terminal, unless NO_COLOR is set]
    #[arg(long, global = true, value_name = "WHEN", value_parser = ["auto", "always", "never"],
          alias = "colour", help_heading = "Every verb")]
    pub(crate) color: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a load and measure it.
    ///
    /// Without arguments: creates scratch files in this directory, runs short read and write loads
    /// on every path that can run here, verifies samples of the data that was read and written,
    /// prints one screen with a conclusion and saves the record; all of it within a minute. With
    /// options that describe a load: runs one job with the defaults in brackets. SIZE: bytes, or
    /// with suffix k, M, G, T (powers of 1024). TIME: seconds, or with suffix us, ms, s, min, h, d.
    #[command(after_help = examples::BENCH)]
    Bench(Box<Bench>),
    /// Diagnose storage-to-GPU I/O problems on this machine and suggest fixes.
    ///
    /// Each rule ends as fail, warn, unknown (facts are missing, with the reason), info, pass or
    /// n/a (it does not apply here). The exit code is 1 if a rule failed. Changes nothing.
    /// docs/check.md lists the rules.
    #[command(after_help = examples::CHECK)]
    Check(Check),
    /// Compare results: ratio, 95 % interval, and whether the difference is more than noise.
    ///
    /// Accepts records, sweeps, directories of records (repeats), gdsio's output, fio's JSON and
    /// elbencho's CSV. The first result is the baseline. Exit code 1: a result is worse than
    /// --threshold allows. Exit code 2: the results are not comparable, because settings or
    /// machines differ (docs/compare.md).
    #[command(after_help = examples::COMPARE)]
    Compare(Compare),
    /// Run a program that uses cuFile with gpuio's libcufile.so.0.
    ///
    /// gpuio exec -- python train.py: every program that uses cuFile (KvikIO, torch.cuda.gds, DALI,
    /// fio, …) then reads and writes GPU memory without nvidia-fs, root or udev, on any file system
    /// (docs/cufile.md). By default files that NVIDIA's library can access directly are passed on
    /// to it; --cufile gpuio prevents that. The program replaces this process and keeps its own
    /// signals and exit code. Exit codes if it does not start: 2 wrong usage, 3 gpuio's library is
    /// missing or can't be loaded by the program, 126 the program can't be executed, 127 no such
    /// program.
    #[command(after_help = examples::EXEC)]
    Exec(Exec),
    /// Explain a warning of a run, or a rule of check, by the name in its brackets.
    ///
    /// Prints what it means, an example with what to do, and the fields that records have of it.
    /// Without a name: lists all of them.
    #[command(after_help = examples::EXPLAIN)]
    Explain(Explain),
    /// Make manual pages, completions or pages of the reference.
    #[command(hide = true)]
    Generate(Generate),
    /// List the built-in paths, engines and formats, and which of them can run here.
    #[command(after_help = examples::LIST)]
    List,
    /// Measure the network between two machines: the most that storage over it can reach.
    ///
    /// One machine serves (--serve), the other measures: bytes per second of TCP connections from
    /// memory to memory, without storage and GPUs, and what they cost both machines. The server
    /// reads and writes no file, listens only where --serve says, and ends after a client. Anyone
    /// who reaches its address can use it: it is for networks that you trust. RDMA is not measured
    /// (docs/plan.md, "The network alone").
    #[command(after_help = examples::NETWORK)]
    Network(Network),
    /// Repeat a recorded program's calls on another path, storage or GPU, and measure them.
    ///
    /// Reads a trace of gpuio exec --record, or of fio's write_iolog. Makes files of the same sizes
    /// and holes in --directory, and repeats the reads and writes with their order and
    /// dependencies, as fast as possible or with the recorded pauses. The program's own files are
    /// not opened. Data are verified in GPU memory (docs/replay.md).
    #[command(after_help = examples::REPLAY)]
    Replay(Box<Replay>),
    /// Create a report of records and sweeps: one HTML page with plots and evidence, or tables.
    ///
    /// The HTML page is one file and needs no network. Other formats are for wikis, plotting and
    /// monitoring (docs/report.md).
    #[command(after_help = examples::REPORT)]
    Report(Report),
    /// Recommend the storage for each GPU, estimate its performance, and write a job file.
    ///
    /// Pairs each GPU with the nearest drives, arrays, mounts and network cards. Reports which
    /// links they share, how arrays should be regrouped, the throughput and IOPS to expect from the
    /// hardware, and the part that limits them (docs/plan.md). Runs no load and changes nothing.
    #[command(after_help = examples::PLAN)]
    Plan(Plan),
    /// Print a saved record again, or the journal of a run that crashed.
    #[command(after_help = examples::SHOW)]
    Show(Show),
    /// Run a load for every combination of some values, in shuffled rounds.
    ///
    /// Saves one record per run in a directory. The same command resumes an interrupted sweep. Each
    /// point is a run of gpuio bench and shares the bench flags given here (docs/sweep.md).
    #[command(after_help = examples::SWEEP)]
    Sweep(Box<Sweep>),
    /// Show live device activity: drives, arrays, GPUs, network, NFS, page cache, CPUs.
    ///
    /// Shows the devices behind the named files, mounts, devices and GPUs; without names, all
    /// devices that are active and not virtual. On a terminal: a full screen. Otherwise: tables,
    /// lines of JSON, or a page for Prometheus (docs/top.md). Keys: q quits, tab and arrows move, s
    /// sorts, p pauses, + and - change the interval.
    #[command(after_help = examples::TOP)]
    Top(Top),
    /// Show live statistics of gpuio processes: throughput, percentiles, GPUs and paths.
    ///
    /// Without a process ID: lists the processes that publish statistics, your own or, for root,
    /// all of them (docs/stats.md).
    #[command(after_help = examples::STATS)]
    Stats(Stats),
    /// Show how GPUs, drives, arrays, network cards and mounts are connected (docs/topo.md).
    ///
    /// Prints the PCIe tree with the speed of each link, the distance between devices, and the
    /// devices near each GPU. With two devices: the route between them, link by link.
    #[command(after_help = examples::TOPO)]
    Topo(Topo),
    /// Answer "is GDS on, which way do my bytes go?" for a mount and a GPU, or a process.
    ///
    /// The conclusion first, then the way with NVIDIA's libcufile, with gpuio's and in gpuio bench,
    /// what would change it, and each fact behind it. With PID: which libcufile a running program
    /// uses, its open files and device nodes, and what its counters show; it is watched for a
    /// second. Reads only. Exit code 3: no such process, or nothing of it may be read.
    #[command(after_help = why::EXAMPLES)]
    Why(Why),
    /// Print the version.
    Version,
    /// Run a workload: what a program does with its files, beside computation on the GPUs.
    ///
    /// gpuio workload list names the presets; gpuio workload show NAME prints one as a job file
    /// with its source. A training feed reads samples in random order for accelerators that compute
    /// at the same time; others are inference, checkpoints, loading of a model, snapshots,
    /// key-value caches and vector search. The data end in GPU memory and are verified. Reports
    /// accelerator utilisation, samples per second, stalls, times to save and to load, and which of
    /// MLPerf Storage's rules a feed did not keep (docs/workload.md).
    #[command(after_help = examples::WORKLOAD)]
    Workload(Box<Workload>),
    /// Print live counters of a process in the format of gds_stats (see docs/stats.md).
    #[command(name = "gds_stats", disable_help_flag = true)]
    GdsStats {
        /// Arguments of gds_stats.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Print gpuio's facts about this machine in the format of gdscheck (see docs/check.md).
    #[command(disable_help_flag = true)]
    Gdscheck {
        /// Arguments of gdscheck.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Accept gdsio's flags and config files, and print its result line (see docs/gdsio.md).
    #[command(disable_help_flag = true)]
    Gdsio {
        /// Arguments of gdsio.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}
/// Flags of `bench`. Each value is parsed as the job-file key of the same name.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Job file in gpuio's format; keys of gdsio and fio work too (docs/job-file.md). Flags on the
    /// command line apply to all of its jobs.
    pub(crate) job_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: Work,
    #[command(flatten)]
    pub(crate) figures: FigureFlags,
    #[command(flatten)]
    pub(crate) out: Out,
    #[command(flatten)]
    pub(crate) ab: Ab,
    #[command(flatten)]
    pub(crate) ranks: RankFlags,
}

/// What to run, and where: flags shared by `bench` and `sweep`.
#[derive(Debug, Args)]
pub(crate) struct Work {
    #[command(flatten)]
    pub(crate) load: Load,
    #[command(flatten)]
    pub(crate) machine: MachineFlags,
    #[command(flatten)]
    pub(crate) cufile: CufileFlags,
    #[command(flatten)]
    pub(crate) data: Data,
}

/// Flags of a comparison of two job files.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct Ab {
    /// Run two job files alternately (A B, B A, …; an even seed starts with B) and print a
    /// comparison (docs/compare.md). -o names a directory for the records; --format is text, json
    /// or markdown
    #[arg(long, value_names = ["A.ini", "B.ini"], num_args = 2,
          conflicts_with_all = ["job_file", "serve"])]
    pub(crate) ab: Vec<PathBuf>,
    /// Number of runs of each job file [5]
    #[arg(long, value_name = "N", requires = "ab",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
}

/// Hardware figures in addition to the built-in ones (docs/expectation.md).
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Expectation")]
pub(crate) struct FigureFlags {
    /// File with figures of drives, servers and processors, for example from a data sheet; repeat
    /// for more
    #[arg(long, value_name = "FILE")]
    pub(crate) spec: Vec<PathBuf>,
    /// Performance of a file server: read=24GB/s,write=12GB/s,iops=800k,ports=2x100Gb, and
    /// name=SERVER if there are several; repeat for more
    #[arg(long, value_name = "FIGURES")]
    pub(crate) server: Vec<String>,
}

/// The load. A value may begin with a hyphen, so that the parser of the key reports the error for
/// `--size -1` and names the flag.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load", allow_negative_numbers = true)]
pub(crate) struct Load {
    /// Data path: host, staged, cached, managed, gather, mapped (reads of files that are pinned in
    /// the page cache first: rates of memory, not of storage), resident, routed, fan-out, library,
    /// library-stream, library-batch, gds, gds-stream, gds-batch, gds-batch-stream, a list of them,
    /// all, or auto (chosen by block size and by what works here; the reason is printed) [staged if
    /// a GPU is named, else host]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Vec<String>,
    /// Read each block once and place it in the memory of all GPUs, from GPU to GPU: the same as
    /// --path fan-out. All GPUs of the machine unless --gpu names some, and a thread on each
    #[arg(long, conflicts_with = "path")]
    pub(crate) fan_out: bool,
    /// I/O engine between file and host memory: psync, io_uring, libaio, mmap, null, pool [auto]
    #[arg(long, value_name = "ENGINE", visible_alias = "ioengine")]
    pub(crate) engine: Option<String>,
    /// Direction and order: read, write, randread, randwrite, rw, randrw [read]
    #[arg(long, value_name = "RW")]
    pub(crate) rw: Option<String>,
    /// Block size: 4k, or MIN:MAX:STEP [1M sequential, 4k random]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bs: Option<String>,
    /// Block sizes and their percentages: 4k/60:64k/40
    #[arg(long, value_name = "SPLIT", conflicts_with = "bs")]
    pub(crate) bssplit: Option<String>,
    /// Size of each thread's region [the file, or a size that suits disk and memory]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Stop each thread after this many bytes
    #[arg(long, value_name = "SIZE")]
    pub(crate) io_size: Option<String>,
    /// Start of the region in the file
    #[arg(long, value_name = "SIZE")]
    pub(crate) offset: Option<String>,
    /// Number of threads [1]
    #[arg(long, value_name = "N", visible_alias = "numjobs")]
    pub(crate) threads: Option<String>,
    /// I/Os in flight per thread [io_uring, libaio: 32, or 8 for blocks above 128k; other engines:
    /// 4 on a GPU path, else 1; paths gather and mapped: by block size. --dry-run prints it]
    #[arg(long, value_name = "N", visible_alias = "iodepth")]
    pub(crate) depth: Option<String>,
    /// Run time in seconds, or with a suffix: 10, 500ms, 2min, 1h, 1d [10]
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,
    /// Warm-up time at the start that is not measured [0]
    #[arg(long, value_name = "TIME")]
    pub(crate) ramp: Option<String>,
    /// Stop once the load is steady, by fio's rules: iops, bw, lat, or one of them with _slope, and
    /// its limit: iops:2%, bw_slope:1%; --runtime is then the maximum time. Change the length and
    /// interval of its window with --set ss_dur=, ss_ramp=, ss_interval=
    #[arg(long, value_name = "CRITERION")]
    pub(crate) steady: Option<String>,
    /// Delay before the first I/O [0]
    #[arg(long, value_name = "TIME")]
    pub(crate) start_delay: Option<String>,
    /// Number of passes over the region, instead of a run time
    #[arg(long, value_name = "N")]
    pub(crate) loops: Option<String>,
    /// End when each thread has moved its whole size, instead of a run time (a stonewall); with
    /// --runtime, go on after it until each thread has moved what the fastest had begun by then, on
    /// several ranks that of all
    #[arg(long)]
    pub(crate) wear_out: bool,
    /// Percentage of reads in a mixed load [50]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) rwmixread: Option<String>,
    /// Distribution of random offsets: random, zipf:THETA, pareto:H, normal:PERCENT [random]
    #[arg(long, value_name = "KIND")]
    pub(crate) random_distribution: Option<String>,
    /// Allow random blocks to repeat before all blocks were accessed
    #[arg(long)]
    pub(crate) norandommap: bool,
    /// Alignment of random offsets [the block size]
    #[arg(long, value_name = "SIZE")]
    pub(crate) align: Option<String>,
    /// Use offsets that are not 4 KiB aligned, on purpose
    #[arg(long)]
    pub(crate) unaligned: bool,
    /// Limit of each thread, in bytes per second
    #[arg(long, value_name = "SIZE")]
    pub(crate) rate: Option<String>,
    /// Limit of each thread, in I/Os per second
    #[arg(long, value_name = "N")]
    pub(crate) rate_iops: Option<String>,
    /// Arrival process at that rate: linear or poisson [linear]
    #[arg(long, value_name = "KIND")]
    pub(crate) rate_process: Option<String>,
    /// Seed of all random choices [1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<String>,
    /// Verify the data: pass (after the measurement: reads back what timed writes wrote, or reads
    /// again what timed reads read), rewrite (writes all data again and verifies it) or inline
    /// (every timed read) [off; pass if no mode is given; without a load a sample in a limited
    /// time, full checks all]
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true,
          default_missing_value = "pass")]
    pub(crate) verify: Option<String>,
    /// Measure the ceilings after the jobs, that is, the highest rates this machine can reach; for
    /// this long each: 500ms [off; on with --path all; 1 s if no time is given]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "on", conflicts_with = "no_ceilings")]
    pub(crate) ceilings: Option<String>,
    /// Do not measure ceilings, even with --path all
    #[arg(long)]
    pub(crate) no_ceilings: bool,
    /// Run each job twice, alone and while a kernel keeps its GPUs busy, and report how much each
    /// slows the other: compute (arithmetic in registers) or memory (a stream over GPU memory), on
    /// all multiprocessors or a share of them: compute:50%
    #[arg(long, value_name = "WORK")]
    pub(crate) beside: Option<String>,
    /// Content of writes: pattern or random [pattern]
    #[arg(long, value_name = "KIND")]
    pub(crate) fill: Option<String>,
    /// Percentage of the data that repeats, so that storage can compress it [0]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) buffer_compress_percentage: Option<String>,
    /// Bytes of the chunks of which that much repeats: a power of two [512]
    #[arg(long, value_name = "BYTES")]
    pub(crate) buffer_compress_chunk: Option<String>,
    /// Generate new data before every write (not in latencies, but in the run time)
    #[arg(long)]
    pub(crate) refill: bool,
    /// Inject faults, in each thread by itself (so 2 threads have twice the rate):
    /// eio=1%,short=5%,delay=2ms@10%,stall=1s@5s,rate=100M,seed=7
    #[arg(long, value_name = "FAULTS")]
    pub(crate) inject: Option<String>,
}

/// Where to run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
pub(crate) struct MachineFlags {
    /// GPUs: 0,1 or all or none; software or software:0,1 for gpuio's software GPU
    #[arg(long, value_name = "GPUS")]
    pub(crate) gpu: Option<String>,
    /// NUMA node of the threads [that of their GPU]
    #[arg(long, value_name = "NODE")]
    pub(crate) numa: Option<String>,
    /// CPUs of the threads: 0-3,8
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus: Option<String>,
    /// Destination memory: device, vmm, pinned, malloc, mmap [device; malloc on host; managed on
    /// managed]
    #[arg(long, value_name = "KIND")]
    pub(crate) memory: Option<String>,
    /// CUDA streams per thread on GPU paths [2 below 64k, else 1; 4 on fan-out; one per I/O or
    /// batch on paths of a library]
    #[arg(long, value_name = "N")]
    pub(crate) streams: Option<String>,
    /// GPU near the drive that path routed copies through [one on the drive's NUMA node]
    #[arg(long, value_name = "GPU")]
    pub(crate) via_gpu: Option<String>,
    /// Blocks per kernel launch on path gather [as many as fill 512 KiB; 2 MiB for blocks of 16k
    /// and more; 4 MiB for 512k and more] and on path mapped [as many as fill 4 MiB, with
    /// more threads 2 MiB, and 1024 at most; of blocks of 1m and more, which are copies, as many as
    /// fill 8 MiB, with more threads 2 to 4], or per submit on library-batch, gds-batch and
    /// gds-batch-stream [16]
    #[arg(long, value_name = "N")]
    pub(crate) gather_batch: Option<String>,
}

/// Settings of NVIDIA's cuFile, on the paths that need it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "cuFile")]
pub(crate) struct CufileFlags {
    /// The cuFile library to load [libcufile.so.0 of the system, a CUDA toolkit or a Python
    /// environment]
    #[arg(long, value_name = "FILE")]
    pub(crate) cufile_lib: Option<PathBuf>,
    /// cuFile setting that overrides its configuration file: properties.allow_compat_mode=true;
    /// repeat for more
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) cufile_set: Vec<String>,
}

/// The files or devices.
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct Data {
    /// Directory with one file per thread, created if missing [./gpuio-scratch, removed afterwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<String>,
    /// File or block device to use; repeat for more
    #[arg(long, value_name = "FILE")]
    pub(crate) filename: Vec<String>,
    /// Prefix of file names in the directory [gpuio]
    #[arg(long, value_name = "NAME")]
    pub(crate) file_prefix: Option<String>,
    /// How the data of all threads, and of all ranks, lie in files: file-per-thread, or one file,
    /// segmented (a contiguous part each) or strided (blocks in turn) [file-per-thread]
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) layout: Option<String>,
    /// On several ranks, read what another one wrote: rank (the next), node (of the next host), or
    /// how many ranks further on (docs/mpi.md)
    #[arg(long, value_name = "SHIFT")]
    pub(crate) read_shift: Option<String>,
    /// Use O_DIRECT [where the file system supports it]
    #[arg(long)]
    pub(crate) direct: bool,
    /// Use the page cache
    #[arg(long, conflicts_with = "direct")]
    pub(crate) buffered: bool,
    /// Read the files into the page cache before the measurement [if --path all and --buffered
    /// are both given, and in sweeps, if the files fit in half of memory]
    #[arg(long)]
    pub(crate) pre_read: bool,
    /// Drop the files from the page cache before the measurement
    #[arg(long, conflicts_with = "pre_read")]
    pub(crate) invalidate: bool,
    /// Leave the page cache as it is, even with --path all and in sweeps
    #[arg(long, conflicts_with = "pre_read")]
    pub(crate) no_pre_read: bool,
    /// Make each write wait for stable storage (O_DSYNC)
    #[arg(long)]
    pub(crate) sync: bool,
    /// Share one file descriptor per named file among all threads
    #[arg(long)]
    pub(crate) shared_fd: bool,
    /// Keep the scratch files
    #[arg(long)]
    pub(crate) keep: bool,
    /// Overwrite regular files that gpuio did not create
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Write to this block device and destroy its data; repeat for more
    #[arg(long, value_name = "DEVICE")]
    pub(crate) destroy_data_on: Vec<PathBuf>,
    /// Set any key of the job-file format
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// What to print and save.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Out {
    /// Output format: text, summary, json, csv, gdsio or plan [text; summary without a load; with
    /// -o by the file's extension]
    #[arg(long, value_name = "FORMAT", alias = "output-format")]
    pub(crate) format: Option<String>,
    /// Also save the record in this file; its directory is made if needed
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace that file if gpuio wrote it and nothing changed it since; never any other file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Print everything: all tables, warnings and evidence, where a run without a load prints one
    /// screen
    #[arg(long, short = 'v', visible_alias = "verbose")]
    pub(crate) details: bool,
    /// Show the evidence for every job's data path, not only where it differs from the requested
    /// one (docs/proof.md; text format only)
    #[arg(long)]
    pub(crate) evidence: bool,
    /// Print the plan as a job file and exit
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// No progress display, and no table if the record is saved
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Serve the run's live counters to Prometheus at http://ADDR:PORT/metrics; without ADDR only
    /// to this machine (docs/stats.md)
    #[arg(long, value_name = "[ADDR:]PORT",
          conflicts_with_all = ["no_stats_page", "dry_run"])]
    pub(crate) serve: Option<String>,
    /// Publish no live counters for gpuio stats
    #[arg(long)]
    pub(crate) no_stats_page: bool,
    /// Do not sample devices during the run
    #[arg(long)]
    pub(crate) no_watch: bool,
}

impl MachineFlags {
    /// The flags as (job-file key, value, flag).
    fn keys(&self) -> [(&'static str, &Option<String>, &'static str); 7] {
        [
            ("gpu", &self.gpu, "--gpu"),
            ("numa", &self.numa, "--numa"),
            ("cpus", &self.cpus, "--cpus"),
            ("memory", &self.memory, "--memory"),
            ("streams", &self.streams, "--streams"),
            ("via_gpu", &self.via_gpu, "--via-gpu"),
            ("gather_batch", &self.gather_batch, "--gather-batch"),
        ]
    }
}

impl Work {
    /// The flags as (job-file key, value, flag) in the order of the help. Bare flags have an empty
    /// value.
    pub(crate) fn keys(&self) -> Vec<(&'static str, String, &'static str)> {
        let (load, machine, data) = (&self.load, &self.machine, &self.data);
        let valued: [(&'static str, &Option<String>, &'static str); 32] = [
            ("engine", &load.engine, "--engine"),
            ("rw", &load.rw, "--rw"),
            ("bs", &load.bs, "--bs"),
            ("bssplit", &load.bssplit, "--bssplit"),
            ("size", &load.size, "--size"),
            ("io_size", &load.io_size, "--io-size"),
            ("offset", &load.offset, "--offset"),
            ("threads", &load.threads, "--threads"),
            ("depth", &load.depth, "--depth"),
            ("runtime", &load.runtime, "--runtime"),
            ("ramp", &load.ramp, "--ramp"),
            ("steadystate", &load.steady, "--steady"),
            ("start_delay", &load.start_delay, "--start-delay"),
            ("loops", &load.loops, "--loops"),
            ("rwmixread", &load.rwmixread, "--rwmixread"),
            ("random_distribution", &load.random_distribution, "--random-distribution"),
            ("align", &load.align, "--align"),
            ("rate", &load.rate, "--rate"),
            ("rate_iops", &load.rate_iops, "--rate-iops"),
            ("rate_process", &load.rate_process, "--rate-process"),
            ("seed", &load.seed, "--seed"),
            ("verify", &load.verify, "--verify"),
            ("ceilings", &load.ceilings, "--ceilings"),
            ("beside", &load.beside, "--beside"),
            ("fill", &load.fill, "--fill"),
            (
                "buffer_compress_percentage",
                &load.buffer_compress_percentage,
                "--buffer-compress-percentage",
            ),
            ("buffer_compress_chunk", &load.buffer_compress_chunk, "--buffer-compress-chunk"),
            ("inject", &load.inject, "--inject"),
            ("directory", &data.directory.as_deref().map(gpuio_spec::one_name), "--directory"),
            ("file_prefix", &data.file_prefix, "--file-prefix"),
            ("layout", &data.layout, "--layout"),
            ("read_shift", &data.read_shift, "--read-shift"),
        ];
        let some = |(key, value, flag): (&'static str, &Option<String>, &'static str)| {
            value.as_ref().map(|value| (key, value.clone(), flag))
        };
        let valued = valued.into_iter().filter_map(some);
        let machine = machine.keys();
        let machine = machine.into_iter().filter_map(some);
        let paths = load.path.iter().map(|path| ("path", path.clone(), "--path"));
        let fan_out = load.fan_out.then(|| ("path", "fan-out".to_owned(), "--fan-out"));
        let name = |name: &String| ("filename", gpuio_spec::one_name(name), "--filename");
        let names = data.filename.iter().map(name);
        let off = load.no_ceilings.then(|| ("ceilings", "off".to_owned(), "--no-ceilings"));
        let cold = data.no_pre_read.then(|| ("pre_read", "0".to_owned(), "--no-pre-read"));
        let switches = self.switches().filter(|(_, on, _)| *on);
        let switches = switches.map(|(key, _, flag)| (key, String::new(), flag));
        valued
            .chain(machine)
            .chain(off)
            .chain(cold)
            .chain(paths)
            .chain(fan_out)
            .chain(names)
            .chain(switches)
            .collect()
    }

    /// Keys of flags without a value, and whether each was given.
    fn switches(&self) -> impl Iterator<Item = (&'static str, bool, &'static str)> {
        let Work { load, data, .. } = self;
        [
            ("norandommap", load.norandommap, "--norandommap"),
            ("unaligned", load.unaligned, "--unaligned"),
            ("refill", load.refill, "--refill"),
            ("wear_out", load.wear_out, "--wear-out"),
            ("direct", data.direct, "--direct"),
            ("buffered", data.buffered, "--buffered"),
            ("pre_read", data.pre_read, "--pre-read"),
            ("invalidate", data.invalidate, "--invalidate"),
            ("sync", data.sync, "--sync"),
            ("shared_fd", data.shared_fd, "--shared-fd"),
            ("keep", data.keep, "--keep"),
        ]
        .into_iter()
    }
}

impl Bench {
    /// Whether two job files are compared.
    pub(crate) fn is_ab(&self) -> bool {
        !self.ab.ab.is_empty()
    }

    /// Whether no load was requested: then the quick run is made.
    pub(crate) fn is_quick(&self) -> bool {
        let only_location = self.work.keys().iter().all(|(key, ..)| QUICK_KEYS.contains(key));
        self.job_file.is_none() && self.work.data.set.is_empty() && only_location
    }
}

/// Keys that choose the directory or GPU of the quick run. With them it is still the quick run.
const QUICK_KEYS: [&str; 7] =
    ["directory", "gpu", "keep", "runtime", "file_prefix", "ceilings", "verify"];
