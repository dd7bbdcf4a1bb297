//! Swaps a target of gpuio's for a link, a hard link or another file, in a tight loop, while gpuio
//! checks and opens it: all by the same user.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Lab, Outcome, Victim};

pub(super) const RUN: &str = "bench --bs 64k --size 1m --runtime 50ms -q --no-watch";

pub(super) fn run(lab: &mut Lab) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    while lab.has_time() {
        let dir = lab.dir.join(format!("d{}", outcome.tries));
        fs::create_dir(&dir)?;
        let kind = lab.one(&["link", "hard link", "file", "scratch"]);
        let scratch = kind == "scratch";
        // A scratch file is made by the run that is attacked, and removed at its end.
        let target = dir.join(if scratch { "gpuio-scratch/gpuio.0" } else { "f" });
        if !scratch {
            lab.end(&dir, &format!("{RUN} --keep --rw write --filename f"))?;
        }
        let victim = Victim::put(&lab.dir.join("victim"), lab.bytes(1 << 20))?;
        let other = dir.join("x");
        match kind {
            "link" => symlink(&victim.path, &other)?,
            "hard link" => fs::hard_link(&victim.path, &other)?,
            _ => fs::rename(&victim.path, &other)?,
        }
        let rw = lab.one(&["write", "randwrite", "readwrite"]);
        let options = if scratch { "" } else { "--keep --filename f" };
        let mut child = lab.start(&dir, &format!("{RUN} --rw {rw} {options}"))?;
        outcome.acts +=
            exchange_while(&target, &other, &AtomicU64::new(0), || child.wait().map(drop))?;
        outcome.count(victim.lost()?, || format!("{kind} under --rw {rw}"));
        fs::remove_dir_all(&dir)?;
        let _ = fs::remove_file(&victim.path);
    }
    Ok(outcome)
}

/// Exchanges the two names as often as it can until `work` is done; how often.
pub(super) fn exchange_while(
    one: &Path,
    other: &Path,
    swaps: &AtomicU64,
    work: impl FnOnce() -> std::io::Result<()>,
) -> anyhow::Result<u64> {
    let step = || {
        if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok() {
            swaps.fetch_add(1, Ordering::Relaxed);
        }
        pause(swaps.load(Ordering::Relaxed));
    };
    race(step, work)?;
    Ok(swaps.load(Ordering::Relaxed))
}

/// Repeats `step` in a thread of its own until `work` is done.
pub(super) fn race(
    step: impl Fn() + Send + Sync,
    work: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                step();
            }
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        worked
    })
}

/// Bursts of swaps, and times in which a name stays long enough for a check to be deceived.
fn pause(count: u64) {
    if count % 64 > 48 {
        std::thread::sleep(std::time::Duration::from_micros(200 * (count % 7)));
    }
}
