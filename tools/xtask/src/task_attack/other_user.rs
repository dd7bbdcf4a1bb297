//! Another user swaps names in a directory of his own, in which root runs gpuio, for links to a
//! file of root's that he may not even see: 0600 in a directory of mode 0700.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::{Lab, Outcome, Victim, is_root, swap::RUN};

/// `nobody` of most systems; it has only the rights of all users.
const NOBODY: u32 = 65534;

pub(super) fn run(lab: &mut Lab) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    if !is_root() {
        outcome.left_out.push("another user's swaps: this is not root".to_owned());
        return Ok(outcome);
    }
    // In shared memory or the system's own directory, which every user may reach.
    let base = std::env::temp_dir().join(format!("gpuio-attack-{}", std::process::id()));
    fs::create_dir(&base)?;
    fs::set_permissions(&base, Permissions::from_mode(0o755))?;
    let attacked = attack(lab, &base, &mut outcome);
    fs::remove_dir_all(&base)?;
    attacked.map(|()| outcome)
}

fn attack(lab: &mut Lab, base: &std::path::Path, outcome: &mut Outcome) -> anyhow::Result<()> {
    let hidden = base.join("root");
    fs::create_dir(&hidden)?;
    fs::set_permissions(&hidden, Permissions::from_mode(0o700))?;
    while lab.has_time() {
        let dir = base.join(format!("d{}", outcome.tries));
        fs::create_dir(&dir)?;
        chown(&dir, Some(NOBODY), Some(NOBODY))?;
        let victim = Victim::put(&hidden.join("victim"), lab.bytes(1 << 20))?;
        fs::set_permissions(&victim.path, Permissions::from_mode(0o600))?;
        lab.end(&dir, &format!("{RUN} --keep --rw write --filename f"))?;
        let name = lab.one(&["f", ".gpuio-files.json", ".gpuio-files.lock"]);
        symlink(&victim.path, dir.join("x"))?;
        let rw = lab.one(&["write", "randwrite", "readwrite"]);
        let mut child = lab.start(&dir, &format!("{RUN} --keep --rw {rw} --filename f"))?;
        let swaps = AtomicU64::new(0);
        let done = AtomicBool::new(false);
        let (one, other) = (dir.join(name), dir.join("x"));
        std::thread::scope(|scope| {
            let attacker = scope.spawn(|| -> rustix::io::Result<()> {
                become_nobody()?;
                while !done.load(Ordering::Relaxed) {
                    if renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).is_ok() {
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                    if swaps.load(Ordering::Relaxed) % 64 > 48 {
                        std::thread::sleep(std::time::Duration::from_micros(300));
                    }
                }
                Ok(())
            });
            let waited = child.wait();
            done.store(true, Ordering::Relaxed);
            let attacked = attacker.join().map_err(|_| anyhow::anyhow!("the attacker died"))?;
            attacked?;
            waited.map_err(anyhow::Error::from)
        })?;
        outcome.acts += swaps.into_inner();
        outcome.count(victim.lost()?, || format!("{name} under --rw {rw}"));
        fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

/// This thread alone: the kernel keeps credentials by thread (setresuid(2)).
fn become_nobody() -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}
