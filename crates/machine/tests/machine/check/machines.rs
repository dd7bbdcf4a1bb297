//! The rules on whole machines, made from the tables of crate `testkit`.

use std::time::Duration;

use crate::check::all;
use gpuio_machine::check::{
    Answer, Finding, Gpu, Pair, Severity, Verdict, gpu_of, json, mount_of, text, verdict,
};
use gpuio_record::facts::Machine;
use gpuio_testkit::machines::{DGX_2, DGX_A100, DGX_STATION, VIRTUAL, read};
use gpuio_testkit::on_cpu;

fn of<'f>(findings: &'f [Finding], rule: &str, severity: Severity) -> Vec<&'f Finding> {
    findings.iter().filter(|f| f.rule == rule && f.severity == severity).collect()
}

#[test]
fn dgx_2() {
    insta::assert_snapshot!("dgx-2", text::document(&all(&read(DGX_2)), false, None).terminal(100));
}

#[test]
fn dgx_a100() {
    insta::assert_snapshot!(
        "dgx-a100",
        text::document(&all(&read(DGX_A100)), false, None).terminal(100)
    );
}

#[test]
fn dgx_station() {
    let findings = all(&read(DGX_STATION));
    let slow = of(&findings, "sata-link", Severity::Warn).len()
        + of(&findings, "sata-link", Severity::Fail).len();
    assert_eq!(slow, 1, "the post's eSATA box: {findings:#?}");
    let narrow = of(&findings, "pcie-link", Severity::Fail);
    assert_eq!(narrow.len(), 1);
    assert_eq!(narrow[0].locations, ["0000:08:00.0"]);
    insta::assert_snapshot!("dgx-station", text::document(&findings, false, None).terminal(100));
}

#[test]
fn virtual_machine() {
    insta::assert_snapshot!(
        "virtual",
        text::document(&all(&read(VIRTUAL)), false, None).terminal(100)
    );
}

/// The guide's two matrices say which cards are near, without any NUMA node.
#[test]
fn sockets_by_the_guides_matrices() {
    let observed = |text: &str| {
        let mut captured = gpuio_capture::Captured::default();
        gpuio_capture::read("a matrix", text, &mut captured).unwrap();
        captured.finish();
        let mut all = all(&captured.machine);
        all.retain(|one| one.rule == "socket");
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    };
    let nfs = observed(include_str!("../../../../capture/tests/fixtures/dgx-2-nfs.topo-mp"));
    assert_eq!(nfs.severity, Severity::Pass);
    let pass = "all GPUs and network cards are at one socket (`nvidia-smi topo -m`)";
    assert_eq!(nfs.observed, format!("{pass}, of what was read"));
    // Columns of GPUs 8 to 15 were cut: nothing is concluded on them.
    let cut = observed(include_str!("../../../../capture/tests/fixtures/dgx-2.topo-mp"));
    let gpus: Vec<String> = (8..16).map(|number| format!("GPU{number}")).collect();
    assert_eq!((cut.severity, cut.locations), (Severity::Unknown, gpus));
    let near = "8 other GPUs have one (`nvidia-smi topo -m`)";
    assert!(cut.observed.ends_with(near), "{}", cut.observed);
}

fn verdict_text(verdict: &Verdict) -> String {
    gpuio_base::document::Document::default().push(text::verdict(verdict)).terminal(100)
}

/// A mount and a GPU of a table.
fn of_pair(machine: &Machine, path: &str, gpu: &str) -> Verdict {
    let mount = mount_of(machine, path).unwrap();
    let gpu = Gpu::Real(gpu_of(machine, gpu).unwrap());
    verdict(&Pair { machine, mount, gpu }, path)
}

fn answers(verdict: &Verdict) -> Vec<(&str, Answer)> {
    verdict.modes.iter().map(|mode| (mode.mode, mode.works)).collect()
}

#[test]
fn a_verdict_on_nfs_over_rdma() {
    let machine = read(DGX_2);
    let at = machine.mounts.iter().find(|mount| mount.nfs.is_some()).unwrap();
    let verdict = of_pair(&machine, &at.mount.mount_point, "0");
    insta::assert_snapshot!("verdict-dgx-2", verdict_text(&verdict));
    let page = json::render(&[], &[], Some(&verdict), None);
    insta::assert_snapshot!("verdict-dgx-2-json", page);
}

#[test]
fn a_verdict_on_an_array() {
    let machine = read(DGX_A100);
    let array = |mount: &&gpuio_record::facts::MountedStorage| {
        mount.devices.iter().any(|device| device.starts_with("md"))
            && mount.mount.mount_point != "/"
    };
    let at = machine.mounts.iter().find(array).unwrap();
    let verdict = of_pair(&machine, &at.mount.mount_point, "0");
    insta::assert_snapshot!("verdict-dgx-a100", verdict_text(&verdict));
}

#[test]
fn why_bytes_go_the_way_they_go() {
    use gpuio_machine::check::why;
    for (name, table) in [("dgx-2", DGX_2), ("dgx-a100", DGX_A100), ("virtual", VIRTUAL)] {
        let machine = read(table);
        let data = |mount: &&gpuio_record::facts::MountedStorage| {
            mount.nfs.is_some() || mount.devices.iter().any(|device| device.starts_with("md1"))
        };
        let mount = machine.mounts.iter().find(data).or(machine.mounts.first()).unwrap();
        let gpu = machine.gpus.first().map_or(Gpu::None, Gpu::Real);
        let at = mount.mount.mount_point.as_str();
        let why = why::of(&verdict(&Pair { machine: &machine, mount, gpu }, at));
        let text = why::document(&why, &[]).terminal(100);
        assert!(text.lines().count() <= 50, "it is to fit a screen:\n{text}");
        insta::assert_snapshot!(format!("why-{name}"), text);
    }
}

