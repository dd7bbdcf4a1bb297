//! NVIDIA's nvidia-fs driver, which moves bytes between storage and GPU memory for cuFile.

use gpuio_host::nvidia_fs::NvidiaFsSample;

use super::{JobFlow, Observation, Source, size};
use crate::evidence::group::{Flow, by_foreign_library};
use crate::evidence::snapshot::Snapshot;
use crate::evidence::verdict::Observed;

pub(super) const SOURCE: Source = Source {
    name: "nvidia_fs",
    source: "/proc/driver/nvidia-fs/stats, all processes together",
    observe,
};

fn sample(snapshot: &Snapshot) -> Result<&NvidiaFsSample, String> {
    match &snapshot.devices.nvidia_fs {
        Some(Ok(Some(sample))) => Ok(sample),
        Some(Ok(None)) | None => Err("the module nvidia_fs is not loaded".to_owned()),
        Some(Err(error)) => Err(error.clone()),
    }
}

fn reading(sample: &NvidiaFsSample, flow: Flow) -> String {
    let direction = match flow {
        Flow::Read => sample.reads,
        Flow::Write => sample.writes,
    };
    format!(
        "n={} ok={} err={} bytes={}",
        direction.begun, direction.ok, direction.failed, direction.bytes
    )
}

fn observe(one: &JobFlow<'_>) -> Observation {
    let (before, after) = match (sample(&one.readings.before), sample(&one.readings.after)) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(why), _) | (_, Err(why)) => return Observation::none(why),
    };
    let mut observation = Observation::none(String::new());
    observation.before = Some(reading(before, one.flow));
    observation.after = Some(reading(after, one.flow));
    let Some((read, written)) = before.delta(after) else {
        observation.why = match before.counts {
            Some(true) => "its counts were reset during the run".to_owned(),
            _ => "it counts reads and writes only with rw_stats_enabled=1, which is not set"
                .to_owned(),
        };
        return observation;
    };
    let moved = if one.flow == Flow::Read { read } else { written };
    let library = |at: usize| by_foreign_library(&one.jobs[at]);
    observation.moved = Some(moved);
    if !library(one.at) {
        observation.why = "this path does not use it; what it counts is others'".to_owned();
        return observation;
    }
    let (of, share) = one.share(moved, library);
    observation.of = Some(of);
    observation.observed = share.map_or(Observed::Nothing, Observed::NvidiaFs);
    observation.why =
        format!("it moved {} of {}, to which GPU it does not report", size(moved), size(of));
    observation
}
