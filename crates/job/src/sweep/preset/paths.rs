//! Compares data paths into GPU memory by block size: the gain of a direct path with small and
//! large blocks.

use super::Preset;

pub(super) const PRESET: Preset = Preset {
    name: "paths",
    summary: "block size by path: the gain of a direct path with small and large blocks, and CPU \
        use",
    note: "",
    fallbacks: &[],
    keys: &[("rw", "randread"), ("runtime", "5s"), ("ramp", "500ms"), ("threads", "4")],
    axes: &["bs=4k..16M*4", "path=host,staged,gather,gds"],
    needs: &[],
    repeats: 3,
    routes: false,
};
