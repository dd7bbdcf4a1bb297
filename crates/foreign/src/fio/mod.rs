//! fio's JSON (`--output-format=json` or `json+`), as of fio 3.x.
//!
//! Field names are those of fio's HOWTO, "JSON output"; samples are from fio 3.33
//! (tests/fixtures). Options that a job does not name have fio's own defaults, by its HOWTO.

mod options;

use serde_json::Value;

use crate::{Direction, ForeignError, Number, Output, Reading, Tool};
use options::Options;

const NAME: &str = "fio";
const MIB: f64 = 1024.0 * 1024.0;
/// fio's latency buckets: 64 for each power of two, so at most 1/128 off (stat.h).
const BUCKET: f64 = 1.0 / 128.0;

pub(crate) const TOOL: Tool = Tool {
    name: NAME,
    form: "--output-format=json",
    measures: &[
        "fio's percentiles are of completion latency, without submission; its mean here is of the \
         whole latency",
        "fio's JSON does not report whether storage or a cache served the bytes",
    ],
    looks: |text| text.contains("\"fio version\""),
    read,
};

fn read(text: &str) -> Result<Output, ForeignError> {
    // Messages may precede the object.
    let start = text.find('{').unwrap_or(0);
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let page = values.next().ok_or(ForeignError::Empty { tool: NAME, why: String::new() })??;
    let version = page["fio version"].as_str().unwrap_or("").trim_start_matches("fio-");
    let tool = format!("fio {version}");
    let mut output = Output::default();
    let jobs = page["jobs"].as_array().map_or(&[][..], Vec::as_slice);
    let mut done: Vec<&Value> = Vec::new();
    for job in jobs {
        if done.iter().any(|other| same_job(other, job)) {
            continue;
        }
        done.push(job);
        let twins: Vec<&Value> = jobs.iter().filter(|other| same_job(other, job)).collect();
        let options = Options::new(&page["global options"], &job["job options"]);
        for (key, direction) in [("read", Direction::Read), ("write", Direction::Write)] {
            if twins.iter().any(|job| number(&job[key]["total_ios"]) > 0.0) {
                output.readings.push(reading(&tool, &twins, key, direction, &options));
            }
        }
    }
    if output.readings.is_empty() {
        let why = ": no job moved any byte".to_owned();
        return Err(ForeignError::Empty { tool: NAME, why });
    }
    Ok(output)
}

/// Whether two entries are threads of one job: without `group_reporting`, `numjobs` makes an entry
/// for each.
fn same_job(a: &Value, b: &Value) -> bool {
    ["jobname", "groupid", "job options"].iter().all(|key| a[*key] == b[*key])
}

fn reading(
    tool: &str,
    twins: &[&Value],
    key: &str,
    direction: Direction,
    options: &Options<'_>,
) -> Reading {
    let job = twins[0];
    let sides = || twins.iter().map(|job| &job[key]);
    let mut reading = Reading::new(tool, direction);
    reading.job = job["jobname"].as_str().map(str::to_owned);
    options.report(&mut reading, key);
    let sum = |field: &str| sides().map(|side| number(&side[field])).sum::<f64>();
    reading.bytes_per_s = Some(Number::exact(sum("bw_bytes")));
    reading.iops = Some(Number::exact(sum("iops")));
    let ios = sum("total_ios");
    let total: f64 =
        sides().map(|side| number(&side["lat_ns"]["mean"]) * number(&side["total_ios"])).sum();
    reading.mean_ns = Some(Number::exact(total / ios)).filter(|mean| mean.value > 0.0);
    if let [job] = twins {
        let at = |name: &str| percentile(&job[key]["clat_ns"]["percentile"], name);
        reading.p50_ns = at("50.000000");
        reading.p99_ns = at("99.000000");
        reading.p99_9_ns = at("99.900000");
    } else {
        let why = format!(
            "percentiles of {} threads with an entry each can't be joined; group_reporting does",
            twins.len()
        );
        reading.notes.push(why);
    }
    reading.cpu_us_per_mib = cpu(twins);
    let longest = sides().map(|side| number(&side["runtime"])).fold(0.0, f64::max);
    reading.seconds = Some(longest / 1000.0);
    reading.failed = failed(twins);
    reading
}

fn percentile(table: &Value, name: &str) -> Option<Number> {
    let value = table[name].as_f64().filter(|value| *value > 0.0)?;
    Some(Number { value, off: value * BUCKET })
}

/// CPU time over bytes. fio reports it as a percentage of `job_runtime`, which is the sum over the
/// threads if an entry is for several (group_reporting): either way the product is their CPU time.
fn cpu(twins: &[&Value]) -> Option<Number> {
    let mut us = 0.0;
    let mut bytes = 0.0;
    for job in twins {
        let ms = job["job_runtime"].as_f64()?;
        us += (job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0 * ms * 1000.0;
        bytes += number(&job["read"]["io_bytes"]) + number(&job["write"]["io_bytes"]);
    }
    if bytes > 0.0 { Some(Number::exact(us / (bytes / MIB))) } else { None }
}

fn failed(twins: &[&Value]) -> Option<String> {
    let code = twins.iter().map(|job| number(&job["error"])).find(|code| *code != 0.0);
    code.map(|code| format!("fio ended with error {code}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}
