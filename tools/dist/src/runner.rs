//! How programs of the target run on this machine: by themselves, or under qemu-user.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Job;

/// A way to start programs of the target.
pub(crate) enum Runner {
    /// As any program of this machine.
    Native,
    /// By a translator of the CPU's instructions. The kernel is this machine's, and it does not
    /// start such programs itself: `gpuio exec` and other starts of further programs are left out.
    Emulated {
        qemu: PathBuf,
        /// A directory with the target's glibc.
        libraries: PathBuf,
    },
}

impl Runner {
    /// The way that works here, or what is missing.
    pub(crate) fn find(job: &Job) -> Result<Self, String> {
        let machine = job.machine();
        if machine == std::env::consts::ARCH {
            return Ok(Self::Native);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let names = [format!("qemu-{machine}-static"), format!("qemu-{machine}")];
        let qemu = std::env::split_paths(&path)
            .flat_map(|directory| names.each_ref().map(|name| directory.join(name)))
            .find(|program| program.is_file())
            .ok_or_else(|| format!("no {} in PATH (package qemu-user-static)", names[1]))?;
        let named = std::env::var_os("QEMU_LD_PREFIX").map(PathBuf::from);
        let usual = [format!("/usr/{machine}-linux-gnu"), "/".to_owned()].map(PathBuf::from);
        let loader = format!("lib/ld-linux-{machine}.so.1");
        let libraries = named.into_iter().chain(usual).find(|root| root.join(&loader).exists());
        let libraries = libraries.ok_or_else(|| {
            format!(
                "no {loader} below QEMU_LD_PREFIX or /usr/{machine}-linux-gnu (Debian's \
                     package libc6-{}-cross)",
                job.debian_machine()
            )
        })?;
        Ok(Self::Emulated { qemu, libraries })
    }

    /// A start of the program with this environment, besides `PATH`, and with nothing of the
    /// caller's.
    pub(crate) fn start(&self, program: &Path, environment: &[(&str, &OsStr)]) -> Command {
        let path = ("PATH", OsStr::new("/usr/bin:/bin"));
        let environment = environment.iter().copied().chain([path]);
        match self {
            Self::Native => {
                let mut command = Command::new(program);
                command.env_clear().envs(environment);
                command
            }
            Self::Emulated { qemu, libraries } => {
                let mut command = Command::new(qemu);
                command.env_clear().arg("-L").arg(libraries);
                // Only the program's: LD_PRELOAD is for its loader and not for that of qemu.
                for (name, value) in environment {
                    let mut pair = OsString::from(name);
                    pair.push("=");
                    pair.push(value);
                    command.arg("-E").arg(pair);
                }
                command.arg(program);
                command
            }
        }
    }
}
