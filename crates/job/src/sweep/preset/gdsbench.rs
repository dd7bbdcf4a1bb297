//! A quick table of figures, for which NVIDIA's guide has gdsbench, a wrapper around gdsio. The
//! guide shows none of its tables: directions, sizes and threads are our choice.

use super::Preset;

pub(super) const PRESET: Preset = Preset {
    name: "gdsbench",
    summary: "reads and writes, sequential and random, direct and through host memory: a quick \
        table, as from gdsbench",
    note: "",
    fallbacks: &[],
    // gdsio's threads have one I/O each.
    keys: &[("threads", "16"), ("depth", "1"), ("runtime", "2s"), ("ramp", "200ms")],
    axes: &["rw=read,write,randread,randwrite", "bs=4k,64k,1M", "path=gds,staged"],
    needs: &[],
    repeats: 1,
    routes: false,
};
