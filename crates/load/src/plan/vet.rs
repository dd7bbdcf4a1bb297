//! Contradictions and impossible asks, refused by name with what to do.

use gpuio_io::path;
use gpuio_record::{DirectMode, Fill, JobPlan, MemoryKind, VerifyMode};
use gpuio_spec::JobSpec;

use super::PlanError;
use super::defaults::is_gdsio;

/// A slot's length is a u32 in the kernel's interfaces, and Linux moves at most 2 GiB − 4 KiB in
/// one call (read(2)).
const BLOCK_MOST: u64 = 0x7fff_f000;
/// Threads that a plan may ask for: past this the scheduler is measured, not storage.
const THREADS_MOST: u32 = 65_536;

/// Keys that name something which does not exist on any path built in.
pub(super) fn keys(asked: &JobSpec, path: &path::Row) -> Result<(), PlanError> {
    if asked.batch.is_some() {
        let what = format!(
            "a batch size belongs to transfer types 6 and 7, and this is {} ({}); remove it",
            path.gdsio, path.name
        );
        return Err(PlanError::usage(asked, "batch", what));
    }
    if asked.rdma_url.is_some() {
        let what = "an RDMA URL needs cuFile's user-space path, which is not built into this gpuio";
        return Err(PlanError::unavailable(asked, "rdma_url", what));
    }
    if asked.mix_percent.is_some() {
        let what = "a mixed percentage (-M) belongs to the batch transfer types, which are not \
                    built into this gpuio; use rw=randrw with rwmixread";
        return Err(PlanError::unavailable(asked, "mix_percent", what));
    }
    if path.buffered_only && asked.direct == Some(true) {
        let what = format!(
            "path {} is the one through the page cache and can't be direct; use --path staged",
            path.name
        );
        return Err(PlanError::usage(asked, "direct", what));
    }
    Ok(())
}

/// The whole plan of a job against itself.
pub(super) fn plan(asked: &JobSpec, plan: &JobPlan, grain: u64) -> Result<(), PlanError> {
    let wrong = |field: &str, what: String| Err(PlanError::usage(asked, field, what));
    if plan.threads == 0 || plan.threads > THREADS_MOST {
        return wrong("threads", format!("{} threads; 1 to {THREADS_MOST} work", plan.threads));
    }
    if plan.depth == 0 || plan.depth > 65_535 {
        return wrong("depth", format!("a depth of {}; 1 to 65535 work", plan.depth));
    }
    for block in &plan.blocks {
        if block.min_bytes == 0 || block.max_bytes > BLOCK_MOST {
            let what = format!(
                "a block of {} to {} bytes; 1 byte to {BLOCK_MOST} bytes work (read(2) moves no \
                 more in one call)",
                block.min_bytes, block.max_bytes
            );
            return wrong("blocks", what);
        }
        if plan.direct == DirectMode::Direct && !(block.min_bytes.is_multiple_of(grain)
            && block.max_bytes.is_multiple_of(grain) && block.step_bytes.is_multiple_of(grain))
        {
            let what = format!(
                "O_DIRECT here needs blocks in multiples of {grain} bytes, and {} to {} step {} \
                 asks for others; use --buffered or another --bs",
                block.min_bytes, block.max_bytes, block.step_bytes
            );
            return wrong("blocks", what);
        }
    }
    direct(asked, plan, grain)?;
    slots(asked, plan)?;
    if plan.stop.bytes_per_thread == Some(0) || plan.stop.runtime_ns == Some(0) {
        return wrong("runtime_ns", "a run of no time or no bytes measures nothing".into());
    }
    if plan.verify != VerifyMode::Off && plan.fill == Fill::Random && plan.read_percent < 100 {
        let what = "random fill can't be verified; leave out --fill random or --verify";
        return wrong("fill", what.into());
    }
    if plan.verify == VerifyMode::Inline && plan.shared_files && plan.workers.is_empty() {
        return wrong("verify", "inline verification needs at least one worker".into());
    }
    Ok(())
}

fn direct(asked: &JobSpec, plan: &JobPlan, grain: u64) -> Result<(), PlanError> {
    let wrong = |field: &str, what: String| Err(PlanError::usage(asked, field, what));
    if plan.direct == DirectMode::Buffered {
        return Ok(());
    }
    if plan.engine.got == "mmap" {
        let what = "engine mmap goes through the page cache and can't be direct; use --buffered";
        return wrong("direct", what.into());
    }
    if !plan.align_bytes.is_multiple_of(grain) || !plan.offset_bytes.is_multiple_of(grain) {
        let what = format!(
            "O_DIRECT here needs offsets in multiples of {grain} bytes; alignment {} with start \
             offset {} breaks that; use --buffered",
            plan.align_bytes, plan.offset_bytes
        );
        return wrong("align", what);
    }
    if plan.skew_bytes > 0 && grain >= 4096 {
        let what = format!(
            "offsets off the 4 KiB grid need a grain below 4096 bytes, and O_DIRECT here has \
             {grain}; use {} to measure them through the page cache",
            if is_gdsio(asked) { "-O 1" } else { "--buffered" }
        );
        return wrong("unaligned", what);
    }
    Ok(())
}

fn slots(asked: &JobSpec, plan: &JobPlan) -> Result<(), PlanError> {
    let gpu_memory = matches!(plan.memory, MemoryKind::Device | MemoryKind::Vmm);
    if plan.path.choice.got == "host" && gpu_memory {
        let what = "the host path ends in host memory: --memory malloc, mmap or pinned";
        return Err(PlanError::usage(asked, "memory", what));
    }
    Ok(())
}
