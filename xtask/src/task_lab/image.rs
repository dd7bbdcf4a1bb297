//! What a machine boots: Debian's kernel, and an initramfs with the binary under test and the tools
//! of all scenes with their shared libraries.
//!
//! The kernel's package is unpacked below `target/lab`, not installed. Only modules that a scene
//! names are taken, with those they need. The initramfs is not compressed: unpacking it would take
//! the emulated processor longer than reading it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::task_ci::packages::{self, apt_get, debian, no_apt, quietly, update};

/// What every machine has: module names.
const MODULES: &[&str] = &[
    "9p",
    "9pnet_virtio",
    "ahci",
    "crc32c_generic",
    "ext4",
    "nvme",
    "sd_mod",
    "virtio_blk",
    "virtio_net",
    "virtio_pci",
];
/// Programs of this machine, and Debian's packages with them.
const PROGRAMS: &[(&str, &str)] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("depmod", "kmod"),
    ("setpriv", "util-linux"),
    ("strip", "binutils"),
];
/// What every machine has besides busybox.
const TOOLS: &[(&str, &str)] = &[("mkfs.ext4", "e2fsprogs"), ("ip", "iproute2")];
/// The package that depends on the newest kernel's.
const KERNEL: &str = "linux-image-amd64";

/// What QEMU starts.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) kernel: PathBuf,
    pub(super) initramfs: PathBuf,
    /// The kernel's version.
    pub(super) version: String,
}

/// What scenes want in the image.
#[derive(Debug, Default, Clone)]
pub(super) struct Wanted {
    pub(super) modules: BTreeSet<String>,
    /// Program or absolute path, and package.
    pub(super) tools: BTreeSet<(String, String)>,
}

/// Makes the image in `dir`.
pub(super) fn make(
    dir: &Path,
    binary: &Path,
    init: &str,
    wanted: &Wanted,
    install: bool,
) -> anyhow::Result<Image> {
    let mut tools = wanted.tools.clone();
    tools.extend(TOOLS.iter().map(|(tool, package)| ((*tool).to_owned(), (*package).to_owned())));
    install_missing(&tools, install)?;
    let (kernel, version) = kernel(dir)?;
    let root = dir.join(format!("root-{}", std::process::id()));
    let made = fill(&root, &kernel, &version, binary, init, wanted, &tools);
    let image = made.and_then(|()| {
        let initramfs = dir.join(format!("initramfs-{}", std::process::id()));
        let script = "cd \"$0\" && find . | cpio --quiet -o -H newc > \"$1\"";
        quietly(Command::new("sh").args(["-c", script]).arg(&root).arg(&initramfs))?;
        let kernel = kernel.join(format!("boot/vmlinuz-{version}"));
        Ok(Image { kernel, initramfs, version })
    });
    // Made here, of copies.
    let _ = fs::remove_dir_all(&root);
    image
}

