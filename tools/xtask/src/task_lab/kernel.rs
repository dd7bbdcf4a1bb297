//! Debian's kernels, unpacked below `target/lab` and not installed: the stable release's, the
//! newest backport, and the stable release's for aarch64 with the libraries that a program needs.
//!
//! Backports are another suite, aarch64 another architecture. apt-get fetches them with lists and
//! a configuration of our own, from the mirror that this machine uses; the machine's own
//! configuration stays as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::task_ci::packages::{apt_get, no_apt, quietly};

/// Which kernel a machine boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Release {
    Stable,
    Backports,
    /// The stable release's, for aarch64.
    Aarch64,
}

impl Release {
    pub(super) fn read(text: &str) -> anyhow::Result<Release> {
        match text {
            "stable" => Ok(Release::Stable),
            "backports" => Ok(Release::Backports),
            "aarch64" => Ok(Release::Aarch64),
            _ => bail!("{text}: releases are stable, backports, aarch64"),
        }
    }
}

/// Where busybox and the C library for aarch64 are, downloaded to `dir` where they are not there.
pub(super) fn aarch64_files(dir: &Path) -> anyhow::Result<PathBuf> {
    let at = dir.join("aarch64-files");
    if !at.exists() {
        println!("unpacking busybox and the C library for aarch64");
        let apt = Apt::of(Release::Aarch64, dir)?;
        apt.unpack(&["busybox-static", "libc6", "libgcc-s1"], &at)?;
    }
    Ok(at)
}

#[derive(Debug, Clone)]
pub(super) struct Kernel {
    pub(super) version: String,
    /// It has `boot` and `lib/modules`.
    pub(super) dir: PathBuf,
}

impl Kernel {
    /// The file that QEMU boots.
    pub(super) fn file(&self) -> PathBuf {
        self.dir.join(format!("boot/vmlinuz-{}", self.version))
    }

    /// The newest of a release in `dir`, downloaded where it is not there.
    pub(super) fn of(release: Release, dir: &Path) -> anyhow::Result<Kernel> {
        let package = match release {
            Release::Stable | Release::Backports => "linux-image-amd64",
            Release::Aarch64 => "linux-image-arm64",
        };
        let apt = Apt::of(release, dir)?;
        // The package depends on that of the newest kernel.
        let name = match apt.depends(package)? {
            None if no_apt().is_none() || release != Release::Stable => {
                apt.update()?;
                apt.depends(package)?
            }
            name => name,
        };
        let name = name.with_context(|| format!("apt-cache knows no package {package}"))?;
        let version = name.trim_start_matches("linux-image-").to_owned();
        let at = dir.join(&name);
        if !at.exists() {
            println!("unpacking {name}");
            apt.unpack(&[&name], &at)?;
        }
        if !at.join(format!("lib/modules/{version}/modules.dep")).exists() {
            quietly(Command::new("depmod").arg("-b").arg(&at).arg(&version))?;
        }
        Ok(Kernel { version, dir: at })
    }
}

/// apt with a configuration.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// This machine's, or one with the release as the only source.
    fn of(release: Release, dir: &Path) -> anyhow::Result<Apt> {
        let (name, end, architecture) = match release {
            Release::Stable => return Ok(Apt { options: Vec::new() }),
            Release::Backports => ("apt-backports", "-backports", "amd64"),
            Release::Aarch64 => ("apt-aarch64", "", "arm64"),
        };
        let fields = "$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)";
        let mut command = Command::new("apt-get");
        command.args(["indextargets", "--format", fields, "Created-By: Packages"]);
        let output = command.output().context("apt-get indextargets")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let (suite, mirror) = archive(&text).context("apt-get has no source of Debian's")?;
        let at = dir.join(name);
        for sub in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(at.join(sub))?;
        }
        fs::write(at.join("sources.list"), format!("deb {mirror} {suite}{end} main\n"))?;
        let at = at.display();
        let options = [
            format!("Dir::Etc::SourceList={at}/sources.list"),
            "Dir::Etc::SourceParts=-".to_owned(),
            format!("Dir::State::Lists={at}/lists"),
            format!("Dir::Cache={at}/cache"),
            format!("APT::Architecture={architecture}"),
            format!("APT::Architectures={architecture}"),
        ];
        Ok(Apt { options: options.into_iter().flat_map(|one| ["-o".to_owned(), one]).collect() })
    }

    fn update(&self) -> anyhow::Result<()> {
        quietly(apt_get("180").args(&self.options).args(["-q", "update"]))
    }

    /// The kernel that a package depends on, if the package is known.
    fn depends(&self, package: &str) -> anyhow::Result<Option<String>> {
        let mut command = Command::new("apt-cache");
        let output = command.args(&self.options).args(["depends", package]).output();
        let text = String::from_utf8_lossy(&output.context("apt-cache")?.stdout).into_owned();
        let is_it = |word: &&str| word.starts_with("linux-image-") && *word != package;
        Ok(text.split_whitespace().find(is_it).map(str::to_owned))
    }

    /// Downloads packages and unpacks them in a directory that is there whole or not at all.
    fn unpack(&self, names: &[&str], at: &Path) -> anyhow::Result<()> {
        let name = at.file_name().and_then(|name| name.to_str()).context("no name")?;
        let fresh = at.with_file_name(format!("{name}.{}", std::process::id()));
        fs::create_dir_all(&fresh)?;
        let download = || {
            let mut command = apt_get("180");
            command.args(&self.options).args(["-q", "download"]).args(names).current_dir(&fresh);
            quietly(&mut command)
        };
        // The lists may be older than what the mirror has.
        download().or_else(|_| self.update().and_then(|()| download()))?;
        let packages: Vec<_> = fs::read_dir(&fresh)?.collect::<Result<_, _>>()?;
        ensure!(packages.len() == names.len(), "apt-get did not download {}", names.join(", "));
        for package in packages {
            quietly(Command::new("dpkg-deb").arg("-x").arg(package.path()).arg(&fresh))?;
            fs::remove_file(package.path())?;
        }
        fs::rename(&fresh, at).with_context(|| at.display().to_string())
    }
}

/// Code name and mirror of Debian's stable release, of lines `ORIGIN COMPONENT CODENAME URI`.
pub(super) fn archive(text: &str) -> Option<(&str, &str)> {
    text.lines().find_map(|line| match line.split(' ').collect::<Vec<_>>().as_slice() {
        ["Debian", "main", suite, mirror] if !suite.contains('-') => Some((*suite, *mirror)),
        _ => None,
    })
}
