//! `numactl -H`: NUMA nodes with processors, memory and distances.

use gpuio_record::facts::NumaNode;

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines};

pub(crate) const KIND: Kind = Kind {
    command: "numactl -H",
    gives: "NUMA nodes, CPUs, memory, distances",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines().any(|line| {
            let node = line.trim_start().starts_with("node ");
            node && (line.contains(" cpus:") || line.contains(" size:"))
                || line.trim_start().starts_with("available: ") && line.contains(" nodes (")
        })
    },
    add,
};

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut nodes: Vec<NumaNode> = Vec::new();
    let mut count = None;
    let mut columns: Vec<u32> = Vec::new();
    for (index, line) in lines(text) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| word.parse::<u32>().ok();
        let understood = match words.as_slice() {
            ["available:", nodes, ..] => {
                count = nodes.parse::<usize>().ok();
                true
            }
            ["node", "distances:"] => true,
            ["node", node, "cpus:", cpus @ ..] => {
                // `0-15 (16)` with --cpu-compress.
                let cpus = cpus.iter().filter(|word| !word.starts_with('('));
                let list = cpus.copied().collect::<Vec<&str>>().join(",").replace(",,", ",");
                let cpus = gpuio_host::parse_cpu_list(&list).ok();
                number(node).zip(cpus).is_some_and(|(node, cpus)| {
                    entry(&mut nodes, node).cpus = Some(cpus);
                    true
                })
            }
            ["node", node, key @ ("size:" | "free:"), size, unit] => {
                bytes(size, unit).zip(number(node)).is_some_and(|(bytes, node)| {
                    let node = entry(&mut nodes, node);
                    match *key {
                        "size:" => node.total_bytes = Some(bytes),
                        _ => node.free_bytes = Some(bytes),
                    }
                    true
                })
            }
            ["node", all @ ..] => {
                let all: Option<Vec<u32>> = all.iter().map(|word| number(word)).collect();
                columns = all.unwrap_or_default();
                !columns.is_empty()
            }
            [node, distances @ ..] if node.ends_with(':') && !columns.is_empty() => {
                let distances: Option<Vec<u32>> =
                    distances.iter().map(|word| number(word)).collect();
                number(node.trim_end_matches(':')).zip(distances).is_some_and(
                    |(node, distances)| {
                        entry(&mut nodes, node).distances = Some(distances);
                        true
                    },
                )
            }
            _ => false,
        };
        if !understood {
            captured.skip(CaptureError::new(index, line, 0, "a node, like node 0 cpus: 0 1 2"));
        }
        if nodes.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer nodes"));
        }
    }
    nodes.sort_by_key(|node| node.node);
    let whole = count == Some(nodes.len());
    let printed = format!("available: {} nodes", count.unwrap_or_default());
    captured.counted(KIND.command, &printed, count, nodes.len());
    // Distances are those to the nodes of the list: of a cut one they mean nothing.
    let own: Vec<u32> = nodes.iter().map(|node| node.node).collect();
    if own != columns {
        nodes.iter_mut().for_each(|node| node.distances = None);
    }
    put(captured, nodes, whole);
    Ok(())
}

fn entry(nodes: &mut Vec<NumaNode>, node: u32) -> &mut NumaNode {
    let at = nodes.iter().position(|known| known.node == node).unwrap_or_else(|| {
        nodes.push(NumaNode { node, ..NumaNode::default() });
        nodes.len() - 1
    });
    &mut nodes[at]
}

fn bytes(size: &str, unit: &str) -> Option<u64> {
    let power = match unit {
        "MB" => 20,
        "GB" => 30,
        "kB" => 10,
        _ => return None,
    };
    size.parse::<u64>().ok()?.checked_mul(1 << power)
}

/// Puts nodes among those that are known; `whole` where the text lists all.
pub(crate) fn put(captured: &mut Captured, nodes: Vec<NumaNode>, whole: bool) {
    let machine = &mut captured.machine;
    for new in nodes {
        let known = entry(&mut machine.host.numa.nodes, new.node);
        let differ = known.cpus.as_ref().zip(new.cpus.as_ref()).is_some_and(|(a, b)| a != b);
        if differ {
            let text = format!("NUMA node {} has other CPUs in a later text", new.node);
            if !captured.contradictions.contains(&text) {
                captured.contradictions.push(text);
            }
        }
        known.cpus = new.cpus.or(known.cpus.take());
        known.total_bytes = new.total_bytes.or(known.total_bytes);
        known.free_bytes = new.free_bytes.or(known.free_bytes);
        known.distances = new.distances.or(known.distances.take());
    }
    machine.host.numa.nodes.sort_by_key(|node| node.node);
    machine.listed.nodes |= whole;
}
