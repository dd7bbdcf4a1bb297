//! The listings of NVIDIA's guides: two servers from nothing but text.

use gpuio_capture::{Captured, add, kind_of};
use gpuio_record::facts::{Fact, LinkLayer, Machine, MountKind, PciFacts};

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name))
    };
}

const DGX_2: [(&str, &str); 6] = [
    ("lspci -tv", text!("dgx-2.lspci-tv")),
    ("ls -l /dev/disk/by-path", text!("dgx-2.by-path")),
    ("nvidia-smi --query-gpu=… --format=csv", text!("dgx-2.query.csv")),
    ("nvidia-smi topo -m", text!("dgx-2.topo-mp")),
    ("ibdev2netdev", text!("dgx-2.ibdev2netdev")),
    ("mount", text!("dgx-2.mount")),
];
const DGX_A100: [(&str, &str); 3] = [
    ("lspci -tv", text!("dgx-a100.lspci-tv")),
    ("ls -l /dev/disk/by-path", text!("dgx-a100.by-path")),
    ("nvidia-smi --query-gpu=… --format=csv", text!("dgx-a100.query.csv")),
];

/// Reads texts, each as the kind that it looks like, which is to be `command`'s.
fn read(texts: &[(&str, &str)]) -> Captured {
    let mut captured = Captured::default();
    for (command, text) in texts {
        let kind = kind_of(text).unwrap();
        assert_eq!(kind.command, *command);
        add(kind, text, &mut captured).unwrap();
    }
    captured
}

fn function<'m>(machine: &'m Machine, address: &str) -> &'m PciFacts {
    machine.pci.iter().find(|one| one.address == address).unwrap_or_else(|| panic!("{address}"))
}

fn way(machine: &Machine, address: &str) -> String {
    let mut way = Vec::new();
    let mut at = function(machine, address);
    while let Some(parent) = &at.parent {
        way.push(parent.strip_prefix("0000:").unwrap().to_owned());
        at = function(machine, parent);
    }
    way.join(" ")
}

#[test]
fn a_dgx_2_from_text() {
    let captured = read(&DGX_2);
    let machine = &captured.machine;
    assert_eq!(way(machine, "0000:e7:00.0"), "e4:10.0 e3:00.0 d9:0c.0 d8:00.0 d7:00.0");
    assert_eq!(way(machine, "0000:34:00.0"), "33:00.0 32:00.0 2d:04.0 2c:00.0 2b:00.0");
    assert_eq!(way(machine, "0000:2f:00.0"), "2d:01.0 2c:00.0 2b:00.0");
    assert_eq!(way(machine, "0000:c7:00.0"), "c0:0c.0 bf:00.0 b0:10.0 af:00.0 ae:00.0");
    let gpu = function(machine, "0000:bc:00.0");
    assert_eq!(gpu.host_bridge.as_deref(), Some("0000:ae"));
    assert_eq!(gpu.name.as_deref(), Some("NVIDIA Corporation GV100GL [Tesla V100 SXM3 32GB]"));
    assert_eq!(gpu.acs.why(), Some("lspci -tv does not report it"));
    let port = function(machine, "0000:d9:04.0");
    assert_eq!((port.secondary_bus, port.subordinate_bus), (Some(0xde), Some(0xe2)));
    let endpoints = machine.pci.iter().filter(|one| one.name.is_some()).count();
    assert_eq!(endpoints, 8 + 16 + 12, "drives, GPUs and NVSwitches");

    assert_eq!(machine.gpus.len(), 16);
    for (number, gpu) in (0u32..).zip(&machine.gpus) {
        assert_eq!(gpu.index, Fact::Known(number));
        assert!(machine.pci.iter().any(|one| Some(&one.address) == gpu.pci.as_ref()));
    }
    for (number, bus) in
        ["01", "05", "2e", "2f", "51", "52", "b1", "b2", "da", "db"].iter().enumerate()
    {
        let name = format!("nvme{number}n1");
        let drive = machine.block.iter().find(|one| one.facts.name == name).unwrap();
        assert_eq!(drive.pci, [format!("0000:{bus}:00.0")]);
    }
    let part = machine.block.iter().find(|one| one.facts.name == "nvme1n1p2").unwrap();
    assert_eq!(
        (&part.made_of[0], &part.pci[0]),
        (&"nvme1n1".to_owned(), &"0000:05:00.0".to_owned())
    );
}

#[test]
fn a_dgx_2s_network_from_text() {
    let captured = read(&DGX_2);
    let nics = &captured.machine.nics;
    assert_eq!(nics.len(), 10);
    assert_eq!(nics[4].interfaces[0].state.as_deref(), Some("down"));
    assert_eq!(nics[9].rdma[0].ports[0].interface.as_deref(), Some("ib9"));
    let mounts = &captured.machine.mounts;
    assert_eq!(mounts.len(), 4);
    assert_eq!(mounts[3].mount.mount_point, "/mnt/nfs/ib8/data/1");
    assert_eq!(mounts[3].kind, MountKind::Nfs);
    let nfs = mounts[3].nfs.as_ref().unwrap();
    assert_eq!((nfs.server.as_str(), nfs.transport.as_deref()), ("192.168.1.11", Some("rdma")));
    assert_eq!((nfs.port, nfs.write_bytes), (Some(20049), Some(1 << 20)));
    assert!(nfs.interface.known().is_none());
}

