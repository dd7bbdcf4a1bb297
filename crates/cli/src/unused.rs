//! Reports options that have no effect together with the others that are given: a line for each.
//!
//! Keys of a load are checked with the plan (`gpuio_job::plan::unused`). This module checks
//! options of the program itself: what is printed, saved or watched. Most pairs that exclude each
//! other are in the flags' own declarations. A switch for the default behaviour (`--quiet` if
//! nothing would be shown) and an unneeded permission (`--despite`,
//! `--force` for a new file) are accepted.

use clap::Arg;
use gpuio_job::sweep::Bound;
use gpuio_report::format;

use crate::args::{
    Bench, Check, Exec, FigureFlags, Out, RankFlags, RankLimits, Report, Show, Stats, Vary,
    Workload,
};
use crate::failure::Failure;
use crate::jobs::IS_MADE;

/// In the note of a key without an effect.
pub(crate) const NO_EFFECT: &str = "has no effect here";

/// Whether a note is one that [`report_unused`](crate::verb::bench::report_unused) prints.
pub(crate) fn is_said(note: &str) -> bool {
    [NO_EFFECT, IS_MADE].iter().any(|words| note.contains(words))
}

/// A flag, whether it was given without effect, and the reason with the remedy.
type Row<'a> = (&'a str, bool, &'a str);

