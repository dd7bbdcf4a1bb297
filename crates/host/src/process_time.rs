//! Processor time of processes: `/proc/PID/stat` (proc_pid_stat(5)), in ticks of
//! `sysconf(_SC_CLK_TCK)`.

use std::collections::HashSet;

use crate::{HostError, LineFault, Root};

/// `kthreadd`: the parent of the kernel's own threads.
const KERNEL_THREADS: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessSample {
    pub pid: u32,
    /// Its name, 15 bytes at most.
    pub name: String,
    pub parent: u32,
    /// Ticks in its own code, ended threads included.
    pub user: u64,
    /// Ticks in the kernel.
    pub system: u64,
    /// Page faults of the children that it has waited for: more with each child.
    pub child_faults: u64,
    /// When it began, in ticks since the system did: with the number it names one process.
    pub began: u64,
}

/// Samples processes that are not threads of the kernel. Their numbers go to `kernels_own`, and
/// what is in there is passed over: a large machine has thousands of them.
///
/// # Errors
/// [`HostError`] when `/proc` cannot be listed or a file not be understood. A process that ended
/// during the read is left out.
pub fn samples(
    root: &Root,
    kernels_own: &mut HashSet<u32>,
) -> Result<Vec<ProcessSample>, HostError> {
    let mut found = Vec::new();
    for name in root.list("proc")? {
        let Ok(pid) = name.parse::<u32>() else { continue };
        if kernels_own.contains(&pid) {
            continue;
        }
        // ESRCH: it ended between opening and reading.
        let Ok(Some(text)) = root.read(format!("proc/{name}/stat")) else { continue };
        let process = text.parse(parse)?;
        if process.parent == KERNEL_THREADS || pid == KERNEL_THREADS {
            kernels_own.insert(pid);
        } else {
            found.push(process);
        }
    }
    Ok(found)
}

/// Nanoseconds that a thread of this process has run: `/proc/self/task/TID/schedstat`
/// (Documentation/scheduler/sched-stats.rst); `None` where it has ended or the kernel does not say.
pub fn thread_ran_ns(root: &Root, thread: i32) -> Option<u64> {
    let text = root.word(format!("proc/self/task/{thread}/schedstat")).ok()??;
    text.split_whitespace().next()?.parse().ok()
}

/// Parses `/proc/PID/stat`. The name stands in brackets and may hold anything, brackets included.
///
/// # Errors
/// [`LineFault`] when numbers are missing.
pub fn parse(text: &str) -> Result<ProcessSample, LineFault> {
    let malformed = || LineFault::new(0, text.trim(), "PID (name) state and numbers");
    let (pid, rest) = text.split_once(" (").ok_or_else(malformed)?;
    let (name, rest) = rest.rsplit_once(") ").ok_or_else(malformed)?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    // Field 3, the state, is the first behind the name.
    let field = |nth: usize| words.get(nth - 3).ok_or_else(malformed);
    let number = |nth: usize| field(nth)?.parse::<u64>().map_err(|_| malformed());
    Ok(ProcessSample {
        pid: pid.trim().parse().map_err(|_| malformed())?,
        name: name.to_owned(),
        parent: field(4)?.parse().map_err(|_| malformed())?,
        child_faults: number(11)?,
        user: number(14)?,
        system: number(15)?,
        began: number(22)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_brackets() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 4 0 0 0 0 11 12 0 0 20 0 1 0 99 0 0";
        let read = parse(text).unwrap();
        assert_eq!((read.pid, read.name.as_str(), read.parent), (7, "a) b (c", 1));
        assert_eq!((read.user, read.system, read.began), (11, 12, 99));
        assert!(parse("7 (a) S 1").is_err());
    }

    #[test]
    fn a_thread_that_works_runs_and_one_that_is_gone_says_nothing() {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let root = Root::live();
        let Some(first) = thread_ran_ns(&root, own) else {
            println!("SKIPPED: this kernel keeps no schedstat");
            return;
        };
        while thread_ran_ns(&root, own).unwrap() == first {}
        assert_eq!(thread_ran_ns(&root, i32::MAX), None);
    }
}
