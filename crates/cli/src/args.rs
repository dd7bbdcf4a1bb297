//! The command line, and only that. Values are parsed by the table of keys in `spec`, so that a
//! flag and a job-file key mean the same.

#![allow(rustdoc::broken_intra_doc_links, reason = "help texts name defaults in brackets")]

mod exec;
#[cfg(test)]
mod flags_test;
mod machine;
mod results;
mod stats;
mod sweep;
mod top;
mod words;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use exec::Exec;
pub(crate) use machine::{Check, Plan, Topo};
pub(crate) use results::{Compare, Report, Show};
pub(crate) use stats::Stats;
pub(crate) use sweep::{Sweep, Vary};
pub(crate) use top::Top;

/// Storage-to-GPU load generator: every number with its evidence.
#[derive(Debug, Parser)]
#[command(name = "gpuio", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a load and measure it.
    ///
    /// Without arguments: makes a scratch data set here, runs short read and write loads on every
    /// path that this machine has, verifies the bytes, prints one table and saves the record.
    Bench(Box<Bench>),
    /// Say what is wrong with this machine for I/O between storage and GPUs, and how to mend it.
    ///
    /// Findings are fail, warn, unknown (the facts are absent, with the reason), info or pass. The
    /// exit code is 1 where something failed. Changes nothing; docs/check.md lists the rules.
    Check(Check),
    /// Hold results against each other: ratio, 95 % interval, and whether it is more than noise.
    ///
    /// Results are records, sweeps, folders of records (repeats), gdsio's output, fio's JSON or
    /// elbencho's CSV; the first is the baseline. Exit code 1 where something is worse than
    /// --threshold allows, 2 where results differ in what decides the figures (docs/compare.md).
    Compare(Compare),
    /// Run another program with gpuio's libcufile.so.0 in the place of NVIDIA's.
    ///
    /// gpuio exec -- python train.py: whatever calls cuFile (KvikIO, torch.cuda.gds, DALI, fio, …)
    /// reads and writes GPU memory without nvidia-fs, root or udev, on any file system
    /// (docs/cufile.md). The program takes this process's place: its signals and its exit code are
    /// its own. Exit codes before that: 2 usage, 3 gpuio's library is not here or the program could
    /// not load it, 126 the program can't be executed, 127 there is none.
    Exec(Exec),
    /// Show the paths, engines and formats that are built in, and which can run here.
    List,
    /// Make a report of records and sweeps: one page with plots and evidence, or tables.
    ///
    /// The page is one file that needs no network. Other formats are for wikis and for programs
    /// that plot or watch (docs/report.md).
    Report(Report),
    /// Say which storage each GPU should use, what that should deliver, and write the job file.
    ///
    /// Pairs GPUs with the drives, arrays, mounts and network cards nearest to them, says which
    /// links they share, how arrays should be regrouped, what throughput and IOPS the hardware
    /// should give and which part limits it (docs/plan.md). Runs and changes nothing.
    Plan(Plan),
    /// Print a saved record again, or the journal of a run that died.
    Show(Show),
    /// Run a load over the values of some keys, in shuffled rounds, until each point is settled.
    ///
    /// Results are in a folder, a record per run; the same command goes on where it was left.
    /// Points are run by gpuio bench, whose flags say what all share (docs/sweep.md).
    Sweep(Box<Sweep>),
    /// Show what devices do, once a second: drives, arrays, GPUs, network, NFS, page cache, CPUs.
    ///
    /// Only what is behind the files, mounts, devices and GPUs that are named; else all that are
    /// not idle or virtual. A screen on a terminal, tables or lines of JSON elsewhere, or a page
    /// for Prometheus (docs/top.md). Keys: q ends, tab and arrows move, s sorts, p pauses, + and -
    /// change the interval.
    Top(Top),
    /// Show what gpuio's processes count while they run: throughput, percentiles, GPUs and paths.
    ///
    /// Without a process: a list of those that keep statistics, yours or, for root, everybody's
    /// (docs/stats.md).
    Stats(Stats),
    /// Show which GPU, drive, array, network card and mount belong together (docs/topo.md).
    ///
    /// Prints the PCIe tree with each link's speed, the distance between any two devices, and what
    /// is near to each GPU. With two devices: the way between them, hop by hop.
    Topo(Topo),
    /// Print gds_stats' sections from a process's live counters (see docs/stats.md).
    #[command(name = "gds_stats", disable_help_flag = true)]
    GdsStats {
        /// gds_stats' own words.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Print gdscheck's sections from gpuio's own facts (see docs/check.md).
    #[command(disable_help_flag = true)]
    Gdscheck {
        /// gdscheck's own words.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Speak gdsio: its flags, its config files, its result line (see docs/gdsio.md).
    #[command(disable_help_flag = true)]
    Gdsio {
        /// gdsio's own words.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}
/// Flags of `bench`. Each value is parsed as the job-file key of the same name.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Job file in gpuio's dialect, which reads gdsio's and fio's keys (docs/job-file.md). Flags
    /// beside it apply to all of its jobs.
    pub(crate) job_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: Work,
    #[command(flatten)]
    pub(crate) figures: FigureFlags,
    #[command(flatten)]
    pub(crate) out: Out,
    #[command(flatten)]
    pub(crate) ab: Ab,
}

/// What is run, where and on what: `bench` and `sweep` take it alike.
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

/// Two job files in one run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct Ab {
    /// Run two job files in turns (A B, B A, …; an even seed begins with B) and print their
    /// comparison (docs/compare.md). -o names a folder for the records; --format is text, json or
    /// markdown
    #[arg(long, value_names = ["A.ini", "B.ini"], num_args = 2, conflicts_with = "job_file")]
    pub(crate) ab: Vec<PathBuf>,
    /// How often each of them runs [5]
    #[arg(long, value_name = "N", requires = "ab",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
}

/// What the hardware should deliver, beside what is built in (docs/expectation.md).
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Expectation")]
pub(crate) struct FigureFlags {
    /// Figures of drives, servers and processors, such as a maker's data sheet; repeat for more
    #[arg(long, value_name = "FILE")]
    pub(crate) spec: Vec<PathBuf>,
    /// What a file server delivers: read=24GB/s,write=12GB/s,iops=800k,ports=2x100Gb, and
    /// name=SERVER where it is one of several; repeat for more
    #[arg(long, value_name = "FIGURES")]
    pub(crate) server: Vec<String>,
}

/// What to do. A value may begin with a hyphen: `--size -1` is told by the key's own words, with
/// the flag.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load", allow_negative_numbers = true)]
pub(crate) struct Load {
    /// How bytes travel: host, staged, cached, managed, gather, resident, routed, gds, gds-stream,
    /// gds-batch, gds-batch-stream, a list of them, all, or auto (by block size and what works
    /// here, with the reason) [staged if a GPU is named, else host]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Vec<String>,
    /// Between file and host memory: psync, io_uring, libaio, mmap, null, pool [auto]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,
    /// read, write, randread, randwrite, rw, randrw [read]
    #[arg(long, value_name = "RW")]
    pub(crate) rw: Option<String>,
    /// Block size: 4k, or MIN:MAX:STEP [1M sequential, 4k random]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bs: Option<String>,
    /// Block sizes with shares: 4k/60:64k/40
    #[arg(long, value_name = "SPLIT", conflicts_with = "bs")]
    pub(crate) bssplit: Option<String>,
    /// Bytes each thread works on [the file, or what suits disk and memory]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Bytes each thread moves before it stops
    #[arg(long, value_name = "SIZE")]
    pub(crate) io_size: Option<String>,
    /// Where in the file to start
    #[arg(long, value_name = "SIZE")]
    pub(crate) offset: Option<String>,
    /// Threads [1]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<String>,
    /// I/Os in flight per thread [32 or 8 asynchronous, 4 in a GPU path's ring, 1 otherwise]
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<String>,
    /// Time to run: 10, 500ms, 2m [10 s]
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,
    /// Time at the start that does not count [0]
    #[arg(long, value_name = "TIME")]
    pub(crate) ramp: Option<String>,
    /// End once this is steady, by fio's rules: iops, bw, lat, or one of them with _slope, and its
    /// limit: iops:2%, bw_slope:1%; --runtime is the longest time then [10 checks of a second, at
    /// most 10 times; --set ss_dur=, ss_ramp=, ss_interval=]
    #[arg(long, value_name = "CRITERION")]
    pub(crate) steady: Option<String>,
    /// Wait before the first I/O [0]
    #[arg(long, value_name = "TIME")]
    pub(crate) start_delay: Option<String>,
    /// Times through the region, instead of a time
    #[arg(long, value_name = "N")]
    pub(crate) loops: Option<String>,
    /// Per cent of reads in a mix [50]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) rwmixread: Option<String>,
    /// random, zipf:THETA, pareto:H, normal:PERCENT [random]
    #[arg(long, value_name = "KIND")]
    pub(crate) random_distribution: Option<String>,
    /// Let random blocks repeat before all are touched
    #[arg(long)]
    pub(crate) norandommap: bool,
    /// Grid of random offsets [the block size]
    #[arg(long, value_name = "SIZE")]
    pub(crate) align: Option<String>,
    /// Put offsets off the 4 KiB grid on purpose
    #[arg(long)]
    pub(crate) unaligned: bool,
    /// Bytes per second and thread
    #[arg(long, value_name = "SIZE")]
    pub(crate) rate: Option<String>,
    /// I/Os per second and thread
    #[arg(long, value_name = "N")]
    pub(crate) rate_iops: Option<String>,
    /// Arrivals at the rate: linear or poisson [linear]
    #[arg(long, value_name = "KIND")]
    pub(crate) rate_process: Option<String>,
    /// Seed of every random choice [1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<String>,
    /// Verify: pass (after the clock: what timed writes left is read back, what was read is read
    /// again), rewrite (writes all data anew and verifies that) or inline (every timed read) [off;
    /// pass if no mode is given]
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true,
          default_missing_value = "pass")]
    pub(crate) verify: Option<String>,
    /// Measure what could be reached at most, this long for each ceiling, after the jobs: 500ms
    /// [off; on with --path all; 1 s if no time is given]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "on", conflicts_with = "no_ceilings")]
    pub(crate) ceilings: Option<String>,
    /// Measure no ceilings, with --path all either
    #[arg(long)]
    pub(crate) no_ceilings: bool,
    /// Run each job twice, alone and with a kernel that keeps its GPUs busy, and say what either
    /// costs the other: compute (arithmetic in registers) or memory (a stream over GPU memory), on
    /// all multiprocessors or a share of them: compute:50%
    #[arg(long, value_name = "WORK")]
    pub(crate) beside: Option<String>,
    /// What writes carry: pattern or random [pattern]
    #[arg(long, value_name = "KIND")]
    pub(crate) fill: Option<String>,
    /// New data before every write (outside latencies, inside the wall clock)
    #[arg(long)]
    pub(crate) refill: bool,
    /// Faults on purpose: eio=1%,short=5%,delay=2ms@10%,stall=1s@5s,rate=100M,seed=7
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
    /// NUMA node of the threads [their GPU's]
    #[arg(long, value_name = "NODE")]
    pub(crate) numa: Option<String>,
    /// CPUs of the threads: 0-3,8
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus: Option<String>,
    /// Memory that bytes end in: device, vmm, pinned, malloc, mmap [device; malloc on host; managed
    /// on managed]
    #[arg(long, value_name = "KIND")]
    pub(crate) memory: Option<String>,
    /// Streams per thread on GPU paths [2 below 64k, else 1; one per slot or batch on cuFile's]
    #[arg(long, value_name = "N")]
    pub(crate) streams: Option<String>,
    /// GPU near the drive, through which path routed goes [one on the drive's NUMA node]
    #[arg(long, value_name = "GPU")]
    pub(crate) via_gpu: Option<String>,
    /// Blocks per launch on path gather [512 KiB of them, 2 MiB from 16k, 4 MiB from 512k on], per
    /// submit on gds-batch and gds-batch-stream [16]
    #[arg(long, value_name = "N")]
    pub(crate) gather_batch: Option<String>,
}

