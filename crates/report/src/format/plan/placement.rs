//! Settings that a job file cannot have, as comments: GPUs, targets, the placement of every thread.

use std::collections::BTreeMap;

use gpuio_base::units::{format_bytes, format_cpu_list};
use gpuio_record::{Gpu, GuardNote, JobPlan, Region, TargetKind, TargetPlan, WorkerPlan};

use super::comment;

/// Files and threads of a job that have a line each; of more only the first few have.
const LINES_MOST: usize = 16;
/// Those few; also the parts of files in the line of a thread.
const FIRST: usize = 4;

/// How many of `all` have a line, where the job is one of many or not.
fn lines_of(all: usize, is_one_of_many: bool) -> usize {
    match is_one_of_many {
        true if all > 2 => 1,
        false if all > LINES_MOST => FIRST,
        _ => all,
    }
}

pub(super) fn write(out: &mut String, job: &JobPlan, is_one_of_many: bool) {
    comment(out, &format!("salt of the pattern: {:#018x}", job.salt));
    for gpu in &job.gpus {
        comment(out, &gpu_words(gpu));
    }
    if let Some(via) = &job.via {
        let why = via.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        comment(out, &format!("via {}{why}", gpu_words(&via.gpu)));
    }
    let each = lines_of(job.targets.len(), is_one_of_many);
    for target in &job.targets[..each] {
        comment(out, &target_words(target));
    }
    for line in rest_words(&job.targets[each..]) {
        comment(out, &line);
    }
    let (first, rest) = job.workers.split_at(lines_of(job.workers.len(), is_one_of_many));
    for worker in first {
        comment(out, &worker_words(job, worker));
    }
    if let Some(last) = rest.last() {
        comment(out, &format!("and {} more, the last {}", rest.len(), worker_words(job, last)));
    }
}

fn gpu_words(gpu: &Gpu) -> String {
    let unsaid = gpu.software && !gpu.name.contains("software GPU");
    let kind = if unsaid { " (software GPU)" } else { "" };
    let node = gpu.numa_node.map(|node| format!(", NUMA node {node}")).unwrap_or_default();
    let memory = format_bytes(gpu.memory_bytes);
    format!("GPU {}: {}{kind}, {memory}, {}, {}{node}", gpu.index, gpu.name, gpu.pci, gpu.uuid)
}

fn kind_word(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
    }
}

fn guard_words(guard: GuardNote) -> &'static str {
    match guard {
        GuardNote::Make => "missing, will be created",
        GuardNote::Ours => "created by gpuio, used as it is",
        GuardNote::Remake => "created by gpuio, will be created again",
        GuardNote::Changed => "created by gpuio and changed since, only read",
        GuardNote::ForeignReadOnly => "not created by gpuio, only read",
        GuardNote::ForeignOverwrite => {
            "not created by gpuio, WILL BE OVERWRITTEN as a flag \
            allows"
        }
    }
}

fn target_words(target: &TargetPlan) -> String {
    let (kind, guard) = (kind_word(target.kind), guard_words(target.guard));
    let length = format_bytes(target.length_bytes);
    format!("{kind} {}: {length}, number {}, {guard}", target.path, target.file_number)
}

/// Targets that have no line of their own, together by what happens to them.
fn rest_words(rest: &[TargetPlan]) -> impl Iterator<Item = String> {
    let mut alike: BTreeMap<(&str, &str), (usize, u64, &TargetPlan)> = BTreeMap::new();
    for target in rest {
        let key = (kind_word(target.kind), guard_words(target.guard));
        let (count, bytes, last) = alike.entry(key).or_insert((0, 0, target));
        (*count, *bytes, *last) = (*count + 1, bytes.saturating_add(target.length_bytes), target);
    }
    alike.into_iter().map(|((kind, guard), (count, bytes, last))| {
        let bytes = format_bytes(bytes);
        format!("and {count} more, the last {kind} {}: {bytes} together, {guard}", last.path)
    })
}

fn worker_words(job: &JobPlan, worker: &WorkerPlan) -> String {
    let mut words = Vec::new();
    if worker.cpus.is_empty() {
        words.push("any CPU".to_owned());
    } else {
        words.push(format!("CPUs {}", format_cpu_list(&worker.cpus)));
    }
    words.extend(worker.numa_node.map(|node| format!("NUMA node {node}")));
    if let Some(position) = worker.gpu {
        let gpu = usize::try_from(position).ok().and_then(|position| job.gpus.get(position));
        words.extend(gpu.map(|gpu| format!("GPU {}", gpu.index)));
    }
    let position = worker.placed_by.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let mut words = vec![words.join(", ") + &position];
    let (first, rest) = worker.regions.split_at(worker.regions.len().min(FIRST));
    words.extend(first.iter().map(|region| region_words(job, region)));
    if !rest.is_empty() {
        let bytes = worker.regions.iter().map(|region| region.length);
        let bytes = format_bytes(bytes.fold(0, u64::saturating_add));
        let all = worker.regions.len();
        words.push(format!("and {} more, the {all} together {bytes}", rest.len()));
    }
    words.push(format!("seed {}", worker.seed));
    format!("thread {}: {}", worker.thread, words.join(", "))
}

fn region_words(job: &JobPlan, region: &Region) -> String {
    let target = usize::try_from(region.target).ok().and_then(|position| job.targets.get(position));
    let path = target.map_or("?", |target| target.path.as_str());
    let (length, offset) = (format_bytes(region.length), format_bytes(region.offset));
    let stripe = region.stripe.map(|stripe| {
        let [block, stride] = [stripe.block_bytes, stripe.stride_bytes].map(format_bytes);
        format!(" in blocks of {block} every {stride}")
    });
    format!("{length} at {offset}{} of {path}", stripe.unwrap_or_default())
}
