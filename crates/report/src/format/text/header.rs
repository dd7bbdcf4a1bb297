//! The lines above the table: what, when, where.

use std::cmp::Reverse;

use gpuio_base::document::{Item, Layout, List, Section, grouped};
use gpuio_base::units::printable_short;
use gpuio_record::facts::{BlockFacts, HostFacts, TargetStorage};
use gpuio_record::{DirectMode, EndedHow, JobPlan, JobResult, Record, RunOf};

use super::SOFTWARE_GPU;
use crate::number::bytes;
use crate::workload::jobs;
use crate::{Recheck, ranks};

/// That figures do not follow from the record's counts, where they were checked and don't.
pub(crate) fn doubt(recheck: Option<&Recheck>) -> Section {
    let mut section = Section::default();
    let doubt = recheck.and_then(Recheck::doubt);
    let doubt = doubt.map(|doubt| Item::new("DOUBTFUL", format!("{}.", printable_short(&doubt))));
    section.list(List::new(Layout::labels(8), doubt));
    section
}

/// The user of a run knows its command.
pub(super) fn section(record: &Record, screen: bool) -> Section {
    let mut section = Section::default();
    let labels = Layout::labels(8);
    if record.plan.software_gpu {
        let text = "no hardware GPU was used. The figures below are those of host memory and CPU \
            threads; never compare them with those of a GPU.";
        section.item(labels, Item::new("SOFTWARE GPU", text));
    }
    let tool = &record.tool;
    let first = format!("{} {}  {}", tool.name, tool.version, to_the_second(&record.started_at));
    section.item(
        Layout { gap: 2, wide: true, ..Layout::default() },
        Item::new(first, host(&record.host)),
    );
    let name = record.plan.name.iter().map(|name| Item::new("run", name.as_str()));
    let ranks = headline(record).map(|text| Item::new("ranks", text));
    let is_command = !screen && !record.command.is_empty();
    let command = is_command.then(|| Item::new("command", record.command.join(" ")));
    let storage = record.storage.iter().map(|one| Item::new("storage", storage(one)));
    let opened = direct_modes(record).map(|modes| Item::new("opened", modes));
    let gpus = gpus(record).into_iter().map(|gpu| Item::new("GPU", gpu));
    let one_of = one_of(record).map(|text| Item::new("one of", text));
    let items = name.chain(one_of).chain(ranks).chain(command).chain(storage).chain(opened);
    let items = items.chain(chosen_paths(record)).chain(gpus).chain(ended(record));
    section.list(List::new(labels, items));
    section
}

/// Which run of many the record is, whose best says nothing of the others: `run 2 of 3 at depth=1,
/// sweep of …`.
fn one_of(record: &Record) -> Option<String> {
    let RunOf { of, point, run, runs } = record.run_of.as_ref()?;
    let runs = runs.map_or_else(String::new, |runs| format!(" of {runs}"));
    let of = to_the_second(of);
    Some(format!("run {run}{runs} at {point}, {of}; gpuio report shows all"))
}

/// How many ranks on how many hosts, or which of them the record is of.
fn headline(record: &Record) -> Option<String> {
    if let Some(of) = &record.rank {
        return Some(format!(
            "this is the record of rank {} of {} alone (host {}, process {})",
            of.rank, of.ranks, of.host, of.pid
        ));
    }
    let all = record.ranks.as_ref()?;
    Some(format!(
        "{} on {}, started by {}; plan, storage and machine below are those of rank 0, \
         results are of all ranks",
        all.ranks,
        ranks::on(all),
        ranks::started_by(all)
    ))
}

/// The time without fractions of a second.
pub(crate) fn to_the_second(moment: &str) -> String {
    match moment.split_once('.') {
        Some((whole, rest)) => {
            let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{whole}{zone}")
        }
        None => moment.to_owned(),
    }
}

/// A short description of the machine.
pub(crate) fn host(host: &HostFacts) -> String {
    let mut words = vec![processors(host)];
    if let Some(release) = &host.kernel.release {
        words.push(format!("Linux {release}"));
    }
    words.extend(containment(host));
    words.retain(|word| !word.is_empty());
    if words.is_empty() {
        words.push("machine unknown".to_owned());
    }
    words.join(", ")
}

/// Processors and memory, as one text; empty where nothing is known.
pub(crate) fn processors(host: &HostFacts) -> String {
    let mut words = Vec::new();
    if let Some(model) = &host.cpu.model {
        words.push(model.clone());
    }
    match (&host.cpu.allowed, &host.cpu.online) {
        (Some(allowed), Some(online)) if allowed.len() < online.len() => {
            words.push(format!("{} of {} CPUs", allowed.len(), online.len()));
        }
        (_, Some(online)) => words.push(format!("{} CPUs", online.len())),
        _ => {}
    }
    if host.numa.nodes.len() > 1 {
        words.push(format!("{} NUMA nodes", host.numa.nodes.len()));
    }
    if let Some(usable) = host.memory.usable_bytes.or(host.memory.total_bytes) {
        words.push(format!("{} memory", bytes(usable)));
    }
    words.join(", ")
}

/// The container or virtual machine around it.
pub(crate) fn containment(host: &HostFacts) -> Option<String> {
    let around = &host.kernel.containment;
    let machine = || (around.hypervisor == Some(true)).then(|| "in a virtual machine".to_owned());
    around.container.as_ref().map(|name| format!("in {name}")).or_else(machine)
}

/// File system and device behind a path.
pub(crate) fn storage(target_storage: &TargetStorage) -> String {
    let mut text = target_storage.path.clone();
    match &target_storage.mount {
        Some(mount) => text.push_str(&format!(" on {} ({})", mount.fs_type, mount.mount_point)),
        None => text.push_str(" on an unknown file system"),
    }
    match (&target_storage.device, &target_storage.mount) {
        (Some(block), _) => text.push_str(&format!(", {}", device(block))),
        (None, Some(mount)) => text.push_str(&format!(", from {}", mount.source)),
        (None, None) => {}
    }
    text
}

