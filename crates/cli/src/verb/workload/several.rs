//! Several values of a key: the workload runs as a sweep, with a row for each. One that has phases
//! runs once, with all its phases for each value, one value after another.

use std::ffi::OsString;
use std::path::Path;

use gpuio_base::units;
use gpuio_job::spec::Spec;
use gpuio_job::sweep::Axis;

use crate::args::{Given, Sweep, Verb, Workload, WorkloadFlags, parse};
use crate::failure::Failure;
use crate::{jobs, unused};

/// The most jobs that the values of keys make of phases.
const MOST_JOBS: usize = 256;

/// The sweep of a workload some of whose keys have several values; nothing where none has.
pub(super) fn sweep(workload: &Workload) -> Result<Option<Sweep>, Failure> {
    let WorkloadFlags { vary, repeats, cufile, .. } = &workload.work.own;
    let keys = workload.work.keys();
    let several = keys.iter().any(varies);
    let phases = several && vary.is_empty() && super::jobs_of(workload)?.jobs.len() > 1;
    let is_sweep = several && !phases || !vary.is_empty();
    unused::several(workload, is_sweep)?;
    if !is_sweep {
        return Ok(None);
    }
    if let Some(directory) = &workload.shown {
        return Err(Failure::Usage(format!(
            "'{directory}': a list of values needs fixed files: name them with filename= in a job \
             file, or run once per value"
        )));
    }
    if !workload.out.quiet {
        note_batches(workload)?;
    }
    let preset = super::known(&workload.name)?;
    let mut words: Vec<OsString> = vec!["gpuio".into(), "sweep".into()];
    let mut add = |flag: &str, value: OsString| words.extend([flag.into(), value]);
    if workload.work.own.short {
        for (key, value) in super::tried(workload)? {
            add("--set", format!("{key}={value}").into());
        }
    }
    let together =
        |given: &&Given| given.flag != "--set" && ["path", "keep"].contains(&&*given.key);
    for given in keys.iter().filter(|given| !together(given)) {
        let Given { key, value, .. } = given;
        let word = if value.is_empty() { key.clone() } else { format!("{key}={value}") };
        add(if varies(given) { "--vary" } else { "--set" }, word.into());
    }
    let paths: Vec<&str> =
        workload.work.flags_of("path").map(|given| given.value.as_str()).collect();
    let paths = paths.join(",");
    if !paths.is_empty() {
        let flag = if paths.contains(',') { "--vary" } else { "--set" };
        add(flag, format!("path={paths}").into());
    }
    vary.iter().for_each(|axis| add("--vary", axis.into()));
    workload.out.format.iter().for_each(|name| add("--format", name.into()));
    repeats.iter().for_each(|runs| add("--repeats", runs.into()));
    cufile.cufile_lib.iter().for_each(|file| add("--cufile-lib", file.into()));
    cufile.cufile_set.iter().for_each(|pair| add("--cufile-set", pair.into()));
    let folder = workload.out.output.clone().map_or_else(|| folder(&workload.name), OsString::from);
    add("-o", folder);
    let switches = [
        ("--keep", workload.work.is_on("keep")),
        ("--dry-run", workload.out.dry_run),
        ("--quiet", workload.out.quiet),
    ];
    let on = switches.into_iter().filter(|(_, on)| *on);
    words.extend(on.map(|(flag, _)| OsString::from(flag)));
    let cli = parse(words);
    let cli = cli.map_err(|error| Failure::Usage(error.to_string().trim_end().to_owned()))?;
    let Verb::Sweep(sweep) = cli.verb else {
        return Err(Failure::Usage("the workload can't run as a sweep".to_owned()));
    };
    let mut sweep = *sweep;
    match preset {
        Some(_) => sweep.workload = preset,
        None => sweep.job_file = Some(workload.name.clone().into()),
    }
    Ok(Some(sweep))
}

/// Several sizes of batches take one time to compute, unless there is a time for each sample.
fn note_batches(workload: &Workload) -> Result<(), Failure> {
    let keys = workload.work.keys();
    let batches = keys.iter().any(|given| given.key == "batch_samples" && varies(given));
    let of_samples = keys.iter().any(|given| {
        given.key == "sample_compute_time" || (given.key == "compute" && given.value == "none")
    });
    if !batches || of_samples {
        return Ok(());
    }
    let feed = super::jobs_of(workload)?.jobs.into_iter().map(|job| job.feed).next();
    let alike = feed.filter(|feed| feed.sample_compute_ns.is_none());
    if let Some(time) = alike.and_then(|feed| feed.compute_ns) {
        message!(
            "note: --batch: a step computes for {} whatever its batch; --sample-compute-time adds \
             a time for each sample",
            units::format_duration_ns(time)
        );
    }
    Ok(())
}

/// Whether a key has a list or a range of values.
pub(super) fn varies(given: &Given) -> bool {
    given.is_number && (given.value.contains(',') || given.value.contains(".."))
}

/// A key with the largest of its values: the last one where they are no sizes and no numbers.
pub(super) fn largest(text: &str, flag: &str) -> Result<(String, String), Failure> {
    let Axis { key, values } = axis(text, flag)?;
    let size = |value: &String| units::parse_bytes(value).ok();
    Ok((key, values.into_iter().max_by_key(size).unwrap_or_default()))
}

fn axis(text: &str, flag: &str) -> Result<Axis, Failure> {
    Axis::parse(text).map_err(|error| Failure::Usage(format!("{flag}: {error}")))
}

/// All phases again for each value of a key, with files of their own.
pub(super) fn phases(spec: &mut Spec, given: &Given) -> Result<(), Failure> {
    let Given { key, value, flag, .. } = given;
    let axis = axis(&format!("{key}={value}"), flag)?;
    if axis.values.len() * spec.jobs.len() > MOST_JOBS {
        let what = "with its phases there would be more than";
        return Err(Failure::Usage(format!("{flag}={value}: {what} {MOST_JOBS} jobs")));
    }
    let once = std::mem::take(&mut spec.jobs);
    for value in &axis.values {
        let begin = spec.jobs.len();
        spec.jobs.extend(once.iter().cloned());
        for job in &mut spec.jobs[begin..] {
            let suffix = format!("-{}-{value}", flag.trim_start_matches('-'));
            job.name.push_str(&suffix);
            if let Some(prefix) = &mut job.file_prefix {
                prefix.push_str(&suffix);
            }
            jobs::set(job, key, value, flag)?;
        }
        if begin > 0 {
            spec.jobs[begin].stonewall = Some(true);
        }
    }
    Ok(())
}

/// Where the records go unless that is said.
fn folder(name: &str) -> OsString {
    let stem = Path::new(name).file_stem().unwrap_or_default();
    let mut folder = OsString::from("gpuio-workload-");
    folder.push(stem);
    folder
}
