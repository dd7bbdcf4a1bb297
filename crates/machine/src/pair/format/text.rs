//! Text.

use gpuio_base::document::{Block, Columns, Document, List, Look, Section, Table, grouped};
use gpuio_base::units::format_cpu_list;

use super::{expected, rate, regroup, short, together};
use crate::pair::{Given, NearNic, Pair, Pairing, SharedLink, When};

/// Pairs, network mounts, why, regrouping, shared links, what is not used, notes.
pub fn document(pairing: &Pairing) -> Document {
    let mut page = Document::new("Plan");
    let first = page.begin("pairs", format!("PAIRS ({})", pairing.load.text()));
    if pairing.pairs.is_empty() {
        first.list(List::of(2, ["none"]));
    }
    first.table(pairs(pairing));
    page.begin("why", "WHY").table(why(&pairing.pairs));
    starts(&pairing.pairs, page.begin("start", "START VALUES"));
    let title = "EXPECTED (from published figures of the parts, all pairs at once)";
    expected::section(pairing, page.begin("expected", title));
    if let Some(second) = &pairing.second_choice {
        let title = "SECOND CHOICE (the first has no figure; --mount or --drive takes it)";
        page.begin("second", title).table(pairs(second));
        expected::section(second, page.begin("", ""));
    }
    network(pairing, page.begin("network", "NETWORK MOUNTS"));
    regroup::section(&pairing.regroup, page.begin("regroup", "REGROUP"));
    if let Some(arrays) = &pairing.new_arrays {
        regroup::new_arrays(arrays, page.begin("new_arrays", "NEW ARRAYS"));
    }
    if !pairing.mount_commands.is_empty() {
        let lines: String =
            pairing.mount_commands.iter().map(|line| format!("    {line}\n")).collect();
        let above = "  As they are mounted, for another client; gpuio runs none of it. GDS on \
            NFS needs \
                     proto=rdma.\n\n";
        page.begin("mount_commands", "MOUNT COMMANDS")
            .push(Block::Lines(format!("{above}{lines}")));
    }
    page.begin("links", "SHARED LINKS").table(links(&pairing.shared_links));
    let not_used = pairing.not_used.iter().map(|one| (one.name.as_str(), one.why.as_str()));
    page.begin("unused", "NOT USED").table(two("name", "why", &not_used.collect::<Vec<_>>()));
    page.begin("notes", "NOTES").list(List::of(2, pairing.notes.iter().map(String::as_str)));
    page
}

/// Two columns without heads.
fn two(one: &'static str, other: &'static str, rows: &[(&str, &str)]) -> Table {
    Columns::<(&str, &str)>::new()
        .words("", |row| row.0)
        .key(one)
        .words("", |row| row.1)
        .key(other)
        .table(one, rows)
        .look(Look::Indented(2))
}

fn pairs(pairing: &Pairing) -> Table {
    let to_gpu = pairing.pairs.first().is_some_and(|first| first.gpu.is_some());
    Columns::<Pair>::new()
        .when(to_gpu, |columns| {
            columns
                .words("GPU", |pair| pair.gpu.clone().unwrap_or_else(|| "host memory".to_owned()))
                .words("PCIe", |pair| pair.pci.as_deref().map_or("?", short).to_owned())
        })
        .when(!to_gpu, |columns| columns.words("to", |_| "host memory"))
        .words("storage", |pair| list(&pair.stores, store))
        .when(to_gpu, |columns| {
            columns
                .words("distance", |pair| list(&pair.stores, distance))
                .words("NICs", |pair| nics(&pair.nics))
        })
        .when(!to_gpu, |columns| columns.words("on", |pair| list(&pair.stores, devices)))
        .words("node", Pair::node_text)
        .words("CPUs", |pair| pair.cpus.as_ref().map_or("?".into(), |cpus| format_cpu_list(cpus)))
        .table("pairs", &pairing.pairs)
        .look(Look::Indented(2))
}

pub(crate) fn list(stores: &[Given], word: impl Fn(&Given) -> String) -> String {
    if stores.is_empty() {
        return "-".to_owned();
    }
    stores.iter().map(word).collect::<Vec<_>>().join(" + ")
}

/// `/raid (md1)`, `/var/tmp of / (sda2)`, `nvme3n1`.
pub(crate) fn store(given: &Given) -> String {
    let on = given.on.join(" ");
    match &given.directory {
        Some(directory) if *directory == given.name => format!("{directory} ({on})"),
        Some(directory) => format!("{directory} of {} ({on})", given.name),
        None => on,
    }
}

/// `PXB`, or `PXB, 2 of 8 drives`.
pub(crate) fn distance(given: &Given) -> String {
    let class = given.class.map_or("?", |class| class.name());
    if given.near < given.of && given.class.is_some() {
        return format!("{class}, {} of {} drives", given.near, given.of);
    }
    class.to_owned()
}

