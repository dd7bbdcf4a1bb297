//! Each outcome that each rule can have, from a machine that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpuio_base::catalog::RingAnswer;
use gpuio_record::Towards;
use gpuio_record::facts::{
    Acs, AcsControl, Bar1Facts, BlockKind, CrossRootPort, DeviceNumber, Diagnosis, DriveLink, Fact,
    GdsCheck, GdsGpu, GdsLine, InterfaceFacts, IoLimit, IoLimits, LinkLayer, Listed, Machine,
    MountKind, MountedStorage, NicFacts, NumaNode, PciPort, RdmaFacts, RdmaPort, ResourceLimit,
    Verdict,
};

use crate::check::Severity;
use crate::check::Severity::{Fail, Info, NotApplicable, Pass, Unknown, Warn};
use crate::check::machine::CAP_SYS_ADMIN;
use crate::check::rule::{RULES, find};
use crate::check::sample::{self, DRIVE, GPU, ROOT, UP};

/// A rule, its outcome, and what makes it of [`start`].
type Case = (&'static str, Severity, fn(&mut Machine));

/// One GPU and one drive below a switch, all lists whole, and cuFile's variables known.
fn start() -> Machine {
    let mut machine = sample::gpu_and_drive_below_a_switch();
    machine.cufile.path = "/etc/cufile.json".to_owned();
    machine.cufile.text = Fact::Known(None);
    machine.cufile.environment = Fact::Known(BTreeMap::new());
    machine
}

fn nothing(_: &mut Machine) {}

fn diagnosed(machine: &mut Machine, verdict: Verdict) {
    let (test, of) = ("PCIe".to_owned(), "GPU: 0".to_owned());
    machine.diagnoses = vec![Diagnosis { test, verdict, of, words: String::new() }];
}

fn limited(machine: &mut Machine, is_limited: bool, hidden: bool) {
    let limits = is_limited.then(|| IoLimit {
        version: 2,
        path: "/sys/fs/cgroup/io.max".to_owned(),
        number: DeviceNumber { major: 259, minor: 0 },
        device: "nvme0n1".to_owned(),
        towards: Towards::Read,
        bytes_per_s: Some(30 << 20),
        ios_per_s: None,
    });
    machine.host.io_limits = Some(IoLimits { limits: limits.into_iter().collect(), hidden });
}

fn no_gpu(machine: &mut Machine) {
    machine.gpus.clear();
}

fn not_listed(machine: &mut Machine) {
    machine.gpus.clear();
    machine.listed = Listed::default();
}

fn function<'m>(machine: &'m mut Machine, address: &str) -> &'m mut gpuio_record::facts::PciFacts {
    machine.pci.iter_mut().find(|one| one.address == address).unwrap()
}

fn configured(machine: &mut Machine, text: &str) {
    machine.cufile.text = Fact::Known(Some(text.to_owned()));
}

fn module(machine: &mut Machine, name: &str, loaded: bool, parameter: Option<(&str, &str)>) {
    let mut module = sample::module(name, loaded);
    module.parameters.extend(parameter.map(|(name, value)| (name.to_owned(), value.to_owned())));
    machine.modules.push(module);
}

fn card(machine: &mut Machine, megabits: u64) {
    let interface = InterfaceFacts {
        name: "p0".to_owned(),
        state: Some("up".to_owned()),
        carries: Some(LinkLayer::Ethernet),
        mtu_bytes: Some(1500),
        megabits: Some(megabits),
        ..InterfaceFacts::default()
    };
    machine.nics.push(NicFacts {
        pci: Some(DRIVE.to_owned()),
        node: Some(0),
        interfaces: vec![interface],
        rdma: vec![RdmaFacts { name: "mlx5_0".to_owned(), ..RdmaFacts::default() }],
    });
}

fn port(machine: &mut Machine, state: &str) {
    card(machine, 1);
    machine.nics[0].interfaces[0].state = Some(state.to_owned());
    let interface = Some("p0".to_owned());
    machine.nics[0].rdma[0].ports = vec![RdmaPort { port: 1, interface, ..RdmaPort::default() }];
}

