//! `gpuio compare`: compares records, sweeps and other tools' results.

mod read;

use std::path::Path;
use std::process::ExitCode;

use gpuio_base::document::unique;
use gpuio_base::units::ShellLine;
use gpuio_record::metric;
use gpuio_report::compare::{
    Comparison, Options, Outcome, Side, Threshold, axis, compare, count_once, flags, is_flag,
    load_keys, render,
};

use crate::args::{Compare, Limit, Save};
use crate::failure::Failure;
use crate::formats;
use crate::output::Delivery;
use crate::terminal;

pub(crate) fn run(args: &Compare) -> Result<ExitCode, Failure> {
    let format = formats::saved(args.format.as_deref(), &args.save)?;
    let options = options(args)?;
    let delivery = Delivery::open(&args.save)?;
    let sides = sides(args, &options)?;
    let comparison = compare(&sides, &options);
    refuse(&comparison)?;
    delivery.put(&render(&comparison, format, terminal::width()))?;
    Ok(ExitCode::from(code(&comparison)))
}

/// The exit code of a comparison, by its threshold. A gate fails on what is not decided too, and
/// can tell it from a regression. Without one, a side from which nothing is concluded, since
/// its figures contradict each other or it was changed, is a failure, as it is for `show --check`.
pub(crate) fn code(comparison: &Comparison) -> u8 {
    match comparison.outcome() {
        None if comparison.sides.iter().any(|side| !side.doubts.is_empty()) => 1,
        Some(Outcome::Failed) => 1,
        Some(Outcome::Undetermined) => 2,
        Some(Outcome::Passed) | None => 0,
    }
}

/// The command that compares a directory's results by this axis, with `--despite`
/// for differences that the axis brings with it (a path has its own depth); `None` if none work.
pub(crate) fn command_that_runs(directory: &Path, axis: &str) -> Option<ShellLine> {
    let whole = ShellLine::new("gpuio compare").file(directory).words(["--axis", axis]);
    let mut command = whole.clone();
    let mut args = Compare {
        inputs: vec![directory.to_owned()],
        axis: Some(axis.to_owned()),
        despite: Vec::new(),
        limit: Limit::default(),
        format: None,
        save: Save::default(),
    };
    for _ in 0..2 {
        let options = options(&args).ok()?;
        let comparison = compare(&sides(&args, &options).ok()?, &options);
        if refuse(&comparison).is_ok() {
            return Some(command);
        }
        for (_, difference) in comparison.refused() {
            let flag = difference.despite.unwrap_or("all").to_owned();
            if !args.despite.contains(&flag) {
                args.despite.push(flag);
            }
        }
        command = whole.clone().words(["--despite", &args.despite.join(",")]);
    }
    None
}

fn options(args: &Compare) -> Result<Options, Failure> {
    if let Some(word) = args.despite.iter().find(|word| !is_flag(word)) {
        return Err(Failure::Usage(format!(
            "--despite {word}: unknown difference; known are {}, and keys of job files that are \
             part of the load: {}",
            flags().join(", "),
            load_keys().collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(Options {
        despite: args.despite.clone(),
        threshold: threshold(&args.limit)?,
        axis: args
            .axis
            .as_deref()
            .map(axis::Axis::parse)
            .transpose()
            .map_err(|why| Failure::Usage(format!("--axis: {why}")))?,
        in_turns: false,
    })
}

pub(crate) fn threshold(limit: &Limit) -> Result<Option<Threshold>, Failure> {
    let Some(text) = &limit.threshold else {
        return Ok(None);
    };
    let percent = gpuio_base::units::parse_percent(text)
        .map_err(|error| Failure::Usage(format!("--threshold: {error}")))?;
    let threshold = Threshold::new(percent, &limit.metric).map_err(|name| {
        Failure::Usage(format!("--metric {name}: metrics are {}", metric::words().join(", ")))
    })?;
    Ok(Some(threshold))
}

/// One side for each input, or for each value of the axis.
fn sides(args: &Compare, options: &Options) -> Result<Vec<Side>, Failure> {
    let mut read: Vec<Side> =
        args.inputs.iter().map(|path| read::side(path)).collect::<Result<_, _>>()?;
    count_once(&mut read);
    let Some(axis) = &options.axis else {
        if let [one] = read.as_slice() {
            let notes = unique(one.notes.iter().map(|note| format!("\n  {note}"))).concat();
            return Err(Failure::Usage(format!(
                "a comparison needs two results: name a second, or split this one with --axis \
                 KEY=VALUE,VALUE{notes}"
            )));
        }
        return Ok(read);
    };
    let notes: Vec<String> = read.iter().flat_map(|side| side.notes.clone()).collect();
    let lacks = read.iter().flat_map(|side| side.lacks.clone()).collect();
    let runs: Vec<_> = read.into_iter().flat_map(|side| side.runs).collect();
    let mut sides =
        axis::split(&runs, axis).map_err(|why| Failure::Usage(format!("--axis: {why}")))?;
    if let Some(first) = sides.first_mut() {
        (first.notes, first.lacks) = (notes, lacks);
    }
    Ok(sides)
}

/// Refuses to compare figures that are not comparable.
fn refuse(comparison: &Comparison) -> Result<(), Failure> {
    let mut lines: Vec<String> = Vec::new();
    let mut flags: Vec<&str> = Vec::new();
    for (pair, difference) in comparison.refused() {
        let flag = difference.despite.unwrap_or("all");
        if !flags.contains(&flag) {
            flags.push(flag);
        }
        lines.push(format!(
            "  {}: {}: {} | {} (--despite {flag})",
            pair.baseline, difference.what, difference.baseline, difference.other
        ));
    }
    if !lines.is_empty() {
        return Err(Failure::Usage(format!(
            "not compared, because settings or machines differ (baseline | other):\n{}\n  to \
             compare anyway: --despite {}",
            lines.join("\n"),
            flags.join(",")
        )));
    }
    if comparison.pairs.is_empty() {
        let alone: Vec<String> = comparison
            .alone
            .iter()
            .map(|alone| format!("  {}: in {}", alone.what, comparison.sides[alone.side].name))
            .collect();
        return Err(Failure::Usage(format!(
            "no job of one side matches a job of the other:\n{}\n  jobs are paired by name, or by \
             their settings; to ignore a difference in settings, use --despite with rw, bs, \
             threads, depth, engine or path (docs/compare.md)",
            alone.join("\n")
        )));
    }
    Ok(())
}
