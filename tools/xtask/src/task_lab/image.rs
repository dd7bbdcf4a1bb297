//! The files that a machine boots besides its kernel: an initramfs with the binary under test, and
//! the tools and kernel modules of the scene with what these need.
//!
//! The files that all scenes need are archived once; each scene adds a layer of its own, so that
//! none unpacks another's tools. Nothing is compressed: unpacking would take the emulated processor
//! longer than reading.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::kernel::{self, Kernel, Release};
use super::machine::Machine;
use super::scene::Scene;
use crate::task_ci::packages::{self, debian, no_apt, quietly, update};

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
    ("xz", "xz-utils"),
];
/// The tools of every machine besides busybox.
const TOOLS: &[(&str, &str)] = &[("mkfs.ext4", "e2fsprogs"), ("ip", "iproute2")];

/// The images of a scene's machines, by kernel.
pub(super) struct Images {
    default: Release,
    images: BTreeMap<Release, Image>,
}

impl Images {
    /// Makes them for a scene's machines. Those that name no release boot `default`.
    pub(super) fn make(
        (base, aarch64): (&Base, Option<&Base>),
        scene: &Scene,
        default: Release,
    ) -> anyhow::Result<Images> {
        let mut images = BTreeMap::new();
        for machine in &scene.machines {
            let release = machine.release(default)?;
            if let Entry::Vacant(entry) = images.entry(release) {
                let base = match release {
                    Release::Aarch64 => aarch64.context("no binary for aarch64")?,
                    Release::Stable | Release::Backports => base,
                };
                let kernel = Kernel::of(release, &base.dir)?;
                entry.insert(base.image(&kernel, release, &scene.wanted)?);
            }
        }
        Ok(Images { default, images })
    }

    pub(super) fn of(&self, machine: &Machine) -> anyhow::Result<&Image> {
        self.images.get(&machine.release(self.default)?).context("no image of this release")
    }
}

/// The files that QEMU starts.
pub(super) struct Image {
    pub(super) kernel: PathBuf,
    pub(super) release: Release,
    pub(super) initramfs: PathBuf,
}

/// The modules and tools that scenes want in the image.
#[derive(Debug, Default, Clone)]
pub(super) struct Wanted {
    pub(super) modules: BTreeSet<String>,
    /// Program or absolute path, and package.
    pub(super) tools: BTreeSet<(String, String)>,
    /// gpuio's own shared objects.
    pub(super) objects: BTreeSet<String>,
}

/// The common part of all images, as an archive: busybox, the binary under test, a few tools.
pub(super) struct Base {
    /// `target/lab`.
    dir: PathBuf,
    archive: PathBuf,
    /// The binary under test on this machine.
    binary: PathBuf,
    /// The archive's files. A scene's layer does not repeat them.
    files: BTreeSet<PathBuf>,
}

impl Base {
    /// Makes it in `dir`.
    pub(super) fn make(
        dir: &Path,
        binary: &Path,
        init: &str,
        aarch64: bool,
    ) -> anyhow::Result<Base> {
        let name = if aarch64 { "base-aarch64" } else { "base" };
        let archive = dir.join(format!("{name}-{}", std::process::id()));
        let (dir, binary) = (dir.to_owned(), binary.to_owned());
        let mut base = Base { dir, archive, binary, files: BTreeSet::new() };
        let root = Root::new(&base.dir, "base-root")?;
        if aarch64 {
            fill_aarch64(&root, &base.binary, &kernel::aarch64_files(&base.dir)?)?;
        } else {
            fill(&root, &base.binary)?;
        }
        settings(&root.0, init)?;
        root.archive(&base.archive)?;
        files(&root.0, Path::new(""), &mut base.files)?;
        Ok(base)
    }

