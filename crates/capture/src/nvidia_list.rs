//! `nvidia-smi -L`: a line for each GPU with name and UUID, instances of MIG below it.

use gpuio_record::facts::{Fact, GpuFacts};

use crate::{CaptureError, Captured, Kind, MOST_GPUS, lines, merge, mig};

pub(crate) const KIND: Kind = Kind {
    command: "nvidia-smi -L",
    gives: "GPUs by name and UUID, MIG instances",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| gpu(line).is_some()),
    add,
};

const WHY: &str = "nvidia-smi -L does not report it";

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut gpus: Vec<GpuFacts> = Vec::new();
    for (index, line) in lines(text) {
        match gpu(line) {
            Some(gpu) => gpus.push(gpu),
            None if mig::instance(line).is_some() => {
                let above = gpus.last().and_then(|gpu| gpu.index.known().copied());
                if let Some((gpu, profile)) = above.zip(mig::instance(line)) {
                    mig::put(captured, KIND.command, gpu, profile);
                }
            }
            None => {
                let wanted = "a GPU, like GPU 0: NVIDIA A100 (UUID: GPU-…)";
                captured.skip(CaptureError::new(index, line, 0, wanted));
            }
        }
        if gpus.len() > MOST_GPUS {
            return Err(CaptureError::new(index, line, 0, "fewer GPUs"));
        }
    }
    merge::gpus(captured, gpus);
    Ok(())
}

/// `GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-…)`.
fn gpu(line: &str) -> Option<GpuFacts> {
    let (number, rest) = line.trim().strip_prefix("GPU ")?.split_once(": ")?;
    let (name, uuid) = rest.split_once(" (UUID: ")?;
    Some(GpuFacts {
        index: Fact::Known(number.parse().ok()?),
        name: Fact::Known(name.trim().to_owned()),
        uuid: Fact::Known(uuid.trim_end().trim_end_matches(')').to_owned()),
        nvlinks: Fact::unknown(WHY),
        persistence: Fact::unknown(WHY),
        ..GpuFacts::default()
    })
}
