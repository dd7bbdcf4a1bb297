//! Logs in fio's format, which `write_bw_log` and its like request: `NAME_bw.1.log`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gpuio_base::stat::IoLines;
use gpuio_base::units::{float, human_ns};
use gpuio_record::{JobPlan, Plan};
use gpuio_report::format::fio_log::{Log, render};

use crate::child;
use crate::failure::Failure;
use crate::output::{Output, Replace};

/// Files that were checked before the run, and the lines that are for them.
pub(crate) struct Logs {
    files: Vec<File>,
    /// By job: the lines of each thread.
    lines: Mutex<BTreeMap<String, Vec<IoLines>>>,
}

/// Said of a sweep over jobs that request logs.
pub(crate) const NOT_IN_SWEEPS: &str = "runs of a sweep write no logs as of fio (write_bw_log and \
    its like); each record has the series";

struct File {
    /// The jobs and threads whose lines it has; of several only where they share it.
    of: Vec<(String, usize)>,
    path: PathBuf,
    log: Log,
    output: Output,
}

impl Logs {
    /// No logs.
    pub(crate) fn none() -> Logs {
        Logs { files: Vec::new(), lines: Mutex::default() }
    }

    /// None in a run of a sweep, where each would replace those of the last ([`NOT_IN_SWEEPS`]).
    /// The number in a name is the thread's among all threads, from 1, as in fio. A log that gpuio
    /// wrote and nothing changed is replaced, as fio does.
    pub(crate) fn open(plan: &Plan) -> Result<Logs, Failure> {
        let mut logs = Logs::none();
        let mut before = 0;
        let jobs = plan.jobs.iter().filter(|_| !child::is_of_a_sweep());
        for job in jobs {
            for (log, flag, name) in requested(job) {
                let joined = job.logs.as_ref().is_some_and(|logs| logs.joined);
                for thread in 0..job.threads as usize {
                    let number = match joined {
                        true => String::new(),
                        false => format!(".{}", before + thread + 1),
                    };
                    let path = PathBuf::from(format!("{name}_{}{number}.log", log.suffix()));
                    let own = (job.name.clone(), thread);
                    if let Some(file) = logs.files.iter_mut().find(|file| file.path == path) {
                        file.of.push(own);
                        continue;
                    }
                    let output = Output::begin(flag, &path, Replace::Always)?;
                    logs.files.push(File { of: vec![own], path, log, output });
                }
            }
            before += job.threads as usize;
        }
        Ok(logs)
    }

    /// Keeps the lines of a job's threads, in their order.
    pub(crate) fn keep(&self, job: &JobPlan, lines: Vec<IoLines>) {
        let mut kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(job.name.clone(), lines);
    }

    /// Writes them, and says to the user which they are.
    pub(crate) fn write(self, plan: &Plan, quiet: bool) -> Result<(), Failure> {
        let kept = self.lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut written, mut cut) = (Vec::new(), None);
        for File { of, log, output, .. } in self.files {
            let mut texts = Vec::new();
            let mut ends = None;
            for (job, thread) in of {
                let planned = plan.jobs.iter().find(|one| one.name == job);
                let lines = kept.get(&job).and_then(|threads| threads.get(thread));
                let format = planned.and_then(|job| job.logs.as_ref());
                let (Some(lines), Some(format)) = (lines, format) else { continue };
                texts.push(render(&lines.lines, log, format.line_ns.is_some(), format.offset));
                ends = ends.max(lines.cut_ns.map(std::cmp::Reverse));
            }
            if texts.is_empty() {
                continue;
            }
            let path = output.save_text("the log", &texts.concat())?;
            cut = cut.max(ends.map(|at| (at, path.clone())));
            written.push(path.display().to_string());
        }
        if let Some((std::cmp::Reverse(at), path)) = cut {
            message!(
                "note: logs end before the run does, {} first, {} after the ramp: the memory for \
                 their lines was used up; log_avg_msec=100 makes them short",
                path.display(),
                human_ns(float(at))
            );
        }
        match written.as_slice() {
            [] => {}
            _ if quiet => {}
            [first, .., last] if written.len() > 4 => {
                message!("Logs as of fio: {} files, {first} to {last}", written.len());
            }
            few => message!("Logs as of fio: {}", few.join(", ")),
        }
        Ok(())
    }
}

/// The logs of a job: the key that requests each, and the first part of its name.
fn requested(job: &JobPlan) -> impl Iterator<Item = (Log, &'static str, &String)> {
    let logs = job.logs.as_ref();
    let named = [
        (Log::Bandwidth, "write_bw_log", logs.and_then(|logs| logs.bw.as_ref())),
        (Log::Latency, "write_lat_log", logs.and_then(|logs| logs.lat.as_ref())),
        (Log::Completion, "write_lat_log", logs.and_then(|logs| logs.lat.as_ref())),
        (Log::Iops, "write_iops_log", logs.and_then(|logs| logs.iops.as_ref())),
    ];
    named.into_iter().filter_map(|(log, flag, name)| Some((log, flag, name?)))
}
