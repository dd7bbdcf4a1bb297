//! Swaps what gpuio keeps next to its data for links: the directory itself, the list of its files,
//! that list's lock, and lock, list and data of a sweep's folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use super::swap::{RUN, exchange_while};
use super::{Lab, Outcome, Victim};

pub(super) const SWEEP: &str =
    "sweep --size 64k --bs 4k --runtime 20ms --vary threads=1,2 --repeats 1 -q -o s";

pub(super) fn run(lab: &mut Lab) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    while lab.has_time() {
        let dir = lab.dir.join(format!("d{}", outcome.tries));
        // The user's directory has files of the names that gpuio uses.
        let users = lab.dir.join("users");
        for made in [&dir, &users] {
            fs::create_dir_all(made)?;
        }
        let mut victims = Vec::new();
        for name in ["f", "gpuio.0", "notes", "point-0001-run-001.json"] {
            victims.push(Victim::put(&users.join(name), lab.bytes(1 << 16))?);
        }
        let what = lab.one(&["directory", "list", "lock", "sweep", "sweep's data"]);
        outcome.acts += attempt(lab, &dir, &users, what)?;
        let lost = victims.iter().map(Victim::lost).sum::<anyhow::Result<u64>>()?;
        outcome.count(lost, || what.to_owned());
        fs::remove_dir_all(&dir)?;
        fs::remove_dir_all(&users)?;
    }
    Ok(outcome)
}

fn attempt(lab: &mut Lab, dir: &Path, users: &Path, what: &str) -> anyhow::Result<u64> {
    let notes = users.join("notes");
    let swaps = AtomicU64::new(0);
    let bench = format!("{RUN} --keep --rw write --directory data");
    let (name, line) = match what {
        "directory" => ("data", bench),
        "list" => ("data/.gpuio-files.json", bench),
        "lock" => ("data/.gpuio-files.lock", bench),
        "sweep" => (lab.one(&["s/.lock", "s/sweep.json", "s/base.txt"]), SWEEP.to_owned()),
        _ => ("s/data", SWEEP.to_owned()),
    };
    // The file to swap must be there: one run before makes it.
    match line.starts_with("sweep") {
        true => lab.end(dir, &format!("{line} --budget 0s"))?,
        false => lab.end(dir, &line)?,
    };
    fs::create_dir_all(dir.join("s/data"))?;
    let other = dir.join("x");
    let directory = matches!(what, "directory" | "sweep's data");
    symlink(if directory { users } else { &notes }, &other)?;
    let mut child = lab.start(dir, &line)?;
    exchange_while(&dir.join(name), &other, &swaps, || child.wait().map(drop))
}
