use gpuio_host::Root;
use gpuio_host::block::{self, BlockSample};
use gpuio_record::facts::{BlockFacts, DeviceNumber};
use gpuio_testkit::tree::Tree;

use super::*;
use crate::evidence::block_stack::{add, add_leaves};

fn device(name: &str, minor: u32, kind: BlockKind, members: Vec<BlockFacts>) -> BlockFacts {
    let device = DeviceNumber { major: 259, minor };
    BlockFacts { members, ..BlockFacts::unread(name, device, kind) }
}

/// A volume on a mirror of two disks, one of which holds the volume's log too.
fn volume() -> Stack {
    let disk = |name, minor| device(name, minor, BlockKind::Disk, Vec::new());
    let mirror = device("md0", 10, BlockKind::Md, vec![disk("nvme0n1", 1), disk("nvme1n1", 2)]);
    let volume = device("dm-0", 20, BlockKind::DeviceMapper, vec![mirror, disk("nvme0n1", 1)]);
    let mut stack = Stack::default();
    add(&mut stack.tops, &volume);
    add_leaves(&mut stack.leaves, &volume);
    stack
}

fn counted(sectors: [(&str, u64); 3]) -> Counters {
    let one = |(name, read_sectors): (&str, u64)| {
        (name.to_owned(), BlockSample { read_sectors, ..BlockSample::default() })
    };
    Counters { block: sectors.into_iter().map(one).collect(), ..Counters::default() }
}

#[test]
fn members_are_summed_each_once() {
    let stack = volume();
    assert_eq!(names(&stack.tops), "dm-0");
    assert_eq!(names(&stack.leaves), "nvme0n1+nvme1n1");
    let before = counted([("dm-0", 100), ("nvme0n1", 7), ("nvme1n1", 9)]);
    let after = counted([("dm-0", 104), ("nvme0n1", 10), ("nvme1n1", 10)]);
    let moved = |devices: &[Device], flow| moved(&before, &after, devices, flow);
    assert_eq!(moved(&stack.leaves, Flow::Read), Some(4 * 512));
    assert_eq!(moved(&stack.tops, Flow::Read), Some(4 * 512));
    assert_eq!(moved(&stack.leaves, Flow::Write), Some(0));
    let reading = reading(&before, &stack.leaves, Flow::Read);
    assert_eq!(reading.as_deref(), Some("16 sectors of 512 B (nvme0n1+nvme1n1)"));
}

/// A drive over NVMe/TCP on Linux 6.1: the namespace's own counters stay zero.
#[test]
fn a_namespace_that_counts_at_its_paths() {
    let mut stack = Stack::default();
    add_leaves(&mut stack.leaves, &device("nvme0n1", 1, BlockKind::Disk, Vec::new()));
    let before = counted([("nvme0n1", 0), ("nvme0c0n1", 7), ("nvme0c1n1", 2)]);
    let after = counted([("nvme0n1", 0), ("nvme0c0n1", 10), ("nvme0c1n1", 3)]);
    assert_eq!(moved(&before, &after, &stack.leaves, Flow::Read), Some(4 * 512));
    let text = reading(&after, &stack.leaves, Flow::Read);
    assert_eq!(text.as_deref(), Some("13 sectors of 512 B (nvme0n1)"));
    // Newer kernels count both.
    let both = counted([("nvme0n1", 4), ("nvme0c0n1", 10), ("nvme0c1n1", 3)]);
    assert_eq!(moved(&before, &both, &stack.leaves, Flow::Read), Some(4 * 512));
    let other = counted([("nvme0n1", 0), ("nvme1c0n1", 10), ("nvme0c1n2", 3)]);
    assert_eq!(moved(&before, &other, &stack.leaves, Flow::Read), Some(0), "other namespaces");
}

#[test]
fn a_device_that_went_away_leaves_no_figure() {
    let stack = volume();
    let before = counted([("dm-0", 100), ("nvme0n1", 7), ("nvme1n1", 9)]);
    let gone = counted([("dm-0", 104), ("nvme0n1", 10), ("other", 10)]);
    assert_eq!(moved(&before, &gone, &stack.leaves, Flow::Read), None);
    let reset = counted([("dm-0", 104), ("nvme0n1", 3), ("nvme1n1", 10)]);
    assert_eq!(moved(&before, &reset, &stack.leaves, Flow::Read), None, "a counter went back");
}

