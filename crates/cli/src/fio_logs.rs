//! Logs in fio's format, which `write_bw_log` and its like request: `NAME_bw.1.log`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gpuio_record::{Plan, Record};
use gpuio_report::format::fio_log::{Log, render};

use crate::failure::Failure;
use crate::output::{Output, Replace};

/// Files that were checked before the run.
pub(crate) struct Logs(Vec<(usize, Log, Output)>);

impl Logs {
    /// Jobs with the same first part get numbers in turn. A log that gpuio wrote and nothing
    /// changed is replaced, as fio does.
    pub(crate) fn open(plan: &Plan) -> Result<Logs, Failure> {
        let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
        let mut all = Vec::new();
        for (at, job) in plan.jobs.iter().enumerate() {
            let Some(logs) = &job.logs else { continue };
            let kinds =
                [(Log::Bandwidth, &logs.bw), (Log::Latency, &logs.lat), (Log::Iops, &logs.iops)];
            for (log, name) in kinds {
                let Some(name) = name else { continue };
                let stem = format!("{name}_{}", log.suffix());
                let number = numbers.entry(stem.clone()).or_insert(0);
                *number += 1;
                let path = PathBuf::from(format!("{stem}.{number}.log"));
                let flag = match log {
                    Log::Bandwidth => "write_bw_log",
                    Log::Latency => "write_lat_log",
                    Log::Iops => "write_iops_log",
                };
                all.push((at, log, Output::begin(flag, &path, Replace::Always)?));
            }
        }
        Ok(Logs(all))
    }

    pub(crate) fn write(self, record: &Record) -> Result<(), Failure> {
        for (at, log, output) in self.0 {
            let (Some(plan), Some(result)) = (record.plan.jobs.get(at), record.jobs.get(at)) else {
                continue;
            };
            output.save_text("the log", &render(plan, result, log))?;
        }
        Ok(())
    }
}
