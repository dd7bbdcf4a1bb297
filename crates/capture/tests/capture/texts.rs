//! Each kind of text at its edges: errors with their place, hostile input.

use std::time::Duration;

use gpuio_capture::{CaptureError, Captured, KINDS, Kind, add, kind_of};
use gpuio_record::facts::{
    Acs, AcsControl, Fact, Lanes, Machine, MountKind, NvLinkEnd, PciFacts, PciPort,
};
use gpuio_testkit::on_cpu;
use proptest::prelude::*;

fn kind(start: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.command.starts_with(start)).unwrap()
}

fn read(start: &str, text: &str) -> Result<Captured, CaptureError> {
    let mut captured = Captured::default();
    add(kind(start), text, &mut captured).map(|()| captured)
}

fn machine(start: &str, text: &str) -> Machine {
    read(start, text).unwrap().machine
}

/// Line and column of what was not understood first: the error, or the first line passed over.
fn position(start: &str, text: &str) -> (usize, usize) {
    // A second text of the same kind keeps the first from being all that there is.
    let error = match read(start, text) {
        Err(error) => error,
        Ok(_) => {
            let mut captured = Captured::default();
            gpuio_capture::read("a text", text, &mut captured).unwrap();
            captured.texts[0].skipped.first().unwrap().clone()
        }
    };
    assert!(error.to_string().contains("was expected"), "{error}");
    (error.line, error.column)
}

fn function<'m>(machine: &'m Machine, address: &str) -> &'m PciFacts {
    machine.pci.iter().find(|one| one.address == address).unwrap()
}

#[test]
fn lspci_vv_reports_links_and_acs() {
    let text = include_str!("../fixtures/switch.lspci-vv");
    assert_eq!(kind_of(text).unwrap().command, "lspci -vv");
    let machine = machine("lspci -vv", text);
    let root = function(&machine, "0000:d7:00.0");
    assert_eq!((root.node, root.iommu_group), (Some(1), Some(34)));
    assert_eq!((root.secondary_bus, root.subordinate_bus), (Some(0xd8), Some(0xe7)));
    assert_eq!(root.port, Fact::Known(PciPort::RootPort));
    let on = vec![
        AcsControl::SourceValidation,
        AcsControl::RequestRedirect,
        AcsControl::CompletionRedirect,
        AcsControl::UpstreamForwarding,
    ];
    assert_eq!(root.acs, Fact::Known(Acs { present: true, enabled: on }));
    let down = function(&machine, "0000:d9:00.0");
    assert_eq!(down.acs, Fact::Known(Acs { present: true, enabled: vec![] }));
    assert_eq!(
        (down.parent.as_deref(), down.host_bridge.as_deref()),
        (Some("0000:d8:00.0"), Some("0000:d7"))
    );
    let up = function(&machine, "0000:d8:00.0");
    assert_eq!((up.link_now.width, up.link_most.width), (Some(8), Some(16)));
    let gpu = function(&machine, "0000:e0:00.0");
    assert_eq!((gpu.class, gpu.vendor, gpu.device), (Some(0x03_0200), Some(0x10de), Some(0x1db8)));
    assert_eq!(
        (gpu.link_now.mega_transfers, gpu.link_most.mega_transfers),
        (Some(2500), Some(8000))
    );
    assert_eq!(
        (&gpu.max_payload_bytes, &gpu.max_payload_supported_bytes),
        (&Fact::Known(128), &Fact::Known(256))
    );
    assert_eq!(
        (&gpu.max_read_request_bytes, &gpu.relaxed_ordering),
        (&Fact::Known(512), &Fact::Known(true))
    );
    assert_eq!(gpu.parent.as_deref(), Some("0000:d9:01.0"));
    assert_eq!(machine.gpus[0].bar1.known().unwrap().total_bytes, 32 << 30);
    let drive = function(&machine, "0000:da:00.0");
    assert_eq!((drive.class, drive.driver.as_deref()), (Some(0x01_0802), Some("nvme")));
    assert_eq!(drive.acs.why(), Some("lspci was not run as root"));
}

