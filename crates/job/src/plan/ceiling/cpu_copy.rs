//! The ceiling of the processors: copies between memory and memory of the job's blocks by the job's
//! threads. A buffered read or write is such a copy between the page cache and the ring, so no path
//! can be faster through the page cache. It is no load: the run makes the copies itself.

use gpuio_base::units::format_bytes;
use gpuio_record::{CeilingKind, CeilingSource, DirectMode};

use super::{CeilingContext, CeilingEntry, Same, Want, largest_block};

pub(super) const ENTRY: CeilingEntry =
    CeilingEntry { kind: CeilingKind::CpuCopy, plan, load: None };

/// Engines whose buffered I/O is copied by the calling thread itself.
const ON_CALLER: [&str; 2] = ["psync", "mmap"];

fn plan(context: &CeilingContext<'_>) -> Vec<Want> {
    let job = context.job;
    let moves = context.path.uses_engine() && job.engine.actual != "null";
    if job.direct != DirectMode::Buffered || !moves {
        return Vec::new();
    }
    let mut plan = context.ceiling(CeilingKind::CpuCopy, format!("cpu copy of {}", job.name));
    let block = format_bytes(largest_block(job));
    plan.what = format!("copies of {block} from memory into rings as large as the job's");
    if !ON_CALLER.contains(&job.engine.actual.as_str()) {
        let engine = &job.engine.actual;
        let why = format!(
            "engine {engine} may copy on threads of its own or the kernel's, as many as it likes: \
             the job's threads alone are no bound"
        );
        plan.source = CeilingSource::Absent { why };
    }
    let cpus: Vec<_> = job.workers.iter().map(|worker| &worker.cpus).collect();
    let same = format!("{} {} {block} {cpus:?}", job.threads, job.depth);
    let same = format!("{same} {} {:?}", job.size_bytes, plan.source);
    vec![Want { plan, same: Same::Thing(same) }]
}
