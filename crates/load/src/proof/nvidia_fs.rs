//! NVIDIA's nvidia-fs driver, which moves bytes between storage and GPU memory for cuFile.

use gpuio_host::Root;
use gpuio_host::nvidia_fs::{self, NvidiaFsSample};

use super::verdict::{Flow, Saw};
use super::{Case, Row, Testimony, Witness, by_library, size};

pub(super) const ROW: Row = Row {
    name: "nvidia_fs",
    source: "/proc/driver/nvidia-fs/stats, all processes together",
    first: |scene| Box::new(NvidiaFs { before: read(scene.root), after: Err(String::new()) }),
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

impl Witness for NvidiaFs {
    fn again(&mut self, root: &Root) {
        self.after = read(root);
    }

    fn testify(&self, case: &Case<'_>) -> Testimony {
        let (before, after) = match (&self.before, &self.after) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => return Testimony::none(why),
        };
        let mut said = Testimony::none(String::new());
        said.before = Some(reading(before, case.flow));
        said.after = Some(reading(after, case.flow));
        let Some((read, written)) = before.delta(after) else {
            said.why = match before.counts {
                Some(true) => "its counts were reset meanwhile".to_owned(),
                _ => "it counts reads and writes only with rw_stats_enabled=1, which is not set"
                    .to_owned(),
            };
            return said;
        };
        let moved = if case.flow == Flow::Read { read } else { written };
        let library = |at: usize| by_library(&case.jobs[at]);
        said.moved = Some(moved);
        if !library(case.at) {
            said.why = "this path does not use it; what it counts is others'".to_owned();
            return said;
        }
        let (of, share) = case.share(moved, library);
        said.of = Some(of);
        said.saw = share.map_or(Saw::Nothing, Saw::NvidiaFs);
        said.why =
            format!("it moved {} of {}, to which GPU it does not say", size(moved), size(of));
        said
    }
}
