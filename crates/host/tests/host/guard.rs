//! The guard: marks on images, relations in small trees, and the judgement.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpuio_host::Root;
use gpuio_host::signature::{END_BYTES, Ends};
use gpuio_host::target::{Contents, Danger, Opened, Tables, danger, examine_block, examine_open};
use gpuio_record::facts::{
    BlockTarget, DeviceNumber, MountFacts, OtherKind, TargetFacts, TargetKind, Unchecked,
};
use gpuio_testkit::tree::{Tree, number};
use proptest::prelude::*;
use rustix::fs::OFlags;

const SIZE: u64 = 64 << 20;

/// Marks found on a device of 64 MiB that is zero but for these bytes.
fn marks(parts: &[(u64, &[u8])]) -> Vec<(String, u64)> {
    let mut file = tempfile::tempfile().unwrap();
    file.set_len(SIZE).unwrap();
    for (offset, bytes) in parts {
        file.seek(SeekFrom::Start(*offset)).unwrap();
        file.write_all(bytes).unwrap();
    }
    let ends = Ends::read(&file).unwrap();
    assert_eq!(ends.are_zero(), parts.is_empty());
    ends.signatures().into_iter().map(|mark| (mark.name, mark.offset_bytes)).collect()
}

fn only(parts: &[(u64, &[u8])], name: &str) {
    let found: Vec<String> = marks(parts).into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, [name], "{parts:?}");
}

#[test]
fn a_zero_device_bears_no_mark() {
    assert_eq!(marks(&[]), []);
}

#[test]
fn ext_generations_are_distinguished() {
    let magic: (u64, &[u8]) = (1080, &[0x53, 0xef]);
    only(&[magic], "ext2 file system");
    only(&[magic, (1116, &[4])], "ext3 file system");
    only(&[magic, (1116, &[4]), (1120, &[0x42])], "ext4 file system");
    only(&[magic, (1116, &[4]), (1124, &[0x08])], "ext4 file system");
    only(&[magic, (1120, &[8])], "ext4 external journal");
}

#[test]
fn marks_at_the_start() {
    only(&[(0, b"XFSB")], "xfs file system");
    only(&[(65600, b"_BHRfS_M")], "btrfs file system");
    only(&[(0, b"LUKS\xba\xbe\0\x02")], "LUKS encrypted volume");
    only(&[(0x4000, b"SKUL\xba\xbe")], "LUKS encrypted volume");
    only(&[(512, b"LABELONE"), (536, b"LVM2 001")], "LVM2 physical volume");
    only(&[(4086, b"SWAPSPACE2")], "swap area");
    only(&[(65526, b"SWAPSPACE2")], "swap area");
    only(&[(4086, b"S1SUSPEND")], "hibernation image");
    only(&[(4096, &[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0])], "md RAID member (metadata 1.2)");
    only(&[(0, &[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0])], "md RAID member (metadata 1.1)");
    only(&[(0x8001, b"CD001")], "iso9660 file system");
    only(&[(0, b"bluestore block device")], "Ceph BlueStore device");
    let zfs = 0x00ba_b10c_u64;
    only(&[(128 << 10, &zfs.to_le_bytes())], "zfs pool member");
    let bcache = [
        0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d,
        0x81,
    ];
    only(&[(4120, &bcache)], "bcache device");
}

#[test]
fn marks_at_the_end() {
    let old_md: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9, 0, 0, 0, 0, 90];
    only(&[(SIZE - 65536, old_md)], "md RAID member (metadata 0.90)");
    let new_md: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0];
    only(&[(SIZE - 8192, new_md)], "md RAID member (metadata 1.0)");
    only(&[(SIZE - 512, b"EFI PART")], "GPT partition table (backup)");
    let zfs = 0x00ba_b10c_u64;
    only(&[(SIZE - (128 << 10), &zfs.to_be_bytes())], "zfs pool member");
    only(&[(SIZE - 1024, b"Intel Raid ISM Cfg Sig. 1.3")], "Intel firmware RAID member");
}