fn nodes(machine: &mut Machine, gpu: u32) {
    let node = |node, distances: [u32; 2]| NumaNode {
        node,
        distances: Some(distances.to_vec()),
        ..NumaNode::default()
    };
    machine.host.numa.nodes = vec![node(0, [10, 21]), node(1, [21, 10])];
    machine.gpus[0].node = Some(gpu);
}

/// An array of the drive and a second one below another root port or the same.
fn array(machine: &mut Machine, apart: bool) {
    let other = "0000:80:01.0";
    machine.pci.push(sample::function(other, None, PciPort::RootPort));
    machine.pci.push(sample::function("0000:81:00.0", Some(other), PciPort::Endpoint));
    let second = if apart { "0000:81:00.0" } else { DRIVE };
    machine.block.push(sample::disk("nvme1n1", second));
    let mut md = sample::disk("md0", "");
    md.facts.kind = BlockKind::Md;
    md.pci.clear();
    md.made_of = vec!["nvme0n1".to_owned(), "nvme1n1".to_owned()];
    machine.block.push(md);
}

fn mount(machine: &mut Machine, fs_type: &str, options: &[&str]) {
    let mut mount = sample::mount("/d", "nvme0n1");
    mount.mount.fs_type = fs_type.to_owned();
    mount.mount.super_options = options.iter().map(|&option| option.to_owned()).collect();
    machine.mounts.push(mount);
}

fn nfs(machine: &mut Machine, change: fn(&mut MountedStorage)) {
    let mut mount = sample::nfs("/n", "rdma", "p0");
    change(&mut mount);
    machine.mounts.push(mount);
}

fn no_mount(machine: &mut Machine) {
    machine.listed.mounts = false;
}

fn link(machine: &mut Machine, now_megabits: Option<u64>, most_megabits: Option<u64>) {
    let port = "ata3".to_owned();
    machine.block[0].link = Some(DriveLink { port, now_megabits, most_megabits, lanes: 1 });
}

fn crossing(machine: &mut Machine, percent: Fact<u64>) {
    module(machine, "nvidia_fs", true, None);
    let share = |percent| vec![CrossRootPort { gpu: GPU.to_owned(), percent }];
    machine.settings.cross_root_ports = match percent {
        Fact::Known(percent) => Fact::Known(share(percent)),
        Fact::Unknown(why) => Fact::Unknown(why),
    };
}

fn redirect(machine: &mut Machine, address: &str) {
    let acs = Acs { present: true, enabled: vec![AcsControl::RequestRedirect] };
    function(machine, address).acs = Fact::Known(acs);
}

fn grouped(machine: &mut Machine, domain: Option<&str>) {
    machine.settings.iommu_units = vec!["dmar0".to_owned()];
    for function in &mut machine.pci {
        function.iommu_group = Some(1);
        function.iommu_domain = domain.map(str::to_owned);
    }
}

fn ordering(machine: &mut Machine, on: Option<bool>, address: &str) {
    for function in &mut machine.pci {
        function.relaxed_ordering = Fact::Known(true);
    }
    function(machine, address).relaxed_ordering = Fact::or_unknown(on, "needs root");
}

fn printed(machine: &mut Machine, lines: [(&str, &str); 3], verification: &str) {
    let line = |(name, value): (&str, &str)| GdsLine {
        name: name.to_owned(),
        value: Fact::Known(value.to_owned()),
    };
    machine.gdscheck = Some(GdsCheck {
        drivers: lines.map(line).to_vec(),
        verification: Fact::Known(verification.to_owned()),
        ..GdsCheck::default()
    });
}

fn only_printed(machine: &mut Machine, nvme: &str, wekafs: &str) {
    *machine = Machine::default();
    printed(machine, [("NVMe", nvme), ("NFS", "Unsupported"), ("WekaFS", wekafs)], "succeeded");
}

fn locked(machine: &mut Machine, soft: u64, capabilities: Option<u64>) {
    machine.host.kernel.memlock_bytes = Some(ResourceLimit { soft: Some(soft), hard: None });
    machine.host.kernel.capabilities = capabilities;
}

fn aio(machine: &mut Machine, used: u64) {
    machine.host.kernel.aio_max_events = Some(65_536);
    machine.host.kernel.aio_used_events = Some(used);
}

