//! The tests that need a mount or a device of their own: a full disk, a block device.
//!
//! Mounts are made in a mount namespace (unshare(1)) that ends with the test, so that nothing is
//! left behind however it ends.

use std::path::Path;

use crate::record::{check, n};
use crate::tool::{GPUIO, Ran, finish, is_root, other, plain, scratch, skip};

/// Runs a shell script in `dir` in a mount namespace; `$G` is the program. `None` where this
/// machine allows none.
fn in_namespace(dir: &Path, script: &str) -> Option<Ran> {
    let flags: &[&str] = if is_root() { &["-m"] } else { &["-r", "-m"] };
    let mut probe = plain("unshare");
    probe.args(flags).args(["bash", "-c", "mount -t tmpfs -o size=1m gpuio-probe \"$0\""]).arg(dir);
    if !probe.output().is_ok_and(|out| out.status.success()) {
        skip("no mount namespace here; run as root, or where users may make one");
        return None;
    }
    let mut shell = other(dir, "unshare");
    shell.args(flags).args(["bash", "-euc", script]).current_dir(dir).env("G", GPUIO);
    Some(finish(&mut shell))
}

/// The file system is filled by others while the load writes.
#[test]
fn a_full_disk_under_a_load() {
    let dir = scratch();
    let script = "mkdir m; mount -t tmpfs -o size=6m gpuio-test m; cd m
        code=0; \"$G\" bench --rw write --bs 64k --size 4m --loops 1 --buffered --keep \
            --directory d --rate 4m --format json & run=$!
        until [ -s d/gpuio.0 ] || ! kill -0 $run; do sleep 0.01; done
        head -c 8m /dev/zero > filler 2> /dev/null || true
        wait $run || code=$?
        exit $code";
    let Some(ran) = in_namespace(dir.path(), script) else {
        return;
    };
    let record = ran.exits(1).json();
    check(&record);
    let job = &record["jobs"][0];
    assert!(n(&job["failed"]) > 0, "{job}");
    let failure = &job["failures"][0];
    assert!(failure["what"].as_str().unwrap().contains("No space left"), "{failure}");
    assert!(failure["path"].as_str().unwrap().ends_with("d/gpuio.0"), "{failure}");
    assert_eq!(failure["op"], "write");
}

/// Too little room is seen before a byte is written.
#[test]
fn a_disk_too_small() {
    let dir = scratch();
    let script = "mkdir m; mount -t tmpfs -o size=4m gpuio-test m; cd m
        code=0; \"$G\" bench --rw read --bs 64k --size 8m --runtime 1 || code=$?
        ls -A; exit $code";
    let Some(ran) = in_namespace(dir.path(), script) else {
        return;
    };
    let ran = ran.exits(1).prints(&["Not enough space on ", "8.00 MiB needed", "free", "--size"]);
    assert_eq!(ran.out, "", "something stays behind");
}

/// Writes need room too, those of all jobs together; a file that is there brings its own.
#[test]
fn a_disk_too_small_for_writes() {
    let dir = scratch();
    let text = "[global]\nrw=write\nbs=64k\nruntime=50ms\n\
                [a]\nfilename=a\nsize=3m\n[b]\nstonewall\nfilename=b\nsize=3m\n";
    crate::tool::file(dir.path(), "two.ini", text);
    let script = "mkdir m; mount -t tmpfs -o size=5m gpuio-test m; cd m
        code=0; \"$G\" bench ../two.ini || code=$?
        ls -A
        \"$G\" bench --rw write --bs 64k --size 4m --loops 1 --filename a --keep > o || code=9
        \"$G\" bench --rw write --bs 64k --size 4m --runtime 50ms --filename a --keep > o || code=9
        exit $code";
    let Some(ran) = in_namespace(dir.path(), script) else {
        return;
    };
    let ran = ran.exits(1).prints(&["6.00 MiB needed, 5.00 MiB free"]);
    assert_eq!(ran.out, "", "something stays behind");
}

#[test]
fn more_than_any_disk_is_refused_before_a_file_is_made() {
    let dir = scratch();
    let ran = crate::tool::bench(dir.path(), "--rw write --size 100t --bs 64k --runtime 50ms");
    ran.exits(1).prints(&["Not enough space on /", ": 100 TiB needed, "]);
    assert_eq!(crate::tool::tree(dir.path()), Vec::<String>::new());
}

#[test]
fn a_read_only_file_system() {
    let dir = scratch();
    let script = "mkdir m; mount -t tmpfs -o ro,size=4m gpuio-test m; cd m
        \"$G\" bench --rw read --bs 64k --size 1m --runtime 1";
    let Some(ran) = in_namespace(dir.path(), script) else {
        return;
    };
    assert!(ran.code == 1 || ran.code == 2, "{ran:?}");
    assert!(ran.err.contains("read-only") || ran.err.contains("Read-only"), "{ran:?}");
}

/// A loop device over a file of ours, detached when dropped.
struct Loop(String);