#[test]
fn boot_sectors_and_partition_tables() {
    let end: (u64, &[u8]) = (510, &[0x55, 0xaa]);
    only(&[end], "boot sector");
    only(&[end, (446, &[0x80, 0, 0, 0, 0x83])], "MBR partition table");
    only(&[end, (3, b"NTFS    ")], "ntfs file system");
    only(&[end, (82, b"FAT32   ")], "vfat file system");
    let protective: (u64, &[u8]) = (446, &[0, 0, 0, 0, 0xee]);
    only(&[end, protective, (512, b"EFI PART")], "GPT partition table");
    let names = marks(&[end, (446, &[0, 0, 0, 0, 7]), (512, b"EFI PART")]);
    assert_eq!(names.len(), 2, "a hybrid table is both: {names:?}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn scanning_never_panics(
        head in proptest::collection::vec(any::<u8>(), 0..9000),
        tail in proptest::collection::vec(any::<u8>(), 0..9000),
        size in any::<u64>(),
    ) {
        let _ = Ends::of(head, tail, size).signatures();
    }
}

#[test]
fn tiny_devices_are_read_whole() {
    for size in [0u64, 1, 511, 512, 4096, END_BYTES as u64 + 1] {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        let ends = Ends::read(&file).unwrap();
        assert_eq!((ends.size_bytes(), ends.signatures()), (size, vec![]));
    }
}

const SDA: &str = "sys/devices/pci0000:00/0000:00:1f.2/ata1/block/sda";
const DM: &str = "sys/devices/virtual/block/dm-0";

/// A disk `sda` with `sda1`, and the volume `vg-home` on `sda2`.
fn disk() -> Tree {
    let tree = Tree::new();
    tree.device(SDA, "8:0", 131_072);
    for (part, minor) in [("sda1", 1), ("sda2", 2)] {
        tree.device(&format!("{SDA}/{part}"), &format!("8:{minor}"), 65_536)
            .file(&format!("{SDA}/{part}/partition"), format!("{minor}\n"));
    }
    tree.device(DM, "253:0", 65_000)
        .file(&format!("{DM}/dm/name"), "vg-home\n")
        .link(&format!("{SDA}/sda2/holders/dm-0"), DM)
        .file("proc/swaps", "Filename Type Size Used Priority\n")
        .file("proc/self/mountinfo", "1 0 0:5 / / rw - overlay overlay rw\n");
    tree
}

fn look(tree: &Tree, device: DeviceNumber) -> (BlockTarget, Vec<Unchecked>) {
    let mut unchecked = Vec::new();
    let ends = Ends::of(vec![0; 4096], vec![0; 4096], 65_536 * 512);
    let contents = Contents { claimed: Some(false), ends: Some(ends) };
    (examine_block(&tree.root(), device, contents, &mut unchecked), unchecked)
}

fn reasons(target: BlockTarget, unchecked: Vec<Unchecked>) -> Vec<String> {
    let facts = TargetFacts {
        path: "/dev/x".to_owned(),
        resolved: Some("/dev/x".to_owned()),
        symlink: false,
        kind: TargetKind::Block(target),
        mount: None,
        unchecked,
    };
    danger(&facts).iter().map(ToString::to_string).collect()
}

#[test]
fn an_unused_partition_is_free() {
    let tree = disk();
    let (target, unchecked) = look(&tree, number(8, 1));
    assert_eq!(target.name, "sda1");
    assert_eq!(target.disk.as_deref(), Some("sda"));
    assert_eq!(target.size_bytes, Some(65_536 * 512));
    assert_eq!(reasons(target, unchecked), Vec::<String>::new());
}

