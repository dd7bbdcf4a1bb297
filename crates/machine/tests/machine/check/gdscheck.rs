//! gdscheck's sections of whole machines, read back by our own reader; and what rules make of
//! gdscheck's output.

use std::collections::BTreeMap;
use std::path::Path;

use gpuio_capture::{Captured, add, kind_of};
use gpuio_machine::check::gdscheck::{
    Config, LibraryReport, Software, file_text, of, of_file, text,
};
use gpuio_machine::check::{Finding, RULES, Rule, Severity, check};
use gpuio_record::facts::{Fact, GdsCheck, Machine};
use gpuio_testkit::machines::{DGX_2, DGX_A100, VIRTUAL, read};

macro_rules! printed {
    ($name:literal) => {
        capture(include_str!(concat!("../../../../capture/tests/fixtures/", $name, ".gdscheck")))
    };
}

fn capture(text: &str) -> Machine {
    let mut captured = Captured::default();
    add(kind_of(text).unwrap(), text, &mut captured).unwrap();
    captured.machine
}

/// A server with a library, without a configuration, whose drives use nvidia-fs.
fn software() -> Software {
    let registered = ["nvme", "rpcrdma"].map(str::to_owned).to_vec();
    Software {
        release: Fact::Known("1.13.0.11".to_owned()),
        registered: Fact::Known(registered),
        open_driver: Fact::Known(true),
        libcufile: Fact::Known("libcufile.so.1.13.0".to_owned()),
        config: Fact::Known(Config::default()),
        environment: BTreeMap::from([("CUFILE_STATS_LEVEL".to_owned(), "1".to_owned())]),
        architecture: Fact::Known("x86_64".to_owned()),
        library: None,
    }
}

/// Nobody has looked beyond the machine.
fn bare() -> Software {
    Software {
        libcufile: Fact::unknown("no libcufile.so.0 (nor its links): none"),
        config: Fact::unknown("/etc/cufile.json: denied"),
        ..Software::default()
    }
}

/// The text, after a look that the reader of captures gets out of it what was put in.
fn read_back(machine: &Machine, software: &Software) -> String {
    let made = of(machine, software);
    let text = text(&made, "0.0.0");
    assert_eq!(kind_of(&text).unwrap().command, "gdscheck -p", "{text}");
    let mut back = capture(&text).gdscheck.unwrap();
    assert_eq!(back.nvidia_fs_least.known(), None);
    // Where a note stands is known only now.
    back.notes.iter_mut().for_each(|note| note.line = 0);
    for line in text.lines() {
        // Scripts look for these words: no reason may hold one.
        let why = line.split_once("Unknown (").map_or("", |(_, why)| why);
        let why = why.split_once(')').map_or(why, |(why, _)| why);
        for word in ["supports GDS", "Supported", "nvfs", "p2pdma", "c2c", "compat", "succeeded"] {
            assert!(!why.contains(word), "{word} in {line}");
        }
    }
    let made_again = GdsCheck { nvidia_fs_least: made.nvidia_fs_least.clone(), ..back };
    assert_eq!(made_again, made, "{text}");
    text
}

#[test]
fn dgx_2() {
    insta::assert_snapshot!("gdscheck-dgx-2", read_back(&read(DGX_2), &software()));
}

#[test]
fn dgx_a100() {
    insta::assert_snapshot!("gdscheck-dgx-a100", read_back(&read(DGX_A100), &software()));
}

#[test]
fn a_virtual_machine_without_gpu_supports_nothing_and_is_not_judged() {
    let text = read_back(&read(VIRTUAL), &bare());
    assert!(!text.contains(": Supported") && !text.contains(": compat"), "{text}");
    assert!(
        text.ends_with(
            "Platform verification Unknown (not applicable, as no NVIDIA GPU is here)\n"
        ),
        "{text}"
    );
    insta::assert_snapshot!("gdscheck-virtual", text);
}

