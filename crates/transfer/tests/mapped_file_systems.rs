//! Files that are read again and again, on file systems that are mounted for the test: each is
//! mapped under the rule that it has, or never.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(clippy::print_stdout, reason = "a test that does nothing is to be heard of")]
#![allow(unsafe_code, reason = "leases and fs-verity are system calls")]

mod support;

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use gpuio_testkit::file_systems::{self, Layers, Mount, MountOf, Room, run, text};
use support::hot::{EXTENT, FILE, Hot, content};
use support::{dir, memory_dir, random_bytes};

/// Runs a test on what `mount` returns, or says why not.
fn on(
    test: &str,
    mount: impl FnOnce(&mut Room) -> Result<PathBuf, String>,
    body: impl FnOnce(&Path),
) {
    file_systems::on(test, dir(), mount, body);
}

/// A new file in a directory, closed again.
fn written(place: &Path) -> PathBuf {
    let path = place.join("hot");
    std::fs::write(&path, content()).unwrap();
    path
}

/// Whether some process has a lease on a file of a file system whose files have its device number
/// (proc_locks(5)).
fn is_leased(file: &File) -> bool {
    let facts = file.metadata().unwrap();
    let (device, inode) = (facts.dev(), facts.ino());
    let own = format!("{:02x}:{:02x}:{inode}", libc::major(device), libc::minor(device));
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    locks.lines().any(|line| line.contains(" LEASE ") && line.contains(&own))
}

/// A writer ends the mapping, and what it wrote is seen, in the page cache or past it; and so is a
/// change by another name of the file. Afterwards the file is mapped again.
fn is_mapped_under_a_lease(path: &Path, writers: &Path) {
    let hot = Hot::at(path);
    hot.heat();
    assert!(hot.check_ranges() > 0);
    // Evidence of a lease: who does not wait is refused, and has the kernel want it back.
    let open = |flags| OpenOptions::new().write(true).custom_flags(flags).open(writers);
    let refused = open(libc::O_NONBLOCK).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EWOULDBLOCK));
    let writer = open(0).unwrap();
    assert_eq!(hot.check_ranges(), 0);
    writer.write_all_at(&random_bytes(2, 3 << 20), 123).unwrap();
    assert_eq!(hot.check_ranges(), 0);
    drop(writer);
    hot.heat();
    match open(libc::O_DIRECT) {
        Ok(writer) => {
            // At a multiple of a page, as O_DIRECT wants memory, offset and length.
            let page = random_bytes(3, 2 << 20);
            let start = page.as_ptr().align_offset(4096);
            let part = &page[start..start + (1 << 20)];
            writer.write_all_at(part, EXTENT as u64 - 8192).unwrap();
        }
        Err(why) => println!("{}: no O_DIRECT: {why}", path.display()),
    }
    assert_eq!(hot.check_ranges(), 0);
    open(0).unwrap().set_len(1_000_000).unwrap();
    hot.check_ranges();
}

/// Bytes that nothing changes are mapped without a lease.
fn is_mapped_for_good(path: &Path) {
    let hot = Hot::at(path);
    hot.heat();
    assert!(hot.check_ranges() > 0);
    assert!(!is_leased(&hot.own));
    OpenOptions::new().write(true).open(path).expect_err("it can't be written");
    assert!(hot.check_ranges() > 0);
}

fn is_never_mapped(path: &Path) {
    Hot::at(path).heat_in_vain();
}

fn leased(test: &str, mount: Mount) {
    on(test, mount, |place| {
        let path = written(place);
        is_mapped_under_a_lease(&path, &path);
    });
}

gpuio_testkit::tests! {
    ext4: leased("ext4", Room::ext4);
    xfs: leased("xfs", Room::xfs);
    btrfs: leased("btrfs", Room::btrfs);
}

#[test]
fn tmpfs() {
    let dir = memory_dir();
    let path = written(dir.path());
    is_mapped_under_a_lease(&path, &path);
}