    /// An image with what a scene wants besides. The kernel unpacks archives that follow each
    /// other (Documentation/driver-api/early-userspace/buffer-format.rst).
    fn image(&self, kernel: &Kernel, release: Release, wanted: &Wanted) -> anyhow::Result<Image> {
        let root = Root::new(&self.dir, "layer-root")?;
        for (tool, package) in &wanted.tools {
            let from = locate(tool).with_context(|| format!("package {package} has no {tool}"))?;
            let to = tool.strip_prefix('/').map_or_else(|| format!("bin/{tool}"), str::to_owned);
            program(&root.0, &from, &to, &self.files)?;
        }
        for object in &wanted.objects {
            // A binary without it beside it has to carry it.
            if let Some(from) = beside(&self.binary, object) {
                let to = format!("lib/gpuio/{object}");
                program(&root.0, &from, &to, &self.files)?;
                quietly(Command::new("strip").arg(root.0.join(to)))?;
            }
        }
        modules(&root.0, kernel, wanted)?;
        let layer = self.dir.join(format!("layer-{}", std::process::id()));
        root.archive(&layer)?;
        let initramfs = format!("initramfs-{}-{}", kernel.version, std::process::id());
        let initramfs = self.dir.join(initramfs);
        let mut image = File::create(&initramfs)?;
        for part in [&self.archive, &layer] {
            io::copy(&mut File::open(part)?, &mut image)?;
        }
        fs::remove_file(&layer)?;
        Ok(Image { kernel: kernel.file(), release, initramfs })
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.archive);
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.initramfs);
    }
}

/// A directory for the files of an archive, removed with them: they are copies.
struct Root(PathBuf);

impl Root {
    fn new(dir: &Path, name: &str) -> anyhow::Result<Root> {
        let root = Root(dir.join(format!("{name}-{}", std::process::id())));
        for sub in
            ["bin", "etc", "proc", "sys", "dev", "tmp", "run", "mnt", "root", "lib", "usr", "var"]
        {
            fs::create_dir_all(root.0.join(sub))?;
        }
        for (link, to) in
            [("sbin", "bin"), ("usr/bin", "../bin"), ("usr/sbin", "../bin"), ("usr/lib", "../lib")]
        {
            symlink(to, root.0.join(link))?;
        }
        Ok(root)
    }

