//! The package of Debian: an ar(5) archive of two tarballs (deb(5)).

use std::path::PathBuf;

use crate::build::GLIBC;
use crate::tarball::packed;
use crate::{Entry, Job};

pub(crate) fn write(job: &Job, entries: &[Entry]) -> anyhow::Result<PathBuf> {
    let machine = job.debian_machine();
    let path = job.out.join(format!("gpuio_{}_{machine}.deb", job.version));
    let size: usize = entries.iter().map(|entry| entry.bytes.len()).sum();
    let control = format!(
        "Package: gpuio\nVersion: {}\nArchitecture: {machine}\nMaintainer: gpuio developers\n\
         Installed-Size: {}\nDepends: libc6 (>= {GLIBC})\nSection: utils\nPriority: optional\n\
         Description: storage to GPU memory, measured and made fast\n \
         Measures the ways of bytes from files to GPU memory, with evidence for every number,\n \
         and runs programs that use cuFile with its own library.\n",
        job.version,
        size.div_ceil(1024),
    );
    let control = Entry { path: "control".into(), bytes: control.into(), mode: 0o644, link: None };
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", packed(job, &[control], "./")?),
        ("data.tar.gz", packed(job, entries, "./usr/")?),
    ];
    std::fs::write(&path, ar(job, &members))?;
    Ok(path)
}

/// Headers of 60 bytes of text; members begin at even offsets (ar(5)).
fn ar(job: &Job, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let (time, size) = (job.time, bytes.len());
        let header = format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 100_644);
        archive.extend(header.bytes());
        archive.extend(bytes);
        if size % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}
