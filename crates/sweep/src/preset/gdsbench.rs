//! A table of figures soon, which is what NVIDIA's guide has gdsbench for, a wrapper around gdsio.
//! The guide prints none of its tables: directions, sizes and threads are our choice.

use super::Preset;

pub(super) const PRESET: Preset = Preset {
    name: "gdsbench",
    summary: "reads and writes, in order and random, straight and by host memory: a table soon, as \
              gdsbench makes with gdsio",
    note: "",
    fallbacks: &[],
    // gdsio's threads have one I/O each.
    keys: &[("threads", "16"), ("depth", "1"), ("runtime", "2s"), ("ramp", "200ms")],
    axes: &["rw=read,write,randread,randwrite", "bs=4k,64k,1M", "path=gds,staged"],
    needs: &[],
    repeats: 1,
    routes: false,
};
