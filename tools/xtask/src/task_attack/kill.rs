//! Kills gpuio at any moment, puts a user's own data where it worked, and runs it again without
//! `--overwrite`: the data must be there, and what the killed run left must be gone or reported.

use std::fs::{self, File, FileTimes};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::{Lab, Outcome, Victim};

/// Most milliseconds from the start to the kill: starting, making files and the load.
const LIFE_MS: u64 = 250;

/// Modes to run, each with the file that it writes under the name that a user might take.
const MODES: [(&str, &str); 6] = [
    ("bench --rw write --filename f --keep", "f"),
    ("bench --rw randwrite --filename f --keep --buffered", "f"),
    ("bench --rw readwrite --directory d --keep", "d/gpuio.0"),
    ("bench --rw read --verify --directory d", "d/gpuio.0"),
    ("bench --rw write", "gpuio-scratch/gpuio.0"),
    ("bench --rw write --path gds --gpu software", "gpuio-scratch/gpuio.0"),
];
const COMMON: &str = "--bs 64k --size 1m --runtime 50ms -q --no-watch";

pub(super) fn run(lab: &mut Lab) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    while lab.has_time() {
        let dir = lab.dir.join(format!("k{}", outcome.tries));
        fs::create_dir(&dir)?;
        let at = usize::try_from(lab.below(MODES.len() as u64))?;
        let (mode, name) = MODES[at];
        // Files in a directory that was named stay, as those with --keep do.
        let keeps = mode.contains("--keep") || mode.contains("--directory");
        let line = format!("{mode} {COMMON} -o r.json");
        outcome.acts += u64::from(lab.kill(&dir, &line, LIFE_MS)?);
        // It may have come to its end.
        let _ = fs::remove_file(dir.join("r.json"));
        let act = lab.one(&["nothing", "cp", "mv", "cat", "touch -r", "partial"]);
        let victim = interfere(lab, &dir.join(name), act)?;
        let (status, output) = lab.end(&dir, &format!("{mode} {COMMON} -o r.json"))?;
        let what = || format!("{act} after a kill of {mode}");
        match &victim {
            Some(victim) => outcome.count(victim.lost()?, what),
            None => {
                outcome.count(0, what);
                // With -q nothing is printed, so the next run reports it.
                let next = lab.end(&dir, &format!("{} {COMMON}", mode.replace("-q", "")))?.1;
                let is = (keeps, mode.contains("--path gds"));
                check_left(&dir, name, is, &(output.clone() + &next), &mut outcome)?;
            }
        }
        if victim.is_none() && !status.success() {
            outcome.fail(format!("the next run ends with {status}: {}: {output}", what()));
        }
        fs::remove_dir_all(&dir)?;
    }
    Ok(outcome)
}

/// Does what a user might do with the name; his file, where he has one then.
fn interfere(lab: &mut Lab, path: &Path, act: &str) -> anyhow::Result<Option<Victim>> {
    let there = fs::symlink_metadata(path).ok();
    let mine = lab.bytes(1 << 20);
    if act == "nothing" {
        return Ok(None);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let Some(there) = there.filter(|there| there.len() > 0) else {
        return Victim::put(path, mine).map(Some);
    };
    match act {
        // Into the file that is there, as cp and the shell do it.
        "cp" | "cat" => {
            let mut file = File::options().write(true).truncate(true).open(path)?;
            file.write_all(&mine)?;
        }
        "mv" => {
            let own = path.with_file_name("own");
            fs::write(&own, &mine)?;
            fs::rename(&own, path)?;
        }
        _ => {
            let file = File::options().write(true).open(path)?;
            let at = lab.below(there.len().saturating_sub(4096).max(1)) & !4095;
            file.write_all_at(&mine[..4096], at)?;
            if act == "touch -r" {
                file.set_times(FileTimes::new().set_modified(there.modified()?))?;
            }
        }
    }
    let bytes = fs::read(path)?;
    Victim::there(path, bytes).map(Some)
}

/// Checks that what a killed run left is gone or reported.
fn check_left(
    dir: &Path,
    name: &str,
    (keeps, uses_cufile): (bool, bool),
    output: &str,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let reported =
        |path: &Path| output.contains(&path.display().to_string()) || output.contains(name);
    if !keeps && dir.join(name).exists() && !reported(&dir.join(name)) {
        outcome.fail(format!("{name} stays and is not reported"));
    }
    for entry in fs::read_dir(dir.join("../tmp"))?.chain(fs::read_dir(dir)?) {
        let path = entry?.path();
        let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The next run that uses cuFile looks for its directories.
        let ours = uses_cufile && own.starts_with("gpuio-cufile-") || own.ends_with(".draft");
        if ours && !reported(&path) {
            outcome.fail(format!("{} stays and is not reported", path.display()));
        }
    }
    Ok(())
}