fn bar1(machine: &mut Machine, total_bytes: u64, used_bytes: Option<u64>) {
    machine.gpus[0].bar1 = Fact::Known(Bar1Facts { total_bytes, used_bytes });
}

fn p2pdma(machine: &mut Machine, option: Option<&str>) {
    machine.config.source = Fact::Known("/boot/config".to_owned());
    let options = ["CONFIG_PCI_P2PDMA", "CONFIG_ZONE_DEVICE"];
    for name in options.into_iter().filter(|_| option.is_some()) {
        machine.config.options.insert(name.to_owned(), option.unwrap().to_owned());
    }
}

const FORBIDDEN: &str = r#"{ "properties": { "allow_compat_mode": false } }"#;
const QUIET: &str = r#"{ "logging": { "dir": "/var/log", "level": "ERROR" } }"#;

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("pcie-link", Pass, nothing),
    ("pcie-link", Fail, |m| function(m, DRIVE).link_now.width = Some(2)),
    ("pcie-link", Unknown, |m| function(m, DRIVE).link_now.width = None),
    ("pcie-link", NotApplicable, |m| { no_gpu(m); m.block.clear(); }),
    ("sata-link", Fail, |m| link(m, Some(3000), Some(6000))),
    ("sata-link", Warn, |m| link(m, Some(3000), None)),
    ("sata-link", Unknown, |m| link(m, None, None)),
    ("sata-link", Pass, |m| link(m, Some(6000), None)),
    ("sata-link", NotApplicable, nothing),
    ("acs", Pass, nothing),
    ("acs", Warn, |m| redirect(m, "0000:02:01.0")),
    ("acs", Info, |m| redirect(m, ROOT)),
    ("acs", Unknown, |m| function(m, UP).acs = Fact::unknown("needs root")),
    ("acs", NotApplicable, no_gpu),
    ("iommu", Pass, nothing),
    ("iommu", Warn, |m| grouped(m, Some("DMA-FQ"))),
    ("iommu", Info, |m| grouped(m, Some("identity"))),
    ("iommu", Unknown, |m| grouped(m, None)),
    ("socket", Pass, |m| nodes(m, 0)),
    ("socket", Warn, |m| nodes(m, 1)),
    ("socket", Info, |m| {
        nodes(m, 0);
        array(m, true);
        function(m, "0000:81:00.0").node = Some(1);
    }),
    ("socket", Unknown, |m| { nodes(m, 0); m.gpus[0].node = None; }),
    ("socket", NotApplicable, nothing),
    ("array-span", Pass, |m| array(m, false)),
    ("array-span", Warn, |m| array(m, true)),
    ("array-span", Info, |m| { array(m, true); not_listed(m); }),
    ("array-span", Unknown, |m| {
        array(m, true);
        function(m, "0000:80:01.0").host_bridge = None;
    }),
    ("array-span", NotApplicable, nothing),
    ("shared-uplink", Warn, |m| card(m, 400_000)),
    ("shared-uplink", Info, |m| card(m, 100_000)),
    ("shared-uplink", Unknown, |m| { card(m, 100_000); function(m, UP).link_now.width = None; }),
    ("shared-uplink", Pass, |m| {
        card(m, 100_000);
        array(m, true);
        m.nics[0].pci = Some("0000:81:00.0".to_owned());
    }),
    ("shared-uplink", NotApplicable, nothing),
    ("cross-root", Pass, |m| crossing(m, Fact::Known(0))),
    ("cross-root", Info, |m| crossing(m, Fact::Known(3))),
    ("cross-root", Warn, |m| crossing(m, Fact::Known(40))),
    ("cross-root", Unknown, |m| crossing(m, Fact::unknown("not counted"))),
    ("cross-root", NotApplicable, |m| module(m, "nvidia_fs", false, None)),
    ("relaxed-ordering", Pass, |m| ordering(m, Some(true), GPU)),
    ("relaxed-ordering", Warn, |m| { card(m, 1); ordering(m, Some(false), DRIVE); }),
    ("relaxed-ordering", Info, |m| ordering(m, Some(false), GPU)),
    ("relaxed-ordering", Unknown, |m| ordering(m, None, GPU)),
    ("relaxed-ordering", NotApplicable, no_gpu),
    ("nvidia-fs", Pass, |m| module(m, "nvidia_fs", true, Some(("rw_stats_enabled", "0")))),
    ("nvidia-fs", Warn, |m| module(m, "nvidia_fs", false, None)),
    ("nvidia-fs", Info, |m| only_printed(m, "p2pdma", "Unsupported")),
    ("nvidia-fs", Unknown, nothing),
    ("nvidia-fs", NotApplicable, no_gpu),
    ("peermem", Pass, |m| { card(m, 1); module(m, "nvidia_peermem", true, None); }),
    ("peermem", Info, |m| { card(m, 1); module(m, "nvidia_peermem", false, None); }),
    ("peermem", Warn, |m| {
        card(m, 1);
        module(m, "nvidia_peermem", false, None);
        mount(m, "wekafs", &["rw"]);
        m.mounts[0].kind = MountKind::Weka;
    }),
    ("peermem", Unknown, |m| card(m, 1)),
    ("peermem", NotApplicable, nothing),
    ("udev", Pass, |m| m.settings.udev_runtime = Fact::Known(true)),
    ("udev", Fail, |m| m.settings.udev_runtime = Fact::Known(false)),
    ("udev", Fail, |m| {
        m.settings.udev_runtime = Fact::Known(false);
        m.listed.pci = false;
    }),
    ("udev", Unknown, nothing),
    ("udev", NotApplicable, no_gpu),
    ("cufile-json", Pass, |m| configured(m, QUIET)),
    ("cufile-json", Fail, |m| configured(m, "{")),
    ("cufile-json", Warn, |m| configured(m, r#"{ "properties": { "use_poll_mode": 7 } }"#)),
    ("cufile-json", Info, |m| configured(m, r#"{ "zebra": 1 }"#)),
    ("cufile-json", Unknown, |m| m.cufile.text = Fact::unknown("denied")),
    ("cufile-json", NotApplicable, nothing),
    ("compat-mode", Warn, |m| configured(m, r#"{ "properties": { "force_compat_mode": true } }"#)),
    ("compat-mode", Info, nothing),
    ("compat-mode", Fail, |m| { configured(m, FORBIDDEN); module(m, "nvidia_fs", false, None); }),
    ("compat-mode", Pass, |m| { configured(m, FORBIDDEN); module(m, "nvidia_fs", true, None); }),
    ("compat-mode", Unknown, |m| configured(m, FORBIDDEN)),
    ("compat-mode", NotApplicable, no_gpu),
    ("cufile-logs", Warn, |m| configured(m, r#"{ "logging": { "level": "TRACE" } }"#)),
    ("cufile-logs", Info, nothing),
    ("cufile-logs", Unknown, |m| configured(m, QUIET)),
    ("cufile-logs", Pass, |m| {
        configured(m, QUIET);
        m.cufile.log_directory_writable = Fact::Known(true);
    }),
    ("cufile-logs", NotApplicable, no_gpu),
    ("direct-io", Pass, |m| mount(m, "xfs", &["rw"])),
    ("direct-io", Pass, |m| mount(m, "ext4", &["rw"])),
    ("direct-io", Warn, |m| mount(m, "xfs", &["rw", "sync"])),
    ("direct-io", Warn, |m| mount(m, "ext4", &["data=writeback"])),
    ("direct-io", Warn, |m| mount(m, "overlay", &[])),
    ("direct-io", Unknown, |m| mount(m, "fuse.sshfs", &[])),
    // data=journal may be among its options; the list may not be whole.
    ("direct-io", Unknown, |m| mount(m, "ext4", &[])),
    ("direct-io", Unknown, |m| { mount(m, "squashfs", &["ro"]); no_mount(m); }),
    ("direct-io", Unknown, |m| mount(m, "", &["rw"])),
    ("direct-io", Unknown, no_mount),
    ("direct-io", Warn, |m| mount(m, "ext4", &["data=journal"])),
    ("direct-io", Warn, |m| mount(m, "btrfs", &["rw"])),
    ("direct-io", Unknown, |m| mount(m, "9p", &["rw"])),
    ("direct-io", NotApplicable, nothing),
    ("dio-align", Pass, |m| {
        mount(m, "xfs", &["rw"]);
        m.block[0].facts.logical_block_bytes = Some(512);
    }),
    ("dio-align", Warn, |m| {
        mount(m, "xfs", &["rw"]);
        m.block[0].facts.logical_block_bytes = Some(16_384);
    }),
    ("dio-align", Unknown, |m| mount(m, "xfs", &["rw"])),
    ("dio-align", NotApplicable, nothing),
    ("io-uring", Pass, |m| m.host.kernel.io_uring_disabled = Some(0)),
    ("io-uring", Warn, |m| m.host.kernel.io_uring_disabled = Some(2)),
    ("io-uring", Warn, |m| m.host.kernel.io_uring_disabled = Some(1)),
    ("io-uring", Pass, |m| {
        m.host.kernel.io_uring_disabled = Some(1);
        m.host.kernel.capabilities = Some(1 << CAP_SYS_ADMIN);
    }),
    ("io-uring", Warn, |m| {
        m.host.kernel.io_uring_disabled = Some(0);
        m.config.options.insert("CONFIG_IO_URING".to_owned(), "n".to_owned());
    }),
    ("io-uring", Warn, |m| {
        m.host.kernel.io_uring_disabled = Some(0);
        m.settings.gpu_rings = Fact::Known(RingAnswer::Forbidden);
    }),
    ("io-uring", Pass, |m| m.settings.gpu_rings = Fact::Known(RingAnswer::NoSuchRing)),
    ("io-uring", Unknown, nothing),
    ("io-limit", Pass, |m| limited(m, false, false)),
    ("io-limit", Warn, |m| limited(m, true, false)),
    ("io-limit", Unknown, |m| limited(m, false, true)),
    ("memlock", Pass, |m| locked(m, 8 << 20, Some(u64::MAX))),
    ("memlock", Warn, |m| locked(m, 8 << 20, Some(0))),
    ("memlock", Unknown, |m| locked(m, 8 << 20, None)),
    ("aio-max-nr", Pass, |m| aio(m, 0)),
    ("aio-max-nr", Warn, |m| aio(m, 60_000)),
    ("aio-max-nr", Unknown, nothing),
    ("scheduler", Pass, nothing),
    ("scheduler", Warn, |m| m.block[0].facts.scheduler = Some("bfq".to_owned())),
    ("scheduler", Info, |m| m.block[0].facts.queue_requests = Some(31)),
    ("scheduler", Unknown, |m| m.block[0].facts.scheduler = None),
    ("scheduler", NotApplicable, |m| m.block.clear()),
    ("numa-balancing", Pass, |m| { nodes(m, 0); m.settings.numa_balancing = Some(0); }),
    ("numa-balancing", Warn, |m| { nodes(m, 0); m.settings.numa_balancing = Some(1); }),
    ("numa-balancing", Unknown, |m| nodes(m, 0)),
    ("numa-balancing", Unknown, |m| {
        m.settings.numa_balancing = Some(1);
        m.host.numa.nodes.clear();
    }),
    ("numa-balancing", NotApplicable, |m| m.settings.numa_balancing = Some(1)),
    ("numa-balancing", NotApplicable, nothing),
    ("huge-pages", Pass, |m| m.host.kernel.transparent_huge_pages = Some("always".to_owned())),
    ("huge-pages", Pass, |m| m.host.kernel.transparent_huge_pages = Some("madvise".to_owned())),
    ("huge-pages", Warn, |m| m.host.kernel.transparent_huge_pages = Some("never".to_owned())),
    ("huge-pages", Unknown, nothing),
    ("governor", Pass, |m| { m.settings.governors.insert("performance".to_owned(), 8); }),
    ("governor", Warn, |m| { m.settings.governors.insert("powersave".to_owned(), 8); }),
    ("governor", Unknown, nothing),
    ("nfs-transport", Pass, |m| nfs(m, |_| {})),
    ("nfs-transport", Warn, |m| {
        nfs(m, |n| n.nfs.as_mut().unwrap().transport = Some("tcp".to_owned()));
    }),
    ("nfs-transport", Info, |m| nfs(m, |n| {
        let nfs = n.nfs.as_mut().unwrap();
        (nfs.transport, nfs.connections) = (Some("tcp".to_owned()), 8);
    })),
    ("nfs-transport", Unknown, |m| nfs(m, |n| n.nfs.as_mut().unwrap().transport = None)),
    ("nfs-transport", NotApplicable, nothing),
    ("nfs-size", Pass, |m| nfs(m, |_| {})),
    ("nfs-size", Warn, |m| nfs(m, |n| n.nfs.as_mut().unwrap().read_bytes = Some(4096))),
    ("nfs-size", Info, |m| nfs(m, |n| n.nfs.as_mut().unwrap().read_bytes = Some(512 << 10))),
    ("nfs-size", Unknown, |m| nfs(m, |n| n.nfs.as_mut().unwrap().read_bytes = None)),
    ("nfs-size", Warn, |m| nfs(m, |n| n.nfs.as_mut().unwrap().write_bytes = Some(65_536))),
    ("nfs-size", Unknown, |m| nfs(m, |n| n.nfs.as_mut().unwrap().write_bytes = None)),
    ("nfs-size", NotApplicable, nothing),
    ("ports", Pass, |m| port(m, "up")),
    ("ports", Info, |m| port(m, "down")),
    ("ports", Unknown, |m| port(m, "unknown")),
    ("ports", Unknown, not_listed),
    ("ports", NotApplicable, nothing),
    ("mtu", Warn, |m| { card(m, 1); nfs(m, |_| {}); }),
    ("mtu", Pass, |m| {
        card(m, 1);
        m.nics[0].interfaces[0].mtu_bytes = Some(9000);
        nfs(m, |_| {});
    }),
    ("mtu", Info, |m| {
        card(m, 1);
        m.nics[0].interfaces[0].carries = Some(LinkLayer::Infiniband);
        nfs(m, |_| {});
    }),
    ("mtu", Unknown, |m| nfs(m, |_| {})),
    ("mtu", NotApplicable, nothing),
    ("shared-nic", Pass, |m| nfs(m, |_| {})),
    ("shared-nic", Info, |m| { nfs(m, |_| {}); nfs(m, |n| n.mount.mount_point.push('2')); }),
    ("shared-nic", Warn, |m| {
        nfs(m, |_| {});
        nfs(m, |n| n.mount.mount_point.push('2'));
        card(m, 1);
        card(m, 1);
    }),
    ("shared-nic", Unknown, |m| {
        nfs(m, |n| n.nfs.as_mut().unwrap().interface = Fact::unknown("no route"));
    }),
    ("shared-nic", NotApplicable, nothing),
    ("lnet", Pass, |m| module(m, "lnet", true, Some(("lnet_transaction_timeout", "100")))),
    ("lnet", Warn, |m| module(m, "lnet", true, Some(("lnet_transaction_timeout", "50")))),
    ("lnet", Info, |m| {
        module(m, "lnet", true, None);
        module(m, "ko2iblnd", true, Some(("peer_credits", "32")));
    }),
    ("lnet", Unknown, |m| module(m, "lnet", true, None)),
    ("lnet", NotApplicable, nothing),
    ("bar1", Pass, |m| bar1(m, 32 << 30, Some(1 << 20))),
    ("bar1", Warn, |m| bar1(m, 32 << 30, Some(31 << 30))),
    ("bar1", Info, |m| bar1(m, 32 << 30, None)),
    ("bar1", Warn, |m| bar1(m, 256 << 20, Some(1 << 20))),
    ("bar1", Unknown, nothing),
    ("bar1", NotApplicable, no_gpu),
    ("persistence", Pass, |m| m.gpus[0].persistence = Fact::Known(true)),
    ("persistence", Warn, |m| m.gpus[0].persistence = Fact::Known(false)),
    ("persistence", Unknown, nothing),
    ("persistence", NotApplicable, no_gpu),
    ("p2pdma", Pass, |m| p2pdma(m, Some("y"))),
    ("p2pdma", Info, |m| p2pdma(m, Some("n"))),
    ("p2pdma", Unknown, |m| p2pdma(m, None)),
    ("p2pdma", NotApplicable, no_gpu),
    ("rings", Pass, |m| m.settings.gpu_rings = Fact::Known(RingAnswer::Made)),
    ("rings", Info, |m| m.settings.gpu_rings = Fact::Known(RingAnswer::Forbidden)),
    ("rings", Unknown, nothing),
    ("rings", NotApplicable, no_gpu),
    ("gdscheck", Pass, |m| only_printed(m, "Supported", "Unsupported")),
    ("gdscheck", Fail, |m| printed(m, [("NVMe", "nvfs"); 3], "failed")),
    ("gdscheck", Warn, |m| {
        only_printed(m, "Supported", "Unsupported");
        let support = Fact::Known("does not support GDS".to_owned());
        let (index, unknown) = (Fact::Known(0), Fact::unknown("no"));
        let bar1_bytes = Fact::unknown("no");
        let gpu = GdsGpu { index, name: unknown.clone(), bar1_bytes, support, iommu: unknown };
        m.gdscheck.as_mut().unwrap().gpus.push(gpu);
    }),
    ("gdscheck", Info, |m| {
        let value = Fact::Known("true".to_owned());
        only_printed(m, "Supported", "Unsupported");
        let line = GdsLine { name: "properties.use_compat_mode".to_owned(), value };
        m.gdscheck.as_mut().unwrap().settings.push(line);
    }),
    ("gdscheck", Unknown, |m| printed(m, [("NVMe", "nvfs"); 3], "succ")),
    ("gdscheck", NotApplicable, nothing),
    ("gpu-diag", Fail, |m| diagnosed(m, Verdict::Fail)),
    ("gpu-diag", Warn, |m| diagnosed(m, Verdict::Warn)),
    ("gpu-diag", Pass, |m| diagnosed(m, Verdict::Pass)),
    ("gpu-diag", Unknown, |m| diagnosed(m, Verdict::Skip)),
    ("gpu-diag", NotApplicable, nothing),
];

#[test]
fn each_case_has_its_outcome() {
    for (rule, severity, change) in CASES {
        let mut machine = start();
        change(&mut machine);
        let found = (find(rule).unwrap().evaluate)(&machine);
        assert!(
            found.iter().any(|one| one.severity == *severity),
            "{rule} {severity:?}: {found:#?}"
        );
    }
}

/// The outcomes in a rule's text: the table must have all of them.
#[test]
fn each_outcome_that_a_rule_can_have_is_a_case() {
    let makes: [(&str, &[Severity]); 11] = [
        ("Found::fail", &[Fail]),
        ("Found::warn", &[Warn]),
        ("Found::unknown", &[Unknown]),
        ("Found::info", &[Info]),
        ("Found::pass", &[Pass]),
        ("Found::not_applicable", &[NotApplicable]),
        ("without_gpu(machine)", &[Unknown, NotApplicable]),
        ("gpu_is_absent(machine)", &[NotApplicable]),
        ("unused(machine)", &[NotApplicable]),
        ("none_of(", &[Unknown, NotApplicable]),
        ("without_nfs(machine)", &[Unknown, NotApplicable]),
    ];
    for rule in RULES {
        let name = rule.name.replace("aio-max-nr", "aio").replace('-', "_");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/check/rule/{name}.rs"));
        let text = std::fs::read_to_string(file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        let made = makes.iter().filter(|(word, _)| text.contains(word));
        let made: BTreeSet<Severity> =
            made.flat_map(|(_, severities)| *severities).copied().collect();
        let cases = CASES.iter().filter(|(name, ..)| *name == rule.name);
        let cases: BTreeSet<Severity> = cases.map(|(_, severity, _)| *severity).collect();
        let missing: Vec<&Severity> = made.difference(&cases).collect();
        assert!(missing.is_empty(), "{}: no case of {missing:?}", rule.name);
    }
}

/// Data that was not read can make an outcome unknown, and never good or bad.
#[test]
fn lists_that_were_not_read_to_their_end_leave_it_unknown() {
    for rule in RULES {
        let mut machine = start();
        machine.gpus.clear();
        machine.block.clear();
        machine.pci.clear();
        machine.listed = Listed::default();
        no_mount(&mut machine);
        machine.host.numa.nodes.clear();
        for found in (rule.evaluate)(&machine) {
            let open = [Unknown, NotApplicable, Info];
            assert!(open.contains(&found.severity), "{}: {found:?}", rule.name);
        }
    }
}
