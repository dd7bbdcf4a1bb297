//! `/proc/mounts` (fstab(5)'s six fields, as the kernel prints them), `/proc/self/mountinfo`
//! (proc(5)), and `/etc/fstab`, which says what is mounted at boot and not what is mounted.

use crate::mounts::{put, storage, unescaped};
use crate::{CaptureError, Captured, Kind, lines};

pub(crate) const MOUNTS: Kind = Kind {
    command: "cat /proc/mounts",
    gives: "mounts with their options",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(is_kernels),
    add: add_mounts,
};

pub(crate) const MOUNTINFO: Kind = Kind {
    command: "cat /proc/self/mountinfo",
    gives: "mounts with their options",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| mountinfo(line).is_some()),
    add: add_mountinfo,
};

pub(crate) const FSTAB: Kind = Kind {
    command: "cat /etc/fstab",
    gives: "what is mounted at boot, marked as such where no text shows what is mounted",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| fstab(line).is_some()),
    add: add_fstab,
};

const WANTED: &str = "SOURCE MOUNTPOINT KIND OPTIONS 0 0";

/// The fields of a line with a mount point, a kind and options.
fn fields(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let plausible = |word: &str| !word.contains(['"', '|', '(', '=', ':']);
    let like = words.len() >= 4
        && words.len() <= 6
        && (words[1].starts_with('/') || words[1] == "none" || words[1] == "swap")
        && plausible(words[2])
        && words[4..].iter().all(|word| word.parse::<u8>().is_ok());
    like.then_some(words)
}

/// A line as the kernel prints it: with `rw` or `ro`, and zeros.
fn is_kernels(line: &str) -> bool {
    fields(line).is_some_and(|words| {
        let options = words[3].split(',').next().unwrap_or_default();
        matches!(options, "rw" | "ro") && words[4..] == ["0", "0"] && !is_only_fstabs(words[0])
    })
}

/// Sources that only `fstab` has.
fn is_only_fstabs(source: &str) -> bool {
    ["UUID=", "LABEL=", "PARTUUID=", "PARTLABEL=", "ID="]
        .iter()
        .any(|name| source.starts_with(name))
}

/// Options that begin a field of options: these fields alone make a line without the two numbers
/// one of `fstab`.
const OPTIONS: [&str; 26] = [
    "defaults", "rw", "ro", "noatime", "relatime", "nofail", "auto", "noauto", "_netdev", "sw",
    "vers", "nfsvers", "proto", "rdma", "tcp", "hard", "soft", "nconnect", "rsize", "wsize",
    "bind", "discard", "errors", "umask", "subvol", "nodev",
];

fn fstab(line: &str) -> Option<Vec<&str>> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let words = fields(line)?;
    let source = words[0];
    let known = is_only_fstabs(source)
        || source.starts_with("/dev/")
        || source.contains(":/")
        || matches!(words[2], "tmpfs" | "swap" | "none");
    let first = words[3].split([',', '=']).next().unwrap_or_default();
    (known && (words.len() == 6 || OPTIONS.contains(&first))).then_some(words)
}

fn add_mounts(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    captured.lists_mounts = true;
    for (index, line) in lines(text) {
        match fields(line).filter(|words| words.len() == 6) {
            Some(words) => {
                let (source, at) = (unescaped(words[0]), unescaped(words[1]));
                put(captured, storage(&source, &at, words[2], words[3]), (index, line))?;
            }
            None => captured.skip(CaptureError::new(index, line, 0, WANTED)),
        }
    }
    Ok(())
}

/// `36 35 98:0 / /mnt rw,noatime shared:1 - ext3 /dev/root rw,errors=continue`.
fn mountinfo(line: &str) -> Option<(String, String, &str, String)> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split_whitespace().collect();
    let right: Vec<&str> = right.split_whitespace().collect();
    let [id, parent, number, _, at, options, ..] = left.as_slice() else { return None };
    let (id, parent) = (id.parse::<u32>().ok(), parent.parse::<u32>().ok());
    (id.is_some() && parent.is_some() && number.contains(':') && at.starts_with('/'))
        .then_some(())?;
    let [kind, source, rest @ ..] = right.as_slice() else { return None };
    let own = rest.first().copied().unwrap_or_default();
    Some((unescaped(source), unescaped(at), kind, format!("{options},{own}")))
}

fn add_mountinfo(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    captured.lists_mounts = true;
    for (index, line) in lines(text) {
        match mountinfo(line) {
            Some((source, at, kind, options)) => {
                put(captured, storage(&source, &at, kind, &options), (index, line))?;
            }
            None => {
                let wanted = "36 35 98:0 / /mnt rw,noatime - ext3 /dev/root rw";
                captured.skip(CaptureError::new(index, line, 0, wanted));
            }
        }
    }
    Ok(())
}

fn add_fstab(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    for (index, line) in lines(text) {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let Some(words) = fstab(line) else {
            captured.skip(CaptureError::new(index, line, 0, WANTED));
            continue;
        };
        if captured.at_boot.len() > crate::MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer mounts"));
        }
        let (source, at) = (unescaped(words[0]), unescaped(words[1]));
        let one = storage(&source, &at, words[2], words[3]);
        let data = |at: &str| at.starts_with('/');
        captured.at_boot.extend(one.filter(|one| data(&one.mount.mount_point)));
    }
    Ok(())
}
