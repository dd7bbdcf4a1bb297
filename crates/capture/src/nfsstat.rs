//! `nfsstat -m` (nfs-utils): each NFS mount with the options that are in effect.

use crate::mounts::{put, storage};
use crate::{CaptureError, Captured, Kind, lines};

pub(crate) const KIND: Kind = Kind {
    command: "nfsstat -m",
    gives: "NFS mounts with the options in effect",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| flags(line).is_some()),
    add,
};

/// ` Flags: rw,relatime,vers=4.2,…`.
fn flags(line: &str) -> Option<&str> {
    let flags = line.trim().strip_prefix("Flags:")?.trim();
    (flags.contains("rw") || flags.contains("ro"))
        .then_some(flags)
        .filter(|flags| flags.contains(','))
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut mount: Option<(String, String)> = None;
    for (index, line) in lines(text) {
        // A page may have joined the two lines of a mount.
        let (head, options) = match line.split_once("Flags:") {
            Some((head, flags)) => (head.trim(), Some(flags.trim())),
            None => (line.trim(), None),
        };
        if let Some((at, source)) = head.split_once(" from ") {
            mount = Some((at.trim().to_owned(), source.trim().to_owned()));
        } else if !head.is_empty() {
            let wanted = "a mount, like /data from server:/export";
            captured.skip(CaptureError::new(index, line, 0, wanted));
        }
        if let (Some(options), Some((at, source))) = (options, &mount) {
            // Versions 4 have it as `vers=4.2`; the type is printed nowhere.
            let four = options.split(',').any(|one| one.starts_with("vers=4"));
            let kind = if four { "nfs4" } else { "nfs" };
            put(captured, storage(source, at, kind, options), (index, line))?;
            mount = None;
        }
    }
    Ok(())
}
