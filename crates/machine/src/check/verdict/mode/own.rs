//! gpuio's own paths into GPU memory.

use super::Mode;
use crate::check::verdict::{About, Gpu, Need, Pair, gpu};

pub(super) const MODE: Mode = Mode {
    name: "gpuio",
    is: "gpuio's paths staged and gather: host memory, and GPU copies while reads run",
    source: "gpuio, docs/glossary.md, path",
    needs,
};

fn needs(pair: &Pair<'_>) -> Vec<Need> {
    match pair.gpu {
        Gpu::Real(_) => vec![gpu::real(pair), gpu::driver(pair)],
        Gpu::Software => {
            vec![Need::yes(
                About::Gpu,
                "the software GPU runs these paths: the data is correct, the speed is not a GPU's",
            )]
        }
        Gpu::None => vec![gpu::none(pair)],
    }
}