#[test]
fn a_disk_is_in_danger_through_its_partitions_and_their_holders() {
    let tree = disk();
    tree.file(
        "proc/self/mountinfo",
        "1 0 253:0 / /home\\040of\\040all rw - xfs /dev/mapper/vg-home rw\n\
         2 0 8:1 / /boot rw - ext4 /dev/sda1 rw\n",
    );
    let (target, unchecked) = look(&tree, number(8, 0));
    let found = reasons(target, unchecked);
    assert_eq!(
        found,
        [
            "dm-0 is mounted at /home of all (xfs)",
            "sda1 is mounted at /boot (ext4)",
            "dm-0 (vg-home) is built on sda2",
            "it has the partitions sda1, sda2",
        ]
    );
}

#[test]
fn a_volume_that_is_not_mounted_is_free_but_what_it_lies_on_is_not() {
    let tree = disk();
    let (volume, unchecked) = look(&tree, number(253, 0));
    assert_eq!(reasons(volume, unchecked), Vec::<String>::new());
    let (under, unchecked) = look(&tree, number(8, 2));
    assert_eq!(reasons(under, unchecked), ["dm-0 (vg-home) is built on sda2"]);
}

#[test]
fn a_mounted_whole_disk_endangers_its_partitions() {
    let tree = disk();
    tree.file("proc/self/mountinfo", "2 0 8:0 / /mnt rw - ext4 /dev/sda rw\n");
    let (target, unchecked) = look(&tree, number(8, 1));
    assert_eq!(reasons(target, unchecked), ["sda is mounted at /mnt (ext4)"]);
}

#[test]
fn swap_is_found_by_node_and_by_volume_name() {
    let tree = disk();
    tree.file(
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/sda1 partition 1 0 -2\n\
         /dev/mapper/vg-home partition 1 0 -3\n",
    );
    let (target, unchecked) = look(&tree, number(8, 0));
    let found = reasons(target, unchecked);
    assert!(found.contains(&"sda1 is swap space in use".to_owned()), "{found:?}");
    assert!(found.contains(&"dm-0 is swap space in use".to_owned()), "{found:?}");
}

#[test]
fn btrfs_is_found_by_source_and_by_membership() {
    let tree = disk();
    tree.file("proc/self/mountinfo", "2 0 0:44 / /data rw - btrfs /dev/sda1 rw\n")
        .file("sys/fs/btrfs/uuid-1/devices/sda2/dev", "8:2\n");
    let (first, unchecked) = look(&tree, number(8, 1));
    assert_eq!(reasons(first, unchecked), ["sda1 is mounted at /data (btrfs)"]);
    let (second, unchecked) = look(&tree, number(8, 2));
    let found = reasons(second, unchecked);
    assert_eq!(found[0], "sda2 is mounted at /sys/fs/btrfs/uuid-1 (btrfs)");
}

#[test]
fn an_unexplained_claim_is_a_danger_by_itself() {
    let tree = disk();
    let (mut target, unchecked) = look(&tree, number(8, 1));
    target.claimed = Some(true);
    target.read_only = Some(true);
    let found = reasons(target, unchecked);
    assert!(found[0].starts_with("sda1 is in use"), "{found:?}");
    assert_eq!(found[1], "sda1 is read-only");
}

#[test]
fn what_cannot_be_seen_is_said() {
    let tree = Tree::new();
    let (target, unchecked) = look(&tree, number(8, 0));
    assert_eq!(target.name, "8:0");
    let found = reasons(target, unchecked);
    assert!(found[0].starts_with("it is not known which partitions"), "{found:?}");
    let tree = disk();
    fs::remove_file(tree.path("proc/self/mountinfo")).unwrap();
    let (target, unchecked) = look(&tree, number(8, 1));
    let found = reasons(target, unchecked);
    assert!(found[0].starts_with("it is not known whether it is mounted"), "{found:?}");
    tree.file("proc/self/mountinfo", "garbage\n");
    let (_, unchecked) = look(&tree, number(8, 1));
    assert!(unchecked[0].reason.contains("line 1"), "{unchecked:?}");
}

