//! A sweep's folder with files of a user's in it, killed and gone on with until it is done.

use std::fs;
use std::path::Path;

use super::{Lab, Outcome, Victim};

const LINE: &str =
    "sweep --size 64k --bs 4k --runtime 20ms --engine psync --vary threads=1,2 --repeats 2 -q -o s";
/// Names that a sweep uses or used, and others.
const NAMES: [&str; 7] = [
    "notes",
    "data/notes",
    "data/deep/notes",
    ".running.json",
    ".draft-sweep.json",
    ".sweep.json.draft",
    "data/gpuio.7",
];
/// Kills before a sweep may come to its end.
const KILLS: u64 = 4;

pub(super) fn run(lab: &mut Lab) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    while lab.has_time() {
        let dir = lab.dir.join(format!("s{}", outcome.tries));
        fs::create_dir(&dir)?;
        let folder = dir.join("s");
        lab.end(&dir, &format!("{LINE} --budget 0s"))?;
        let victims = put(lab, &folder)?;
        for _ in 0..KILLS {
            outcome.acts += u64::from(lab.kill(&dir, LINE, 700)?);
        }
        let (status, output) = lab.end(&dir, LINE)?;
        let lost = victims.iter().map(Victim::lost).sum::<anyhow::Result<u64>>()?;
        outcome.count(lost, || format!("{KILLS} kills of a sweep"));
        if !status.success() {
            outcome.fail(format!("the sweep does not end: {status}: {output}"));
        }
        // Its own data set is gone, the user's files are not.
        let names = fs::read_dir(folder.join("data"))?.flatten().map(|entry| entry.file_name());
        let left: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        if left.len() != 3 {
            outcome.fail(format!("left in its data directory: {}", left.join(" ")));
        }
        fs::remove_dir_all(&dir)?;
    }
    Ok(outcome)
}

fn put(lab: &mut Lab, folder: &Path) -> anyhow::Result<Vec<Victim>> {
    fs::create_dir_all(folder.join("data/deep"))?;
    NAMES.iter().map(|name| Victim::put(&folder.join(name), lab.bytes(1 << 12))).collect()
}
