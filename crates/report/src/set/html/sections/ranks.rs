//! Runs on several ranks: hosts, rates together, slow ranks, a row per rank.

use std::fmt::Write as _;

use gpuio_base::stat::Percentile;
use gpuio_base::units::{format_cpu_list, markup};
use gpuio_record::metric::percent;
use gpuio_record::{HostJobExpected, JobResult, RankHost, RankRow, RanksResult, RateOver};

use super::super::super::Set;
use super::detail;
use crate::expected::{bottleneck, unknown};
use crate::number::{NONE, bytes, float, maybe_time, throughput, time};

/// Rows of ranks that are shown of one record; all are in the records.
const ROWS: usize = 1000;

pub(super) fn section(out: &mut String, set: &Set) {
    let all: Vec<(&str, &RanksResult, &[JobResult])> = set
        .members
        .iter()
        .filter_map(|member| {
            let record = &member.record;
            Some((member.name.as_str(), record.ranks.as_ref()?, record.jobs.as_slice()))
        })
        .collect();
    if all.is_empty() {
        return;
    }
    detail::fold(out, "ranks", "Hosts and ranks", all.len() == 1);
    detail::cut(out, all.len());
    for (name, ranks, jobs) in all.iter().take(detail::MOST) {
        record(out, name, (ranks, jobs), all.len() == 1);
    }
    out.push_str(detail::FOLD_END);
}

fn record(
    out: &mut String,
    name: &str,
    (ranks, results): (&RanksResult, &[JobResult]),
    open: bool,
) {
    let hosts = match &ranks.hosts[..] {
        [one] => format!("host {}", one.name),
        many => format!("{} hosts", many.len()),
    };
    let slow: usize = jobs(ranks).map(|job| job.stragglers.len()).sum();
    let slow = if slow > 0 { format!(", slow ranks: {slow}") } else { String::new() };
    let word = if ranks.ranks == 1 { "rank" } else { "ranks" };
    let head = format!("{name}: {} {word} on {hosts}{slow}", ranks.ranks);
    let _ = writeln!(
        out,
        "<details{}><summary>{}</summary>\n<p class=\"quiet\">Started by {}, {}.</p>",
        if open { " open" } else { "" },
        markup(&head),
        markup(&ranks.launcher),
        markup(&ranks.library)
    );
    rates(out, ranks, results);
    host_table(out, ranks);
    stragglers(out, ranks);
    out.push_str("<details><summary>A row per rank</summary>\n");
    rows(out, ranks);
    out.push_str("</details>\n</details>\n");
}

fn jobs(ranks: &RanksResult) -> impl Iterator<Item = &gpuio_record::RankJobRates> {
    ranks.groups.iter().flat_map(|group| &group.jobs)
}

/// A table; columns from the `figures`-th on are numbers.
fn table(out: &mut String, label: &str, heads: &[&str], figures: usize, rows: &[Vec<String>]) {
    let class = |nth: usize| if nth < figures { "" } else { " class=\"n\"" };
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><table>\
         <thead><tr>"
    );
    for (nth, head) in heads.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{head}</th>", class(nth));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (nth, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(nth), markup(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn rates(out: &mut String, ranks: &RanksResult, results: &[JobResult]) {
    if jobs(ranks).next().is_none() {
        out.push_str("<p>No group was finished by all ranks, so there is no common rate.</p>\n");
        return;
    }
    let cell = |rate: Option<RateOver>| {
        let Some(rate) = rate else { return NONE.to_owned() };
        let bound = float(rate.bytes_bound) / float(rate.bytes.max(1)) * 100.0;
        let bound = if bound >= 0.5 { format!(" ±{bound:.0}%") } else { String::new() };
        format!("{}{bound} in {}", throughput(rate.bytes_per_s), time(rate.time_ns))
    };
    let wall = |job: &str| {
        let wall = results.iter().find(|one| one.name == job)?.stonewall?;
        Some(format!("{} in {}", throughput(wall.bytes_per_s), time(wall.time_ns)))
    };
    let mut lines = Vec::new();
    for group in &ranks.groups {
        let (skew, bound) = (time(group.start_skew_ns), time(group.skew_bound_ns));
        for job in &group.jobs {
            lines.push(vec![
                job.job.clone(),
                wall(&job.job).unwrap_or_else(|| NONE.to_owned()),
                cell(Some(job.until_first)),
                cell(job.while_all),
                cell(Some(job.until_last)),
                format!("{skew} ± {bound}"),
            ]);
        }
    }
    let heads = [
        "all ranks",
        "until the stonewall",
        "until first done",
        "while all ran",
        "until last done",
        "start skew",
    ];
    table(out, "rates of all ranks", &heads, 1, &lines);
}

fn list(of: &[String]) -> String {
    if of.is_empty() { NONE.to_owned() } else { of.join(", ") }
}

