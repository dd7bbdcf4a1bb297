//! Processors by NUMA node: `/proc/stat`, shares of the time that was counted.

use gpuio_host::cpu_time::CpuSample;

use crate::metric::{Change, Figure, Form, Metric, figure, milliseconds};
use crate::probe::{Eye, Probe, Reading, Trend};

const METRICS: [Metric; 6] = [
    milliseconds("user_seconds", "Time in programs, summed over processors"),
    milliseconds("system_seconds", "Time in the kernel on their behalf"),
    milliseconds("interrupt_seconds", "Time in interrupts"),
    milliseconds("io_wait_seconds", "Idle time while some I/O was awaited"),
    milliseconds("idle_seconds", "Other idle time"),
    milliseconds("stolen_seconds", "Time that the hypervisor took"),
];

fn share(change: &Change, key: &str) -> Option<f64> {
    let all: Option<f64> = METRICS.iter().map(|metric| change.of(metric.key)).sum();
    let all = all.filter(|all| *all > 0.0)?;
    Some(change.of(key)? / all * 100.0)
}

const fn percent(
    key: &'static str,
    heading: &'static str,
    of: fn(&Change) -> Option<f64>,
) -> Figure {
    figure(key, heading, Form::Percent, true, of)
}

const FIGURES: [Figure; 6] = [
    percent("user_percent", "%user", |c| share(c, "user_seconds")),
    percent("system_percent", "%system", |c| share(c, "system_seconds")),
    percent("interrupt_percent", "%irq", |c| share(c, "interrupt_seconds")),
    percent("io_wait_percent", "%iowait", |c| share(c, "io_wait_seconds")),
    percent("stolen_percent", "%steal", |c| share(c, "stolen_seconds")),
    percent("idle_percent", "%idle", |c| share(c, "idle_seconds")),
];

pub(super) const PROBE: Probe = Probe {
    name: "cpu",
    title: "Processors",
    source: "/proc/stat",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: Some(Trend {
        heading: "%busy",
        form: Form::Percent,
        of: |c| {
            let kinds = ["user_seconds", "system_seconds", "interrupt_seconds"];
            kinds.into_iter().map(|key| share(c, key)).sum()
        },
    }),
    most: usize::MAX,
    rank: None,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let cpus = gpuio_host::cpu_time::samples(&eye.root).map_err(|error| error.to_string())?;
    if cpus.is_empty() {
        return Err("the kernel shows no /proc/stat".to_owned());
    }
    let mut groups = Vec::new();
    for node in &eye.nodes {
        let inside = |cpu: &&CpuSample| node.cpus.as_ref().is_some_and(|of| of.contains(&cpu.cpu));
        let members: Vec<&CpuSample> = cpus.iter().filter(inside).collect();
        if !members.is_empty() {
            groups.push(group(
                eye,
                format!("node {} ({} CPUs)", node.node, members.len()),
                &members,
            ));
        }
    }
    if groups.is_empty() {
        let all: Vec<&CpuSample> = cpus.iter().collect();
        groups.push(group(eye, format!("all ({} CPUs)", all.len()), &all));
    }
    Ok(groups)
}

fn group(eye: &Eye, name: String, members: &[&CpuSample]) -> Reading {
    let parts: [fn(&CpuSample) -> u64; 6] = [
        |cpu| cpu.user,
        |cpu| cpu.system,
        |cpu| cpu.interrupt,
        |cpu| cpu.io_wait,
        |cpu| cpu.idle,
        |cpu| cpu.stolen,
    ];
    let sum = |part: &fn(&CpuSample) -> u64| -> u64 { members.iter().map(|cpu| part(cpu)).sum() };
    Reading::new(name, parts.iter().map(|part| Some(eye.milliseconds(sum(part)))).collect())
}
