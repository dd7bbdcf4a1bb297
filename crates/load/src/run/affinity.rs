//! Puts the calling thread where the plan wants it.

use rustix::thread::{CpuSet, sched_setaffinity};

use super::RunError;

/// Restricts the calling thread to `cpus` (sched_setaffinity(2)); an empty list changes nothing.
/// Memory that the thread touches first then comes from its own NUMA node.
pub(crate) fn pin(cpus: &[u32]) -> Result<(), RunError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        let cpu = cpu as usize;
        if cpu >= CpuSet::MAX_CPU {
            return Err(RunError::Pin { cpus: cpus.to_vec(), what: "no such CPU".into() });
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set)
        .map_err(|errno| RunError::Pin { cpus: cpus.to_vec(), what: errno.to_string() })
}
