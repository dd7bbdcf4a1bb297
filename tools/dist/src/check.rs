//! Unpacks each artefact, and uses it: `cargo xtask dist --check`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::build::{GLIBC, OBJECTS};
use crate::runner::Runner;
use crate::{Job, output, succeed, system};

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
        ensure!(tarball.join("README.md").is_file(), "no README.md at its top");
        complete(&tarball)
    })?;
    done("links of the shipped pages", || links(&tarball.join("share/doc/gpuio")))?;
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
    let runner = match Runner::find(job) {
        Ok(runner) => runner,
        Err(why) => {
            println!("check: no program was run: {why}");
            return Ok(());
        }
    };
    if let Runner::Emulated { qemu, libraries } = &runner {
        let (qemu, libraries) = (qemu.display(), libraries.display());
        println!("check: programs run under {qemu} with the libraries of {libraries}");
    }
    let client = place.join("client");
    done("a program with our libcufile, linked", || link_client(job, &tarball, &client))?;
    let used = |gpuio: &str| used(&runner, &place.join(gpuio), &client, &place);
    done("tarball, used", || used("tarball/bin/gpuio"))?;
    done("deb, used", || used("deb/usr/bin/gpuio"))?;
    done("rpm, used", || used("rpm/usr/bin/gpuio"))?;
    done("the program alone, used", || {
        std::fs::create_dir_all(place.join("alone"))?;
        std::fs::copy(tarball.join("bin/gpuio"), place.join("alone/gpuio"))?;
        used("alone/gpuio")
    })?;
    let deb = named("gpuio_", ".deb")?;
    let native = matches!(runner, Runner::Native);
    let foreign = (!native).then_some("its programs are another machine's");
    match foreign.or_else(system::lacks_debian) {
        Some(why) => println!("check: deb in a Debian of its own: not run: {why}"),
        None => {
            done("deb in a Debian of its own", || system::deb(job, &deb, &client, &place))?;
        }
    }
    match foreign.or_else(system::lacks_image) {
        Some(why) => println!("check: Containerfile: no image was built: {why}"),
        None => done("Containerfile: image built and run", || system::image(job, &place))?,
    }
    let whl = named("gpuio-", ".whl")?;
    if native {
        done("wheel", || wheel(job, &runner, &place, &whl, &client))?;
    } else {
        done("wheel, unpacked for that machine; its module needs a Python of it", || {
            let to = place.join("wheel");
            unpack_wheel(job, &whl, &to)?;
            used("wheel/bin/gpuio")
        })?;
    }
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
        // It reads the files of every machine; objdump may not.
        let table = output(Command::new("readelf").args(["--wide", "--dyn-syms"]).arg(&path))?;
        // One that is not weak and has no version is of a later glibc than was linked with.
        let unknown = table.lines().find(|line| {
            line.contains(" UND ") && line.contains(" GLOBAL ") && !line.contains("@GLIBC_")
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
        "include/gpuio_device.cuh",
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

/// README.md and the pages of `docs` lead to files that are shipped too.
fn links(doc: &Path) -> anyhow::Result<()> {
    let mut pages = vec![doc.join("README.md")];
    for entry in std::fs::read_dir(doc.join("docs"))? {
        pages.push(entry?.path());
    }
    for page in pages.iter().filter(|page| page.extension().is_some_and(|end| end == "md")) {
        let text = std::fs::read_to_string(page)?;
        let below = page.parent().context("a page lies in a directory")?;
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', '#', ' ']).next().unwrap_or_default();
            let outside = target.is_empty() || target.contains("://");
            let there = outside || below.join(target).exists();
            ensure!(there, "{} leads to {target}, which is not shipped", page.display());
        }
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

/// A job on the software GPU, and a C program with the drop-in, with nothing of the caller's.
fn used(runner: &Runner, gpuio: &Path, client: &Path, place: &Path) -> anyhow::Result<()> {
    let work = place.join("work");
    let cache = place.join("cache");
    std::fs::create_dir_all(&work)?;
    let base = [("HOME", work.as_os_str()), ("XDG_CACHE_HOME", cache.as_os_str())];
    measured(runner.start(gpuio, &base).current_dir(&work))?;
    let set = output(runner.start(gpuio, &base).args(["exec", "--env", "--json"]))?;
    let set: serde_json::Value = serde_json::from_str(&set).context("the variables of exec")?;
    let [library, directory] = ["LD_PRELOAD", "LD_LIBRARY_PATH"].map(|name| set[name].as_str());
    let library = library.with_context(|| format!("no LD_PRELOAD in {set}"))?;
    let directory = directory.with_context(|| format!("no LD_LIBRARY_PATH in {set}"))?;
    let soft = Path::new(directory).join("libgpuio_softgpu.so");
    let mut all = base.to_vec();
    all.push(("GPUIO_CUFILE_DRIVER", soft.as_os_str()));
    let mut command = match runner {
        Runner::Native => {
            let mut command = runner.start(gpuio, &all);
            command.args(["exec", "--"]).arg(client);
            command
        }
        Runner::Emulated { .. } => {
            all.push(("LD_PRELOAD", library.as_ref()));
            all.push(("LD_LIBRARY_PATH", directory.as_ref()));
            runner.start(client, &all)
        }
    };
    let said = output(command.arg(work.join("file")))?;
    ensure!(said.contains(" 0 of them wrong"), "the C program: {said}");
    Ok(())
}

/// A verified job on the software GPU. `gpuio` starts the program in a directory of its own.
pub(crate) fn measured(gpuio: &mut Command) -> anyhow::Result<()> {
    let words = "bench --path staged --gpu software --bs 64k --size 1m --runtime 100ms --verify \
                 --format json";
    let ran = output(gpuio.args(words.split(' ')))?;
    let record: serde_json::Value = serde_json::from_str(&ran).context("the record")?;
    let verified = &record["jobs"][0]["verify"];
    ensure!(verified["bad_blocks"] == 0 && verified["complete"] == true, "no record: {ran}");
    Ok(())
}

/// `examples/c/write_read.c`, with the headers and the library that are shipped, by zig.
fn link_client(job: &Job, usr: &Path, client: &Path) -> anyhow::Result<()> {
    let target = format!("{}-linux-gnu.{GLIBC}", job.machine());
    let mut cc = Command::new(job.target_dir.join("dist-tools/bin/python"));
    cc.args(["-m", "ziglang", "cc", "-target", &target, "-I"]).arg(usr.join("include/gpuio"));
    cc.arg(job.root.join("examples/c/write_read.c")).arg("-o").arg(client);
    succeed(cc.arg("-L").arg(usr.join("lib/gpuio")).args(["-lcufile", "-ldl"]))
}

/// Installed into a fresh environment: the command runs, and the module passes its tests.
fn wheel(
    job: &Job,
    runner: &Runner,
    place: &Path,
    wheel: &Path,
    client: &Path,
) -> anyhow::Result<()> {
    let environment = place.join("venv");
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let python = environment.join("bin/python");
    succeed(Command::new(&python).args(PIP).arg(wheel).args(["numpy", "pandas"]))?;
    used(runner, &environment.join("bin/gpuio"), client, place)?;
    let mut tests = Command::new(&python);
    tests.args(["-m", "unittest", "discover", "-s"]).arg(job.root.join("python/tests"));
    succeed(tests.env("GPUIO_CUFILE_DRIVER", "software").current_dir(place))
}

const PIP: [&str; 5] = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];

/// As pip installs it on the target.
fn unpack_wheel(job: &Job, wheel: &Path, to: &Path) -> anyhow::Result<()> {
    let platform = format!("manylinux_2_28_{}", job.machine());
    let mut pip = Command::new(job.target_dir.join("dist-tools/bin/python"));
    pip.args(PIP).args(["--no-deps", "--only-binary=:all:", "--platform", &platform]);
    succeed(pip.arg("--target").arg(to).arg(wheel))
}
