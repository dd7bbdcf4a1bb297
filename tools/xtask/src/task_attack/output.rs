//! Exchanges the `-o` file or folder between the check at the start and the write at the end: for a
//! link, a hard link, a user's file, and a user's folder with files of the same names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::swap::{RUN, exchange_while, race};
use super::swap_names::SWEEP;
use super::{Lab, Outcome, Victim};

const BENCH: &str = "--keep --rw write --directory data -o";
/// Names of the user's files in his folder: those that gpuio gives its own.
const NAMES: [&str; 7] =
    ["r.json", "r.json.2", "sweep.json", "base.txt", ".lock", "point-0001-run-001.json", "notes"];
const KINDS: [&str; 7] =
    ["link", "hard link", "file", "page", "folder", "link to a folder", "sweep's folder"];

pub(super) fn run(lab: &mut Lab) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    while lab.has_time() {
        let (dir, users) = (lab.dir.join(format!("d{}", outcome.tries)), lab.dir.join("users"));
        fs::create_dir(&dir)?;
        fs::create_dir(&users)?;
        let mut victims = Vec::new();
        for name in NAMES {
            victims.push(Victim::put(&users.join(name), lab.bytes(1 << 12))?);
        }
        let kind = lab.one(&KINDS);
        outcome.acts += attempt(lab, &dir, &users, kind)?;
        let lost = victims.iter().map(Victim::lost).sum::<anyhow::Result<u64>>()?;
        outcome.count(lost, || kind.to_owned());
        fs::remove_dir_all(&dir)?;
        // The folders may have each other's names in the end.
        let _ = fs::remove_dir_all(&users);
    }
    Ok(outcome)
}

/// One run of gpuio under exchanges; how many there were.
fn attempt(lab: &mut Lab, dir: &Path, users: &Path, kind: &str) -> anyhow::Result<u64> {
    let notes = users.join("notes");
    let bench = |output: &str| format!("{RUN} {BENCH} {output}");
    let (line, name) = match kind {
        "page" => {
            lab.end(dir, &bench("a.json"))?;
            lab.end(dir, "report a.json -o page.html")?;
            ("report a.json -o page.html".to_owned(), "page.html")
        }
        "folder" | "link to a folder" => {
            fs::create_dir(dir.join("out"))?;
            (bench("out/r.json"), "out")
        }
        "sweep's folder" => {
            lab.end(dir, &format!("{SWEEP} --budget 0s"))?;
            (SWEEP.to_owned(), "s")
        }
        _ => (bench("r.json"), "r.json"),
    };
    let (name, other, swaps) = (dir.join(name), dir.join("x"), AtomicU64::new(0));
    let mut child = lab.start(dir, &line)?;
    let work = || child.wait().map(drop);
    match kind {
        "link" | "hard link" | "file" => {
            come_and_go(kind, &name, &notes, &swaps, work)?;
            Ok(swaps.into_inner())
        }
        "page" => exchange_while(&name, &notes, &swaps, work),
        "link to a folder" => {
            symlink(users, &other)?;
            exchange_while(&name, &other, &swaps, work)
        }
        _ => exchange_while(&name, users, &swaps, work),
    }
}

/// Puts the user's file under a name and takes it away, as often as it can. Nothing but the run
/// that is attacked touches a file of the user's.
fn come_and_go(
    kind: &str,
    name: &Path,
    victim: &Path,
    swaps: &AtomicU64,
    work: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    let step = || {
        // The files that gpuio made there are the attacker's to remove or to overwrite.
        let came = match kind {
            "link" => symlink(victim, name),
            "hard link" => fs::hard_link(victim, name),
            _ => fs::rename(victim, name),
        };
        swaps.fetch_add(1, Ordering::Relaxed);
        let _ = match (kind, came) {
            ("file", Ok(())) => fs::rename(name, victim),
            ("file", Err(_)) => Ok(()),
            _ => fs::remove_file(name),
        };
        std::thread::sleep(std::time::Duration::from_micros(swaps.load(Ordering::Relaxed) % 97));
    };
    race(step, work)
}
