//! Why a target is not used, and what would change that.

use std::mem::discriminant;
use std::path::{Path, PathBuf};

use gpuio_base::units::ShellLine;
use thiserror::Error;

use super::error::LESS;
use super::manifest::ManifestError;

/// A target that is not used. Nothing was written.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Another owner's file.
    #[error(
        "{}{} was not made by gpuio: {}{}; to write over it, pass --overwrite",
        path.display(), leads_to(resolved.as_ref()), sentence(dangers), unusable(list.as_deref())
    )]
    Foreign {
        path: PathBuf,
        /// Where its link leads, if it is one.
        resolved: Option<PathBuf>,
        /// The data that would be lost.
        dangers: Vec<String>,
        /// Why the list of our files says nothing.
        list: Option<Box<ManifestError>>,
    },
    /// A file that was ours, or has the name of one.
    #[error(
        "{} was made by gpuio and is not as it left it: {why}; {}; \
         to write over it, pass --overwrite",
        path.display(), sentence(dangers)
    )]
    Changed {
        path: PathBuf,
        why: String,
        /// The data that would be lost.
        dangers: Vec<String>,
    },
    /// A link below a data directory.
    #[error(
        "{} is or lies behind a symbolic link, and gpuio follows none below --directory; \
         name the file with --filename, or remove the link",
        path.display()
    )]
    Link { path: PathBuf },
    /// A place that this user may not look into.
    #[error("{}: permission denied; name another, or run as a user who may use it", path.display())]
    Denied { path: PathBuf },
    /// A block device that no flag named.
    #[error(
        "{} is a block device: {}; all data on it would be lost; \
         to write to it, pass --destroy-data-on {}",
        path.display(), sentence(dangers), path.display()
    )]
    Device {
        path: PathBuf,
        /// The data that would be lost.
        dangers: Vec<String>,
    },
    /// The system uses it now, or a write could not mean what was intended.
    #[error("{} is not written to, whatever the flags: {}", path.display(), sentence(dangers))]
    InUse { path: PathBuf, dangers: Vec<String> },
    /// Nothing there to read.
    #[error("{} does not exist, {}", path.display(), or_why_not(command))]
    NeverWritten {
        path: PathBuf,
        /// A command that would write it, or the reasons why none may.
        command: Result<String, Vec<String>>,
    },
    /// A file of the user's own that is read as it is, and is not as it was when the run was
    /// planned.
    #[error(
        "{} {}: it was moved, written or replaced meanwhile; run again when the files stay as they \
         are",
        path.display(), since(*size, *planned)
    )]
    Since {
        path: PathBuf,
        /// Its size in bytes; absent when it is not there.
        size: Option<u64>,
        /// Its size in bytes when the run was planned.
        planned: u64,
    },
    /// Fewer bytes than the job wants to use.
    #[error(
        "{} has {size} bytes and {wanted} are wanted{}; use {}{}",
        path.display(), because(changed.as_ref()), LESS, or_run(command.as_ref())
    )]
    TooShort {
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        wanted: u64,
        /// The known change of a file that was ours.
        changed: Option<String>,
        /// A command that would write a longer one.
        command: Option<String>,
    },
    /// Our file, with data that verification would call wrong.
    #[error(
        "{} does not hold the pattern that verification expects (it was written without \
         verification, or with another salt or fill, or its last writer did not finish); write it \
         anew: {command}",
        path.display()
    )]
    OtherData {
        path: PathBuf,
        /// A command that would write it.
        command: String,
    },
    /// A job that verifies what it reads comes after one of the same run that leaves other bytes.
    #[error(
        "{} is written without a full verification by an earlier job of this run and then read \
         with one, which has nothing to hold the bytes against; give the job that writes \
         verify=pass, too",
        path.display()
    )]
    WrittenUnverified { path: PathBuf },
    /// A file in which no pattern was found cannot be verified.
    #[error(
        "{} {}, so there is nothing to verify its bytes against; \
         drop --verify, or let gpuio make its own files in a new --directory",
        path.display(), unverifiable(changed.as_ref())
    )]
    NotVerifiable {
        path: PathBuf,
        /// The known change of a file that was ours.
        changed: Option<String>,
    },
    #[error(
        "{} is a directory; name a file in it, or let gpuio make its own with {}",
        path.display(), ShellLine::new("--directory").file(path)
    )]
    Directory { path: PathBuf },
    /// A pipe, a character device, a socket.
    #[error(
        "{} cannot be loaded: {}; name a regular file or a block device",
        path.display(), sentence(dangers)
    )]
    NotStorage { path: PathBuf, dangers: Vec<String> },
    /// The list of our files is there and cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// All refusals as lines. Files of one directory that are refused alike take one: that of the
