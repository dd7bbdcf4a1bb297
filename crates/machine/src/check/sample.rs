//! Small machines for the tests of rules.

use gpuio_record::facts::{
    BlockDevice, BlockFacts, BlockKind, DeviceNumber, Fact, GpuFacts, Lanes, Listed, Machine,
    ModuleFacts, MountFacts, MountKind, MountedStorage, NfsFacts, NumaNode, PciFacts, PciPort,
};

pub(crate) const ROOT: &str = "0000:00:01.0";
pub(crate) const UP: &str = "0000:01:00.0";
pub(crate) const GPU: &str = "0000:03:00.0";
pub(crate) const DRIVE: &str = "0000:04:00.0";

pub(crate) fn function(address: &str, parent: Option<&str>, port: PciPort) -> PciFacts {
    let lanes = Lanes { mega_transfers: Some(16_000), width: Some(16) };
    PciFacts {
        address: address.to_owned(),
        parent: parent.map(str::to_owned),
        host_bridge: Some("0000:00".to_owned()),
        node: Some(0),
        port: Fact::Known(port),
        link_now: lanes,
        link_most: lanes,
        acs: Fact::Known(gpuio_record::facts::Acs::default()),
        ..PciFacts::default()
    }
}

pub(crate) fn disk(name: &str, pci: &str) -> BlockDevice {
    let facts = serde_json::json!({
        "name": name, "device": DeviceNumber { major: 259, minor: 0 }, "kind": BlockKind::Disk,
        "transport": "pcie", "pci_address": pci, "numa_node": 0, "scheduler": "none",
        "queue_requests": 1023, "rotational": false, "members": [],
    });
    // Cannot fail: the fields that have no default are all named above.
    let facts: BlockFacts = serde_json::from_value(facts).unwrap();
    BlockDevice { pci: vec![pci.to_owned()], ..BlockDevice::of(facts) }
}

pub(crate) fn gpu(address: &str, node: u32) -> GpuFacts {
    GpuFacts { pci: Some(address.to_owned()), node: Some(node), ..GpuFacts::default() }
}

pub(crate) fn mount(at: &str, device: &str) -> MountedStorage {
    MountedStorage {
        mount: MountFacts { mount_point: at.to_owned(), ..MountFacts::default() },
        kind: MountKind::Block,
        devices: vec![device.to_owned()],
        ..MountedStorage::default()
    }
}

pub(crate) fn nfs(at: &str, transport: &str, interface: &str) -> MountedStorage {
    MountedStorage {
        mount: MountFacts { mount_point: at.to_owned(), ..MountFacts::default() },
        kind: MountKind::Nfs,
        nfs: Some(NfsFacts {
            server: "filer".to_owned(),
            transport: Some(transport.to_owned()),
            read_bytes: Some(1 << 20),
            write_bytes: Some(1 << 20),
            connections: 1,
            interface: Fact::Known(interface.to_owned()),
            ..NfsFacts::default()
        }),
        ..MountedStorage::default()
    }
}

pub(crate) fn module(name: &str, loaded: bool) -> ModuleFacts {
    ModuleFacts { name: name.to_owned(), loaded, ..ModuleFacts::default() }
}

/// One GPU and one NVMe drive below one switch, on a kernel that was read.
pub(crate) fn gpu_and_drive_below_a_switch() -> Machine {
    let mut machine = Machine {
        pci: vec![
            function(ROOT, None, PciPort::RootPort),
            function(UP, Some(ROOT), PciPort::SwitchUpstream),
            function("0000:02:00.0", Some(UP), PciPort::SwitchDownstream),
            function("0000:02:01.0", Some(UP), PciPort::SwitchDownstream),
            function(GPU, Some("0000:02:00.0"), PciPort::Endpoint),
            function(DRIVE, Some("0000:02:01.0"), PciPort::Endpoint),
        ],
        gpus: vec![gpu(GPU, 0)],
        block: vec![disk("nvme0n1", DRIVE)],
        modules: vec![module("nvidia", true)],
        listed: Listed {
            pci: true,
            block: true,
            nics: true,
            mounts: true,
            nodes: true,
            modules: false,
        },
        ..Machine::default()
    };
    machine.host.kernel.release = Some("6.8.0".to_owned());
    machine.host.numa.nodes = vec![NumaNode { node: 0, ..NumaNode::default() }];
    machine
}

/// The same with a configuration of cuFile.
pub(crate) fn configured(text: &str) -> Machine {
    let mut machine = gpu_and_drive_below_a_switch();
    machine.cufile.path = "/etc/cufile.json".to_owned();
    machine.cufile.text = Fact::Known(Some(text.to_owned()));
    machine
}