#[test]
fn the_reason_names_what_blurs_the_figure() {
    let stack = volume();
    let text = why(&stack, 3000, Some(1024), 1024, None);
    assert!(text.contains("dm-0 above it 1.00 KiB"), "{text}");
    assert!(text.contains("other processes"), "{text}");
    let mut zram = Stack::default();
    add(&mut zram.leaves, &device("zram0", 3, BlockKind::Virtual, Vec::new()));
    assert!(why(&zram, 10, None, 10, Some(Share::All)).contains("virtual"));
}

/// A tree with a mirror of two partitions and a volume on it, as sysfs has them.
struct Mirror(Tree);

impl Mirror {
    const DISKS: [&str; 2] = ["sys/devices/pci0000:00/nvme0n1", "sys/devices/pci0000:00/nvme1n1"];
    const MD: &str = "sys/devices/virtual/block/md0";
    const DM: &str = "sys/devices/virtual/block/dm-0";

    fn new() -> Mirror {
        let mirror = Mirror(Tree::new());
        mirror.0.file(&format!("{}/md/level", Self::MD), "raid1\n");
        mirror.0.file(&format!("{}/dm/name", Self::DM), "vg-data\n");
        for (nth, disk) in Self::DISKS.iter().enumerate() {
            mirror.device(disk, &format!("259:{}", nth * 4));
            let partition = format!("{disk}/{}p2", disk.rsplit('/').next().unwrap());
            mirror.0.file(&format!("{partition}/partition"), "2\n");
            mirror.device(&partition, &format!("259:{}", nth * 4 + 2));
            mirror.slave(Self::MD, &partition);
        }
        mirror.device(Self::MD, "9:0");
        mirror.slave(Self::DM, Self::MD);
        mirror.device(Self::DM, "253:0");
        mirror
    }

    fn device(&self, at: &str, number: &str) {
        self.0.device(at, number, 2048);
        self.written(at, 0);
    }

    fn slave(&self, at: &str, member: &str) {
        self.0.link(&format!("{at}/slaves/{}", member.rsplit('/').next().unwrap()), member);
    }

    fn written(&self, at: &str, sectors: u64) {
        self.0.file(&format!("{at}/stat"), format!("0 0 0 0 1 0 {sectors} 1 0 1 1\n"));
    }

    fn root(&self) -> Root {
        self.0.root()
    }
}

#[test]
fn a_volume_on_a_mirror_of_partitions_is_counted_down_to_them() {
    let mirror = Mirror::new();
    let (root, volume) = (mirror.root(), DeviceNumber { major: 253, minor: 0 });
    let facts = block::read(&root, volume, &mut Vec::new()).unwrap();
    let mut stack = Stack::default();
    add(&mut stack.tops, &facts);
    add_leaves(&mut stack.leaves, &facts);
    assert_eq!(names(&stack.tops), "dm-0");
    assert_eq!(names(&stack.leaves), "nvme0n1p2+nvme1n1p2", "not their whole disks");
    let read = || {
        let all = stack.tops.iter().chain(&stack.leaves);
        let one = |device: &Device| {
            let sample = block::sample_named(&root, &device.name).unwrap().unwrap();
            (device.name.clone(), sample)
        };
        Counters { block: all.map(one).collect(), ..Counters::default() }
    };
    let before = read();
    mirror.written(Mirror::DM, 16);
    mirror.written(Mirror::MD, 16);
    for disk in Mirror::DISKS {
        // Others write to the rest of the disk at the same time.
        mirror.written(disk, 5000);
        mirror.written(&format!("{disk}/{}p2", disk.rsplit('/').next().unwrap()), 16);
    }
    let after = read();
    assert_eq!(moved(&before, &after, &stack.tops, Flow::Write), Some(16 * 512));
    assert_eq!(
        moved(&before, &after, &stack.leaves, Flow::Write),
        Some(2 * 16 * 512),
        "both copies"
    );
}