#[test]
fn mdstat_reports_members_and_health() {
    let text = include_str!("../fixtures/arrays.mdstat");
    assert_eq!(kind_of(text).unwrap().command, "cat /proc/mdstat");
    let machine = machine("cat", text);
    let find = |name: &str| machine.block.iter().find(|one| one.facts.name == name).unwrap();
    let md1 = find("md1");
    assert_eq!((md1.made_of.len(), md1.made_of[0].as_str()), (8, "nvme2n1"));
    let array = md1.array.as_ref().unwrap();
    assert_eq!(
        (array.level.as_deref(), array.chunk_bytes, array.disks),
        (Some("raid0"), Some(512 << 10), Some(8))
    );
    assert_eq!(md1.facts.size_bytes, Some(30_004_846_592 << 10));
    let md0 = find("md0").array.as_ref().unwrap();
    assert_eq!((md0.level.as_deref(), md0.disks, md0.degraded), (Some("raid1"), Some(2), Some(1)));
    assert_eq!(find("nvme0n1p2").made_of, ["nvme0n1"]);
}

#[test]
fn mdstat_is_read_without_its_first_line() {
    let text = "md1 : active raid0 nvme3n1[1] nvme2n1[0]\n      7501209600 blocks super 1.2 512k \
                chunks\n";
    for text in [text.to_owned(), format!("$ cat /proc/mdstat\n{text}")] {
        let machine = machine("cat", &text);
        let md1 = machine.block.iter().find(|one| one.facts.name == "md1").unwrap();
        assert_eq!(md1.made_of, ["nvme2n1", "nvme3n1"]);
        let chunk = md1.array.as_ref().unwrap().chunk_bytes;
        assert_eq!((md1.facts.size_bytes, chunk), (Some(7_501_209_600 << 10), Some(512 << 10)));
    }
}

#[test]
fn arrays_have_the_functions_of_their_members_whichever_came_first() {
    let links = "lrwxrwxrwx 1 root root 13 Nov 19 12:08 pci-0000:2e:00.0-nvme-1 -> ../../nvme2n1\n\
                 lrwxrwxrwx 1 root root 13 Nov 19 12:08 pci-0000:2f:00.0-nvme-1 -> ../../nvme3n1\n";
    let arrays = "Personalities : [raid0]\nmd2 : active raid0 nvme3n1[1] nvme2n1[0]\n";
    let mounts = "/dev/md2 on /raid type ext4 (rw)\n";
    for order in [[links, arrays, mounts], [mounts, arrays, links]] {
        let mut captured = Captured::default();
        for text in order {
            add(kind_of(text).unwrap(), text, &mut captured).unwrap();
        }
        let mount = &captured.machine.mounts[0];
        assert_eq!(
            (mount.kind, mount.pci.join(" ")),
            (MountKind::Block, "0000:2e:00.0 0000:2f:00.0".to_owned())
        );
    }
}

/// Widths without speeds, of both tools, are links of the GPU's function.
#[test]
fn a_width_alone_is_a_link() {
    let query = "pci.bus_id, pcie.link.width.current, pcie.link.width.max\n\
                 00000000:07:00.0, 8, 16\n";
    let page = "Attached GPUs : 1\nGPU 00000000:07:00.0\n    PCI\n\
                \x20       GPU Link Info\n            Link Width\n\
                \x20               Max : 16x\n                Current : 8x\n";
    for text in [query, page] {
        let mut captured = Captured::default();
        add(kind_of(text).unwrap(), text, &mut captured).unwrap();
        let function = &captured.machine.pci[0];
        let links = (function.link_now, function.link_most);
        let lanes = |width| Lanes { mega_transfers: None, width: Some(width) };
        assert_eq!((links, function.address.as_str()), ((lanes(8), lanes(16)), "0000:07:00.0"));
    }
}

#[test]
fn nvidia_smi_with_nvlinks_cards_and_affinity() {
    let query = "index, uuid, pci.bus_id, persistence_mode, pcie.link.gen.current, \
                 pcie.link.width.current, pcie.link.gen.max, pcie.link.width.max, power.draw [W]\n\
                 0, GPU-aa, 00000000:07:00.0, Enabled, 1, 16, 4, 16, 60.1 W\n\
                 1, GPU-bb, 00000000:0F:00.0, Disabled, 4, 16, 4, [N/A], [N/A]\n";
    let topo = "\t\u{1b}[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n\
                GPU0\t X \tNV12\tPXB\t48-63,176-191\t3\t\tN/A\n\
                GPU1\tNV12\t X \tSYS\t48-63,176-191\t3\t\tN/A\n\
                NIC0\tPXB\tSYS\t X \t\t\t\t\n\n\
                Legend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n";
    let mut captured = Captured::default();
    add(kind("nvidia-smi --query"), query, &mut captured).unwrap();
    add(kind_of(topo).unwrap(), topo, &mut captured).unwrap();
    let gpu = &captured.machine.gpus[0];
    assert_eq!((gpu.persistence.known(), gpu.node), (Some(&true), Some(3)));
    let link = gpu.pcie_now.known().unwrap();
    assert_eq!((link.mega_transfers, link.width), (Some(2500), Some(16)));
    let alone = Lanes { mega_transfers: Some(16_000), width: None };
    assert_eq!(captured.machine.gpus[1].pcie_most, Fact::Known(alone), "a generation alone");
    let peer = &gpu.nvlinks.known().unwrap()[0];
    assert_eq!(
        (peer.pci.as_deref(), peer.links, peer.kind),
        (Some("0000:0f:00.0"), 12, NvLinkEnd::Unknown)
    );
    let matrix = captured.matrices.remove(0);
    assert_eq!(matrix.cell("mlx5_0", "GPU0"), Some("PXB"));
    assert_eq!(matrix.cpus[0].as_deref(), Some("48-63,176-191"));
}

