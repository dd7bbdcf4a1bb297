//! Text.

use gpuio_base::units::{format_cpu_list, printable_short};
use gpuio_table::indented_columns;

use super::{expected, rate, regroup, short, together};
use crate::pair::{Given, NearNic, Pair, Pairing, SharedLink, When};

/// Pairs, network mounts, why, regrouping, shared links, what is not used, notes.
#[must_use]
pub fn text(pairing: &Pairing) -> String {
    let mut out = format!("PAIRS ({})\n", pairing.load.text());
    if pairing.pairs.is_empty() {
        out.push_str("  none\n");
    }
    out.push_str(&pairs(pairing));
    let sections = [
        ("WHY", why(&pairing.pairs)),
        ("START VALUES", starts(&pairing.pairs)),
        (
            "EXPECTED (from the data sheets of the parts, all pairs at once)",
            expected::text(pairing),
        ),
        ("SECOND CHOICE (the first has no figure; --mount or --drive takes it)", second(pairing)),
        ("NETWORK MOUNTS", network(pairing)),
        ("REGROUP", regroup::text(&pairing.regroup)),
        ("SHARED LINKS", links(&pairing.shared_links)),
        ("NOT USED", indented_columns(&not_used(pairing))),
    ];
    for (title, body) in sections.iter().filter(|(_, body)| !body.is_empty()) {
        out.push_str(&format!("\n{title}\n{body}"));
    }
    if !pairing.notes.is_empty() {
        out.push_str("\nNOTES\n");
        for note in &pairing.notes {
            out.push_str(&format!("  {}\n", printable_short(note)));
        }
    }
    out
}

/// The pairs of the second choice, and what they should reach.
fn second(pairing: &Pairing) -> String {
    let Some(second) = &pairing.second_choice else { return String::new() };
    format!("{}\n{}", pairs(second), expected::text(second))
}

fn pairs(pairing: &Pairing) -> String {
    let Some(first) = pairing.pairs.first() else { return String::new() };
    let to_gpu = first.gpu.is_some();
    let heading: &[&str] = if to_gpu {
        &["GPU", "PCIe", "storage", "distance", "NICs", "node", "CPUs"]
    } else {
        &["to", "storage", "on", "node", "CPUs"]
    };
    let mut rows = vec![words(heading)];
    for pair in &pairing.pairs {
        let node = pair.node_text();
        let cpus = pair.cpus.as_ref().map_or("?".to_owned(), |cpus| format_cpu_list(cpus));
        let mut row = match &pair.gpu {
            Some(gpu) => vec![
                gpu.clone(),
                pair.pci.as_deref().map_or("?", short).to_owned(),
                list(&pair.stores, store),
                list(&pair.stores, distance),
                nics(&pair.nics),
            ],
            None => vec![
                "host memory".to_owned(),
                list(&pair.stores, store),
                list(&pair.stores, devices),
            ],
        };
        row.extend([node, cpus]);
        rows.push(row);
    }
    indented_columns(&rows)
}

fn words(heading: &[&str]) -> Vec<String> {
    heading.iter().map(|word| (*word).to_owned()).collect()
}

pub(crate) fn list(stores: &[Given], word: impl Fn(&Given) -> String) -> String {
    if stores.is_empty() {
        return "-".to_owned();
    }
    stores.iter().map(word).collect::<Vec<_>>().join(" + ")
}

/// `/raid (md1)`, `nvme3n1`.
pub(crate) fn store(given: &Given) -> String {
    let on = given.on.join(" ");
    match &given.directory {
        Some(directory) => format!("{directory} ({on})"),
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

/// Pairs with the same text, with that text.
pub(super) fn alike(pairs: &[Pair], word: impl Fn(&Pair) -> String) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for pair in pairs {
        let name = pair.gpu.clone().or_else(|| Some(pair.stores.first()?.name.clone()));
        let (name, text) = (name.unwrap_or_default(), word(pair));
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => groups.push((text, vec![name])),
        }
    }
    groups
}

fn why(pairs: &[Pair]) -> String {
    let groups = alike(pairs, |pair| pair.why.clone());
    let rows: Vec<Vec<String>> =
        groups.into_iter().map(|(why, names)| vec![together(&names), why]).collect();
    indented_columns(&rows)
}

fn starts(pairs: &[Pair]) -> String {
    let used: Vec<Pair> = pairs.iter().filter(|pair| !pair.stores.is_empty()).cloned().collect();
    if used.is_empty() {
        return String::new();
    }
    let groups = alike(&used, |pair| {
        let start = &pair.start;
        format!("{}\t{}\t{}", start.threads, start.depth, start.why)
    });
    let mut rows = vec![words(&["", "threads", "depth", "reason"])];
    for (text, names) in groups {
        let cells = text.split('\t').map(str::to_owned);
        rows.push(std::iter::once(together(&names)).chain(cells).collect());
    }
    let mut out = indented_columns(&rows);
    let deeper = |pair: &Pair| {
        let start = &pair.start;
        u64::from(start.threads) * u64::from(start.depth) > start.in_flight
    };
    if used.iter().any(deeper) {
        out.push_str(
            "  Depth is 4 or more, so that a thread reads a block while others are copied: \
             threads x\n  depth may exceed the I/Os in flight that the storage needs.\n",
        );
    }
    out
}

fn network(pairing: &Pairing) -> String {
    let mut rows = Vec::new();
    for pair in pairing.pairs.iter().filter(|pair| !pair.network.is_empty()) {
        let word = |given: &Given| {
            let nic = given.nic.as_deref().unwrap_or("?");
            format!("{} over {nic} ({})", given.name, distance(given))
        };
        rows.push(vec![pair.gpu.clone().unwrap_or_default(), list(&pair.network, word)]);
    }
    let mut out = indented_columns(&rows);
    for unused in &pairing.unused_nics {
        let names = match unused.interfaces.as_slice() {
            [] => unused.nic.clone(),
            interfaces => format!("{} ({})", unused.nic, interfaces.join(" ")),
        };
        out.push_str(&format!(
            "  {names} is up and nearer to {}: mount an export over it for {}\n",
            together(&unused.gpus),
            if unused.gpus.len() == 1 { "it" } else { "them" }
        ));
    }
    out
}

fn links(all: &[SharedLink]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut rows = vec![words(&["link above", "", "of", "when", "enough"])];
    for link in all {
        let text = link.link.as_ref().map_or("unknown".to_owned(), crate::topo::Link::text);
        let when = match link.when {
            When::Always => "always",
            When::ByHostMemory => "only through host memory",
        };
        let carries = link.link.as_ref().and_then(|link| link.bytes_per_second);
        let enough = match (link.enough, link.need_bytes_per_second, carries) {
            (Some(true), Some(need), Some(most)) => {
                format!("yes: at most {} of {}", rate(need), rate(most))
            }
            (Some(false), Some(need), Some(most)) => {
                format!("! no: up to {}, carries {}", rate(need), rate(most))
            }
            _ => "not known".to_owned(),
        };
        let gpus = together(&link.gpus);
        rows.push(vec![short(&link.above).to_owned(), text, gpus, when.to_owned(), enough]);
    }
    indented_columns(&rows)
}

fn not_used(pairing: &Pairing) -> Vec<Vec<String>> {
    pairing.not_used.iter().map(|one| vec![one.name.clone(), one.why.clone()]).collect()
}
