//! Readers of a whole machine at their edges: what is hidden, odd, broken or hostile.

use std::io::Write as _;

use gpuio_host::{Root, build_config, machine, module, nfs, nvidia_gpu, pci, settings};
use gpuio_record::facts::{Acs, AcsControl, Bar1Facts, Fact, GpuFacts, PciFacts, PciPort};
use gpuio_testkit::tree::{self, Tree};
use proptest::prelude::*;

const SMALL: &str = "
root 0000:00
  00:01.0 10de:20b0 030200 port=end bar1=1G
  00:02.0 144d:a824 010802 port=end nvme=nvme0 size=1G
  00:03.0 15b3:101b 020700 net=ib0 rdma=mlx5_0 layer=ib gbit=1
md md0 raid0 chunk=4K size=1G members=nvme0n1
";

/// Answers from the first bytes of a configuration space, as the kernel does.
fn config(space: &[u8]) -> PciFacts {
    pci::parse_config(|at, buffer| {
        let at = usize::try_from(at).unwrap();
        let Some(bytes) = space.get(at..at + buffer.len()) else { return false };
        buffer.copy_from_slice(bytes);
        true
    })
}

/// A switch's port with ACS 0x1d as the builder of machines writes it.
fn port() -> Vec<u8> {
    let line = "root 0000:00\n  00:01.0 10b5:9797 060400 port=down acs=1d mps=256 mrrs=4096";
    let tree = tree::build(line);
    std::fs::read(tree.path("sys/bus/pci/devices/0000:00:01.0/config")).unwrap()
}

#[test]
fn configuration_space_reports_as_much_as_is_shown() {
    let space = port();
    let whole = config(&space);
    assert_eq!(whole.port, Fact::Known(PciPort::SwitchDownstream));
    let on = [
        AcsControl::SourceValidation,
        AcsControl::RequestRedirect,
        AcsControl::CompletionRedirect,
        AcsControl::UpstreamForwarding,
    ];
    assert_eq!(whole.acs, Fact::Known(Acs { present: true, enabled: on.to_vec() }));
    assert_eq!(whole.max_payload_supported_bytes, Fact::Known(512));
    assert_eq!(whole.max_read_request_bytes, Fact::Known(4096));

    let head = config(&space[..64]);
    assert!(head.acs.why().unwrap().contains("root only"), "{head:?}");
    let short = config(&space[..256]);
    assert_eq!(short.max_payload_bytes, Fact::Known(256));
    assert!(short.acs.why().unwrap().contains("virtual machine"), "{short:?}");
    let cut = config(&space[..0x14a]);
    assert!(cut.acs.why().unwrap().contains("ends amid"), "{cut:?}");
    assert!(config(&[0xff; 4096]).port.why().unwrap().contains("does not answer"));
    assert!(config(&[]).port.why().is_some());
}

#[test]
fn lists_of_capabilities_that_bite_their_tails_end() {
    let mut space = port();
    space[0x40] = 0x05;
    space[0x41] = 0x40;
    assert!(config(&space).port.why().unwrap().contains("does not end"));
    let mut space = port();
    space[0x100..0x104].copy_from_slice(&(0x100u32 << 20 | 1 << 16 | 1).to_le_bytes());
    assert!(config(&space).acs.why().unwrap().contains("does not end"));
}

