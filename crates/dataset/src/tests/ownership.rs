use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use gpuio_host::target::danger;
use gpuio_record::TargetKind;
use gpuio_record::facts::{BlockTarget, MountedAt, Signature, TargetFacts, TargetKind as Found};

use super::super::look::Owner;
use super::super::manifest::{FILE_NAME, Lists};
use super::super::ownership::{Seen, check_with, decide, parent_can_be_made};
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
    let named = Wanted { directory: None, ..writing(&path, MIB) };
    for wanted in [&named, &writing(&path, MIB)] {
        let verdict = accept(wanted, &Permit::default());
        assert_eq!((verdict.note, verdict.fill), (GuardNote::Make, false));
    }
    let mixed = Wanted { reads: true, ..named };
    assert!(accept(&mixed, &permit()).fill, "what is read must be there first");
}

/// The facts about one absent file hold for its neighbours; a name that is taken is found.
#[test]
fn absent_files_of_a_directory_are_looked_at_once() {
    let dir = directory();
    fs::create_dir(dir.path().join("d")).unwrap();
    let (root, d) = (Root::live(), dir.path().join("d"));
    let mut lists = Lists::default();
    let mut check = |path: &Path| {
        let wanted = Wanted { directory: Some(d.clone()), ..writing(path, MIB) };
        let verdict = check_with(&mut lists, &wanted, &permit(), &root);
        verdict.map(|verdict| (verdict.note, verdict.path, verdict.dir_entry.is_some()))
    };
    let real = d.canonicalize().unwrap();
    for name in ["a.0", "a.1", "a.2"] {
        let expected = (GuardNote::Make, real.join(name), true);
        assert_eq!(check(&d.join(name)).unwrap(), expected);
    }
    fs::write(d.join("a.3"), "precious").unwrap();
    symlink("nowhere", d.join("a.4")).unwrap();
    assert!(matches!(check(&d.join("a.3")), Err(Refusal::Foreign { .. })));
    assert!(matches!(check(&d.join("a.4")), Err(Refusal::Link { .. })));
    assert_eq!(lists.absent.len(), 1);
    // A name that the user gave is followed, and looked at by itself.
    let named = Wanted { directory: None, ..writing(&d.join("a.4"), MIB) };
    let refusal = check_with(&mut lists, &named, &permit(), &root).unwrap_err().to_string();
    assert!(refusal.contains("link"), "{refusal}");
    // A directory that is absent itself.
    let (e, mut lists) = (dir.path().join("e"), Lists::default());
    for name in ["a.0", "a.1"] {
        let wanted = Wanted { directory: Some(e.clone()), ..writing(&e.join(name), MIB) };
        let verdict = check_with(&mut lists, &wanted, &permit(), &root).unwrap();
        assert_eq!((verdict.note, verdict.path), (GuardNote::Make, e.join(name)));
        assert!(verdict.dir_entry.is_none());
    }
    assert_eq!(lists.absent.len(), 1);
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
    begin(&path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(MIB).unwrap();
    finalize(&path, None).unwrap();
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
    let named = Wanted { directory: None, ..wanted(&path, MIB) };
    let file = format!("--filename {}", path.display());
    refuse(&named, &permit(), &["does not exist", &file]);
}

/// A write that would be refused is not advised.
#[test]
fn a_mistyped_device_is_no_file_to_write_first() {
    let dir = directory();
    let read = |path: &Path| Wanted { directory: None, ..wanted(path, MIB) };
    let kernels = Path::new("/proc/nvme9n9");
    let says = refuse(&read(kernels), &permit(), &["does not exist, and no file may be made"]);
    assert!(!says.to_string().contains("gpuio"), "{says}");
    let below = dir.path().join("none/f");
    refuse(&read(&below), &Permit::default(), &["its directory does not exist: create it first"]);
}

/// A model of the user's: nothing is proposed that would write to it.
#[test]
fn a_file_that_is_read_as_it_is_has_to_stay_as_it_was() {
    let dir = directory();
    let path = dir.path().join("model");
    let whole = Wanted { directory: None, as_planned: true, ..wanted(&path, MIB) };
    let says = |parts: &[&str]| {
        for permit in [permit(), Permit::default(), Permit { make_named: true, ..permit() }] {
            let text = refuse(&whole, &permit, parts).to_string();
            assert!(!text.contains("bench") && !text.contains("--size"), "{text}");
        }
    };
    says(&["model is not there any more", "moved, written or replaced"]);
    for size in [MIB - 1, MIB + 1] {
        fs::write(&path, vec![0; usize::try_from(size).unwrap()]).unwrap();
        says(&[&format!("has {size} bytes, and had {MIB} when the run was planned")]);
    }
    fs::write(&path, vec![0; usize::try_from(MIB).unwrap()]).unwrap();
    assert_eq!(accept(&whole, &permit()).note, GuardNote::ForeignReadOnly);
}

#[test]
fn directories_may_be_made_below_one_that_is_there() {
    let dir = directory();
    let one = dir.path().join("d/f");
    assert_eq!(accept(&writing(&one, MIB), &permit()).note, GuardNote::Make);
    let named = Wanted { directory: None, ..writing(&one, MIB) };
    refuse(&named, &permit(), &["its directory does not exist"]);
    let two = dir.path().join("d/e/f");
    assert_eq!(accept(&writing(&two, MIB), &permit()).note, GuardNote::Make);
    fs::write(dir.path().join("d"), "").unwrap();
    for path in [&one, &two] {
        refuse(&writing(path, MIB), &permit(), &["its directory does not exist"]);
    }
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
    assert_eq!(verdict.target.unwrap().identity(), identity(&path));
    let refusal = refuse(&wanted(&path, 9), &permit(), &["8 bytes and 9 are wanted"]);
    assert!(!refusal.to_string().contains("--rw write"), "nobody's file is made longer: {refusal}");
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
    let other = Wanted { salt: 12.into(), ..wanted(&path, MIB) };
    assert_eq!(accept(&other, &permit()).note, GuardNote::Ours);
    assert!(!accept(&other, &permit()).holds_pattern);
    let verified = Wanted { needs_pattern: true, ..other };
    let verdict = accept(&verified, &Permit::default());
    let listed = gpuio_base::pattern::file_key(11_u64, 3);
    assert_eq!((verdict.note, verdict.fill), (GuardNote::Ours, false));
    assert_eq!(verdict.key, Some(listed), "held against what is listed");
    let number = 11;
    let repeats = gpuio_base::pattern::Repeats::new(75, 4096).unwrap();
    let compressible = Wanted { salt: gpuio_base::pattern::Salt { number, repeats }, ..verified };
    refuse(&compressible, &permit(), &["does not hold the pattern", "the same buffer_compress"]);
}

/// A file of ours that a plain write left, that ends too early, or whose writer was killed: what is
/// there is verified as it is or not at all, and is never written first.
#[test]
fn what_is_verified_is_never_written_before() {
    let dir = directory();
    let path = dir.path().join("f");
    let verified = Wanted { needs_pattern: true, ..wanted(&path, MIB) };
    let leave = |bytes: &[u8], known: bool| {
        let _ = fs::remove_file(&path);
        prepare(&wanted(&path, MIB)).unwrap();
        begin(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        if known {
            finalize(&path, None).unwrap();
        }
    };
    let key = gpuio_base::pattern::file_key(11_u64, 3);
    let mut right = vec![0; 1 << 20];
    gpuio_base::pattern::fill(&mut right, key, 0);
    let mut holed = right.clone();
    holed[300 << 10..400 << 10].fill(0);
    for (bytes, known) in [(&right, true), (&right, false), (&holed, true), (&holed, false)] {
        leave(bytes, known);
        let verdict = accept(&verified, &permit());
        assert_eq!((verdict.fill, verdict.anew, verdict.key), (false, false, Some(key)));
        assert_eq!(fs::read(&path).unwrap(), *bytes);
    }
    leave(&timed(1 << 20, 77), true);
    let command = "--rw write --directory";
    refuse(&verified, &permit(), &["does not hold the pattern", command, "--verify --keep"]);
    refuse(&verified, &Permit::default(), &["does not hold the pattern", "gdsio -D", "-I 1"]);
    leave(&right[..512 << 10], true);
    refuse(&verified, &permit(), &["has 524288 bytes and 1048576 are wanted", command]);
    // Cut by someone, though it held its pattern from end to end.
    let _ = fs::remove_file(&path);
    prepare(&wanted(&path, MIB)).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(MIB / 2).unwrap();
    refuse(&verified, &permit(), &["1048576 are wanted (gpuio left it with 1048576"]);
    let plain = accept(&wanted(&path, MIB), &permit());
    assert_eq!((plain.fill, plain.cut_from), (true, Some(MIB)), "filled again, and it is said");
    // One that still does is made longer behind it.
    let _ = fs::remove_file(&path);
    prepare(&wanted(&path, MIB / 2)).unwrap();
    let verdict = accept(&verified, &permit());
    assert_eq!((verdict.note, verdict.kept), (GuardNote::Remake, MIB / 2));
    assert_eq!(verdict.cut_from, None);
}

#[test]
fn a_verified_part_of_our_file_wants_the_pattern_in_the_rest() {
    let dir = directory();
    let path = dir.path().join("f");
    let part = Wanted { rest: true, first: 4096, ..writing(&path, MIB) };
    let verdict = accept(&part, &permit());
    assert_eq!((verdict.note, verdict.fill), (GuardNote::Make, true));
    prepare(&writing(&path, MIB)).unwrap();
    begin(&path).unwrap();
    fs::write(&path, vec![7; 2 << 20]).unwrap();
    finalize(&path, None).unwrap();
    let verdict = accept(&part, &permit());
    assert_eq!((verdict.note, verdict.fill), (GuardNote::Remake, true));
    prepare(&part).unwrap();
    let verdict = accept(&part, &permit());
    assert_eq!((verdict.note, verdict.fill), (GuardNote::Ours, false));
}

/// The bytes that timed writes leave: words of the generator, made for another place.
fn timed(length: usize, key: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for (nth, block) in (0..).zip(bytes.chunks_mut(64 << 10)) {
        gpuio_base::pattern::fill(block, key, 4096 * nth);
    }
    bytes
}

#[test]
fn a_crashed_writer_leaves_ours_without_pattern() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, MIB)).unwrap();
    begin(&path).unwrap();
    fs::write(&path, timed(2 << 20, 77)).unwrap();
    assert_eq!(accept(&writing(&path, MIB), &Permit::default()).note, GuardNote::Ours);
    let verified = Wanted { needs_pattern: true, ..wanted(&path, MIB) };
    refuse(&verified, &permit(), &["did not end", "nothing to verify"]);
}

