//! Facts about the machine that explain a failed call.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fstat, major, minor};

/// Facts about a file and its machine, from which the cause is derived. `None`: unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnosis {
    /// Major and minor number of the file's device.
    pub device: Option<(u32, u32)>,
    /// Whether the udev database knows the content of that device (property `ID_FS_USAGE`).
    pub udev_entry: Option<bool>,
    /// Whether the kernel module nvidia-fs is loaded.
    pub nvidia_fs: Option<bool>,
    /// The file system's type, by the kernel's name.
    pub fs_type: Option<String>,
    /// Whether the library may fall back to compatibility mode.
    pub compat_allowed: Option<bool>,
    /// Whether the file is open with O_DIRECT.
    pub direct: bool,
    /// Whether it is open with O_NOFOLLOW.
    pub no_follow: bool,
    /// The last error in cuFile's log.
    pub log: Option<String>,
}

impl Diagnosis {
    /// Reads the facts of the machine whose root directory is `root`: `/proc/modules` (proc(5)).
    pub fn machine(root: &Path) -> Diagnosis {
        let modules = std::fs::read_to_string(root.join("proc/modules")).ok();
        let nvidia_fs = modules
            .map(|text| text.lines().any(|line| line.split(' ').next() == Some("nvidia_fs")));
        Diagnosis { nvidia_fs, direct: true, ..Diagnosis::default() }
    }

    /// Reads the facts of a file too: its descriptor, `/run/udev/data/bMAJOR:MINOR` and
    /// `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
    pub fn file(root: &Path, fd: impl AsFd) -> Diagnosis {
        let mut diagnosis = Diagnosis::machine(root);
        if let Ok(flags) = fcntl_getfl(&fd) {
            diagnosis.direct = flags.contains(OFlags::DIRECT);
            diagnosis.no_follow = flags.contains(OFlags::NOFOLLOW);
        } else {
            diagnosis.direct = false;
        }
        if let Ok(stat) = fstat(&fd) {
            diagnosis.device_at(root, (major(stat.st_dev), minor(stat.st_dev)));
        }
        diagnosis
    }

    fn device_at(&mut self, root: &Path, device: (u32, u32)) {
        let (major, minor) = device;
        self.device = Some(device);
        let entry = std::fs::read_to_string(root.join(format!("run/udev/data/b{major}:{minor}")));
        // Major 0 is a file system without a block device: udev never has an entry.
        self.udev_entry = (major != 0)
            .then(|| entry.is_ok_and(|text| text.lines().any(|l| l.starts_with("E:ID_FS_USAGE="))));
        let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
        let wanted = format!("{major}:{minor}");
        let ours = mounts.lines().find(|line| line.split(' ').nth(2) == Some(wanted.as_str()));
        let fs_type = ours.and_then(|line| line.split_once(" - "));
        self.fs_type = fs_type.and_then(|(_, rest)| rest.split(' ').next().map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    const MOUNTS: &str = "22 1 0:21 / /proc rw - proc proc rw\n\
                          30 1 252:1 / /data rw,noatime shared:1 - xfs /dev/vda1 rw\n";

    #[test]
    fn what_is_there_is_seen() {
        let root = root(&[
            ("proc/modules", "nvidia_fs 1 0 - Live 0x0\nnvidia 1 2 nvidia_fs, Live 0x0\n"),
            ("proc/self/mountinfo", MOUNTS),
            ("run/udev/data/b252:1", "N:vda1\nE:ID_FS_TYPE=xfs\nE:ID_FS_USAGE=filesystem\n"),
        ]);
        let mut diagnosis = Diagnosis::machine(root.path());
        diagnosis.device_at(root.path(), (252, 1));
        assert_eq!((diagnosis.nvidia_fs, diagnosis.udev_entry), (Some(true), Some(true)));
        assert_eq!(diagnosis.fs_type.as_deref(), Some("xfs"));
    }

    #[test]
    fn what_lacks_is_told_from_what_is_not_known() {
        let root = root(&[
            ("proc/modules", "nvidia 1 2 nvidia_fs, Live 0x0\n"),
            ("run/udev/data/b252:1", "N:vda1\n"),
        ]);
        let mut diagnosis = Diagnosis::machine(root.path());
        diagnosis.device_at(root.path(), (252, 1));
        assert_eq!((diagnosis.nvidia_fs, diagnosis.udev_entry), (Some(false), Some(false)));
        assert_eq!(diagnosis.fs_type, None);
        diagnosis.device_at(root.path(), (0, 40));
        assert_eq!(diagnosis.udev_entry, None);
        assert_eq!(Diagnosis::machine(Path::new("/nowhere")).nvidia_fs, None);
    }

    #[test]
    fn a_file_of_this_machine() {
        let file = tempfile::tempfile().unwrap();
        let diagnosis = Diagnosis::file(Path::new("/"), &file);
        assert!(!diagnosis.direct && !diagnosis.no_follow && diagnosis.device.is_some());
        let dir = tempfile::tempdir().unwrap();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
        let mode = rustix::fs::Mode::RUSR;
        let file = rustix::fs::open(dir.path().join("f"), flags, mode).unwrap();
        assert!(Diagnosis::file(Path::new("/"), &file).no_follow);
    }
}
