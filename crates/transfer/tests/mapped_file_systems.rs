//! Files that are read again and again, on file systems that are mounted for the test: each is
//! mapped under the rule that it has, or never.
//!
//! Mounting takes root, the programs that make file systems, and a kernel that knows them. A file
//! system that is not available is named in a line with SKIPPED.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(clippy::print_stdout, reason = "a test that does nothing is to be heard of")]
#![allow(unsafe_code, reason = "mounts, leases and fs-verity are system calls")]

mod support;

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::hot::{EXTENT, FILE, Hot, content};
use support::{dir, memory_dir, random_bytes};
use tempfile::TempDir;

/// Runs a program; what it said if that failed.
fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}: {}", output.status, said.trim().replace('\n', "; ")))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A directory for images and mounts, which no other process sees: the thread has a mount table of
/// its own.
struct Room {
    dir: TempDir,
    /// Unmounted at the end, the last one first.
    mounts: Vec<PathBuf>,
}

impl Room {
    fn new() -> Result<Self, String> {
        // SAFETY: it changes what this thread sees, and those and the processes that it starts.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return Err(format!("unshare: {}", std::io::Error::last_os_error()));
        }
        run("mount", &["--make-rprivate", "/"])?;
        Ok(Self { dir: dir(), mounts: Vec::new() })
    }

    /// A path in it.
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn create_dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir(&path).unwrap();
        path
    }

    /// A file without content for a file system, longer than each of them wants at least.
    fn image(&self) -> PathBuf {
        let path = self.path("image");
        File::create(&path).unwrap().set_len(384 << 20).unwrap();
        path
    }

    /// Mounts something at a new directory.
    fn mount(&mut self, name: &str, arguments: &[&str]) -> Result<PathBuf, String> {
        let place = self.create_dir(name);
        run("mount", &[arguments, &[text(&place)]].concat())?;
        self.mounts.push(place.clone());
        Ok(place)
    }

    /// Makes a file system in an image and mounts it.
    fn made(&mut self, program: &str, arguments: &[&str]) -> Result<PathBuf, String> {
        let image = self.image();
        run(program, &[arguments, &[text(&image)]].concat())?;
        self.mount("place", &["-o", "loop", text(&image)])
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        for place in self.mounts.iter().rev() {
            // A file left open keeps it until it is closed.
            if let Err(why) = run("umount", &["-l", text(place)]) {
                println!("{why}");
            }
        }
    }
}

/// Runs a test on what `mount` returns, or says why not.
fn on(
    test: &str,
    mount: impl FnOnce(&mut Room) -> Result<PathBuf, String>,
    body: impl FnOnce(&Path),
) {
    let mut room = match Room::new() {
        Ok(room) => room,
        Err(why) => return println!("SKIPPED: {test}: {why}"),
    };
    match mount(&mut room) {
        Ok(place) => body(&place),
        Err(why) => println!("SKIPPED: {test}: {why}"),
    }
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

fn leased(test: &str, program: &str, arguments: &[&str]) {
    on(
        test,
        |room| room.made(program, arguments),
        |place| {
            let path = written(place);
            is_mapped_under_a_lease(&path, &path);
        },
    );
}

#[test]
fn ext4() {
    leased("ext4", "mkfs.ext4", &["-q", "-F"]);
}

#[test]
fn xfs() {
    leased("xfs", "mkfs.xfs", &["-q", "-f"]);
}

#[test]
fn btrfs() {
    leased("btrfs", "mkfs.btrfs", &["-q", "-f"]);
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
        let place = room.made("mkfs.ext4", &["-q", "-F"])?;
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

/// File systems that Linux only reads, made of a directory. `arguments` are of the directory and
/// the image.
fn immutable(test: &str, program: &str, arguments: impl FnOnce(&str, &str) -> Vec<String>) {
    let mount = |room: &mut Room| {
        let source = room.create_dir("source");
        written(&source);
        let image = room.path("image");
        let arguments = arguments(text(&source), text(&image));
        run(program, &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
        room.mount("place", &["-o", "loop,ro", text(&image)])
    };
    on(test, mount, |place| is_mapped_for_good(&place.join("hot")));
}

#[test]
fn squashfs() {
    immutable("squashfs", "mksquashfs", |source, image| {
        // Uncompressed: bytes without a pattern do not become fewer.
        [source, image, "-quiet", "-no-progress", "-noD"].map(str::to_owned).into()
    });
}

#[test]
fn erofs() {
    immutable("erofs", "mkfs.erofs", |source, image| {
        ["--quiet", image, source].map(str::to_owned).into()
    });
}

#[test]
fn iso9660() {
    immutable("iso9660", "genisoimage", |source, image| {
        ["-quiet", "-R", "-o", image, source].map(str::to_owned).into()
    });
}

/// Its files are those of other file systems, which have ways to them that it does not know.
#[test]
fn overlayfs() {
    let mount = |room: &mut Room| {
        let [lower, upper, work] = ["lower", "upper", "work"].map(|name| room.create_dir(name));
        written(&lower);
        let (lower, upper, work) = (text(&lower), text(&upper), text(&work));
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        room.mount("place", &["-t", "overlay", "overlay", "-o", &options])
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
        let disk = room.made("mkfs.ext4", &["-q", "-F"])?;
        let [lower, upper, work] = ["lower", "upper", "work"].map(|name| {
            let path = disk.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        });
        written(&upper);
        let (lower, upper, work) = (text(&lower), text(&upper), text(&work));
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        room.mount("overlay", &["-t", "overlay", "overlay", "-o", &options])
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
    let mount = |room: &mut Room| {
        let image = room.image();
        run("mkfs.ext4", &["-q", "-F", text(&image)])?;
        let place = room.create_dir("place");
        run("fuse2fs", &[text(&image), text(&place), "-o", "rw"])?;
        room.mounts.push(place.clone());
        Ok(place)
    };
    on("a_file_system_in_user_space", mount, |place| is_never_mapped(&written(place)));
}
