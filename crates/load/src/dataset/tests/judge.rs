use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use gpuio_host::target::danger;
use gpuio_record::TargetKind;
use gpuio_record::facts::{BlockTarget, MountedAt, Signature, TargetFacts, TargetKind as Found};

use super::super::judge::{Seen, decide};
use super::super::manifest::{self, FILE_NAME};
use super::*;

fn refuse(wanted: &Wanted, permit: &Permit, parts: &[&str]) -> Refusal {
    let refusal = look(wanted, permit).expect_err("the target must not be used");
    let text = refusal.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing from {text:?}");
    }
    refusal
}

fn accept(wanted: &Wanted, permit: &Permit) -> Verdict {
    look(wanted, permit).expect("the target may be used")
}

#[test]
fn an_absent_file_is_made_for_writing() {
    let dir = directory();
    let path = dir.path().join("f");
    let named = Wanted { in_directory: false, ..writing(&path, MIB) };
    for wanted in [&named, &writing(&path, MIB)] {
        let verdict = accept(wanted, &Permit::default());
        assert_eq!((verdict.note, verdict.fill), (GuardNote::Make, false));
    }
    let mixed = Wanted { reads: true, ..named };
    assert!(accept(&mixed, &permit()).fill, "what is read must be there first");
}

#[test]
fn a_file_is_laid_out_in_full_for_a_load_that_may_leave_holes() {
    let dir = directory();
    let path = dir.path().join("f");
    let random = Wanted { laid_out: true, ..writing(&path, MIB) };
    assert!(accept(&random, &Permit::default()).fill, "by chance, or for a time");
    fs::write(&path, "precious").unwrap();
    let allowed = Permit { overwrite: true, ..permit() };
    let verdict = accept(&random, &allowed);
    assert_eq!((verdict.fill, verdict.fill_from), (true, 8), "what was there stays");
    let within = Wanted { laid_out: true, ..writing(&path, 8) };
    assert!(!accept(&within, &allowed).fill, "no hole and long enough");
}

#[test]
fn our_file_with_holes_is_laid_out_anew_before_it_is_used() {
    let dir = directory();
    let path = dir.path().join("f");
    let in_order = writing(&path, MIB);
    prepare(&in_order).unwrap();
    manifest::begin(&[&path]).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(MIB).unwrap();
    manifest::settle(&[(path.clone(), None)]).unwrap();
    assert!(!accept(&in_order, &permit()).fill, "that load writes all of it");
    let random = Wanted { laid_out: true, ..in_order };
    for wanted in [&random, &wanted(&path, MIB)] {
        let verdict = accept(wanted, &permit());
        assert_eq!((verdict.note, verdict.fill), (GuardNote::Remake, true));
    }
    let read = accept(&wanted(&path, MIB), &Permit::default());
    assert_eq!((read.note, read.fill), (GuardNote::Ours, false), "nothing may be made");
    prepare(&random).unwrap();
    assert!(holds_pattern(&path, 11, 3));
    assert!(!accept(&random, &permit()).fill, "once is enough");
}

#[test]
fn an_absent_file_is_made_for_reading_only_in_a_directory_of_ours() {
    let dir = directory();
    let path = dir.path().join("f");
    let verdict = accept(&wanted(&path, MIB), &permit());
    assert_eq!((verdict.note, verdict.fill), (GuardNote::Make, true));
    let command = format!("gdsio -D {} -I 1 with the same -w, -s and -o", dir.path().display());
    let parts = ["never written", "run the write command first", command.as_str()];
    refuse(&wanted(&path, MIB), &Permit::default(), &parts);
    let named = Wanted { in_directory: false, ..wanted(&path, MIB) };
    let file = format!("--filename {}", path.display());
    refuse(&named, &permit(), &["does not exist", &file]);
}

#[test]
fn one_level_of_directory_may_be_made() {
    let dir = directory();
    let one = dir.path().join("d/f");
    assert_eq!(accept(&writing(&one, MIB), &permit()).note, GuardNote::Make);
    let named = Wanted { in_directory: false, ..writing(&one, MIB) };
    refuse(&named, &permit(), &["directory that would hold it does not exist"]);
    let two = dir.path().join("d/e/f");
    refuse(&writing(&two, MIB), &permit(), &["directory that would hold it does not exist"]);
}