fn devices(given: &Given) -> String {
    let names: Vec<&str> = given.drives.iter().chain(&given.nic).map(String::as_str).collect();
    if names.is_empty() { "?".to_owned() } else { names.join(" ") }
}

/// `mlx5_0 (PIX)`.
fn nics(all: &[NearNic]) -> String {
    let word = |nic: &NearNic| {
        let down = if nic.up == Some(false) { ", down" } else { "" };
        format!("{} ({}{down})", nic.name, nic.class.name())
    };
    let words: Vec<String> = all.iter().map(word).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(" ") }
}

/// Names of pairs that have the same, with that.
pub(super) fn alike<K: PartialEq>(
    pairs: &[Pair],
    what: impl Fn(&Pair) -> K,
) -> Vec<(K, Vec<String>)> {
    let name = |pair: &Pair| pair.gpu.clone().or_else(|| Some(pair.stores.first()?.name.clone()));
    grouped(pairs.iter().map(|pair| (what(pair), name(pair).unwrap_or_default())))
}

fn why(pairs: &[Pair]) -> Table {
    let groups = alike(pairs, |pair| pair.why.clone());
    let names: Vec<String> = groups.iter().map(|(_, names)| together(names)).collect();
    let rows = names.iter().zip(&groups).map(|(names, (why, _))| (names.as_str(), why.as_str()));
    two("pairs", "why", &rows.collect::<Vec<_>>())
}

fn starts(pairs: &[Pair], section: &mut Section) {
    let used: Vec<Pair> = pairs.iter().filter(|pair| !pair.stores.is_empty()).cloned().collect();
    let groups = alike(&used, |pair| {
        let start = &pair.start;
        (start.threads, start.depth, start.why.clone())
    });
    let table = Columns::<((u32, u32, String), Vec<String>)>::new()
        .words("", |(_, names)| together(names))
        .key("pairs")
        .words("threads", |((threads, ..), _)| *threads)
        .words("depth", |((_, depth, _), _)| *depth)
        .words("reason", |((.., why), _)| why.clone());
    section.table(table.table("start values", groups).look(Look::Indented(2)));
    let deeper = |pair: &Pair| {
        let start = &pair.start;
        u64::from(start.threads) * u64::from(start.depth) > start.in_flight
    };
    if used.iter().any(deeper) {
        let text = "Depth is 4 or more, so that a thread reads a block while others are copied: \
                    threads x depth may exceed the I/Os in flight that the storage needs.";
        section.list(List::of(2, [text]));
    }
}

fn network(pairing: &Pairing, section: &mut Section) {
    let mut rows = Vec::new();
    for pair in pairing.pairs.iter().filter(|pair| !pair.network.is_empty()) {
        let word = |given: &Given| {
            let nic = given.nic.as_deref().unwrap_or("?");
            format!("{} over {nic} ({})", given.name, distance(given))
        };
        rows.push((pair.gpu.as_deref().unwrap_or_default(), list(&pair.network, word)));
    }
    let rows: Vec<(&str, &str)> = rows.iter().map(|(gpu, text)| (*gpu, text.as_str())).collect();
    section.table(two("gpu", "mounts", &rows));
    let nearer = pairing.unused_nics.iter().map(|unused| {
        let names = match unused.interfaces.as_slice() {
            [] => unused.nic.clone(),
            interfaces => format!("{} ({})", unused.nic, interfaces.join(" ")),
        };
        format!(
            "{names} is up and nearer to {}: mount an export over it for {}",
            together(&unused.gpus),
            if unused.gpus.len() == 1 { "it" } else { "them" }
        )
    });
    section.list(List::of(2, nearer));
}

fn links(all: &[SharedLink]) -> Table {
    let enough = |link: &SharedLink| {
        let carries = link.link.as_ref().and_then(|link| link.bytes_per_second);
        match (link.enough, link.need_bytes_per_second, carries) {
            (Some(true), Some(need), Some(most)) => {
                format!("yes: at most {} of {}", rate(need), rate(most))
            }
            (Some(false), Some(need), Some(most)) => {
                format!("! no: up to {}, carries {}", rate(need), rate(most))
            }
            _ => "not known".to_owned(),
        }
    };
    Columns::<SharedLink>::new()
        .words("link above", |link| short(&link.above).to_owned())
        .words("", |link| link.link.as_ref().map_or("unknown".to_owned(), crate::topo::Link::text))
        .key("link")
        .words("of", |link| together(&link.gpus))
        .words("when", |link| match link.when {
            When::Always => "always",
            When::ByHostMemory => "only through host memory",
        })
        .words("enough", enough)
        .table("shared links", all)
        .look(Look::Indented(2))
}
