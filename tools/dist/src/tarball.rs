//! The tarball: unpack it anywhere, and run `bin/gpuio`.

use std::path::PathBuf;

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use crate::{Entry, Job};

pub(crate) fn write(job: &Job, entries: &[Entry]) -> anyhow::Result<PathBuf> {
    let top = format!("gpuio-{}-{}", job.version, job.triple);
    let path = job.out.join(format!("{top}.tar.gz"));
    // Who unpacks it looks for this name first.
    let readme = Entry {
        path: "README.md".to_owned(),
        bytes: Vec::new(),
        mode: 0o777,
        link: Some("share/doc/gpuio/README.md".to_owned()),
    };
    let all: Vec<Entry> = std::iter::once(readme).chain(entries.iter().cloned()).collect();
    std::fs::write(&path, packed(job, &all, &format!("{top}/"))?)?;
    Ok(path)
}

/// The entries below `prefix`, owned by root.
pub(crate) fn packed(job: &Job, entries: &[Entry], prefix: &str) -> anyhow::Result<Vec<u8>> {
    let encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut archive = tar::Builder::new(encoder);
    for directory in directories(entries, prefix) {
        let mut header = header(job, 0o755);
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        archive.append_data(&mut header, directory, std::io::empty())?;
    }
    for entry in entries {
        let path = format!("{prefix}{}", entry.path);
        append(&mut archive, header(job, entry.mode), &path, entry)?;
    }
    Ok(archive.into_inner()?.finish()?)
}

fn append(
    archive: &mut tar::Builder<GzEncoder<Vec<u8>>>,
    mut header: tar::Header,
    path: &str,
    entry: &Entry,
) -> anyhow::Result<()> {
    match &entry.link {
        Some(to) => {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            archive.append_link(&mut header, path, to)?;
        }
        None => {
            header.set_size(entry.bytes.len() as u64);
            archive.append_data(&mut header, path, entry.bytes.as_slice())?;
        }
    }
    Ok(())
}

fn header(job: &Job, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_mtime(job.time);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// The directories of the entries, each before what is in it.
fn directories(entries: &[Entry], prefix: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for entry in entries {
        let path = format!("{prefix}{}", entry.path);
        for (at, _) in path.match_indices('/') {
            let directory = &path[..=at];
            if directory != "./" && !found.iter().any(|known| known == directory) {
                found.push(directory.to_owned());
            }
        }
    }
    found
}