#[test]
fn ibdev2netdev_v_has_addresses() {
    let text = "0000:35:00.0 mlx5_0 (MT4119 - MCX555A-ECAT) CX555A ConnectX-5 fw 16.28.2006 \
                port 1 (ACTIVE) ==> ib0 (Up)\n";
    let nic = &machine("ibdev2netdev", text).nics[0];
    assert_eq!((nic.pci.as_deref(), nic.rdma[0].name.as_str()), (Some("0000:35:00.0"), "mlx5_0"));
    assert_eq!(nic.interfaces[0].name, "ib0");
}

#[test]
fn a_whole_lstopo_has_nodes() {
    let text = include_str!("../fixtures/package.lstopo.xml");
    let machine = machine("lstopo", text);
    let drive = function(&machine, "0000:81:00.0");
    assert_eq!((drive.node, drive.host_bridge.as_deref()), (Some(1), Some("0000:80")));
    assert_eq!(drive.parent.as_deref(), Some("0000:80:01.1"));
    assert_eq!(function(&machine, "0000:80:01.1").link_bytes_per_second, None);
    assert_eq!(machine.block[0].pci, ["0000:81:00.0"]);
    let node = &machine.host.numa.nodes[0];
    assert_eq!((node.node, node.total_bytes), (1, Some(1024)));
    assert_eq!(node.cpus, Some(vec![0, 36, 37, 38, 39]));
}

#[test]
fn a_tree_of_one_domain_and_of_vmd() {
    let text = "-[0000:00]-+-00.0  Intel Corporation Host bridge\n           \
        +-01.0-[01]--+-00.0  Mellanox A\n           \
        |            \\-00.1  Mellanox B\n           \
        +-02.0-[02]--\n           \
        \\-1f.0  Intel ISA\n";
    let one = machine("lspci -tv", text);
    let names: Vec<&str> = one.pci.iter().map(|one| one.address.as_str()).collect();
    assert_eq!(
        names,
        [
            "0000:00:00.0",
            "0000:00:01.0",
            "0000:00:02.0",
            "0000:00:1f.0",
            "0000:01:00.0",
            "0000:01:00.1"
        ]
    );
    assert_eq!(function(&one, "0000:01:00.1").parent.as_deref(), Some("0000:00:01.0"));
    let vmd = machine("lspci -tv", "-+-[10000:00]---02.0-[01]----00.0  Intel NVMe\n");
    assert_eq!(vmd.pci[1].address, "10000:01:00.0");
    assert_eq!(vmd.pci[1].parent.as_deref(), Some("10000:00:02.0"));
}

#[test]
fn devices_of_a_bus_whose_line_was_cut_are_not_given_to_another() {
    // The second column of `+` belongs to a bus that is not shown.
    let text = "-[0000:00]-+-01.0-[01-05]----00.0-[02-05]--+-00.0-[03]----00.0  A\n           \
        |                               +-08.0-[31]----00.0  B\n";
    let machine = machine("lspci -tv", text);
    assert!(machine.pci.iter().all(|one| one.address != "0000:02:08.0"), "{:?}", machine.pci);
    let lost = function(&machine, "0000:31:00.0");
    assert_eq!((&lost.parent, &lost.host_bridge), (&None, &None));
}

