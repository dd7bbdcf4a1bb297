//! Flags of the verbs that inspect a machine.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use gpuio_machine::check::RULES;
use gpuio_machine::pair::Load;

use super::{FigureFlags, Save, one_of};
use crate::formats;

/// The rules of `check`.
fn rules() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.name)
}

/// Which machine, and which part of it.
#[derive(Debug, Args)]
pub(crate) struct Topo {
    /// Two devices, by name or PCI address: GPU0 nvme3n1
    #[arg(value_name = "DEVICE", num_args = 2)]
    pub(crate) pair: Vec<String>,
    /// Describe another machine, or several: a capture from --capture, copies of /sys and /proc, or
    /// the output of tools (gpuio list names them), as files, directories, archives (tar, gz, xz,
    /// zst, zip) or - for standard input [this machine]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) from: Vec<PathBuf>,
    /// One of several machines in the texts, by its host's name [all of them, one by one]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) machine: Option<String>,
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names(formats::TOPO)),
        help = formats::help(formats::TOPO, "[text; with -o by the file's extension]"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) save: Save,
    /// Save the kernel files that topo and check read to this new tar file; host and user names,
    /// serial numbers, UUIDs, network addresses and mount sources are replaced
    #[arg(long, value_name = "TAR", conflicts_with_all = ["pair", "format", "output"])]
    pub(crate) capture: Option<PathBuf>,
    /// Keep host names, network addresses and mount sources in the capture: gpuio plan --hosts
    /// needs them to know which hosts share a server
    #[arg(long, requires = "capture")]
    pub(crate) keep_addresses: bool,
}

/// The checks to make, and the machine.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Run only these rules: comma-separated list
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = one_of(rules()))]
    pub(crate) only: Vec<String>,
    /// Skip these rules: comma-separated list
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = one_of(rules()))]
    pub(crate) skip: Vec<String>,
    /// Explain this rule: what it checks, why, how to fix it, and its source
    #[arg(
        long,
        value_name = "RULE",
        value_parser = one_of(rules()),
        conflicts_with_all = ["only", "skip", "all", "mount", "from", "hosts", "format", "output"]
    )]
    pub(crate) explain: Option<String>,
    /// List each rule that does not apply, or of texts is unknown, on its own line with its reason
    #[arg(long)]
    pub(crate) all: bool,
    /// Report which modes will work between this file or directory and a GPU (nvidia-fs, p2pdma,
    /// rdma, compat, gpuio, initiated, host), and leave out rules about other storage and GPUs
    #[arg(long, value_name = "PATH")]
    pub(crate) mount: Option<PathBuf>,
    /// The GPU for --mount: number, PCI address, or software [the first]
    #[arg(long, value_name = "GPU", requires = "mount")]
    pub(crate) gpu: Option<String>,
    /// Test it: O_DIRECT and one second of verified reads on each path, in a temporary directory
    /// below --mount
    #[arg(long, requires = "mount", conflicts_with = "from")]
    pub(crate) prove: bool,
    /// Describe another machine, or several, as for gpuio topo --from; gdscheck -p, cufile.json,
    /// cufile.log, the output of gpuio collect's script and others are read too; results in texts
    /// (gdsio, fio, iostat, dmon, gds_stats) are held against each other [this machine]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) from: Vec<PathBuf>,
    /// One of several machines in the texts, by its host's name [all of them, one by one]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) machine: Option<String>,
    /// Check all hosts whose captures are in this directory, one HOST.tar for each: what differs
    /// between them first, then findings, equal ones once
    #[arg(long, value_name = "DIR", conflicts_with_all = ["from", "mount"])]
    pub(crate) hosts: Option<PathBuf>,
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names(&[])),
        help = formats::help(&[], "[text]"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) save: Save,
}

/// Where the script goes.
#[derive(Debug, Args)]
pub(crate) struct Collect {
    /// Write the script to this file instead of standard output; its directory is made if needed
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if gpuio wrote it and nothing changed it since; never any other file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// The devices to pair, the load and the machine.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// GPUs by number, name, UUID or PCI address: comma-separated list [all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) gpu: Vec<String>,
    /// Mount points, or directories on them [mounts of data drives, else network mounts, else raw
    /// drives, else the system disk]
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub(crate) mount: Vec<String>,
    /// Drives and arrays by name: comma-separated list
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) drive: Vec<String>,
    /// Load to plan for: read, write, randread, randwrite [read]
    #[arg(long, value_name = "RW", value_parser = one_of(Load::DIRECTIONS))]
    pub(crate) rw: Option<String>,
    /// Block size [1M sequential, 4k random]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bs: Option<String>,
    /// Describe another machine, as for gpuio topo --from [this machine]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) from: Vec<PathBuf>,
    /// One of several machines in the texts, by its host's name [all of them, one by one]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) machine: Option<String>,
    /// Plan all hosts whose captures are in this directory, one HOST.tar for each, for one run
    /// by mpirun or srun
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    pub(crate) hosts: Option<PathBuf>,
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names(formats::PLAN)),
        help = formats::help(formats::PLAN, "[text]"))]
    pub(crate) format: Option<String>,
    /// Also write the job file here; its directory is made if needed
    #[arg(long, short, value_name = "FILE", visible_alias = "write")]
    pub(crate) output: Option<PathBuf>,
    /// Replace that file if gpuio wrote it and nothing changed it since; never any other file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) figures: FigureFlags,
    /// Estimate the performance of the system or cluster described in this file, instead of a
    /// machine
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["gpu", "mount", "drive", "rw", "bs", "from", "hosts", "output"]
    )]
    pub(crate) system: Option<PathBuf>,
}
