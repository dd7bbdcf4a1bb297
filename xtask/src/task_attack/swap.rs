//! Swaps a target of gpuio's for a link, a hard link or another file, in a tight loop, while gpuio
//! judges and opens it: all by the same user.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Lab, Outcome, Victim};

pub(super) const RUN: &str = "bench --bs 64k --size 1m --runtime 50ms -q --no-watch --keep";

pub(super) fn run(lab: &mut Lab) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    while lab.has_time() {
        let dir = lab.dir.join(format!("d{}", outcome.tries));
        fs::create_dir(&dir)?;
        let target = dir.join("f");
        lab.end(&dir, &format!("{RUN} --rw write --filename f"))?;
        let ours = fs::symlink_metadata(&target)?.ino();
        let victim = Victim::put(&lab.dir.join("victim"), lab.bytes(1 << 20))?;
        let other = dir.join("x");
        let kind = lab.one(&["link", "hard link", "file"]);
        match kind {
            "link" => symlink(&victim.path, &other)?,
            "hard link" => fs::hard_link(&victim.path, &other)?,
            _ => fs::rename(&victim.path, &other)?,
        }
        let rw = lab.one(&["write", "randwrite", "readwrite"]);
        let line = format!("{RUN} --rw {rw} --filename f");
        let mut child = lab.start(&dir, &line)?;
        outcome.acts +=
            exchange_while(&target, &other, &AtomicU64::new(0), || child.wait().map(drop))?;
        outcome.count(victim.lost()?, || format!("{kind} under --rw {rw}"));
        // For whoever reads what stays: inode numbers tell the two apart.
        debug_assert_ne!(ours, victim.file.metadata()?.ino());
        fs::remove_dir_all(&dir)?;
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
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok() {
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
                pause(swaps.load(Ordering::Relaxed));
            }
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        worked
    })?;
    Ok(swaps.load(Ordering::Relaxed))
}

/// Bursts of swaps, and times in which a name stands long enough for a judge to be taken in.
fn pause(count: u64) {
    if count % 64 > 48 {
        std::thread::sleep(std::time::Duration::from_micros(200 * (count % 7)));
    }
}
