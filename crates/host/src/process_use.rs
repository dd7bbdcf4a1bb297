//! The mapped and open files of another process: `/proc/PID/maps`, `fd`, `fdinfo`, `mountinfo`,
//! `io` and `environ` (proc_pid_maps(5), proc_pid_fd(5), proc_pid_fdinfo(5)).
//!
//! Only the process's user and root may read these (ptrace(2), `PTRACE_MODE_READ_FSCREDS`), where
//! no security module forbids it; for others each is unknown, with that reason.

use std::collections::{BTreeMap, BTreeSet};

use gpuio_record::facts::{Fact, MappedLibrary, OpenFile, ProcessUse};
use rustix::fs::OFlags;

use crate::mount::{self, Mount};
use crate::{Root, mounted, proc_io, process};

/// How names of libraries begin that move bytes between files and GPUs, or drive GPUs.
const LIBRARIES: [&str; 4] = ["libcufile", "libcuda.so", "libkvikio", "libgpuio"];
/// How nodes begin through which bytes reach a GPU.
const DEVICES: [&str; 2] = ["/dev/nvidia", "/dev/infiniband/"];
/// How variables begin that choose the way of the bytes.
const VARIABLES: [&str; 5] =
    ["CUFILE_", "GPUIO_CUFILE", "KVIKIO_COMPAT_MODE", "CUDA_VISIBLE_DEVICES", "LD_PRELOAD"];
const NO_STORAGE: [&str; 4] = ["/memfd:", "/dev/shm/", "/proc/", "/sys/"];

const NOT_ALLOWED: &str =
    "only its user and root may read it, and a container or security module may forbid that too";

/// Reads the process; `None` when there is none of this number.
pub fn read(root: &Root, pid: u32) -> Option<ProcessUse> {
    process::find(root, pid).ok().flatten()?;
    let at = |file: &str| format!("proc/{pid}/{file}");
    let maps = root.read(at("maps")).ok().flatten();
    let descriptors = match &maps {
        // The right to read the one is the right to read the other.
        Some(_) => root.list(at("fd")).map_err(|error| error.to_string()),
        None => Err(format!("/proc/{pid}/fd: {NOT_ALLOWED}")),
    };
    let links = descriptors.map(|names| {
        let links = names.into_iter().filter_map(|name| {
            let target = root.link(at(&format!("fd/{name}")))?;
            Some((name, target.to_string_lossy().into_owned()))
        });
        links.collect::<Vec<_>>()
    });
    let (files, devices) = match links {
        Ok(links) => (Fact::Known(files(root, pid, &links)), Fact::Known(devices(&links))),
        Err(why) => (Fact::unknown(why.clone()), Fact::unknown(why)),
    };
    let io = proc_io::sample_of(root, pid).ok().flatten().map(|sample| sample.total);
    let environ = root.read(at("environ")).ok().flatten();
    let missing = |file: &str| format!("/proc/{pid}/{file}: {NOT_ALLOWED}");
    Some(ProcessUse {
        pid,
        command: process::command(root, pid),
        same_mounts: same_mounts(root, pid),
        libraries: Fact::or_unknown(maps.map(|text| libraries(&text.body)), &missing("maps")),
        files,
        devices,
        io: Fact::or_unknown(io, &missing("io")),
        environment: Fact::or_unknown(environ.map(|t| variables(&t.body)), &missing("environ")),
    })
}

fn same_mounts(root: &Root, pid: u32) -> Fact<bool> {
    let of = |who: &str| root.link(format!("proc/{who}/ns/mnt"));
    match (of(&pid.to_string()), of("self")) {
        (Some(its), Some(ours)) => Fact::Known(its == ours),
        _ => Fact::unknown(format!("/proc/{pid}/ns/mnt: {NOT_ALLOWED}")),
    }
}

