//! The package of RHEL, Fedora and SUSE, by the crate `rpm`.

use std::path::PathBuf;

use anyhow::Context as _;
use rpm::{CompressionWithLevel, Dependency, FileOptions, PackageBuilder};

use crate::build::GLIBC;
use crate::{Entry, Job};

pub(crate) fn write(job: &Job, entries: &[Entry]) -> anyhow::Result<PathBuf> {
    let machine = job.machine();
    let path = job.out.join(format!("gpuio-{}-1.{machine}.rpm", job.version));
    let time = u32::try_from(job.time).context("a date after 2106")?;
    let config =
        rpm::BuildConfig::default().compression(CompressionWithLevel::Gzip(9)).source_date(time);
    let mut builder = PackageBuilder::new(
        "gpuio",
        &job.version,
        "Apache-2.0",
        machine,
        "Storage to GPU memory, measured and made fast",
    );
    builder
        .using_config(config)
        .release("1")
        .description(
            "Measures the ways of bytes from files to GPU memory, with evidence for every number, \
             and runs programs that use cuFile with its own library.",
        )
        .requires(Dependency::greater_eq("glibc", GLIBC));
    for entry in entries {
        let to = format!("/usr/{}", entry.path);
        match &entry.link {
            Some(link) => builder.with_symlink(FileOptions::symlink(to, link.clone()))?,
            None => {
                let options = FileOptions::new(to).permissions(u16::try_from(entry.mode)?);
                builder.with_file_contents(entry.bytes.clone(), options)?
            }
        };
    }
    builder.build()?.write_file(&path)?;
    Ok(path)
}
