//! Builds objects and program for an old glibc.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use flate2::{Compression, GzBuilder};

use crate::{Job, output, succeed};

/// The oldest glibc that the artefacts run with: RHEL 8's. Ubuntu 20.04 has 2.31.
pub(crate) const GLIBC: &str = "2.28";
/// cargo-zigbuild and zig, from PyPI: no compiler but rustc is needed.
const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// Package, cargo's file, and the name that programs ask for.
pub(crate) const OBJECTS: [(&str, &str, &str); 4] = [
    ("gpuio-dropin", "libcufile.so", "libcufile.so.0"),
    ("gpuio-softgpu", "libgpuio_softgpu.so", "libgpuio_softgpu.so"),
    ("gpuio-softcufile", "libgpuio_softcufile.so", "libgpuio_softcufile.so"),
    ("gpuio-clib", "libgpuio.so", "libgpuio.so.0"),
];

impl Job {
    /// Where cargo puts the program.
    pub(crate) fn built(&self) -> PathBuf {
        self.target_dir.join(&self.triple).join("dist")
    }

    /// Where cargo builds the objects: a directory of their own. The program depends on them too,
    /// with the features of all its crates, and would build them over these.
    fn objects_dir(&self) -> PathBuf {
        self.target_dir.join("dist-objects")
    }

    /// Where cargo puts the objects.
    pub(crate) fn objects(&self) -> PathBuf {
        self.objects_dir().join(&self.triple).join("dist")
    }
}

pub(crate) fn run(job: &Job) -> anyhow::Result<()> {
    has_standard_library(job)?;
    let tools = tools(job)?;
    let packages = OBJECTS.iter().flat_map(|(package, _, _)| ["-p", package]);
    let mut objects = zigbuild(job, &tools);
    succeed(objects.args(packages).env("CARGO_TARGET_DIR", job.objects_dir()))?;
    let archive = archive(job)?;
    succeed(zigbuild(job, &tools).args(["-p", "gpuio"]).env("GPUIO_OBJECTS", archive))
}

fn has_standard_library(job: &Job) -> anyhow::Result<()> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let libraries = output(Command::new(rustc).args(["--print", "sysroot"]))?;
    let there = PathBuf::from(libraries.trim()).join("lib/rustlib").join(&job.triple);
    ensure!(
        there.is_dir(),
        "rustc has no standard library for {0}: rustup target add {0}, or the package of the \
         distribution that rustc is from (Debian: libstd-rust-dev:{1})",
        job.triple,
        job.debian_machine()
    );
    Ok(())
}

/// The directory with the programs of [`TOOLS`], installed once.
fn tools(job: &Job) -> anyhow::Result<PathBuf> {
    let environment = job.target_dir.join("dist-tools");
    let programs = environment.join("bin");
    if !programs.join("cargo-zigbuild").exists() {
        succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        succeed(Command::new(programs.join("python")).args(pip).args(TOOLS))?;
    }
    Ok(programs)
}

fn zigbuild(job: &Job, tools: &Path) -> Command {
    let mut command = Command::new(crate::cargo());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(tools.to_path_buf()).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(all).unwrap_or(path));
    command.current_dir(&job.root).args(["zigbuild", "--locked", "--profile", "dist", "--target"]);
    command.arg(format!("{}.{GLIBC}", job.triple)).env("CARGO_TARGET_DIR", &job.target_dir);
    command
}

/// The objects as the program carries them. The same objects make the same bytes.
fn archive(job: &Job) -> anyhow::Result<PathBuf> {
    let encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut archive = tar::Builder::new(encoder);
    for (_, file, name) in OBJECTS {
        let bytes = std::fs::read(job.objects().join(file)).with_context(|| file.to_owned())?;
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o755);
        header.set_cksum();
        archive.append_data(&mut header, name, bytes.as_slice())?;
    }
    let bytes = archive.into_inner()?.finish()?;
    let path = job.out.join("objects.tar.gz");
    if std::fs::read(&path).ok().as_deref() != Some(bytes.as_slice()) {
        std::fs::write(&path, bytes)?;
    }
    Ok(path)
}
