//! Flags of the verbs that read results.

use std::path::PathBuf;

use clap::Args;
use gpuio_report::compare::flags;

use super::{Save, one_of};
use crate::formats;

/// The record to print.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A record saved with -o NAME.json, a journal, or last: your last run; with --check several,
    /// or directories of them
    #[arg(value_name = "FILE", required = true)]
    pub(crate) records: Vec<PathBuf>,
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names_of_records()),
        help = formats::help_of_records("[text]"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) save: Save,
    /// Show the evidence for every job's data path (docs/proof.md; text, markdown and html only)
    #[arg(long, short = 'v', visible_aliases = ["details", "verbose"])]
    pub(crate) evidence: bool,
    /// Add a table with a row for each rank (text, csv, markdown and html only)
    #[arg(long)]
    pub(crate) per_rank: bool,
    /// Print only digests, and whether the figures of records follow from their counts (text and
    /// json only); exit code 1 if not
    #[arg(long, conflicts_with_all = ["evidence", "per_rank"])]
    pub(crate) check: bool,
}

fn despite() -> String {
    let flags = flags();
    let (all, others) = flags.split_last().unwrap_or((&"", &[]));
    format!("Compare even if these differ: {}, or {all}; comma-separated list", others.join(", "))
}

fn metric() -> String {
    let known = gpuio_record::metric::words().join(", ");
    format!(
        "Figures that the threshold applies to: {known}, or another percentile; \
        comma-separated list [throughput]"
    )
}

/// How much worse a result may be.
#[derive(Debug, Default, Args)]
pub(crate) struct Limit {
    /// Exit with code 1 if a result is worse than the baseline by more than this, even at the
    /// better end of its 95 % interval, and with 2 if only the worse end is (undetermined): 5%
    #[arg(long, value_name = "PERCENT")]
    pub(crate) threshold: Option<String>,
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "threshold",
        value_parser = one_of(gpuio_record::metric::words()), help = metric())]
    pub(crate) metric: Vec<String>,
}

/// The records to compare.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Files or directories, the baseline first
    #[arg(value_name = "RESULT", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Split the results by an axis of their sweep, or by path, engine, bs, threads, depth, …, and
    /// compare its values; the first value is the baseline: path=gds,gather
    #[arg(long, value_name = "KEY[=A,B]")]
    pub(crate) axis: Option<String>,
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = one_of(flags()),
        help = despite())]
    pub(crate) despite: Vec<String>,
    #[command(flatten)]
    pub(crate) limit: Limit,
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names(&[])),
        help = formats::help(&[], "[text]"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) save: Save,
}

/// Which records to report, and where to write the report.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Records saved with -o NAME.json, journals, sweep directories, or directories of records
    #[arg(value_name = "RECORD|FOLDER", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// File to write, - for standard output; for fio-json also a directory, with one file per job
    /// [report.html, report.pdf; standard output in other formats]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Output format: html, pdf (printed by an installed browser), svg, markdown, csv, fio-json or
    /// openmetrics [by the file's extension; html]
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names_of_reports()))]
    pub(crate) format: Option<String>,
    /// Title of the report [name of the sweep or record]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Axis across the first plot: a key on which the records differ in numbers [the first varied]
    #[arg(long, value_name = "KEY")]
    pub(crate) x: Option<String>,
    /// A line of the first plot for each value of this key, beside paths [one value is drawn]
    #[arg(long, value_name = "KEY")]
    pub(crate) lines: Option<String>,
    /// SVG picture of the machine's topology, or none [drawn if the records are from this machine]
    #[arg(long, value_name = "FILE|none")]
    pub(crate) topo: Option<PathBuf>,
    /// Draw the topology of the machine described by these files, as for topo --from
    #[arg(long, value_name = "FILE|DIR", num_args = 1.., conflicts_with = "topo")]
    pub(crate) from: Vec<PathBuf>,
    /// Leave the records out of the page if they are larger than this when compressed; none for no
    /// limit; a PDF never holds them [16M]
    #[arg(long, value_name = "SIZE")]
    pub(crate) embed_limit: Option<String>,
    /// Replace the file if gpuio wrote it and nothing changed it since; never any other file. A
    /// report of the same format is replaced without it
    #[arg(long)]
    pub(crate) force: bool,
}
