//! Whole machines, from tables: servers of NVIDIA's guides, a workstation, a virtual machine.

use gpuio_host::machine;
use gpuio_record::facts::{
    Acs, AcsControl, BlockDevice, BlockKind, Fact, Lanes, LinkLayer, Machine, MountKind, PciFacts,
    PciPort,
};
use gpuio_testkit::machines::{self, DGX_2, DGX_A100, DGX_STATION, VIRTUAL};
use gpuio_testkit::tree;

fn read(text: &str) -> Machine {
    let machine = machines::read(text);
    assert_eq!((&machine.problems, &machine.host.problems), (&vec![], &vec![]));
    machine
}

fn function<'m>(machine: &'m Machine, address: &str) -> &'m PciFacts {
    machine.pci.iter().find(|function| function.address == address).unwrap()
}

fn disk<'m>(machine: &'m Machine, name: &str) -> &'m BlockDevice {
    machine.block.iter().find(|device| device.facts.name == name).unwrap()
}

/// Addresses above a function, without the domain, nearest first.
fn way(machine: &Machine, address: &str) -> Vec<String> {
    let mut way = Vec::new();
    let mut at = function(machine, address);
    while let Some(parent) = &at.parent {
        way.push(parent.strip_prefix("0000:").unwrap().to_owned());
        at = function(machine, parent);
    }
    way
}

fn buses(machine: &Machine) -> Vec<&str> {
    machine.gpus.iter().map(|gpu| &gpu.pci.as_ref().unwrap()[5..7]).collect()
}

#[test]
fn a_dgx_2_has_its_guides_gpus_and_drives() {
    let machine = read(DGX_2);
    assert_eq!(buses(&machine).join(" "), "34 36 39 3b 57 59 5c 5e b7 b9 bc be e0 e2 e5 e7");
    assert!(
        machine
            .gpus
            .iter()
            .all(|gpu| { gpu.name.known().map(String::as_str) == Some("Tesla V100-SXM3-32GB") })
    );
    assert_eq!(machine.gpus[12].minor, Some(12));
    assert_eq!(machine.gpus[12].bar1.known().unwrap().total_bytes, 32 << 30);
    assert_eq!(machine.gpus[12].persistence.why(), Some("only NVML reports it"));
    // The guide's links of /dev/disk/by-path.
    let by_path = ["01", "05", "2e", "2f", "51", "52", "b1", "b2", "da", "db"];
    for (number, bus) in by_path.iter().enumerate() {
        let drive = disk(&machine, &format!("nvme{number}n1"));
        assert_eq!(drive.pci, [format!("0000:{bus}:00.0")], "nvme{number}n1");
        let nvme = drive.nvme.as_ref().unwrap();
        assert_eq!((nvme.namespace, nvme.multipath), (Some(1), false));
        assert_eq!(nvme.controllers[0].name, format!("nvme{number}"));
    }
    let marks: std::collections::BTreeSet<_> =
        machine.block.iter().filter_map(|device| device.serial_mark.as_ref()).collect();
    assert_eq!(marks.len(), 10, "each drive its own");
    assert_eq!(machine.host.numa.nodes.len(), 2);
    assert_eq!(function(&machine, "0000:34:00.0").node, Some(0));
    assert_eq!(function(&machine, "0000:e7:00.0").node, Some(1));
}

