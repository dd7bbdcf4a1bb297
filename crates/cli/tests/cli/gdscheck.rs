//! `gpuio gdscheck`, and the binary called by that name.

use std::fs;
use std::os::unix::fs::symlink;

use crate::tool::{GPUIO, command, finish, gpuio, scratch};

const H100: &str = include_str!("../../../capture/tests/fixtures/h100-1.13.gdscheck");

#[test]
fn this_machine_prints_every_section_and_reads_them_back() {
    let dir = scratch();
    let ran = gpuio(dir.path(), "gdscheck -p");
    // 0 on a server for it; 1 and 3 are answers too, with all sections.
    assert!([0, 1, 3].contains(&ran.code), "{ran:#?}");
    assert_eq!(ran.err, "");
    let first = ran.out.lines().next().unwrap();
    assert!(first.starts_with("gpuio gdscheck ") && first.contains("not NVIDIA's"), "{first}");
    for heading in [
        "ENVIRONMENT:",
        "DRIVER CONFIGURATION:",
        "CUFILE CONFIGURATION:",
        "GPU INFO:",
        "PLATFORM INFO:",
    ] {
        assert!(ran.out.lines().any(|line| line.trim() == heading), "{heading}: {}", ran.out);
    }
    let said = ran.out.lines().last().unwrap();
    assert_eq!(ran.code == 0, said == " Platform verification succeeded", "{said}");
    fs::write(dir.path().join("ours"), &ran.out).unwrap();
    let read = gpuio(dir.path(), "check --only gdscheck --format json --from ours");
    assert!(read.code < 2, "{read:#?}");
    assert!(read.out.contains("gpuio's gdscheck printed"), "{read:#?}");
}

#[test]
fn the_binary_called_gdscheck_is_the_same() {
    let dir = scratch();
    let link = dir.path().join("gdscheck");
    symlink(GPUIO, &link).unwrap();
    let mut called = command(dir.path());
    let verb = finish(called.args(["gdscheck", "-v"])).exits(0);
    let name =
        finish(crate::tool::other(dir.path(), &link).arg("-v").current_dir(dir.path())).exits(0);
    assert_eq!(verb.out, name.out);
    assert!(name.out.contains("nvidia_fs version:"), "{}", name.out);
}

#[test]
fn settings_are_those_in_force() {
    let dir = scratch();
    let file = dir.path().join("mine.json");
    fs::write(&file, "{ \"properties\": { \"allow_compat_mode\": false, } }").unwrap();
    let ran = finish(
        command(dir.path())
            .env("CUFILE_ENV_PATH_JSON", &file)
            .env("CUFILE_STATS_LEVEL", "2")
            .args(["gdscheck", "-p"]),
    );
    assert!(ran.out.contains(" properties.use_compat_mode : false\n"), "{}", ran.out);
    assert!(ran.out.contains(" profile.cufile_stats : 2\n"), "{}", ran.out);
    assert!(ran.out.contains(" CUFILE_STATS_LEVEL : 2\n"), "{}", ran.out);
    fs::write(&file, "{ torn").unwrap();
    let ran =
        finish(command(dir.path()).env("CUFILE_ENV_PATH_JSON", &file).args(["gdscheck", "-p"]));
    let line = ran.out.lines().find(|line| line.contains("properties.use_compat_mode")).unwrap();
    assert!(line.contains("Unknown (") && line.contains("mine.json"), "{line}");
}

#[test]
fn a_file_has_its_storage_and_bad_flags_their_names() {
    let dir = scratch();
    fs::write(dir.path().join("data"), "x").unwrap();
    let ran = gpuio(dir.path(), "gdscheck -f data");
    assert!([0, 1, 3].contains(&ran.code), "{ran:#?}");
    assert!(ran.out.contains("Mount: ") && ran.out.contains("GDS register Unknown"), "{ran:#?}");
    gpuio(dir.path(), "gdscheck -f gone").exits(2).prints(&["-f gone"]);
    gpuio(dir.path(), "gdscheck -V").exits(2).prints(&["-V"]);
    gpuio(dir.path(), "gdscheck -x").exits(2).prints(&["'-x'"]);
    gpuio(dir.path(), "gdscheck").exits(2).prints(&["-p"]);
    let ran = gpuio(dir.path(), "gdscheck -p --ask-library");
    // Asked for by name, it never goes on without.
    let opened = ran.out.contains("DRIVER CONFIGURATION:");
    assert!(opened || (ran.code == 3 && ran.err.contains("--ask-library: ")), "{ran:#?}");
}

#[test]
fn checks_of_what_gdscheck_printed() {
    let dir = scratch();
    fs::write(dir.path().join("sent.txt"), H100).unwrap();
    let ran = gpuio(dir.path(), "check --from sent.txt").exits(0);
    assert!(ran.out.contains("gdscheck printed `IOMMU: disabled`"), "{}", ran.out);
    let torn = H100.replace("(MiB):131072", "(MiB):much");
    fs::write(dir.path().join("torn.txt"), torn).unwrap();
    gpuio(dir.path(), "check --from torn.txt").exits(2).prints(&["torn.txt", "line 64, column 57"]);
}