#[test]
fn a_foreign_file_is_not_written_without_the_flag() {
    let dir = directory();
    let path = dir.path().join("f");
    fs::write(&path, "precious").unwrap();
    let refusal = refuse(&writing(&path, MIB), &permit(), &["--overwrite", "8 bytes"]);
    assert!(matches!(refusal, Refusal::Foreign { .. }));
    let allowed = Permit { overwrite: true, ..permit() };
    let verdict = accept(&writing(&path, MIB), &allowed);
    assert_eq!((verdict.note, verdict.fill), (GuardNote::ForeignOverwrite, false));
    assert!(verdict.dangers[0].contains("8 bytes"), "{:?}", verdict.dangers);
    let mixed = Wanted { reads: true, ..writing(&path, MIB) };
    let fills = |wanted: &Wanted| {
        let verdict = accept(wanted, &allowed);
        (verdict.fill, verdict.fill_from)
    };
    assert_eq!(fills(&mixed), (true, 8), "it is too short to be read");
    assert_eq!(fills(&Wanted { first: 4096, ..mixed.clone() }), (true, 4096));
    assert_eq!(fills(&Wanted { needs_pattern: true, ..mixed.clone() }), (true, 0));
    let part = Wanted { needs_pattern: true, first: 4, ..mixed };
    assert_eq!(fills(&part), (true, 4), "its first bytes are not the job's");
    let rest = Wanted { rest: true, first: 4, ..writing(&path, 8) };
    assert!(!accept(&rest, &allowed).fill, "the rest of a foreign file is not ours to fill");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_foreign_file_may_be_read_if_it_is_long_enough() {
    let dir = directory();
    let path = dir.path().join("f");
    fs::write(&path, "precious").unwrap();
    let verdict = accept(&wanted(&path, 8), &Permit::default());
    assert_eq!(verdict.note, GuardNote::ForeignReadOnly);
    assert_eq!(verdict.size_bytes, Some(8));
    assert_eq!(verdict.identity, Some(Identity::of(&fs::metadata(&path).unwrap())));
    let parts = ["8 bytes and 9 are wanted", "gpuio bench --rw write --directory"];
    refuse(&wanted(&path, 9), &permit(), &parts);
    let verified = Wanted { needs_pattern: true, ..wanted(&path, 8) };
    refuse(&verified, &permit(), &["--verify"]);
}

#[test]
fn our_file_is_used_or_made_anew() {
    let dir = directory();
    let path = dir.path().join("f");
    let verified = Wanted { needs_pattern: true, ..wanted(&path, MIB) };
    prepare(&wanted(&path, MIB)).unwrap();
    for wanted in [&wanted(&path, MIB), &writing(&path, MIB), &verified, &wanted(&path, 1)] {
        let verdict = accept(wanted, &Permit::default());
        assert_eq!((verdict.note, verdict.fill), (GuardNote::Ours, false));
        assert!(verdict.holds_pattern);
    }
    let longer = wanted(&path, 2 * MIB);
    let verdict = accept(&longer, &permit());
    assert_eq!((verdict.note, verdict.fill), (GuardNote::Remake, true));
    assert!(!verdict.holds_pattern);
    refuse(&longer, &Permit::default(), &["1048576 bytes and 2097152 are wanted"]);
    let verdict = accept(&writing(&path, 2 * MIB), &Permit::default());
    assert_eq!((verdict.note, verdict.fill), (GuardNote::Remake, false));
}

#[test]
fn another_pattern_matters_only_where_it_is_verified() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, MIB)).unwrap();
    let other = Wanted { salt: 12, ..wanted(&path, MIB) };
    assert_eq!(accept(&other, &permit()).note, GuardNote::Ours);
    assert!(!accept(&other, &permit()).holds_pattern);
    let verified = Wanted { needs_pattern: true, ..other };
    assert_eq!(accept(&verified, &permit()).note, GuardNote::Remake);
    refuse(&verified, &Permit::default(), &["does not hold the pattern", "gdsio -D", "-I 1"]);
}

