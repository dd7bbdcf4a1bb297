//! Lines about jobs with several GPUs: what each moved, and what went through another.

use gpuio_base::document::Section;
use gpuio_record::{
    FanOutResult, GpuResult, InitiatedResult, JobResult, Record, SegmentBytes, ViaResult,
};

use super::of_jobs;
use crate::number::{bytes, throughput};
use crate::workload::jobs;

/// A line per job whose threads used several GPUs.
pub(super) fn parts(record: &Record) -> Section {
    let part =
        |gpu: &GpuResult| format!("GPU {} {} in {} I/Os", gpu.index, bytes(gpu.bytes), gpu.ios);
    let many = jobs(record).filter(|(_, job)| job.gpus.len() > 1);
    let rows = many.map(|(plan, job)| {
        let parts: Vec<String> = job.gpus.iter().map(part).collect();
        (plan.name.as_str(), parts.join(", "))
    });
    of_jobs(record, "by GPU:", rows)
}

/// A line per job whose bytes went through another GPU.
pub(super) fn intermediate(record: &Record) -> Section {
    let rows = jobs(record).filter_map(|(plan, job)| {
        let via = job.via.as_ref()?;
        Some((plan.name.as_str(), segments(via)))
    });
    of_jobs(record, "through another GPU, ramp included:", rows)
}

fn segments(via: &ViaResult) -> String {
    let gpu = via.gpu;
    let mut words = Vec::new();
    let moved = |segment: &SegmentBytes| segment.host_near_bytes + segment.near_far_bytes > 0;
    if moved(&via.read) {
        let SegmentBytes { host_near_bytes, near_far_bytes } = via.read;
        let (first, second) = (bytes(host_near_bytes), bytes(near_far_bytes));
        words.push(format!(
            "{first} from the host to GPU {gpu}, {second} from there to the \
            destination"
        ));
    }
    if moved(&via.write) {
        let SegmentBytes { host_near_bytes, near_far_bytes } = via.write;
        let (first, second) = (bytes(near_far_bytes), bytes(host_near_bytes));
        words.push(format!("{first} to GPU {gpu}, {second} from there to the host"));
    }
    if words.is_empty() {
        words.push(format!("nothing went through GPU {gpu}"));
    }
    if via.through_host {
        words.push("copies between the GPUs went through host memory".to_owned());
    }
    words.join("; ")
}

/// A line per job that read blocks once and placed them in several GPUs.
pub(super) fn fanned_out(record: &Record) -> Section {
    let rows = jobs(record).filter_map(|(plan, job)| {
        let fan_out = job.fan_out.as_ref()?;
        Some((plan.name.as_str(), placed(job, fan_out)))
    });
    of_jobs(record, "read once, placed in several GPUs:", rows)
}

/// A line per job whose I/O the GPU started.
pub(super) fn initiated(record: &Record) -> Section {
    let rows = jobs(record).filter_map(|(plan, job)| {
        let InitiatedResult { entries, commands, rings } = job.initiated?;
        let words = format!("{entries} of {commands} I/Os through {rings} rings of io_uring");
        Some((plan.name.as_str(), words))
    });
    of_jobs(record, "started by the GPU, ramp included:", rows)
}

fn placed(job: &JobResult, fan_out: &FanOutResult) -> String {
    let mut words = format!(
        "{} read at {}; {} placed in {} GPUs at {}; ramp included, {} from the host and {} from \
         GPU to GPU",
        bytes(job.read.bytes),
        throughput(job.read.bytes_per_s),
        bytes(fan_out.placed_bytes),
        fan_out.gpus,
        throughput(fan_out.placed_bytes_per_s),
        bytes(fan_out.from_host_bytes),
        bytes(fan_out.between_gpus_bytes)
    );
    if fan_out.through_host {
        words.push_str("; copies between the GPUs went through host memory");
    }
    words
}