#[test]
fn a_broken_function_is_a_problem_with_its_file() {
    let tree = tree::build("root 0000:00\n  00:01.0 10de:20b0 030200 link=16.0x16 bar1=64G");
    let dir = "sys/devices/pci0000:00/0000:00:01.0";
    tree.file(&format!("{dir}/current_link_speed"), "fast GT/s\n")
        .file(&format!("{dir}/vendor"), "0x10de\n")
        .file(&format!("{dir}/device"), "twenty\n");
    let machine = machine::read(&tree.root());
    let files: Vec<&str> =
        machine.problems.iter().map(|one| one.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(files, ["device", "current_link_speed"]);
    assert_eq!((machine.pci[0].device, machine.pci[0].link_now.width), (None, Some(16)));
    assert_eq!(machine.gpus[0].bar1.known().unwrap().total_bytes, 64 << 30);
    assert!(machine.gpus[0].name.why().unwrap().contains("kernel driver"));
}

#[test]
fn a_tree_without_links_has_functions_without_a_way() {
    let tree = Tree::new();
    let dir = "sys/bus/pci/devices/0000:3b:00.0";
    tree.file(&format!("{dir}/vendor"), "0x10de\n").file(&format!("{dir}/numa_node"), "1\n");
    let all = pci::read(&tree.root(), &mut Vec::new());
    assert_eq!((all[0].vendor, all[0].node), (Some(0x10de), Some(1)));
    assert_eq!((&all[0].parent, &all[0].host_bridge), (&None, &None));
}

#[test]
fn an_iommu_groups_domain_is_the_functions() {
    let tree = tree::build(
        "root 0000:00\n  00:01.0 8086:1 060400 group=7\n  00:02.0 8086:2 060400\n\
         file sys/kernel/iommu_groups/7/type = DMA-FQ",
    );
    let all = pci::read(&tree.root(), &mut Vec::new());
    assert_eq!((all[0].iommu_group, all[0].iommu_domain.as_deref()), (Some(7), Some("DMA-FQ")));
    assert_eq!((all[1].iommu_group, all[1].iommu_domain.as_deref()), (None, None));
}

fn gpu(pci: Option<&str>) -> GpuFacts {
    GpuFacts { pci: pci.map(str::to_owned), ..GpuFacts::default() }
}

#[test]
fn readings_fill_what_they_know_and_no_more() {
    let mut gpus = vec![GpuFacts {
        bar1: Fact::Known(Bar1Facts { total_bytes: 5, used_bytes: None }),
        persistence: Fact::unknown("only NVML reports it"),
        name: Fact::Known("by the kernel".to_owned()),
        node: Some(1),
        ..gpu(Some("0000:3b:00.0"))
    }];
    let reading = GpuFacts {
        index: Fact::Known(4),
        bar1: Fact::unknown("not requested"),
        persistence: Fact::unknown("NVML does not report"),
        ..gpu(Some("00000000:3B:00.0"))
    };
    nvidia_gpu::merge(&mut gpus, vec![reading, gpu(Some("0000:0a:00.0"))]);
    assert_eq!(gpus.len(), 2);
    assert_eq!(gpus[0].pci.as_deref(), Some("0000:0a:00.0"), "added, in order");
    let merged = &gpus[1];
    assert_eq!((merged.node, &merged.index), (Some(1), &Fact::Known(4)));
    assert_eq!(merged.bar1.known().unwrap().total_bytes, 5);
    assert_eq!(merged.name.known().unwrap(), "by the kernel");
    assert_eq!(merged.persistence.why(), Some("NVML does not report"));
}

#[test]
fn a_reading_without_an_address_finds_its_gpu_by_uuid_or_index() {
    let mut gpus = vec![
        GpuFacts { uuid: Fact::Known("GPU-a".to_owned()), ..gpu(Some("0000:01:00.0")) },
        GpuFacts { index: Fact::Known(1), ..gpu(Some("0000:02:00.0")) },
    ];
    let by_uuid = GpuFacts {
        uuid: Fact::Known("GPU-a".to_owned()),
        persistence: Fact::Known(true),
        ..gpu(None)
    };
    let by_index = GpuFacts { index: Fact::Known(1), persistence: Fact::Known(false), ..gpu(None) };
    nvidia_gpu::merge(&mut gpus, vec![by_uuid, by_index]);
    let persistence: Vec<_> = gpus.iter().map(|gpu| gpu.persistence.known().copied()).collect();
    assert_eq!(persistence, [Some(true), Some(false)]);
}

#[test]
fn nvidias_open_driver_is_told_from_the_closed_one() {
    let line = |what: &str| format!("NVRM version: NVIDIA UNIX {what} for x86_64  580.95.05  R\n");
    let read = |text: &str| nvidia_gpu::parse_is_open(&format!("{text}GCC version:  gcc 13\n"));
    assert_eq!(read(&line("Open Kernel Module")), Some(true));
    assert_eq!(
        read("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\n"),
        Some(false)
    );
    assert_eq!(read(""), None);
}

#[test]
fn a_gpu_that_has_not_started_has_no_uuid_yet() {
    let reported = nvidia_gpu::parse_information(
        "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-????????-????\nDevice Minor: \t 3\n",
    );
    assert_eq!(
        (reported.name.as_deref(), reported.uuid, reported.minor),
        (Some("NVIDIA H100 80GB HBM3"), None, Some(3))
    );
}

#[test]
fn a_largest_bar_is_memory_of_the_function_itself() {
    let bars = "0x1000 0x1fff 0x101\n0x0 0x0 0x0\n0x2000 0x5fff 0x200\n0x0 0x0 0x0\n\
                0x0 0x0 0x0\n0x0 0x0 0x0\n0x10000 0x8ffff 0x200\n";
    assert_eq!(nvidia_gpu::parse_largest_bar(bars).unwrap(), Some(0x4000));
    assert_eq!(nvidia_gpu::parse_largest_bar("").unwrap(), None);
    assert_eq!(nvidia_gpu::parse_largest_bar("0x1 0x2\n").unwrap_err().line, 1);
    let all = "0x0 0xffffffffffffffff 0x200\n";
    assert_eq!(nvidia_gpu::parse_largest_bar(all).unwrap(), Some(u64::MAX));
}

#[test]
fn a_kernels_configuration_is_found_packed_or_not() {
    let text = "# comment\nCONFIG_PCI_P2PDMA=y\nCONFIG_NVME_MULTIPATH=m\nCONFIG_HZ=250\n\
                # CONFIG_AIO is not set\nCONFIG_SECRET=\"x\"\n";
    let tree = Tree::new();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    tree.file("proc/config.gz", &packed);
    let read = |root: &Root| build_config::read(root, Some("6.1.0"), &mut Vec::new());
    let config = read(&tree.root());
    assert_eq!(config.source, Fact::Known("/proc/config.gz".to_owned()));
    let option = |name: &str| config.options[name].as_str();
    assert_eq!((option("CONFIG_PCI_P2PDMA"), option("CONFIG_NVME_MULTIPATH")), ("y", "m"));
    assert_eq!((option("CONFIG_AIO"), option("CONFIG_HZ")), ("n", "250"));
    assert!(!config.options.contains_key("CONFIG_SECRET"));
    tree.file("boot/config-6.1.0", text);
    assert_eq!(read(&tree.root()).source, Fact::Known("/boot/config-6.1.0".to_owned()));
    let broken = Tree::new();
    broken.file("proc/config.gz", &packed[..packed.len() / 2]);
    let config = read(&broken.root());
    assert!(config.source.why().unwrap().contains("can't be unpacked"), "{config:?}");
    assert!(config.options.is_empty());
}

#[test]
fn modules_have_their_parameters() {
    let tree = Tree::new();
    tree.file("sys/module/nvidia/version", "580.65.06\n")
        .file("sys/module/nvidia/parameters/NVreg_X", "1\n")
        .file("proc/driver/nvidia/params", "EnableResizableBar: 0\nRegistryDwords: \"\"\n");
    let modules = module::read(&tree.root(), &mut Vec::new());
    let nvidia = modules.iter().find(|module| module.name == "nvidia").unwrap();
    let parameters: Vec<String> =
        nvidia.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(parameters, ["EnableResizableBar=0", "NVreg_X=1"]);
    assert!(modules.iter().any(|module| module.name == "nvidia_fs" && !module.loaded));
}

#[test]
fn settings_keep_to_what_concerns_io() {
    let tree = Tree::new();
    let cpufreq = "sys/devices/system/cpu/cpufreq";
    tree.file(
        "proc/cmdline",
        "root=/dev/x password=1 iommu=pt iommu.strict=0 pcie_aspm=off iommuX=1\n",
    )
    .file("sys/class/iommu/dmar0/x", "")
    .file(&format!("{cpufreq}/policy0/scaling_governor"), "powersave\n")
    .file(&format!("{cpufreq}/policy0/affected_cpus"), "0 1 2\n")
    .file(&format!("{cpufreq}/policy3/scaling_governor"), "performance\n");
    let settings = settings::read(&tree.root(), &mut Vec::new());
    assert_eq!(settings.command_line.unwrap(), ["iommu=pt", "iommu.strict=0", "pcie_aspm=off"]);
    assert_eq!(settings.iommu_units, ["dmar0"]);
    let governors: Vec<_> = settings.governors.into_iter().collect();
    assert_eq!(governors, [("performance".to_owned(), 1), ("powersave".to_owned(), 3)]);
    assert_eq!(settings.udev_runtime.why(), Some("the tree has no run"));
}

#[test]
fn sources_of_nfs_are_server_and_export() {
    let of = |source: &str| {
        let facts = nfs::of_options(source, std::iter::empty());
        (facts.server, facts.export, facts.connections)
    };
    let is = |server: &str, export: &str| (server.to_owned(), export.to_owned(), 1);
    assert_eq!(of("filer:/x:/y"), is("filer", "/x:/y"));
    assert_eq!(of("[fe80::1]:/x"), is("fe80::1", "/x"));
    assert_eq!(of("filer:x"), is("filer", "x"));
    assert_eq!(of("odd"), is("odd", ""));
    assert_eq!(of(""), is("", ""));
    let transport = |option| nfs::of_options("a:/b", std::iter::once(option)).transport;
    assert_eq!(transport("rdma"), transport("proto=rdma"));
    assert_eq!(transport("hard"), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever stands in configuration space, reading ends.
    #[test]
    fn any_configuration_space_is_read(
        mut space in proptest::collection::vec(any::<u8>(), 0..4200),
        listed in any::<bool>(),
    ) {
        if listed && space.len() > 0x50 {
            space[6] |= 0x10;
            space[0x0e] = 0;
            space[0x34] = 0x40;
            space[0x40] = 0x10;
        }
        let _ = config(&space);
    }

    #[test]
    fn no_parser_panics(text in "[ -~\t\n]{0,300}") {
        let _ = nvidia_gpu::parse_largest_bar(&text);
        let _ = nvidia_gpu::parse_information(&text);
        let _ = build_config::parse_config(&text);
        let _ = module::parse_params(&text);
        let _ = settings::parse_command_line(&text);
        let _ = nfs::of_options(&text, text.split(','));
    }

    /// Any bytes in the kernel's files give facts and problems, and no panic.
    #[test]
    fn a_hostile_tree_is_read(text in "[ -~\n]{0,60}", which in 0usize..12) {
        let tree = tree::build(SMALL);
        let pci = "sys/bus/pci/devices/0000:00:0";
        let file = [
            format!("{pci}1.0/vendor"),
            format!("{pci}1.0/resource"),
            format!("{pci}1.0/numa_node"),
            format!("{pci}1.0/class"),
            "sys/class/block/nvme0n1/size".to_owned(),
            "sys/class/block/nvme0n1/dev".to_owned(),
            "sys/class/block/md0/md/chunk_size".to_owned(),
            "sys/class/net/ib0/mtu".to_owned(),
            "sys/class/infiniband/mlx5_0/ports/1/rate".to_owned(),
            "proc/self/mountinfo".to_owned(),
            "proc/cmdline".to_owned(),
            "proc/config.gz".to_owned(),
        ];
        tree.file(&file[which], text);
        let machine = machine::read(&tree.root());
        prop_assert!(machine.pci.len() == 3);
    }
}
