//! Files on file systems that are mounted for the test, which takes root and the programs that make
//! them; what is not to be had is output on standard error.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::client::{alone, cuda, cufile, name, random_bytes};
use crate::file::{LEN, made, opened, ranges};

/// Whether a program ran and was content.
fn ran(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A mount table of our own, which goes away with this process; not without root.
fn own_mounts() -> bool {
    // SAFETY: it changes what the threads made from now on see.
    let unshared = unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0;
    unshared && ran("mount", &["--make-rprivate", "/"])
}

/// Reads and writes in a directory, with O_DIRECT too where it takes that.
fn works(directory: &Path) {
    let (cuda, cufile) = (cuda(), cufile());
    let bytes = random_bytes(1, LEN);
    let path = made(directory, &bytes);
    let device = cuda.room(LEN + 8192);
    for flags in [0, libc::O_DIRECT] {
        let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(&path) else {
            continue;
        };
        let handle = cufile.register(&file).unwrap();
        ranges(&cufile, handle, device, &bytes, |len| cuda.get(device, len));
        cufile.deregister(handle);
    }
    let other = random_bytes(2, LEN);
    cuda.put(device, &other);
    let handle = cufile.register(&opened(&path, 0)).unwrap();
    assert_eq!(cufile.write(handle, device, LEN - 77, 77, 0), (LEN - 77).cast_signed());
    cufile.deregister(handle);
    let found = std::fs::read(&path).unwrap();
    assert!(found[..77] == bytes[..77] && found[77..] == other[..LEN - 77]);
}

/// Runs `works` on what `mount` mounts at the directory that it gets, or says why not.
fn on(test: &str, mount: impl FnOnce(&Path, &Path) -> bool) {
    let output = alone(test, &[], || {
        let (room, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        if !own_mounts() || !mount(room.path(), place.path()) {
            skip(test, "it takes root and a file system that can be made");
            return;
        }
        works(place.path());
        // The mount goes with this process; what is below it is removed now.
        assert!(ran("umount", &["-l", place.path().to_str().unwrap()]));
    });
    say_skips(&output);
}

/// Says that a test did nothing, and why.
#[expect(clippy::print_stdout, reason = "a test that does nothing is to be heard of")]
pub(crate) fn skip(test: &str, why: &str) {
    println!("SKIPPED: {test}: {why}");
}

/// Repeats the lines in which the process says what it could not do.
#[expect(clippy::print_stdout, reason = "as above")]
pub(crate) fn say_skips(output: &str) {
    output.lines().filter(|line| line.contains("SKIPPED")).for_each(|line| println!("{line}"));
}

#[test]
fn overlayfs() {
    on(name(overlayfs), |room, place| {
        let part = |name: &str| {
            std::fs::create_dir(room.join(name)).unwrap();
            room.join(name).to_str().unwrap().to_owned()
        };
        let (lower, upper, work) = (part("lower"), part("upper"), part("work"));
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        ran("mount", &["-t", "overlay", "overlay", "-o", &options, place.to_str().unwrap()])
    });
}

/// A file of 384 MiB without content, for a file system.
fn image(room: &Path) -> String {
    let path = room.join("image");
    File::create(&path).unwrap().set_len(384 << 20).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn ext4_on_a_loop_device() {
    on(name(ext4_on_a_loop_device), |room, place| {
        let image = image(room);
        let made = ran("mkfs.ext4", &["-q", "-F", &image]);
        made && ran("mount", &["-o", "loop", &image, place.to_str().unwrap()])
    });
}

#[test]
fn xfs_on_a_loop_device() {
    on(name(xfs_on_a_loop_device), |room, place| {
        let image = image(room);
        let made = ran("mkfs.xfs", &["-q", "-f", &image]);
        made && ran("mount", &["-o", "loop", &image, place.to_str().unwrap()])
    });
}

#[test]
fn a_file_system_in_user_space() {
    on(name(a_file_system_in_user_space), |room, place| {
        let image = image(room);
        let made = ran("mkfs.ext4", &["-q", "-F", &image]);
        made && ran("fuse2fs", &[&image, place.to_str().unwrap(), "-o", "rw"])
    });
}

#[test]
fn a_block_device() {
    let test = name(a_block_device);
    let output = alone(test, &[], || {
        let room = tempfile::tempdir().unwrap();
        let bytes = random_bytes(3, 4 << 20);
        let path = made(room.path(), &bytes);
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show"]).arg(&path);
        let device = losetup.output().ok().filter(|output| output.status.success());
        let Some(device) = device else {
            skip(test, "no loop device is to be had");
            return;
        };
        let device = String::from_utf8(device.stdout).unwrap().trim().to_owned();
        let (cuda, cufile) = (cuda(), cufile());
        let memory = cuda.room(4 << 20);
        let mut results = Vec::new();
        for flags in [0, libc::O_DIRECT] {
            let file = OpenOptions::new().read(true).custom_flags(flags).open(&device).unwrap();
            let handle = cufile.register(&file).unwrap();
            let actual = cufile.read(handle, memory, 3 << 20, 5000, 0);
            results.push((actual, cuda.get(memory, 3 << 20)));
            results.push((cufile.read(handle, memory, 8192, (4 << 20) - 100, 0), Vec::new()));
            cufile.deregister(handle);
        }
        assert!(ran("losetup", &["-d", &device]));
        for pair in results.chunks(2) {
            assert_eq!((pair[0].0, pair[1].0), (3 << 20, 100));
            assert!(pair[0].1 == bytes[5000..5000 + (3 << 20)]);
        }
    });
    say_skips(&output);
}
