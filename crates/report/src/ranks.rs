//! Several ranks: rates while all ran, hosts, slow ranks, a row for each.

use gpuio_base::document::{Block, Cell, Columns, Item, Layout, List, Section, Table};
use gpuio_base::stat::Percentile;
use gpuio_base::units::format_cpu_list;
use gpuio_record::metric::percent;
use gpuio_record::{
    HostJobExpected, JobResult, RankGroup, RankHost, RankJob, RankJobRates, RankRow, RanksEnd,
    RanksResult, RateOver,
};

use crate::expected::{bottleneck, unknown};
use crate::number::{float, throughput, time};

/// Rows of ranks that a page shows of one record; all are in the record.
const ROWS: usize = 1000;

/// How many, on how many hosts, and how many of them are slow.
pub(crate) fn title(all: &RanksResult) -> String {
    let word = if all.ranks == 1 { "rank" } else { "ranks" };
    let slow: usize = jobs(all).map(|job| job.stragglers.len()).sum();
    let slow = if slow > 0 { format!(", slow ranks: {slow}") } else { String::new() };
    format!("{} {word} on {}{slow}", all.ranks, on(all))
}

/// The launcher and the library that it belongs to, whose name may be the launcher's.
pub(crate) fn started_by(all: &RanksResult) -> String {
    match all.library.starts_with(&all.launcher) {
        true => all.library.clone(),
        false => format!("{}, {}", all.launcher, all.library),
    }
}

/// The host, or their number.
pub(crate) fn on(all: &RanksResult) -> String {
    match all.hosts.as_slice() {
        [one] => format!("host {}", one.name),
        many => format!("{} hosts", many.len()),
    }
}

fn jobs(all: &RanksResult) -> impl Iterator<Item = &RankJobRates> {
    all.groups.iter().flat_map(|group| &group.jobs)
}

/// Rates and starts, hosts, slow ranks and lost ones; with a row for each rank if `each`. A page
/// has the results of the jobs for the rates until a stonewall, and more of each host.
pub(crate) fn sections(all: &RanksResult, page: Option<&[JobResult]>, each: bool) -> Vec<Section> {
    let mut first = Section::default();
    match jobs(all).next() {
        Some(_) => first.table(rates(all, page)),
        None => first.item(
            Layout::labels(0),
            Item::new("ranks", "no group was finished by all of them, so there is no common rate"),
        ),
    };
    let start = |group: &RankGroup| {
        format!("{} ± {}", time(group.start_skew_ns), time(group.skew_bound_ns))
    };
    let starts: Vec<String> = all.groups.iter().map(start).collect();
    if !starts.is_empty() {
        let text = format!(
            "between the first and the last rank's start: {} (clocks of the ranks compared)",
            starts.join(", ")
        );
        first.item(Layout::labels(0), Item::new("start", text));
    }
    let mut sections = vec![first];
    if all.hosts.len() > 1 || page.is_some() {
        let mut of_hosts = Section::default();
        of_hosts.table(hosts(&all.hosts, page.is_some()));
        sections.push(of_hosts);
    }
    if let Some(last) = sections.last_mut() {
        let labels = Layout::labels(0);
        last.list(List::new(labels, slow(all)));
        last.list(List::new(labels, lost(all)));
    }
    if each {
        let mut rows = Section::new("", if page.is_some() { "A row per rank" } else { "" });
        rows.fold = page.map(|_| false);
        let mut table = self::rows(all);
        let more = if page.is_some() { table.cut(ROWS) } else { 0 };
        if more > 0 {
            rows.emphasized("note", format!("{more} more are in the record."));
        }
        rows.push(Block::Table(table));
        sections.push(rows);
    }
    sections
}

/// A row per job: until the first rank was done, while all ran, until the last was done.
fn rates(all: &RanksResult, page: Option<&[JobResult]>) -> Table {
    let wall = move |job: &RankJobRates| {
        let wall = page?.iter().find(|one| one.name == job.job)?.stonewall?;
        Some(format!("{} in {}", throughput(wall.bytes_per_s), time(wall.time_ns)))
    };
    type Of = fn(&RankJobRates) -> Option<RateOver>;
    let parts: [(&str, Of); 3] = [
        ("until first done", |job| Some(job.until_first)),
        ("while all ran", |job| job.while_all),
        ("until last done", |job| Some(job.until_last)),
    ];
    let columns = Columns::<RankJobRates>::new()
        .words("all ranks", |job| job.job.clone())
        .words("end", |job| job.ends_by.map(RanksEnd::words))
        .when(page.is_some(), |columns| columns.words("until the stonewall", wall).if_any());
    let columns = parts.into_iter().fold(columns, |columns, (head, of)| {
        columns
            .figures(head, move |job| of(job).map(rate))
            .figures("in", move |job| of(job).map(|rate| Cell::time(rate.time_ns)))
            .key(format!("{}_ns", head.replace(' ', "_")))
    });
    columns.table("rates of all ranks", jobs(all))
}

