//! Where each thread runs.

use gpuio_base::units::format_cpu_list;
use gpuio_record::{Gpu, Region, Via, WorkerPlan};

use super::facts::{Facts, Gpus};
use super::{PlanError, regions};
use crate::spec::{GpuWhich, JobSpec};

pub(super) fn workers(
    requested: &JobSpec,
    (threads, seed): (u32, u64),
    (gpus, via): (&[Gpu], Option<&Via>),
    laid: Vec<Vec<Region>>,
    facts: &Facts<'_>,
) -> Result<Vec<WorkerPlan>, PlanError> {
    // The first stop of the bytes is to be near: the thread's own GPU, or the one on the route
    // there.
    let (near, why) = match via {
        Some(via) => (std::slice::from_ref(&via.gpu), "the near GPU is on this node"),
        None => (gpus, "its GPU is on this node"),
    };
    let near = near_gpus(requested, near, facts);
    let first = regions::first_thread(requested, threads);
    let mut workers = Vec::with_capacity(laid.len());
    for (thread, regions) in (0..threads).zip(laid) {
        let turn = |n: usize| (n > 0).then(|| thread as usize % n);
        let node = turn(near.len()).and_then(|at| near[at].numa_node);
        let (mut cpus, numa_node, placed_by) = assign_cpus(requested, (node, why), facts)?;
        if requested.split_cpus == Some(true) && requested.cpus.is_some() {
            // The rule of fio's HOWTO: with more threads than CPUs the list begins again.
            cpus = turn(cpus.len()).map(|at| vec![cpus[at]]).unwrap_or_default();
        }
        let gpu = turn(gpus.len()).and_then(|at| u32::try_from(at).ok());
        workers.push(WorkerPlan {
            thread,
            cpus,
            numa_node,
            placed_by,
            gpu,
            regions,
            seed: worker_seed(seed, first.saturating_add(thread)),
        });
    }
    Ok(workers)
}

/// The GPUs that threads should be near to: those of the job, or on the host path those that were
/// named all the same (as gdsio's users do with `-x 1 -d N`).
fn near_gpus(requested: &JobSpec, gpus: &[Gpu], facts: &Facts<'_>) -> Vec<Gpu> {
    if !gpus.is_empty() {
        return gpus.to_vec();
    }
    let (Gpus::Present(present), Some(gpu)) = (facts.gpus, &requested.gpu) else {
        return Vec::new();
    };
    match &gpu.which {
        GpuWhich::All => present.clone(),
        GpuWhich::List(list) => {
            present.iter().filter(|gpu| list.contains(&gpu.index)).cloned().collect()
        }
        GpuWhich::Unset | GpuWhich::None => Vec::new(),
    }
}

/// A thread's CPUs (none: any), its NUMA node, and why.
type Placement = (Vec<u32>, Option<u32>, Option<String>);

/// CPUs of a thread: those requested, else those of the node requested, else those of its GPU's.
fn assign_cpus(
    requested: &JobSpec,
    (gpu_node, why): (Option<u32>, &'static str),
    facts: &Facts<'_>,
) -> Result<Placement, PlanError> {
    let allowed = facts.host.cpu.allowed.as_deref();
    let usable = |cpus: &[u32]| -> Vec<u32> {
        let ok = |cpu: &&u32| allowed.is_none_or(|allowed| allowed.contains(cpu));
        cpus.iter().filter(ok).copied().collect()
    };
    if let Some(cpus) = &requested.cpus {
        let mine = usable(cpus);
        if mine.len() < cpus.len() {
            let (allowed, cpus) =
                (format_cpu_list(allowed.unwrap_or_default()), format_cpu_list(cpus));
            let what = format!("this process may run only on CPUs {allowed}, not all of {cpus}");
            return Err(PlanError::unavailable(requested, "cpus", what));
        }
        return Ok((mine, requested.numa, Some("the CPUs were named".into())));
    }
    let node_cpus = |node: u32| {
        let nodes = &facts.host.numa.nodes;
        let found = nodes.iter().find(|n| n.node == node)?;
        Some(usable(found.cpus.as_deref().unwrap_or_default()))
    };
    if let Some(node) = requested.numa {
        let cpus = match node_cpus(node) {
            Some(cpus) if !cpus.is_empty() => cpus,
            // A kernel without NUMA has no node directories, and everything is node 0.
            None if node == 0 && facts.host.numa.nodes.is_empty() => return Ok(nowhere(node)),
            Some(_) => {
                let what = format!("this process may run on no CPU of NUMA node {node}");
                return Err(PlanError::unavailable(requested, "numa", what));
            }
            None => {
                let have: Vec<u32> = facts.host.numa.nodes.iter().map(|n| n.node).collect();
                let have = if have.is_empty() { "none".to_owned() } else { format_cpu_list(&have) };
                let what = format!("there is no NUMA node {node}; this machine has {have}");
                return Err(PlanError::unavailable(requested, "numa", what));
            }
        };
        return Ok((cpus, Some(node), Some("the NUMA node was named".into())));
    }
    if let Some(node) = gpu_node
        && let Some(cpus) = node_cpus(node).filter(|cpus| !cpus.is_empty())
    {
        return Ok((cpus, Some(node), Some(why.into())));
    }
    Ok((Vec::new(), None, None))
}

fn nowhere(node: u32) -> Placement {
    (Vec::new(), Some(node), Some("the kernel has no NUMA nodes: all CPUs".into()))
}

/// A worker's own seed: splitmix64 of job seed and thread, so that neighbours share nothing.
pub(super) fn worker_seed(seed: u64, thread: u32) -> u64 {
    let mut z = seed.wrapping_add((u64::from(thread) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
