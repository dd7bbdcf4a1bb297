//! Calls that belong to one room, and the room to ask instead.

use super::mask::is_name;

/// Needles that may appear only under some paths.
#[derive(Debug)]
pub(super) struct Ban {
    pub(super) rule: &'static str,
    needles: &'static [&'static str],
    /// Path prefixes. Tests, `fuzz/`, `model/` and `xtask/` may call anything.
    allowed: &'static [&'static str],
    pub(super) instead: &'static str,
}

pub(super) const BANS: [Ban; 4] = [
    Ban {
        rule: "clock",
        needles: &["std::time::Instant", "Instant::now", "SystemTime::now"],
        // softgpu stands in for a device, which has a clock of its own and may not use ours.
        allowed: &[
            "crates/io/src/clock.rs",
            "crates/cli/",
            "crates/load/src/run",
            "crates/softgpu/",
            // How long a kernel that may not begin is waited for.
            "crates/gpu/src/resident_copy/",
        ],
        instead: "use the clock of `io` (crates/io/src/clock.rs) or take the time as an argument",
    },
    Ban {
        rule: "environment",
        needles: &["env::var", "env::vars", "env::set_var", "env::remove_var"],
        // The software drivers are set by the environment: nothing else reaches into a library.
        // cufile's configuration is handed to NVIDIA's library in a variable, and the drop-in has
        // no caller of ours that could hand it one.
        allowed: &[
            "crates/cli/",
            "crates/softgpu/",
            "crates/softcufile/",
            "crates/cufile/",
            "crates/dropin/",
        ],
        instead: "read it in `cli` and pass the value on in `Spec`",
    },
    Ban {
        rule: "files",
        needles: &["fs::", "std::fs", "File::open", "File::create", "File::options", "OpenOptions"],
        // cufile writes the configuration that NVIDIA's library reads; its stand-in does the I/O.
        allowed: &[
            "crates/host/",
            "crates/load/",
            "crates/cli/",
            "crates/io/",
            "crates/cufile/",
            "crates/softcufile/",
            // How files come to be is what it is about.
            "crates/outfile/",
            // It moves the bytes of files that others opened.
            "crates/transfer/",
            // Its file is what it is about, and its rights are half of the matter.
            "crates/page/",
            // It reads cuFile's configuration, and writes the log that somebody asked for.
            "crates/dropin/",
        ],
        instead: "take the text or the file as an argument; `host` reads the system, `io` does I/O",
    },
    Ban {
        rule: "print",
        needles: &["println!", "eprintln!", "print!", "eprint!", "dbg!"],
        allowed: &["crates/cli/"],
        instead: "return the text or a warning in the `Record`; only `cli` prints",
    },
];

impl Ban {
    /// The needle that a line of masked code breaks this ban with.
    pub(super) fn find(&self, path: &str, code: &str) -> Option<&'static str> {
        let free = path.starts_with("xtask/")
            || path.starts_with("fuzz/")
            || path.starts_with("model/")
            || path.ends_with("/build.rs")
            || self.allowed.iter().any(|allowed| path.starts_with(allowed));
        if free {
            return None;
        }
        self.needles.iter().copied().find(|needle| calls(code, needle))
    }
}

/// Whether `needle` stands in `code` as whole names, and as the standard library's: `fs::read`
/// and `std::fs::read` count, `rustix::fs::openat` and `my_fs::read` do not.
fn calls(code: &str, needle: &str) -> bool {
    code.match_indices(needle).any(|(at, _)| {
        let before = &code[..at];
        let other_crate = before.ends_with("::") && !before.ends_with("std::");
        // `std::time::Instant::now` is found by its longer needle; `time::Instant::now` is not.
        let other_crate = other_crate && needle.starts_with("fs::");
        !other_crate && !before.ends_with(is_name)
    })
}
