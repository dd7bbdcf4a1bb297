//! gdscheck's three layouts, as people sent them.

use gpuio_capture::{CaptureError, Captured, KINDS, Kind, add, kind_of};
use gpuio_record::facts::{Fact, GdsCheck, GdsLine};
use proptest::prelude::*;

const P400: &str = include_str!("../fixtures/p400-0.9.gdscheck");
const A100: &str = include_str!("../fixtures/a100-1.6-pdf.gdscheck");
const H100: &str = include_str!("../fixtures/h100-1.13.gdscheck");
const RTX_5090: &str = include_str!("../fixtures/rtx-5090-1.16.gdscheck");
const TOKENS: &str = include_str!("../fixtures/tokens-1.16.gdscheck");
const ALL: [&str; 5] = [P400, A100, H100, RTX_5090, TOKENS];

fn kind() -> &'static Kind {
    KINDS.iter().find(|kind| kind.command == "gdscheck -p").unwrap()
}

fn try_read(text: &str) -> Result<GdsCheck, CaptureError> {
    let mut captured = Captured::default();
    add(kind(), text, &mut captured)?;
    Ok(captured.machine.gdscheck.unwrap())
}

fn read(text: &str) -> GdsCheck {
    assert_eq!(kind_of(text).unwrap().command, "gdscheck -p", "{text}");
    try_read(text).unwrap()
}

fn known(text: &str) -> Fact<String> {
    Fact::Known(text.to_owned())
}

#[track_caller]
fn value<'c>(lines: &'c [GdsLine], name: &str) -> &'c str {
    let line = lines.iter().find(|line| line.is(name)).unwrap_or_else(|| panic!("{name}"));
    line.value.known().unwrap()
}

/// Numbers of the lines that were kept as notes.
fn notes(check: &GdsCheck) -> Vec<u64> {
    check.notes.iter().map(|note| note.line).collect()
}

#[test]
fn the_oldest_layout() {
    let check = read(P400);
    assert_eq!((&check.release, check.by_gpuio), (&known("0.9.1.5"), false));
    assert_eq!((&check.nvidia_fs, &check.libcufile), (&known("2.4"), &known("2.3")));
    assert_eq!((check.drivers.len(), check.settings.len()), (12, 16));
    assert_eq!(value(&check.drivers, "NVMe"), "Supported");
    assert_eq!(value(&check.drivers, "USERSPACE RDMA"), "Unsupported");
    assert_eq!(value(&check.drivers, "--rdma_device_status"), "Up: 0 Down: 0");
    assert_eq!(value(&check.settings, "properties.use_compat_mode"), "0");
    assert_eq!(value(&check.settings, "fs.lustre.posix_gds_min_kb"), "0");
    let gpu = &check.gpus[0];
    assert_eq!((&gpu.index, &gpu.name), (&Fact::Known(0), &known("Quadro P400")));
    assert_eq!(gpu.bar1_bytes, Fact::Known(256 << 20));
    assert_eq!((&gpu.support, gpu.iommu.known()), (&known("supports GDS"), None));
    assert_eq!((&check.iommu, &check.verification), (&known("disabled"), &known("succeeded")));
    assert!(check.platform.known().is_none() && check.notes.is_empty(), "{check:#?}");
}

#[test]
fn the_second_layout_with_all_its_sections() {
    let check = read(H100);
    assert_eq!((&check.release, &check.platform), (&known("1.13.0.11"), &known("x86_64")));
    assert_eq!((check.drivers.len(), check.settings.len()), (16, 31));
    assert_eq!(value(&check.drivers, "NVMe P2PDMA"), "Unsupported");
    assert_eq!(value(&check.drivers, "NFS"), "Supported");
    assert_eq!(value(&check.settings, "properties.posix_pool_slab_count"), "128 64 64");
    assert_eq!(value(&check.settings, "properties.prefer_iouring"), "false");
    assert_eq!(check.gpus.len(), 8);
    let gpu = &check.gpus[7];
    assert_eq!((&gpu.index, &gpu.name), (&Fact::Known(7), &known("NVIDIA H100 80GB HBM3")));
    assert_eq!((&gpu.bar1_bytes, &gpu.iommu), (&Fact::Known(128 << 30), &known("Disabled")));
    assert_eq!(check.driver_status, known("Supported(Nvidia Open Driver Installed)"));
    assert_eq!(check.cuda_version, Fact::Known(12080));
    assert_eq!(check.machine, known("R8868 G13, Arch: x86_64(Linux 5.15.0-105-generic)"));
    assert_eq!(notes(&check), [1], "the log that can't be written");
}