#[test]
fn what_nobody_looked_at_is_unknown() {
    let check = of(&Machine::default(), &bare());
    let lines = check.drivers.iter().chain(&check.settings);
    for line in lines {
        assert_eq!(line.value.known(), None, "{line:?}");
    }
    assert_eq!((check.iommu.known(), check.verification.known()), (None, None));
    read_back(&Machine::default(), &bare());
}

#[test]
fn nothing_is_claimed_that_settings_or_facts_leave_open() {
    let mut machine = read(DGX_A100);
    let nvme = |machine: &Machine, software: &Software| {
        let check = of(machine, software);
        check.drivers.into_iter().find(|line| line.name == "NVMe").unwrap().value
    };
    assert_eq!(nvme(&machine, &software()), Fact::Known("nvfs, compat".to_owned()));
    let keys = |key: &str, value: &str| {
        let keys = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        Software { config: Fact::Known(Config { file: None, keys }), ..software() }
    };
    let strict = keys("properties.allow_compat_mode", "false");
    assert_eq!(nvme(&machine, &strict), Fact::Known("nvfs".to_owned()));
    let forced = keys("properties.force_compat_mode", "true");
    assert_eq!(nvme(&machine, &forced), Fact::Known("compat".to_owned()));
    let p2p = keys("block.nvme.use_pci_p2pdma", "true");
    assert!(nvme(&machine, &p2p).why().unwrap().contains("only NVIDIA's library knows"));
    let silent = Software { registered: Fact::unknown("hidden"), ..software() };
    assert!(nvme(&machine, &silent).why().unwrap().contains("hidden"));
    assert!(nvme(&machine, &bare()).why().unwrap().contains("no libcufile.so.0"));
    for module in &mut machine.modules {
        module.loaded &= module.name != "nvidia_fs";
    }
    assert_eq!(nvme(&machine, &software()), Fact::Known("compat".to_owned()));
    assert_eq!(nvme(&machine, &strict), Fact::Known("Unsupported".to_owned()));
    assert_eq!(of(&machine, &software()).nvidia_fs, Fact::Known("not loaded".to_owned()));
}

#[test]
fn where_the_library_was_requested_its_flags_stand() {
    let machine = read(DGX_A100);
    let storage = ["NVMe", "NVMe by peer-to-peer DMA", "Lustre"].map(str::to_owned).to_vec();
    let library = LibraryReport { release: Some((1, 15)), storage, compat: false };
    let requested = Software { library: Some(library), ..software() };
    let check = of(&machine, &requested);
    let value = |name: &str| {
        let line = check.drivers.iter().find(|line| line.name == name).unwrap();
        line.value.known().unwrap().clone()
    };
    assert_eq!(value("NVMe"), "p2pdma, nvfs");
    assert_eq!(value("DDN EXAScaler"), "Supported", "by a path that the flag does not name");
    assert_eq!(value("NFS"), "Unsupported", "registered, and the library does not take it");
    assert_eq!(check.release, Fact::Known("1.15".to_owned()));
    read_back(&machine, &requested);
}

#[test]
fn files_have_the_line_of_their_storage() {
    let of_path = |machine: &Machine, path: &str| {
        of_file(machine, &of(machine, &software()), Path::new(path))
    };
    let machine = read(VIRTUAL);
    assert_eq!(of_path(&machine, "/lus/a/b").storage, "DDN EXAScaler");
    assert_eq!(of_path(&machine, "/share/x").storage, "NFS");
    let memory = of_path(&machine, "/dev/shm/x");
    assert!(memory.value.known().unwrap().starts_with("Unsupported"), "{memory:?}");
    assert!(file_text(&memory).contains("/dev/shm (tmpfs of tmpfs)"));
    assert_eq!(of_path(&machine, "/etc/passwd").value.known(), None, "virtio has no line");
    let nothing = of_path(&Machine::default(), "/x");
    assert_eq!(nothing.value.known(), None);
}

fn found(machine: &Machine, rule: &str) -> Vec<Finding> {
    let rules: Vec<&Rule> = RULES.iter().filter(|one| one.name == rule).collect();
    check(machine, &rules)
}