#[test]
fn a_verified_part_of_our_file_wants_the_pattern_in_the_rest() {
    let dir = directory();
    let path = dir.path().join("f");
    let part = Wanted { rest: true, first: 4096, ..writing(&path, MIB) };
    let verdict = accept(&part, &permit());
    assert_eq!((verdict.note, verdict.fill), (GuardNote::Make, true));
    prepare(&writing(&path, MIB)).unwrap();
    manifest::begin(&[&path]).unwrap();
    fs::write(&path, vec![7; 2 << 20]).unwrap();
    manifest::settle(&[(&path, None)]).unwrap();
    let verdict = accept(&part, &permit());
    assert_eq!((verdict.note, verdict.fill), (GuardNote::Remake, true));
    prepare(&part).unwrap();
    let verdict = accept(&part, &permit());
    assert_eq!((verdict.note, verdict.fill), (GuardNote::Ours, false));
}

#[test]
fn a_crashed_writer_leaves_ours_without_pattern() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, MIB)).unwrap();
    manifest::begin(&[&path]).unwrap();
    fs::write(&path, vec![7; 2 << 20]).unwrap();
    assert_eq!(accept(&writing(&path, MIB), &Permit::default()).note, GuardNote::Ours);
    let verified = Wanted { needs_pattern: true, ..wanted(&path, MIB) };
    assert_eq!(accept(&verified, &permit()).note, GuardNote::Remake);
}

#[test]
fn a_file_that_took_our_files_name_is_foreign() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, MIB)).unwrap();
    fs::write(dir.path().join("g"), "precious").unwrap();
    fs::rename(dir.path().join("g"), &path).unwrap();
    refuse(&writing(&path, MIB), &permit(), &["--overwrite"]);
}

#[test]
fn a_link_to_a_foreign_file_is_foreign_and_one_to_ours_is_ours() {
    let dir = directory();
    let (path, link) = (dir.path().join("f"), dir.path().join("link"));
    fs::write(&path, "precious").unwrap();
    symlink(&path, &link).unwrap();
    refuse(&writing(&link, 8), &permit(), &["--overwrite", "a link to"]);
    fs::remove_file(&path).unwrap();
    refuse(&writing(&link, 8), &permit(), &["link to", "does not exist"]);
    prepare(&wanted(&path, MIB)).unwrap();
    let verdict = accept(&writing(&link, MIB), &permit());
    assert_eq!(verdict.note, GuardNote::Ours);
    assert_eq!(verdict.path, path.canonicalize().unwrap());
}

#[test]
fn a_list_that_cannot_be_read_makes_nothing_ours() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, MIB)).unwrap();
    fs::write(dir.path().join(FILE_NAME), "{").unwrap();
    refuse(&writing(&path, MIB), &permit(), &["--overwrite", FILE_NAME, "line 1, column"]);
    assert_eq!(accept(&wanted(&path, MIB), &permit()).note, GuardNote::ForeignReadOnly);
    let absent = dir.path().join("g");
    let refusal = refuse(&writing(&absent, MIB), &permit(), &[FILE_NAME, "line 1, column"]);
    assert!(matches!(refusal, Refusal::Manifest(_)));
}

#[test]
fn what_is_no_storage_is_refused() {
    let dir = directory();
    let all = Permit { overwrite: true, ..permit() };
    refuse(&wanted(dir.path(), 1), &all, &["is a directory", "--directory"]);
    let null = PathBuf::from("/dev/null");
    refuse(&wanted(&null, 1), &all, &["character device"]);
    refuse(&writing(&null, 1), &all, &["character device"]);
    let socket = dir.path().join("s");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    refuse(&writing(&socket, 1), &all, &["socket"]);
    let proc = PathBuf::from("/proc/sys/kernel/hostname");
    refuse(&writing(&proc, 1), &all, &["whatever the flags"]);
}

