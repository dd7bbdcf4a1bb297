//! Several ranks: rates while all ran, hosts, slow ranks, a row for each on demand.

use gpuio_base::stat::Percentile;
use gpuio_base::units::format_cpu_list;
use gpuio_record::metric::percent;
use gpuio_record::{HostJobExpected, RankHost, RankRow, RanksResult, RateOver, Record};
use gpuio_table::{Column, Grid, figures, words};

use crate::number::{NONE, bytes, maybe_time, throughput, time};
use crate::wrap::paragraph;

/// How many ranks on how many hosts, or which of them the record is of.
pub(super) fn headline(record: &Record) -> Option<String> {
    if let Some(of) = &record.rank {
        return Some(format!(
            "this is the record of rank {} of {} alone (host {}, process {})",
            of.rank, of.ranks, of.host, of.pid
        ));
    }
    let all = record.ranks.as_ref()?;
    let hosts = match all.hosts.len() {
        1 => format!("host {}", all.hosts[0].name),
        many => format!("{many} hosts"),
    };
    Some(format!(
        "{} on {hosts}, started by {}, {}; plan, storage and machine below are those of rank 0, \
         results are of all ranks",
        all.ranks, all.launcher, all.library
    ))
}

pub(super) fn render(record: &Record, width: u16, per_rank: bool) -> String {
    let Some(all) = &record.ranks else { return String::new() };
    let mut out = rates(all, width);
    out.push_str(&starts(all, width));
    if all.hosts.len() > 1 {
        out.push('\n');
        out.push_str(&hosts(&all.hosts, width));
    }
    out.push_str(&stragglers(all, width));
    out.push_str(&lost(all, width));
    if per_rank {
        out.push('\n');
        out.push_str(&rows(all, width));
    }
    out
}

/// A row per job: until the first rank was done, while all ran, until the last was done.
fn rates(all: &RanksResult, width: u16) -> String {
    let jobs = || all.groups.iter().flat_map(|group| &group.jobs);
    if jobs().next().is_none() {
        return "ranks: no group was finished by all of them, so there is no common rate\n".into();
    }
    let columns = vec![
        words("all ranks"),
        words("end"),
        figures("until first done"),
        figures("in"),
        figures("while all ran"),
        figures("in"),
        figures("until last done"),
        figures("in"),
    ];
    let mut grid = Grid { columns, rows: Vec::new() };
    for job in jobs() {
        let end = job.ends_by.map_or(NONE, gpuio_record::RanksEnd::words);
        let mut row = vec![job.job.clone(), end.to_owned()];
        for rate in [Some(job.until_first), job.while_all, Some(job.until_last)] {
            row.extend(cells(rate));
        }
        grid.rows.push(row);
    }
    grid.at_any_width(width)
}

fn cells(rate: Option<RateOver>) -> [String; 2] {
    let Some(rate) = rate else { return [NONE.to_owned(), NONE.to_owned()] };
    #[expect(clippy::cast_precision_loss, reason = "a share in per cent")]
    let bound = rate.bytes_bound as f64 / (rate.bytes.max(1)) as f64 * 100.0;
    let sign = if bound >= 0.5 { format!(" ±{bound:.0}%") } else { String::new() };
    [format!("{}{sign}", throughput(rate.bytes_per_s)), time(rate.time_ns)]
}

fn starts(all: &RanksResult, width: u16) -> String {
    let text = |group: &gpuio_record::RankGroup| {
        format!("{} ± {}", time(group.start_skew_ns), time(group.skew_bound_ns))
    };
    let skews: Vec<String> = all.groups.iter().map(text).collect();
    if skews.is_empty() {
        return String::new();
    }
    let text = format!(
        "between the first and the last rank's start: {} (clocks of the ranks compared)",
        skews.join(", ")
    );
    paragraph("start: ", &text, width)
}

fn hosts(hosts: &[RankHost], width: u16) -> String {
    let mut columns = vec![
        words("host"),
        words("ranks"),
        figures("moved"),
        words("path taken"),
        words("devices"),
        figures("warnings"),
    ];
    let known = |host: &RankHost| host.expected.iter().any(|one| one.percent.is_some());
    let expected = hosts.iter().any(known);
    if expected {
        columns.push(words("of expected"));
    }
    let row = |host: &RankHost| {
        let mut row = vec![
            host.name.clone(),
            format_cpu_list(&host.ranks),
            bytes(host.bytes),
            list(&host.verdicts),
            list(&host.devices),
            host.warnings.to_string(),
        ];
        row.extend(expected.then(|| of_expected(host)));
        row
    };
    Grid { columns, rows: hosts.iter().map(row).collect() }.at_any_width(width)
}