#[test]
fn a_dgx_2_has_its_guides_switches() {
    let machine = read(DGX_2);
    let gpu = way(&machine, "0000:e7:00.0").join(" ");
    assert_eq!(gpu, "e4:10.0 e3:00.0 d9:0c.0 d8:00.0 d7:00.0");
    let drive = way(&machine, "0000:da:00.0").join(" ");
    assert_eq!(drive, "d9:00.0 d8:00.0 d7:00.0");
    assert_eq!(function(&machine, "0000:e7:00.0").host_bridge.as_deref(), Some("0000:d7"));
    let port = function(&machine, "0000:d9:0c.0");
    assert_eq!(port.port, Fact::Known(PciPort::SwitchDownstream));
    assert_eq!((port.secondary_bus, port.subordinate_bus), (Some(0xe3), Some(0xe7)));
    assert_eq!(port.acs, Fact::Known(Acs { present: true, enabled: vec![] }));
    assert_eq!(port.link_most, Lanes { mega_transfers: Some(8000), width: Some(16) });
    assert_eq!(port.class, Some(0x06_0400));
    let gpu = function(&machine, "0000:e7:00.0");
    assert_eq!((gpu.subsystem_vendor, gpu.subsystem_device), (Some(0x10de), Some(0x12ab)));
    assert_eq!(gpu.acs, Fact::Known(Acs::default()), "a list without ACS");
    assert_eq!(
        (&gpu.max_payload_bytes, &gpu.relaxed_ordering),
        (&Fact::Known(256), &Fact::Known(true))
    );
    assert_eq!(gpu.max_read_request_bytes, Fact::Known(512));
    let usb = function(&machine, "0000:00:14.0");
    assert_eq!(usb.acs.why(), Some("the kernel shows no configuration space"));
}

#[test]
fn a_dgx_2_has_its_guides_network() {
    let machine = read(DGX_2);
    let names: Vec<String> = machine
        .nics
        .iter()
        .map(|nic| format!("{} {}", nic.rdma[0].name, nic.interfaces[0].name))
        .collect();
    let expected: Vec<String> = (0..10).map(|n| format!("mlx5_{n} ib{n}")).collect();
    assert_eq!(names, expected);
    assert_eq!(machine.nics[0].pci.as_deref(), Some("0000:35:00.0"));
    assert_eq!(machine.nics[0].node, Some(0));
    let port = &machine.nics[0].rdma[0].ports[0];
    assert_eq!((port.state.as_deref(), port.megabits), (Some("ACTIVE"), Some(100_000)));
    assert_eq!(
        (port.carries, port.interface.as_deref()),
        (Some(LinkLayer::Infiniband), Some("ib0"))
    );
    let down = &machine.nics[4];
    assert_eq!(down.rdma[0].ports[0].state.as_deref(), Some("DOWN"));
    assert_eq!((down.interfaces[0].megabits, down.interfaces[0].mtu_bytes), (None, Some(4092)));
}

#[test]
fn a_dgx_2s_mounts_lead_to_drives_and_cards() {
    let machine = read(DGX_2);
    let dirs: Vec<&str> =
        machine.mounts.iter().map(|mount| mount.mount.mount_point.as_str()).collect();
    assert_eq!(dirs[..3], ["/", "/boot/efi", "/raid"], "without /proc");
    let raid = &machine.mounts[2];
    assert_eq!((raid.kind, &raid.devices), (MountKind::Block, &vec!["md1".to_owned()]));
    assert_eq!(raid.pci.len(), 8);
    assert_eq!((raid.pci[0].as_str(), raid.pci[7].as_str()), ("0000:2e:00.0", "0000:db:00.0"));
    let array = disk(&machine, "md1");
    assert_eq!(array.made_of.len(), 8);
    let facts = array.array.as_ref().unwrap();
    assert_eq!((facts.level.as_deref(), facts.chunk_bytes), (Some("raid0"), Some(512 << 10)));
    assert_eq!(machine.mounts[0].pci, ["0000:01:00.0", "0000:05:00.0"]);
    let nfs = &machine.mounts[3];
    assert_eq!((nfs.kind, nfs.pci.as_slice()), (MountKind::Nfs, &["0000:e6:00.0".to_owned()][..]));
    let facts = nfs.nfs.as_ref().unwrap();
    assert_eq!((facts.server.as_str(), facts.export.as_str()), ("192.168.0.10", "/mnt/nfs_10/10"));
    assert_eq!(facts.interface, Fact::Known("ib9".to_owned()));
    assert_eq!((facts.version.as_deref(), facts.transport.as_deref()), (Some("3"), Some("rdma")));
    assert_eq!((facts.port, facts.read_bytes, facts.connections), (Some(20049), Some(1 << 20), 1));
    let module = machine.modules.iter().find(|module| module.name == "nvidia_fs").unwrap();
    assert_eq!((module.loaded, module.version.as_deref()), (true, Some("2.3.1")));
    assert_eq!(module.parameters["rw_stats_enabled"], "1");
    assert_eq!(
        machine.settings.command_line,
        Some(vec!["intel_iommu=off".to_owned(), "pci=realloc".to_owned()])
    );
    assert_eq!(machine.settings.udev_runtime.known(), Some(&true));
    assert!(machine.config.source.why().unwrap().contains("/boot/config-5.4.0-42-generic"));
}

