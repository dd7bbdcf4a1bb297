//! Makes the ring, with as much as this kernel gives.

use super::{REGISTERED_BITS, Uring};
use crate::engine::io_slab::IoSlab;
use crate::engine::psync::fds;
use crate::engine::{EngineConfig, EngineError, HostRegion, OpenedEngine, pool};
use io_uring::IoUring;
use std::io;

/// Most entries of a submission queue (io_uring_setup(2)).
const MOST_ENTRIES: u32 = 32_768;

/// Most registered buffers of one region: 1 TiB, and as many as a kernel before 5.13 registers.
const MOST_BUFFERS: usize = 1024;

/// Ring configurations, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setup {
    /// `SINGLE_ISSUER | DEFER_TASKRUN`, 6.1.
    Deferred,
    /// `COOP_TASKRUN`, 5.19.
    Cooperative,
    /// No flag, 5.1.
    Plain,
}

impl Setup {
    const ALL: [Setup; 3] = [Setup::Deferred, Setup::Cooperative, Setup::Plain];

    fn words(self) -> &'static str {
        match self {
            Setup::Deferred => "SINGLE_ISSUER and DEFER_TASKRUN (kernel 6.1)",
            Setup::Cooperative => "COOP_TASKRUN (kernel 5.19)",
            Setup::Plain => "no setup flag",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Polling {
    /// Nobody: completions raise interrupts.
    None,
    /// The kernel, for completions (`IOPOLL`).
    Completions,
    /// A thread of the kernel's, for submissions (`SQPOLL`).
    Submissions,
}

/// Idle time after which the kernel's thread sleeps, milliseconds.
const IDLE_MS: u32 = 100;

/// Makes a ring of `entries` submissions. Completions get twice as many, which is the kernel's
/// default: at most `depth <= entries` I/Os are out, each completes once, so the completion
/// queue can't overflow.
fn ring(polling: Polling, setup: Setup, entries: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    // A child process has no business in the ring.
    builder.dontfork();
    match polling {
        Polling::None => {}
        Polling::Completions => {
            builder.setup_iopoll();
        }
        Polling::Submissions => {
            builder.setup_sqpoll(IDLE_MS);
        }
    }
    match setup {
        Setup::Deferred => {
            builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        }
        Setup::Cooperative => {
            builder.setup_coop_taskrun().setup_taskrun_flag();
        }
        Setup::Plain => {}
    }
    builder.build(entries)
}

/// Whether a ring can be made here and now.
pub(in crate::engine) fn available() -> Result<(), String> {
    ring(Polling::None, Setup::Plain, 1).map(drop).map_err(|err| why(&err))
}

pub(in crate::engine) fn open(config: &EngineConfig) -> Result<OpenedEngine, EngineError> {
    open_with(config, Polling::None, |setup, entries| ring(Polling::None, setup, entries))
}

pub(in crate::engine) fn open_iopoll(config: &EngineConfig) -> Result<OpenedEngine, EngineError> {
    let polling = Polling::Completions;
    open_with(config, polling, |setup, entries| ring(polling, setup, entries))
}

pub(in crate::engine) fn open_sqpoll(config: &EngineConfig) -> Result<OpenedEngine, EngineError> {
    let polling = Polling::Submissions;
    open_with(config, polling, |setup, entries| ring(polling, setup, entries))
}

/// The meaning of io_uring_setup(2)'s answer.
fn why(err: &io::Error) -> String {
    let meaning = match err.raw_os_error() {
        Some(libc::EPERM) => forbidden(switch().as_deref()),
        Some(libc::ENOSYS) => "this kernel has no io_uring, which came with 5.1",
        Some(libc::ENOMEM) => "no memory for the ring: raise RLIMIT_MEMLOCK (ulimit -l)",
        Some(libc::EMFILE | libc::ENFILE) => "no descriptor left: raise the limit (ulimit -n)",
        _ => "the kernel refused the ring",
    };
    format!("io_uring_setup: {err}: {meaning}")
}

/// The reason why a ring is forbidden, by the kernel's switch
/// (Documentation/admin-guide/sysctl/kernel.rst, `io_uring_disabled`, Linux 6.6).
pub(super) fn forbidden(switch: Option<&str>) -> &'static str {
    match switch.map(str::trim) {
        Some("2") => "kernel.io_uring_disabled is 2: off for all processes",
        Some("1") => {
            "kernel.io_uring_disabled is 1: off for this user, or a seccomp filter forbids it"
        }
        _ => "forbidden by a seccomp filter, as in many containers",
    }
}

fn switch() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()
}

