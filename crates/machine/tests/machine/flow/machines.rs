//! Expectations of the guides' servers, from their tables.

use gpuio_machine::flow::{By, End, Figures, Pattern, ServerFigures, Storage, Stream, of_machine};
use gpuio_record::Towards;
use gpuio_record::facts::{DeviceNumber, Fact, GpuFacts, IoLimit, IoLimits, Machine};
use gpuio_testkit::machines::{DGX_2, read};

fn stream(device: &str, end: End, by: By) -> Stream {
    Stream {
        name: "job".to_owned(),
        storage: vec![Storage::Device(device.to_owned())],
        end,
        by,
        towards: Towards::Read,
        block_bytes: 1 << 20,
        pattern: Pattern::Sequential,
        in_flight: None,
        requested_bytes_per_s: None,
    }
}

#[test]
fn a_drive_of_the_dgx_2_is_bound_by_its_flash_on_the_way_to_the_gpu_beside_it() {
    let machine = read(DGX_2);
    let gpu = End::Gpu("0000:39:00.0".to_owned());
    let answer = of_machine(&machine, &Figures::built_in(), &[stream("nvme2n1", gpu, By::Direct)]);
    println!("{answer:#?}");
    let expected = &answer.streams[0].expected;
    assert!((expected.bytes_per_s.unwrap() - 3.5e9).abs() < 1e7, "{expected:#?}");
    assert!(expected.bottleneck.as_deref().unwrap().starts_with("nvme2n1"));
}

/// A drive's link counts as it is trained, and the figure says so; an idle GPU's link will climb.
#[test]
fn a_downgraded_link_counts_unless_it_is_a_gpus() {
    let mut machine = read(DGX_2);
    let pci = "0000:39:00.0";
    let drive = machine.block.iter().find(|one| one.facts.name == "nvme2n1").unwrap();
    let drive = drive.pci[0].clone();
    let mut of = |address: &str| {
        let function = machine.pci.iter_mut().find(|one| one.address == address).unwrap();
        function.link_now.mega_transfers = Some(2500);
        let streams = [stream("nvme2n1", End::Gpu(pci.to_owned()), By::Direct)];
        of_machine(&machine, &Figures::built_in(), &streams).streams.remove(0).expected
    };
    let idle = of(pci);
    assert!((idle.bytes_per_s.unwrap() - 3.5e9).abs() < 1e7, "{idle:#?}");
    let slow = of(&drive);
    assert!(slow.bytes_per_s.unwrap() < 1e9, "{slow:#?}");
    let said = slow.bottleneck.unwrap();
    assert!(said.contains("2.5 GT/s x4 (now; both ends could do 8 GT/s x4)"), "{said}");
}

/// A limit of the control group holds the load back before the drive: known drives have that rate,
/// and unknown ones no more.
#[test]
fn a_limit_of_the_control_group_is_a_part() {
    let mut machine = read(DGX_2);
    let limit = |towards, bytes_per_s, ios_per_s| IoLimit {
        version: 2,
        path: "/sys/fs/cgroup/a/io.max".to_owned(),
        number: DeviceNumber { major: 259, minor: 4 },
        device: "nvme2n1".to_owned(),
        towards,
        bytes_per_s,
        ios_per_s,
    };
    let mut of = |limit: IoLimit, figures: &Figures| {
        machine.host.io_limits = Some(IoLimits { limits: vec![limit], hidden: false });
        let streams = [stream("nvme2n1", End::Host, By::Host)];
        of_machine(&machine, figures, &streams).streams.remove(0).expected
    };
    let built_in = Figures::built_in();
    let slow = of(limit(Towards::Read, Some(30_000_000), None), &built_in);
    assert!((slow.bytes_per_s.unwrap() - 30e6).abs() < 1.0, "{slow:#?}");
    let said = slow.bottleneck.unwrap();
    assert!(said.starts_with("limit of this process's cgroup on reads of nvme2n1"), "{said}");
    let few = of(limit(Towards::Read, Some(30_000_000), Some(10)), &built_in);
    assert!((few.bytes_per_s.unwrap() - 10.0 * 1048576.0).abs() < 1.0, "{few:#?}");
    let other = of(limit(Towards::Write, Some(30_000_000), None), &built_in);
    assert!((other.bytes_per_s.unwrap() - 3.5e9).abs() < 1e7, "{other:#?}");
    let unknown = of(limit(Towards::Read, Some(30_000_000), None), &Figures::default());
    assert_eq!((unknown.bytes_per_s, unknown.at_most), (None, Some(30e6)), "{unknown:#?}");
}

