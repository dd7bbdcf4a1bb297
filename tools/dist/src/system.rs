//! The deb in a fresh Debian, and the image of the Containerfile, where their tools are installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::check::measured;
use crate::{Job, output, succeed};

/// The release of Debian whose base the Containerfile names.
const RELEASE: &str = "bookworm";

/// The part that is missing for a fresh Debian; nothing where one can be made.
pub(crate) fn lacks_debian() -> Option<&'static str> {
    if !is_root() {
        return Some("it needs root");
    }
    (!installed("debootstrap")).then_some("debootstrap is not installed")
}

/// The part that is missing for the image.
pub(crate) fn lacks_image() -> Option<&'static str> {
    if !installed("buildah") {
        return Some("buildah is not installed");
    }
    lacks_debian()
}

/// `dpkg --install` in a fresh Debian; then a program of it runs a job, and is removed without a
/// trace.
pub(crate) fn deb(job: &Job, deb: &Path, client: &Path, place: &Path) -> anyhow::Result<()> {
    let debian = place.join("debian");
    succeed(Command::new("cp").arg("-a").arg(base(job)?).arg(&debian))?;
    std::fs::copy(deb, debian.join("srv/gpuio.deb"))?;
    std::fs::copy(client, debian.join("srv/client"))?;
    let inside = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.arg("--mount").arg("--pid").arg("--fork");
        command.arg(format!("--mount-proc={}", debian.join("proc").display()));
        command.arg("chroot").arg(&debian).args(["env", "--chdir=/srv"]).args(words);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/srv");
        command
    };
    output(&mut inside(&["dpkg", "--install", "gpuio.deb"]))?;
    measured(&mut inside(&["gpuio"]))?;
    let soft = "GPUIO_CUFILE_DRIVER=/usr/lib/gpuio/libgpuio_softgpu.so";
    let words = ["env", soft, "gpuio", "exec", "--", "./client", "file"];
    let said = output(&mut inside(&words))?;
    ensure!(said.contains(" 0 of them wrong"), "{said}");
    output(&mut inside(&["dpkg", "--purge", "gpuio"]))?;
    ensure!(!debian.join("usr/lib/gpuio").exists(), "dpkg --purge leaves files");
    Ok(())
}

/// Builds the image on a Debian of our own, so that nothing is pulled, and runs it.
pub(crate) fn image(job: &Job, place: &Path) -> anyhow::Result<()> {
    let store = place.join("images");
    let buildah = |words: &[&str]| {
        let mut command = Command::new("buildah");
        command.arg("--root").arg(store.join("root")).arg("--runroot").arg(store.join("run"));
        command.args(["--storage-driver", "vfs"]).args(words);
        command
    };
    const BASE: &str = "localhost/gpuio-check-base";
    let scratch = output(&mut buildah(&["from", "scratch"]))?;
    let scratch = scratch.trim();
    output(buildah(&["add", "--quiet", scratch]).arg(base(job)?).arg("/"))?;
    output(&mut buildah(&["commit", "--quiet", scratch, BASE]))?;
    let from = format!("BASE={BASE}");
    let build = ["build", "--quiet", "--isolation=chroot", "--pull=never", "--build-arg", &from];
    output(buildah(&build).args(["--tag", "gpuio-check"]).arg(&job.out))?;
    let container = output(&mut buildah(&["from", "--pull=never", "localhost/gpuio-check"]))?;
    let run = ["run", "--isolation=chroot", container.trim(), "--", "gpuio"];
    let said = output(buildah(&run).arg("--version"))?;
    ensure!(said.contains(&job.version), "{said}");
    measured(&mut buildah(&run))
}

/// The tree of a minimal Debian, made once.
fn base(job: &Job) -> anyhow::Result<PathBuf> {
    let tree = job.target_dir.join("dist-debian").join(RELEASE).join(job.debian_machine());
    if !tree.join("usr/bin/dpkg").exists() {
        let part = tree.with_extension("part");
        if part.exists() {
            std::fs::remove_dir_all(&part)?;
        }
        std::fs::create_dir_all(&part)?;
        let mut command = Command::new("debootstrap");
        command.args(["--variant=minbase", "--arch", job.debian_machine(), RELEASE]).arg(&part);
        let ran = command.output()?;
        let said = String::from_utf8_lossy(&ran.stdout);
        ensure!(ran.status.success(), "debootstrap: {}", said.lines().last().unwrap_or_default());
        std::fs::rename(&part, &tree).context("the new Debian")?;
    }
    Ok(tree)
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
}
