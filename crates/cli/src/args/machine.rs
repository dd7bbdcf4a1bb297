//! Flags of the verbs that look at a machine.

use std::path::PathBuf;

use clap::Args;

use super::FigureFlags;

/// Which machine, and what of it.
#[derive(Debug, Args)]
pub(crate) struct Topo {
    /// Two devices, by name or PCI address: GPU0 nvme3n1
    #[arg(value_name = "DEVICE", num_args = 2)]
    pub(crate) pair: Vec<String>,
    /// Another machine: what --capture wrote there, a directory with copies of its /sys and /proc,
    /// or files with what lspci -tv, lspci -vv, lstopo --of xml, nvidia-smi, ibdev2netdev, mount
    /// and others printed there [this machine]
    #[arg(long, value_name = "DIR|TAR|FILE", num_args = 1..)]
    pub(crate) from: Vec<PathBuf>,
    /// text, json, svg (a picture) or hwloc-xml (for lstopo -i) [text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Write the kernel files that the answers of topo and check come from to this new tar, names
    /// of hosts and users, serial numbers, UUIDs, network addresses and sources of mounts replaced
    #[arg(long, value_name = "TAR", conflicts_with_all = ["pair", "format"])]
    pub(crate) capture: Option<PathBuf>,
}

/// What to check, and of which machine.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Only these rules: a list with commas
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Not these rules: a list with commas
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// Say what this rule asks, why, what mends it, and where it is from
    #[arg(
        long,
        value_name = "RULE",
        conflicts_with_all = ["only", "skip", "all", "mount", "from", "format"]
    )]
    pub(crate) explain: Option<String>,
    /// Each rule that does not apply on a line of its own, and not all together by their reasons
    #[arg(long)]
    pub(crate) all: bool,
    /// Only what lies between this file or directory and a GPU, and which ways will work there:
    /// nvidia-fs, p2pdma, rdma, compat, gpuio, host
    #[arg(long, value_name = "PATH")]
    pub(crate) mount: Option<PathBuf>,
    /// The GPU beside --mount: number, PCI address, or software [the first]
    #[arg(long, value_name = "GPU", requires = "mount")]
    pub(crate) gpu: Option<String>,
    /// Try it: O_DIRECT and a second of verified reads over each path, in a directory of our own
    /// below --mount that goes afterwards
    #[arg(long, requires = "mount", conflicts_with = "from")]
    pub(crate) prove: bool,
    /// Another machine: what `gpuio topo --capture` wrote there, a directory with copies of its
    /// /sys and /proc, or files with what gdscheck -p, lspci -vv, nvidia-smi, mount and others
    /// printed there, and its cufile.json [this machine]
    #[arg(long, value_name = "TAR|DIR|FILE", num_args = 1..)]
    pub(crate) from: Vec<PathBuf>,
    /// text or json [text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
}

/// What to pair, for which load, and of which machine.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// GPUs by number, name, UUID or PCI address: a list with commas [all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) gpu: Vec<String>,
    /// Mount points, or directories on them [data drives' mounts, else network mounts, else raw
    /// drives, else the system's disk]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) mount: Vec<String>,
    /// Drives and arrays by name: a list with commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) drive: Vec<String>,
    /// read, write, randread, randwrite [read]
    #[arg(long, value_name = "RW")]
    pub(crate) rw: Option<String>,
    /// Block size [1M sequential, 4k random]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bs: Option<String>,
    /// Another machine, told as for gpuio topo [this machine]
    #[arg(long, value_name = "DIR|FILE", num_args = 1..)]
    pub(crate) from: Vec<PathBuf>,
    /// text, json, job (the job file) or gdsio (the same as a config file of gdsio) [text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Write the job file there too; a file that exists is never overwritten
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) figures: FigureFlags,
    /// In place of a machine, a box or cluster by description: what it should deliver
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["gpu", "mount", "drive", "rw", "bs", "from", "write"]
    )]
    pub(crate) system: Option<PathBuf>,
}
