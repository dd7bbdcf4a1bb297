//! Commands that mount the NFS storage of a plan, as mount.nfs(8) takes them: for other clients,
//! and for the same one after a restart.

use gpuio_base::units::shell_word;
use gpuio_record::facts::{Machine, MountedStorage};

use crate::pair::Pair;

/// Options that choose how bytes go; the kernel adds others by itself.
const KEPT: [&str; 9] =
    ["vers", "nfsvers", "proto", "port", "rsize", "wsize", "nconnect", "ro", "sync"];

/// A command for each NFS mount that pairs use, in the order of the pairs.
pub(super) fn commands(machine: &Machine, pairs: &[Pair]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for given in pairs.iter().flat_map(|pair| pair.stores.iter().chain(&pair.network)) {
        let mount = machine.mounts.iter().find(|one| one.mount.mount_point == given.name);
        let line = mount.and_then(command);
        lines.extend(line.filter(|line| !lines.contains(line)));
    }
    lines
}

/// `None` for what is no NFS, and without options, of which nothing is known then.
fn command(one: &MountedStorage) -> Option<String> {
    one.nfs.as_ref()?;
    let all = one.mount.options.iter().chain(&one.mount.super_options);
    let mut options: Vec<&str> = Vec::new();
    for option in all.map(String::as_str) {
        let key = option.split('=').next().unwrap_or_default();
        if KEPT.contains(&key) && !options.contains(&option) {
            options.push(option);
        }
    }
    if options.is_empty() {
        return None;
    }
    let (at, source) = (shell_word(&one.mount.mount_point), shell_word(&one.mount.source));
    Some(format!("mkdir -p {at} && mount -t nfs -o {} {source} {at}", options.join(",")))
}