/// How NVIDIA's cuFile is driven, on the paths that need it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "cuFile")]
pub(crate) struct CufileFlags {
    /// The cuFile library [libcufile.so.0 of the system, a CUDA toolkit or a Python environment]
    #[arg(long, value_name = "FILE")]
    pub(crate) cufile_lib: Option<PathBuf>,
    /// A setting of cuFile on top of its own configuration file: properties.allow_compat_mode=true;
    /// repeat for more
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) cufile_set: Vec<String>,
}

/// Which bytes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct Data {
    /// Directory with one file per thread, made when missing [./gpuio-scratch, removed afterwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<String>,
    /// File or block device; repeat for more
    #[arg(long, value_name = "FILE")]
    pub(crate) filename: Vec<String>,
    /// First part of file names in the directory [gpuio]
    #[arg(long, value_name = "NAME")]
    pub(crate) file_prefix: Option<String>,
    /// O_DIRECT [where the file system takes it]
    #[arg(long)]
    pub(crate) direct: bool,
    /// Page cache
    #[arg(long, conflicts_with = "direct")]
    pub(crate) buffered: bool,
    /// Read the files into the page cache before the clock starts [with --path all and --buffered,
    /// where they fit half of memory]
    #[arg(long)]
    pub(crate) pre_read: bool,
    /// Drop the files from the page cache before the clock starts
    #[arg(long, conflicts_with = "pre_read")]
    pub(crate) invalidate: bool,
    /// Leave the page cache as it is, with --path all and in sweeps too
    #[arg(long, conflicts_with = "pre_read")]
    pub(crate) no_pre_read: bool,
    /// Writes wait for stable storage (O_DSYNC)
    #[arg(long)]
    pub(crate) sync: bool,
    /// All threads use one descriptor per named file
    #[arg(long)]
    pub(crate) shared_fd: bool,
    /// Keep the scratch data set
    #[arg(long)]
    pub(crate) keep: bool,
    /// Overwrite regular files that gpuio did not make
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Write to this block device and lose what is on it; repeat for more
    #[arg(long, value_name = "DEVICE")]
    pub(crate) destroy_data_on: Vec<PathBuf>,
    /// Any key of the job-file dialect
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// What to print and save.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Out {
    /// text, json, csv, gdsio or plan [text; with -o by the file's extension]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Save the record in this file too
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// In text, show the witnesses of every job's path (docs/proof.md), not only of those whose
    /// bytes took another way than asked
    #[arg(long)]
    pub(crate) evidence: bool,
    /// Print the plan as a job file and end
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// No progress, and no table when the record is saved
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Keep no counters for gpuio stats while it runs
    #[arg(long)]
    pub(crate) no_stats_page: bool,
    /// Sample no devices beside the jobs
    #[arg(long)]
    pub(crate) no_watch: bool,
}

