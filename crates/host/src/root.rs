//! Where `/proc`, `/sys` and `/dev` are looked for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tree::{Entry, Tree};
use crate::{HostError, LineFault, Recorder};

/// The longest file that is read, in bytes: `/proc/cpuinfo` of 1024 processors has 2 MB, a mount
/// table of 10,000 mounts 3 MB. A kernel file of more is none.
pub const MOST_BYTES: u64 = 16 << 20;

/// The directory that holds `proc`, `sys` and `dev`: `/` on a live system.
#[derive(Debug, Clone)]
pub struct Root {
    source: Source,
    recorder: Option<Recorder>,
}

#[derive(Debug, Clone)]
enum Source {
    Directory(PathBuf),
    Tree(Arc<Tree>),
}

/// A kernel file's text and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The file, as it was opened.
    pub path: PathBuf,
    /// Its text; bytes that are not UTF-8 are replaced.
    pub body: String,
}

impl Text {
    /// Runs a parser over the text and puts the path into its error.
    ///
    /// # Errors
    /// [`HostError::Malformed`] when the parser refuses a line.
    pub fn parse<T>(
        &self,
        parser: impl FnOnce(&str) -> Result<T, LineFault>,
    ) -> Result<T, HostError> {
        parser(&self.body)
            .map_err(|source| HostError::Malformed { path: self.path.clone(), source })
    }
}

impl Root {
    /// The running system.
    pub fn live() -> Self {
        Self::at("/")
    }

    /// A tree that looks like a system, for tests and for facts copied from another machine.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { source: Source::Directory(root.into()), recorder: None }
    }

    /// A tree in memory: a capture.
    pub fn of(tree: Tree) -> Self {
        Self { source: Source::Tree(Arc::new(tree)), recorder: None }
    }

    /// The same root, noting from now on what is read through it. Trees in memory note nothing:
    /// they are what was noted.
    #[must_use]
    pub fn recording(self) -> (Self, Recorder) {
        let recorder = Recorder::default();
        (Self { recorder: Some(recorder.clone()), ..self }, recorder)
    }

    /// A path beneath this root. A leading `/` in `rest` is ignored, so that a path the kernel
    /// printed can be looked up under any root. A file opened by it is not noted, and in a tree in
    /// memory it is but a name.
    pub fn join(&self, rest: impl AsRef<Path>) -> PathBuf {
        match &self.source {
            Source::Directory(root) => root.join(bare(rest.as_ref())),
            Source::Tree(_) => Path::new("/").join(bare(rest.as_ref())),
        }
    }

    /// Whether this is the running system, whose device nodes can be opened.
    pub fn is_live(&self) -> bool {
        matches!(&self.source, Source::Directory(root) if root == Path::new("/"))
    }

    /// Whether something is there, links followed.
    pub fn exists(&self, rest: impl AsRef<Path>) -> bool {
        let rest = bare(rest.as_ref());
        match &self.source {
            Source::Directory(root) => {
                let there = root.join(rest).exists();
                if there && let Some(recorder) = &self.recorder {
                    recorder.there(root, rest);
                }
                there
            }
            Source::Tree(tree) => tree.find(rest).is_some(),
        }
    }

    /// Where the link at `rest` leads, as it is written; `None` where there is none.
    pub fn link(&self, rest: impl AsRef<Path>) -> Option<PathBuf> {
        let rest = bare(rest.as_ref());
        match &self.source {
            Source::Directory(root) => {
                let target = fs::read_link(root.join(rest)).ok()?;
                if let Some(recorder) = &self.recorder {
                    recorder.link(root, rest);
                }
                Some(target)
            }
            Source::Tree(tree) => tree.link(rest).map(Path::to_owned),
        }
    }

    /// The path with all links followed, relative to the root; `None` where nothing is there or
    /// it lies outside.
    pub fn resolve(&self, rest: impl AsRef<Path>) -> Option<PathBuf> {
        let rest = bare(rest.as_ref());
        match &self.source {
            Source::Directory(root) => {
                let full = root.join(rest).canonicalize().ok()?;
                // The live root is canonical, and used for each device.
                let base = if self.is_live() { root.clone() } else { root.canonicalize().ok()? };
                let inside = full.strip_prefix(base).ok()?.to_owned();
                if let Some(recorder) = &self.recorder {
                    recorder.there(root, rest);
                }
                Some(inside)
            }
            Source::Tree(tree) => tree.resolve(rest),
        }
    }

    /// Opens a file whose parts are read by offset; `None` where that can't be.
    pub(crate) fn window(&self, rest: impl AsRef<Path>) -> Option<Window<'_>> {
        let rest = bare(rest.as_ref());
        let inside = match &self.source {
            Source::Directory(root) => Inside::File(open(&root.join(rest)).ok()?),
            Source::Tree(tree) => match tree.find(rest)? {
                Entry::File(bytes) => Inside::Bytes(bytes),
                _ => return None,
            },
        };
        Some(Window { root: self, rest: rest.to_owned(), inside })
    }

    /// Reads a file whole; `None` when the kernel lacks it or hides it.
    ///
    /// # Errors
    /// [`HostError::Read`] when the file is there and reading fails for another reason, or it is
    /// longer than [`MOST_BYTES`].
    pub fn read(&self, rest: impl AsRef<Path>) -> Result<Option<Text>, HostError> {
        let Some((path, bytes)) = self.read_bytes(rest)? else {
            return Ok(None);
        };
        Ok(Some(Text { path, body: String::from_utf8_lossy(&bytes).into_owned() }))
    }

    /// As [`Root::read`], for files whose bytes need not be UTF-8.
    ///
    /// # Errors
    /// [`HostError::Read`].
    pub(crate) fn read_bytes(
        &self,
        rest: impl AsRef<Path>,
    ) -> Result<Option<(PathBuf, Vec<u8>)>, HostError> {
        let rest = bare(rest.as_ref());
        let path = self.join(rest);
        let read = match &self.source {
            Source::Directory(_) => bounded(&path),
            Source::Tree(tree) => match tree.find(rest) {
                Some(Entry::File(bytes)) => Ok(bytes.clone()),
                _ => return Ok(None),
            },
        };
        match read {
            Ok(bytes) => {
                if let (Source::Directory(root), Some(recorder)) = (&self.source, &self.recorder) {
                    recorder.file(root, rest, &bytes);
                }
                Ok(Some((path, bytes)))
            }
            Err(error) if lacks(&error) => Ok(None),
            Err(source) => Err(HostError::Read { path, source }),
        }
    }

    /// Reads a file that holds one word or line, trimmed; `None` also when it is empty.
    ///
    /// # Errors
    /// [`HostError::Read`].
    pub fn word(&self, rest: impl AsRef<Path>) -> Result<Option<String>, HostError> {
        let text = self.read(rest)?;
        Ok(text.map(|text| text.body.trim().to_owned()).filter(|word| !word.is_empty()))
    }

    /// Reads a file that holds one unsigned number.
    ///
    /// # Errors
    /// [`HostError::Read`], and [`HostError::Malformed`] when it is not a number.
    pub fn number(&self, rest: impl AsRef<Path>) -> Result<Option<u64>, HostError> {
        let Some(text) = self.read(rest)? else {
            return Ok(None);
        };
        text.parse(crate::parse::number).map(Some)
    }

    /// Names in a directory, sorted; empty when the directory is absent.
    ///
    /// # Errors
    /// [`HostError::Read`].
    pub fn list(&self, rest: impl AsRef<Path>) -> Result<Vec<String>, HostError> {
        let rest = bare(rest.as_ref());
        let root = match &self.source {
            Source::Directory(root) => root,
            Source::Tree(tree) => {
                let Some(Entry::Directory(names)) = tree.find(rest) else { return Ok(Vec::new()) };
                return Ok(names.iter().map(|name| name.to_string_lossy().into_owned()).collect());
            }
        };
        let path = root.join(rest);
        let fail = |source| HostError::Read { path: path.clone(), source };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if lacks(&error) => return Ok(Vec::new()),
            Err(source) => return Err(fail(source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(fail)?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        if let Some(recorder) = &self.recorder {
            recorder.list(root, rest, &names);
        }
        Ok(names)
    }
}

/// A file that is read in parts.
pub(crate) struct Window<'r> {
    root: &'r Root,
    rest: PathBuf,
    inside: Inside<'r>,
}