#[test]
fn the_newest_layout_and_its_lists_of_ways() {
    let check = read(RTX_5090);
    assert_eq!(check.nvidia_fs.why(), Some("gdscheck did not print it"));
    assert_eq!(check.nvidia_fs_least, known("2.12"));
    assert_eq!(value(&check.drivers, "VIRTIOFS"), "compat");
    assert_eq!(check.drivers.len(), 17);
    // The text ends in the settings: nothing behind them is made up.
    assert_eq!(check.settings.len(), 12);
    assert!(check.gpus.is_empty() && check.verification.known().is_none());
    let tokens = read(TOKENS);
    let rows = TOKENS.lines().filter(|line| line.trim_start().starts_with("NVMe  "));
    let nvme: Vec<String> = rows.map(|row| value(&read(row).drivers, "NVMe").to_owned()).collect();
    assert_eq!(nvme, ["compat", "c2c, nvfs, compat", "nvfs, compat"]);
    assert_eq!(value(&tokens.drivers, "NVMe"), "nvfs, compat", "the last one counts");
    assert_eq!(value(&tokens.settings, "block.nvme.use_pci_p2pdma"), "false");
    assert_eq!(tokens.acs, ["0000:40:01.1"]);
    assert!(tokens.notes.is_empty(), "{tokens:#?}");
}

#[test]
fn a_page_of_a_pdf() {
    let check = read(A100);
    assert_eq!((&check.nvidia_fs, &check.platform), (&known("2.15"), &known("x86_64")));
    assert_eq!(value(&check.settings, "properties.use_compat_mode"), "false");
    assert_eq!(value(&check.settings, "properties.max_direct_io_size_kb"), "16384");
    assert_eq!(value(&check.settings, "profile.cufile_stats"), "3");
    assert_eq!(check.gpus.len(), 2);
    assert_eq!(
        (&check.gpus[1].support, &check.gpus[1].iommu),
        (&known("supports GDS"), &known("Disabled"))
    );
    assert_eq!(check.acs, ["0000:80:01.1", "0000:e0:03.1"]);
    assert_eq!(check.verification, known("succeeded"));
    // Names and values that the page tore apart are put together by nobody.
    assert!(check.drivers.iter().all(|line| line.name != "NFS"), "{check:#?}");
    let torn: Vec<&str> = check.notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(torn.iter().filter(|text| **text == ": Supported").count(), 1);
    assert!(torn.contains(&"NFS") && torn.contains(&"SYS MEM P2P"), "{torn:?}");
}

#[test]
fn warnings_other_results_and_unknown_lines() {
    let check = read(
        "DRIVER CONFIGURATION:\n NVMe : compat\n Something new : nvfs\n\
         WARN: GDS may not work with iommu=on/pt\nwhat is this\nPLATFORM INFO:\n\
         IOMMU: Pass-through or enabled\nFound ACS enabled for switch 86:10.0\n\
         Platform verification failed\n",
    );
    assert_eq!(value(&check.drivers, "Something new"), "nvfs");
    assert_eq!(notes(&check), [4, 5]);
    assert_eq!(check.iommu, known("Pass-through or enabled"));
    assert_eq!((check.acs, check.verification), (vec!["86:10.0".to_owned()], known("failed")));
    let ours = read(
        "gpuio gdscheck 1.0 (…)\n IOMMU: Unknown (no kernel)\n NVMe : Unknown (x y)\n\
         GPU index Unknown (a) Unknown (b c) bar:1 bar size (MiB):Unknown (d) Unknown (e), \
         IOMMU State: Unknown (f)\n",
    );
    assert!(ours.by_gpuio);
    assert_eq!((ours.iommu.why(), ours.drivers[0].value.why()), (Some("no kernel"), Some("x y")));
    let gpu = &ours.gpus[0];
    let whys =
        [gpu.name.why(), gpu.support.why(), gpu.iommu.why(), gpu.index.why(), gpu.bar1_bytes.why()];
    assert_eq!(whys, [Some("b c"), Some("e"), Some("f"), Some("a"), Some("d")]);
}

