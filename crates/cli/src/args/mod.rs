//! Defines the command line. Values are parsed by the key table in `job`, so that a flag and the
//! job-file key of the same name mean the same.

#![allow(rustdoc::broken_intra_doc_links, reason = "help texts name defaults in brackets")]

mod examples;
mod exec;
mod fio;
mod gdsio;
mod generate;
mod keys;
mod machine;
mod mistaken;
mod network;
mod prefetch;
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
mod values;
mod why;
mod workflow;
mod workload;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{
    ArgAction, Args, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
};

use crate::formats;

pub(crate) use exec::Exec;
pub(crate) use fio::spoken;
pub(crate) use gdsio::{SWITCHES as GDSIO_SWITCHES, option as gdsio_option, parse as parse_gdsio};
pub(crate) use generate::{Explain, Generate, List, What, explained};
pub(crate) use keys::{Given, Keyed, OwnFlags, asks_for_load};
pub(crate) use machine::{Check, Collect, Plan, Topo};
pub(crate) use mistaken::{for_fio, for_gdsio, meant, two_dashes, value_apart, without_far_hints};
pub(crate) use network::Network;
pub(crate) use prefetch::Prefetch;
pub(crate) use ranks::{RankFlags, RankLimits};
pub(crate) use replay::Replay;
pub(crate) use results::{Compare, Limit, Report, Show};
pub(crate) use save::Save;
pub(crate) use stats::Stats;
pub(crate) use sweep::{Sweep, Vary};
pub(crate) use top::Top;
use values::one_of;
pub(crate) use values::proposed;
pub(crate) use why::{Subject, Why};
pub(crate) use workflow::command;
pub(crate) use workload::{Workload, WorkloadFlags};

/// Measure the path from storage to GPU memory, with evidence for every number.
#[derive(Debug, Parser)]
#[command(
    name = "gpuio",
    version,
    disable_version_flag = true,
    max_term_width = 100,
    hide_possible_values = true
)]
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
    /// prints one screen with a conclusion and saves the record; all of it in one to two minutes:
    /// its first line says about how long it takes here. With options that describe a load: runs
    /// one job with the defaults in brackets. SIZE: bytes, or with suffix k, M, G, T (powers of
    /// 1024). TIME: seconds, or with suffix us, ms, s, min, h, d.
    #[command(after_help = examples::BENCH)]
    Bench(Box<Bench>),
    /// Diagnose storage-to-GPU I/O problems on this machine and suggest fixes.
    ///
    /// Each rule ends as fail, warn, unknown (facts are missing, with the reason), info, pass or
    /// n/a (it does not apply here). The exit code is 1 if a rule failed. Changes nothing.
    /// docs/check.md lists the rules.
    #[command(after_help = examples::CHECK)]
    Check(Check),
    /// Print a script that describes another machine, where gpuio is not installed.
    ///
    /// Plain sh and awk; needs no root and no gpuio, changes nothing and sends nothing. Its output
    /// is one text that --from of check, topo and plan reads. Names, serial numbers, UUIDs,
    /// addresses and mount sources in it are replaced, and its last lines say what is left out.
    #[command(after_help = examples::COLLECT)]
    Collect(Collect),
    /// Compare results: ratio, 95 % interval, and whether the difference is more than noise.
    ///
    /// Accepts records, sweeps, directories of records (repeats), gdsio's output, fio's JSON and
    /// elbencho's CSV. The first result is the baseline. Exit code 1: a result is worse than
    /// --threshold allows. Exit code 2: the results are not comparable, because settings or
    /// machines differ, or too few runs decide over --threshold (docs/compare.md).
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
    /// Explain a warning of a run, a rule of check, or a word of tables and reports.
    ///
    /// Prints what it means; of a warning, whose name stands in brackets, an example with what to
    /// do, and the fields that records have of it. Without a name: lists warnings and rules.
    #[command(after_help = examples::EXPLAIN)]
    Explain(Explain),
    /// Print completions for a shell, or write manual pages or the reference.
    ///
    /// Completions know flags, verbs and their values: paths, engines, presets, formats, warnings.
    /// For this shell: source <(gpuio generate bash). The packages have installed them and the
    /// manual pages already.
    #[command(after_help = examples::GENERATE)]
    Generate(Generate),
    /// List the built-in paths, engines and formats, and which of them can run here.
    #[command(after_help = examples::LIST)]
    List(List),
    /// Measure the network between two machines: the most that storage over it can reach.
    ///
    /// One machine serves (--serve), the other measures: bytes per second of TCP connections from
    /// memory to memory, without storage and GPUs, and what they cost both machines. The server
    /// reads and writes no file, listens only where --serve says, and ends after a client. Anyone
    /// who reaches its address can use it: it is for networks that you trust. RDMA is not measured
    /// (docs/plan.md, "The network alone").
    #[command(after_help = examples::NETWORK)]
    Network(Network),
    /// Read a model's files into the page cache, before or while a program loads them.
    ///
    /// In the order of a trace's calls (gpuio exec --record), or of the files: those that a model's
    /// index names. The files are only read. No more is read than the memory that is available
    /// holds, in the control group too; an eighth of it stays free. One line says how much was
    /// cached, read and left out. A signal ends it. gpuio exec --prefetch runs it beside a program.
    #[command(after_help = examples::PREFETCH)]
    Prefetch(Prefetch),
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
    Version(List),
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

    /// Run only this section of the job file; repeat for more [all]
    #[arg(long, value_name = "NAME", requires = "job_file")]
    pub(crate) section: Vec<String>,
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