fn device(target: BlockTarget, wanted: &Wanted, permit: &Permit) -> Result<Verdict, Refusal> {
    let facts = TargetFacts {
        path: wanted.path.to_string_lossy().into_owned(),
        resolved: Some(wanted.path.to_string_lossy().into_owned()),
        symlink: false,
        kind: Found::Block(target),
        mount: None,
        unchecked: Vec::new(),
    };
    let seen = Seen {
        dangers: danger(&facts),
        facts,
        identity: None,
        ours: Ok(None),
        has_holes: false,
        parent_can_be_made: false,
    };
    decide(wanted, permit, seen)
}

fn blank() -> BlockTarget {
    BlockTarget {
        name: "nvme9n1".to_owned(),
        size_bytes: Some(MIB),
        read_only: Some(false),
        claimed: Some(false),
        ends_are_zero: Some(true),
        ..BlockTarget::default()
    }
}

fn on(path: &str) -> Permit {
    Permit { overwrite: true, devices: vec![PathBuf::from(path)], make_missing: true }
}

#[test]
fn devices_are_read_freely_and_written_only_by_name() {
    let path = PathBuf::from("/dev/nvme9n1");
    let verdict = device(blank(), &wanted(&path, MIB), &Permit::default()).unwrap();
    assert_eq!(verdict.note, GuardNote::ForeignReadOnly);
    assert_eq!(verdict.kind, TargetKind::BlockDevice);
    let text = device(blank(), &wanted(&path, MIB + 1), &permit()).unwrap_err().to_string();
    assert!(text.contains("1048576 bytes and 1048577"), "{text}");

    let write = writing(&path, MIB);
    for permit in [&Permit { overwrite: true, ..permit() }, &on("/dev/nvme8n1")] {
        let text = device(blank(), &write, permit).unwrap_err().to_string();
        assert!(text.contains("--destroy-data-on /dev/nvme9n1"), "{text}");
    }
    let verdict = device(blank(), &write, &on("/dev/nvme9n1")).unwrap();
    assert_eq!((verdict.note, verdict.fill), (GuardNote::ForeignOverwrite, false));
    let verified = Wanted { reads: true, needs_pattern: true, first: 4096, ..write.clone() };
    let verdict = device(blank(), &verified, &on("/dev/nvme9n1")).unwrap();
    assert_eq!((verdict.fill, verdict.fill_from), (true, 4096));
    assert_eq!(Task::of(&verified, &verdict).unwrap().parts.first(), Some(&(4096..MIB)));
    let part = Wanted { rest: true, first: 4096, ..write };
    assert!(!device(blank(), &part, &on("/dev/nvme9n1")).unwrap().fill);
}

#[test]
fn a_devices_data_is_named_before_it_may_go() {
    let path = PathBuf::from("/dev/nvme9n1");
    let signature = Signature { name: "ext4 file system".to_owned(), offset_bytes: 1080 };
    let holding = BlockTarget { signatures: vec![signature], ends_are_zero: None, ..blank() };
    let write = writing(&path, MIB);
    let text = device(holding.clone(), &write, &permit()).unwrap_err().to_string();
    assert!(text.contains("ext4") && text.contains("--destroy-data-on /dev/nvme9n1"), "{text}");
    let verdict = device(holding, &write, &on("/dev/nvme9n1")).unwrap();
    assert!(verdict.dangers.iter().any(|danger| danger.contains("ext4")));
}

#[test]
fn a_device_in_use_is_not_written_whatever_the_flags() {
    let path = PathBuf::from("/dev/nvme9n1");
    let at = MountedAt {
        device: "nvme9n1".to_owned(),
        mount_point: "/srv".to_owned(),
        fs_type: "xfs".to_owned(),
    };
    let mounted = BlockTarget { mounted: vec![at], ..blank() };
    let read_only = BlockTarget { read_only: Some(true), ..blank() };
    let swap = BlockTarget { swap: vec!["nvme9n1".to_owned()], ..blank() };
    for (target, word) in [(mounted, "/srv"), (read_only, "read-only"), (swap, "swap")] {
        let refusal = device(target.clone(), &writing(&path, MIB), &on("/dev/nvme9n1"));
        let text = refusal.unwrap_err().to_string();
        assert!(text.contains(word) && text.contains("whatever the flags"), "{text}");
        assert!(device(target, &wanted(&path, MIB), &permit()).is_ok(), "reading is fine");
    }
}
