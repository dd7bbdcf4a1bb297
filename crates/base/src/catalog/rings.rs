//! The rings of path `initiated`: their size, and how the kernel answers who wants one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Entries of a ring of path `initiated`: the most I/Os in flight on it. They fill a page, and
/// the first kernels with such rings take no more unless it is a huge one.
pub const RING_ENTRIES: u32 = 64;

/// In the place of an engine's name: the rings of path `initiated`, which a kernel or a policy may
/// not offer.
pub const GPU_RINGS: &str = "rings that the GPU fills";

/// The first Linux with such rings, of which `IORING_SETUP_NO_SQARRAY` came last.
pub const RINGS_SINCE: (u32, u32) = (6, 6);

/// The answer of io_uring_setup(2) to who wants a ring in memory of its own, with entries in their
/// order and a thread of the kernel that takes them (`IORING_SETUP_NO_MMAP`, `NO_SQARRAY`,
/// `SQPOLL`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RingAnswer {
    /// It made the ring.
    Made,
    /// `EPERM`: a setting or a filter of system calls forbids it.
    Forbidden,
    /// `ENOSYS`: there is no such call.
    NoCall,
    /// `EINVAL`: the kernel has io_uring, and no such rings.
    NoSuchRing,
    /// `ENOMEM`.
    NoMemory,
    /// `EMFILE` or `ENFILE`.
    NoDescriptor,
    /// `EAGAIN`.
    NoThread,
    /// Another error.
    Refused,
}

/// Why there is no ring, and how to get what is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingRefusal {
    /// The meaning of the answer.
    pub why: String,
    /// The remedy, as a request.
    pub remedy: &'static str,
}

impl RingAnswer {
    /// Why there is no ring, unless there is one; on a kernel of this `release` whose
    /// `kernel.io_uring_disabled` is `switch`, as far as they are known.
    ///
    /// Source: io_uring_setup(2); Documentation/admin-guide/sysctl/kernel.rst, `io_uring_disabled`
    /// (Linux 6.6).
    pub fn refusal(self, switch: Option<u64>, release: Option<&str>) -> Option<RingRefusal> {
        let kernel = release.map_or("this kernel".to_owned(), |release| format!("Linux {release}"));
        let (why, remedy) = match (self, switch) {
            (Self::Made, _) => return None,
            (Self::Forbidden, Some(2)) => (
                "kernel.io_uring_disabled is 2: io_uring is off".to_owned(),
                "`sysctl kernel.io_uring_disabled=0`",
            ),
            (Self::Forbidden, Some(1)) => (
                "kernel.io_uring_disabled is 1: io_uring is off for this user, or a seccomp filter \
                 forbids it"
                    .to_owned(),
                "`sysctl kernel.io_uring_disabled=0`, or add the user to the group \
                 kernel.io_uring_group; if that is so, allow io_uring in the filter",
            ),
            (Self::Forbidden, _) => (
                "a seccomp filter forbids io_uring, as in many containers".to_owned(),
                "allow io_uring_setup, io_uring_enter and io_uring_register in the filter",
            ),
            (Self::NoCall, _) => (
                format!("{kernel} has no io_uring, or a filter hides it"),
                "use a kernel with CONFIG_IO_URING=y, and allow io_uring in the filter",
            ),
            (Self::NoSuchRing, _) => (
                format!("{kernel} has no rings for GPUs"),
                "use 6.6 or later",
            ),
            (Self::NoMemory, _) => (
                "no memory for the ring, or too little may be locked".to_owned(),
                "raise RLIMIT_MEMLOCK (`ulimit -l`)",
            ),
            (Self::NoDescriptor, _) => {
                ("no descriptor left".to_owned(), "raise the limit (`ulimit -n`)")
            }
            (Self::NoThread, _) => {
                ("no thread left for the ring".to_owned(), "raise the limit (`ulimit -u`)")
            }
            (Self::Refused, _) => {
                ("the kernel refused the ring".to_owned(), "look at its log (`dmesg`)")
            }
        };
        Some(RingRefusal { why, remedy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_names_its_remedy() {
        use RingAnswer::*;
        assert_eq!(Made.refusal(Some(2), None), None);
        for (answer, switch, why, remedy) in [
            (Forbidden, Some(2), "io_uring_disabled is 2", "io_uring_disabled=0"),
            (Forbidden, Some(1), "off for this user", "io_uring_group"),
            (Forbidden, Some(0), "seccomp", "allow io_uring_setup"),
            (Forbidden, None, "seccomp", "allow io_uring_setup"),
            (NoCall, None, "Linux 5.15.0-91-generic has no io_uring", "CONFIG_IO_URING=y"),
            (NoSuchRing, Some(0), "Linux 5.15.0-91-generic has no rings for GPUs", "6.6 or later"),
            (NoMemory, None, "may be locked", "RLIMIT_MEMLOCK"),
            (NoDescriptor, None, "descriptor", "ulimit -n"),
            (NoThread, None, "thread", "ulimit -u"),
            (Refused, None, "refused", "dmesg"),
        ] {
            let refusal = answer.refusal(switch, Some("5.15.0-91-generic")).unwrap();
            assert!(refusal.why.contains(why), "{answer:?}: {refusal:?}");
            assert!(refusal.remedy.contains(remedy), "{answer:?}: {refusal:?}");
        }
        let unnamed = NoSuchRing.refusal(None, None).unwrap();
        assert!(unnamed.why.starts_with("this kernel has no rings for GPUs"), "{unnamed:?}");
        let (major, minor) = RINGS_SINCE;
        assert!(unnamed.remedy.contains(&format!("{major}.{minor}")), "{unnamed:?}");
    }
}
