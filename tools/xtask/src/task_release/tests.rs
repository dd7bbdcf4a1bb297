use std::os::unix::fs::PermissionsExt as _;

use super::edit::Edit;
use super::request::Key;
use super::version::Version;
use super::*;

const MANIFEST: &str = "[workspace]\nmembers = []\n\n[workspace.package]\nversion = \"0.2.0\"\n\
                        edition = \"2024\"\n\n[profile.dev]\n";
const LOCK: &str = "version = 4\n\n\
    [[package]]\nname = \"other\"\nversion = \"0.2.0\"\nsource = \"registry\"\n\n\
    [[package]]\nname = \"gpuio\"\nversion = \"0.2.0\"\ndependencies = [\n \"other\",\n]\n\n\
    [[package]]\nname = \"gpuio-io\"\nversion = \"0.2.0\"\n";
const CHANGELOG: &str = "# Changelog\n\n## 0.10.0\n\n## 0.3.0 (unreleased)\n\nBetter.\n\n\
                         ### Limits\n\n- None.\n\n## 0.2.0 (2026-01-01)\n\nGood.\n";

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn versions_are_in_the_order_of_their_numbers() {
    let sorted = ["0.1.0", "0.1.1", "0.2.0", "0.10.0", "1.0.0", "1.0.10"].map(version);
    assert!(sorted.is_sorted());
    assert!(version("0.9.0") < version("0.10.0"));
    assert_eq!(version("0.10.0").to_string(), "0.10.0");
}

#[test]
fn other_versions_are_refused() {
    for text in ["", "1", "1.2", "1.2.3.4", "v1.2.3", "1.02.3", "1..3", "1.2.x", "1.2.+3"] {
        let refused = text.parse::<Version>().unwrap_err().to_string();
        assert!(refused.contains("give "), "{refused}");
    }
    for text in ["1.0.0-rc.1", "1.0.0+5"] {
        let refused = text.parse::<Version>().unwrap_err().to_string();
        assert!(refused.contains("pre-releases and builds"), "{refused}");
    }
}

