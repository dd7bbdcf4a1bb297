//! Options that would do nothing beside the others that are given: a line for each.
//!
//! Keys of a load are judged with the plan (`gpuio_load::plan::unused`); here is what concerns the
//! program itself: what is printed, saved or looked at. Most pairs that exclude each other are in
//! the flags' own declarations. A switch that says what happens anyway (`--quiet` where nothing
//! would be shown) and a permission that nothing needs (`--overwrite`, `--destroy-data-on`,
//! `--despite`, `--force` for a new file) are in effect.

use crate::args::{Bench, Check, Exec, FigureFlags, Report, Show, Stats, Vary};
use crate::failure::Failure;

/// A flag, whether it was given and does nothing, and why with what to do.
type Row = (&'static str, bool, &'static str);

fn refuse(rows: &[Row]) -> Result<(), Failure> {
    match rows.iter().find(|(_, unused, _)| *unused) {
        None => Ok(()),
        Some((flag, _, why)) => {
            Err(Failure::Usage(format!("{flag}: it has no effect here: {why}")))
        }
    }
}

/// What describes the run beside `--dry-run` is in effect: of the run that is shown.
pub(crate) fn bench(bench: &Bench) -> Result<(), Failure> {
    let (out, dry) = (&bench.out, bench.out.dry_run);
    refuse(&[
        ("-o", dry && out.output.is_some(), "--dry-run prints the plan and ends; redirect it: > F"),
        ("--format", dry && out.format.is_some(), "--dry-run prints a job file; leave one out"),
    ])
}

/// The evidence of a job's path; `text` says whether any text is made.
pub(crate) fn evidence(asked: bool, text: bool) -> Result<(), Failure> {
    let why = "text alone leaves evidence out, other formats have all of it; leave this out";
    refuse(&[("--evidence", asked && !text, why)])
}

pub(crate) fn show(show: &Show) -> Result<(), Failure> {
    evidence(show.evidence, show.format.as_deref().unwrap_or("text") == "text")
}

pub(crate) fn check(check: &Check) -> Result<(), Failure> {
    let json = check.format.as_deref() == Some("json");
    let not_named = |rule: &String| !check.only.is_empty() && !check.only.contains(rule);
    refuse(&[
        ("--all", check.all && json, "JSON has every rule apart; leave it out"),
        (
            "--skip",
            check.skip.iter().any(not_named),
            "--only does not name that rule; leave one out",
        ),
    ])
}

/// `format` is the one that is made, `to_stdout` whether no file is.
pub(crate) fn report(report: &Report, format: &str, to_stdout: bool) -> Result<(), Failure> {
    let page = format == "html";
    let titled = page || format == "markdown";
    refuse(&[
        ("--title", report.title.is_some() && !titled, "only html and markdown have a title"),
        ("--topo", report.topo.is_some() && !page, "only html has the picture; leave it out"),
        ("--from", !report.from.is_empty() && !page, "only html has the picture; leave it out"),
        ("--embed-limit", report.embed_limit.is_some() && !page, "only html holds the records"),
        ("--force", report.force && to_stdout, "standard output overwrites no file; leave it out"),
    ])
}

pub(crate) fn stats(stats: &Stats) -> Result<(), Failure> {
    let list = stats.pid.is_none() && !stats.json;
    let why = "the list of processes has one line each; name a process, or add --json";
    refuse(&[("--level", stats.level.is_some() && list, why)])
}

pub(crate) fn exec(exec: &Exec) -> Result<(), Failure> {
    refuse(&[
        ("--json", exec.json && !exec.env, "it is the form of what --env prints; add --env"),
        ("--verbose", exec.verbose && exec.env, "--env runs nothing; leave one out"),
    ])
}

/// Figures where no expectation is printed.
pub(crate) fn figures(figures: &FigureFlags, shown: bool) -> Result<(), Failure> {
    let why = "a job file says nothing of what should be reached; use --format text or json";
    refuse(&[
        ("--spec", !shown && !figures.spec.is_empty(), why),
        ("--server", !shown && !figures.server.is_empty(), why),
    ])
}

/// Options of one kind of sweep in the other, and of several axes or points where there is one.
/// The parser lets `--over` pass beside `--vary`, as that excludes what it needs.
pub(crate) fn sweep(vary: &Vary) -> Result<(), Failure> {
    let search = vary.latency_target.is_some();
    refuse(&[
        (
            "--over",
            vary.over.is_some() && !search,
            "it says what makes the load of a search, which --latency-target begins: \
             --latency-target p99=200us",
        ),
        (
            "--order-seed",
            vary.order_seed.is_some() && search,
            "a search takes its loads by what came before; leave it out",
        ),
    ])
}

/// The same with what came of the axes.
pub(crate) fn grid(vary: &Vary, axes: usize, points: usize) -> Result<(), Failure> {
    refuse(&[
        ("--one-at-a-time", vary.one_at_a_time && axes < 2, "there is one axis; leave it out"),
        (
            "--order-seed",
            vary.order_seed.is_some() && points == 1,
            "there is one point, and no order; leave it out",
        ),
    ])
}