/// A block device, with what is known of it.
pub(crate) fn device(block: &BlockFacts) -> String {
    let mut words = Vec::new();
    words.extend(block.model.clone());
    words.extend(block.transport.clone());
    words.extend(block.numa_node.map(|node| format!("NUMA node {node}")));
    words.extend(block.scheduler.as_ref().map(|name| format!("scheduler {name}")));
    if block.members.len() > 1 {
        words.push(format!("{} members", block.members.len()));
    }
    if words.is_empty() {
        block.name.clone()
    } else {
        format!("{} ({})", block.name, words.join(", "))
    }
}

/// Direct or buffered, as read from the descriptors; if jobs differ, the smaller groups are named.
fn direct_modes(record: &Record) -> Option<String> {
    let mode = |job: &JobResult| match job.direct_actual {
        DirectMode::Direct => "direct (O_DIRECT)",
        DirectMode::Buffered if job.reads_around_cache() => {
            "buffered (page cache, and O_DIRECT for what it lacked)"
        }
        DirectMode::Buffered => "buffered (page cache)",
    };
    let mut groups = grouped(record.jobs.iter().map(|job| (mode(job), job.name.as_str())));
    groups.sort_by_key(|(_, names)| Reverse(names.len()));
    let mut modes = groups.iter();
    let most = modes.next()?.0;
    let rest = modes.map(|(mode, names)| format!(", but {mode} in {}", names.join(", ")));
    Some(format!("{most}{}", rest.collect::<String>()))
}

/// Each GPU once, with the driver's CUDA version.
pub(crate) fn gpus(record: &Record) -> Vec<String> {
    let driver = record
        .driver_version
        .map(|(major, minor)| format!(", CUDA {major}.{minor}"))
        .unwrap_or_default();
    gpu_lines(record, &driver)
}

/// Each GPU once.
pub(crate) fn gpus_alone(record: &Record) -> Vec<String> {
    gpu_lines(record, "")
}

fn gpu_lines(record: &Record, driver: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (plan, _) in jobs(record) {
        let near = plan.via.as_ref().map(|via| (&via.gpu, ", on the route to the others"));
        for (gpu, role) in plan.gpus.iter().map(|gpu| (gpu, "")).chain(near) {
            let unsaid = gpu.software && !gpu.name.contains(SOFTWARE_GPU);
            let kind = if unsaid { format!(" ({SOFTWARE_GPU})") } else { String::new() };
            let node = gpu.numa_node.map(|node| format!(", NUMA node {node}")).unwrap_or_default();
            let memory = bytes(gpu.memory_bytes);
            let (index, name, pci) = (gpu.index, &gpu.name, &gpu.pci);
            let line = format!("{index} {name}{kind}, {memory}, {pci}{node}{driver}{role}");
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// The known part of an unfinished run: the jobs before its end, and the next one.
fn unfinished(record: &Record) -> String {
    let next = record.plan.jobs.get(record.jobs.len());
    let partial = record.jobs.iter().any(|job| job.ended != EndedHow::Complete);
    let next = match next {
        _ if partial => "during the jobs that are marked partial".to_owned(),
        Some(job) => {
            format!("before or during {} (path {})", job.name, job.path.choice.actual)
        }
        None => "after its last job".to_owned(),
    };
    let figures = match partial {
        true => "their figures are those until then; those of other jobs are complete.",
        false => "the figures of the jobs below are complete.",
    };
    format!(
        "the run was not finished when this was saved. If its process has ended, it ended {next}; \
         {figures}"
    )
}

/// Paths that `auto` chose, each with its reason once.
fn chosen_paths(record: &Record) -> Vec<Item> {
    let chosen = record.plan.jobs.iter().filter(|job| job.path.choice.requested == "auto");
    let chosen = grouped(chosen.map(|job| {
        let why = job.path.choice.why.as_deref().unwrap_or("no reason was recorded");
        (format!("auto → {}: {why}", job.path.choice.actual), job.name.as_str())
    }));
    let one = chosen.len() == 1;
    let item = |(line, names): (String, Vec<&str>)| match one {
        true => Item::new("path", line),
        false => Item::new("path", format!("{}: {line}", names.join(", "))),
    };
    chosen.into_iter().map(item).collect()
}

/// Whether the run is complete; prominent if not.
fn ended(record: &Record) -> Vec<Item> {
    let partial = "interrupted before its end; every figure covers only the completed part.";
    let failed = "stopped by errors; figures cover only the completed part. See the failures.";
    let mut items = match record.ended {
        EndedHow::Complete => Vec::new(),
        EndedHow::Interrupted => vec![Item::new("PARTIAL", partial)],
        EndedHow::Failed => vec![Item::new("FAILED", failed)],
        EndedHow::Unfinished => vec![Item::new("UNFINISHED", unfinished(record))],
    };
    let missing = || record.plan.jobs.iter().skip(record.jobs.len());
    // A journal has the end of a group alone, so the next one may have begun.
    let is_partial = record.jobs.iter().any(|job| job.ended != EndedHow::Complete);
    let is_open = record.ended == EndedHow::Unfinished && !is_partial;
    let next = missing().next().map(|job| job.group).filter(|_| is_open);
    let named = |job: &JobPlan| match next == Some(job.group) {
        true => format!("{} (or not to its end)", job.name),
        false => job.name.clone(),
    };
    let missing: Vec<String> = missing().map(named).collect();
    if !missing.is_empty() {
        items.push(Item::new("NOT RUN", missing.join(", ")));
    }
    items
}