/// The mount is only to be read, the file system is not.
#[test]
fn a_read_only_mount_of_a_file_system_that_is_written() {
    let test = "a_read_only_mount_of_a_file_system_that_is_written";
    let mount = |room: &mut Room| {
        let place = room.ext4()?;
        written(&place);
        let bound = room.mount("bound", &["--bind", text(&place)])?;
        run("mount", &["-o", "remount,bind,ro", text(&bound)])?;
        Ok(bound)
    };
    on(test, mount, |bound| {
        let path = bound.join("hot");
        let error = OpenOptions::new().write(true).open(&path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EROFS));
        is_mapped_under_a_lease(&path, &bound.with_file_name("place").join("hot"));
    });
}

#[test]
fn ext4_with_verity() {
    let mount = |room: &mut Room| {
        let place = room.made("mkfs.ext4", &["-q", "-F", "-b", "4096", "-O", "verity"])?;
        verify(&written(&place)).map_err(|why| format!("FS_IOC_ENABLE_VERITY: {why}"))?;
        Ok(place)
    };
    on("ext4_with_verity", mount, |place| is_mapped_for_good(&place.join("hot")));
}

/// Turns fs-verity on (Documentation/filesystems/fsverity.rst).
fn verify(path: &Path) -> std::io::Result<()> {
    /// `struct fsverity_enable_arg`.
    #[repr(C)]
    struct Enable {
        version: u32,
        /// 1: SHA-256.
        hash_algorithm: u32,
        block_bytes: u32,
        salt_bytes: u32,
        salt: u64,
        signature_bytes: u32,
        reserved: u32,
        signature: u64,
        reserved_too: [u64; 11],
    }
    /// `_IOW('f', 133, struct fsverity_enable_arg)`.
    const ENABLE: libc::c_ulong = 0x4080_6685;
    let argument = Enable {
        version: 1,
        hash_algorithm: 1,
        block_bytes: 4096,
        salt_bytes: 0,
        salt: 0,
        signature_bytes: 0,
        reserved: 0,
        signature: 0,
        reserved_too: [0; 11],
    };
    let file = File::open(path)?;
    // SAFETY: the call reads the structure, which is as the kernel has it.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), ENABLE as _, &raw const argument) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn immutable(test: &str, mount_of: MountOf) {
    let mount = |room: &mut Room| {
        let source = room.create_dir("source");
        written(&source);
        mount_of(room, &source)
    };
    on(test, mount, |place| is_mapped_for_good(&place.join("hot")));
}

gpuio_testkit::tests! {
    squashfs: immutable("squashfs", Room::squashfs);
    erofs: immutable("erofs", Room::erofs);
    iso9660: immutable("iso9660", Room::iso9660);
}

/// Its files are those of other file systems, which have ways to them that it does not know.
#[test]
fn overlayfs() {
    let mount = |room: &mut Room| {
        let layers = Layers::new(&room.create_dir("layers"));
        written(&layers.lower);
        room.overlay_of(&layers)
    };
    on("overlayfs", mount, |place| {
        is_never_mapped(&place.join("hot"));
        // A file of the upper layer, too.
        let path = place.join("new");
        std::fs::write(&path, content()).unwrap();
        is_never_mapped(&path);
    });
}

/// A file of a layer, read by its own name, and shortened through the overlay: no lease ends.
#[test]
fn a_layer_that_overlayfs_changes() {
    let mount = |room: &mut Room| {
        let layers = Layers::new(&room.ext4()?);
        written(&layers.upper);
        room.overlay_of(&layers)
    };
    on("a_layer_that_overlayfs_changes", mount, |overlay| {
        let hot = Hot::at(&overlay.with_file_name("place/upper/hot"));
        hot.heat();
        let name = std::ffi::CString::new(text(&overlay.join("hot"))).unwrap();
        // SAFETY: a NUL-terminated path.
        let cut = |len: i64| assert_eq!(unsafe { libc::truncate(name.as_ptr(), len) }, 0);
        cut(1_000_000);
        assert_eq!(hot.check_ranges(), 0);
        // As long as before, with zeros, and nothing is read in between.
        let long = i64::try_from(FILE).unwrap();
        cut(long);
        hot.heat();
        std::fs::write(overlay.join("hot"), content()).unwrap();
        hot.heat();
        cut(1_000_000);
        cut(long);
        assert_eq!(hot.check_ranges(), 0);
    });
}

#[test]
fn a_file_system_in_user_space() {
    on("a_file_system_in_user_space", Room::fuse2fs, |place| is_never_mapped(&written(place)));
}
