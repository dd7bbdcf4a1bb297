//! Other names of the same bytes: hard links, inodes that are given anew, and, as root, bind mounts
//! and loop devices on loop devices.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::Command;

use super::swap::RUN;
use super::{Lab, Outcome, Victim, is_root};

pub(super) fn run(lab: &mut Lab) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    for round in 0..20 {
        if !lab.has_time() {
            break;
        }
        let dir = lab.dir.join(format!("l{round}"));
        fs::create_dir(&dir)?;
        hard_links(lab, &dir, &mut outcome)?;
        reused_inode(lab, &dir, &mut outcome)?;
        fs::remove_dir_all(&dir)?;
    }
    if is_root() {
        mounted(lab, &mut outcome)?;
    } else {
        outcome.left_out.push("bind mounts, loop on loop: this is not root".to_owned());
    }
    Ok(outcome)
}

/// A user's file under a second name, and a second name that a user gave to a file of gpuio's.
fn hard_links(lab: &mut Lab, dir: &Path, outcome: &mut Outcome) -> anyhow::Result<()> {
    let victim = Victim::put(&dir.join("mine"), lab.bytes(1 << 20))?;
    fs::hard_link(&victim.path, dir.join("hard"))?;
    symlink("mine", dir.join("soft"))?;
    for name in ["hard", "soft"] {
        lab.end(dir, &format!("{RUN} --keep --rw write --filename {name}"))?;
        outcome.acts += 1;
        outcome.count(victim.lost()?, || format!("a {name} link to a user's file"));
    }
    lab.end(dir, &format!("{RUN} --keep --rw write --verify --filename ours"))?;
    fs::hard_link(dir.join("ours"), dir.join("kept"))?;
    let kept = Victim::there(&dir.join("kept"), fs::read(dir.join("kept"))?)?;
    lab.end(dir, &format!("{RUN} --keep --rw write --verify --seed 99 --filename ours"))?;
    outcome.acts += 1;
    outcome.count(kept.lost()?, || "a user's hard link to a file of gpuio's".to_owned());
    Ok(())
}

/// A file of gpuio's is removed, and a user's gets its inode and its name.
fn reused_inode(lab: &mut Lab, dir: &Path, outcome: &mut Outcome) -> anyhow::Result<()> {
    let path = dir.join("f");
    lab.kill(dir, &format!("{RUN} --keep --rw write --runtime 600 --filename f"), 300)?;
    let Ok(found) = fs::metadata(&path) else { return Ok(()) };
    fs::remove_file(&path)?;
    let bytes = lab.bytes(1 << 20);
    for at in 0..64 {
        let own = dir.join(format!("own{at}"));
        fs::write(&own, &bytes)?;
        if fs::metadata(&own)?.ino() == found.ino() {
            outcome.acts += 1;
            fs::rename(&own, &path)?;
            break;
        }
    }
    if !path.exists() {
        fs::write(&path, &bytes)?;
    }
    let victim = Victim::there(&path, bytes)?;
    lab.end(dir, &format!("{RUN} --keep --rw write --filename f"))?;
    outcome.count(victim.lost()?, || "an inode that was given anew".to_owned());
    Ok(())
}

/// The commands in a mounted image. `$G` is gpuio; mounts go with the namespace, loop
/// devices when they are not in use. Each line that is printed is a loss.
const SCRIPT: &str = r#"
truncate -s 24m image; mkfs.ext4 -q image
loop=$(losetup --find --show image)
over=$(losetup --find --show "$loop")
trap 'umount bound m 2>/dev/null || true; losetup -d "$over" || true; losetup -d "$loop"' EXIT
mkdir m b; mount "$over" m; head -c 1m /dev/urandom > m/mine; sync
sum=$(sha256sum < m/mine)
ln image hard; ln -s image soft; touch b/image 2>/dev/null; touch bound; mount --bind image bound
for name in image hard soft bound "$loop" "$over"; do
    "$G" bench --bs 64k --size 16m --loops 1 -q --no-watch --rw write --filename "$name" --keep \
        --overwrite --destroy-data-on "$name" > out 2>&1 && echo "written: $name"
    now=$(dd if=m/mine bs=64k iflag=direct status=none | sha256sum)
    [ "$now" = "$sum" ] || echo "changed by: $name"
done
echo done
"#;

fn mounted(lab: &mut Lab, outcome: &mut Outcome) -> anyhow::Result<()> {
    let dir = lab.dir.join("mounted");
    fs::create_dir(&dir)?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-e", "-c", SCRIPT]).current_dir(&dir).env("G", &lab.gpuio);
    let out = command.output()?;
    let output = String::from_utf8_lossy(&out.stdout).into_owned();
    let Some(lost) = output.strip_suffix("done\n") else {
        let why = String::from_utf8_lossy(&out.stderr).trim().replace('\n', "; ");
        outcome.left_out.push(format!("bind mounts, loop on loop: {output}{why}"));
        return Ok(());
    };
    const NAMES: u64 = 6;
    outcome.acts += NAMES;
    outcome.tries += NAMES;
    for line in lost.lines() {
        outcome.failures += 1;
        outcome.lost += 1;
        outcome.report(line.to_owned());
    }
    Ok(())
}
