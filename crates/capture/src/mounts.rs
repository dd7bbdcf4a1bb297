//! `mount` without arguments: `SOURCE on MOUNTPOINT type KIND (OPTIONS)`.

use gpuio_host::{mounted, nfs};
use gpuio_record::facts::{Fact, MountFacts, MountKind, MountedStorage, NfsFacts};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "mount",
    gives: "mounts with their options",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines()
            .any(|line| line.contains(" on /") && line.contains(" type ") && line.contains(" ("))
    },
    add,
};

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    captured.lists_mounts = true;
    for (index, line) in lines(text) {
        match parse(index, line) {
            Ok(one) => put(captured, one, (index, line))?,
            Err(why) => captured.skip(why),
        }
    }
    Ok(())
}

/// A mount; `None` where it is one of the kernel's own file systems.
fn parse(index: usize, line: &str) -> Result<Option<MountedStorage>, CaptureError> {
    let wanted = |part: &str, what| CaptureError::at(index, line, part, what);
    let Some((rest, options)) = line.rsplit_once(" (") else {
        return Err(wanted(line, "SOURCE on MOUNTPOINT type KIND (OPTIONS)"));
    };
    let options = options.strip_suffix(')').ok_or_else(|| wanted(options, "options and `)`"))?;
    // Mount points may have blanks, kinds don't, so the last ` type ` is the one.
    let Some((rest, fs_type)) = rest.rsplit_once(" type ") else {
        return Err(wanted(rest, "` type ` and a file system"));
    };
    let Some((source, mount_point)) = rest.split_once(" on ") else {
        return Err(wanted(rest, "a source, ` on ` and a mount point"));
    };
    // Words of a sentence before it, ``mount: `/dev/md0 on /d type ext4 (rw)` ``.
    let source = source.rsplit(": ").next().unwrap_or_default();
    Ok(storage(source, mount_point, fs_type, options))
}

/// A mount that may hold data, with its options joined by commas; `None` for the kernel's own.
pub(crate) fn storage(
    source: &str,
    mount_point: &str,
    fs_type: &str,
    options: &str,
) -> Option<MountedStorage> {
    if mounted::is_kernels_own(fs_type) {
        return None;
    }
    let options = options.split(',').map(str::trim).filter(|option| !option.is_empty());
    let mount = MountFacts {
        mount_point: mount_point.to_owned(),
        fs_type: fs_type.to_owned(),
        source: source.trim_start().to_owned(),
        fs_root: "/".to_owned(),
        options: options.clone().map(str::to_owned).collect(),
        ..MountFacts::default()
    };
    let kind = mounted::kind(fs_type, false);
    let nfs = (kind == MountKind::Nfs).then(|| NfsFacts {
        interface: Fact::unknown("mount does not report the route"),
        ..nfs::of_options(source, options)
    });
    Some(MountedStorage { mount, kind, nfs, ..MountedStorage::default() })
}

/// Adds a mount, unless there are more than any machine has.
///
/// # Errors
/// There are too many.
pub(crate) fn put(
    captured: &mut Captured,
    one: Option<MountedStorage>,
    (index, line): (usize, &str),
) -> Result<(), CaptureError> {
    if captured.machine.mounts.len() > MOST_DEVICES {
        return Err(CaptureError::new(index, line, 0, "fewer mounts"));
    }
    if let Some(one) = one {
        merge::mount(&mut captured.machine, one);
    }
    Ok(())
}

/// A path with the kernel's octal escapes (`\040` is a blank) undone.
pub(crate) fn unescaped(text: &str) -> String {
    let signs = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let hex = [("\\x20", " "), ("\\x09", "\t")];
    signs.iter().chain(&hex).fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_before_inline_code_is_not_part_of_the_source() {
        let mut captured = Captured::default();
        let text = "mount: `/dev/md7 on /mnt/fast type ext4 (rw,noatime)`\n";
        crate::read("text", text, &mut captured).unwrap();
        let mount = &captured.machine.mounts[0].mount;
        assert_eq!((&*mount.source, &*mount.mount_point), ("/dev/md7", "/mnt/fast"));
    }
}