/// A run was killed, and its file's name and inode serve somebody else now.
#[test]
fn what_stands_where_a_killed_run_wrote_is_ours_only_by_what_it_holds() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, MIB)).unwrap();
    begin(&path).unwrap();
    let mine: Vec<u8> =
        (0..1 << 18).flat_map(|n: u32| n.wrapping_mul(n | 1).to_le_bytes()).collect();
    let mut edited = timed(1 << 20, 77);
    edited[700_001] ^= 1;
    let mut appended = timed(1 << 20, 77);
    appended.extend(b"note");
    let zeros = vec![0; 1 << 20];
    for bytes in [&mine, &edited, &appended, &zeros] {
        // As cp(1) does: the inode stays.
        fs::write(&path, bytes).unwrap();
        for wanted in [&writing(&path, MIB), &wanted(&path, 4 * MIB)] {
            let refusal = look(wanted, &permit()).expect_err("it is not known to be ours");
            assert!(!refusal.to_string().contains("not made by gpuio"), "{refusal}");
        }
        refuse(&writing(&path, MIB), &permit(), &["made by gpuio and is not", "--overwrite"]);
        assert!(fs::read(&path).unwrap() == *bytes);
        let allowed = Permit { overwrite: true, ..permit() };
        assert_eq!(accept(&writing(&path, MIB), &allowed).note, GuardNote::ForeignOverwrite);
    }
    // Its inode is free, and the next file has it; only its time of birth is another.
    fs::remove_file(&path).unwrap();
    let list = dir.path().join(FILE_NAME);
    fs::write(&path, &mine).unwrap();
    let entry = serde_json::to_string(&identity(&path).ino).unwrap();
    let mut text: serde_json::Value = serde_json::from_slice(&fs::read(&list).unwrap()).unwrap();
    text["files"][0]["ino"] = entry.parse::<u64>().unwrap().into();
    fs::write(&list, text.to_string()).unwrap();
    refuse(&writing(&path, MIB), &permit(), &["--overwrite"]);
    assert!(fs::read(&path).unwrap() == mine);
}

