//! The plan of several hosts as text.

use gpuio_base::document::{Block, Columns, Document, List, Look, Section, Table, grouped};
use gpuio_base::units::{format_cpu_list, host_list, hosts_of};

use super::job::{count, slots};
use super::{HostPlan, HostsPlan, ranks};
use crate::pair::format::{distance, iops, list, short, store, throughput};
use crate::pair::{Given, Pair};

/// Ranks by host, mounts, what to expect of each host and of all, how to start, notes. Hosts that
/// are alike stand together.
pub fn document(plan: &HostsPlan) -> Document {
    let names: Vec<&str> = plan.hosts.iter().map(|host| host.host.as_str()).collect();
    let mut page = Document::new("Plan of several hosts");
    page.begin("", "").paragraph(format!("HOSTS ({}) {}", plan.hosts.len(), host_list(&names)));
    let of_ranks = page.begin("ranks", format!("RANKS ({})", plan.load.text()));
    let groups = alike(plan, |host| ranks_of(host).terminal(u16::MAX));
    if groups.len() > 1 {
        of_ranks.list(List::of(2, [format!("The hosts differ: {} kinds of them.", groups.len())]));
    }
    for (at, group) in groups.iter().enumerate() {
        let hosts: Vec<&str> = group.iter().map(|host| host.host.as_str()).collect();
        of_ranks.list(List::of(2, [format!("{}:", hosts_of(&hosts, names.len(), at == 0))]));
        of_ranks.table(ranks_of(group[0]));
    }
    let title = "EXPECTED (from published figures of the parts, all ranks of all hosts at once)";
    mounts(plan, page.begin("mounts", "MOUNTS"));
    expected(plan, page.begin("expected", title));
    start(plan, page.begin("start", "START (after --write jobs.ini)"));
    page.begin("notes", "NOTES").list(List::of(2, notes(plan)));
    page
}

/// Hosts with the same words, the largest group first.
fn alike(plan: &HostsPlan, words: impl Fn(&HostPlan) -> String) -> Vec<Vec<&HostPlan>> {
    let mut groups = grouped(plan.hosts.iter().map(|host| (words(host), host)));
    groups.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    groups.into_iter().map(|(_, hosts)| hosts).collect()
}

/// A row for each rank of a host.
fn ranks_of(host: &HostPlan) -> Table {
    let over = |given: &Given| given.nic.clone().unwrap_or_else(|| "-".to_owned());
    Columns::<(u32, &Pair)>::new()
        .words("rank", |(rank, _)| *rank)
        .words("GPU", |(_, pair)| pair.gpu.clone().unwrap_or_else(|| "host memory".to_owned()))
        .words("PCIe", |(_, pair)| pair.pci.as_deref().map(|pci| short(pci).to_owned()))
        .words("storage", |(_, pair)| list(&pair.stores, store))
        .words("over", move |(_, pair)| list(&pair.stores, over))
        .words("distance", |(_, pair)| list(&pair.stores, distance))
        .words("node", |(_, pair)| pair.node_text())
        .words("CPUs", |(_, pair)| {
            pair.cpus.as_ref().map_or("?".to_owned(), |cpus| format_cpu_list(cpus))
        })
        .words("threads", |(_, pair)| pair.start.threads)
        .table("ranks", ranks(&host.plan))
        .look(Look::Indented(4))
}

/// Network mounts, each with the hosts that have it.
fn mounts(plan: &HostsPlan, section: &mut Section) {
    let each = plan.hosts.iter().flat_map(|host| {
        host.mounts.iter().map(|one| {
            let nic = one.nic.clone().unwrap_or_else(|| "?".to_owned());
            ((one.source.clone(), one.mount_point.clone(), nic), host.host.as_str())
        })
    });
    type Mount<'h> = ((String, String, String), Vec<&'h str>);
    let table = Columns::<Mount<'_>>::new()
        .words("source", |((source, ..), _)| source.clone())
        .words("at", |((_, at, _), _)| at.clone())
        .words("over", |((.., nic), _)| nic.clone())
        .words("hosts", |(_, hosts)| hosts_of(hosts, plan.hosts.len(), false));
    section.table(table.table("mounts", grouped(each)).look(Look::Indented(2)));
}

/// A row for each host, or for several that are alike, and the sum with its bottleneck.
fn expected(plan: &HostsPlan, section: &mut Section) {
    let Some(total) = &plan.total else { return };
    struct Row {
        who: String,
        throughput: String,
        iops: String,
        bottleneck: String,
    }
    let row = |who: String, one: Option<&gpuio_record::Expected>| Row {
        who,
        throughput: one.map(throughput).unwrap_or_default(),
        iops: one.map(iops).unwrap_or_default(),
        bottleneck: one.and_then(|one| one.bottleneck.clone()).unwrap_or_default(),
    };
    let of_host = |host: &HostPlan, who: String| row(who, host.plan.total.as_ref());
    // The names of servers differ from host to host where each has its own.
    let key = |host: &HostPlan| {
        let row = of_host(host, String::new());
        row.throughput + &row.iops
    };
    let mut rows = Vec::new();
    for group in alike(plan, key) {
        let names: Vec<&str> = group.iter().map(|host| host.host.as_str()).collect();
        let each = if names.len() > 1 { ", each" } else { "" };
        let who = format!("{}{each}", hosts_of(&names, plan.hosts.len(), false));
        let mut row = of_host(group[0], who);
        let other = |host: &&HostPlan| of_host(host, String::new()).bottleneck != row.bottleneck;
        if group.iter().any(other) {
            row.bottleneck = format!("{} (on {}; others alike)", row.bottleneck, group[0].host);
        }
        rows.push(row);
    }
    rows.push(row("all together".to_owned(), Some(total)));
    let table = Columns::<Row>::new()
        .words("", |row| row.who.clone())
        .key("hosts")
        .words("throughput", |row| row.throughput.clone())
        .words("IOPS", |row| row.iops.clone())
        .words("bottleneck", |row| row.bottleneck.clone());
    section.table(table.table("expected", rows).look(Look::Indented(2)));
    let unknown = total.unknown.iter().map(|why| format!("unknown: {why}"));
    section.list(List::of(2, unknown));
}

fn start(plan: &HostsPlan, section: &mut Section) {
    section.push(Block::Lines(format!(
        "  Open MPI: mpirun --bind-to none -np {} --host {} gpuio bench jobs.ini\n  \
         A rank takes the place of its host and of its number there: {} on {}.\n",
        plan.ranks(),
        slots(plan),
        count(plan.ranks(), "rank"),
        count(plan.hosts.len(), "host"),
    )));
}

fn notes(plan: &HostsPlan) -> Vec<String> {
    let each = plan
        .hosts
        .iter()
        .flat_map(|host| host.plan.notes.iter().map(|note| (note, host.host.as_str())));
    let of_hosts = grouped(each).into_iter();
    let of_hosts = of_hosts
        .map(|(note, hosts)| format!("{}: {note}", hosts_of(&hosts, plan.hosts.len(), true)));
    plan.notes.iter().cloned().chain(of_hosts).collect()
}
