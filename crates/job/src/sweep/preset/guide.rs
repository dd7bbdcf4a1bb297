//! The tables of NVIDIA's guide (GPUDirect Storage Benchmarking and Configuration Guide): 4 to 128
//! threads against IOPS and latency by the direct path, by block size. Near against far GPU:
//! `--vary gpu=0,1`.

use super::Preset;

pub(super) const PRESET: Preset = Preset {
    name: "guide",
    summary: "threads against IOPS and latency, as in NVIDIA's guide; add --vary gpu=NEAR,FAR",
    note: "",
    fallbacks: &["staged", "host"],
    keys: &[("path", "gds"), ("rw", "randread"), ("runtime", "10s"), ("ramp", "1s")],
    axes: &["bs=4k,64k,1M", "threads=4..128*2"],
    needs: &[],
    repeats: 3,
    routes: false,
};