#[test]
fn a_file_that_was_touched_is_ours_by_what_it_holds_and_never_made_anew_for_a_read() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, MIB)).unwrap();
    let touch = || {
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    };
    touch();
    let verdict = accept(&writing(&path, MIB), &Permit::default());
    assert_eq!((verdict.note, verdict.holds_pattern), (GuardNote::Ours, true));
    let verified = Wanted { needs_pattern: true, ..wanted(&path, MIB) };
    let key = Some(gpuio_base::pattern::file_key(11, 3));
    let sure = |permit: &Permit| {
        let verdict = accept(&verified, permit);
        assert_eq!((verdict.note, verdict.fill, verdict.key), (GuardNote::Changed, false, key));
    };
    sure(&permit());
    // A flipped byte is for verification to find, not for the maker to mend.
    let mut bytes = fs::read(&path).unwrap();
    bytes[500_000] ^= 0x10;
    fs::write(&path, &bytes).unwrap();
    touch();
    sure(&permit());
    sure(&Permit::default());
    refuse(&writing(&path, MIB), &permit(), &["at byte 500000", "--overwrite"]);
    refuse(&wanted(&path, 2 * MIB), &permit(), &["1048576 bytes and 2097152 are wanted"]);
}

/// Which pattern a file of ours holds is known from the list: no damage leaves it without one.
#[test]
fn what_damaged_bytes_are_held_against_does_not_depend_on_them() {
    let dir = directory();
    let path = dir.path().join("f");
    let verified = Wanted { needs_pattern: true, ..wanted(&path, MIB) };
    let other_job = Wanted { salt: 5.into(), file_number: 9, ..verified.clone() };
    let key = Some(gpuio_base::pattern::file_key(11, 3));
    prepare(&wanted(&path, MIB)).unwrap();
    let whole = fs::read(&path).unwrap();
    let block = 64 << 10;
    for damaged in [0..block, whole.len() - block..whole.len(), 1..2, 0..whole.len()] {
        let mut bytes = whole.clone();
        bytes[damaged.clone()].fill(0x41);
        fs::write(&path, &bytes).unwrap();
        for (job, permit) in [(&verified, permit()), (&other_job, Permit::default())] {
            let verdict = accept(job, &permit);
            assert_eq!((verdict.note, verdict.key), (GuardNote::Changed, key), "{damaged:?}");
        }
    }
}