/// The libraries of `/proc/PID/maps`.
fn libraries(maps: &str) -> Vec<MappedLibrary> {
    let mut all: Vec<MappedLibrary> = Vec::new();
    for line in maps.lines() {
        // Address, rights, offset, device and inode come before the path, which may hold blanks.
        let Some(at) = line.find('/') else { continue };
        let full = &line[at..];
        let path = full.strip_suffix(" (deleted)").unwrap_or(full);
        let name = path.rsplit('/').next().unwrap_or_default();
        let wanted = LIBRARIES.iter().any(|begin| name.starts_with(begin));
        if !wanted || !name.contains(".so") || all.iter().any(|known| known.path == path) {
            continue;
        }
        let number = name.split_once(".so.").map(|(_, number)| number.to_owned());
        all.push(MappedLibrary {
            path: path.to_owned(),
            deleted: path != full,
            version: number.filter(|number| number.contains('.')),
            made_by: Fact::default(),
        });
    }
    all
}

fn devices(links: &[(String, String)]) -> Vec<String> {
    let nodes = links.iter().map(|(_, target)| target);
    let nodes = nodes.filter(|target| DEVICES.iter().any(|begin| target.starts_with(begin)));
    nodes.cloned().collect::<BTreeSet<String>>().into_iter().collect()
}

fn files(root: &Root, pid: u32, links: &[(String, String)]) -> Vec<OpenFile> {
    let mounts = root.read_bytes(format!("proc/{pid}/mountinfo")).ok().flatten();
    let mounts = mounts.and_then(|(_, text)| mount::parse_mountinfo(&text).ok());
    let mounts = mounts.unwrap_or_default();
    let mut all: Vec<OpenFile> = Vec::new();
    for (number, target) in links {
        let Some(file) = open_file(root, pid, number, target, &mounts) else { continue };
        match all.iter_mut().find(|known| same(known, &file)) {
            Some(known) => known.descriptors += 1,
            None => all.push(file),
        }
    }
    all.sort_by(|one, two| (!one.direct, &one.path).cmp(&(!two.direct, &two.path)));
    all
}

fn same(one: &OpenFile, two: &OpenFile) -> bool {
    let key = |file: &OpenFile| (file.direct, file.reads, file.writes, file.device);
    one.path == two.path && key(one) == key(two)
}

/// The file of a descriptor, unless it is no file and no block device.
fn open_file(
    root: &Root,
    pid: u32,
    number: &str,
    target: &str,
    mounts: &[Mount],
) -> Option<OpenFile> {
    let node = target.strip_prefix("/dev/");
    let block = node.is_some_and(|node| root.exists(format!("sys/class/block/{node}")));
    let storage = target.starts_with('/') && NO_STORAGE.iter().all(|no| !target.starts_with(no));
    if !storage || node.is_some() && !block {
        return None;
    }
    let text = root.read(format!("proc/{pid}/fdinfo/{number}")).ok().flatten()?.body;
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.map(str::trim)
    };
    let bits = u32::from_str_radix(field("flags:")?, 8).ok()?;
    let flags = OFlags::from_bits_retain(bits);
    if flags.intersects(OFlags::DIRECTORY) || flags.contains(OFlags::PATH) {
        return None;
    }
    let id: Option<u64> = field("mnt_id:").and_then(|id| id.parse().ok());
    // A block device is no file of the mount that holds its node.
    let mount = mounts.iter().find(|mount| Some(mount.id) == id).filter(|_| !block);
    if mount.is_some_and(|mount| mounted::is_kernels_own(&mount.fs_type)) {
        return None;
    }
    let access = bits & OFlags::RWMODE.bits();
    Some(OpenFile {
        path: target.to_owned(),
        mount_point: mount.map(|mount| mount.mount_point.to_string_lossy().into_owned()),
        fs_type: mount.map(|mount| mount.fs_type.clone()),
        device: mount.map(|mount| mount.device),
        direct: flags.contains(OFlags::DIRECT),
        reads: access != OFlags::WRONLY.bits(),
        writes: access != OFlags::RDONLY.bits(),
        descriptors: 1,
    })
}