impl Loop {
    fn over(image: &Path) -> Option<Loop> {
        if !is_root() {
            skip("loop devices need root");
            return None;
        }
        let made = plain("losetup").args(["--find", "--show"]).arg(image).output();
        match made {
            Ok(out) if out.status.success() => {
                Some(Loop(String::from_utf8(out.stdout).unwrap().trim().to_owned()))
            }
            other => {
                skip(&format!("losetup can't make a loop device: {other:?}"));
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // One that stays is named by the next losetup; a test must not fail over it.
        let _ = plain("losetup").args(["--detach", &self.0]).status();
    }
}

/// An image of 16 MiB with an ext4 file system, where mkfs.ext4 is there.
fn ext4(dir: &Path) -> Option<std::path::PathBuf> {
    let image = dir.join("image");
    std::fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
    let made = plain("mkfs.ext4").arg("-q").arg(&image).output();
    if !made.is_ok_and(|out| out.status.success()) {
        skip("no mkfs.ext4 here");
        return None;
    }
    Some(image)
}

#[test]
fn a_device_with_a_file_system() {
    let dir = scratch();
    let Some(image) = ext4(dir.path()) else {
        return;
    };
    let Some(device) = Loop::over(&image) else {
        return;
    };
    let before = std::fs::read(&image).unwrap();
    let name = &device.0;
    let line = format!("--rw write --bs 64k --size 2m --loops 1 --filename {name} --verify");
    for more in ["", " --overwrite", " --destroy-data-on /dev/null"] {
        let ran = crate::tool::bench(dir.path(), &format!("{line}{more}")).exits(2);
        assert!(ran.err.contains("ext4") && ran.err.contains("--destroy-data-on"), "{ran:?}");
    }
    let mixed = format!("--rw randrw --bs 64k --size 2m --loops 1 --filename {name}");
    crate::tool::bench(dir.path(), &mixed).exits(2);
    assert!(std::fs::read(&image).unwrap() == before, "a refused device was written");
    let read = format!("--rw read --bs 64k --size 2m --loops 1 --filename {name} --format json");
    let record = crate::tool::bench(dir.path(), &read).exits(0).json();
    assert_eq!(record["plan"]["jobs"][0]["targets"][0]["kind"], "block_device");
    let wrote = format!("{line} --destroy-data-on {name} --format json");
    let record = crate::tool::bench(dir.path(), &wrote).exits(0).json();
    crate::record::check_clean(&record);
    assert!(std::fs::read(&image).unwrap() != before);
}

/// No flag clears a device that is mounted.
#[test]
fn a_mounted_device() {
    let dir = scratch();
    let Some(image) = ext4(dir.path()) else {
        return;
    };
    let Some(device) = Loop::over(&image) else {
        return;
    };
    let script = format!(
        "mkdir m; mount {0} m
         code=0; \"$G\" bench --rw write --bs 64k --size 2m --loops 1 --filename {0} \
             --overwrite --destroy-data-on {0} || code=$?
         umount m; exit $code",
        device.0
    );
    let Some(ran) = in_namespace(dir.path(), &script) else {
        return;
    };
    let before = std::fs::read(&image).unwrap();
    ran.exits(2).prints(&[&device.0, "mounted"]);
    assert!(std::fs::read(&image).unwrap() == before);
}

/// A file system in user space whose program never answers, as an NFS server that is gone: each
/// first look at it ends and names the mount. (fuse(4): the mount has a descriptor of /dev/fuse.)
#[test]
fn a_mount_that_never_answers() {
    let dir = scratch();
    let script = "mkdir m o; exec 5<> /dev/fuse
        mount -i -t fuse -o fd=5,rootmode=40000,user_id=0,group_id=0 gpuio-silent m
        look() { name=$1; shift; code=0
            \"$G\" \"$@\" > o/$name 2>&1 || code=$?; echo $code >> o/$name; }
        ln -s m l
        look bench bench --rw read --size 1m --directory m/d &
        look quick bench --directory l --gpu none &
        look file bench --rw read --size 1m --filename m/d/f &
        look jobs bench m/a.ini &
        look try workload vector-search --try --gpu software --directory m/d --dry-run &
        look why why --mount m &
        look check check --mount m &
        look overview why &
        look top top m/x --count 1 &
        look sweep sweep --vary target=m,o --rw read &
        wait; exec 5>&-";
    let probe = "test -c /dev/fuse && (exec 5<> /dev/fuse)";
    if !plain("bash").args(["-c", probe]).output().is_ok_and(|out| out.status.success()) {
        return skip("no /dev/fuse here");
    }
    let Some(ran) = in_namespace(dir.path(), script) else {
        return;
    };
    if ran.code == 32 {
        return skip("this machine lets no user mount a FUSE file system");
    }
    ran.exits(0);
    let place = dir.path().join("m").canonicalize().unwrap();
    let mount = format!(" s from the mount {} (fuse, gpuio-silent): ", place.display());
    for entry in std::fs::read_dir(dir.path().join("o")).unwrap() {
        let path = entry.unwrap().path();
        let said = std::fs::read_to_string(&path).unwrap();
        // The other mounts of a machine are answered.
        let code = if path.ends_with("overview") { "\n0\n" } else { "\n3\n" };
        assert!(said.contains(&mount) && said.ends_with(code), "{}: {said}", path.display());
    }
}
