//! What a job file cannot set, as comments: GPUs, targets, the placement of every thread.

use gpuio_record::{Gpu, GuardNote, JobPlan, Region, TargetKind, TargetPlan, WorkerPlan};
use gpuio_units::{format_bytes, format_cpu_list};

use super::comment;

pub(super) fn write(out: &mut String, job: &JobPlan) {
    comment(out, &format!("salt of the pattern: {:#018x}", job.salt));
    for gpu in &job.gpus {
        comment(out, &gpu_words(gpu));
    }
    if let Some(via) = &job.via {
        let why = via.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        comment(out, &format!("via {}{why}", gpu_words(&via.gpu)));
    }
    for target in &job.targets {
        comment(out, &target_words(target));
    }
    for worker in &job.workers {
        comment(out, &worker_words(job, worker));
    }
}

fn gpu_words(gpu: &Gpu) -> String {
    let unsaid = gpu.software && !gpu.name.contains("software GPU");
    let kind = if unsaid { " (software GPU)" } else { "" };
    let node = gpu.numa_node.map(|node| format!(", NUMA node {node}")).unwrap_or_default();
    let memory = format_bytes(gpu.memory_bytes);
    format!("GPU {}: {}{kind}, {memory}, {}, {}{node}", gpu.index, gpu.name, gpu.pci, gpu.uuid)
}

fn target_words(target: &TargetPlan) -> String {
    let kind = match target.kind {
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
    };
    let guard = match target.guard {
        GuardNote::Make => "missing, will be created",
        GuardNote::Ours => "created by gpuio, used as it is",
        GuardNote::Remake => "created by gpuio, will be created again",
        GuardNote::Changed => "created by gpuio and changed since, only read",
        GuardNote::ForeignReadOnly => "not created by gpuio, only read",
        GuardNote::ForeignOverwrite => {
            "not created by gpuio, WILL BE OVERWRITTEN as a flag \
            allows"
        }
    };
    let length = format_bytes(target.length_bytes);
    format!("{kind} {}: {length}, number {}, {guard}", target.path, target.file_number)
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
    words.extend(worker.regions.iter().map(|region| region_words(job, region)));
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
