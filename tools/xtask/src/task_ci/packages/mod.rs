//! The programs that tests need in addition to Rust: those that gpuio is compared with.
//!
//! A test that lacks one prints SKIPPED and passes, so this step comes before the tests: it
//! installs what is missing where it may, and names what it could not install with the tests that
//! will skip. Debian packages are installed by apt-get, by root only (apt-get(8)); this never asks
//! for more rights. Python's go into a virtual environment of ours, which needs none.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};

#[cfg(test)]
mod tests;

/// The variable with the Python that tests use. If it is set already, that Python is kept, into
/// which nothing is installed.
pub(super) const PYTHON: &str = "GPUIO_TEST_PYTHON";
/// Seconds that one download may take.
const DOWNLOAD_SECONDS: &str = "180";
/// Seconds for what is left when the bytes are here. Generous: dpkg should not be interrupted.
const UNPACK_SECONDS: &str = "600";

/// One thing that tests need.
struct Package {
    /// Its name to a person.
    what: &'static str,
    /// Where it comes from.
    from: Source,
    /// How it is seen that it is there.
    sign: Sign,
    /// The tests that skip without it.
    tests: &'static str,
}

enum Source {
    /// A package of Debian and those that follow it.
    Debian(&'static str),
    Pip(&'static str),
}

enum Sign {
    /// One of these programs is in the path.
    Program(&'static [&'static str]),
    /// Python imports this module.
    Module(&'static str),
}

/// Debian's packages first: Python's need one of them.
const PACKAGES: &[Package] = &[
    Package {
        what: "Chromium",
        from: Source::Debian("chromium"),
        sign: Sign::Program(&[
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
        ]),
        tests: "gpuio-report, browser: the page in a browser",
    },
    Package {
        what: "iostat",
        from: Source::Debian("sysstat"),
        sign: Sign::Program(&["iostat"]),
        tests: "gpuio, other_tools: `top` against iostat",
    },
    Package {
        what: "tmux",
        from: Source::Debian("tmux"),
        sign: Sign::Program(&["tmux"]),
        tests: "gpuio, other_tools: the screen of `top`",
    },
    Package {
        what: "lstopo",
        from: Source::Debian("hwloc-nox"),
        sign: Sign::Program(&["lstopo-no-graphics"]),
        tests: "gpuio-topo, pictures: hwloc reads our XML",
    },
    Package {
        what: "mkfs.ext4",
        from: Source::Debian("e2fsprogs"),
        sign: Sign::Program(&["mkfs.ext4"]),
        tests: "gpuio, mounts, gpuio-transfer, mapped_file_systems, and gpuio-clib, \
                file_systems: a file system on a loop device",
    },
    Package {
        what: "mkfs.xfs",
        from: Source::Debian("xfsprogs"),
        sign: Sign::Program(&["mkfs.xfs"]),
        tests: "gpuio-dropin, filesystem, gpuio-transfer, mapped_file_systems, gpuio-clib, \
                file_systems, and gpuio-io, path_mapped: XFS on a loop device",
    },
    Package {
        what: "mkfs.btrfs",
        from: Source::Debian("btrfs-progs"),
        sign: Sign::Program(&["mkfs.btrfs"]),
        tests: "gpuio-transfer, mapped_file_systems, gpuio-clib, file_systems, and gpuio-io, \
                path_mapped: Btrfs on a loop device",
    },
    Package {
        what: "mksquashfs",
        from: Source::Debian("squashfs-tools"),
        sign: Sign::Program(&["mksquashfs"]),
        tests: "gpuio-transfer, mapped_file_systems, and gpuio-clib, file_systems: squashfs",
    },
    Package {
        what: "mkfs.erofs",
        from: Source::Debian("erofs-utils"),
        sign: Sign::Program(&["mkfs.erofs"]),
        tests: "gpuio-transfer, mapped_file_systems, and gpuio-clib, file_systems: EROFS",
    },
    Package {
        what: "fuse2fs",
        from: Source::Debian("fuse2fs"),
        sign: Sign::Program(&["fuse2fs"]),
        tests: "gpuio-dropin, filesystem, gpuio-transfer, mapped_file_systems, gpuio-clib, \
                file_systems, and gpuio-io, path_mapped: a file system in user space",
    },
    Package {
        what: "losetup",
        from: Source::Debian("mount"),
        sign: Sign::Program(&["losetup"]),
        tests: "gpuio, mounts, and gpuio-host, live: loop devices",
    },
    Package {
        what: "Open MPI",
        from: Source::Debian("openmpi-bin"),
        sign: Sign::Program(&["mpirun.openmpi"]),
        tests: "several ranks under Open MPI",
    },
    Package {
        what: "MPICH",
        from: Source::Debian("mpich"),
        sign: Sign::Program(&["mpirun.mpich"]),
        tests: "several ranks under MPICH",
    },
    Package {
        what: "ip",
        from: Source::Debian("iproute2"),
        sign: Sign::Program(&["ip"]),
        tests: "gpuio, ranks_hosts: ranks on two hosts with a network between them",
    },
    Package {
        what: "bindfs",
        from: Source::Debian("bindfs"),
        sign: Sign::Program(&["bindfs"]),
        tests: "gpuio, ranks_hosts: hosts that mount one directory by themselves; gpuio-clib, \
                file_systems: a file system in user space",
    },
    Package {
        what: "Python with virtual environments",
        from: Source::Debian("python3-venv"),
        sign: Sign::Module("ensurepip"),
        tests: "those that need a package of Python",
    },
    Package {
        what: "Prometheus' parser",
        from: Source::Pip("prometheus_client==0.26.0"),
        sign: Sign::Module("prometheus_client.openmetrics.parser"),
        tests: "gpuio-watch, gpuio-report and gpuio: Prometheus' own parser reads OpenMetrics",
    },
    Package {
        what: "NumPy",
        from: Source::Pip("numpy==2.4.6"),
        sign: Sign::Module("numpy"),
        tests: "gpuio, install: the module of Python",
    },
    Package {
        what: "pandas",
        from: Source::Pip("pandas==3.1.1"),
        sign: Sign::Module("pandas"),
        tests: "gpuio, install: data frames of the module of Python",
    },
    Package {
        what: "fio-plot",
        from: Source::Pip("fio-plot==1.1.21"),
        sign: Sign::Module("fio_plot"),
        tests: "gpuio, other_tools: fio-plot draws `report --format fio-json`",
    },
];

/// Each package of Debian, or each requirement for pip.
fn rows(debian: bool) -> impl Iterator<Item = (&'static Package, &'static str)> {
    PACKAGES.iter().filter_map(move |row| match row.from {
        Source::Debian(name) => debian.then_some((row, name)),
        Source::Pip(name) => (!debian).then_some((row, name)),
    })
}

/// Looks for each package, installs what is missing if `install`, and prints what the tests will do
/// without. Gives the Python that tests are to use, where it is not the one in the path.
///
/// # Errors
/// None: a machine without a package runs all other tests.
pub(super) fn prepare(target: &Path, install: bool) -> (&'static str, Option<PathBuf>) {
    let mut missing = Vec::new();
    let mut refused = (!install).then(|| "--no-install".to_owned()).or_else(no_apt);
    let mut lists_are_fresh = false;
    for (row, package) in rows(true) {
        if row.sign.is_seen(Path::new("python3")) {
            continue;
        }
        if refused.is_none() && !lists_are_fresh {
            refused = timed("apt-get update", update).err().map(|error| format!("{error:#}"));
            lists_are_fresh = true;
        }
        let result = match &refused {
            Some(why) => Err(why.clone()),
            None => timed(package, || debian(package)).map_err(|error| format!("{error:#}")),
        };
        missing.extend(result.err().map(|why| (row, package, why)));
    }
    let python = python(target, install, &mut missing);
    for (row, name, why) in &missing {
        println!("{}", report(row, name, why));
    }
    (if missing.is_empty() { "ok" } else { "some are missing" }, python)
}

type Missing = Vec<(&'static Package, &'static str, String)>;

/// The Python with the packages of the table: the one that was named, the path's if it has them
/// all, or our own.
fn python(target: &Path, install: bool, missing: &mut Missing) -> Option<PathBuf> {
    let named = std::env::var_os(PYTHON).map(PathBuf::from);
    let own = target.join("test-python");
    let own_python = own.join("bin/python");
    let start = named.clone().unwrap_or_else(|| {
        if runs(&own_python) { own_python.clone() } else { PathBuf::from("python3") }
    });
    if rows(false).all(|(row, _)| row.sign.is_seen(&start)) {
        return (start == own_python).then_some(own_python);
    }
    let refused = if named.is_some() {
        Some(format!("{PYTHON} names a Python without it, into which nothing is installed"))
    } else if !install {
        Some("--no-install".to_owned())
    } else if start == own_python {
        None
    } else {
        timed("a virtual environment", || environment(&own)).err().map(|why| format!("{why:#}"))
    };
    for (row, requirement) in rows(false) {
        let python = if refused.is_none() { &own_python } else { &start };
        if row.sign.is_seen(python) {
            continue;
        }
        let result = match &refused {
            Some(why) => Err(why.clone()),
            None => timed(requirement, || pip_install(python, requirement))
                .map_err(|error| format!("{error:#}")),
        };
        missing.extend(result.err().map(|why| (row, requirement, why)));
    }
    (named.is_none() && runs(&own_python)).then_some(own_python)
}

/// One line: what is not there, why, and what that costs.
fn report(row: &Package, name: &str, why: &str) -> String {
    let mut line = format!("MISSING: {}", row.what);
    let by = match row.from {
        Source::Debian(_) => "package",
        Source::Pip(_) => "pip install",
    };
    let why = why.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let _ = write!(line, " ({by} {name}): {}. Tests that skip: {}", why.join("; "), row.tests);
    line
}

impl Sign {
    fn is_seen(&self, python: &Path) -> bool {
        match self {
            Sign::Program(names) => there(names),
            Sign::Module(name) => imports(python, name),
        }
    }
}

/// Whether one of these programs is there.
fn there(programs: &[&str]) -> bool {
    programs.iter().any(|program| locate(program).is_some())
}

/// Where a program is: in the path, or where only root's path looks.
pub(crate) fn locate(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    dirs.into_iter().map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// Why apt-get is not to be options, if so.
pub(crate) fn no_apt() -> Option<String> {
    if !there(&["apt-get"]) {
        return Some("there is no apt-get; install it with this system's tools".to_owned());
    }
    let id = Command::new("id").arg("-u").output();
    let root = id.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    (!root).then(|| "only root may install it".to_owned())
}

pub(crate) fn update() -> anyhow::Result<()> {
    quietly(apt_get(DOWNLOAD_SECONDS).args(["-q", "update"]))
}

/// Bytes first, within a bound; then dpkg, which can be trusted to end.
pub(crate) fn debian(package: &str) -> anyhow::Result<()> {
    let install = ["-q", "-y", "--no-install-recommends", "install"];
    quietly(apt_get(DOWNLOAD_SECONDS).args(install).args(["--download-only", package]))?;
    quietly(apt_get(UNPACK_SECONDS).args(install).args(["--no-download", package]))
}

pub(crate) fn apt_get(seconds: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args([seconds, "apt-get"]).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn environment(at: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("timeout");
    command.args([DOWNLOAD_SECONDS, "python3", "-m", "venv", "--clear"]).arg(at);
    quietly(&mut command)
}

fn pip_install(python: &Path, requirement: &str) -> anyhow::Result<()> {
    let mut command = Command::new("timeout");
    command.arg(DOWNLOAD_SECONDS).arg(python);
    command.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    quietly(command.arg(requirement))
}

fn runs(python: &Path) -> bool {
    quietly(Command::new(python).args(["-c", ""])).is_ok()
}

fn imports(python: &Path, module: &str) -> bool {
    quietly(Command::new(python).args(["-c", &format!("import {module}")])).is_ok()
}

/// Runs a command to its end, without its output unless it fails.
pub(crate) fn quietly(command: &mut Command) -> anyhow::Result<()> {
    let ran = command.stdin(Stdio::null()).output();
    let output = ran.with_context(|| format!("cannot start {command:?}"))?;
    let all = String::from_utf8_lossy(&output.stderr);
    // The last lines hold the reason.
    let lines: Vec<&str> = all.lines().filter(|line| !line.trim().is_empty()).collect();
    let end = lines[lines.len().saturating_sub(2)..].join("; ");
    let over = output.status.code() == Some(124);
    let over = if over { " (it took too long)" } else { "" };
    ensure!(output.status.success(), "{command:?} ended with {}{over}: {end}", output.status);
    Ok(())
}

/// Prints what is installed, and how long that took.
fn timed(what: &str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let start = Instant::now();
    let result = work();
    if result.is_ok() {
        println!("{what}: done in {:.1} s", start.elapsed().as_secs_f64());
    }
    result
}