#[test]
fn bytes_without_a_known_mark_are_a_danger_that_may_be_waved_through() {
    let tree = disk();
    let ends = Ends::of(vec![9; 4096], vec![0; 4096], 65_536 * 512);
    let contents = Contents { claimed: Some(false), ends: Some(ends) };
    let target = examine_block(&tree.root(), number(8, 1), contents, &mut Vec::new());
    let found = reasons(target, Vec::new());
    assert_eq!(found, ["sda1 is not empty, and its content is not recognised"]);
    assert!(!Danger::UnknownData { name: String::new() }.is_final());
}

/// A look at one target by itself.
pub(crate) fn examine(root: &Root, path: &Path) -> TargetFacts {
    examine_open(root, path, &Opened::named(path), &[], &Tables::default())
}

fn dangers(root: &Root, path: &Path) -> Vec<Danger> {
    danger(&examine(root, path))
}

#[test]
fn files_directories_links_and_the_absent() {
    let tree = Tree::new();
    let root = Root::live();
    let dir = tree.path("");
    assert_eq!(dangers(&root, &dir), []);
    assert_eq!(dangers(&root, &dir.join("new")), []);
    assert_eq!(dangers(&root, &dir.join("no/new")), [Danger::NoParent]);
    tree.file("empty", "").file("full", "12345");
    assert_eq!(dangers(&root, &dir.join("empty")), []);
    let full = examine(&root, &dir.join("full"));
    assert!(matches!(full.kind, TargetKind::File { size_bytes: 5, links: 1, .. }), "{full:?}");
    assert_eq!(danger(&full), [Danger::HasData { size_bytes: 5 }]);
    fs::hard_link(dir.join("empty"), dir.join("second_name")).unwrap();
    assert_eq!(dangers(&root, &dir.join("second_name")), [Danger::HardLinks { links: 2 }]);
    symlink("full", dir.join("link")).unwrap();
    let linked = examine(&root, &dir.join("link"));
    assert!(linked.symlink);
    assert_eq!(linked.resolved, full.resolved);
    symlink("gone", dir.join("dangling")).unwrap();
    let found = dangers(&root, &dir.join("dangling"));
    assert!(
        matches!(found.as_slice(), [Danger::DanglingLink { aim }] if aim.ends_with("/gone")),
        "{found:?}"
    );
    assert!(found[0].is_final());
}

