//! Logs in fio's format, which `write_bw_log` and its like request: `NAME_bw.1.log`.

use std::path::PathBuf;

use gpuio_base::units::{float, human_ns};

use gpuio_record::{Plan, Record};
use gpuio_report::format::fio_log::{Log, render};

use crate::failure::Failure;
use crate::output::{Output, Replace};

/// Files that were checked before the run.
pub(crate) struct Logs(Vec<(usize, Log, Output)>);

impl Logs {
    /// The number in a name is that of the job's first thread among all threads, from 1, as in fio,
    /// which writes a log for each thread. A log that gpuio wrote and nothing changed is replaced,
    /// as fio does.
    pub(crate) fn open(plan: &Plan, quiet: bool) -> Result<Logs, Failure> {
        let mut all = Vec::new();
        let mut next = 1;
        for (at, job) in plan.jobs.iter().enumerate() {
            let number = next;
            next += job.threads;
            let Some(logs) = &job.logs else { continue };
            let kinds =
                [(Log::Bandwidth, &logs.bw), (Log::Latency, &logs.lat), (Log::Iops, &logs.iops)];
            for (log, name) in kinds {
                let Some(name) = name else { continue };
                let path = PathBuf::from(format!("{name}_{}.{number}.log", log.suffix()));
                let flag = match log {
                    Log::Bandwidth => "write_bw_log",
                    Log::Latency => "write_lat_log",
                    Log::Iops => "write_iops_log",
                };
                all.push((at, log, Output::begin(flag, &path, Replace::Always)?));
            }
        }
        let differences = other_than_fio(plan);
        if !quiet && !differences.is_empty() {
            message!("note: logs as of fio, with differences: {differences}");
        }
        Ok(Logs(all))
    }

    /// Writes them, and says to the user which they are.
    pub(crate) fn write(self, record: &Record, quiet: bool) -> Result<(), Failure> {
        let mut written = Vec::new();
        for (at, log, output) in self.0 {
            let (Some(plan), Some(result)) = (record.plan.jobs.get(at), record.jobs.get(at)) else {
                continue;
            };
            let path = output.save_text("the log", &render(plan, result, log))?;
            written.push(path.display().to_string());
        }
        if !written.is_empty() && !quiet {
            message!("Logs as of fio: {}", written.join(", "));
        }
        Ok(())
    }
}

/// Differences from the logs that fio writes of these jobs.
fn other_than_fio(plan: &Plan) -> String {
    let logs = || plan.jobs.iter().filter_map(|job| Some((job, job.logs.as_ref()?)));
    let latencies = logs().any(|(_, logs)| logs.lat.is_some());
    let means = logs().any(|(_, logs)| logs.line_ns.is_none());
    let threads = logs().any(|(job, _)| job.threads > 1);
    let time = human_ns(float(plan.interval_ns));
    let parts = [
        (means, format!("a line is a mean of {time}, in fio without log_avg_msec each I/O")),
        (threads, "a log is of all threads of a job, in fio of each".to_owned()),
        (latencies, "lat is the whole latency, and fio's slat and clat are not written".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|it| it.0).map(|it| it.1).collect();
    parts.join("; ")
}
