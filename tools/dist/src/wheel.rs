//! The Python wheel: the module, its library, and the program as the command (PEP 427).
//!
//! A writer of its own, since nothing is compiled for it: the module is plain Python over ctypes,
//! and program and library are built already. `py3-none` fits every Python from 3.9 on.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::{Entry, Job};

/// Objects that the module opens.
const LIBRARIES: [&str; 2] = ["libgpuio.so.0", "libgpuio_softgpu.so"];

/// Names that other programs look up: vLLM calls the functions of its group when it starts.
const ENTRY_POINTS: &str = "[vllm.general_plugins]\ngpuio = gpuio._vllm:register\n";

pub(crate) fn write(job: &Job, entries: &[Entry]) -> anyhow::Result<PathBuf> {
    let tag = format!("py3-none-manylinux_2_28_{}", job.machine());
    let path = job.out.join(format!("gpuio-{}-{tag}.whl", job.version));
    let about = format!("gpuio-{}.dist-info", job.version);
    let mut files = module(&job.root.join("python/gpuio"))?;
    for name in LIBRARIES {
        files.push((format!("gpuio/lib/{name}"), staged(entries, &format!("lib/gpuio/{name}"))?));
    }
    let scripts = format!("gpuio-{}.data/scripts/gpuio", job.version);
    files.push((scripts, staged(entries, "bin/gpuio")?));
    files.push((format!("{about}/METADATA"), metadata(job)?.into_bytes()));
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: gpuio-dist\nRoot-Is-Purelib: false\nTag: {tag}\n");
    files.push((format!("{about}/WHEEL"), wheel.into_bytes()));
    files.push((format!("{about}/entry_points.txt"), ENTRY_POINTS.into()));
    files.push((format!("{about}/licenses/LICENSE"), std::fs::read(job.root.join("LICENSE"))?));
    let record = record(&files, &about);
    files.push((format!("{about}/RECORD"), record.into_bytes()));
    let mut archive = ZipWriter::new(std::fs::File::create(&path)?);
    for (name, bytes) in &files {
        let runs = name.contains("/scripts/") || name.contains(".so");
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .unix_permissions(if runs { 0o755 } else { 0o644 });
        archive.start_file(name.as_str(), options)?;
        archive.write_all(bytes)?;
    }
    archive.finish()?;
    Ok(path)
}

fn module(directory: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_file() {
            let name = path.file_name().context("a file has a name")?.display().to_string();
            files.push((format!("gpuio/{name}"), std::fs::read(&path)?));
        }
    }
    files.sort();
    Ok(files)
}

fn staged(entries: &[Entry], path: &str) -> anyhow::Result<Vec<u8>> {
    let entry = entries.iter().find(|entry| entry.path == path);
    Ok(entry.with_context(|| format!("{path} is not in the tree"))?.bytes.clone())
}

fn metadata(job: &Job) -> anyhow::Result<String> {
    let page = std::fs::read_to_string(job.root.join("docs/python.md"))?;
    Ok(format!(
        "Metadata-Version: 2.4\nName: gpuio\nVersion: {}\n\
         Summary: Storage to GPU memory, measured and made fast\n\
         License-Expression: Apache-2.0\nLicense-File: LICENSE\n\
         Requires-Python: >=3.9\nProvides-Extra: frames\nRequires-Dist: pandas; extra == 'frames'\n\
         Classifier: Operating System :: POSIX :: Linux\nClassifier: Typing :: Typed\n\
         Description-Content-Type: text/markdown\n\n{page}",
        job.version
    ))
}

/// Name, hash and size of each file. It does not have its own.
fn record(files: &[(String, Vec<u8>)], about: &str) -> String {
    let mut text = String::new();
    for (name, bytes) in files {
        let hash = base64(&Sha256::digest(bytes));
        text.push_str(&format!("{name},sha256={hash},{}\n", bytes.len()));
    }
    text.push_str(&format!("{about}/RECORD,,\n"));
    text
}

/// For URLs, without padding (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let word = part.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte));
        let word = word << (8 * (3 - part.len()));
        for digit in 0..=part.len() {
            let at = (word >> (18 - 6 * digit)) & 63;
            text.push(char::from(DIGITS[at as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "-_8");
    }
}
