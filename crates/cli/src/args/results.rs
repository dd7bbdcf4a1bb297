//! Flags of the verbs that take results.

use std::path::PathBuf;

use clap::Args;

/// What to print.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A record as -o NAME.json saves it, or a journal
    #[arg(value_name = "FILE")]
    pub(crate) record: PathBuf,
    /// text, json, csv, gdsio or plan [text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// In text, show the witnesses of every job's path (docs/proof.md)
    #[arg(long)]
    pub(crate) evidence: bool,
}

/// What to hold against what.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Files or folders, the baseline first
    #[arg(value_name = "RESULT", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Split the results by an axis of their sweep, or by path, engine, bs, threads, depth, …, and
    /// hold its values against each other, the first named being the baseline: path=gds,gather
    #[arg(long, value_name = "KEY[=A,B]")]
    pub(crate) axis: Option<String>,
    /// Compare although this differs: load, path, cache, direct, verify, inject, cufile,
    /// ended, software-gpu, filesystem, device, gpu, cpu, kernel, or all; a list with commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) despite: Vec<String>,
    /// Exit with 1 where something is worse by more than this, its whole interval beyond it: 5%
    #[arg(long, value_name = "PERCENT")]
    pub(crate) threshold: Option<String>,
    /// What the threshold is on: throughput, iops, mean, p50, p99, p99.9, cpu; a list with commas
    /// [throughput]
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "threshold")]
    pub(crate) metric: Vec<String>,
    /// text, json or markdown [text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
}

/// Of which records, and where to.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Records that -o NAME.json saved, journals, sweeps' folders, or folders of records
    #[arg(value_name = "RECORD|FOLDER", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// The file to write, - for standard output, with fio-json also a folder for a file per job
    /// [report.html; standard output in other formats]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// html, markdown, csv, fio-json or openmetrics [by the file's extension; html]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Title [the sweep's name, or the record's]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// A picture of the machine's topology, as SVG, or none [drawn of this machine, where the
    /// records were made on it]
    #[arg(long, value_name = "FILE|none")]
    pub(crate) topo: Option<PathBuf>,
    /// Draw the topology of the machine in these files, as topo --from takes them
    #[arg(long, value_name = "FILE|DIR", num_args = 1.., conflicts_with = "topo")]
    pub(crate) from: Vec<PathBuf>,
    /// Leave the records out of the page where they take more than this, packed; none for no limit
    /// [16M]
    #[arg(long, value_name = "SIZE")]
    pub(crate) embed_limit: Option<String>,
    /// Overwrite a file that gpuio did not make: what is in it is lost
    #[arg(long)]
    pub(crate) force: bool,
}