/// How much of its expectation each job of a host reached: `95 % of 7.64 GiB/s`.
fn of_expected(host: &RankHost) -> String {
    let several = host.expected.len() > 1;
    let one = |one: &HostJobExpected| {
        let (rate, reached) = one.expected.bytes_per_s.zip(one.percent)?;
        let job = if several { format!("{} ", one.job) } else { String::new() };
        Some(format!("{job}{} % of {}", percent(reached), throughput(rate)))
    };
    let words: Vec<String> = host.expected.iter().filter_map(one).collect();
    if words.is_empty() { NONE.to_owned() } else { words.join(", ") }
}

fn stragglers(all: &RanksResult, width: u16) -> String {
    let mut out = String::new();
    for job in all.groups.iter().flat_map(|group| &group.jobs) {
        for slow in &job.stragglers {
            let mut words = vec![format!("host {}", slow.host)];
            words.extend(slow.gpus.iter().map(|gpu| format!("GPU {gpu}")));
            words.extend(slow.devices.iter().cloned());
            words.extend(slow.nics.iter().map(|nic| format!("NIC {nic}")));
            let text = format!(
                "job {}, rank {}: {}, {:.2} of the median rank ({})",
                job.job,
                slow.rank,
                throughput(slow.bytes_per_s),
                slow.of_median,
                words.join(", ")
            );
            out.push_str(&paragraph("slow: ", &text, width));
        }
    }
    out
}

/// Ranks without a whole result, and where what they have lies.
fn lost(all: &RanksResult, width: u16) -> String {
    let mut out = String::new();
    for row in &all.rows {
        let saved = row.saved.as_ref().map(|at| format!("; its own results: {at}"));
        let why = match (&row.error, row.ended) {
            (Some(why), None) => format!("nothing was received of it: {why}"),
            (Some(why), Some(_)) => why.clone(),
            (None, _) if saved.is_some() => "its results are in this record".to_owned(),
            _ => continue,
        };
        let text = format!("{} (host {}): {why}{}", row.rank, row.host, saved.unwrap_or_default());
        out.push_str(&paragraph("rank ", &text, width));
    }
    out
}

fn rows(all: &RanksResult, width: u16) -> String {
    let mut columns = vec![figures("rank"), words("host"), words("GPU"), words("files")];
    let by_network = all.rows.iter().any(|row| !row.nics.is_empty());
    columns.extend(by_network.then(|| words("NIC")));
    columns.extend([
        words("job"),
        figures("throughput"),
        figures("done in"),
        Column { name: Percentile::TAIL.label().into(), left: false },
        figures("CPUs"),
        figures("failed"),
        words("path taken"),
        figures("clock"),
    ]);
    let mut grid = Grid { columns, rows: Vec::new() };
    for row in &all.rows {
        for job in &row.jobs {
            let time_ns = job.measured.map(|span| span.length_ns());
            let mut cells =
                vec![row.rank.to_string(), row.host.clone(), list(&row.gpus), row.target.clone()];
            cells.extend(by_network.then(|| list(&row.nics)));
            cells.extend([
                job.job.clone(),
                throughput(job.bytes_per_s),
                maybe_time(time_ns),
                maybe_time(job.percentile(Percentile::TAIL)),
                format!("{:.2}", job.cores_busy),
                job.failed.to_string(),
                job.verdict.clone().unwrap_or_else(|| NONE.to_owned()),
                offset(row),
            ]);
            grid.rows.push(cells);
        }
    }
    grid.at_any_width(width)
}

fn list(of: &[String]) -> String {
    if of.is_empty() { NONE.to_owned() } else { of.join(", ") }
}

/// How far the rank's clock was ahead of rank 0's.
fn offset(row: &RankRow) -> String {
    let sign = if row.clock_offset_ns < 0 { "-" } else { "+" };
    let offset = time(row.clock_offset_ns.unsigned_abs());
    format!("{sign}{offset} ± {}", time(row.clock_bound_ns))
}
