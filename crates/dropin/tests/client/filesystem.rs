//! Files on file systems that are mounted for the test, which takes root and the programs that make
//! them; what is not to be had is output on standard error.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use gpuio_testkit::file_systems::{self, Mount, Room, run};

use crate::client::{alone, cuda, cufile, name, random_bytes};
use crate::file::{LEN, made, opened, ranges};

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

/// Runs `works` on what `mount` mounts, or says why not.
fn on(test: &str, mount: Mount) {
    let mounted = || file_systems::on(test, tempfile::tempdir().unwrap(), mount, works);
    let output = alone(test, &[], mounted);
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

gpuio_testkit::tests! {
    overlayfs: on(name(overlayfs), Room::overlay);
    ext4_on_a_loop_device: on(name(ext4_on_a_loop_device), Room::ext4);
    xfs_on_a_loop_device: on(name(xfs_on_a_loop_device), Room::xfs);
    a_file_system_in_user_space: on(name(a_file_system_in_user_space), Room::fuse2fs);
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
        run("losetup", &["-d", &device]).unwrap();
        for pair in results.chunks(2) {
            assert_eq!((pair[0].0, pair[1].0), (3 << 20, 100));
            assert!(pair[0].1 == bytes[5000..5000 + (3 << 20)]);
        }
    });
    say_skips(&output);
}
