//! A rule about processors: whether others had the time that the jobs needed.

use std::time::Duration;

use gpuio_base::units::human_ns;
use gpuio_record::{OTHER_CPU_SHARE, WarningKind};

use super::{Counted, GroupContext};
use crate::evidence::processors::CpuTime;

/// With more idle time than this share, a thread that wakes mostly finds a processor that is free,
/// which the kernel looks for.
const IDLE: f64 = 0.25;
/// Less time of processors is too few ticks: of 40, a share is known to about 8 %, and one of 10 %
/// is reported.
const LEAST: Duration = Duration::from_millis(400);

/// Why it is unknown whether others worked there; `None` where it is known.
pub(crate) fn unknown(counted: &Counted) -> Option<String> {
    let why = match counted.cpu {
        Some(time) if is_enough(&time) => return None,
        Some(_) => format!(
            "the run was too short, less than {} of the CPUs' time",
            human_ns(LEAST.as_secs_f64() * 1e9),
        ),
        None => "no time of the CPUs was counted in it".to_owned(),
    };
    Some(format!("whether others used the CPUs (other_cpu_time): {why}"))
}

fn is_enough(time: &CpuTime) -> bool {
    time.all >= LEAST
}

/// Work of others on the processors that this process may use.
pub(super) fn others(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let Some(time) = group.counted.cpu.filter(is_enough) else { return Vec::new() };
    let share = |of: Duration| of.as_secs_f64() / time.all.as_secs_f64();
    if share(time.programs + time.kernel + time.stolen) < OTHER_CPU_SHARE || share(time.idle) > IDLE
    {
        return Vec::new();
    }
    let ns = |of: Duration| u64::try_from(of.as_nanos()).unwrap_or(u64::MAX);
    let kind = WarningKind::OtherCpuTime {
        cpus: time.cpus,
        all_ns: ns(time.all),
        ours_ns: ns(time.ours),
        programs_ns: ns(time.programs),
        kernel_ns: ns(time.kernel),
        stolen_ns: ns(time.stolen),
    };
    vec![(None, kind)]
}
