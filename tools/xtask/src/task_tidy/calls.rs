//! Calls that only some crates may make, and what the others use instead.

use super::rust::is_name;

/// Needles that may appear only under some paths.
pub(super) struct Ban {
    pub(super) rule: &'static str,
    needles: &'static [&'static str],
    /// Path prefixes. Tests and `tools/` may call anything.
    allowed: &'static [&'static str],
    pub(super) instead: &'static str,
}

pub(super) const BANS: [Ban; 6] = [
    Ban {
        rule: "clock",
        needles: &["std::time::Instant", "Instant::now", "SystemTime::now"],
        // softgpu replaces a device, which has its own clock.
        allowed: &[
            "crates/transfer/src/clock.rs",
            "crates/cli/",
            "crates/load/src/run",
            "crates/softgpu/",
            // Heartbeats, and how long a message or a process is waited for.
            "crates/load/src/ranks/",
            "crates/drivers/src/mpi/world.rs",
            // How long it waits for a kernel that can not start.
            "crates/gpu/src/resident_copy/",
            "crates/gpu/src/initiated/",
        ],
        instead: "use gpuio_transfer::clock or take the time as an argument",
    },
    Ban {
        rule: "threads",
        needles: &["thread::spawn(", "scope.spawn(", "s.spawn("],
        // Programs that only their author runs.
        allowed: &["crates/gpu/examples/", "crates/transfer/examples/"],
        instead: "start it by thread::Builder and report that the system refuses one: these panic",
    },
    Ban {
        rule: "environment",
        needles: &[
            "env::var",
            "env::vars",
            "env::set_var",
            "env::remove_var",
            "env::temp_dir",
            "env::home_dir",
            "getenv",
        ],
        // cufile names its configuration to NVIDIA's library, before there are threads.
        allowed: &[
            "crates/guard/src/objects/environment.rs",
            "crates/drivers/src/cufile/config/mod.rs",
        ],
        instead: "gpuio_guard::objects::environment reads it: nothing in secure execution",
    },
    Ban {
        rule: "loading",
        needles: &["Library::new", "Library::open", "dlopen"],
        // The other two only ask whether an object is loaded (RTLD_NOLOAD).
        allowed: &[
            "crates/guard/src/objects/load.rs",
            "crates/drivers/src/cufile/table.rs",
            "crates/softcufile/src/cuda.rs",
        ],
        instead: "gpuio_guard::objects::load checks who can change an object, and loads it",
    },
    Ban {
        rule: "files",
        needles: &["fs::", "std::fs", "File::open", "File::create", "File::options", "OpenOptions"],
        // cufile writes the configuration that NVIDIA's library reads; softcufile does its I/O.
        allowed: &[
            "crates/host/",
            // It makes, checks and removes the files of a run.
            "crates/dataset/",
            "crates/load/",
            "crates/cli/",
            "crates/io/",
            "crates/drivers/src/cufile/",
            "crates/softcufile/",
            // It creates files.
            "crates/guard/src/outfile/",
            // It moves the bytes of files that others opened.
            "crates/transfer/",
            // It creates the page's file with its access rights.
            "crates/watch/src/page/",
            // It reads cuFile's configuration, and writes the log.
            "crates/dropin/",
            // It reads which file a descriptor is of, for its errors.
            "crates/clib/",
            // It looks at who owns an object before it is loaded.
            "crates/guard/src/objects/",
            // It reads which memory of the process is pages of files.
            "crates/softgpu/src/fickle.rs",
            // It reads why the kernel refuses a ring, and what its thread does.
            "crates/gpu/src/initiated/",
        ],
        instead: "take the text or the file as an argument; `host` reads the system, `io` does I/O",
    },
    Ban {
        rule: "files of others",
        needles: &["fchmod", "fchmodat", "chmodat", "set_permissions", "fsetxattr", "ftruncate"],
        allowed: &[
            // It has looked whose file it is.
            "crates/guard/src/outfile/",
            // It marks a file that it has just made.
            "crates/cli/src/made.rs",
            // A file that its caller opened to write.
            "crates/transfer/src/file/write.rs",
        ],
        instead: "gpuio_guard::outfile gives a file that this user made (`Directory::mine`, \
                  `Draft`), and changes no other's",
    },
];

/// Beginnings of commands which a person is to paste into a shell.
const COMMANDS: [&str; 11] = [
    "rm ",
    "rm -r ",
    "sh ",
    "gpuio bench ",
    "gpuio check ",
    "gpuio compare ",
    "gpuio gdsio ",
    "gpuio plan ",
    "gpuio report ",
    "gpuio show ",
    "gpuio sweep ",
];

/// The command that a text of these lines puts together from words that it does not quote: a name
/// of a file can hold a command of its own.
pub(super) fn pasted(line: &str, next: &str) -> Option<&'static str> {
    if line.trim_start().starts_with("//") {
        return None;
    }
    let whole = match line.strip_suffix('\\') {
        Some(begun) => format!("{begun}{}", next.trim_start()),
        None => line.to_owned(),
    };
    COMMANDS.into_iter().find(|command| {
        whole.match_indices(command).any(|(at, _)| {
            let after = whole[at + command.len()..].trim_start_matches(['\'', '`']);
            !whole[..at].ends_with(is_name) && after.starts_with('{') && !after.starts_with("{{")
        })
    })
}

/// The calls that tests of one folder leave to one file.
pub(super) struct OfTests {
    pub(super) rule: &'static str,
    needles: &'static [&'static str],
    folder: &'static str,
    file: &'static str,
    pub(super) instead: &'static str,
}

pub(super) const OF_TESTS: [OfTests; 1] = [OfTests {
    rule: "tests share nothing",
    needles: &["Command::new", "TempDir", "tempdir", "tempdir_in", "NamedTempFile"],
    folder: "crates/cli/tests/",
    file: "crates/cli/tests/cli/tool.rs",
    instead: "use `command`, `other` or `plain`, and `scratch`: they give each test pages, caches, \
              journals and settings of its own",
}];

impl OfTests {
    /// The needle that a line of a test breaks this rule with.
    pub(super) fn find(&self, path: &str, code: &str) -> Option<&'static str> {
        let bound = path.starts_with(self.folder) && path != self.file;
        self.needles.iter().copied().find(|needle| bound && calls(code, needle))
    }
}

impl Ban {
    /// The needle that a line of code breaks this ban with.
    pub(super) fn find(&self, path: &str, code: &str) -> Option<&'static str> {
        let free = path.starts_with("tools/")
            || path.ends_with("/build.rs")
            || self.allowed.iter().any(|allowed| path.starts_with(allowed));
        if free {
            return None;
        }
        self.needles.iter().copied().find(|needle| calls(code, needle))
    }
}

/// Whether `code` contains `needle` as whole names, and the standard library's: `fs::read`
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