#[test]
fn a_dgx_a100s_drives_hang_under_subsystems() {
    let machine = read(DGX_A100);
    assert_eq!(buses(&machine).join(" "), "07 0f 47 4e 87 90 b7 bd");
    let by_path = ["08", "09", "22", "23", "52", "53", "89", "8a", "c8", "c9"];
    for (number, bus) in by_path.iter().enumerate() {
        let drive = disk(&machine, &format!("nvme{number}n1"));
        assert_eq!(drive.pci, [format!("0000:{bus}:00.0")], "nvme{number}n1");
    }
    let nvme = disk(&machine, "nvme8n1").nvme.as_ref().unwrap();
    assert_eq!((nvme.multipath, nvme.policy.as_deref()), (true, Some("numa")));
    assert!(machine.block.iter().all(|device| device.facts.name != "nvme8c8n1"), "hidden");
    assert_eq!(disk(&machine, "md1").pci.len(), 8);
    assert_eq!(
        way(&machine, "0000:07:00.0").join(" "),
        "06:00.0 05:00.0 04:00.0 03:00.0 02:00.0 01:00.0 00:01.1"
    );
    assert_eq!(way(&machine, "0000:08:00.0").join(" "), "04:10.0 03:00.0 02:00.0 01:00.0 00:01.1");
    assert_eq!(function(&machine, "0000:07:00.0").node, Some(3));
}

#[test]
fn a_workstation_has_links_that_are_slow_and_arrays_on_disks() {
    let machine = read(DGX_STATION);
    let rates: Vec<(String, Option<u64>)> = machine
        .block
        .iter()
        .filter_map(|device| {
            let link = device.link.as_ref()?;
            Some((format!("{} {}", device.facts.name, link.port), link.now_megabits))
        })
        .collect();
    assert_eq!(rates[0], ("sda ata3".to_owned(), Some(3000)));
    assert_eq!(rates[1], ("sdb ata4".to_owned(), Some(6000)));
    assert_eq!(rates[5], ("sdf ata8".to_owned(), None));
    assert_eq!(disk(&machine, "sda").facts.model.as_deref(), Some("Mobius H/W RAID0"));
    let controller = ["0000:00:1f.2".to_owned()];
    for name in ["sda", "sdc2", "dm-0", "md0", "loop0"] {
        assert_eq!(disk(&machine, name).pci, controller, "{name}");
    }
    assert_eq!(disk(&machine, "dm-0").mapper.as_deref(), Some("LVM"));
    assert_eq!(disk(&machine, "loop0").made_of, ["md0"]);
    assert_eq!(disk(&machine, "sdc2").start_bytes, Some(513 << 20));
    assert_eq!(disk(&machine, "sdc2").facts.kind, BlockKind::Partition);
    assert!(machine.block.iter().all(|device| device.facts.name != "loop1"), "nothing behind it");
    assert_eq!(machine.mounts[2].devices, ["sda", "sdb"], "btrfs on two");
    let nfs = machine.mounts[3].nfs.as_ref().unwrap();
    assert_eq!((nfs.server.as_str(), nfs.export.as_str()), ("fd00::7", "/export/a"));
    assert_eq!((nfs.connections, &nfs.interface), (8, &Fact::Known("bond0".to_owned())));
    assert_eq!(machine.mounts[3].pci, ["0000:00:19.0"], "the card below the bond");
}