#[test]
fn special_files_are_refused() {
    let tree = Tree::new();
    let root = Root::live();
    let not = |kind| vec![Danger::NotStorage(kind)];
    assert_eq!(dangers(&root, Path::new("/dev/null")), not(OtherKind::CharacterDevice));
    let socket = tree.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(dangers(&root, &socket), not(OtherKind::Socket));
    let fifo = tree.path("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(dangers(&root, &fifo), not(OtherKind::Fifo));
}

/// A file that does not exist yet, on a file system of this type.
fn new_file(path: &str, mount_point: &str, fs_type: &str) -> TargetFacts {
    TargetFacts {
        path: path.to_owned(),
        resolved: Some(path.to_owned()),
        symlink: false,
        kind: TargetKind::Absent { parent_exists: true },
        mount: Some(MountFacts {
            mount_point: mount_point.to_owned(),
            fs_type: fs_type.to_owned(),
            ..MountFacts::default()
        }),
        unchecked: Vec::new(),
    }
}

#[test]
fn kernel_files_and_mistyped_devices_are_refused() {
    let root = Root::live();
    let found = dangers(&root, Path::new("/proc/self/comm"));
    assert!(matches!(&found[0], Danger::KernelFile { fs_type } if fs_type == "proc"), "{found:?}");
    let facts = new_file("/dev/nvme9n9", "/dev", "tmpfs");
    assert_eq!(danger(&facts), [Danger::FileInDev]);
}

#[test]
fn files_of_every_file_system_that_shows_the_kernel_are_refused() {
    let of = |fs_type: &str| danger(&new_file("/there/file", "/there", fs_type));
    for fs_type in ["proc", "sysfs", "selinuxfs", "nfsd", "rpc_pipefs", "cgroup2", "efivarfs"] {
        assert_eq!(of(fs_type), [Danger::KernelFile { fs_type: fs_type.to_owned() }]);
    }
    assert_eq!(of("devtmpfs"), [Danger::FileInDev]);
    for fs_type in ["hugetlbfs", "tmpfs", "ext4", "nfs4"] {
        assert_eq!(of(fs_type), []);
    }
}

#[test]
fn a_swap_file_and_a_disk_image_in_use_are_refused() {
    let tree = Tree::new();
    tree.file("image", "x");
    let image = tree.path("image").canonicalize().unwrap();
    let swaps = format!("Filename Type Size Used Priority\n{} file 1 0 -2\n", image.display());
    tree.file("proc/swaps", swaps)
        .file("sys/block/loop3/loop/backing_file", format!("{}\n", image.display()))
        .file("sys/block/loop4/loop/backing_file", "/elsewhere\n");
    let found = dangers(&tree.root(), &image);
    assert_eq!(found[0], Danger::SwapFile);
    assert_eq!(found[1], Danger::LoopBacking { devices: vec!["loop3".to_owned()] });
    assert_eq!(found[2], Danger::HasData { size_bytes: 1 });
}

/// The tables are read once, however many files are looked at.
#[test]
fn tables_are_read_once_for_many_files() {
    let tree = Tree::new();
    tree.file("one", "x").file("two", "x");
    tree.file("proc/self/mountinfo", "1 0 0:5 / / rw - xfs none rw\n")
        .file("proc/swaps", "Filename Type Size Used Priority\n");
    let (root, tables) = (tree.root(), Tables::default());
    let look = |name: &str| {
        let path = tree.path(name);
        examine_open(&root, &path, &Opened::named(&path), &[], &tables)
    };
    let first = look("one");
    for table in ["proc/self/mountinfo", "proc/swaps"] {
        tree.file(table, "none\nof\nits\nlines\n");
    }
    let second = look("two");
    assert_eq!(first.mount.unwrap().fs_type, "xfs");
    assert_eq!((second.mount.unwrap().fs_type.as_str(), second.unchecked), ("xfs", Vec::new()));
    assert!(!examine(&root, &tree.path("two")).unchecked.is_empty(), "by itself it reads again");
}

/// An image is in use whichever of its names is asked about.
#[test]
fn a_disk_image_is_known_by_its_inode() {
    let tree = Tree::new();
    tree.file("image", "x").file("sys/block/loop3/loop/backing_file", "/image\n");
    fs::hard_link(tree.path("image"), tree.path("link")).unwrap();
    let behind = Danger::LoopBacking { devices: vec!["loop3".to_owned()] };
    for name in ["image", "link"] {
        let found = dangers(&tree.root(), &tree.path(name));
        assert_eq!(found[0], behind, "{name}: {found:?}");
    }
    tree.file("other", "x").file("sys/block/loop4/loop/backing_file", "/gone (deleted)\n");
    let found = dangers(&tree.root(), &tree.path("other"));
    assert!(!found.contains(&behind), "{found:?}");
    let open = found.iter().map(ToString::to_string).find(|text| text.contains("loop4"));
    assert!(open.is_some_and(|text| text.contains("not known whether a loop device uses it")));
}

/// Held while a program is started, and while a claim is looked at: until it runs its program, a
/// child has a copy of every descriptor of this process.
static NO_CHILD: Mutex<()> = Mutex::new(());

fn no_child() -> MutexGuard<'static, ()> {
    NO_CHILD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loop devices and mounts of this test, taken down in the order in which they were set up last.
struct Setups(Vec<Vec<String>>);

impl Setups {
    /// Runs a command; `None`, with a word, where this machine can't.
    fn run(&mut self, line: &[&str], undo: &[&str]) -> Option<String> {
        let output = {
            let _none = no_child();
            std::process::Command::new(line[0]).args(&line[1..]).output()
        };
        match output {
            Ok(output) if output.status.success() => {
                let said = String::from_utf8(output.stdout).unwrap().trim().to_owned();
                let undo = undo.iter().map(|word| word.replace("{}", &said));
                self.0.push(undo.collect());
                Some(said)
            }
            other => {
                println!("skipped: {line:?} can't be had here: {other:?}");
                None
            }
        }
    }
}

impl Drop for Setups {
    fn drop(&mut self) {
        let _none = no_child();
        for line in self.0.iter().rev() {
            let done = std::process::Command::new(&line[0]).args(&line[1..]).status();
            assert!(done.is_ok_and(|status| status.success()), "{line:?}");
        }
    }
}

/// A loop device on an image, one on that loop device, a hard link and a bind mount of the image.
#[test]
fn loop_on_loop_hard_links_and_bind_mounts_of_an_image_are_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let (image, link) = (dir.path().join("image"), dir.path().join("link"));
    let (bound, free) = (dir.path().join("bound"), dir.path().join("free"));
    fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
    fs::write(&bound, "").unwrap();
    fs::write(&free, "").unwrap();
    fs::hard_link(&image, &link).unwrap();
    let mut setups = Setups(Vec::new());
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let losetup = |path: &str| ["losetup".to_owned(), "-f".into(), "--show".into(), path.into()];
    let set_up = |setups: &mut Setups, path: &str| {
        let line = losetup(path);
        setups.run(&line.each_ref().map(String::as_str), &["losetup", "-d", "{}"])
    };
    let Some(first) = set_up(&mut setups, &text(&image)) else { return };
    let Some(second) = set_up(&mut setups, &first) else { return };
    let mount = ["mount", "--bind", &text(&image), &text(&bound)];
    if setups.run(&mount, &["umount", &text(&bound)]).is_none() {
        return;
    }
    // Its own looks claim devices for a moment.
    let none = no_child();
    let root = Root::live();
    let behind = |device: &str| Danger::LoopBacking {
        devices: vec![device.trim_start_matches("/dev/").to_owned()],
    };
    for path in [&image, &link, &bound] {
        let found = dangers(&root, path);
        assert!(found.contains(&behind(&first)), "{}: {found:?}", path.display());
        assert!(found[0].is_final());
    }
    // The name is gone, the kernel still has the file.
    fs::remove_file(&image).unwrap();
    assert!(dangers(&root, &link).contains(&behind(&first)));
    assert!(dangers(&root, Path::new(&first)).contains(&behind(&second)));
    assert!(!dangers(&root, Path::new(&second)).iter().any(Danger::is_final));
    assert!(!dangers(&root, &free).iter().any(Danger::is_final));
    drop(none);
}

