//! Which process a number means: `/proc/PID/stat` (proc_pid_stat(5)), the PID namespace
//! (pid_namespaces(7)) and the boot (`/proc/sys/kernel/random/boot_id`, random(4)).

use crate::{HostError, LineFault, Root};

/// The identity of a process, also against a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Number in its PID namespace.
    pub pid: u32,
    /// When it began: clock ticks after boot, field 22 of `stat`.
    pub start_ticks: u64,
    /// Inode of the PID namespace in which `pid` counts; 0 where the kernel does not report it.
    pub namespace: u64,
    /// The boot, a UUID; empty where the kernel does not report it.
    pub boot: String,
}

/// The process that calls; `None` where `/proc` is not mounted, or is that of another PID
/// namespace, whose numbers are not ours.
///
/// # Errors
/// [`HostError`] when `/proc` is there and can't be read.
pub fn own(root: &Root) -> Result<Option<Identity>, HostError> {
    let pid = std::process::id();
    let link = root.link("proc/self");
    if link.is_none_or(|link| link.as_os_str() != pid.to_string().as_str()) {
        return Ok(None);
    }
    find(root, pid)
}

/// The process of this number, seen from the namespace of the caller; `None` when there is none.
/// A zombie counts as gone: it will do nothing more.
///
/// # Errors
/// [`HostError`] when its `stat` can't be read or understood.
pub fn find(root: &Root, pid: u32) -> Result<Option<Identity>, HostError> {
    let Some(text) = root.read(format!("proc/{pid}/stat"))? else {
        return Ok(None);
    };
    let (state, start_ticks) = text.parse(parse)?;
    if matches!(state, 'Z' | 'X') {
        return Ok(None);
    }
    Ok(Some(Identity { pid, start_ticks, namespace: namespace(root), boot: boot(root)? }))
}

/// Inode of the caller's PID namespace, 0 where the kernel does not report it.
pub fn namespace(root: &Root) -> u64 {
    let link = root.link("proc/self/ns/pid").unwrap_or_default();
    let text = link.to_string_lossy();
    let inode = text.strip_prefix("pid:[").and_then(|rest| rest.strip_suffix(']'));
    inode.and_then(|inode| inode.parse().ok()).unwrap_or(0)
}

/// This boot, empty where the kernel does not report it.
///
/// # Errors
/// [`HostError`] when it is there and can't be read.
pub fn boot(root: &Root) -> Result<String, HostError> {
    Ok(root.word("proc/sys/kernel/random/boot_id")?.unwrap_or_default())
}

/// The command line, words with a blank between; `None` when the process is gone or hides it.
pub fn command(root: &Root, pid: u32) -> Option<String> {
    let text = root.read(format!("proc/{pid}/cmdline")).ok().flatten()?;
    let words = text.body.trim_end_matches('\0').replace('\0', " ");
    // Control characters of a command line must not reach a terminal.
    let clean: String = words.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    (!clean.is_empty()).then_some(clean)
}

/// State and start time. The name in field 2 may hold blanks and brackets, so fields are counted
/// from its last bracket.
fn parse(text: &str) -> Result<(char, u64), LineFault> {
    let line = text.lines().next().unwrap_or("");
    let malformed = || LineFault::new(0, line, "PID (NAME) STATE … with 22 fields or more");
    let (_, rest) = line.rsplit_once(')').ok_or_else(malformed)?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next().and_then(|word| word.chars().next()).ok_or_else(malformed)?;
    let ticks = fields.nth(18).and_then(|word| word.parse().ok()).ok_or_else(malformed)?;
    Ok((state, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_may_hold_anything() {
        let line = "7 (a) R (b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2\n";
        assert_eq!(parse(line).unwrap(), ('S', 98765));
        assert!(parse("7 (a) S 1").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn this_process_is_found_and_another_is_not() {
        let own = own(&Root::live()).unwrap().unwrap();
        assert_eq!(own.pid, std::process::id());
        assert!(own.start_ticks > 0);
        assert_eq!(find(&Root::live(), own.pid).unwrap().unwrap(), own);
        // Beyond the largest number that the kernel gives (PID_MAX_LIMIT, 2^22).
        assert_eq!(find(&Root::live(), (1 << 22) + 1).unwrap(), None);
    }
}
