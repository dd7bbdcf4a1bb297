//! The readers over small trees made here.

use gpuio_host::{Root, block, cgroup, collect, memory, numa};
use gpuio_record::facts::{BlockKind, HostFacts, IoLimit};
use gpuio_testkit::tree::{Tree, number};

#[test]
fn an_empty_tree_is_a_machine_of_which_nothing_is_known() {
    let facts = collect(&Tree::new().root());
    assert_eq!(facts, HostFacts::default());
    assert_eq!(collect(&Root::at("/no/such/root")), HostFacts::default());
}

/// Copies of trees lack `online`, or have it with a NUL at its end.
#[test]
fn nodes_are_found_without_the_list_of_them() {
    for online in [None, Some("0-1\n\0"), Some("\0")] {
        let tree = Tree::new();
        tree.file("sys/devices/system/node/node0/cpulist", "0-3\n")
            .file("sys/devices/system/node/node1/cpulist", "4-7\n");
        if let Some(online) = online {
            tree.file("sys/devices/system/node/online", online);
        }
        let nodes = collect(&tree.root()).numa.nodes;
        let cpus: Vec<_> = nodes.iter().map(|node| node.cpus.clone().unwrap()).collect();
        assert_eq!(cpus, [vec![0, 1, 2, 3], vec![4, 5, 6, 7]], "{online:?}");
    }
}

#[test]
fn a_small_machine() {
    let tree = Tree::new();
    tree.file("proc/cpuinfo", "model name : Test CPU\nflags : fpu hypervisor\n")
        .file("proc/self/status", "Cpus_allowed_list:\t0,2\n")
        .file("sys/devices/system/cpu/online", "0-3\n")
        .file("sys/devices/system/cpu/cpu0/cache/index1/level", "1\n")
        .file("sys/devices/system/cpu/cpu0/cache/index1/type", "Instruction\n")
        .file("sys/devices/system/cpu/cpu0/cache/index1/size", "32K\n")
        .file("sys/devices/system/cpu/cpu0/cache/index2/level", "2\n")
        .file("sys/devices/system/cpu/cpu0/cache/index2/type", "Unified\n")
        .file("sys/devices/system/cpu/cpu0/cache/index2/size", "2048K\n")
        .file("sys/devices/system/node/online", "0-1\n")
        .file("sys/devices/system/node/node0/cpulist", "0-3\n")
        .file("sys/devices/system/node/node0/distance", "10 21\n")
        .file("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8 kB\n")
        .file("sys/devices/system/node/node1/cpulist", "\n")
        .file("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 500 kB\n")
        .file("proc/sys/kernel/osrelease", "6.12.1\n")
        .file("proc/sys/kernel/io_uring_disabled", "2\n")
        .file("proc/self/limits", "Max locked memory  8192  unlimited  bytes\n")
        .file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
        .file("sys/class/dmi/id/product_name", "Test Board\n")
        .file("run/.containerenv", "");
    let facts = collect(&tree.root());
    assert_eq!(facts.problems, []);
    assert_eq!(facts.cpu.model.as_deref(), Some("Test CPU"));
    assert_eq!(facts.cpu.online, Some(vec![0, 1, 2, 3]));
    assert_eq!(facts.cpu.allowed, Some(vec![0, 2]));
    assert_eq!((facts.cpu.l2_cache_bytes, facts.cpu.l3_cache_bytes), (Some(2 << 20), None));
    assert_eq!(facts.numa.nodes.len(), 2);
    assert_eq!(facts.numa.nodes[0].distances, Some(vec![10, 21]));
    assert_eq!(facts.numa.nodes[0].total_bytes, Some(8192));
    assert_eq!(facts.numa.nodes[1].cpus, Some(vec![]));
    assert_eq!(facts.memory.usable_bytes, Some(1000 * 1024));
    assert_eq!(facts.kernel.release.as_deref(), Some("6.12.1"));
    assert_eq!(facts.kernel.io_uring_disabled, Some(2));
    assert_eq!(facts.kernel.memlock_bytes.unwrap().soft, Some(8192));
    assert_eq!(facts.kernel.transparent_huge_pages.as_deref(), Some("madvise"));
    assert_eq!(facts.kernel.containment.container.as_deref(), Some("podman"));
    assert_eq!(facts.kernel.containment.hypervisor, Some(true));
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<HostFacts>(&text).unwrap(), facts);
}

#[test]
fn a_broken_line_is_a_problem_with_path_and_line_and_the_rest_is_read() {
    let tree = Tree::new();
    tree.file("proc/meminfo", "MemTotal: 1000 kB\nDirty: lots kB\n")
        .file("proc/sys/kernel/osrelease", "6.12.1\n");
    let facts = collect(&tree.root());
    assert_eq!(facts.kernel.release.as_deref(), Some("6.12.1"));
    assert_eq!(facts.memory.total_bytes, None);
    let [problem] = facts.problems.as_slice() else { panic!("{:?}", facts.problems) };
    assert_eq!(problem.path, tree.path("proc/meminfo").to_string_lossy());
    assert_eq!(problem.line, Some(2));
}