/// A claim of this process itself is no claim of somebody else's.
#[test]
fn a_claim_of_our_own_is_told_from_that_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    fs::File::create(&image).unwrap().set_len(1 << 20).unwrap();
    let mut setups = Setups(Vec::new());
    let line = ["losetup", "-f", "--show", image.to_str().unwrap()];
    let Some(device) = setups.run(&line, &["losetup", "-d", "{}"]) else { return };
    let (root, device) = (Root::live(), Path::new(&device));
    let none = no_child();
    let opened = Opened::named(device).unwrap();
    let number = opened.stamp().rdev;
    let held = opened.reopen(OFlags::RDONLY | OFlags::EXCL).unwrap();
    let opened = Ok(opened);
    let look = |claimed: &[u64]| {
        danger(&examine_open(&root, device, &opened, claimed, &Tables::default()))
    };
    assert!(look(&[]).iter().any(|one| matches!(one, Danger::Claimed { .. })));
    assert!(look(&[number]).is_empty(), "{:?}", look(&[number]));
    drop(held);
    assert!(look(&[]).is_empty());
    drop(none);
}

#[test]
fn facts_survive_the_record() {
    let tree = disk();
    let (target, unchecked) = look(&tree, number(8, 0));
    let kind = TargetKind::Block(target);
    let text = serde_json::to_string(&kind).unwrap();
    assert!(text.contains(r#""kind":"block""#), "{text}");
    assert_eq!(serde_json::from_str::<TargetKind>(&text).unwrap(), kind);
    assert_eq!(unchecked, []);
}
