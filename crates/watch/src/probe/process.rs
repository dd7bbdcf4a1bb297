//! Processes: `/proc/PID/stat`, without threads of the kernel. 100 % is one
//! processor.

use gpuio_host::process_time::{ProcessSample, samples};

use crate::metric::{Figure, Form, Metric, figure, milliseconds};
use crate::probe::{Eye, Probe, Reading};

/// Kernel threads are remembered by number; beyond so many the memory is emptied, since numbers are
/// used again.
const MOST_REMEMBERED: usize = 1 << 16;

const METRICS: [Metric; 2] = [
    milliseconds("user_seconds", "Time in its own code"),
    milliseconds("system_seconds", "Time in the kernel"),
];

const FIGURES: [Figure; 3] = [
    figure("cpu_percent", "%CPU", Form::Percent, true, |c| {
        Some((c.rate("user_seconds")? + c.rate("system_seconds")?) * 100.0)
    }),
    figure("user_percent", "%user", Form::Percent, true, |c| Some(c.rate("user_seconds")? * 100.0)),
    figure("system_percent", "%system", Form::Percent, true, |c| {
        Some(c.rate("system_seconds")? * 100.0)
    }),
];

pub(super) const PROBE: Probe = Probe {
    name: "process",
    title: "Processes",
    source: "/proc/PID/stat",
    metrics: &METRICS,
    figures: &FIGURES,
    most: 5,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    if eye.kernels_own.len() > MOST_REMEMBERED {
        eye.kernels_own.clear();
    }
    let processes = samples(&eye.root, &mut eye.kernels_own).map_err(|error| error.to_string())?;
    let reading = |one: ProcessSample| {
        let ticks = [one.user, one.system];
        let values = ticks.map(|ticks| Some(eye.milliseconds(ticks))).to_vec();
        Reading { identity: one.began, ..Reading::new(format!("{} {}", one.pid, one.name), values) }
    };
    Ok(processes.into_iter().map(reading).collect())
}
