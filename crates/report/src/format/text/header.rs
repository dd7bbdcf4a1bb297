//! The lines above the table: what, when, where.

use gpuio_record::facts::{BlockFacts, HostFacts, TargetStorage};
use gpuio_record::{DirectMode, EndedHow, Record};

use super::{PARAGRAPH_WIDTH, SOFTWARE_GPU};
use crate::number::bytes;
use crate::workload::jobs;
use crate::wrap::paragraph;

pub(super) fn render(record: &Record, width: u16) -> String {
    let wide = width.min(PARAGRAPH_WIDTH);
    let mut out = String::new();
    if record.plan.software_gpu {
        let text = "no hardware GPU was used. The figures below are those of host memory and CPU \
            threads; never compare them with those of a GPU.";
        out.push_str(&paragraph("SOFTWARE GPU: ", text, wide));
    }
    let tool = &record.tool;
    let first = format!("{} {}  {}", tool.name, tool.version, to_the_second(&record.started_at));
    out.push_str(&paragraph(&format!("{first}  "), &host(&record.host), width));
    if let Some(name) = &record.plan.name {
        out.push_str(&paragraph("run:     ", name, wide));
    }
    if let Some(ranks) = super::ranks::headline(record) {
        out.push_str(&paragraph("ranks:   ", &ranks, wide));
    }
    if !record.command.is_empty() {
        out.push_str(&paragraph("command: ", &record.command.join(" "), wide));
    }
    for target_storage in &record.storage {
        out.push_str(&paragraph("storage: ", &storage(target_storage), wide));
    }
    if let Some(modes) = direct_modes(record) {
        out.push_str(&paragraph("opened:  ", &modes, wide));
    }
    out.push_str(&chosen_paths(record, wide));
    for gpu in gpus(record) {
        out.push_str(&paragraph("GPU:     ", &gpu, wide));
    }
    out.push_str(&ended(record, wide));
    out
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

/// Direct or buffered, as read from the descriptors; if jobs differ, the smaller group is named.
fn direct_modes(record: &Record) -> Option<String> {
    const DIRECT: &str = "direct (O_DIRECT)";
    const BUFFERED: &str = "buffered (page cache)";
    let names = |mode| {
        let jobs = record.jobs.iter().filter(|job| job.direct_actual == mode);
        jobs.map(|job| job.name.as_str()).collect::<Vec<&str>>()
    };
    let (direct, buffered) = (names(DirectMode::Direct), names(DirectMode::Buffered));
    match (direct.as_slice(), buffered.as_slice()) {
        ([], []) => None,
        (_, []) => Some(DIRECT.to_owned()),
        ([], _) => Some(BUFFERED.to_owned()),
        (direct, few) if few.len() <= direct.len() => {
            Some(format!("{DIRECT}, but {BUFFERED} in {}", few.join(", ")))
        }
        (few, _) => Some(format!("{BUFFERED}, but {DIRECT} in {}", few.join(", "))),
    }
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
fn unfinished(record: &Record, width: u16) -> String {
    let next = record.plan.jobs.get(record.jobs.len());
    let partial = record.jobs.iter().any(|job| job.ended != EndedHow::Complete);
    let next = match next {
        _ if partial => "during the jobs that are marked partial".to_owned(),
        Some(job) => {
            format!("during {} (path {}) or just before it", job.name, job.path.choice.actual)
        }
        None => "after its last job".to_owned(),
    };
    let figures = match partial {
        true => "their figures are those until then; those of other jobs are complete.",
        false => "the figures of the jobs below are complete.",
    };
    let text = format!(
        "the run was not finished when this was saved. If its process has ended, it ended {next}; \
         {figures}"
    );
    paragraph("UNFINISHED: ", &text, width)
}

/// Paths that `auto` chose, each with its reason once.
fn chosen_paths(record: &Record, width: u16) -> String {
    let mut chosen: Vec<(String, Vec<&str>)> = Vec::new();
    for job in record.plan.jobs.iter().filter(|job| job.path.choice.requested == "auto") {
        let why = job.path.choice.why.as_deref().unwrap_or("no reason was recorded");
        let line = format!("auto → {}: {why}", job.path.choice.actual);
        match chosen.iter_mut().find(|(same, _)| *same == line) {
            Some((_, names)) => names.push(&job.name),
            None => chosen.push((line, vec![&job.name])),
        }
    }
    let one = chosen.len() == 1;
    let line = |(line, names): (String, Vec<&str>)| match one {
        true => paragraph("path:    ", &line, width),
        false => paragraph("path:    ", &format!("{}: {line}", names.join(", ")), width),
    };
    chosen.into_iter().map(line).collect()
}

/// Whether the run is complete; prominent if not.
fn ended(record: &Record, width: u16) -> String {
    let text = match record.ended {
        EndedHow::Complete => String::new(),
        EndedHow::Interrupted => {
            let text = "interrupted before its end; every figure covers only the completed part.";
            paragraph("PARTIAL: ", text, width)
        }
        EndedHow::Failed => {
            let text = "stopped by errors; figures cover only the completed part. See the \
                failures.";
            paragraph("FAILED:  ", text, width)
        }
        EndedHow::Unfinished => unfinished(record, width),
    };
    let missing: Vec<&str> =
        record.plan.jobs.iter().skip(record.jobs.len()).map(|job| job.name.as_str()).collect();
    if missing.is_empty() {
        return text;
    }
    text + &paragraph("NOT RUN: ", &missing.join(", "), width)
}
