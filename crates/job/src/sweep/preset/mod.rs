//! Predefined sweeps.

mod routing;

pub use routing::{is_route, routes};

/// A predefined sweep. Axes and keys on the command line replace its own.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    /// One line: the question that it answers.
    pub summary: &'static str,
    /// Note on its results; may be empty.
    pub note: &'static str,
    /// Paths to use instead of the one in `keys`, the first that can run here; empty if it is never
    /// replaced.
    pub fallbacks: &'static [&'static str],
    /// Keys and values of the load that all points share.
    pub keys: &'static [(&'static str, &'static str)],
    /// Axes, as `--vary` takes them, slowest first.
    pub axes: &'static [&'static str],
    /// Axes that the command line must give, each with the reason.
    pub needs: &'static [(&'static str, &'static str)],
    /// Default number of runs per point.
    pub repeats: u32,
    /// Whether its points are routes to near and far GPUs, which depend on the machine ([`routes`],
    /// [`is_route`]).
    pub routes: bool,
}

const PLAIN: Preset = Preset {
    name: "",
    summary: "",
    note: "",
    fallbacks: &[],
    keys: &[],
    axes: &[],
    needs: &[],
    repeats: 3,
    routes: false,
};

pub const PRESETS: [Preset; 7] = [
    Preset {
        name: "quick",
        summary: "random reads by block size and depth, a second each: a first impression",
        keys: &[("rw", "randread"), ("runtime", "1s"), ("ramp", "100ms")],
        axes: &["bs=4k,64k,1M", "depth=1,8,32"],
        repeats: 1,
        ..PLAIN
    },
    // The tables of NVIDIA's guide (GPUDirect Storage Benchmarking and Configuration Guide): 4 to
    // 128 threads against IOPS and latency by the direct path, by block size. Near against far GPU:
    // `--vary gpu=0,1`.
    Preset {
        name: "guide",
        summary: "threads against IOPS and latency, as in NVIDIA's guide; add --vary gpu=NEAR,FAR",
        fallbacks: &["staged", "host"],
        keys: &[("path", "gds"), ("rw", "randread"), ("runtime", "10s"), ("ramp", "1s")],
        axes: &["bs=4k,64k,1M", "threads=4..128*2"],
        ..PLAIN
    },
    Preset {
        name: "paths",
        summary: "block size by path: the gain of a direct path with small and large blocks, and \
            CPU use",
        keys: &[("rw", "randread"), ("runtime", "5s"), ("ramp", "500ms"), ("threads", "4")],
        axes: &["bs=4k..16M*4", "path=host,staged,gather,gds"],
        ..PLAIN
    },
    Preset {
        name: "matrix",
        summary: "each mount or drive with each GPU, and how far each is below its ceiling",
        keys: &[
            ("rw", "read"),
            ("bs", "1M"),
            ("threads", "4"),
            ("runtime", "5s"),
            ("ramp", "500ms"),
            ("ceilings", "1s"),
        ],
        needs: &[
            ("target", "the storage: --vary target=/mnt/a,/mnt/b or target=/dev/nvme0n1,…"),
            ("gpu", "the GPUs: --vary gpu=0,1"),
        ],
        ..PLAIN
    },
    // A client is a thread with a file of its own and one I/O at a time, as each of gdsio's is.
    // Threads, not processes: a mount has one set of connections to its server (nfs(5), "nconnect")
    // that all processes of the host share, so that a second process adds nothing that a second
    // thread does not. Clients on other hosts are another measurement and not driven.
    Preset {
        name: "clients",
        summary: "threads of this host, each with a file of its own: where a mount's rate stops \
            growing; needs --directory /mnt/…",
        note: "All clients were threads of this host. The rate for several hosts at once needs \
            another measurement.",
        keys: &[("depth", "1"), ("runtime", "5s"), ("ramp", "500ms")],
        axes: &["rw=read,write", "bs=64k,1M", "threads=1..64*2"],
        ..PLAIN
    },
    // A quick table of figures, for which NVIDIA's guide has gdsbench, a wrapper around gdsio. The
    // guide shows none of its tables: directions, sizes and threads are our choice. gdsio's threads
    // have one I/O each.
    Preset {
        name: "gdsbench",
        summary: "reads and writes, sequential and random, direct and through host memory: a quick \
            table, as from gdsbench",
        keys: &[("threads", "16"), ("depth", "1"), ("runtime", "2s"), ("ramp", "200ms")],
        axes: &["rw=read,write,randread,randwrite", "bs=4k,64k,1M", "path=gds,staged"],
        repeats: 1,
        ..PLAIN
    },
    routing::PRESET,
];

pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_read() {
        for preset in &PRESETS {
            assert!(preset.repeats > 0 && !preset.summary.is_empty());
            for axis in preset.axes {
                crate::sweep::Axis::parse(axis).unwrap();
            }
        }
        let guide = preset("guide").unwrap();
        let threads = crate::sweep::Axis::parse(guide.axes[1]).unwrap().values;
        assert_eq!(threads, ["4", "8", "16", "32", "64", "128"]);
        assert_eq!(guide.keys[0], ("path", "gds"));
        assert_eq!(preset("paths").unwrap().name, "paths");
        assert!(preset("path").is_none());
    }
}
