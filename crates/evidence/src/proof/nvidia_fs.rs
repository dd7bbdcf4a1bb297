//! NVIDIA's nvidia-fs driver, which moves bytes between storage and GPU memory for cuFile.

use gpuio_host::Root;
use gpuio_host::nvidia_fs::{self, NvidiaFsSample};

use super::verdict::{Flow, Observed};
use super::{EvidenceSource, EvidenceSourceEntry, Observation, Subject, by_library, size};

pub(super) const ENTRY: EvidenceSourceEntry = EvidenceSourceEntry {
    name: "nvidia_fs",
    source: "/proc/driver/nvidia-fs/stats, all processes together",
    first: |context| Box::new(NvidiaFs { before: read(context.root), after: Err(String::new()) }),
};

struct NvidiaFs {
    before: Result<NvidiaFsSample, String>,
    after: Result<NvidiaFsSample, String>,
}

fn read(root: &Root) -> Result<NvidiaFsSample, String> {
    match nvidia_fs::sample(root) {
        Ok(Some(sample)) => Ok(sample),
        Ok(None) => Err("the module nvidia_fs is not loaded".to_owned()),
        Err(error) => Err(error.to_string()),
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

impl EvidenceSource for NvidiaFs {
    fn again(&mut self, root: &Root) {
        self.after = read(root);
    }

    fn observe(&self, subject: &Subject<'_>) -> Observation {
        let (before, after) = match (&self.before, &self.after) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => return Observation::none(why),
        };
        let mut observation = Observation::none(String::new());
        observation.before = Some(reading(before, subject.flow));
        observation.after = Some(reading(after, subject.flow));
        let Some((read, written)) = before.delta(after) else {
            observation.why = match before.counts {
                Some(true) => "its counts were reset during the run".to_owned(),
                _ => "it counts reads and writes only with rw_stats_enabled=1, which is not set"
                    .to_owned(),
            };
            return observation;
        };
        let moved = if subject.flow == Flow::Read { read } else { written };
        let library = |at: usize| by_library(&subject.jobs[at]);
        observation.moved = Some(moved);
        if !library(subject.at) {
            observation.why = "this path does not use it; what it counts is others'".to_owned();
            return observation;
        }
        let (of, share) = subject.share(moved, library);
        observation.of = Some(of);
        observation.observed = share.map_or(Observed::Nothing, Observed::NvidiaFs);
        observation.why =
            format!("it moved {} of {}, to which GPU it does not say", size(moved), size(of));
        observation
    }
}
