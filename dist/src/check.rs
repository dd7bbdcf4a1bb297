//! Unpacks each artefact, and uses it: `cargo xtask dist --check`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::build::{GLIBC, OBJECTS};
use crate::{Job, output, succeed};

/// Bytes that the program may have.
const MOST: u64 = 15_000_000;

pub(crate) fn run(job: &Job) -> anyhow::Result<()> {
    let place = job.out.join("check");
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    std::fs::create_dir_all(&place)?;
    done("symbols of glibc", || symbols(job))?;
    done("check sums", || {
        let mut check = Command::new("sha256sum");
        succeed(check.args(["--quiet", "--check", "SHA256SUMS"]).current_dir(&job.out))
    })?;
    let named = |start: &str, end: &str| find(&job.out, start, end);
    let tarball = place.join("tarball");
    done("tarball", || {
        std::fs::create_dir_all(&tarball)?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(named("gpuio-", ".tar.gz")?).args(["--strip-components=1", "-C"]);
        succeed(tar.arg(&tarball))?;
        complete(&tarball)
    })?;
    done("deb", || {
        let to = place.join("deb");
        succeed(Command::new("dpkg-deb").arg("-x").arg(named("gpuio_", ".deb")?).arg(&to))?;
        let mut about = Command::new("dpkg-deb");
        let about = output(about.arg("--info").arg(named("gpuio_", ".deb")?))?;
        ensure!(about.contains("libc6 (>= 2.28)"), "{about}");
        complete(&to.join("usr"))
    })?;
    done("rpm", || {
        let to = place.join("rpm");
        unpack_rpm(&named("gpuio-", ".rpm")?, &to)?;
        complete(&to.join("usr"))
    })?;
    if !runs(job) {
        println!("check: nothing was run: this machine can't run programs for {}", job.triple);
        return Ok(());
    }
    done("tarball, used", || used(&tarball.join("bin/gpuio"), &place))?;
    done("deb, used", || used(&place.join("deb/usr/bin/gpuio"), &place))?;
    done("rpm, used", || used(&place.join("rpm/usr/bin/gpuio"), &place))?;
    done("the program alone, used", || {
        let alone = place.join("alone");
        std::fs::create_dir_all(&alone)?;
        std::fs::copy(tarball.join("bin/gpuio"), alone.join("gpuio"))?;
        used(&alone.join("gpuio"), &place)
    })?;
    done("wheel", || wheel(job, &place, &named("gpuio-", ".whl")?))?;
    done("bill of materials", || {
        let text = std::fs::read_to_string(named("gpuio-", ".cdx.json")?)?;
        let bill: serde_json::Value = serde_json::from_str(&text)?;
        let crates = bill["components"].as_array().map_or(0, Vec::len);
        ensure!(crates > 50 && text.contains("pkg:cargo/clap@"), "{crates} crates");
        Ok(())
    })?;
    done("size", || size(job))
}

fn done(what: &str, check: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    check().with_context(|| format!("check of: {what}"))?;
    println!("check: {what}: ok");
    Ok(())
}

fn runs(job: &Job) -> bool {
    Command::new(job.built().join("gpuio")).arg("--version").output().is_ok()
}

/// The only file with such a name.
fn find(directory: &Path, start: &str, end: &str) -> anyhow::Result<PathBuf> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if name.is_some_and(|name| name.starts_with(start) && name.ends_with(end)) {
            return Ok(path);
        }
    }
    bail!("no {start}*{end} in {}", directory.display())
}