/// The list has which bytes hold the pattern where not all do: these can be verified, and others
/// can't.
#[test]
fn parts_of_our_file_are_verified_that_hold_the_pattern() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, MIB)).unwrap();
    begin(&path).unwrap();
    let holds = Holds { salt: 11.into(), file_number: 3 };
    let parts = vec![64 << 10..128 << 10, 128 << 10..MIB / 2, MIB - 4096..u64::MAX];
    super::super::manifest::finalize(&[(held(&path), Some(Known { holds, parts }))]).unwrap();
    let part = |first, length| Wanted { first, needs_pattern: true, ..wanted(&path, length) };
    let right = [part(64 << 10, MIB / 2), part(200_000, 300_000), part(MIB - 4096, MIB)];
    for part in &right {
        assert_eq!(accept(part, &Permit::default()).note, GuardNote::Ours);
    }
    for part in
        [part(0, MIB / 2), part(64 << 10, MIB), Wanted { salt: 5.into(), ..right[0].clone() }]
    {
        let verdict = accept(&part, &permit());
        assert_eq!((verdict.fill, verdict.key.is_some()), (false, true), "held against the list");
    }
    // Whatever becomes of the bytes.
    fs::write(&path, vec![0x41; 1 << 20]).unwrap();
    for part in &right {
        let verdict = accept(part, &Permit::default());
        let key = Some(gpuio_base::pattern::file_key(11, 3));
        assert_eq!((verdict.note, verdict.key), (GuardNote::Changed, key));
    }
    refuse(&part(0, MIB), &Permit::default(), &["nothing to verify its bytes against"]);
}

#[test]
fn a_copy_under_another_name_is_verified_by_the_pattern_that_it_holds() {
    let dir = directory();
    let (path, copy) = (dir.path().join("f"), dir.path().join("copy"));
    prepare(&wanted(&path, MIB)).unwrap();
    fs::copy(&path, &copy).unwrap();
    let other =
        Wanted { needs_pattern: true, salt: 5.into(), file_number: 9, ..wanted(&copy, MIB) };
    let verdict = accept(&other, &Permit::default());
    let key = Some(gpuio_base::pattern::file_key(11, 3));
    assert_eq!((verdict.note, verdict.key), (GuardNote::ForeignReadOnly, key));
    // Data of timed writes are of no one place: there is nothing to hold them against.
    fs::write(&copy, timed(1 << 20, 77)).unwrap();
    refuse(&other, &permit(), &["holds no pattern", "nothing to verify its bytes against"]);
    // A copy that took the name of ours.
    fs::copy(&path, &copy).unwrap();
    fs::rename(&copy, &path).unwrap();
    let named = Wanted { path: path.clone(), ..other };
    let verdict = accept(&named, &permit());
    assert_eq!((verdict.note, verdict.key), (GuardNote::Changed, key));
    refuse(&writing(&path, MIB), &permit(), &["a copy or another one", "--overwrite"]);
}

