//! gpuio's own paths into GPU memory.

use super::Mode;
use crate::check::verdict::{About, Gpu, Need, Pair, gpu as needed};

pub(super) const MODE: Mode = Mode {
    name: "gpuio",
    is: "gpuio's paths staged and gather: host memory, and GPU copies while reads run",
    source: "gpuio, docs/glossary.md, path",
    needs: gpu,
};

/// A GPU of the machine with its driver, or the software GPU.
pub(super) fn gpu(pair: &Pair<'_>) -> Vec<Need> {
    match pair.gpu {
        Gpu::Real(_) => vec![needed::real(pair), needed::driver(pair)],
        Gpu::Software => {
            vec![Need::yes(
                About::Gpu,
                "the software GPU runs these paths: the data is correct, the speed is not a GPU's",
            )]
        }
        Gpu::None => vec![needed::none(pair)],
    }
}