const IP: [(&str, &str); 2] =
    [("ip addr", text!("dgx-2.ip-addr")), ("ip route", text!("dgx-2.ip-route"))];

/// The interface of each mount of the guide's listing, by the names that its mount points have.
fn interfaces(captured: &Captured) -> Vec<Result<&str, &str>> {
    let nfs = captured.machine.mounts.iter().filter_map(|mount| mount.nfs.as_ref());
    let interfaces = nfs.map(|nfs| &nfs.interface);
    interfaces
        .map(|fact| fact.known().map(String::as_str).ok_or(fact.why().unwrap_or_default()))
        .collect()
}

#[test]
fn ip_leads_mounts_to_their_cards_in_any_order() {
    let all = [&DGX_2[..], &IP[..]].concat();
    let mut backwards = all.clone();
    backwards.reverse();
    let interfaces_found = [Ok("ib9"), Ok("ib9"), Ok("ib8"), Ok("ib8")];
    // The kernel makes routes of addresses: `ip addr` alone leads there too.
    for texts in [&all[..], &backwards[..], &all[..7], &[&DGX_2[..], &IP[1..]].concat()[..]] {
        let captured = read(texts);
        assert_eq!(interfaces(&captured), interfaces_found);
        let cards = captured.machine.cards_to(&captured.machine.mounts[2]);
        assert_eq!(cards[0].rdma[0].name, "mlx5_8");
    }
    let machine = read(&all).machine;
    let card = |name: &str| {
        let mut all = machine.nics.iter().flat_map(|nic| &nic.interfaces);
        all.find(|one| one.name == name).unwrap().clone()
    };
    let (up, down) = (card("ib8"), card("ib4"));
    assert_eq!((up.mtu_bytes, up.carries), (Some(2044), Some(LinkLayer::Infiniband)));
    assert_eq!(down.state.as_deref(), Some("down"));
    assert_eq!(machine.nics.len(), 10, "a container's interfaces are no cards");
}

/// Where nobody tells a route, the guide's own names of mount points do, and that is marked.
#[test]
fn mount_points_named_after_interfaces_report_where_no_route_is_reported() {
    let captured = read(&DGX_2);
    let machine = &captured.machine;
    assert!(interfaces(&captured).iter().all(Result::is_err), "a name is no fact");
    let way = machine.server_route(&machine.mounts[2]).unwrap();
    assert_eq!((way.interface, way.by_name), ("ib8", true));
    assert_eq!(machine.cards_to(&machine.mounts[2])[0].rdma[0].name, "mlx5_8");
}

#[test]
fn routes_that_lead_nowhere_are_not_taken() {
    let of = |address: &str, texts: &[(&str, &str)]| {
        let mount = format!("s:/x on /x type nfs4 (rw,proto=tcp,addr={address})\n");
        let with = [&[("mount", mount.as_str())], texts].concat();
        let captured = read(&with);
        interfaces(&captured)[0].map(str::to_owned).map_err(str::to_owned)
    };
    let why = |address, texts: &[(&str, &str)]| of(address, texts).unwrap_err();
    assert_eq!(of("203.0.114.9", &IP), Ok("enp6s0".to_owned()), "the default");
    assert_eq!(of("192.168.1.1", &IP), Ok("lo".to_owned()), "this machine");
    assert_eq!(of("172.17.0.9", &IP[1..]), Ok("enp6s0".to_owned()), "linkdown");
    assert!(why("198.51.100.9", &IP).contains("several next hops"));
    assert!(why("203.0.114.9", &IP[..1]).contains("`ip route` shows it"));
    assert!(why("2001:db8::9", &IP).contains("shows no route"));
    assert!(why("192.168.1.10", &[]).contains("`ip route` does"));
    let six = "2001:db8::/32 dev ib0 proto kernel metric 256 pref medium\n\
               default via fe80::1 dev eth0 metric 1024 pref medium\n";
    assert_eq!(of("2001:db8::9", &[("ip route", six)]), Ok("ib0".to_owned()));
    assert_eq!(of("2001:db9::9", &[("ip route", six)]), Ok("eth0".to_owned()));
}

#[test]
fn what_ip_does_not_print_is_passed_over_with_its_place() {
    let error = |text: &str| {
        let mut captured = Captured::default();
        gpuio_capture::read("a text", text, &mut captured).unwrap();
        captured.texts[0].skipped.first().unwrap().clone()
    };
    let addr = "2: ib0: <UP> mtu 2044 state UP\n    inet 192.168.1/24 scope global ib0\n";
    assert_eq!((error(addr).line, error(addr).column), (2, 10));
    let route = "default via 192.0.2.1 dev eth0\nnonsense dev eth0\n";
    assert_eq!((error(route).line, error(route).column), (2, 1));
}