/// The load to run, and where: flags shared by `bench` and `sweep`.
pub(crate) type Work = Keyed<LoadFlags>;

/// Those of them that set no key.
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct LoadFlags {
    /// Overwrite regular files that gpuio did not create
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Write to this block device and destroy its data; repeat for more
    #[arg(long, value_name = "DEVICE")]
    pub(crate) destroy_data_on: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) cufile: CufileFlags,
}

impl OwnFlags for LoadFlags {
    const VERB: &'static str = "bench";
    const HEADINGS: &'static [&'static str] = &["Load", "Machine", "cuFile", "Data"];
}

/// Flags of a comparison of two job files.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct Ab {
    /// Run two job files alternately (A B, B A, …; an even seed starts with B) and print a
    /// comparison (docs/compare.md). -o names a directory for the records; --format is one of gpuio
    /// compare's
    #[arg(long, value_names = ["A.ini", "B.ini"], num_args = 2,
          conflicts_with_all = ["job_file", "serve"])]
    pub(crate) ab: Vec<PathBuf>,
    /// Number of runs of each job file [5]
    #[arg(long, value_name = "N", requires = "ab",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    #[command(flatten)]
    pub(crate) limit: Limit,
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

/// The output to print and save.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Out {
    #[arg(long, value_name = "FORMAT",
        value_parser = one_of(formats::names_of_records()),
        help = formats::help_of_records(
            "[text; summary without a load; with -o by the file's extension]"
        ))]
    pub(crate) format: Option<String>,
    /// Also save the record in this file; its directory is made if needed
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace that file if gpuio wrote it and nothing changed it since; never any other file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Print everything: all tables, whole warnings and the evidence, of which a run prints what
    /// is needed first (gpuio show last has them until the next run)
    #[arg(long, short = 'v', visible_alias = "verbose")]
    pub(crate) details: bool,
    /// Show the evidence for every job's data path, not only where it differs from the requested
    /// one (docs/proof.md; text, markdown and html only)
    #[arg(long)]
    pub(crate) evidence: bool,
    /// Print the plan as a job file and exit
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// No progress display, and no table if the record is saved
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Progress display: never, newline (lines, also on a terminal: one a second, after 10 s one
    /// each 10 s), always (a live line on a terminal, else lines) or auto (a live line on a
    /// terminal, else nothing) [auto]
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "always", "never", "newline"])]
    pub(crate) eta: Option<String>,
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

impl Bench {
    /// Whether two job files are compared.
    pub(crate) fn is_ab(&self) -> bool {
        !self.ab.ab.is_empty()
    }

    /// Whether no load was requested: then the quick run is made.
    pub(crate) fn is_quick(&self) -> bool {
        let only_location = self.work.keys().iter().all(Given::says_no_load);
        self.job_file.is_none() && only_location
    }
}

/// The verbs that have flags which the help leaves out.
const WITH_MORE: [&str; 4] = ["bench", "sweep", "workload", "replay"];

/// The command line as it is parsed: it has flags that the help leaves out.
pub(crate) fn parser() -> Command {
    WITH_MORE.into_iter().fold(Cli::command(), |all, verb| all.mut_subcommand(verb, keys::parsed))
}

/// The same for these words alone. To make trees of commands is most of a short command's time.
pub(crate) fn parser_of(words: &[OsString]) -> Command {
    let whole = Cli::command();
    let Some(name) = named(words, &whole).map(|verb| verb.get_name().to_owned()) else {
        return parser();
    };
    match WITH_MORE.contains(&name.as_str()) {
        true => whole.mut_subcommand(name, keys::parsed),
        false => whole,
    }
}

/// The verb that these words begin with.
pub(crate) fn named<'a>(words: &[OsString], command: &'a Command) -> Option<&'a Command> {
    command.find_subcommand(words.get(1)?.to_str()?)
}

/// Reads a command line from these words.
pub(crate) fn parse<I, W>(words: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item = W>,
    W: Into<OsString> + Clone,
{
    Cli::from_arg_matches(&parser().try_get_matches_from(words)?)
}