/// The program and the objects need no symbol that is newer than [`GLIBC`].
fn symbols(job: &Job) -> anyhow::Result<()> {
    let number = |version: &str| -> Vec<u32> {
        version.split('.').filter_map(|part| part.parse().ok()).collect()
    };
    let objects = OBJECTS.iter().map(|(_, file, _)| job.objects().join(file));
    for path in objects.chain([job.built().join("gpuio")]) {
        let file = path.display();
        let table = output(Command::new("objdump").arg("-T").arg(&path))?;
        // One that is not weak and has no version is of a later glibc than was linked with.
        let unknown = table.lines().find(|line| {
            line.contains("*UND*") && !line.contains("GLIBC") && !line.contains(" w ")
        });
        ensure!(unknown.is_none(), "{file} needs what no glibc {GLIBC} has: {unknown:?}");
        let versions = table
            .split("GLIBC_")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit() && c != '.').next());
        let newest =
            versions.max_by_key(|version| number(version)).context("no symbol of glibc")?;
        ensure!(number(newest) <= number(GLIBC), "{file} needs GLIBC_{newest}");
        println!("check: {file}: GLIBC_{newest} at most");
    }
    Ok(())
}

fn size(job: &Job) -> anyhow::Result<()> {
    let bytes = std::fs::metadata(job.built().join("gpuio"))?.len();
    ensure!(bytes < MOST, "the program has {bytes} bytes, more than {MOST}");
    println!("check: the program has {bytes} bytes");
    Ok(())
}

/// An installation has all its parts.
fn complete(usr: &Path) -> anyhow::Result<()> {
    for part in [
        "bin/gpuio",
        "lib/gpuio/libcufile.so",
        "lib/gpuio/libcufile.so.0",
        "lib/gpuio/libgpuio.so",
        "lib/gpuio/libgpuio_softcufile.so",
        "lib/systemd/system/gpuio-exporter.service",
        "include/gpuio.h",
        "share/bash-completion/completions/gpuio",
        "share/doc/gpuio/LICENSE",
        "share/doc/gpuio/docs/install.md",
        "share/doc/gpuio/docs/plots/blocks.svg",
        "share/fish/vendor_completions.d/gpuio.fish",
        "share/gpuio/grafana-dashboard.json",
        "share/man/man1/gpuio.1",
        "share/man/man1/gpuio-bench.1",
        "share/zsh/site-functions/_gpuio",
    ] {
        ensure!(usr.join(part).is_file(), "no {part} in {}", usr.display());
    }
    Ok(())
}

/// By the crate that wrote it, and by `rpm2cpio` where that is installed.
fn unpack_rpm(rpm: &Path, to: &Path) -> anyhow::Result<()> {
    rpm::Package::open(rpm)?.extract(to)?;
    if Command::new("rpm2cpio").arg("--help").output().is_ok() {
        let archive = Command::new("rpm2cpio").arg(rpm).output()?;
        ensure!(archive.status.success() && !archive.stdout.is_empty(), "rpm2cpio can't read it");
        println!("check: rpm2cpio reads it too");
    }
    Ok(())
}

/// A job on the software GPU, and a program under `exec`, with nothing of the caller's.
fn used(gpuio: &Path, place: &Path) -> anyhow::Result<()> {
    let work = place.join("work");
    let cache = place.join("cache");
    std::fs::create_dir_all(&work)?;
    let command = |words: &str| {
        let mut command = Command::new(gpuio);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("XDG_CACHE_HOME", &cache);
        command.env("HOME", &work).current_dir(&work).args(words.split(' '));
        command
    };
    let ran = output(&mut command(
        "bench --path staged --gpu software --bs 64k --size 1m --runtime 100ms --format json",
    ))?;
    ensure!(ran.contains("\"software_gpu\""), "no record: {ran}");
    let maps = output(&mut command("exec -- grep -m1 libcufile.so.0 /proc/self/maps"))?;
    ensure!(maps.contains("libcufile.so.0"), "the drop-in is not loaded: {maps}");
    Ok(())
}

/// Installed into a fresh environment: the command runs, and the module passes its tests.
fn wheel(job: &Job, place: &Path, wheel: &Path) -> anyhow::Result<()> {
    let environment = place.join("venv");
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let python = environment.join("bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    succeed(Command::new(&python).args(pip).arg(wheel).args(["numpy", "pandas"]))?;
    used(&environment.join("bin/gpuio"), place)?;
    let mut tests = Command::new(&python);
    tests.args(["-m", "unittest", "discover", "-s"]).arg(job.root.join("python/tests"));
    succeed(tests.env("GPUIO_CUFILE_DRIVER", "software").current_dir(place))
}
