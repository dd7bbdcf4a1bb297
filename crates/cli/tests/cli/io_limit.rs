//! A limit of the control group on this process's I/O, where this machine lets a test set one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::tool::{GPUIO, Ran, finish, other, scratch, words};

const MOST: u64 = 8 << 20;

/// A control group of the test's own; its directory goes with it.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

impl Group {
    /// One that limits reads of the disk below `dir`.
    fn limited(dir: &Path) -> Result<Group, String> {
        let dev = fs::metadata(dir).unwrap().dev();
        let mut number = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
        let node = PathBuf::from(format!("/sys/dev/block/{number}"));
        let node = node.canonicalize().map_err(|error| format!("no disk below: {error}"))?;
        if node.join("partition").exists() {
            number = fs::read_to_string(node.join("../dev")).unwrap().trim().to_owned();
        }
        let name = format!("gpuio-test-{}", std::process::id());
        let ways = [
            ("blkio", "blkio.throttle.read_bps_device", format!("{number} {MOST}")),
            ("", "io.max", format!("{number} rbps={MOST}")),
        ];
        let mut whys = Vec::new();
        for (hierarchy, file, line) in ways {
            let path = Path::new("/sys/fs/cgroup").join(hierarchy).join(&name);
            let limited = fs::create_dir(&path).and_then(|()| {
                let group = Group(path.clone());
                fs::OpenOptions::new().write(true).open(path.join(file))?;
                fs::write(path.join(file), line)?;
                Ok(group)
            });
            match limited {
                Ok(group) => return Ok(group),
                Err(error) => whys.push(format!("{}: {error}", path.display())),
            }
        }
        Err(whys.join("; "))
    }

    fn gpuio(&self, dir: &Path, line: &str) -> Ran {
        let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        let mut shell = other(dir, "sh");
        shell.args(["-c", enter]).arg(&self.0).arg(GPUIO).args(words(line));
        finish(shell.current_dir(dir))
    }
}

#[test]
fn a_limit_of_the_control_group_is_stated_and_bounds_the_rate() {
    let dir = scratch();
    let group = match Group::limited(dir.path()) {
        Ok(group) => group,
        Err(why) => return println!("SKIPPED: no limit can be set here: {why}"),
    };
    let load = "bench --rw read --bs 256k --size 16m --depth 8 --runtime 2s --directory .";
    let ran = group.gpuio(dir.path(), load).exits(0);
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let stated = "This process's cgroup limits reads on ";
    assert!(text.contains(stated) && text.contains("to 8.00 MiB/s"), "{}", ran.out);
    assert!(!text.contains("waited for a CPU"), "{}", ran.out);
    let record = group.gpuio(dir.path(), &format!("{load} --format json")).exits(0).json();
    let most = &record["expected"][0]["at_most"];
    assert_eq!(most.as_f64(), Some(MOST as f64), "{}", record["expected"]);
    let ran = group.gpuio(dir.path(), "check --only io-limit");
    assert!(ran.out.contains("this process's cgroup limits reads on"), "{}", ran.out);
}