/// With how much of its bytes is in doubt.
fn rate(rate: RateOver) -> Cell {
    let bound = float(rate.bytes_bound) / float(rate.bytes.max(1)) * 100.0;
    let sign = if bound >= 0.5 { format!(" ±{bound:.0}%") } else { String::new() };
    Cell::shown(format!("{}{sign}", throughput(rate.bytes_per_s)), rate.bytes_per_s)
}

fn hosts(hosts: &[RankHost], page: bool) -> Table {
    let known = |host: &RankHost| host.expected.iter().any(|one| one.percent.is_some());
    Columns::<RankHost>::new()
        .words("host", |host| host.name.clone())
        .words("ranks", |host| format_cpu_list(&host.ranks))
        .figures("moved", |host| Cell::bytes(host.bytes))
        .words("path taken", |host| list(&host.verdicts))
        .words("devices", |host| list(&host.devices))
        .figures("warnings", |host| host.warnings)
        .when(page || hosts.iter().any(known), |columns| {
            columns.words("of expected", move |host| of_expected(host, page))
        })
        .when(page, |columns| {
            columns
                .words("processor", |host| host.cpu.clone())
                .words("kernel", |host| host.kernel.clone())
        })
        .table("hosts", hosts)
}

/// How much of its expectation each job of a host reached: `95 % of 7.64 GiB/s`; on a page with
/// the limit, or why it is unknown.
fn of_expected(host: &RankHost, page: bool) -> Option<String> {
    let several = host.expected.len() > 1;
    let between = if page { ": " } else { " " };
    let one = |one: &HostJobExpected| {
        let job = if several { format!("{}{between}", one.job) } else { String::new() };
        let text = match (one.expected.bytes_per_s.zip(one.percent), page) {
            (Some((rate, reached)), _) => {
                let limit = bottleneck(&one.expected).filter(|_| page);
                let limit = limit.map(|part| format!(" ({part})")).unwrap_or_default();
                format!("{} % of {}{limit}", percent(reached), throughput(rate))
            }
            (None, true) => format!("unknown: {}", unknown(&one.expected)),
            (None, false) => return None,
        };
        Some(format!("{job}{text}"))
    };
    let words: Vec<String> = host.expected.iter().filter_map(one).collect();
    (!words.is_empty()).then(|| words.join(if page { "; " } else { ", " }))
}

fn slow(all: &RanksResult) -> Vec<Item> {
    let of_job = |job: &RankJobRates| {
        let of_rank = |slow: &gpuio_record::Straggler| {
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
            Item::new("slow", text)
        };
        job.stragglers.iter().map(of_rank).collect::<Vec<Item>>()
    };
    jobs(all).flat_map(of_job).collect()
}

/// Ranks without a whole result, and where what they have lies.
fn lost(all: &RanksResult) -> Vec<Item> {
    let of_row = |row: &RankRow| {
        let saved = row.saved.as_ref().map(|at| format!("; its own results: {at}"));
        let why = match (&row.error, row.ended) {
            (Some(why), None) => format!("nothing was received of it: {why}"),
            (Some(why), Some(_)) => why.clone(),
            (None, _) if saved.is_some() => "its results are in this record".to_owned(),
            _ => return None,
        };
        let name = format!("rank {} (host {})", row.rank, row.host);
        Some(Item::new(name, format!("{why}{}", saved.unwrap_or_default())))
    };
    all.rows.iter().filter_map(of_row).collect()
}

/// A row for each job of each rank.
fn rows(all: &RanksResult) -> Table {
    let by_network = all.rows.iter().any(|row| !row.nics.is_empty());
    let rows = all.rows.iter().flat_map(|row| row.jobs.iter().map(move |job| (row, job)));
    Columns::<(&RankRow, &RankJob)>::new()
        .figures("rank", |(row, _)| row.rank)
        .words("host", |(row, _)| row.host.clone())
        .words("GPU", |(row, _)| list(&row.gpus))
        .words("files", |(row, _)| row.target.clone())
        .when(by_network, |columns| columns.words("NIC", |(row, _)| list(&row.nics)))
        .words("job", |(_, job)| job.job.clone())
        .figures("throughput", |(_, job)| Cell::rate(job.bytes_per_s))
        .figures("done in", |(_, job)| job.measured.map(|span| Cell::time(span.length_ns())))
        .figures(Percentile::TAIL.label(), |(_, job)| {
            job.percentile(Percentile::TAIL).map(Cell::time)
        })
        .figures("CPUs", |(_, job)| Cell::shown(format!("{:.2}", job.cores_busy), job.cores_busy))
        .figures("failed", |(_, job)| job.failed)
        .words("path taken", |(_, job)| job.verdict.clone())
        .figures("clock", |(row, _)| offset(row))
        .table("ranks", rows)
}

fn list(of: &[String]) -> Option<String> {
    (!of.is_empty()).then(|| of.join(", "))
}

/// How far the rank's clock was ahead of rank 0's.
fn offset(row: &RankRow) -> String {
    let sign = if row.clock_offset_ns < 0 { "-" } else { "+" };
    let offset = time(row.clock_offset_ns.unsigned_abs());
    format!("{sign}{offset} ± {}", time(row.clock_bound_ns))
}