fn refuse(rows: &[Row<'_>]) -> Result<(), Failure> {
    match rows.iter().find(|(_, unused, _)| *unused) {
        None => Ok(()),
        Some((flag, _, why)) => {
            Err(Failure::Usage(format!("{flag}: it has no effect here: {why}")))
        }
    }
}

/// With `--dry-run`, options that describe the run are used: the dry run shows it.
pub(crate) fn bench(bench: &Bench) -> Result<(), Failure> {
    let of_two = bench.ab.limit.threshold.is_some() && !bench.is_ab();
    refuse(&[("--threshold", of_two, "it is the limit of a comparison; add --ab A.ini B.ini")])?;
    dry_run(&bench.out)
}

/// Refuses the flags for printing or saving a run that have no use with `--dry-run`.
pub(crate) fn dry_run(out: &Out) -> Result<(), Failure> {
    let dry = out.dry_run;
    refuse(&[
        (
            "-o",
            dry && out.output.is_some(),
            "--dry-run prints the plan and exits; redirect it: > \
            F",
        ),
        ("--format", dry && out.format.is_some(), "--dry-run prints a job file; leave one out"),
    ])
}

/// Flags of a run, where presets are listed or shown.
pub(crate) fn workload(workload: &Workload) -> Result<(), Failure> {
    let why = "presets are listed or shown, and nothing runs; leave it out";
    let keys = workload.work.keys().iter().map(|given| given.flag.to_owned());
    let flags: Vec<String> = keys.chain(workload.work.others().iter().map(spelled)).collect();
    refuse(&flags.iter().map(|flag| (flag.as_str(), true, why)).collect::<Vec<Row<'_>>>())
}

/// Flags of one run of a workload that is a sweep, and of a sweep where it is one run.
pub(crate) fn several(workload: &Workload, is_sweep: bool) -> Result<(), Failure> {
    let once = "the workload runs once; give a key several values: --batch 1..256*2";
    refuse(&[("--repeats", !is_sweep && workload.work.own.repeats.is_some(), once)])?;
    let why = "a key has several values, so that the workload runs as a sweep, which saves a \
               record for each run in the folder of -o (gpuio report, gpuio show)";
    let parser = crate::args::parser();
    let of_sweep = |arg: &Arg| {
        let sweep = parser.find_subcommand("sweep");
        sweep.is_some_and(|verb| verb.get_arguments().any(|it| it.get_id() == arg.get_id()))
    };
    for arg in workload.work.others() {
        let of_both = ["model", "short"].iter().any(|id| arg.get_id() == id);
        let one_run = is_sweep && !of_both && !of_sweep(&arg);
        refuse(&[(&spelled(&arg), one_run, why)])?;
    }
    Ok(())
}

/// A flag as messages name it.
fn spelled(arg: &Arg) -> String {
    match (arg.get_short(), arg.get_action().takes_values()) {
        (Some(short), true) => format!("-{short}"),
        _ => format!("--{}", arg.get_long().unwrap_or_default()),
    }
}

/// Flags of one run, where several are made to find the most accelerators.
pub(crate) fn search(workload: &Workload) -> Result<(), Failure> {
    let why = "--accelerators auto makes several runs, and none of them can be told in advance to \
               be the one that counts; give a number of accelerators, or leave it out";
    refuse(&[("--serve", workload.out.serve.is_some(), why)])
}

/// With `--ab`, whose comparison has no row for each rank.
pub(crate) fn ab(bench: &Bench) -> Result<(), Failure> {
    let why = "--ab prints a comparison; -o DIR keeps the records, and gpuio show --per-rank \
        prints one";
    refuse(&[("--per-rank", bench.ranks.per_rank, why)])
}

/// Flags of several ranks, without a launcher.
pub(crate) fn ranks(flags: &RankFlags) -> Result<(), Failure> {
    rank_limits(&flags.limits)?;
    refuse(&[("--per-rank", flags.per_rank, ONE_PROCESS)])
}

const ONE_PROCESS: &str = "one process runs; start gpuio by mpirun or srun, or leave it out";

/// The same of verbs without a row for each rank.
pub(crate) fn rank_limits(limits: &RankLimits) -> Result<(), Failure> {
    refuse(&[
        ("--share", !limits.share.is_empty(), ONE_PROCESS),
        ("--rank-timeout", limits.rank_timeout.is_some(), ONE_PROCESS),
    ])
}

/// Evidence of a job's data path; `on_demand` says whether what is printed or saved has it only
/// then.
pub(crate) fn evidence(out: &Out, on_demand: bool) -> Result<(), Failure> {
    evidence_of(out.evidence, on_demand)?;
    refuse(&[("--details", out.details && !on_demand, TEXT_ONLY)])
}

/// The same with `--quiet`, where the file has the evidence: a note.
pub(crate) fn quiet(out: &Out, on_demand: bool) {
    for (flag, given) in [("--evidence", out.evidence), ("--details", out.details)] {
        if given && !on_demand {
            message!("note: {flag} has no effect with --quiet: the file has the evidence");
        }
    }
}

const TEXT_ONLY: &str = "it applies to text only, also as Markdown or HTML; other formats always \
                         include the evidence; leave it out";

fn evidence_of(requested: bool, on_demand: bool) -> Result<(), Failure> {
    refuse(&[("--evidence", requested && !on_demand, TEXT_ONLY)])
}

pub(crate) fn show(show: &Show, row: &format::Row) -> Result<(), Failure> {
    let why = "it applies to text, also as Markdown or HTML, and to csv; JSON always has a row \
               for each rank; leave it out";
    if show.check && row.checks.is_none() {
        let has = format::FORMATS.iter().filter(|row| row.checks.is_some()).map(|row| row.name);
        let has = has.collect::<Vec<_>>().join(" or ");
        return Err(Failure::Usage(format!("--format {}: --check prints {has}", row.name)));
    }
    let has_rows = row.on_demand || row.name == "csv";
    refuse(&[("--per-rank", show.per_rank && !has_rows, why)])?;
    evidence_of(show.evidence, row.on_demand)
}

pub(crate) fn check(check: &Check, format: &str) -> Result<(), Failure> {
    let json = format == "json";
    let not_named = |rule: &String| !check.only.is_empty() && !check.only.contains(rule);
    refuse(&[
        ("--all", check.all && json, "JSON lists every rule by itself; leave it out"),
        (
            "--skip",
            check.skip.iter().any(not_named),
            "--only does not name that rule; leave one out",
        ),
    ])
}

/// `format` is the output format, `to_stdout` whether no file is written.
pub(crate) fn report(report: &Report, format: &str, to_stdout: bool) -> Result<(), Failure> {
    let pdf = format == "pdf";
    let page = format == "html" || pdf;
    let titled = page || ["markdown", "svg"].contains(&format);
    refuse(&[
        (
            "--title",
            report.title.is_some() && !titled,
            "only html, pdf, svg and markdown have a title; leave it out",
        ),
        (
            "--x",
            report.x.is_some() && !page && format != "svg",
            "only html, pdf and svg have the plot; leave it out",
        ),
        (
            "--lines",
            report.lines.is_some() && !page && format != "svg",
            "only html, pdf and svg have the plot; leave it out",
        ),
        (
            "--topo",
            report.topo.is_some() && !page,
            "only html and pdf have the picture; leave it out",
        ),
        (
            "--from",
            !report.from.is_empty() && !page,
            "only html and pdf have the picture; leave it out",
        ),
        (
            "--embed-limit",
            report.embed_limit.is_some() && (!page || pdf),
            "only html includes the records; \
            leave it out",
        ),
        (
            "--force",
            report.force && to_stdout,
            "standard output overwrites no file; leave it \
            out",
        ),
    ])
}

pub(crate) fn stats(stats: &Stats, format: &str) -> Result<(), Failure> {
    let list = stats.pid.is_none() && format != "json";
    let why = "the list of processes has one line each; name a process, or add --format json";
    refuse(&[("--level", stats.level.is_some() && list, why)])
}

pub(crate) fn exec(exec: &Exec) -> Result<(), Failure> {
    refuse(&[
        ("--json", exec.json && !exec.env, "it is the format of --env; add --env"),
        ("--verbose", exec.verbose && exec.env, "--env runs nothing; leave one out"),
        ("--prefetch", !exec.prefetch.is_empty() && exec.env, "--env runs nothing; leave one out"),
    ])
}

/// Figures if no expectation is printed.
pub(crate) fn figures(figures: &FigureFlags, shown: bool) -> Result<(), Failure> {
    let why = "a job file has no expected performance; use --format text or json";
    refuse(&[
        ("--spec", !shown && !figures.spec.is_empty(), why),
        ("--server", !shown && !figures.server.is_empty(), why),
    ])
}

/// Options of one kind of sweep in the other, and of several axes or points if there is one. The
/// parser lets `--over` pass with `--vary`, as that excludes what it needs.
pub(crate) fn sweep(vary: &Vary) -> Result<(), Failure> {
    let search = vary.latency_target.is_some();
    refuse(&[
        (
            "--over",
            vary.over.is_some() && !search,
            &format!(
                "it sets the load of a search, which needs --latency-target: --latency-target {}",
                Bound::example()
            ),
        ),
        (
            "--order-seed",
            vary.order_seed.is_some() && search,
            "a search chooses its loads by earlier results; leave it out",
        ),
    ])
}

/// The same, after the axes are resolved.
pub(crate) fn grid(vary: &Vary, axes: usize, points: usize) -> Result<(), Failure> {
    refuse(&[
        ("--one-at-a-time", vary.one_at_a_time && axes < 2, "there is one axis; leave it out"),
        (
            "--order-seed",
            vary.order_seed.is_some() && points == 1,
            "there is only one point; leave it out",
        ),
    ])
}