impl Work {
    /// The flags as (job-file key, value, flag) in the order of the help. Bare flags have an empty
    /// value.
    pub(crate) fn keys(&self) -> Vec<(&'static str, String, &'static str)> {
        let (load, machine, data) = (&self.load, &self.machine, &self.data);
        let valued: [(&'static str, &Option<String>, &'static str); 35] = [
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
            ("inject", &load.inject, "--inject"),
            ("gpu", &machine.gpu, "--gpu"),
            ("numa", &machine.numa, "--numa"),
            ("cpus", &machine.cpus, "--cpus"),
            ("memory", &machine.memory, "--memory"),
            ("streams", &machine.streams, "--streams"),
            ("via_gpu", &machine.via_gpu, "--via-gpu"),
            ("gather_batch", &machine.gather_batch, "--gather-batch"),
            ("directory", &data.directory, "--directory"),
            ("file_prefix", &data.file_prefix, "--file-prefix"),
        ];
        let switches = [
            ("norandommap", load.norandommap, "--norandommap"),
            ("unaligned", load.unaligned, "--unaligned"),
            ("refill", load.refill, "--refill"),
            ("direct", data.direct, "--direct"),
            ("buffered", data.buffered, "--buffered"),
            ("pre_read", data.pre_read, "--pre-read"),
            ("invalidate", data.invalidate, "--invalidate"),
            ("sync", data.sync, "--sync"),
            ("shared_fd", data.shared_fd, "--shared-fd"),
            ("keep", data.keep, "--keep"),
        ];
        let valued = valued.into_iter().filter_map(|(key, value, flag)| {
            value.as_ref().map(|value| (key, value.clone(), flag))
        });
        let paths = load.path.iter().map(|path| ("path", path.clone(), "--path"));
        // A colon parts names in the key; in a flag it belongs to the name.
        let name = |name: &String| ("filename", name.replace(':', "\\:"), "--filename");
        let names = data.filename.iter().map(name);
        let off = load.no_ceilings.then(|| ("ceilings", "off".to_owned(), "--no-ceilings"));
        let cold = data.no_pre_read.then(|| ("pre_read", "0".to_owned(), "--no-pre-read"));
        let switches = switches.into_iter().filter(|(_, on, _)| *on);
        let switches = switches.map(|(key, _, flag)| (key, String::new(), flag));
        valued.chain(off).chain(cold).chain(paths).chain(names).chain(switches).collect()
    }
}

impl Bench {
    /// Whether nothing at all was asked: the quick run.
    pub(crate) fn is_quick(&self) -> bool {
        let only_place = self.work.keys().iter().all(|(key, ..)| QUICK_KEYS.contains(key));
        self.job_file.is_none() && self.work.data.set.is_empty() && only_place
    }
}

/// Keys that say where the quick run goes or on which GPU, and leave it the quick run.
const QUICK_KEYS: [&str; 6] = ["directory", "gpu", "keep", "runtime", "file_prefix", "ceilings"];
