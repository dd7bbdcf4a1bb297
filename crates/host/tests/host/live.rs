//! The readers on the machine that runs the tests, against other ways of asking.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpuio_host::residency::residency;
use gpuio_host::target::{Danger, danger};

use crate::guard::examine;
use gpuio_host::{Root, block, collect, proc_io, statx, target_storage};
use gpuio_record::facts::{BlockKind, TargetKind};

#[test]
fn the_machine_agrees_with_the_standard_library_and_system_calls() {
    let facts = collect(&Root::live());
    assert_eq!(facts.problems, []);
    let allowed = facts.cpu.allowed.unwrap();
    // The library counts a control group's share of time too, so it may say less.
    assert!(std::thread::available_parallelism().unwrap().get() <= allowed.len());
    let online = facts.cpu.online.unwrap();
    assert!(allowed.iter().all(|cpu| online.contains(cpu)), "{allowed:?} in {online:?}");
    let name = rustix::system::uname();
    assert_eq!(facts.kernel.release.as_deref(), name.release().to_str().ok());
    let info = rustix::system::sysinfo();
    // The kernel's own unit, and a few pages may be given back between the two questions.
    let total = info.totalram * u64::from(info.mem_unit);
    assert!(facts.memory.total_bytes.unwrap().abs_diff(total) < 64 << 20);
    assert!(facts.memory.usable_bytes <= facts.memory.total_bytes);
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let read = facts.kernel.open_files.unwrap();
    assert_eq!((read.soft, read.hard), (files.current, files.maximum));
}

#[test]
fn a_file_is_what_the_standard_library_says() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"four").unwrap();
    let found = statx::file(file.path()).unwrap();
    let metadata = file.as_file().metadata().unwrap();
    assert_eq!(statx::open_file(file.as_file()).unwrap(), found);
    assert_eq!((found.size_bytes, found.inode), (4, metadata.ino()));
    assert_eq!(found.links, 1);
    assert_eq!(found.mtime_ns, metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec());
    let number = rustix::fs::makedev(found.device.major, found.device.minor);
    assert_eq!(number, metadata.dev());
    if let Some(direct) = found.direct.filter(|direct| direct.supported) {
        assert!(direct.offset_bytes.is_power_of_two() && direct.memory_bytes.is_power_of_two());
    }
    let error = statx::file(Path::new("/no/such/file")).unwrap_err().to_string();
    assert!(error.contains("/no/such/file") && error.contains("statx"), "{error}");
}

#[test]
fn storage_beneath_a_path_matches_df() {
    let dir = tempfile::tempdir().unwrap();
    let mut problems = Vec::new();
    let found = target_storage(&Root::live(), &dir.path().join("not/yet"), &mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    let examined = dir.path().canonicalize().unwrap();
    assert_eq!(found.examined.as_deref(), examined.to_str());
    let mount = found.mount.unwrap();
    let output = Command::new("df").arg("--output=target").arg(dir.path()).output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(text.lines().last().map(str::trim), Some(mount.mount_point.as_str()));
        }
        _ => println!("skipped the comparison: df --output does not work here"),
    }
    if let Some(device) = found.device {
        assert_eq!(device.device, found.file.unwrap().device);
        assert!(device.logical_block_bytes.unwrap() >= 512);
    }
}

#[test]
fn this_process_counts_what_it_reads() {
    let root = Root::live();
    let Some(first) = proc_io::sample(&root).unwrap() else {
        println!("skipped: this kernel does not account for I/O");
        return;
    };
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let second = proc_io::sample(&root).unwrap().unwrap();
    let delta = first.delta(&second);
    assert!(delta.read_call_bytes >= bytes.len() as u64);
    assert!(delta.read_calls > 0);
}

/// A loop device over an image, taken down when dropped.
struct LoopDevice {
    node: PathBuf,
    image: tempfile::NamedTempFile,
}