#[test]
fn errors_name_line_and_column() {
    let position = |text: &str| {
        let error = try_read(text).unwrap_err();
        (error.line, error.column)
    };
    assert_eq!(position("nothing of it\n"), (1, 1));
    assert_eq!(position("\n GPU index x NVIDIA bar:1 bar size (MiB):1 supports GDS\n"), (2, 12));
    assert_eq!(position("GPU index 0 NVIDIA\n"), (1, 11));
    assert_eq!(position("GPU index 0 NVIDIA bar:1 bar size (MiB):big supports GDS\n"), (1, 41));
    assert_eq!(position("Found ACS enabled for switch here\n"), (1, 30));
    assert_eq!(position("IOMMU: on\nCuda Driver Version Installed: new\n"), (2, 31));
    let gpu = |at: u32| format!("GPU index {at} N bar:1 bar size (MiB):1 supports GDS\n");
    let many: String = (0..1025).map(gpu).collect();
    assert_eq!(try_read(&many).unwrap_err().wanted, "fewer GPUs");
    let long = "properties.a : 1\n".repeat(5000);
    assert_eq!(try_read(&long).unwrap_err().wanted, "fewer lines");
}

/// A sample with a piece cut out and one put in.
fn nearly() -> impl Strategy<Value = String> {
    let put = "[ -~ß\n\t]{0,20}|Unknown \\(|\\)|bar:|IOMMU State:|GPU index |Platform verification";
    (0..ALL.len(), any::<prop::sample::Index>(), 0usize..300, put).prop_map(
        |(which, at, cut, put)| {
            let chars: Vec<char> = ALL[which].chars().collect();
            let at = at.index(chars.len());
            let after = chars.len().min(at + cut);
            let text = chars[..at].iter().copied().chain(put.chars());
            text.chain(chars[after..].iter().copied()).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 1000,
        ..ProptestConfig::default()
    })]

    /// Nothing panics; errors have a place; of what is read, no value is from nowhere.
    #[test]
    fn mutated_samples_are_read_or_refused(text in nearly()) {
        match try_read(&text) {
            Err(error) => {
                prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1));
                prop_assert!(error.column >= 1);
            }
            Ok(check) => {
                for line in check.drivers.iter().chain(&check.settings) {
                    let reported = line.value.known().or(match &line.value {
                        Fact::Unknown(why) => Some(why),
                        Fact::Known(_) => None,
                    });
                    prop_assert!(reported.is_some_and(|reported| text.contains(reported.as_str())));
                }
                for note in &check.notes {
                    let index = usize::try_from(note.line).unwrap() - 1;
                    prop_assert_eq!(text.lines().nth(index).unwrap().trim(), note.text.as_str());
                }
            }
        }
    }
}

/// A copy that is cut anywhere takes nothing away from the whole report, whichever is read first.
#[test]
fn a_cut_copy_takes_nothing_away() {
    let read = |texts: &[&str]| {
        let mut captured = Captured::default();
        // A cut copy without anything new is refused, by its last line.
        texts.iter().for_each(|text| _ = add(kind(), text, &mut captured));
        let check = captured.machine.gdscheck.take().unwrap();
        (GdsCheck { notes: Vec::new(), ..check }, captured.contradictions)
    };
    for text in [H100, RTX_5090] {
        let (whole, ..) = read(&[text]);
        for end in (200..text.len()).step_by(3).filter(|end| text.is_char_boundary(*end)) {
            let cut = &text[..end];
            assert_eq!(read(&[text, cut]), (whole.clone(), vec![]), "{cut}");
            assert_eq!(read(&[cut, text]).0, whole, "{cut}");
        }
    }
    let (whole, ..) = read(&[H100]);
    let changed = H100[..700].replace("NFS                : Supported", "NFS : Unsupported");
    let (check, differing) = read(&[H100, &changed]);
    assert_eq!((check.settings, check.iommu), (whole.settings, whole.iommu));
    assert!(differing[0].contains("NFS: Supported, then Unsupported"), "{differing:?}");
}