#[test]
fn matrices_are_kept_as_printed() {
    let matrix = read(&DGX_2[2..4]).matrices.remove(0);
    assert_eq!((matrix.rows.len(), matrix.columns.len()), (20, 8));
    assert_eq!(matrix.cell("GPU0", "GPU1"), Some("PIX"));
    assert_eq!(matrix.cell("GPU15", "GPU7"), Some("SYS"));
    assert_eq!(matrix.cell("mlx5_1", "GPU2"), Some("PIX"));
    assert_eq!(matrix.cell("mlx5_1", "GPU9"), None);
    // With columns cut out, marked by dots.
    let matrix = read(&[("nvidia-smi topo -m", text!("dgx-2-nfs.topo-mp"))]).matrices.remove(0);
    assert_eq!((matrix.rows.len(), matrix.columns.len()), (12, 12));
    assert_eq!(matrix.cell("GPU7", "mlx5_3"), Some("PIX"));
    assert_eq!(matrix.cell("mlx5_2", "mlx5_3"), Some("PXB"));
}

#[test]
fn a_dgx_a100_whose_tree_went_through_grep() {
    let captured = read(&DGX_A100);
    let machine = &captured.machine;
    // Whole ways as far as the lines are there; the root ports' own bus was cut.
    assert_eq!(way(machine, "0000:07:00.0"), "06:00.0 05:00.0 04:00.0 03:00.0 02:00.0 01:00.0");
    assert_eq!(way(machine, "0000:08:00.0"), "04:10.0 03:00.0 02:00.0 01:00.0");
    assert_eq!(way(machine, "0000:c9:00.0"), "bf:08.0 be:00.0 b2:08.0 b1:00.0");
    // The line of bridge 0a was cut: what is known by ranges of buses stands.
    assert_eq!(way(machine, "0000:0f:00.0"), "0e:00.0 0d:00.0 01:00.0");
    assert_eq!(way(machine, "0000:bd:00.0"), "bc:00.0 bb:00.0 b1:00.0");
    assert_eq!(way(machine, "0000:90:00.0"), "8f:00.0 8e:00.0 81:00.0");
    assert_eq!(function(machine, "0000:07:00.0").host_bridge, None);
    assert_eq!(machine.gpus.len(), 8);
    assert_eq!(machine.gpus[6].pci.as_deref(), Some("0000:b7:00.0"));
    for (number, bus) in
        ["08", "09", "22", "23", "52", "53", "89", "8a", "c8", "c9"].iter().enumerate()
    {
        let name = format!("nvme{number}n1");
        let drive = machine.block.iter().find(|one| one.facts.name == name).unwrap();
        assert_eq!(drive.pci, [format!("0000:{bus}:00.0")]);
        function(machine, &drive.pci[0]);
    }
}

#[test]
fn a_fragment_of_lstopo_has_all_its_ways() {
    let captured = read(&[("lstopo --of xml", text!("dgx-a100.lstopo.xml"))]);
    let machine = &captured.machine;
    assert_eq!(way(machine, "0000:07:00.0"), "06:00.0 05:00.0 04:00.0 03:00.0 02:00.0 01:00.0");
    assert_eq!(way(machine, "0000:09:00.0"), "04:14.0 03:00.0 02:00.0 01:00.0");
    assert_eq!(way(machine, "0000:0c:00.0"), "0b:00.0 0a:00.0 02:04.0 01:00.0");
    assert_eq!(way(machine, "0000:0f:00.0"), "0e:00.0 0d:00.0 0b:10.0 0a:00.0 02:04.0 01:00.0");
    let drive = function(machine, "0000:08:00.0");
    assert_eq!(
        (drive.class, drive.vendor, drive.device),
        (Some(0x01_0802), Some(0x144d), Some(0xa824))
    );
    assert_eq!(drive.link_bytes_per_second, Some(7_876_923_000));
    let names: Vec<&str> = machine.block.iter().map(|one| one.facts.name.as_str()).collect();
    assert_eq!(names, ["nvme0n1", "nvme1n1"]);
    assert_eq!(machine.block[1].pci, ["0000:09:00.0"]);
    let gpus: Vec<_> = machine.gpus.iter().map(|gpu| gpu.pci.as_deref().unwrap()).collect();
    assert_eq!(gpus, ["0000:07:00.0", "0000:0f:00.0"]);
    let nic = &machine.nics[0];
    assert_eq!((nic.pci.as_deref(), nic.rdma[0].name.as_str()), (Some("0000:0c:00.0"), "mlx5_0"));
    assert_eq!(
        (nic.interfaces[0].name.as_str(), nic.interfaces[0].carries),
        ("ibp12s0", Some(LinkLayer::Infiniband))
    );
}

#[test]
fn texts_in_any_order_give_one_machine() {
    let mut backwards = DGX_2;
    backwards.reverse();
    let (there, back) = (read(&DGX_2).machine, read(&backwards).machine);
    assert_eq!((&there.pci, &there.gpus, &there.nics), (&back.pci, &back.gpus, &back.nics));
    assert_eq!(there.mounts, back.mounts);
}