#[test]
fn the_tightest_control_group_counts() {
    let tree = Tree::new();
    tree.file("proc/meminfo", "MemTotal: 1000000 kB\n")
        .file("proc/self/cgroup", "4:memory:/pod/me\n0::/\n")
        .file(
            "proc/self/mountinfo",
            "1 0 0:1 /pod /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             2 0 0:2 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        )
        .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096000\n")
        .file("sys/fs/cgroup/memory/me/memory.limit_in_bytes", "9223372036854771712\n")
        .file("sys/fs/cgroup/unified/memory.max", "8192000\n");
    let mut problems = Vec::new();
    let found = memory::read(&tree.root(), &mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    let group = found.cgroup.unwrap();
    assert_eq!((group.version, group.limit_bytes), (1, 4_096_000));
    assert!(group.path.ends_with("sys/fs/cgroup/memory/memory.limit_in_bytes"));
    assert_eq!(found.usable_bytes, Some(4_096_000));
    // Files do not count as used, and each group that lacks room counts.
    assert_eq!(memory::available_bytes(&tree.root()), None);
    tree.file("proc/meminfo", "MemAvailable: 5000 kB\n");
    assert_eq!(memory::available_bytes(&tree.root()), Some(5_120_000));
    let used = "cache 1\ntotal_inactive_file 500000\ntotal_active_file 100000\n";
    tree.file("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n")
        .file("sys/fs/cgroup/memory/memory.stat", used);
    assert_eq!(memory::available_bytes(&tree.root()), Some(3_696_000));
    tree.file("sys/fs/cgroup/unified/memory.current", "8000000\n")
        .file("sys/fs/cgroup/unified/memory.stat", "inactive_file 1000\nactive_file 0\n");
    assert_eq!(memory::available_bytes(&tree.root()), Some(193_000));
}

#[test]
fn limits_on_io_are_those_of_the_groups_that_count() {
    let with = |groups: &str, fs_root: &str| {
        let tree = Tree::new();
        tree.device("sys/devices/vda", "254:0", 2000)
            .file("proc/self/cgroup", groups)
            .file(
                "proc/self/mountinfo",
                format!(
                    "1 0 0:1 {fs_root} /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
                     2 0 0:2 {fs_root} /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                ),
            )
            .file("sys/fs/cgroup/blkio/pod/blkio.throttle.write_bps_device", "254:0 1000\n")
            .file("sys/fs/cgroup/blkio/pod/me/blkio.throttle.read_iops_device", "254:0 500\n")
            .file("sys/fs/cgroup/unified/pod/io.max", "254:0 rbps=31457280 wbps=max\n")
            .file("sys/fs/cgroup/unified/pod/me/io.max", "9:9 rbps=max wbps=7\n");
        let found = cgroup::io_limits(&tree.root()).unwrap();
        found.map(|found| {
            let words = found.limits.iter().map(IoLimit::words).collect::<Vec<_>>();
            (words, found.hidden)
        })
    };
    let one = |word: &str| vec![word.to_owned()];
    // Version 1: its own group alone. Version 2: also the groups above.
    let own = one("reads on vda (254:0) to 500 I/Os per second");
    assert_eq!(with("7:blkio:/pod/me\n", "/"), Some((own, false)));
    let both = [one("writes on 9:9 to 7 B/s"), one("reads on vda (254:0) to 30.0 MiB/s")].concat();
    assert_eq!(with("0::/pod/me\n", "/"), Some((both, false)));
    assert_eq!(with("0::/elsewhere\n", "/"), Some((vec![], false)));
    // A group outside what is mounted: its limits and those above it are out of sight.
    assert_eq!(with("0::/pod/me\n", "/other"), Some((vec![], true)));
    assert_eq!(with("0::/../pod\n", "/"), Some((vec![], true)));
    assert_eq!(with("4:memory:/pod\n", "/"), None);
}

#[test]
fn pci_devices_near_and_nowhere() {
    let tree = Tree::new();
    tree.file("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n")
        .file("sys/bus/pci/devices/0000:3b:00.0/local_cpulist", "4-7\n")
        .file("sys/bus/pci/devices/0000:01:00.0/numa_node", "-1\n");
    let root = tree.root();
    let near = numa::pci_locality(&root, "00000000:3B:00.0").unwrap().unwrap();
    assert_eq!((near.node, near.local_cpus), (Some(1), Some(vec![4, 5, 6, 7])));
    let nowhere = numa::pci_locality(&root, "0000:01:00.0").unwrap().unwrap();
    assert_eq!((nowhere.node, nowhere.local_cpus), (None, None));
    assert_eq!(numa::pci_locality(&root, "0000:99:00.0").unwrap(), None);
}

const NVME: &str = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/nvme/nvme0/nvme0n1";

fn nvme(tree: &Tree) {
    tree.device(NVME, "259:0", 2000)
        .file(&format!("{NVME}/queue/rotational"), "0\n")
        .file(&format!("{NVME}/queue/logical_block_size"), "512\n")
        .file(&format!("{NVME}/queue/physical_block_size"), "4096\n")
        .file(&format!("{NVME}/queue/scheduler"), "[none] mq-deadline\n")
        .file(&format!("{NVME}/queue/nr_requests"), "1023\n")
        .file(&format!("{NVME}/queue/max_sectors_kb"), "128\n")
        .file(&format!("{NVME}/queue/read_ahead_kb"), "64\n")
        .file(&format!("{NVME}/queue/write_cache"), "write through\n")
        .file(&format!("{NVME}/stat"), "1 0 8 1 2 0 16 2 0 3 3\n")
        .file("sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/nvme/nvme0/model", "Fast 9000  \n")
        .file("sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/nvme/nvme0/transport", "pcie\n")
        .link(
            &format!("{NVME}/device"),
            "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/nvme/nvme0",
        )
        .file("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
    tree.device(&format!("{NVME}/nvme0n1p2"), "259:2", 1000)
        .file(&format!("{NVME}/nvme0n1p2/partition"), "2\n");
}

#[test]
fn a_partition_takes_its_queue_from_its_disk() {
    let tree = Tree::new();
    nvme(&tree);
    let mut problems = Vec::new();
    let found = block::read(&tree.root(), number(259, 2), &mut problems).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!((found.name.as_str(), found.kind), ("nvme0n1p2", BlockKind::Partition));
    assert_eq!(found.disk.as_deref(), Some("nvme0n1"));
    assert_eq!(found.size_bytes, Some(512_000));
    assert_eq!(found.model.as_deref(), Some("Fast 9000"));
    assert_eq!(found.transport.as_deref(), Some("pcie"));
    assert_eq!(found.pci_address.as_deref(), Some("0000:3b:00.0"));
    assert_eq!(found.numa_node, Some(1));
    assert_eq!(found.rotational, Some(false));
    assert_eq!(found.logical_block_bytes, Some(512));
    assert_eq!(found.physical_block_bytes, Some(4096));
    assert_eq!(found.max_request_bytes, Some(128 << 10));
    assert_eq!(found.read_ahead_bytes, Some(64 << 10));
    assert_eq!(found.queue_requests, Some(1023));
    assert_eq!(found.scheduler.as_deref(), Some("none"));
    assert_eq!(found.write_cache.as_deref(), Some("write through"));
    assert_eq!(block::read(&tree.root(), number(1, 1), &mut problems), None);
    let sample = block::sample_named(&tree.root(), "nvme0n1").unwrap().unwrap();
    assert_eq!((sample.reads, sample.write_sectors, sample.busy_ms), (1, 16, 3));
}

#[test]
fn a_volume_on_an_array_shows_every_member() {
    let tree = Tree::new();
    nvme(&tree);
    let (dm, md) = ("sys/devices/virtual/block/dm-0", "sys/devices/virtual/block/md127");
    tree.device(dm, "253:0", 900)
        .file(&format!("{dm}/dm/name"), "vg-data\n")
        .link(&format!("{dm}/slaves/md127"), md);
    tree.device(md, "9:127", 950)
        .file(&format!("{md}/md/level"), "raid0\n")
        .link(&format!("{md}/slaves/nvme0n1p2"), &format!("{NVME}/nvme0n1p2"));
    let found = block::read(&tree.root(), number(253, 0), &mut Vec::new()).unwrap();
    assert_eq!((found.kind, found.detail.as_deref()), (BlockKind::DeviceMapper, Some("vg-data")));
    let array = &found.members[0];
    assert_eq!((array.kind, array.detail.as_deref()), (BlockKind::Md, Some("raid0")));
    assert_eq!(array.members[0].name, "nvme0n1p2");
    assert_eq!(array.members[0].pci_address.as_deref(), Some("0000:3b:00.0"));
}

#[test]
fn a_ring_of_members_ends() {
    let tree = Tree::new();
    let dm = "sys/devices/virtual/block/dm-0";
    tree.device(dm, "253:0", 900).link(&format!("{dm}/slaves/dm-0"), dm);
    let found = block::read(&tree.root(), number(253, 0), &mut Vec::new()).unwrap();
    assert_eq!(found.members[0].name, "dm-0");
}

#[test]
fn multipath_nvme_finds_its_controller_through_the_subsystem() {
    let tree = Tree::new();
    let disk = "sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme1n1";
    let controller = "sys/devices/pci0000:80/0000:81:00.0/nvme/nvme1";
    tree.device(disk, "259:5", 10)
        .file(&format!("{controller}/transport"), "pcie\n")
        .link("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme1", controller);
    let found = block::read_name(&tree.root(), "nvme1n1", &mut Vec::new()).unwrap();
    assert_eq!(found.kind, BlockKind::Disk);
    assert_eq!(found.pci_address.as_deref(), Some("0000:81:00.0"));
    assert_eq!(found.transport.as_deref(), Some("pcie"));
}