/// From host memory a GPU with a coherent link is reached over that link: a narrow PCIe link above
/// the GPU does not count.
#[test]
fn a_coherent_link_counts_instead_of_pcie() {
    let mut machine = read(DGX_2);
    let pci = "0000:39:00.0";
    let function = machine.pci.iter_mut().find(|one| one.address == pci).unwrap();
    function.link_now.width = Some(1);
    let mut figures = Figures::default();
    figures.add("x.ini", "[drive nvme*]\nread = 100GB/s\n").unwrap();
    let of = |machine: &Machine| {
        let drives = ["nvme2n1", "nvme3n1", "nvme4n1", "nvme5n1"];
        let streams = drives.map(|drive| stream(drive, End::Gpu(pci.to_owned()), By::Host));
        of_machine(machine, &figures, &streams).total
    };
    let pcie = of(&machine);
    assert!(pcie.bytes_per_s.unwrap() < 1e9, "{pcie:#?}");
    let gpu = machine.gpus.iter_mut().find(|gpu| gpu.pci.as_deref() == Some(pci)).unwrap();
    gpu.name = Fact::Known("NVIDIA GH200 480GB".to_owned());
    let coherent = of(&machine);
    assert!(coherent.bytes_per_s.unwrap() > 10e9, "{coherent:#?}");
}

/// Both GPUs of a GB200 share its processor's link, also where no text has their node.
#[test]
fn gpus_of_one_processor_share_its_coherent_link() {
    let gpu = |bus: u32| GpuFacts {
        pci: Some(format!("{bus:04x}:01:00.0")),
        name: Fact::Known("NVIDIA GB200".to_owned()),
        ..GpuFacts::default()
    };
    let machine = Machine { gpus: [8, 9, 24, 25].map(gpu).to_vec(), ..Machine::default() };
    let streams = machine
        .gpus
        .iter()
        .map(|gpu| stream("nowhere", End::Gpu(gpu.pci.clone().unwrap()), By::Host));
    let streams: Vec<Stream> = streams.collect();
    let most = of_machine(&machine, &Figures::default(), &streams).total.at_most.unwrap();
    assert!((899e9..901e9).contains(&most), "{most}");
}

/// The DGX-2's ConnectX-5 at 86:00.0 and 86:00.1: two ports of 100 Gb/s behind one link of PCIe 3.0
/// x16, which carries 14.4 GB/s of data and not 28.8.
#[test]
fn both_functions_of_a_card_share_its_one_link() {
    let mut machine = read(DGX_2);
    let mounts = machine.mounts.iter_mut().filter(|mount| mount.nfs.is_some());
    let mut points = Vec::new();
    for (mount, interface) in mounts.zip(["ib4", "ib5"]) {
        mount.nfs.as_mut().unwrap().interface = Fact::Known(interface.to_owned());
        points.push(mount.mount.mount_point.clone());
    }
    let streams: Vec<Stream> = points
        .iter()
        .map(|point| Stream {
            name: point.clone(),
            storage: vec![Storage::Mount(point.clone())],
            ..stream("", End::Host, By::Host)
        })
        .collect();
    let mut figures = Figures::built_in();
    figures.add_server(ServerFigures::parse("read=100GB/s,ports=8x100Gb").unwrap());
    let answer = of_machine(&machine, &figures, &streams);
    let total = &answer.total;
    assert!((total.at_most.unwrap() - 14.4e9).abs() < 1e8, "the ports are down there: {total:#?}");
    assert!(total.bottleneck.as_deref().unwrap().contains("link above 0000:86:00"), "{total:#?}");
}

