use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use super::*;
use crate::objects::trust::{Refusal, object};

fn put(file: &Path) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "").unwrap();
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn foreign(path: &Path) -> String {
    match object(path) {
        Err(refused @ Refusal::Foreign(..)) => refused.to_string(),
        other => panic!("{}: {other:?}", path.display()),
    }
}

#[test]
fn what_is_carried_is_unpacked_only_where_nothing_else_is_found() {
    let root = tempfile::tempdir().unwrap();
    let bin = root.path().join("bin");
    let carried = || Some(PathBuf::from("/unpacked"));
    let files = among(SOFTWARE_GPU, &around(&bin), carried);
    let places = [bin.clone(), bin.join("../lib/gpuio"), "/unpacked".into()];
    assert_eq!(files, places.map(|at| at.join(SOFTWARE_GPU)));
    let file = root.path().join("lib/gpuio").join(SOFTWARE_GPU);
    put(&file);
    std::fs::create_dir_all(&bin).unwrap();
    let files = among(SOFTWARE_GPU, &around(&bin), || panic!("not needed"));
    assert!(files[1].exists() && files.len() == 2, "{files:?}");
    // One that others can write to counts as none.
    mode(&file, 0o666);
    assert_eq!(among(SOFTWARE_GPU, &around(&bin), carried).len(), 3);
}

#[test]
fn directories_of_cargo_are_searched_only_for_what_cargo_built() {
    let root = tempfile::tempdir().unwrap();
    let [profile, examples] = ["debug", "debug/examples"].map(|name| root.path().join(name));
    std::fs::create_dir_all(&examples).unwrap();
    let has_deps = |beside: &Path| around(beside).iter().any(|at| at.ends_with("deps"));
    assert!(!has_deps(&profile) && !has_deps(&examples));
    std::fs::create_dir(profile.join(".fingerprint")).unwrap();
    assert!(has_deps(&profile) && has_deps(&examples));
}

#[test]
fn a_program_that_carries_nothing_has_its_own_directories() {
    assert_eq!(unpacked(), None);
    let exe = std::env::current_exe().unwrap();
    assert_eq!(directories()[0], exe.parent().unwrap());
}

#[test]
fn an_object_counts_if_only_its_owner_can_change_it_and_what_leads_to_it() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a/b/libx.so");
    put(&file);
    let link = root.path().join("link.so");
    symlink("a/b/libx.so", &link).unwrap();
    let real = file.canonicalize().unwrap();
    for name in [&file, &link] {
        assert_eq!(object(name).unwrap(), real);
    }
    let directory = file.parent().unwrap();
    let above = directory.parent().unwrap();
    // Others' rights to write, of the file and of each directory on the way.
    for (at, right, open) in
        [(&*file, 0o600, 0o602), (directory, 0o700, 0o703), (above, 0o700, 0o703)]
    {
        mode(at, open);
        for name in [&file, &link] {
            let why = foreign(name);
            let words = format!("others may write to {}", at.canonicalize().unwrap().display());
            assert!(why.contains(&words) && why.contains("copy it"), "{why}");
        }
        mode(at, right);
        assert_eq!(object(&link).unwrap(), real);
    }
    // In a sticky directory a name can be anybody's; further up names are their owners'.
    mode(directory, 0o1703);
    assert!(foreign(&file).contains("mode 1703"));
    mode(directory, 0o700);
    mode(above, 0o1703);
    assert_eq!(object(&file).unwrap(), real);
    mode(above, 0o700);
    assert!(foreign(directory).contains("no regular file"));
    assert!(object(&root.path().join("gone/libx.so")).unwrap_err().is_absent());
}

#[test]
fn what_another_user_owns_does_not_count() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can give a file away; run the tests as root, in a container");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a/libx.so");
    put(&file);
    let link = root.path().join("link.so");
    symlink("a/libx.so", &link).unwrap();
    for at in [&*file, file.parent().unwrap(), root.path()] {
        chown(at, Some(1000), None).unwrap();
        for name in [&file, &link] {
            let why = foreign(name);
            let words = format!("{} belongs to user 1000", at.canonicalize().unwrap().display());
            assert!(why.contains(&words), "{why}");
        }
        chown(at, Some(0), None).unwrap();
        assert!(object(&link).is_ok());
    }
    let own = root.path().canonicalize().unwrap();
    assert_eq!(trust::directory(&own), Ok(()));
    chown(&own, Some(1000), None).unwrap();
    assert!(trust::directory(&own.join("a")).unwrap_err().contains("user 1000"));
}

#[test]
fn a_path_is_checked_before_it_is_loaded_and_a_name_is_left_to_the_loader() {
    #![allow(unsafe_code)]
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("libx.so");
    put(&file);
    let flags = libc_flags();
    let refusal = |name: &Path| {
        // SAFETY: neither file is an object, so nothing of it runs.
        unsafe { load(name, flags) }.unwrap_err()
    };
    let no_object = refusal(&file);
    assert!(no_object.contains("libx.so: file too short"), "{no_object}");
    mode(&file, 0o666);
    assert!(refusal(&file).contains("is not loaded"));
    let absent = refusal(&root.path().join("gone.so"));
    assert!(absent.contains("gone.so: cannot open shared object file: No such file"), "{absent}");
    assert!(refusal(Path::new("libgpuio-none.so")).contains("libgpuio-none.so: cannot open"));
    // SAFETY: every program on Linux has this one loaded.
    let (_, name) = unsafe { load(Path::new("libc.so.6"), flags) }.unwrap();
    assert_eq!(name, Path::new("libc.so.6"));
}

/// `RTLD_NOW` and `RTLD_LOCAL`.
fn libc_flags() -> i32 {
    libloading::os::unix::RTLD_NOW | libloading::os::unix::RTLD_LOCAL
}

#[test]
fn variables_are_read_where_no_right_is_gained() {
    assert!(!environment::is_secure() && environment::ignored().is_empty());
    assert_eq!(environment::variable("CARGO_MANIFEST_DIR").unwrap(), env!("CARGO_MANIFEST_DIR"));
    assert_eq!(environment::absolute("CARGO_PKG_NAME"), None);
    assert!(environment::beginning("CARGO_PKG_").contains_key("CARGO_PKG_NAME"));
    let sorted = environment::NAMING.is_sorted();
    assert!(sorted && environment::temporary().is_absolute());
}
