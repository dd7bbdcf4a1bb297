//! The plan of several hosts as text.

use gpuio_base::units::{format_cpu_list, host_list, hosts_of, human_count, human_decimal_rate};
use gpuio_table::indented_columns;

use super::job::{count, slots};
use super::{HostPlan, HostsPlan, ranks};
use crate::pair::format::{distance, list, short, store};
use crate::pair::{Given, Pair};

/// Ranks by host, mounts, what to expect of each host and of all, how to start, notes. Hosts that
/// are alike stand together.
#[must_use]
pub fn hosts_text(plan: &HostsPlan) -> String {
    let names: Vec<&str> = plan.hosts.iter().map(|host| host.host.as_str()).collect();
    let mut out = format!("HOSTS ({}) {}\n", plan.hosts.len(), host_list(&names));
    out.push_str(&format!("\nRANKS ({})\n", plan.load.text()));
    let groups = alike(plan, |host| rows(host).concat().concat());
    if groups.len() > 1 {
        let kinds = format!("  The hosts differ: {} kinds of them.\n", groups.len());
        out.push_str(&kinds);
    }
    for (at, group) in groups.iter().enumerate() {
        let hosts: Vec<&str> = group.iter().map(|host| host.host.as_str()).collect();
        out.push_str(&format!("  {}:\n", hosts_of(&hosts, names.len(), at == 0)));
        let table = indented_columns(&rows(group[0]));
        out.push_str(&indented(&table));
    }
    let sections = [
        ("MOUNTS", mounts(plan)),
        (
            "EXPECTED (from the data sheets of the parts, all ranks of all hosts at once)",
            expected(plan),
        ),
        ("START (after --write jobs.ini)", start(plan)),
        ("NOTES", notes(plan)),
    ];
    for (title, body) in sections.iter().filter(|(_, body)| !body.is_empty()) {
        out.push_str(&format!("\n{title}\n{body}"));
    }
    out
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Hosts with the same words, the largest group first.
fn alike(plan: &HostsPlan, words: impl Fn(&HostPlan) -> String) -> Vec<Vec<&HostPlan>> {
    let mut groups: Vec<(String, Vec<&HostPlan>)> = Vec::new();
    for host in &plan.hosts {
        let text = words(host);
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, hosts)) => hosts.push(host),
            None => groups.push((text, vec![host])),
        }
    }
    groups.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    groups.into_iter().map(|(_, hosts)| hosts).collect()
}

/// A row for each rank of a host, below the heading.
fn rows(host: &HostPlan) -> Vec<Vec<String>> {
    let heading = ["rank", "GPU", "PCIe", "storage", "over", "distance", "node", "CPUs", "threads"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let row = |(rank, pair): (u32, &Pair)| {
        let over = |given: &Given| given.nic.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            rank.to_string(),
            pair.gpu.clone().unwrap_or_else(|| "host memory".to_owned()),
            pair.pci.as_deref().map_or("-", short).to_owned(),
            list(&pair.stores, store),
            list(&pair.stores, over),
            list(&pair.stores, distance),
            pair.node_text(),
            pair.cpus.as_ref().map_or("?".to_owned(), |cpus| format_cpu_list(cpus)),
            pair.start.threads.to_string(),
        ]
    };
    rows.extend(ranks(&host.plan).map(row));
    rows
}

/// Network mounts, each with the hosts that have it.
fn mounts(plan: &HostsPlan) -> String {
    let mut all: Vec<([String; 3], Vec<&str>)> = Vec::new();
    for host in &plan.hosts {
        for one in &host.mounts {
            let nic = one.nic.clone().unwrap_or_else(|| "?".to_owned());
            let cells = [one.source.clone(), one.mount_point.clone(), nic];
            match all.iter_mut().find(|(known, _)| *known == cells) {
                Some((_, hosts)) => hosts.push(&host.host),
                None => all.push((cells, vec![&host.host])),
            }
        }
    }
    if all.is_empty() {
        return String::new();
    }
    let mut rows = vec![["source", "at", "over", "hosts"].map(str::to_owned).to_vec()];
    for (cells, hosts) in all {
        let mut row = cells.to_vec();
        row.push(hosts_of(&hosts, plan.hosts.len(), false));
        rows.push(row);
    }
    indented_columns(&rows)
}

/// A row for each host, or for several that are alike, and the sum with its bottleneck.
fn expected(plan: &HostsPlan) -> String {
    let Some(total) = &plan.total else { return String::new() };
    let cells = |one: &gpuio_record::Expected| {
        let rate = match (one.bytes_per_s, one.at_most) {
            (Some(rate), _) => human_decimal_rate(rate),
            (None, Some(most)) => format!("? (at most {})", human_decimal_rate(most)),
            (None, None) => "?".to_owned(),
        };
        let iops = one.iops.map_or("?".to_owned(), human_count);
        vec![rate, iops, one.bottleneck.clone().unwrap_or_default()]
    };
    let of_host = |host: &HostPlan| host.plan.total.as_ref().map(&cells).unwrap_or_default();
    let mut rows = vec![["", "throughput", "IOPS", "bottleneck"].map(str::to_owned).to_vec()];
    // The names of servers differ from host to host where each has its own.
    let key = |host: &HostPlan| of_host(host).iter().take(2).cloned().collect::<String>();
    for group in alike(plan, key) {
        let names: Vec<&str> = group.iter().map(|host| host.host.as_str()).collect();
        let each = if names.len() > 1 { ", each" } else { "" };
        let mut row = vec![format!("{}{each}", hosts_of(&names, plan.hosts.len(), false))];
        let mut cells = of_host(group[0]);
        if group.iter().any(|host| of_host(host) != cells)
            && let Some(last) = cells.last_mut()
        {
            *last = format!("{last} (on {}; others alike)", group[0].host);
        }
        row.extend(cells);
        rows.push(row);
    }
    let mut last = vec!["all together".to_owned()];
    last.extend(cells(total));
    rows.push(last);
    let mut out = indented_columns(&rows);
    if let Some(why) = &total.unknown {
        out.push_str(&format!("  unknown: {why}\n"));
    }
    out
}

fn start(plan: &HostsPlan) -> String {
    format!(
        "  Open MPI: mpirun --bind-to none -np {} --host {} gpuio bench jobs.ini\n  \
         A rank takes the place of its host and of its number there: {} on {}.\n",
        plan.ranks(),
        slots(plan),
        count(plan.ranks(), "rank"),
        count(plan.hosts.len(), "host"),
    )
}

fn notes(plan: &HostsPlan) -> String {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for host in &plan.hosts {
        for note in &host.plan.notes {
            match all.iter_mut().find(|(known, _)| known == note) {
                Some((_, hosts)) => hosts.push(&host.host),
                None => all.push((note, vec![&host.host])),
            }
        }
    }
    let of_hosts = all
        .iter()
        .map(|(note, hosts)| format!("{}: {note}", hosts_of(hosts, plan.hosts.len(), true)));
    let lines = plan.notes.iter().cloned().chain(of_hosts);
    lines.map(|line| format!("  {}\n", gpuio_base::units::printable_short(&line))).collect()
}