impl LoopDevice {
    /// `None`, with a line that says why, where loop devices cannot be made.
    fn new(size: u64) -> Option<Self> {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(size).unwrap();
        let made = Command::new("losetup").args(["-f", "--show"]).arg(image.path()).output();
        match made {
            Ok(made) if made.status.success() => {
                let node = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
                Some(Self { node, image })
            }
            Ok(made) => {
                println!("skipped: losetup: {}", String::from_utf8_lossy(&made.stderr).trim());
                None
            }
            Err(error) => {
                println!("skipped: losetup cannot be run: {error}");
                None
            }
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let done = Command::new("losetup").arg("-d").arg(&self.node).status();
        assert!(done.is_ok_and(|done| done.success()), "{} is left over", self.node.display());
    }
}

#[test]
fn a_loop_device_lives_and_is_guarded() {
    let Some(device) = LoopDevice::new(64 << 20) else {
        return;
    };
    let root = Root::live();
    let find_dangers = || danger(&examine(&root, &device.node));
    assert_eq!(find_dangers(), [], "a fresh device of zeros is free");

    let facts = examine(&root, &device.node);
    let TargetKind::Block(target) = &facts.kind else { panic!("{facts:?}") };
    assert_eq!((target.size_bytes, target.claimed), (Some(64 << 20), Some(false)));
    let found = block::read(&root, target.device, &mut Vec::new()).unwrap();
    assert_eq!(found.kind, BlockKind::Loop);
    let image = device.image.path().canonicalize().unwrap();
    assert_eq!(found.detail.as_deref(), image.to_str());
    let storage = target_storage(&root, &device.node, &mut Vec::new());
    assert_eq!(storage.device.map(|device| device.name), Some(found.name.clone()));

    let behind = danger(&examine(&root, &image));
    assert!(behind.contains(&Danger::LoopBacking { devices: vec![found.name] }), "{behind:?}");

    // Kept open: when a device's last user goes, so does its page cache.
    let node = File::open(&device.node).unwrap();
    counts_io(&device.node);
    let cached = residency(&node, 0, u64::MAX);
    assert_eq!(cached.range_bytes, 64 << 20, "cut at the end of the device");
    assert!(cached.cached_bytes >= Some(1 << 20), "just written through the cache: {cached:?}");
    sees_a_mount(&device, &find_dangers);
    sees_a_swap_mark(&device, &find_dangers);
}

fn counts_io(node: &Path) {
    let root = Root::live();
    let sample = || block::sample_named(&root, node.file_name()?.to_str()?).unwrap();
    let first = sample().unwrap();
    let mut file = File::options().write(true).open(node).unwrap();
    file.write_all(&[0; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    let delta = first.delta(&sample().unwrap()).unwrap();
    assert!(delta.write_bytes >= 1 << 20, "{delta:?}");
}

fn run(program: &str, args: &[&str], node: &Path, last: Option<&Path>) -> bool {
    let output = Command::new(program).args(args).arg(node).args(last).output();
    let good = output.as_ref().is_ok_and(|output| output.status.success());
    if !good {
        println!("skipped: {program} did not work: {output:?}");
    }
    good
}

fn sees_a_mount(device: &LoopDevice, find_dangers: &dyn Fn() -> Vec<Danger>) {
    if !run("mkfs.ext4", &["-q", "-F"], &device.node, None) {
        return;
    }
    let found = find_dangers();
    assert!(
        matches!(found.as_slice(), [Danger::Holds(mark)] if mark.name == "ext4 file system"),
        "{found:?}"
    );
    let dir = tempfile::tempdir().unwrap();
    if !run("mount", &[], &device.node, Some(dir.path())) {
        return;
    }
    let found = find_dangers();
    let storage = target_storage(&Root::live(), dir.path(), &mut Vec::new());
    assert!(run("umount", &[], dir.path(), None));
    assert!(
        matches!(&found[0], Danger::Mounted(at) if at.fs_type == "ext4"
            && Path::new(&at.mount_point) == dir.path().canonicalize().unwrap()),
        "{found:?}"
    );
    assert!(found[0].is_final());
    assert_eq!(storage.mount.unwrap().fs_type, "ext4");
    assert_eq!(storage.device.unwrap().kind, BlockKind::Loop);
}

fn sees_a_swap_mark(device: &LoopDevice, find_dangers: &dyn Fn() -> Vec<Danger>) {
    if !run("mkswap", &["-f"], &device.node, None) {
        return;
    }
    let marks = find_dangers();
    assert!(
        marks.iter().any(|found| matches!(found, Danger::Holds(mark) if mark.name == "swap area")),
        "{marks:?}"
    );
}