enum Inside<'r> {
    File(File),
    Bytes(&'r [u8]),
}

impl Window<'_> {
    /// Fills `buffer` with the bytes from `at`; whether all of them could be read.
    pub(crate) fn read(&self, at: u64, buffer: &mut [u8]) -> bool {
        match &self.inside {
            Inside::File(file) => {
                let read = file.read_exact_at(buffer, at).is_ok();
                if let (true, Source::Directory(root), Some(recorder)) =
                    (read, &self.root.source, &self.root.recorder)
                {
                    recorder.piece(root, &self.rest, at, buffer);
                }
                read
            }
            Inside::Bytes(bytes) => {
                let start = usize::try_from(at).unwrap_or(usize::MAX);
                let part = bytes.get(start..).and_then(|rest| rest.get(..buffer.len()));
                part.map(|part| buffer.copy_from_slice(part)).is_some()
            }
        }
    }
}

/// A path without its leading slashes.
fn bare(rest: &Path) -> &Path {
    let bytes = rest.as_os_str().as_bytes();
    let start = bytes.iter().position(|byte| *byte != b'/').unwrap_or(bytes.len());
    Path::new(std::ffi::OsStr::from_bytes(&bytes[start..]))
}

/// Opens without waiting: in a tree of somebody else a name may be a pipe.
fn open(path: &Path) -> io::Result<File> {
    let wait = rustix::fs::OFlags::NONBLOCK.bits();
    OpenOptions::new().read(true).custom_flags(wait.cast_signed()).open(path)
}

/// Reads a file of [`MOST_BYTES`] at most. Its size does not help: kernel files have none.
fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let words = format!("it is longer than {} MiB, as no kernel file is", MOST_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
    }
    Ok(bytes)
}

/// Whether an error means that the kernel, or this device's driver, has no such fact to give.
///
/// sysfs answers `EINVAL`, `ENODEV`, `ENXIO` or `EOPNOTSUPP` for attributes that exist for every
/// device and mean nothing for this one; containers answer `EACCES` or `EPERM`.
fn lacks(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let Some(code) = error.raw_os_error() else {
        return false;
    };
    [
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::ACCESS,
        Errno::PERM,
        Errno::INVAL,
        Errno::NODEV,
        Errno::NXIO,
        Errno::OPNOTSUPP,
    ]
    .iter()
    .any(|errno| errno.raw_os_error() == code)
}