/// Installs what is missing, or names it.
fn install_missing(tools: &BTreeSet<(String, String)>, install: bool) -> anyhow::Result<()> {
    let programs = PROGRAMS.iter().map(|(tool, package)| (*tool, *package));
    let tools = tools.iter().map(|(tool, package)| (tool.as_str(), package.as_str()));
    let missing = programs.chain(tools).filter(|(tool, _)| locate(tool).is_none());
    let missing: BTreeSet<&str> = missing.map(|(_, package)| package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.iter().copied().collect::<Vec<_>>().join(" ");
    let refused = (!install).then(|| "--no-install".to_owned()).or_else(no_apt);
    if let Some(why) = refused {
        anyhow::bail!("the laboratory needs Debian's packages {names}; not installed: {why}");
    }
    update()?;
    for package in missing {
        println!("installing {package}");
        debian(package)?;
    }
    Ok(())
}

/// Where a program is, or a file by its whole path.
fn locate(tool: &str) -> Option<PathBuf> {
    if tool.starts_with('/') {
        return Some(PathBuf::from(tool)).filter(|path| path.exists());
    }
    packages::locate(tool)
}

/// The unpacked package of the kernel, and the kernel's version.
fn kernel(dir: &Path) -> anyhow::Result<(PathBuf, String)> {
    let depends = || {
        let output = Command::new("apt-cache").args(["depends", KERNEL]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = text.split_whitespace();
        let is_it = |word: &&str| word.starts_with("linux-image-") && *word != KERNEL;
        anyhow::Ok(words.find(is_it).map(str::to_owned))
    };
    let mut name = depends()?;
    if name.is_none() && no_apt().is_none() {
        update()?;
        name = depends()?;
    }
    let name = name.with_context(|| format!("apt-cache knows no package {KERNEL}"))?;
    let version = name.trim_start_matches("linux-image-").to_owned();
    let at = dir.join(&name);
    let modules = at.join("lib/modules").join(&version);
    if modules.join("modules.dep").exists() {
        return Ok((at, version));
    }
    println!("unpacking {name}");
    let fresh = dir.join(format!("{name}.{}", std::process::id()));
    fs::create_dir_all(&fresh)?;
    let fresh = fresh.canonicalize()?;
    quietly(apt_get("180").args(["-q", "download", &name]).current_dir(&fresh))?;
    let package = fs::read_dir(&fresh)?.next().context("apt-get downloaded nothing")??.path();
    quietly(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&fresh))?;
    fs::remove_file(&package)?;
    quietly(Command::new("depmod").arg("-b").arg(&fresh).arg(&version))?;
    fs::rename(&fresh, &at).with_context(|| at.display().to_string())?;
    Ok((at, version))
}

fn fill(
    root: &Path,
    kernel: &Path,
    version: &str,
    binary: &Path,
    init: &str,
    wanted: &Wanted,
    tools: &BTreeSet<(String, String)>,
) -> anyhow::Result<()> {
    for dir in
        ["bin", "etc", "proc", "sys", "dev", "tmp", "run", "mnt", "root", "lib", "usr", "var"]
    {
        fs::create_dir_all(root.join(dir))?;
    }
    for (link, to) in
        [("sbin", "bin"), ("usr/bin", "../bin"), ("usr/sbin", "../bin"), ("usr/lib", "../lib")]
    {
        symlink(to, root.join(link))?;
    }
    let busybox = locate("busybox").context("busybox")?;
    fs::copy(&busybox, root.join("bin/busybox"))?;
    let list = Command::new(&busybox).arg("--list").output()?;
    for applet in String::from_utf8_lossy(&list.stdout).lines() {
        let link = root.join("bin").join(applet);
        if applet != "busybox" && !link.exists() {
            symlink("busybox", link)?;
        }
    }
    program(root, binary, "bin/gpuio")?;
    quietly(Command::new("strip").arg(root.join("bin/gpuio")))?;
    for (tool, package) in tools {
        let from = locate(tool).with_context(|| format!("package {package} has no {tool}"))?;
        match tool.strip_prefix('/') {
            Some(path) => copy(&from, &root.join(path))?,
            None => program(root, &from, &format!("bin/{tool}"))?,
        }
    }
    fs::write(root.join("init"), init)?;
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))?;
    for (name, text) in [
        (
            "passwd",
            "root:x:0:0::/root:/bin/sh\n_rpc:x:100:65534::/run:/bin/sh\n\
             nobody:x:65534:65534::/:/bin/sh\n",
        ),
        (
            "services",
            "sunrpc 111/tcp\nsunrpc 111/udp\nnfs 2049/tcp\nnfs 2049/udp\nnfsrdma 20049/tcp\n",
        ),
        ("protocols", "tcp 6 TCP\nudp 17 UDP\n"),
        ("group", "root:x:0:\nnogroup:x:65534:\n"),
        ("hosts", "127.0.0.1 localhost\n10.9.0.1 server\n10.9.0.2 client\n"),
        ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ] {
        fs::write(root.join("etc").join(name), text)?;
    }
    modules(root, kernel, version, wanted)
}

/// Copies a program and the shared libraries it needs.
fn program(root: &Path, from: &Path, to: &str) -> anyhow::Result<()> {
    copy(from, &root.join(to))?;
    let output = Command::new("ldd").arg(from).output().context("ldd")?;
    for library in libraries(&String::from_utf8_lossy(&output.stdout)) {
        let to = root.join(library.trim_start_matches('/'));
        if !to.exists() {
            copy(Path::new(library), &to)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir)?;
    }
    if to.is_symlink() {
        fs::remove_file(to)?;
    }
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

/// The files that ldd(1) names.
pub(super) fn libraries(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
}

fn modules(root: &Path, kernel: &Path, version: &str, wanted: &Wanted) -> anyhow::Result<()> {
    let base = format!("lib/modules/{version}");
    let from = kernel.join(&base);
    let text = fs::read_to_string(from.join("modules.dep"))?;
    let names = MODULES.iter().copied().chain(wanted.modules.iter().map(String::as_str));
    for file in closure(&text, names)? {
        copy(&from.join(file), &root.join(&base).join(file))?;
    }
    for name in ["modules.order", "modules.builtin"] {
        copy(&from.join(name), &root.join(&base).join(name))?;
    }
    quietly(Command::new("depmod").arg("-b").arg(root).arg(version))
}

/// The files of some modules and of all that they need, by `modules.dep`.
pub(super) fn closure<'a>(
    dependencies: &'a str,
    names: impl Iterator<Item = &'a str>,
) -> anyhow::Result<BTreeSet<&'a str>> {
    let mut files = BTreeSet::new();
    for name in names {
        let is_it = |line: &&str| {
            let file = line.split(':').next().and_then(|file| file.rsplit('/').next());
            let stem = file.and_then(|file| file.split('.').next()).unwrap_or("");
            stem.replace('-', "_") == name.replace('-', "_")
        };
        let line = dependencies.lines().find(is_it);
        let line = line.with_context(|| format!("the kernel has no module {name}"))?;
        let (file, needs) = line.split_once(':').context("modules.dep")?;
        files.insert(file);
        files.extend(needs.split_whitespace());
    }
    ensure!(!files.is_empty(), "no modules");
    Ok(files)
}
