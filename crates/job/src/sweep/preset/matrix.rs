//! Each storage location with each GPU.

use super::Preset;

pub(super) const PRESET: Preset = Preset {
    name: "matrix",
    summary: "each mount or drive with each GPU, and how far each is below its ceiling",
    note: "",
    fallbacks: &[],
    keys: &[
        ("rw", "read"),
        ("bs", "1M"),
        ("threads", "4"),
        ("runtime", "5s"),
        ("ramp", "500ms"),
        ("ceilings", "1s"),
    ],
    axes: &[],
    needs: &[
        ("target", "the storage: --vary target=/mnt/a,/mnt/b or target=/dev/nvme0n1,…"),
        ("gpu", "the GPUs: --vary gpu=0,1"),
    ],
    repeats: 3,
    routes: false,
};