/// A port's rate that `gpuio network` measured stands in the place of the port's speed, for mounts
/// by TCP only, and for each direction by itself.
#[test]
fn a_measured_port_is_the_ceiling_of_mounts_by_tcp() {
    let mut machine = read(DGX_2);
    let mount = machine.mounts.iter_mut().find(|mount| mount.nfs.is_some()).unwrap();
    let point = mount.mount.mount_point.clone();
    let nfs = mount.nfs.as_mut().unwrap();
    nfs.interface = Fact::Known("ib4".to_owned());
    nfs.transport = Some("tcp".to_owned());
    let mut figures = Figures::built_in();
    figures.add_server(ServerFigures::parse("read=100GB/s,write=100GB/s").unwrap());
    let spec = "[port ib*]\nread = 9000000000B\nsource = measured with 8 streams on 2026-11-25\n";
    figures.add("net.ini", spec).unwrap();
    let alone = |machine: &Machine, towards: Towards| {
        let storage = vec![Storage::Mount(point.clone())];
        let stream = Stream { storage, towards, ..stream("", End::Host, By::Host) };
        let because = of_machine(machine, &figures, &[stream]).streams[0].expected.because.clone();
        let alone = because.iter().find(|line| line.starts_with("The network alone allows"));
        (alone.unwrap_or_else(|| panic!("{because:#?}")).clone(), because)
    };
    assert_eq!(
        alone(&machine, Towards::Read).0,
        "The network alone allows 9.00 GB/s: port ib4: 9.00 GB/s (measured with 8 streams on \
         2026-11-25)."
    );
    // Writes were not measured: the port's speed counts.
    let (writes, _) = alone(&machine, Towards::Write);
    assert!(writes.contains("100 Gb/s by TCP"), "{writes}");
    let mount = machine.mounts.iter_mut().find(|mount| mount.mount.mount_point == point).unwrap();
    mount.nfs.as_mut().unwrap().transport = Some("rdma".to_owned());
    let (rdma, because) = alone(&machine, Towards::Read);
    assert!(!rdma.contains("measured"), "{rdma}");
    let note = "The rate of port ib4 (measured with 8 streams on 2026-11-25) is by TCP";
    assert!(because.iter().any(|line| line.starts_with(note)), "{because:#?}");
}

/// Sixteen drives of 880 k I/Os a second are 14.1 million, which processors have to serve too.
#[test]
fn small_blocks_are_bounded_by_what_processors_may_do() {
    let mut machine = read(DGX_2);
    let drives: Vec<String> = (0..16).map(|number| format!("nvme{}n1", number % 8)).collect();
    let streams: Vec<Stream> = drives
        .iter()
        .map(|drive| Stream {
            block_bytes: 4 << 10,
            pattern: Pattern::Random,
            ..stream(drive, End::Host, By::Host)
        })
        .collect();
    let mut figures = Figures::default();
    figures.add("x.ini", "[drive nvme*]\nread = 100GB/s\nread-iops = 1.76M\n").unwrap();
    let with = |machine: &Machine, figures: &Figures| of_machine(machine, figures, &streams).total;
    machine.host.cpu.allowed = Some((0..8).collect());
    let few = with(&machine, &figures);
    assert_eq!((few.bytes_per_s, few.iops), (None, None), "{few:#?}");
    assert!(few.unknown.as_deref().unwrap().contains("for each of 8 processors"), "{few:#?}");
    assert!(few.at_most.is_some());
    machine.host.cpu.allowed = Some((0..1024).collect());
    let many = with(&machine, &figures);
    assert!(many.iops.is_some_and(|ios| ios > 1e6), "{many:#?}");
    machine.host.cpu.allowed = Some((0..8).collect());
    figures.add("y.ini", "[processor]\nios = 500k\nsource = measured\n").unwrap();
    let reported = with(&machine, &figures);
    assert!((reported.iops.unwrap() - 4e6).abs() < 1e4, "{reported:#?}");
    assert!(reported.bottleneck.as_deref().unwrap().starts_with("processors"), "{reported:#?}");
}

/// The guide's `lspci -tv` of a DGX-2 names its drives by their series alone.
#[test]
fn a_drive_of_which_lspci_names_the_series_has_its_figures() {
    let mut machine = read(DGX_2);
    let drive = machine.block.iter_mut().find(|one| one.facts.name == "nvme2n1").unwrap();
    drive.facts.model = None;
    let pci = drive.pci[0].clone();
    let of = |machine: &Machine| {
        let streams = [stream("nvme2n1", End::Host, By::Host)];
        of_machine(machine, &Figures::built_in(), &streams).streams.remove(0).expected
    };
    let nameless = of(&machine);
    assert!(nameless.unknown.as_deref().unwrap().contains("model is not known"), "{nameless:#?}");
    let function = machine.pci.iter_mut().find(|one| one.address == pci).unwrap();
    function.name = Some("Micron Technology Inc 9200 PRO NVMe SSD".to_owned());
    let named = of(&machine);
    assert!((named.bytes_per_s.unwrap() - 3.5e9).abs() < 1e7, "{named:#?}");
    assert!(
        named.because.iter().any(|line| line.contains("any drive of its series")),
        "{named:#?}"
    );
    let function = machine.pci.iter_mut().find(|one| one.address == pci).unwrap();
    function.name = Some("Maker NVMe SSD Controller X9".to_owned());
    let other = of(&machine);
    assert!(other.unknown.as_deref().unwrap().contains("Maker NVMe SSD Controller X9"));
}
