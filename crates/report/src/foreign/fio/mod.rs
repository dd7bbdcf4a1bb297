//! fio's JSON (`--output-format=json` or `json+`), as of fio 2.x and 3.x.
//!
//! Field names are those of fio's HOWTO, "JSON output"; samples are from fio 3.33
//! (tests/fixtures). Options that a job does not name have fio's own defaults, by its HOWTO; where
//! the document lists no options, they are unknown.
//!
//! `document` finds the documents of a text and the runs that they are of, `options` what a job
//! requested, `units` the figures in bytes and nanoseconds.

mod document;
mod options;
mod units;

use serde_json::Value;

use crate::foreign::{Direction, ForeignError, Number, Output, Reading, Skipped, Tool};
use options::Options;

const NAME: &str = "fio";
const JOINED: &str = "not comparable, group_reporting joined several jobs; run fio without it";
const MIB: f64 = 1024.0 * 1024.0;

pub(crate) const TOOL: Tool = Tool {
    name: NAME,
    measures: &[
        "fio's percentiles are of completion latency, without submission; its mean here is of the \
         whole latency",
        "fio's JSON does not report whether storage or a cache served the bytes",
    ],
    looks: |text| text.contains("\"fio version\""),
    read,
};

fn read(text: &str) -> Result<Output, ForeignError> {
    let (pages, cut) = document::pages(text)?;
    let mut output = Output::default();
    if cut {
        let place = format!("document {}", pages.len() + 1);
        output.skipped.push(Skipped { place, why: "it is cut".to_owned() });
    }
    for run in document::runs(&pages) {
        output.skipped.extend(run.skipped());
        of_page(run.whole, &mut output);
    }
    if output.readings.is_empty() {
        let joined = output.skipped.iter().find(|skipped| skipped.why == JOINED);
        let why = match joined {
            Some(joined) => format!(": {}: {JOINED}", joined.place),
            None => ": no job moved any byte".to_owned(),
        };
        return Err(ForeignError::Empty { tool: NAME, why });
    }
    Ok(output)
}

/// Adds the readings of one document.
fn of_page(page: &Value, output: &mut Output) {
    let version = page["fio version"].as_str().unwrap_or("").trim_start_matches("fio-");
    let tool = format!("fio {version}");
    let entries = entries(page);
    let mut done: Vec<&Value> = Vec::new();
    for job in entries.iter().copied() {
        if done.iter().any(|other| same_job(other, job)) {
            continue;
        }
        done.push(job);
        let twins: Vec<&Value> =
            entries.iter().copied().filter(|other| same_job(other, job)).collect();
        let options = Options::new(&page["global options"], &job["job options"]);
        if twins.iter().any(|job| options.contradict(job)) {
            let place = format!("job {}", job["jobname"].as_str().unwrap_or_default());
            output.skipped.push(Skipped { place, why: JOINED.to_owned() });
            continue;
        }
        let mut found = false;
        for (key, direction) in [("read", Direction::Read), ("write", Direction::Write)] {
            if twins.iter().any(|job| number(&job[key]["total_ios"]) > 0.0) {
                output.readings.push(reading(&tool, &twins, key, direction, &options));
                found = true;
            }
        }
        // unified_rw_reporting=1 has no others.
        if !found && twins.iter().any(|job| number(&job["mixed"]["total_ios"]) > 0.0) {
            output.readings.push(reading(&tool, &twins, "mixed", Direction::Both, &options));
        }
    }
}

/// The jobs of a document: fio's own, or those of its clients (`--client`), whose sum over all
/// clients is left to us.
fn entries(page: &Value) -> Vec<&Value> {
    let list = |key: &str| page[key].as_array().map_or(&[][..], Vec::as_slice);
    let of_clients = list("client_stats");
    if of_clients.is_empty() {
        return list("jobs").iter().collect();
    }
    let is_sum = |job: &Value| job["hostname"].is_null() && job["jobname"] == "All clients";
    let each: Vec<&Value> = of_clients.iter().filter(|job| !is_sum(job)).collect();
    if each.is_empty() { of_clients.iter().collect() } else { each }
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
    reading.put("throughput", Some(units::bytes_per_s(sides())));
    reading.put("iops", Some(Number::exact(sum("iops"))));
    let ios = sum("total_ios");
    let total: f64 = sides().map(|side| units::mean_ns(side) * number(&side["total_ios"])).sum();
    reading.put("mean", Some(Number::exact(total / ios)).filter(|mean| mean.value > 0.0));
    let hosts: Vec<&str> = twins.iter().filter_map(|job| job["hostname"].as_str()).collect();
    if let [job] = twins {
        let side = &job[key];
        reading.ops = Some(ios);
        reading.data_bytes = Some(units::bytes(side)).filter(|bytes| *bytes > 0.0);
        reading.mean_span = units::span(side, ["lat_ns", "lat"]);
        reading.percentile_span = units::span(side, ["clat_ns", "clat"]);
        for (at, number) in units::percentiles(&job[key]) {
            reading.put(&at.label(), Some(number));
        }
    } else {
        let why = match hosts.as_slice() {
            [] => format!(
                "percentiles of {} threads with an entry each can't be joined; group_reporting \
                 does",
                twins.len()
            ),
            hosts => format!(
                "the sum over {} clients ({}), whose percentiles can't be joined",
                twins.len(),
                hosts.join(", ")
            ),
        };
        reading.notes.push(why);
        // Threads end at different times, so that only each has a time that fits its rate.
        let moved = twins.iter().filter(|job| number(&job[key]["total_ios"]) > 0.0);
        let one = |job: &&Value| self::reading(tool, &[*job], key, direction, options);
        reading.parts = moved.map(one).collect();
    }
    reading.put("cpu", cpu(twins));
    let longest = sides().map(|side| number(&side["runtime"])).fold(0.0, f64::max);
    reading.seconds = Some(longest / 1000.0);
    reading.failed = failed(twins, key);
    reading
}

/// CPU time over bytes. fio reports it as a percentage of `job_runtime`, which is the sum over the
/// threads if an entry is for several (group_reporting): either way the product is their CPU time.
fn cpu(twins: &[&Value]) -> Option<Number> {
    let mut us = 0.0;
    let mut bytes = 0.0;
    for job in twins {
        let ms = job["job_runtime"].as_f64()?;
        us += (job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0 * ms * 1000.0;
        bytes += ["read", "write", "mixed"].map(|key| units::bytes(&job[key])).iter().sum::<f64>();
    }
    if bytes > 0.0 { Some(Number::exact(us / (bytes / MIB))) } else { None }
}

/// Errors that ended it, those that `continue_on_error` let pass, and I/Os that it left out.
fn failed(twins: &[&Value], key: &str) -> Option<String> {
    let code = twins.iter().map(|job| number(&job["error"])).find(|code| *code != 0.0);
    let errors: f64 = twins.iter().map(|job| number(&job["total_err"])).sum();
    let dropped: f64 = twins.iter().map(|job| number(&job[key]["drop_ios"])).sum();
    let words = [
        code.map(|code| format!("fio ended with error {code}")),
        (errors > 0.0).then(|| format!("total_err is {errors}: so many errors were passed over")),
        (dropped > 0.0).then(|| format!("drop_ios is {dropped}: so many I/Os were left out")),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}