#[test]
fn errors_name_line_and_column() {
    assert_eq!(position("lspci -tv", "-[0000:00]-+-00.0  A\n           +-zz.0  B\n"), (2, 14));
    assert_eq!(position("lspci -tv", "-[0000:00]-+-00.0-[05-01]--\n"), (1, 19));
    assert_eq!(position("lspci -tv", "nonsense\n"), (1, 1));
    assert_eq!(position("lspci -vv", "\tLnkCap: x\n"), (1, 1));
    assert_eq!(position("lspci -vv", "36:00.0 3D controller: X\n\tNUMA node: one\n"), (2, 13));
    assert_eq!(position("lspci -vv", "36:00.0 3D controller: X\nwhat\n"), (2, 1));
    assert_eq!(
        position("ls -l", "total 0\nlrwx pci-0000:zz:00.0-nvme-1 -> ../../nvme0n1\n"),
        (2, 10)
    );
    assert_eq!(position("ls -l", "total 0\nx -> \n"), (2, 1), "blanks at the end go");
    assert_eq!(position("nvidia-smi --query", "index, name\n0\n"), (2, 1));
    assert_eq!(position("nvidia-smi --query", "index, pci.bus\n0, 0x0G\n"), (2, 4));
    assert_eq!(position("nvidia-smi topo", "  GPU0 GPU1\nGPU0 X\n"), (2, 7));
    assert_eq!(position("nvidia-smi topo", "  GPU0 GPU1\nGPU0 X FOO\n"), (2, 8));
    assert_eq!(position("ibdev2netdev", "mlx5_0 port x ==> ib0 (Up)\n"), (1, 13));
    assert_eq!(position("ibdev2netdev", "mlx5_0 port 1 ==> ib0 (Sideways)\n"), (1, 23));
    for line in ["mlx5_0\tport 1 ==> ib0\t(UP)", "mlx5_0 port 1 ==> ib0 ( Up ) (ETH)"] {
        let mut captured = Captured::default();
        add(kind("ibdev2netdev"), line, &mut captured).unwrap();
        let interface = &captured.machine.nics[0].interfaces[0];
        assert_eq!(interface.state.as_deref(), Some("up"), "{line}");
    }
    assert_eq!(position("mount", "/dev/sda on / type ext4 (rw\n"), (1, 26));
    assert_eq!(position("mount", "/dev/sda at / type ext4 (rw)\n"), (1, 1));
    assert_eq!(position("cat", "Personalities :\nmd0 active\n"), (2, 1));
    assert_eq!(position("cat", "md0 : active raid0 sda[x]\n"), (1, 20));
    assert_eq!(
        position("lstopo", "<topology>\n <object type=\"PCIDev\" pci_busid=\"7\">\n"),
        (2, 2)
    );
    assert_eq!(position("lstopo", "<object type=\"NUMANode\n<object/>"), (1, 15));
    // Characters, not bytes.
    assert_eq!(position("ibdev2netdev", "größe port x ==> ib0\n"), (1, 12));
}

#[test]
fn what_fails_leaves_nothing_behind_and_what_is_passed_over_is_noted() {
    let mut captured = Captured::default();
    assert!(add(kind("mount"), "/dev/sdb on\n", &mut captured).is_err());
    assert_eq!(captured, Captured::default());
    let text = "/dev/sda on / type ext4 (rw)\n/dev/sdb on\n";
    gpuio_capture::read("m.txt", text, &mut captured).unwrap();
    assert_eq!(captured.machine.mounts.len(), 1);
    let summary = captured.summary().unwrap();
    assert!(summary.contains("m.txt line 2 \"/dev/sdb on\""), "{summary}");
}

#[test]
fn huge_texts_are_refused() {
    let text = "x".repeat((1 << 20) + 1);
    assert_eq!(
        read("mount", &text).unwrap_err().wanted,
        "a text of 1 MiB at most (4 MiB of logs, 32 MiB of lspci -vv and of lstopo's XML)"
    );
    let links: String =
        (0..9000).map(|n| format!("x pci-0000:2e:00.0-nvme-1 -> ../../nvme{n}n1\n")).collect();
    assert_eq!(read("ls -l", &links).unwrap_err().wanted, "fewer devices");
    let deep = "<object type=\"Group\">".repeat(2000);
    assert_eq!(read("lstopo", &deep).unwrap_err().wanted, "objects that are nested less deep");
}

