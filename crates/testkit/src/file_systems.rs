//! File systems that are made and mounted for a test.
//!
//! Mounting takes root, the programs that make file systems, and a kernel that knows them. [`on`]
//! names a file system that is not available in a line with SKIPPED.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::skip;

/// Runs a program; what it said if that failed.
///
/// # Errors
/// It is not here, or ended with another code than 0.
pub fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    run_with(program, arguments, Stdio::null())
}

pub(crate) fn run_with(program: &str, arguments: &[&str], input: Stdio) -> Result<(), String> {
    let output = Command::new(program).args(arguments).stdin(input).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}: {}", output.status, said.trim().replace('\n', "; ")))
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Mounts a file system in a room; where, or why that is not possible.
pub type Mount = fn(&mut Room) -> Result<PathBuf, String>;

/// File systems that take writes.
pub const WRITABLE: [(&str, Mount); 7] = [
    ("ext4", Room::ext4),
    ("XFS", Room::xfs),
    ("Btrfs", Room::btrfs),
    ("tmpfs", Room::tmpfs),
    ("overlay", Room::overlay),
    ("fuse2fs", Room::fuse2fs),
    ("bindfs", Room::bindfs),
];

/// Mounts a file system with the files of a directory; where, or why that is not possible.
pub type MountOf = fn(&mut Room, &Path) -> Result<PathBuf, String>;

/// File systems that Linux only reads.
pub const READ_ONLY: [(&str, MountOf); 3] =
    [("SquashFS", Room::squashfs), ("EROFS", Room::erofs), ("ISO 9660", Room::iso9660)];

/// A directory for images and mounts, which no other process sees: the thread has a mount table of
/// its own, as have the threads and processes that it starts.
#[derive(Debug)]
pub struct Room {
    dir: TempDir,
    /// Unmounted at the end, the last one first.
    mounts: Vec<PathBuf>,
}

impl Room {
    /// Images and mounts are made in `dir`.
    ///
    /// # Errors
    /// This user may not mount.
    #[expect(unsafe_code, reason = "a mount table of its own is a system call")]
    pub fn new(dir: TempDir) -> Result<Self, String> {
        // SAFETY: it changes what this thread sees, and those and the processes that it starts, and
        // touches no memory of this process.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return Err(format!("unshare: {}", std::io::Error::last_os_error()));
        }
        run("mount", &["--make-rprivate", "/"])?;
        Ok(Self { dir, mounts: Vec::new() })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn create_dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir(&path).unwrap();
        path
    }

    /// Mounts something at a new directory.
    ///
    /// # Errors
    /// As mount(8) has it, here and below; or the file system can't be made.
    pub fn mount(&mut self, name: &str, arguments: &[&str]) -> Result<PathBuf, String> {
        let place = self.create_dir(name);
        run("mount", &[arguments, &[text(&place)]].concat())?;
        self.is_mounted(&place);
        Ok(place)
    }

    /// Unmounts it at the end.
    pub(crate) fn is_mounted(&mut self, place: &Path) {
        self.mounts.push(place.to_owned());
    }

    /// A file without content for a file system, longer than each of them wants at least.
    fn image(&self) -> PathBuf {
        let path = self.path("image");
        File::create(&path).unwrap().set_len(384 << 20).unwrap();
        path
    }

    /// Makes a file system in an image and mounts it.
    pub fn made(&mut self, program: &str, arguments: &[&str]) -> Result<PathBuf, String> {
        let image = self.image();
        run(program, &[arguments, &[text(&image)]].concat())?;
        self.mount("place", &["-o", "loop", text(&image)])
    }

    pub fn ext4(&mut self) -> Result<PathBuf, String> {
        self.made("mkfs.ext4", &["-q", "-F"])
    }

    pub fn xfs(&mut self) -> Result<PathBuf, String> {
        self.made("mkfs.xfs", &["-q", "-f"])
    }

    pub fn btrfs(&mut self) -> Result<PathBuf, String> {
        self.made("mkfs.btrfs", &["-q", "-f"])
    }

    pub fn tmpfs(&mut self) -> Result<PathBuf, String> {
        self.mount("place", &["-t", "tmpfs", "tmpfs"])
    }

    /// A file system in user space, of an image.
    pub fn fuse2fs(&mut self) -> Result<PathBuf, String> {
        let image = self.image();
        run("mkfs.ext4", &["-q", "-F", text(&image)])?;
        let place = self.create_dir("place");
        run("fuse2fs", &[text(&image), text(&place), "-o", "rw"])?;
        self.is_mounted(&place);
        Ok(place)
    }

    /// A file system in user space, of a directory.
    pub fn bindfs(&mut self) -> Result<PathBuf, String> {
        let [source, place] = ["source", "place"].map(|name| self.create_dir(name));
        run("bindfs", &["--multithreaded", text(&source), text(&place)])?;
        self.is_mounted(&place);
        Ok(place)
    }

    pub fn overlay(&mut self) -> Result<PathBuf, String> {
        let layers = Layers::new(self.dir.path());
        self.overlay_of(&layers)
    }

    pub fn overlay_of(&mut self, layers: &Layers) -> Result<PathBuf, String> {
        let Layers { lower, upper, work } = layers;
        let (lower, upper, work) = (text(lower), text(upper), text(work));
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        self.mount("overlay", &["-t", "overlay", "overlay", "-o", &options])
    }

    /// Its files are not compressed, nor are those of the next two.
    pub fn squashfs(&mut self, source: &Path) -> Result<PathBuf, String> {
        self.archive("mksquashfs", |from, to| [from, to, "-quiet", "-no-progress", "-noD"], source)
    }

    pub fn erofs(&mut self, source: &Path) -> Result<PathBuf, String> {
        self.archive("mkfs.erofs", |from, to| ["--quiet", to, from], source)
    }

    pub fn iso9660(&mut self, source: &Path) -> Result<PathBuf, String> {
        self.archive("genisoimage", |from, to| ["-quiet", "-R", "-o", to, from], source)
    }

    /// Makes a file system of a directory and mounts it. `arguments` are of the directory and the
    /// image.
    fn archive<const N: usize>(
        &mut self,
        program: &str,
        arguments: impl for<'a> FnOnce(&'a str, &'a str) -> [&'a str; N],
        source: &Path,
    ) -> Result<PathBuf, String> {
        let image = self.path("image");
        run(program, &arguments(text(source), text(&image)))?;
        self.mount("place", &["-o", "loop,ro", text(&image)])
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        for place in self.mounts.iter().rev() {
            // A file left open keeps it until it is closed.
            if let Err(why) = run("umount", &["-l", text(place)]) {
                println!("{why}");
            }
        }
    }
}

/// The directories of an overlay.
#[derive(Debug)]
pub struct Layers {
    pub lower: PathBuf,
    pub upper: PathBuf,
    work: PathBuf,
}

impl Layers {
    pub fn new(parent: &Path) -> Layers {
        let [lower, upper, work] = ["lower", "upper", "work"].map(|name| {
            let path = parent.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        });
        Layers { lower, upper, work }
    }
}

/// Runs a test on what `mount` mounts below `dir`, or says why not.
pub fn on(
    test: &str,
    dir: TempDir,
    mount: impl FnOnce(&mut Room) -> Result<PathBuf, String>,
    body: impl FnOnce(&Path),
) {
    let mounted = Room::new(dir).and_then(|mut room| mount(&mut room).map(|place| (room, place)));
    match mounted {
        Ok((_room, place)) => body(&place),
        Err(why) => skip(&format!("{test}: {why}")),
    }
}
