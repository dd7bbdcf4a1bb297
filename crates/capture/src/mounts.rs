//! `mount` without arguments: `SOURCE on MOUNTPOINT type KIND (OPTIONS)`.

use gpuio_host::{mounted, nfs};
use gpuio_record::facts::{Fact, MountFacts, MountKind, MountedStorage, NfsFacts};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "mount",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines()
            .any(|line| line.contains(" on /") && line.contains(" type ") && line.contains(" ("))
    },
    add,
};

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    for (index, line) in lines(text) {
        match parse(index, line) {
            Ok(Some(one)) => merge::mount(&mut captured.machine, one),
            Ok(None) => {}
            Err(why) => captured.skip(why),
        }
        if captured.machine.mounts.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer mounts"));
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
    if mounted::is_kernels_own(fs_type) {
        return Ok(None);
    }
    let mount = MountFacts {
        mount_point: mount_point.to_owned(),
        fs_type: fs_type.to_owned(),
        source: source.to_owned(),
        fs_root: "/".to_owned(),
        options: options.split(',').map(str::to_owned).collect(),
        ..MountFacts::default()
    };
    let kind = mounted::kind(fs_type, false);
    let nfs = (kind == MountKind::Nfs).then(|| NfsFacts {
        interface: Fact::unknown("mount does not report the route"),
        ..nfs::of_options(source, options.split(','))
    });
    Ok(Some(MountedStorage { mount, kind, nfs, ..MountedStorage::default() }))
}
