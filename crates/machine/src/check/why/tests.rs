use gpuio_record::facts::{Fact, LibraryMaker, MappedLibrary, OpenFile, ProcessIo, ProcessUse};

use super::process::CUFILE_PAGE;
use super::*;

fn need(about: About, met: Answer, found: &str, fix: Option<&str>) -> Need {
    Need { about, met, found: found.to_owned(), fix: fix.map(str::to_owned) }
}

fn yes(about: About, found: &str) -> Need {
    need(about, Answer::Yes, found, None)
}

/// A verdict whose modes have these needs.
fn verdict(of: &[(&'static str, Vec<Need>)]) -> Verdict {
    let mode = |(mode, needs): &(&'static str, Vec<Need>)| ModeVerdict {
        mode,
        is: "a mode",
        works: Answer::of_all(needs.iter().map(|need| need.met)),
        needs: needs.clone(),
        source: "a test",
    };
    Verdict {
        path: "/data/x".to_owned(),
        mount_point: "/data".to_owned(),
        fs_type: "ext4".to_owned(),
        mount_options: "rw".to_owned(),
        storage: vec!["nvme0n1: NVMe".to_owned()],
        gpu: "GPU0".to_owned(),
        coherent: None,
        modes: of.iter().map(mode).collect(),
    }
}

/// The way on path `initiated`, with what it lacks and how to get it.
#[test]
fn a_path_with_needs_of_its_own_has_a_line() {
    let fix = Some("use Linux 6.6 or later");
    let old = need(About::Kernel, Answer::No, "Linux 5.15 has no rings", fix);
    let open = need(About::Kernel, Answer::Unknown, "the limit was not read", None);
    let gpu = || yes(About::Gpu, "GPU0");
    for (needs, mode, words) in [
        (vec![gpu()], Some("initiated"), "the GPU starts the I/O itself"),
        (
            vec![gpu(), old, open.clone()],
            None,
            "not here: Linux 5.15 has no rings (use Linux 6.6 or later)",
        ),
        (vec![gpu(), open], None, "unknown: the limit was not read"),
    ] {
        let ways = of(&verdict(&[("initiated", needs)])).ways;
        let way = ways.iter().find(|way| way.with == "path initiated").unwrap();
        assert_eq!(way.mode, mode);
        assert!(way.words.starts_with(words), "{way:?}");
        assert!(mode.is_some() || way.words == words, "{way:?}");
    }
}

/// One with nvidia-fs as given, the others as on a plain machine with ext4.
fn with_nvidia_fs(nvidia_fs: Vec<Need>, library: Answer) -> Verdict {
    let library = need(About::Library, library, "the library is there: L", None);
    let off = need(About::Configuration, Answer::No, "use_pci_p2pdma is off", Some("set it"));
    let other = need(About::FileSystem, Answer::No, "no network file system", None);
    verdict(&[
        ("nvidia-fs", nvidia_fs),
        ("p2pdma", vec![off.clone(), Need { found: "Linux 5.4".to_owned(), ..off }]),
        ("rdma", vec![other]),
        ("compat", vec![library]),
        ("gpuio", vec![yes(About::Gpu, "GPU0")]),
        ("host", vec![yes(About::FileSystem, "any")]),
    ])
}

fn not_loaded() -> Vec<Need> {
    vec![
        yes(About::Gpu, "GPU0"),
        need(About::NvidiaFs, Answer::No, "nvidia_fs is not loaded", Some("modprobe nvidia-fs")),
    ]
}

#[test]
fn what_is_lacking_is_the_conclusion_and_its_fix_the_change() {
    let why = of(&with_nvidia_fs(not_loaded(), Answer::Yes));
    assert_eq!(why.gds, Answer::No);
    assert!(why.conclusion.starts_with("GDS is off for /data/x"), "{}", why.conclusion);
    assert!(why.conclusion.ends_with("nvidia_fs is not loaded"), "{}", why.conclusion);
    let modes: Vec<_> = why.ways.iter().map(|way| way.mode).collect();
    assert_eq!(modes, [Some("compat"), Some("gpuio"), Some("gpuio")]);
    // rdma is for other file systems, and is left out.
    let changes: Vec<_> = why.changes.iter().map(|change| change.mode).collect();
    assert_eq!(changes, ["nvidia-fs", "p2pdma"]);
    assert_eq!(why.changes[0].steps, ["modprobe nvidia-fs"]);
    assert!(why.evidence.iter().all(|one| one.found != "no network file system"));
    // Each fact once, with the modes that need it; by subject, what is not met first.
    let gpu: Vec<_> = why.evidence.iter().filter(|one| one.about == About::Gpu).collect();
    assert_eq!(gpu.len(), 1);
    assert_eq!(gpu[0].modes, ["nvidia-fs", "gpuio"]);
    let text = document(&why, &["gpuio x".to_owned()]).terminal(80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().count() < 30, "{text}");
    assert!(text.ends_with("Next: gpuio x\n"), "{text}");
}

#[test]
fn gds_can_be_on_where_a_direct_mode_and_the_library_are_there() {
    let good = vec![yes(About::NvidiaFs, "nvidia_fs is loaded")];
    let why = of(&with_nvidia_fs(good.clone(), Answer::Yes));
    assert_eq!((why.gds, why.ways[0].mode), (Answer::Yes, Some("nvidia-fs")));
    assert!(why.ways[1].words.contains("passed on to NVIDIA's"), "{:?}", why.ways[1]);
    assert!(why.changes.is_empty());
    let why = of(&with_nvidia_fs(good, Answer::Unknown));
    assert_eq!((why.gds, why.ways[0].mode), (Answer::Unknown, None));
    assert!(why.conclusion.contains("unknown: the library is there"), "{}", why.conclusion);
}

#[test]
fn an_unknown_need_is_an_unknown_answer() {
    let open = vec![need(About::NvidiaFs, Answer::Unknown, "modules were not read", None)];
    let why = of(&with_nvidia_fs(open, Answer::Yes));
    assert_eq!(why.gds, Answer::Unknown);
    assert!(why.conclusion.ends_with("unknown: modules were not read"), "{}", why.conclusion);
    assert_eq!(why.ways[0].mode, None);
    assert_eq!(why.changes[0].steps, ["find out: modules were not read"]);
}

#[test]
fn equal_gpus_share_a_row() {
    let off = of(&with_nvidia_fs(not_loaded(), Answer::Yes));
    let on = of(&with_nvidia_fs(vec![yes(About::NvidiaFs, "loaded")], Answer::Yes));
    let all = [(&off, "0".to_owned()), (&off, "1".to_owned()), (&on, "2".to_owned())];
    let table = Overview::of(all.into_iter());
    assert_eq!(table.rows.len(), 2);
    assert_eq!(table.rows[0].gpus, ["0", "1"]);
    let text = gpuio_base::document::Document::default().push(table.section(0)).unbroken();
    assert!(text.contains("0,1") && text.contains("direct (nvidia-fs)"), "{text}");
}

fn library(made_by: Fact<LibraryMaker>) -> MappedLibrary {
    let path = "/usr/lib/libcufile.so.1.13.0".to_owned();
    MappedLibrary { path, deleted: false, version: Some("1.13.0".to_owned()), made_by }
}

/// A process on NVIDIA's library with an O_DIRECT file on a mount where nvidia-fs works.
fn seen() -> Seen {
    let file = OpenFile {
        path: "/data/x".to_owned(),
        mount_point: Some("/data".to_owned()),
        fs_type: Some("ext4".to_owned()),
        device: None,
        direct: true,
        reads: true,
        writes: false,
        descriptors: 1,
    };
    let good = vec![yes(About::NvidiaFs, "nvidia_fs is loaded")];
    Seen {
        process: ProcessUse {
            pid: 7,
            command: Some("python train.py".to_owned()),
            same_mounts: Fact::Known(true),
            libraries: Fact::Known(vec![library(Fact::Known(LibraryMaker::Other))]),
            files: Fact::Known(vec![file]),
            devices: Fact::Known(vec!["/dev/nvidia-fs0".to_owned(), "/dev/nvidia0".to_owned()]),
            io: Fact::Known(ProcessIo::default()),
            environment: Fact::Known(std::collections::BTreeMap::new()),
        },
        page: Fact::unknown("no page"),
        io_now: Fact::Known(IoNow {
            seconds: 1.0,
            moved: ProcessIo { storage_read_bytes: 5 << 20, ..ProcessIo::default() },
        }),
        nvidia_fs: NvidiaFs::Moved { read_bytes: 5 << 20, written_bytes: 0 },
        mounts: vec![of(&with_nvidia_fs(good, Answer::Yes))],
        unjudged: Vec::new(),
    }
}

/// The answer after a change, which must have these words.
#[track_caller]
fn answers(change: impl FnOnce(&mut Seen), gds: Answer, words: &str) {
    let mut seen = seen();
    change(&mut seen);
    let why = of_process(seen);
    assert_eq!(why.gds, gds, "{}", why.conclusion);
    assert!(why.conclusion.contains(words), "{}", why.conclusion);
    let text = process_document(&why, &[]).terminal(80);
    assert!(text.starts_with("Process 7 (python train.py)\n"), "{text}");
}

#[test]
fn a_process_on_nvidias_library_is_judged_by_nodes_files_and_counters() {
    answers(|_| {}, Answer::Yes, "nvidia-fs moved 5.00 MiB");
    let still = NvidiaFs::Moved { read_bytes: 0, written_bytes: 0 };
    answers(|s| s.nvidia_fs = still, Answer::Unknown, "not counted for each process");
    let quiet = NvidiaFs::Unknown("it does not count".to_owned());
    answers(|s| s.nvidia_fs = quiet, Answer::Unknown, "not counted for each process");
    let idle = |s: &mut Seen| s.io_now = Fact::unknown("not watched");
    answers(idle, Answer::Unknown, "not counted for each process");
    let no_node = |s: &mut Seen| s.process.devices = Fact::Known(vec!["/dev/nvidia0".to_owned()]);
    answers(no_node, Answer::No, "no node of it open");
    answers(
        no_node,
        Answer::No,
        "(PyTorch links it); whether it is called is not known. GDS is off",
    );
    answers(|s| s.process.devices = Fact::unknown("denied"), Answer::Unknown, "denied");
    answers(|s| s.process.files = Fact::Known(vec![]), Answer::Unknown, "no file on storage");
    let buffered = |s: &mut Seen| {
        if let Fact::Known(files) = &mut s.process.files {
            files.iter_mut().for_each(|file| file.direct = false);
        }
    };
    answers(buffered, Answer::Unknown, "O_DIRECT");
    let off = || vec![of(&with_nvidia_fs(not_loaded(), Answer::Yes))];
    answers(|s| s.mounts = off(), Answer::No, "nvidia_fs is not loaded");
    let half = |s: &mut Seen| {
        s.mounts = off();
        s.unjudged = vec!["/other: a container".to_owned()];
    };
    answers(half, Answer::Unknown, "unknown");
}

#[test]
fn a_process_without_a_library_and_one_that_may_not_be_read() {
    let none = |s: &mut Seen| s.process.libraries = Fact::Known(vec![]);
    answers(none, Answer::Unknown, "linked into the program");
    let bare = |s: &mut Seen| {
        s.process.libraries = Fact::Known(vec![]);
        s.process.devices = Fact::Known(vec![]);
    };
    answers(bare, Answer::No, "no libcufile mapped");
    let own = |s: &mut Seen| {
        bare(s);
        let path = "/lib/python3/gpuio/lib/libgpuio.so.0".to_owned();
        let own = MappedLibrary { path, ..library(Fact::unknown("not a libcufile")) };
        s.process.libraries = Fact::Known(vec![own]);
    };
    answers(own, Answer::No, "no live page and no trace");
    let hidden = |s: &mut Seen| s.process.libraries = Fact::unknown("only its user may");
    answers(hidden, Answer::Unknown, "only its user may");
    let mut seen = seen();
    hidden(&mut seen);
    assert!(!of_process(seen).is_answered());
    let replaced = || Fact::Known(vec![library(Fact::unknown("the file was removed"))]);
    answers(|s| s.process.libraries = replaced(), Answer::Unknown, "the file was removed");
}

#[test]
fn a_live_page_decides_before_what_is_predicted() {
    let moved = |path: &str, bytes: u64| Moved {
        gpu: Some(0),
        path: path.to_owned(),
        engine: "direct".to_owned(),
        read_bytes: bytes,
        ..Moved::default()
    };
    let page = |moved: Vec<Moved>| {
        let (program, release) = (format!("{CUFILE_PAGE}python"), "0.1.0".to_owned());
        Fact::Known(LivePage { program, release, moved })
    };
    let ours = |s: &mut Seen| {
        s.process.libraries = Fact::Known(vec![library(Fact::Known(LibraryMaker::Gpuio))]);
    };
    let copied = vec![moved("copy", 1 << 20), moved("kernel", 1 << 20)];
    answers(|s| s.page = page(copied), Answer::No, "gpuio's libcufile moved 2.00 MiB");
    let passed = vec![moved("copy", 1 << 20), moved("nvidia", 3 << 20)];
    answers(|s| s.page = page(passed), Answer::Yes, "3.00 MiB of 4.00 MiB went by NVIDIA's");
    answers(|s| s.page = page(vec![moved("host", 9)]), Answer::No, "none to a GPU");
    let idle = |s: &mut Seen| {
        ours(s);
        s.page = page(vec![]);
    };
    answers(idle, Answer::Unknown, "counts no bytes yet");
    answers(ours, Answer::Unknown, "no page");
}

/// A machine of texts: its facts of modules, IOMMU and model are those that gdscheck printed, as
/// the rules of `check` take them.
#[test]
fn facts_of_gdscheck_stand_in_for_those_that_were_not_read() {
    use crate::check::{Gpu, Pair, sample};
    use gpuio_record::facts::{GdsCheck, GdsGpu, GdsLine, Listed, Machine};
    let known = |text: &str| Fact::Known(text.to_owned());
    let mut machine = sample::gpu_and_drive_below_a_switch();
    machine.modules.clear();
    machine.listed = Listed::default();
    machine.host.kernel.release = None;
    let gpu = GdsGpu {
        index: Fact::Known(3),
        name: known("NVIDIA H100 80GB HBM3"),
        bar1_bytes: Fact::default(),
        support: known("supports GDS"),
        iommu: known("Disabled"),
    };
    let row = |name: &str, value| GdsLine { name: name.to_owned(), value: known(value) };
    let mut check = GdsCheck {
        drivers: vec![row("NVMe", "Supported"), row("NFS", "Unsupported")],
        nvidia_fs: known("2.17"),
        libcufile: known("2.12"),
        driver_status: known("Supported(Nvidia Open Driver Installed)"),
        iommu: known("disabled"),
        gpus: vec![gpu],
        ..GdsCheck::default()
    };
    let mut mount = sample::mount("/data", "nvme0n1");
    mount.mount.fs_type = "xfs".to_owned();
    let evidence = |check: Option<GdsCheck>| {
        let machine = Machine { gdscheck: check, ..machine.clone() };
        let pair = Pair { machine: &machine, mount: &mount, gpu: Gpu::Real(&machine.gpus[0]) };
        let why = of(&crate::check::verdict(&pair, "/data"));
        let word =
            |one: &Evidence| format!("{} {}: {}", one.about.word(), one.met.word(), one.found);
        why.evidence.iter().map(word).collect::<Vec<String>>().join("\n")
    };
    let facts = [
        "driver yes: gdscheck printed 1 GPU, which the driver named",
        "nvidia-fs yes: gdscheck printed NVMe as supported by nvidia-fs, version 2.17",
        "nvidia-fs yes: gdscheck printed `NVMe : Supported`",
        "PCIe yes: gdscheck printed `IOMMU: disabled`",
        "GPU yes: NVIDIA H100 80GB HBM3 is on NVIDIA's list",
        "driver yes: NVIDIA's driver is the open one",
        "libcufile yes: gdscheck printed `libcufile version: 2.12`",
    ];
    let (with, without) = (evidence(Some(check.clone())), evidence(None));
    for fact in facts {
        assert!(with.contains(fact), "no {fact} in {with}");
        assert!(!without.contains(fact), "{without}");
    }
    check.drivers[0].value = known("Unsupported");
    let with = evidence(Some(check));
    assert!(with.contains("nvidia-fs no: gdscheck printed `NVMe : Unsupported`"), "{with}");
}

/// All storage of gdscheck's table is unsupported, and so no fact that is missing can turn GDS on:
/// the answer and the rows say the same.
#[test]
fn gds_is_off_where_gdscheck_printed_no_direct_storage() {
    use crate::check::{Gpu, Pair, sample};
    use gpuio_record::facts::{GdsCheck, GdsLine, Machine};
    let known = |text: &str| Fact::Known(text.to_owned());
    let row = |name: &str, value: &str| GdsLine { name: name.to_owned(), value: known(value) };
    let why = |value: &str, release: &str| {
        let rows = ["NVMe", "NVMeOF", "NFS", "WekaFS"].map(|name| row(name, value));
        let gdscheck = GdsCheck {
            drivers: rows.to_vec(),
            release: known(release),
            libcufile: known("2.12"),
            ..GdsCheck::default()
        };
        let machine =
            Machine { gdscheck: Some(gdscheck), ..sample::gpu_and_drive_below_a_switch() };
        let mut mount = sample::mount("/data", "nvme0n1");
        mount.mount.fs_type = "xfs".to_owned();
        let pair = Pair { machine: &machine, mount: &mount, gpu: Gpu::Real(&machine.gpus[0]) };
        (
            of(&crate::check::verdict(&pair, "/data")),
            crate::check::check(&machine, &[crate::check::rule::find("nvidia-fs").unwrap()]),
        )
    };
    let (off, rows) = why("Unsupported", "1.7.2.10");
    let printed = "gdscheck printed no storage that goes past host memory";
    assert_eq!(off.gds, Answer::No, "{}", off.conclusion);
    assert!(off.conclusion.starts_with("GDS is off for ") && off.conclusion.contains(printed));
    assert!(rows.iter().any(|row| row.observed.starts_with(printed)), "{rows:?}");
    assert!(!off.ways[0].words.contains("may work"), "{}", off.ways[0].words);
    let p2pdma = |why: &Why| {
        let need = why.evidence.iter().find(|one| one.found.contains("GDS release version"));
        need.map(|one| (one.met, one.found.clone())).unwrap()
    };
    assert_eq!(p2pdma(&off).0, Answer::No);
    assert!(
        p2pdma(&off)
            .1
            .ends_with("`GDS release version: 1.7.2.10`; 1.13 was the first with this mode")
    );
    // From 1.16 on the words are others; a release that has the mode is no reason.
    let (off, _) = why("compat", "1.16.0.49");
    assert_eq!((off.gds, p2pdma(&off).0), (Answer::No, Answer::Yes));
    let (open, _) = why("Supported", "1.7.2.10");
    assert_eq!(open.gds, Answer::Unknown, "{}", open.conclusion);
    assert!(!open.ways[0].words.contains("p2pdma"), "{}", open.ways[0].words);
}

/// `why` and `check` have one sentence on an IOMMU that is not there.
#[test]
fn an_iommu_that_a_virtual_machine_does_not_see_is_said_as_the_rule_says_it() {
    use crate::check::{Gpu, Pair, sample};
    for guest in [false, true] {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.host.kernel.containment.hypervisor = Some(guest);
        let mut mount = sample::mount("/data", "nvme0n1");
        mount.mount.fs_type = "xfs".to_owned();
        let pair = Pair { machine: &machine, mount: &mount, gpu: Gpu::Real(&machine.gpus[0]) };
        let why = of(&crate::check::verdict(&pair, "/data"));
        let rule = crate::check::rule::find("iommu").unwrap();
        let said = (rule.evaluate)(&machine).remove(0).observed;
        assert_eq!(said.contains("its host may use one"), guest, "{said}");
        assert!(why.evidence.iter().any(|one| one.found == said), "{said}: {:?}", why.evidence);
    }
}

/// A library that was looked for and not found keeps GDS off, and is the step that is left.
#[test]
fn an_absent_library_is_a_no() {
    let mut verdict = with_nvidia_fs(vec![yes(About::Gpu, "GPU0")], Answer::No);
    for need in verdict.modes.iter_mut().flat_map(|mode| &mut mode.needs) {
        need.fix = (need.about == About::Library).then(|| "install it".to_owned());
    }
    let why = of(&verdict);
    assert_eq!(why.gds, Answer::No, "{why:?}");
    assert!(why.conclusion.starts_with("GDS is off for "), "{why:?}");
    assert!(why.ways[0].words.starts_with("not at all: "), "{why:?}");
    assert_eq!(why.changes[0].steps, ["install it"]);
}
