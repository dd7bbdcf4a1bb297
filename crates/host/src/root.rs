//! Where `/proc`, `/sys` and `/dev` are looked for.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::{HostError, Malformed};

/// The directory that holds `proc`, `sys` and `dev`: `/` on a live system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    root: PathBuf,
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
        parser: impl FnOnce(&str) -> Result<T, Malformed>,
    ) -> Result<T, HostError> {
        parser(&self.body)
            .map_err(|source| HostError::Malformed { path: self.path.clone(), source })
    }
}

impl Root {
    /// The running system.
    #[must_use]
    pub fn live() -> Self {
        Self::at("/")
    }

    /// A tree that looks like a system, for tests and for facts copied from another machine.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// A path beneath this root. A leading `/` in `rest` is ignored, so that a path the kernel
    /// printed can be looked up under any root.
    #[must_use]
    pub fn join(&self, rest: impl AsRef<Path>) -> PathBuf {
        let rest = rest.as_ref().as_os_str().as_bytes();
        let start = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
        self.root.join(std::ffi::OsStr::from_bytes(&rest[start..]))
    }

    /// Whether this is the running system, whose device nodes can be opened.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Reads a file whole; `None` when the kernel lacks it or hides it.
    ///
    /// # Errors
    /// [`HostError::Read`] when the file is there and reading fails for another reason.
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
        let path = self.join(rest);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some((path, bytes))),
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
        let path = self.join(rest);
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
        Ok(names)
    }
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
