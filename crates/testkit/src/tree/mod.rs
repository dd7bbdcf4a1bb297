//! A small tree that looks like a system.

mod table;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gpuio_host::Root;
use gpuio_record::facts::DeviceNumber;

pub use table::build;

/// Files under a temporary directory, removed when dropped.
#[derive(Debug)]
pub struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    /// In the directory that `GPUIO_TEST_TREES` names: in memory thousands of small files are made
    /// in a twentieth of the time.
    pub fn new() -> Self {
        let dir = match std::env::var_os("GPUIO_TEST_TREES") {
            Some(at) => tempfile::tempdir_in(at),
            None => tempfile::tempdir(),
        };
        Self { dir: dir.unwrap() }
    }

    pub fn root(&self) -> Root {
        Root::at(self.dir.path())
    }

    pub fn path(&self, rest: &str) -> PathBuf {
        self.dir.path().join(rest)
    }

    pub fn file(&self, rest: &str, body: impl AsRef<[u8]>) -> &Self {
        put(self.dir.path(), rest, body);
        self
    }

    pub fn link(&self, from: &str, to: &str) -> &Self {
        let from = self.path(from);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        // Relative, as sysfs links are: one ".." for each directory between the root and it.
        let up = from.strip_prefix(self.dir.path()).unwrap().components().count() - 1;
        let mut aim: PathBuf = std::iter::repeat_n("..", up).collect();
        aim.push(to);
        symlink(aim, from).unwrap();
        self
    }

    /// A block device: its directory, its links, its number and size.
    pub fn device(&self, dir: &str, number: &str, sectors: u64) -> &Self {
        let name = Path::new(dir).file_name().unwrap().to_str().unwrap();
        fs::create_dir_all(self.path(&format!("{dir}/holders"))).unwrap();
        self.file(&format!("{dir}/dev"), format!("{number}\n"));
        self.file(&format!("{dir}/size"), format!("{sectors}\n"));
        self.file(&format!("{dir}/ro"), "0\n");
        self.link(&format!("sys/dev/block/{number}"), dir);
        self.link(&format!("sys/class/block/{name}"), dir);
        self
    }
}

/// A file below a directory, in directories of its own.
pub fn put(dir: &Path, rest: &str, body: impl AsRef<[u8]>) {
    let path = dir.join(rest);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, body).unwrap();
}

pub fn number(major: u32, minor: u32) -> DeviceNumber {
    DeviceNumber { major, minor }
}
