//! A first look.

use super::Preset;

pub(super) const PRESET: Preset = Preset {
    name: "quick",
    summary: "random reads by block size and depth, a second each: a first impression",
    note: "",
    fallbacks: &[],
    keys: &[("rw", "randread"), ("runtime", "1s"), ("ramp", "100ms")],
    axes: &["bs=4k,64k,1M", "depth=1,8,32"],
    needs: &[],
    repeats: 1,
    routes: false,
};