#[test]
fn a_file_of_ours_with_another_name_is_not_overwritten() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, MIB)).unwrap();
    fs::hard_link(&path, dir.path().join("mine too")).unwrap();
    let parts = ["hard link", "the file has 2 names", "--overwrite"];
    refuse(&writing(&path, MIB), &permit(), &parts);
    assert_eq!(accept(&wanted(&path, MIB), &permit()).note, GuardNote::Changed);
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
    let named = |length| Wanted { directory: None, ..writing(&link, length) };
    fs::write(&path, "precious").unwrap();
    symlink(&path, &link).unwrap();
    refuse(&named(8), &permit(), &["--overwrite", "a link to"]);
    fs::remove_file(&path).unwrap();
    refuse(&named(8), &permit(), &["link to", "does not exist"]);
    prepare(&wanted(&path, MIB)).unwrap();
    let verdict = accept(&named(MIB), &permit());
    assert_eq!(verdict.note, GuardNote::Ours);
    assert_eq!(verdict.path, path.canonicalize().unwrap());
}

#[test]
fn no_link_is_followed_below_the_directory() {
    let dir = directory();
    let (data, other) = (dir.path().join("data"), dir.path().join("other"));
    for at in [&data, &other] {
        fs::create_dir(at).unwrap();
    }
    prepare(&wanted(&other.join("f"), MIB)).unwrap();
    symlink(other.join("f"), data.join("f")).unwrap();
    symlink(&other, data.join("sub")).unwrap();
    symlink("nowhere", data.join("dangling")).unwrap();
    symlink(&data, dir.path().join("named")).unwrap();
    let all = Permit { overwrite: true, ..permit() };
    for name in ["f", "sub/f", "sub/new", "dangling"] {
        for top in [&data, &dir.path().join("named")] {
            let below = |wanted: Wanted| Wanted { directory: Some(top.clone()), ..wanted };
            for wanted in [wanted(&top.join(name), 8), writing(&top.join(name), 8)] {
                let refusal = refuse(&below(wanted), &all, &["symbolic link", "--filename"]);
                assert!(matches!(refusal, Refusal::Link { .. }), "{name}: {refusal}");
            }
        }
    }
    // The directory itself may be a link.
    let top = dir.path().join("named");
    assert_eq!(accept(&writing(&top.join("new"), 8), &permit()).note, GuardNote::Make);
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
        held: None,
        dir_entry: None,
        owner: Ok(Owner::Foreign),
        key: None,
        has_holes: false,
        parent_can_be_made: false,
    };
    decide(wanted, permit, seen)
}

/// Ranks look and make directories side by side: one that is there by now is no reason to refuse.
#[test]
fn a_directory_that_another_rank_has_made_meanwhile_is_no_danger() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d/gpuio.0");
    let facts = TargetFacts {
        path: path.display().to_string(),
        resolved: None,
        symlink: false,
        kind: Found::Absent { parent_exists: false },
        mount: None,
        unchecked: Vec::new(),
    };
    let seen = |parent_can_be_made| Seen {
        facts: facts.clone(),
        dangers: danger(&facts),
        held: None,
        dir_entry: None,
        owner: Ok(Owner::Foreign),
        key: None,
        has_holes: false,
        parent_can_be_made,
    };
    let permit = Permit { make_missing: true, ..Permit::default() };
    assert!(parent_can_be_made(&path), "it can be made");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let wanted = wanted(&path, MIB);
    assert!(decide(&wanted, &permit, seen(parent_can_be_made(&path))).is_ok());
    fs::remove_dir(path.parent().unwrap()).unwrap();
    fs::write(path.parent().unwrap(), "").unwrap();
    assert!(decide(&wanted, &permit, seen(parent_can_be_made(&path))).is_err(), "a file");
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
    Permit {
        overwrite: true,
        devices: vec![PathBuf::from(path)],
        make_missing: true,
        make_named: false,
    }
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