fn first(machine: &Machine, rule: &str) -> (Severity, String) {
    let first = found(machine, rule).into_iter().next().unwrap();
    (first.severity, first.observed)
}

#[test]
fn rules_say_what_gdscheck_printed() {
    let h100 = printed!("h100-1.13");
    let (severity, observed) = first(&h100, "nvidia-fs");
    assert_eq!(severity, Severity::Pass);
    assert_eq!(observed, "gdscheck printed NVMe, NFS as supported by nvidia-fs, version 2.17");
    let iommu = (Severity::Pass, "gdscheck printed `IOMMU: disabled`".to_owned());
    assert_eq!(first(&h100, "iommu"), iommu);
    assert_eq!(first(&h100, "bar1"), (Severity::Info, "gdscheck printed a BAR1 of 128G".into()));
    assert_eq!(found(&h100, "bar1")[0].locations.len(), 8);
    assert_eq!(first(&h100, "acs").0, Severity::Unknown);
    let (severity, observed) = first(&h100, "gdscheck");
    assert_eq!(severity, Severity::Info);
    assert!(observed.contains("properties.use_compat_mode"), "{observed}");
}

#[test]
fn compatibility_mode_alone_is_a_warning_though_gdscheck_would_succeed() {
    let (severity, observed) = first(&printed!("rtx-5090-1.16"), "nvidia-fs");
    assert_eq!(severity, Severity::Warn);
    assert!(observed.contains("no storage that goes past host memory"), "{observed}");
    let (severity, observed) = first(&printed!("p400-0.9"), "bar1");
    assert_eq!((severity, observed), (Severity::Warn, "gdscheck printed a BAR1 of 256M".into()));
    let (severity, observed) = first(&printed!("a100-1.6-pdf"), "acs");
    assert_eq!(severity, Severity::Warn);
    assert_eq!(observed, "gdscheck printed ACS as enabled for 2 switch ports");
    assert_eq!(first(&printed!("tokens-1.16"), "nvidia-fs").0, Severity::Pass);
}

/// Release 1.6.1.9 as a PDF's text has it: `NFS` stands on a line, `: Supported` on another.
#[test]
fn a_torn_table_is_no_reason_to_warn() {
    let (severity, observed) = first(&printed!("a100-1.6-pdf"), "nvidia-fs");
    assert_eq!(severity, Severity::Unknown, "{observed}");
    assert!(observed.contains("torn apart on lines"), "{observed}");
    // Neither is a table that was filtered, nor a last word that was cut.
    let (severity, observed) =
        first(&capture("DRIVER CONFIGURATION:\n NVMe : Unsupported\n"), "nvidia-fs");
    assert_eq!(severity, Severity::Unknown, "{observed}");
    let (severity, observed) = first(&capture(" Platform verification succ\n"), "gdscheck");
    assert_eq!(severity, Severity::Unknown, "{observed}");
}

#[test]
fn every_rule_stays_within_what_was_printed() {
    let expected = ["nvidia-fs", "iommu", "acs", "bar1", "gdscheck"];
    let machine = printed!("h100-1.13");
    for finding in check(&machine, &RULES.iter().collect::<Vec<&Rule>>()) {
        let open = [Severity::Unknown, Severity::NotApplicable];
        let may = expected.contains(&finding.rule) || open.contains(&finding.severity);
        // Rules on cuFile's settings go by those that it printed.
        let by_it = |at: &String| at.starts_with("gdscheck printed");
        let settings = ["compat-mode", "cufile-logs"].contains(&finding.rule)
            && !finding.locations.is_empty()
            && finding.locations.iter().all(by_it);
        assert!(may || settings, "{finding:?}");
    }
    // Ours is named so.
    let text = text(&of(&read(DGX_A100), &software()), "0.0.0");
    let (_, observed) = first(&capture(&text), "nvidia-fs");
    assert!(observed.starts_with("gpuio's gdscheck printed"), "{observed}");
}