/// A server with all that a mode needs, and then without one thing after the other.
#[test]
fn each_need_that_is_lacking_is_a_no_with_its_reason() {
    use gpuio_record::facts::Fact;
    let mut good = read(DGX_A100);
    let array = good.mounts.iter().position(|m| m.devices.iter().any(|d| d.starts_with("md1")));
    let at = good.mounts[array.unwrap()].mount.mount_point.clone();
    good.cufile.text = Fact::Known(None);
    good.settings.nvidia_fs_drivers = Fact::Known(vec!["nvme".to_owned()]);
    for function in &mut good.pci {
        function.iommu_group = None;
    }
    let of = |machine: &Machine| of_pair(machine, &at, "0").modes[0].clone();
    assert_eq!(of(&good).works, Answer::Yes, "{:#?}", of(&good));
    let lacks = |change: &dyn Fn(&mut Machine), words: &str| {
        let mut machine = good.clone();
        change(&mut machine);
        let mode = of(&machine);
        let no = mode.needs.iter().find(|need| need.met == Answer::No);
        assert!(no.is_some_and(|need| need.found.contains(words)), "{words}: {mode:#?}");
    };
    lacks(
        &|m| m.modules.iter_mut().find(|one| one.name == "nvidia_fs").unwrap().loaded = false,
        "nvidia_fs is not loaded",
    );
    lacks(&|m| m.settings.nvidia_fs_drivers = Fact::Known(vec![]), "has not registered");
    lacks(&|m| m.settings.udev_runtime = Fact::Known(false), "/run/udev is missing");
    let configured = |text: &str| Fact::Known(Some(text.to_owned()));
    lacks(
        &|m| m.cufile.text = configured(r#"{"properties": {"force_compat_mode": true}}"#),
        "is forced",
    );
    lacks(
        &|m| m.cufile.text = configured(r#"{"denylist": {"devices": ["md1"]}}"#),
        "denylist.devices",
    );
    let to_type =
        |m: &mut Machine, name: &str| m.mounts[array.unwrap()].mount.fs_type = name.to_owned();
    lacks(&|m| to_type(m, "btrfs"), "neither ext4 nor XFS");
    lacks(
        &|m| {
            m.block.iter_mut().find(|one| one.facts.name == "md1").unwrap().facts.kind =
                gpuio_record::facts::BlockKind::DeviceMapper
        },
        "md1 is device-mapper",
    );
}

#[test]
fn p2pdma_needs_kernel_driver_and_switches() {
    use gpuio_record::facts::Fact;
    let machine = read(DGX_A100);
    let at = machine.mounts.iter().find(|m| m.devices.iter().any(|d| d.starts_with("md1")));
    let verdict = of_pair(&machine, &at.unwrap().mount.mount_point, "0");
    assert_eq!(answers(&verdict)[1], ("p2pdma", Answer::No));
    let words: Vec<&str> = verdict.modes[1].needs.iter().map(|n| n.found.as_str()).collect();
    assert!(words.iter().any(|words| words.contains("Linux 5.4; 6.2 was the first")), "{words:#?}");
    let mut newer = machine.clone();
    newer.host.kernel.release = Some("7.1.0".to_owned());
    newer.config.source = Fact::Known("/boot/config-7.1.0".to_owned());
    newer.config.options.insert("CONFIG_PCI_P2PDMA".to_owned(), "y".to_owned());
    let nvidia = newer.modules.iter_mut().find(|one| one.name == "nvidia").unwrap();
    nvidia.version = Some("580.65.06".to_owned());
    let registry = ("RegistryDwords".to_owned(), "RMForceStaticBar1=1;".to_owned());
    nvidia.parameters.extend([registry]);
    newer.settings.open_driver = Fact::Known(true);
    newer.gpus[0].name = Fact::Known("NVIDIA A100-SXM4-40GB".to_owned());
    let core = newer.modules.iter_mut().find(|one| one.name == "nvme_core").unwrap();
    core.parameters.insert("multipath".to_owned(), "N".to_owned());
    let text = r#"{"properties": {"use_pci_p2pdma": true}, "block": {
        "nvme": {"use_pci_p2pdma": true}, "raid": {"use_pci_p2pdma": true}}}"#;
    newer.cufile.text = Fact::Known(Some(text.to_owned()));
    let verdict = of_pair(&newer, &at.unwrap().mount.mount_point, "0");
    let p2pdma = &verdict.modes[1];
    // The array has drives below other root ports than the GPU's: only a real I/O can tell.
    assert_eq!(p2pdma.works, Answer::Unknown, "{p2pdma:#?}");
    let open: Vec<_> = p2pdma.needs.iter().filter(|need| need.met != Answer::Yes).collect();
    assert_eq!(open.len(), 1);
    assert!(open[0].found.contains("root complex"), "{open:#?}");
}

#[test]
fn a_server_of_16_gpus_is_judged_in_no_time() {
    let machine = read(DGX_2);
    // 50 ms are for facts, topology and checks together, in a release build. The best of many:
    // tests share cores.
    let best = (0..20).map(|_| {
        let start = on_cpu();
        assert!(!all(&machine).is_empty());
        on_cpu() - start
    });
    let best = best.min().unwrap();
    assert!(best < Duration::from_millis(200), "{best:?}");
}