/// How much of its expectation each job of a host reached, and of what that is the limit.
fn expected(host: &RankHost) -> String {
    let several = host.expected.len() > 1;
    let one = |one: &HostJobExpected| {
        let job = if several { format!("{}: ", one.job) } else { String::new() };
        let text = match (one.expected.bytes_per_s, one.percent) {
            (Some(rate), Some(reached)) => {
                let limit = bottleneck(&one.expected).map(|part| format!(" ({part})"));
                let limit = limit.unwrap_or_default();
                format!("{} % of {}{limit}", percent(reached), throughput(rate))
            }
            _ => format!("unknown: {}", unknown(&one.expected)),
        };
        format!("{job}{text}")
    };
    let words: Vec<String> = host.expected.iter().map(one).collect();
    if words.is_empty() { NONE.to_owned() } else { words.join("; ") }
}

fn host_table(out: &mut String, ranks: &RanksResult) {
    let row = |host: &RankHost| {
        vec![
            host.name.clone(),
            format_cpu_list(&host.ranks),
            list(&host.verdicts),
            list(&host.devices),
            expected(host),
            host.cpu.clone().unwrap_or_else(|| NONE.to_owned()),
            host.kernel.clone().unwrap_or_else(|| NONE.to_owned()),
            bytes(host.bytes),
            host.warnings.to_string(),
        ]
    };
    let lines: Vec<Vec<String>> = ranks.hosts.iter().map(row).collect();
    let heads = [
        "host",
        "ranks",
        "path taken",
        "devices",
        "of expected",
        "processor",
        "kernel",
        "moved",
        "warnings",
    ];
    table(out, "hosts", &heads, 7, &lines);
}

fn stragglers(out: &mut String, ranks: &RanksResult) {
    let mut lines = Vec::new();
    for job in jobs(ranks) {
        for slow in &job.stragglers {
            lines.push(vec![
                job.job.clone(),
                slow.rank.to_string(),
                slow.host.clone(),
                list(&slow.gpus),
                list(&slow.devices),
                list(&slow.nics),
                throughput(slow.bytes_per_s),
                format!("{:.2}", slow.of_median),
            ]);
        }
    }
    if lines.is_empty() {
        let text = "No rank reached less than nine tenths of the median.";
        let _ = writeln!(out, "<p class=\"quiet\">{text}</p>");
        return;
    }
    out.push_str("<p>Slow ranks, below nine tenths of the median:</p>\n");
    let heads = ["job", "rank", "host", "GPU", "devices", "NIC", "throughput", "of median"];
    table(out, "slow ranks", &heads, 6, &lines);
}

fn rows(out: &mut String, ranks: &RanksResult) {
    let mut lines: Vec<Vec<String>> = ranks.rows.iter().flat_map(of_rank).collect();
    if lines.len() > ROWS {
        let _ = writeln!(
            out,
            "<p class=\"note\">The first {ROWS} of {}; the others are in the record.</p>",
            lines.len()
        );
        lines.truncate(ROWS);
    }
    let tail = Percentile::TAIL.label();
    let heads = [
        "rank",
        "host",
        "GPU",
        "files",
        "NIC",
        "job",
        "path taken",
        "throughput",
        "done in",
        &tail,
        "max",
        "CPUs",
        "failed",
        "clock",
    ];
    table(out, "ranks", &heads, 7, &lines);
}

/// A line per job; one with the reason where nothing was received.
fn of_rank(row: &RankRow) -> Vec<Vec<String>> {
    let start = |job: String, verdict: String| {
        let (rank, host) = (row.rank.to_string(), row.host.clone());
        vec![rank, host, list(&row.gpus), row.target.clone(), list(&row.nics), job, verdict]
    };
    if row.jobs.is_empty() {
        let why = row.error.clone().unwrap_or_else(|| "no result".to_owned());
        let mut line = start(NONE.to_owned(), why);
        line.extend(std::iter::repeat_n(NONE.to_owned(), 7));
        return vec![line];
    }
    let of_job = |job: &gpuio_record::RankJob| {
        let verdict = job.verdict.clone().unwrap_or_else(|| NONE.to_owned());
        let sign = if row.clock_offset_ns < 0 { "-" } else { "+" };
        let offset = time(row.clock_offset_ns.unsigned_abs());
        let mut line = start(job.job.clone(), verdict);
        line.extend([
            throughput(job.bytes_per_s),
            maybe_time(job.measured.map(|span| span.length_ns())),
            maybe_time(job.percentile(Percentile::TAIL)),
            maybe_time(job.max_ns),
            format!("{:.2}", job.cores_busy),
            job.failed.to_string(),
            format!("{sign}{offset} ± {}", time(row.clock_bound_ns)),
        ]);
        line
    };
    row.jobs.iter().map(of_job).collect()
}