/// 50,000 devices in one text of `lspci -tv`: each below the other, each opening a column, side by
/// side, in lines of one bus that do not ascend, and with buses that are no way down.
/// Each character is looked at a few times, however deep: milliseconds, and minutes if it were
/// once for each device before it.
#[test]
fn fifty_thousand_children_in_a_tree_are_refused_or_read_in_linear_time() {
    const MANY: usize = 50_000;
    let refused = Some("fewer devices");
    let shapes = [
        (format!("-[0000:00]-{}", "00.0-[01]----".repeat(MANY)), refused),
        (format!("-[0000:00]-{}00.0  A", "00.0-[01]-+-".repeat(MANY)), refused),
        (format!("-[0000:00]-{}", "00.0-".repeat(MANY)), None),
        (format!("-[0000:00]-+-00.0\n{}", "           +-00.0\n".repeat(MANY)), None),
        (format!("-[0000:00]-{}00.0  A", "00.0-[00]-+-".repeat(MANY)), refused),
        (format!("-[0000:00]-{}", "-".repeat(MANY * 20)), None),
        (format!("-[0000:00{}", "[".repeat(MANY * 20)), Some("buses in brackets")),
    ];
    for (nth, (text, wanted)) in shapes.into_iter().enumerate() {
        assert!(text.len() <= 1 << 20, "shape {nth}: {} bytes", text.len());
        let began = on_cpu();
        let read = read("lspci -tv", &text);
        let took = on_cpu() - began;
        let reported = read.as_ref().err().map(|error| error.wanted);
        match (wanted, reported) {
            (Some(wanted), Some(reported)) => {
                assert!(reported.starts_with(wanted), "shape {nth}: {reported}")
            }
            (None, reported) => assert_eq!(reported, None, "shape {nth}"),
            (Some(wanted), None) => panic!("shape {nth} is read, not: {wanted}"),
        }
        assert!(took < Duration::from_secs(2), "shape {nth} took {took:?}");
    }
}

#[test]
fn arrays_of_arrays_in_a_circle_end() {
    let many = "md1[0] ".repeat(500);
    let back = "md0[0] ".repeat(500);
    let text = format!("md0 : active raid0 {many}\nmd1 : active raid0 {back}\n");
    assert_eq!(machine("cat", &text).block.len(), 2);
}

/// A text that is nearly one that a tool prints: a fixture with a piece cut out and one put in.
fn nearly() -> impl Strategy<Value = (usize, String)> {
    let texts = nearly_texts();
    (0..texts.len(), any::<prop::sample::Index>(), 0usize..200, "[ -~ß\n\t]{0,12}").prop_map(
        move |(which, at, cut, put)| {
            let chars: Vec<char> = texts[which].chars().collect();
            let at = at.index(chars.len());
            let after = chars.len().min(at + cut);
            let text = chars[..at].iter().copied().chain(put.chars());
            (which, text.chain(chars[after..].iter().copied()).collect())
        },
    )
}

/// Texts whose kinds are found by what they look like.
fn nearly_texts() -> [&'static str; 10] {
    [
        include_str!("../fixtures/dgx-a100.lstopo.xml"),
        include_str!("../fixtures/dgx-2.lspci-tv"),
        include_str!("../fixtures/switch.lspci-vv"),
        include_str!("../fixtures/dgx-2.query.csv"),
        include_str!("../fixtures/dgx-2.topo-mp"),
        include_str!("../fixtures/dgx-2.ibdev2netdev"),
        include_str!("../fixtures/dgx-2.by-path"),
        include_str!("../fixtures/arrays.mdstat"),
        include_str!("../fixtures/h100-1.13.gdscheck"),
        include_str!("../fixtures/dgx-2.mount"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 400,
        ..ProptestConfig::default()
    })]

    /// A text that is cut or changed gives a machine or an error whose line is there.
    #[test]
    fn nearly_right_texts_are_read_or_refused((which, text) in nearly()) {
        let mut captured = Captured::default();
        if let Err(error) = add(kind_of(nearly_texts()[which]).unwrap(), &text, &mut captured) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1), "{error}");
            prop_assert!(error.column >= 1);
        }
    }

    #[test]
    fn no_parser_panics(
        text in "[\\[\\]<>=\"'&;/|+:.,(){} a-fA-F0-9xGPUNICXml\\-\\\\\n\tß]{0,200}",
    ) {
        for kind in &KINDS {
            let _ = add(kind, &text, &mut Captured::default());
        }
        let _ = kind_of(&text);
    }

    /// Functions of a cut tree never stand above themselves.
    #[test]
    fn ways_end((which, text) in nearly()) {
        let mut captured = Captured::default();
        if add(kind_of(nearly_texts()[which]).unwrap(), &text, &mut captured).is_ok() {
            let pci = &captured.machine.pci;
            for one in pci {
                let mut at = one;
                for step in 0..=256 {
                    prop_assert!(step < 256, "{} has no end above", one.address);
                    let Some(parent) = &at.parent else { break };
                    let Some(above) = pci.iter().find(|one| one.address == *parent) else { break };
                    at = above;
                }
            }
        }
    }
}