#[test]
fn a_workstations_pci_reports_what_is_wrong() {
    let machine = read(DGX_STATION);
    let root = function(&machine, "0000:00:02.0");
    let redirects = vec![
        AcsControl::SourceValidation,
        AcsControl::RequestRedirect,
        AcsControl::CompletionRedirect,
        AcsControl::UpstreamForwarding,
    ];
    assert_eq!(root.acs, Fact::Known(Acs { present: true, enabled: redirects }));
    assert_eq!(root.node, None, "the firmware does not say");
    let gpu = function(&machine, "0000:08:00.0");
    assert_eq!((gpu.link_now.width, gpu.link_most.width), (Some(8), Some(16)));
    assert_eq!(
        (&gpu.max_payload_bytes, &gpu.relaxed_ordering),
        (&Fact::Known(128), &Fact::Known(false))
    );
    assert_eq!(machine.gpus.len(), 2, "a display does not keep it from being a GPU");
}

#[test]
fn a_virtual_machine_has_no_topology_and_says_so() {
    let machine = read(VIRTUAL);
    assert_eq!(machine.gpus, []);
    assert_eq!(machine.host.numa.nodes, []);
    assert_eq!(machine.host.kernel.containment.hypervisor, Some(true));
    let disk = disk(&machine, "vda");
    assert_eq!(
        (&disk.nvme, &disk.link, disk.pci.as_slice()),
        (&None, &None, &["0000:00:01.0".to_owned()][..])
    );
    let card = function(&machine, "0000:00:02.0");
    assert_eq!((card.link_now, card.node), (Lanes::default(), None));
    assert!(card.max_payload_bytes.why().is_some());
    let kinds: Vec<MountKind> = machine.mounts.iter().map(|mount| mount.kind).collect();
    use MountKind::{Block, Lustre, Memory, Nfs, Overlay};
    assert_eq!(kinds, [Block, Memory, Overlay, Lustre, Nfs]);
    let nfs = machine.mounts[4].nfs.as_ref().unwrap();
    assert_eq!(nfs.interface.why(), Some("the kernel's tables show no route there"));
}

#[test]
fn an_empty_tree_is_a_machine_of_which_nothing_is_known() {
    let machine = read("");
    assert!(machine.pci.is_empty() && machine.block.is_empty() && machine.mounts.is_empty());
    assert!(machine.modules.iter().all(|module| !module.loaded));
}

#[test]
fn facts_survive_json() {
    for text in [DGX_2, DGX_A100, DGX_STATION, VIRTUAL] {
        let machine = read(text);
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
    }
}

#[test]
fn sixteen_gpus_and_sixty_four_drives_take_less_than_50_ms() {
    let mut text = DGX_2.to_owned();
    text.push_str("root 0001:00 node=0\n");
    for number in 10..64 {
        let bus = number - 9;
        text.push_str(&format!(
            "  0001:00:{:02x}.{} 10b5:9797 060400 port=root link=8.0x4 acs=off driver=pcieport\n",
            bus / 8,
            bus % 8
        ));
        text.push_str(&format!(
            "    0001:{bus:02x}:00.0 1344:51a2 010802 port=end link=8.0x4 driver=nvme \
             nvme=nvme{number} model=M size=1T\n"
        ));
    }
    let tree = tree::build(&text);
    let root = tree.root();
    let machine = machine::read(&root);
    assert_eq!((machine.gpus.len(), machine.problems.len()), (16, 0));
    assert_eq!(machine.block.iter().filter(|device| device.nvme.is_some()).count(), 64);
}