#[test]
fn arguments() {
    let options = ReleaseOptions::parse(&words("--dry-run 1.2.3 --key us")).unwrap();
    let key = Some(Key::Gpg("us".to_owned()));
    assert_eq!(options, ReleaseOptions { version: version("1.2.3"), dry_run: true, key });
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let file = ReleaseOptions::parse(&words(&format!("1.2.3 --key {manifest}"))).unwrap();
    assert_eq!(file.key, Some(Key::Ssh(manifest.into())));
    for wrong in ["", "--dry-run", "1.2.3 1.2.4", "1.2.3 --key", "1.2.3 --push", "next"] {
        assert!(ReleaseOptions::parse(&words(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn the_manifest_gets_the_version_at_one_place() {
    assert_eq!(edit::version_of(MANIFEST), Some("0.2.0"));
    let after = edit::manifest(MANIFEST, version("0.3.0"));
    assert_eq!(after, MANIFEST.replace("0.2.0", "0.3.0"));
    let elsewhere = "[workspace.package]\nedition = \"2024\"\n\n[package]\nversion = \"0.2.0\"\n";
    assert_eq!(edit::version_of(elsewhere), None);
}

#[test]
fn a_lock_file_gets_the_version_of_our_crates_alone() {
    let after = edit::lock(LOCK, version("0.2.0"), version("0.3.0"));
    assert_eq!(after.matches("0.3.0").count(), 2);
    assert!(after.contains("name = \"other\"\nversion = \"0.2.0\""), "{after}");
    assert!(after.contains("name = \"gpuio-io\"\nversion = \"0.3.0\"\n"), "{after}");
    assert_eq!(edit::lock(LOCK, version("0.1.0"), version("0.3.0")), LOCK);
}

#[test]
fn the_changelog_gets_the_day_once() {
    let after = edit::changelog(CHANGELOG, version("0.3.0"), "2026-02-03");
    assert_eq!(after, CHANGELOG.replace("(unreleased)", "(2026-02-03)"));
    assert_eq!(edit::changelog(&after, version("0.3.0"), "2026-02-03"), after);
    assert_eq!(edit::changelog(CHANGELOG, version("0.4.0"), "2026-02-03"), CHANGELOG);
}

#[test]
fn notes_are_what_stands_below_the_heading() {
    let notes = |text: &str| edit::notes(CHANGELOG, version(text));
    assert_eq!(notes("0.3.0").as_deref(), Some("Better.\n\n### Limits\n\n- None."));
    assert_eq!(notes("0.2.0").as_deref(), Some("Good."));
    assert_eq!(notes("0.10.0"), None, "there is a heading and nothing below");
    assert_eq!(notes("0.1.0"), None, "0.10.0 is another version");
}

#[test]
fn an_edit_says_its_first_line_and_how_many() {
    let edit = Edit::between("a", "x\ny 1\ny 1\n", "x\ny 2\ny 2\n".to_owned()).unwrap();
    assert_eq!(edit.to_string(), "a: `y 1` becomes `y 2`, 2 times");
    assert_eq!(Edit::between("a", "x\n", "x\n".to_owned()), None);
}

#[test]
fn sums_of_two_machines_are_one_list() {
    let line = |digit: char, name: &str| format!("{}  {name}\n", digit.to_string().repeat(64));
    let first = line('a', "x_amd64.deb") + &line('c', "Containerfile");
    let second = line('b', "x_arm64.deb") + &line('c', "Containerfile");
    assert_eq!(sums::names(&first).unwrap(), ["x_amd64.deb", "Containerfile"]);
    let all = line('c', "Containerfile") + &line('a', "x_amd64.deb") + &line('b', "x_arm64.deb");
    assert_eq!(sums::merged(&[first.clone(), second]).unwrap(), all);
    let other = sums::merged(&[first, line('d', "Containerfile")]).unwrap_err().to_string();
    assert_eq!(other, "two files have the name Containerfile, and differ");
    for wrong in ["abc  a", &line('g', "a"), &line('a', "../a"), &line('a', "")] {
        assert!(sums::names(wrong).is_err(), "{wrong}");
    }
}

fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    std::fs::create_dir(root.join("fuzz")).unwrap();
    let lock = LOCK.replace("gpuio", "fuzzed");
    for (path, text) in [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("fuzz/Cargo.lock", &lock),
        ("CHANGELOG.md", CHANGELOG),
        (".gitignore", "/target\n"),
    ] {
        std::fs::write(root.join(path), text).unwrap();
    }
    for line in [
        "init --quiet",
        "config user.name Tester",
        "config user.email tester@example.invalid",
        "config commit.gpgSign false",
        "config tag.gpgSign false",
        "add .",
        "commit --quiet -m First",
    ] {
        ran(root, line);
    }
    dir
}

#[track_caller]
fn ran(root: &Path, line: &str) -> String {
    git(root, &line.split(' ').collect::<Vec<_>>()).unwrap()
}

fn request(root: &Path, line: &str) -> Request {
    let options = ReleaseOptions::parse(&words(line)).unwrap();
    Request::read(root, root.join("target"), &options, "2026-02-03".to_owned()).unwrap()
}

fn refused(request: &Request) -> Vec<String> {
    request.conditions().into_iter().filter_map(Result::err).collect()
}

#[test]
fn a_dry_run_says_each_step_and_leaves_the_repository() {
    let dir = repository();
    let root = dir.path();
    let before = (ran(root, "rev-parse HEAD"), ran(root, "for-each-ref"));
    let request = request(root, "0.3.0 --key us");
    assert_eq!(refused(&request), [""; 0]);
    let said = dry_run(&request);
    let expected = "release 0.3.0, a dry run: nothing is changed

ok  the tree has no changes
ok  0.3.0 is not below 0.2.0, the version in Cargo.toml
ok  there is no tag v0.3.0
ok  CHANGELOG.md has 5 lines of notes

1. version
   Cargo.toml: `version = \"0.2.0\"` becomes `version = \"0.3.0\"`
   CHANGELOG.md: `## 0.3.0 (unreleased)` becomes `## 0.3.0 (2026-02-03)`
   Cargo.lock: `version = \"0.2.0\"` becomes `version = \"0.3.0\"`, 2 times
   fuzz/Cargo.lock: `version = \"0.2.0\"` becomes `version = \"0.3.0\"`, 2 times
   git commit: Release 0.3.0
2. checks
   cargo xtask ci
   cargo xtask deny
3. packages
   cargo xtask dist --target x86_64-unknown-linux-gnu --check
   cargo xtask dist --target aarch64-unknown-linux-gnu --check
4. check sums
   target/dist/gpuio-0.3.0: the files of both machines, and SHA256SUMS over them
5. signature
   gpg --local-user us --armor --detach-sign SHA256SUMS
6. site
   cargo xtask site
7. tag
   git tag --annotate v0.3.0, with the notes; it is not pushed

Nothing is pushed or published by this task.";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("git push --atomic REMOTE HEAD v0.3.0\n"), "{said}");
    assert_eq!((ran(root, "rev-parse HEAD"), ran(root, "for-each-ref")), before);
    assert_eq!(ran(root, "status --porcelain --ignored"), "");
}

#[test]
fn what_is_not_ready_is_refused_with_the_remedy() {
    let dir = repository();
    let root = dir.path();
    let one = |line: &str| {
        let refused = refused(&request(root, line));
        assert_eq!(refused.len(), 1, "{refused:?}");
        refused.into_iter().next().unwrap()
    };
    assert!(one("0.10.0").contains("write them below a heading `## 0.10.0 (unreleased)`"));
    // The current version may be released as long as it has no tag.
    assert_eq!(refused(&request(root, "0.2.0")), [""; 0]);
    ran(root, "tag v0.2.0");
    assert!(one("0.2.0").ends_with("git tag -d v0.2.0"));
    std::fs::write(root.join("new"), "").unwrap();
    assert_eq!(one("0.3.0"), "the tree has changes (?? new): commit, stash or undo them");
    let below = refused(&request(root, "0.1.0"));
    assert!(below.iter().any(|why| why.starts_with("0.1.0 is below 0.2.0")), "{below:?}");
}

#[test]
fn the_version_is_committed_once_and_its_commit_tagged() {
    let dir = repository();
    let root = dir.path();
    let mut first = request(root, "0.3.0");
    set_version(&mut first).unwrap();
    assert_eq!(ran(root, "log --format=%s"), "Release 0.3.0\nFirst\n");
    assert_eq!(ran(root, "status --porcelain"), "");
    // After a failure of a later step the same command does the rest.
    let mut again = request(root, "0.3.0");
    assert_eq!((again.edits(), refused(&again)), (vec![], vec![]));
    set_version(&mut again).unwrap();
    assert_eq!(ran(root, "rev-list --count HEAD"), "2\n");
    // A step that changes a file, as cargo does with a lock file, was not of the commit.
    std::fs::write(root.join("Cargo.lock"), LOCK).unwrap();
    let changed = set_tag(&mut again).unwrap_err().to_string();
    assert!(changed.contains("Cargo.lock"), "{changed}");
    ran(root, "checkout -- Cargo.lock");
    set_tag(&mut again).unwrap();
    let tag = ran(root, "cat-file tag v0.3.0");
    assert!(
        tag.starts_with(&format!("object {}type commit", ran(root, "rev-parse HEAD"))),
        "{tag}"
    );
    assert!(tag.ends_with("gpuio 0.3.0\n\nBetter.\n\n### Limits\n\n- None.\n"), "{tag}");
    ran(root, "commit --quiet --allow-empty -m Later");
    let later = set_tag(&mut again).unwrap_err().to_string();
    assert!(later.contains("new commits"), "{later}");
}

#[test]
fn files_are_as_they_were_if_nothing_can_be_committed() {
    let dir = repository();
    let root = dir.path();
    let hook = root.join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    ran(root, "config core.hooksPath .git/hooks");
    assert!(set_version(&mut request(root, "0.3.0")).is_err());
    assert_eq!(ran(root, "status --porcelain"), "");
    assert_eq!(ran(root, "rev-list --count HEAD"), "1\n");
}

#[test]
fn packages_of_both_machines_are_collected_and_compared() {
    let dir = repository();
    let request = request(dir.path(), "0.3.0");
    let sum_of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for target in TARGETS {
        let from = request.target.join("dist").join(target);
        std::fs::create_dir_all(&from).unwrap();
        let mut list = String::new();
        for name in [format!("{target}.deb"), "Containerfile".to_owned()] {
            std::fs::write(from.join(&name), "abc").unwrap();
            list.push_str(&format!("{sum_of_abc}  {name}\n"));
        }
        std::fs::write(from.join(SUMS), list).unwrap();
        std::fs::write(from.join("gpuio_0.0.1.deb"), "of an older release").unwrap();
    }
    std::fs::create_dir_all(request.place()).unwrap();
    std::fs::write(request.place().join("SHA256SUMS.sig"), "of other packages").unwrap();
    collect(&request).unwrap();
    let listed = std::fs::read_dir(request.place()).unwrap();
    let mut names: Vec<_> = listed.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let debs = ["aarch64-unknown-linux-gnu.deb", "x86_64-unknown-linux-gnu.deb"];
    assert_eq!(names, ["Containerfile", SUMS, debs[0], debs[1]]);
    let damaged = request.target.join("dist").join(TARGETS[1]).join(debs[0]);
    std::fs::write(damaged, "abd").unwrap();
    let why = collect(&request).unwrap_err().to_string();
    assert_eq!(why, "damaged: aarch64-unknown-linux-gnu.deb: FAILED");
}

#[test]
fn no_manifest_but_the_workspaces_has_a_version_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifests = git(&root, &["ls-files", "--", ":(glob)**/Cargo.toml"]).unwrap();
    let mut count = 0;
    for path in manifests.lines() {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        let own = text.lines().filter(|line| line.starts_with("version = ")).count();
        assert_eq!(own, usize::from(path == "Cargo.toml"), "{path}: version.workspace = true");
        count += 1;
    }
    assert!(count > 20, "{count}");
}