/// first, with how many there are.
pub fn lines(all: &[Refusal]) -> String {
    let mut kinds: Vec<(&Refusal, Vec<&Path>)> = Vec::new();
    for one in all {
        if let Refusal::Denied { path } = one
            && kinds
                .iter()
                .any(|(other, _)| matches!(other, Refusal::Denied { path: other } if other == path))
        {
            continue;
        }
        let place = |refusal: &Refusal| refusal.path().and_then(Path::parent).map(Path::to_owned);
        let alike = |other: &Refusal| {
            discriminant(other) == discriminant(one)
                && place(one).is_some()
                && place(other) == place(one)
        };
        match kinds.iter_mut().find(|(first, _)| alike(first)) {
            Some((_, others)) => others.extend(one.path()),
            None => kinds.push((one, Vec::new())),
        }
    }
    let line = |(first, others): (&Refusal, Vec<&Path>)| match others.last() {
        None => first.to_string(),
        Some(last) => {
            let (count, last) = (others.len(), last.display());
            let more = match count {
                1 => format!("another file there, {last}"),
                _ => format!("{count} more files there, up to {last}"),
            };
            format!("{first} (the same holds for {more})")
        }
    };
    kinds.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

impl Refusal {
    /// Whether the system denies it, and no rule of gpuio's.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Refusal::Denied { .. })
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Refusal::Foreign { path, .. }
            | Refusal::Device { path, .. }
            | Refusal::InUse { path, .. }
            | Refusal::NeverWritten { path, .. }
            | Refusal::Since { path, .. }
            | Refusal::TooShort { path, .. }
            | Refusal::OtherData { path, .. }
            | Refusal::WrittenUnverified { path }
            | Refusal::NotVerifiable { path, .. }
            | Refusal::Changed { path, .. }
            | Refusal::Link { path }
            | Refusal::Directory { path }
            | Refusal::NotStorage { path, .. } => Some(path),
            Refusal::Denied { .. } | Refusal::Manifest(_) => None,
        }
    }
}

fn since(size: Option<u64>, planned: u64) -> String {
    match size {
        None => "is not there any more, and was when the run was planned".to_owned(),
        Some(size) => format!("has {size} bytes, and had {planned} when the run was planned"),
    }
}

fn sentence(dangers: &[String]) -> String {
    if dangers.is_empty() {
        return "nothing known was found on it".to_owned();
    }
    dangers.join("; ")
}

fn because(changed: Option<&String>) -> String {
    changed.map(|why| format!(" ({why})")).unwrap_or_default()
}

fn unverifiable(changed: Option<&String>) -> String {
    match changed {
        Some(_) => format!("holds no pattern of gpuio's any more{}", because(changed)),
        None => "was not made by gpuio and holds no pattern of its kind".to_owned(),
    }
}

fn leads_to(resolved: Option<&PathBuf>) -> String {
    resolved.map(|path| format!(" (a link to {})", path.display())).unwrap_or_default()
}

fn unusable(list: Option<&ManifestError>) -> String {
    list.map(|error| format!(" ({error})")).unwrap_or_default()
}

fn or_why_not(command: &Result<String, Vec<String>>) -> String {
    match command {
        Ok(command) => {
            format!("the files were never written; run the write command first: {command}")
        }
        Err(dangers) => format!("and no file may be made there: {}", sentence(dangers)),
    }
}

fn or_run(command: Option<&String>) -> String {
    command
        .map(|command| format!(", or write files of that size first: {command}"))
        .unwrap_or_default()
}