/// The variables of `/proc/PID/environ` that matter.
fn variables(environ: &str) -> BTreeMap<String, String> {
    let all = environ.split('\0').filter_map(|word| word.split_once('='));
    let kept = all.filter(|(name, _)| VARIABLES.iter().any(|begin| name.starts_with(begin)));
    kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn put(tree: &Path, file: &str, text: &str) {
        let path = tree.join("proc/7").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn descriptor(tree: &Path, number: u32, target: &str, flags: u32, mount: u64) {
        put(
            tree,
            &format!("fdinfo/{number}"),
            &format!("pos:\t0\nflags:\t{flags:o}\nmnt_id:\t{mount}\n"),
        );
        fs::create_dir_all(tree.join("proc/7/fd")).unwrap();
        symlink(target, tree.join(format!("proc/7/fd/{number}"))).unwrap();
    }

    fn process(tree: &Path) {
        put(tree, "stat", "7 (python) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2\n");
        put(tree, "cmdline", "python\0train.py\0");
    }

    #[test]
    fn files_devices_and_libraries_of_a_process() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        process(tree);
        put(
            tree,
            "maps",
            "7f00-7f01 r--p 00000000 fe:00 11 /usr/lib/libcufile.so.1.13.0\n\
             7f01-7f02 r-xp 00001000 fe:00 11 /usr/lib/libcufile.so.1.13.0\n\
             7f03-7f04 r-xp 00000000 fe:00 12 /opt/a b/libcuda.so.1 (deleted)\n\
             7f05-7f06 r-xp 00000000 fe:00 13 /usr/lib/libc.so.6\n\
             7f07-7f08 rw-p 0 00:00 0 [heap]\n",
        );
        put(
            tree,
            "mountinfo",
            "20 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n21 20 0:5 / /proc rw - proc proc rw\n",
        );
        let direct = OFlags::DIRECT.bits();
        descriptor(tree, 3, "/data/x", direct, 20);
        descriptor(tree, 4, "/data/x", direct, 20);
        descriptor(tree, 5, "/data/log", OFlags::WRONLY.bits(), 20);
        descriptor(tree, 6, "/dev/nvidia0", 2, 22);
        descriptor(tree, 8, "/dev/nvidia-fs3", 2, 22);
        descriptor(tree, 9, "/data", OFlags::DIRECTORY.bits(), 20);
        descriptor(tree, 10, "/x/stat", 0, 21);
        descriptor(tree, 11, "pipe:[7]", 0, 9);
        put(tree, "io", "rchar: 9\nread_bytes: 4096\n");
        put(tree, "environ", "HOME=/root\0CUFILE_FORCE_COMPAT_MODE=1\0");
        let read = read(&Root::at(tree), 7).unwrap();
        assert_eq!(read.command.as_deref(), Some("python train.py"));
        let libraries = read.libraries.known().unwrap();
        assert_eq!(libraries.len(), 2);
        assert_eq!(libraries[0].version.as_deref(), Some("1.13.0"));
        assert_eq!(
            (libraries[1].path.as_str(), libraries[1].deleted),
            ("/opt/a b/libcuda.so.1", true)
        );
        assert_eq!(libraries[1].version, None);
        let files = read.files.known().unwrap();
        assert_eq!(files.len(), 2, "{files:#?}");
        assert_eq!((files[0].direct, files[0].descriptors, files[0].writes), (true, 2, false));
        assert_eq!(files[0].mount_point.as_deref(), Some("/"));
        assert_eq!((files[1].direct, files[1].reads, files[1].writes), (false, false, true));
        assert_eq!(read.devices.known().unwrap(), &["/dev/nvidia-fs3", "/dev/nvidia0"]);
        assert_eq!(read.io.known().unwrap().storage_read_bytes, 4096);
        assert_eq!(read.environment.known().unwrap().len(), 1);
    }

    #[test]
    fn what_may_not_be_read_is_unknown_with_its_reason() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path());
        let read = read(&Root::at(dir.path()), 7).unwrap();
        for why in [read.libraries.why(), read.files.why(), read.io.why(), read.environment.why()] {
            assert!(why.unwrap().contains("its user and root"), "{why:?}");
        }
        assert!(super::read(&Root::at(dir.path()), 8).is_none());
    }
}