/// [`open`], with the maker of rings as an argument so that tests can refuse.
pub(super) fn open_with(
    config: &EngineConfig,
    polling: Polling,
    make: impl Fn(Setup, u32) -> io::Result<IoUring>,
) -> Result<OpenedEngine, EngineError> {
    let mut steps_down = Vec::new();
    let depth = config.depth.clamp(1, MOST_ENTRIES);
    if depth < config.depth {
        steps_down.push(format!(
            "io_uring: depth {depth}, not {}: a ring has at most {MOST_ENTRIES} entries",
            config.depth
        ));
    }
    let entries = depth.next_power_of_two();
    let mut refusal = None;
    // Work is not deferred to a thread that does not submit.
    let plain = polling == Polling::Submissions;
    for setup in Setup::ALL.into_iter().filter(|setup| !plain || *setup == Setup::Plain) {
        match make(setup, entries) {
            Ok(ring) => {
                if setup != Setup::Deferred && !plain {
                    let words = setup.words();
                    let err = refusal.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EINVAL));
                    steps_down.push(format!("io_uring: ring with {words}: {err}"));
                }
                return Ok(finish(config, (ring, polling), depth, steps_down));
            }
            // An unknown flag is EINVAL, and only that gets better with fewer flags.
            Err(err) if err.raw_os_error() == Some(libc::EINVAL) => refusal = Some(err),
            Err(err) => {
                refusal = Some(err);
                break;
            }
        }
    }
    let err = refusal.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EINVAL));
    steps_down.push(format!("pool instead of io_uring: {}", why(&err)));
    let mut opened = pool::open(config)?;
    steps_down.append(&mut opened.steps_down);
    Ok(OpenedEngine { steps_down, ..opened })
}

fn finish(
    config: &EngineConfig,
    (ring, polling): (IoUring, Polling),
    depth: u32,
    mut steps_down: Vec<String>,
) -> OpenedEngine {
    let fds = fds(&config.files);
    let fixed_files = match ring.submitter().register_files(&fds) {
        Ok(()) => true,
        // An empty table is EINVAL, and nothing is missed.
        Err(_) if fds.is_empty() => false,
        Err(err) => {
            steps_down.push(format!("io_uring: files not registered: {err}"));
            false
        }
    };
    let fixed_region = config.region.and_then(|region| match register(&ring, region) {
        Ok(()) => Some(region),
        Err(err) => {
            let hint = if err.raw_os_error() == Some(libc::ENOMEM) {
                " (raise RLIMIT_MEMLOCK, ulimit -l)"
            } else {
                ""
            };
            steps_down.push(format!("io_uring: memory not registered: {err}{hint}"));
            None
        }
    });
    let parts = match (fixed_region.is_some(), fixed_files) {
        (true, true) => " (fixed buffers, fixed files)",
        (true, false) => " (fixed buffers)",
        (false, true) => " (fixed files)",
        (false, false) => "",
    };
    let form = match polling {
        Polling::None => "",
        Polling::Completions => "-iopoll",
        Polling::Submissions => "-sqpoll",
    };
    let slots = IoSlab::new(depth);
    let engine =
        Uring { ring, slots, fds, fixed_files, fixed_region, queued: 0, retries: 0, polling };
    OpenedEngine {
        engine: Box::new(engine),
        actual: format!("io_uring{form}{parts}"),
        steps_down,
        helpers: Vec::new(),
    }
}

/// Registers the region as buffers of 1 GiB.
fn register(ring: &IoUring, region: HostRegion) -> io::Result<()> {
    let len = 1_usize << REGISTERED_BITS;
    let count = region.len.div_ceil(len);
    if count > MOST_BUFFERS {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let buffers: Vec<libc::iovec> = (0..count)
        .map(|number| {
            let from = number * len;
            let base = region.ptr.as_ptr().wrapping_add(from).cast();
            libc::iovec { iov_base: base, iov_len: (region.len - from).min(len) }
        })
        .collect();
    // SAFETY: the region stays mapped as long as the engine lives (`HostRegion`), and the kernel
    // holds the pages themselves.
    unsafe { ring.submitter().register_buffers(&buffers) }
        .map_err(|err| io::Error::from_raw_os_error(err.raw_os_error().unwrap_or(libc::EINVAL)))
}
