//! Why a pair is as it is, and the notes on all.

use crate::topo::{Class, Topology};
use gpuio_record::facts::Machine;

use crate::pair::store::Tier;
use crate::pair::{Direction, Given, Pair, Pairing};

pub(crate) fn why(topology: &Topology, pair: &Pair) -> String {
    let Some(gpu) = pair.gpu.as_deref() else { return to_memory(pair) };
    if pair.stores.is_empty() {
        return "There is no storage for it.".to_owned();
    }
    let mut clauses: Vec<String> =
        pair.stores.iter().map(|given| clause(topology, gpu, given)).collect();
    clauses.dedup();
    let mut sharers: Vec<usize> = pair
        .stores
        .iter()
        .filter(|given| !given.shared_with.is_empty())
        .flat_map(|given| given.shared_with.iter().chain(&pair.gpu))
        .filter_map(|name| topology.find(name))
        .collect();
    sharers.sort_unstable();
    sharers.dedup();
    let names: Vec<String> =
        sharers.iter().map(|index| topology.devices[*index].name.clone()).collect();
    let shared = match names.len() {
        0 => String::new(),
        _ => format!("; shared by {}", crate::pair::format::together(&names)),
    };
    format!("{}{shared}.", capital(&clauses.join("; ")))
}

fn to_memory(pair: &Pair) -> String {
    match pair.node {
        Some(node) => format!("To host memory on NUMA node {node}, where its drive or card is."),
        None => "To host memory; the NUMA node of its drive or card is not known.".to_owned(),
    }
}

fn clause(topology: &Topology, gpu: &str, given: &Given) -> String {
    let what = match &given.nic {
        Some(nic) => format!("{nic}, over which {} goes,", given.name),
        None => list(&given.drives),
    };
    let (Some(class), Some(farthest)) = (given.class, given.farthest) else {
        return format!("the distance to {} is not known, so it was given out in turn", given.name);
    };
    if given.near < given.of {
        return format!(
            "{} of the {} drives of {} are {}, the others up to {}",
            given.near,
            given.of,
            given.name,
            class.name(),
            farthest.name()
        );
    }
    let verb = if given.nic.is_some() || given.drives.len() == 1 { "is" } else { "are" };
    format!("{what} {verb} {}", route_text(topology, gpu, given, class))
}

/// `under one switch, 2c:00.0`.
fn route_text(topology: &Topology, gpu: &str, given: &Given, class: Class) -> String {
    let part = given.drives.first().or(given.nic.as_ref());
    let indices = topology.find(gpu).zip(part.and_then(|part| topology.find(part)));
    let route = indices.and_then(|(gpu, part)| topology.route(gpu, part));
    let meets = route.and_then(|route| route.meets.as_deref()).map(crate::pair::format::short);
    match (class, meets) {
        (Class::Pix | Class::Pxb, Some(meets)) => {
            format!("{}, below switch {meets}", class.name())
        }
        (class, _) => {
            format!("{}, through {}: nothing nearer is left", class.name(), class.meaning())
        }
    }
}

/// The first few names.
fn list(names: &[String]) -> String {
    match names {
        [] => "its drive".to_owned(),
        [one] => one.clone(),
        [first, second] => format!("{first} and {second}"),
        [first, .., last] => format!("{first} to {last} ({} drives)", names.len()),
    }
}

fn capital(text: &str) -> String {
    let names_device = ["nvme", "mlx", "sd", "vd", "md"].iter().any(|name| text.starts_with(name));
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !names_device => first.to_uppercase().chain(chars).collect(),
        _ => text.to_owned(),
    }
}

/// Why texts of tools show no storage for a job.
fn nothing(machine: &Machine, direction: Direction) -> &'static str {
    match (machine.block.is_empty(), machine.mounts.is_empty(), direction) {
        (true, true, _) => {
            "Drives and mounts are not among what was read, so no storage is known: `lsblk` and \
             `mount` show them."
        }
        (false, true, Direction::Write) => {
            "No mount is among what was read, and writes to raw drives would destroy what they \
             hold, so there is no write job: `mount` shows file systems on them; --rw read plans \
             reads of the drives themselves."
        }
        (true, false, _) => {
            "No mount that was read has a known device or server to read from: `lsblk` shows the \
             devices."
        }
        _ => "No drive or mount among what was read can be used.",
    }
}

/// Notes on the whole answer.
pub(crate) fn notes(
    machine: &Machine,
    topology: &Topology,
    pairing: &mut Pairing,
    tier: Option<Tier>,
) {
    let direction = pairing.load.direction;
    let mut add = |note: &str| pairing.notes.push(note.to_owned());
    if machine.gpus.is_empty() {
        add("No NVIDIA GPU is known: storage is paired with host memory.");
    }
    match tier {
        None if machine.listed.block => add("There is no storage that could be used."),
        None => add(nothing(machine, direction)),
        Some(Tier::System) => add(
            "Only the system's own disk is there: its figures have the system's I/O in them, and a \
             write job competes with it.",
        ),
        Some(Tier::Raw) => add(
            "No file system is mounted on data drives: jobs read raw devices, which takes root. \
             Writes would destroy what they hold, so there is no write job.",
        ),
        Some(Tier::Files | Tier::Network) => {}
    }
    if machine.block.iter().any(|device| !device.facts.has_kernel_name()) {
        add("Drives with an @ are known by their PCI address alone, and no job can open them: \
             `ls -l /dev/disk/by-path` shows their names.");
    }
    if machine.mounts.is_empty() && !machine.block.is_empty() {
        add("No mount is known: a drive that shows no user may have one.");
    }
    let by_name = |mount| machine.server_route(mount).is_some_and(|path| path.by_name);
    if machine.mounts.iter().any(by_name) {
        add(
            "The routes to servers are not known: cards of network mounts are those that the mount \
             points are named after. `ip route` would show them.",
        );
    }
    let coherent: Vec<&str> = topology.coherent.iter().map(|one| one.gpu.as_str()).collect();
    if !coherent.is_empty() {
        add(&format!(
            "{}: host memory is reached over {}, not over PCIe, so a path through host memory is \
             not held back by the GPU's PCIe link.",
            coherent.join(", "),
            topology.coherent[0].link
        ));
    }
    if !topology.unplaced.is_empty() {
        let names = topology.unplaced.join(", ");
        add(&format!(
            "The position of these is not known, so they count as far from all: \
                      {names}."
        ));
    }
}
