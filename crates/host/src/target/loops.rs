//! Which loop devices have a file or device behind them.
//!
//! The kernel has device and inode (`LOOP_GET_STATUS64`, loop(4)), which only root may query.
//! sysfs gives a path to everybody: it is one of the file's names, or was, so what it leads to is
//! compared by device and inode too.
#![allow(unsafe_code)]

use std::path::Path;

use gpuio_record::facts::DeviceNumber;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Getter, ioctl};

use super::open::stamp_of;
use crate::statx::Stamp;
use crate::{HostError, Root};

/// The file behind a loop device, as stat(2) numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Backing {
    dev: u64,
    ino: u64,
    /// The device, where it uses a device; else 0.
    rdev: u64,
}

/// A loop device that is set up.
#[derive(Debug)]
pub(super) struct Loop {
    name: String,
    backing: Option<Backing>,
    /// The path that sysfs gives.
    path: String,
}

impl Loop {
    /// Whether it uses this file. `canonical` is its path, for trees of tests, in which no
    /// other file than the test's own has device and inode.
    pub(super) fn uses_file(&self, file: &Stamp, canonical: &Path) -> bool {
        Path::new(&self.path) == canonical
            || self.backing.is_some_and(|back| (back.dev, back.ino) == (file.dev, file.ino))
    }

    pub(super) fn uses_device(&self, device: DeviceNumber) -> bool {
        let number = rustix::fs::makedev(device.major, device.minor);
        self.backing.is_some_and(|back| back.rdev != 0 && back.rdev == number)
    }
}

/// Names of the loop devices of `all` that `uses` accepts.
pub(super) fn named(all: &[Loop], uses: impl Fn(&Loop) -> bool) -> Vec<String> {
    all.iter().filter(|one| uses(one)).map(|one| one.name.clone()).collect()
}

/// Which loop devices have files that can't be found from here, as a message.
pub(super) fn unknown_backing(all: &[Loop]) -> Option<String> {
    let unknown: Vec<String> = all
        .iter()
        .filter(|one| one.backing.is_none())
        .map(|one| format!("{} ({})", one.name, one.path))
        .collect();
    (!unknown.is_empty()).then(|| format!("can't find the files of {}", unknown.join(", ")))
}

/// The loop devices that are set up.
pub(super) fn read(root: &Root) -> Result<Vec<Loop>, HostError> {
    let mut all = Vec::new();
    for name in root.list("sys/block")?.into_iter().filter(|name| name.starts_with("loop")) {
        if let Some(path) = root.word(format!("sys/block/{name}/loop/backing_file"))? {
            let node = root.join(format!("dev/{name}"));
            let by_kernel = if root.is_live() { status(&node) } else { None };
            let by_path = || stamp_of(&root.join(path.trim_start_matches('/')));
            let by_path =
                || by_path().map(|at| Backing { dev: at.dev, ino: at.ino, rdev: at.rdev });
            all.push(Loop { backing: by_kernel.or_else(by_path), name, path });
        }
    }
    Ok(all)
}

/// `LOOP_GET_STATUS64` of `linux/loop.h`.
const LOOP_GET_STATUS64: rustix::ioctl::Opcode = 0x4C05;

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

const _: () = assert!(size_of::<LoopInfo64>() == 232);

/// The file of a loop device by the kernel; `None` where this user may not query it.
fn status(node: &Path) -> Option<Backing> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(node, flags, Mode::empty()).ok()?;
    let found = crate::statx::stamp(&file).ok()?;
    if !found.kind.is_block_device() || rustix::fs::major(found.rdev) != LOOP_MAJOR {
        return None;
    }
    // SAFETY: the opcode reads nothing from its argument and writes one `struct loop_info64`,
    // whose layout `LoopInfo64` has (its size is checked above) and of which any bit pattern is a
    // value.
    let getter = unsafe { Getter::<LOOP_GET_STATUS64, LoopInfo64>::new() };
    // SAFETY: the descriptor is that of a loop device, which was just looked at, so the opcode is
    // answered by the driver that defines it.
    let info = unsafe { ioctl(&file, getter) }.ok()?;
    // The kernel writes device numbers in 32 bits, of which makedev(3) is an extension.
    Some(Backing { dev: info.device, ino: info.inode, rdev: info.rdevice })
}

/// Major number of loop devices (admin-guide/devices.txt of Linux).
const LOOP_MAJOR: u32 = 7;
