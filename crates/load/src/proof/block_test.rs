use super::*;

fn device(name: &str, minor: u32, kind: BlockKind, members: Vec<BlockFacts>) -> BlockFacts {
    BlockFacts {
        name: name.to_owned(),
        device: DeviceNumber { major: 259, minor },
        kind,
        disk: None,
        detail: None,
        model: None,
        transport: None,
        pci_address: None,
        numa_node: None,
        size_bytes: None,
        read_only: None,
        rotational: None,
        logical_block_bytes: None,
        physical_block_bytes: None,
        max_request_bytes: None,
        read_ahead_bytes: None,
        scheduler: None,
        queue_requests: None,
        write_cache: None,
        members,
    }
}

/// A volume on a mirror of two disks, one of which holds the volume's log too.
fn volume() -> Stack {
    let disk = |name, minor| device(name, minor, BlockKind::Disk, Vec::new());
    let mirror = device("md0", 10, BlockKind::Md, vec![disk("nvme0n1", 1), disk("nvme1n1", 2)]);
    let volume = device("dm-0", 20, BlockKind::DeviceMapper, vec![mirror, disk("nvme0n1", 1)]);
    let mut stack = Stack::default();
    add(&mut stack.tops, &volume);
    leaves(&mut stack.leaves, &volume);
    stack
}

fn counted(sectors: [(u32, u64); 3]) -> Samples {
    let one = |(minor, read_sectors)| {
        let sample = BlockSample { read_sectors, ..BlockSample::default() };
        (DeviceNumber { major: 259, minor }, Some(sample))
    };
    sectors.into_iter().map(one).collect()
}

#[test]
fn members_are_summed_each_once() {
    let stack = volume();
    assert_eq!(names(&stack.tops), "dm-0");
    assert_eq!(names(&stack.leaves), "nvme0n1+nvme1n1");
    let witness = Block {
        stacks: vec![Ok(stack.clone())],
        before: counted([(20, 100), (1, 7), (2, 9)]),
        after: counted([(20, 104), (1, 10), (2, 10)]),
    };
    assert_eq!(witness.moved(&stack.leaves, Flow::Read), Some(4 * 512));
    assert_eq!(witness.moved(&stack.tops, Flow::Read), Some(4 * 512));
    assert_eq!(witness.moved(&stack.leaves, Flow::Write), Some(0));
    let reading = Block::reading(&witness.before, &stack.leaves, Flow::Read);
    assert_eq!(reading.as_deref(), Some("16 sectors of 512 B (nvme0n1+nvme1n1)"));
}

#[test]
fn a_device_that_went_away_leaves_no_figure() {
    let stack = volume();
    let mut after = counted([(20, 104), (1, 10), (2, 10)]);
    after.insert(DeviceNumber { major: 259, minor: 2 }, None);
    let before = counted([(20, 100), (1, 7), (2, 9)]);
    let mut witness = Block { stacks: Vec::new(), before, after };
    assert_eq!(witness.moved(&stack.leaves, Flow::Read), None);
    witness.after = counted([(20, 104), (1, 3), (2, 10)]);
    assert_eq!(witness.moved(&stack.leaves, Flow::Read), None, "a counter went back");
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