    fn archive(&self, to: &Path) -> anyhow::Result<()> {
        // Root's, who alone may change it: gpuio loads no other object.
        let script = "cd \"$0\" && chmod -R go-w . && \
                      find . | cpio --quiet -R 0:0 -o -H newc > \"$1\"";
        quietly(Command::new("sh").args(["-c", script]).arg(&self.0).arg(to))
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The files below a directory that are no directories, by their paths in it.
fn files(root: &Path, at: &Path, found: &mut BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(root.join(at))? {
        let entry = entry?;
        let path = at.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files(root, &path, found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(())
}

/// Installs what is missing on this machine, or names it.
pub(super) fn install_missing(wanted: &Wanted, aarch64: bool, install: bool) -> anyhow::Result<()> {
    let emulator = [("qemu-system-aarch64", "qemu-system-arm")];
    let programs =
        PROGRAMS.iter().chain(TOOLS).chain(aarch64.then_some(&emulator).into_iter().flatten());
    let programs = programs.map(|(tool, package)| (*tool, *package));
    let tools = wanted.tools.iter().map(|(tool, package)| (tool.as_str(), package.as_str()));
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

/// One of gpuio's shared objects where a build or an installation has it (`gpuio_guard::objects`).
fn beside(binary: &Path, object: &str) -> Option<PathBuf> {
    let dir = binary.parent()?;
    let places = ["", "deps", "../lib/gpuio"].map(|place| dir.join(place).join(object));
    places.into_iter().find(|path| path.exists())
}

/// A link to busybox for each of its commands: those of the one of this machine.
fn busybox_commands(root: &Path) -> anyhow::Result<()> {
    let own = locate("busybox").context("busybox")?;
    let list = Command::new(&own).arg("--list").output()?;
    for applet in String::from_utf8_lossy(&list.stdout).lines() {
        let link = root.join("bin").join(applet);
        if applet != "busybox" && !link.exists() {
            symlink("busybox", link)?;
        }
    }
    Ok(())
}

/// For aarch64: no program but the binary and busybox.
fn fill_aarch64(root: &Root, binary: &Path, files: &Path) -> anyhow::Result<()> {
    let root = &root.0;
    copy(&files.join("bin/busybox"), &root.join("bin/busybox"))?;
    busybox_commands(root)?;
    copy(binary, &root.join("bin/gpuio"))?;
    quietly(Command::new("cp").arg("-a").arg(files.join("lib")).arg(root))
}

fn fill(root: &Root, binary: &Path) -> anyhow::Result<()> {
    let (root, none) = (&root.0, BTreeSet::new());
    // It needs libraries where it is Debian's other package of it.
    program(root, &locate("busybox").context("busybox")?, "bin/busybox", &none)?;
    busybox_commands(root)?;
    program(root, binary, "bin/gpuio", &none)?;
    quietly(Command::new("strip").arg(root.join("bin/gpuio")))?;
    for (tool, package) in TOOLS {
        let from = locate(tool).with_context(|| format!("package {package} has no {tool}"))?;
        program(root, &from, &format!("bin/{tool}"), &none)?;
    }
    Ok(())
}

/// The first process, and what the C library looks for in /etc.
fn settings(root: &Path, init: &str) -> anyhow::Result<()> {
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
        (
            "hosts",
            "127.0.0.1 localhost\n10.9.0.1 server\n10.9.0.2 client\n10.9.0.11 n1\n10.9.0.12 n2\n",
        ),
        ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ] {
        fs::write(root.join("etc").join(name), text)?;
    }
    Ok(())
}

/// Copies a program, a library or another file, and the shared libraries it needs, but none of
/// the files that are there already.
fn program(root: &Path, from: &Path, to: &str, there: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    copy(from, &root.join(to))?;
    let output = Command::new("ldd").arg(from).output().context("ldd")?;
    for library in libraries(&String::from_utf8_lossy(&output.stdout)) {
        let path = Path::new(library.trim_start_matches('/'));
        // /usr/lib is /lib in the image.
        let path = path.strip_prefix("usr").unwrap_or(path);
        if !there.contains(path) && !root.join(path).exists() {
            copy(Path::new(library), &root.join(path))?;
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

fn modules(root: &Path, kernel: &Kernel, wanted: &Wanted) -> anyhow::Result<()> {
    let version = &kernel.version;
    let base = format!("lib/modules/{version}");
    let from = kernel.dir.join(&base);
    let text = fs::read_to_string(from.join("modules.dep"))?;
    let built_in = fs::read_to_string(from.join("modules.builtin"))?;
    let names = MODULES.iter().copied().chain(wanted.modules.iter().map(String::as_str));
    let names = names.filter(|name| !built_in.lines().any(|file| is_module(file, name)));
    for file in closure(&text, names)? {
        let to = root.join(&base).join(file);
        copy(&from.join(file), &to)?;
        if file.ends_with(".xz") {
            quietly(Command::new("xz").arg("-d").arg(&to))?;
        }
    }
    for name in ["modules.order", "modules.builtin"] {
        copy(&from.join(name), &root.join(&base).join(name))?;
    }
    quietly(Command::new("depmod").arg("-b").arg(root).arg(version))
}

/// Whether a file `kernel/…/NAME.ko` is this module; `-` and `_` are the same.
fn is_module(file: &str, name: &str) -> bool {
    let stem = file.rsplit('/').next().and_then(|file| file.split('.').next()).unwrap_or("");
    stem.replace('-', "_") == name.replace('-', "_")
}

/// The files of some modules and of all that they need, by `modules.dep`.
pub(super) fn closure<'a>(
    dependencies: &'a str,
    names: impl Iterator<Item = &'a str>,
) -> anyhow::Result<BTreeSet<&'a str>> {
    let mut files = BTreeSet::new();
    for name in names {
        let is_it = |line: &&str| is_module(line.split(':').next().unwrap_or(""), name);
        let line = dependencies.lines().find(is_it);
        let line = line.with_context(|| format!("the kernel has no module {name}"))?;
        let (file, needs) = line.split_once(':').context("modules.dep")?;
        files.insert(file);
        files.extend(needs.split_whitespace());
    }
    ensure!(!files.is_empty(), "no modules");
    Ok(files)
}
