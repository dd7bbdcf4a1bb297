//! Several values of a key: the workload runs as a sweep, with a row for each.

use std::ffi::OsString;
use std::path::Path;

use gpuio_job::workload::preset;

use crate::args::{Given, Sweep, Verb, Workload, WorkloadFlags, parse};
use crate::failure::Failure;
use crate::unused;

/// The sweep of a workload some of whose keys have several values; nothing where none has.
pub(super) fn sweep(workload: &Workload) -> Result<Option<Sweep>, Failure> {
    let WorkloadFlags { vary, repeats, cufile, .. } = &workload.work.own;
    let keys = workload.work.keys();
    let varies = |given: &Given| {
        given.is_number && (given.value.contains(',') || given.value.contains(".."))
    };
    let is_sweep = keys.iter().any(varies) || !vary.is_empty();
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
    let preset = preset::find(&workload.name);
    if preset.is_none() && !Path::new(&workload.name).exists() {
        return Err(super::unknown(&workload.name));
    }
    let mut words: Vec<OsString> = vec!["gpuio".into(), "sweep".into()];
    let mut add = |flag: &str, value: OsString| words.extend([flag.into(), value]);
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

/// Where the records go unless that is said.
fn folder(name: &str) -> OsString {
    let stem = Path::new(name).file_stem().unwrap_or_default();
    let mut folder = OsString::from("gpuio-workload-");
    folder.push(stem);
    folder
}
