//! Ways into GPU memory beside each other, by block size: how large the gain of a direct way is at
//! small blocks, and how it goes at large ones.

use super::Preset;

pub(super) const PRESET: Preset = Preset {
    name: "paths",
    summary: "block size by path: what a direct way gains at small blocks and large, and its CPUs",
    note: "",
    fallbacks: &[],
    keys: &[("rw", "randread"), ("runtime", "5s"), ("ramp", "500ms"), ("threads", "4")],
    axes: &["bs=4k..16M*4", "path=host,staged,gather,gds"],
    needs: &[],
    repeats: 3,
    routes: false,
};
