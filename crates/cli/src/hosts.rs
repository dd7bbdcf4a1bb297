//! Several hosts: a directory with a capture of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpuio_capture::Captured;
use gpuio_host::Root;

use crate::captured;
use crate::failure::Failure;
use crate::source;

pub(crate) struct Host {
    /// The capture's file name without `.tar`: the host's name as `uname -n` prints it.
    pub(crate) name: String,
    pub(crate) captured: Captured,
    /// Addresses and names of servers were replaced: they can't be compared between hosts.
    pub(crate) addresses_replaced: bool,
}

/// The hosts whose captures lie in a directory, in the order of their names with numbers as
/// numbers. An entry is `HOST.tar`, or a directory `HOST` with copies of `/sys` and `/proc` or with
/// files as for `--from`. Hidden entries are passed over.
pub(crate) fn read(dir: &Path) -> Result<Vec<Host>, Failure> {
    let at = dir.display();
    let usage = |why: String| Failure::Usage(format!("--hosts {at}: {why}"));
    let entries = std::fs::read_dir(dir).map_err(|error| usage(error.to_string()))?;
    let mut found: BTreeMap<Vec<(String, u64)>, (String, PathBuf)> = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(|error| usage(error.to_string()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let host = if path.is_dir() { Some(name.as_str()) } else { name.strip_suffix(".tar") };
        let host = host.filter(|host| !host.is_empty()).ok_or_else(|| {
            usage(format!(
                "{name} is no capture of a host; an entry is HOST.tar as gpuio topo --capture \
                 writes it, or a directory HOST"
            ))
        })?;
        let host = gpuio_base::units::printable(host).into_owned();
        if let Some((_, other)) = found.insert(natural(&host), (host.clone(), path.clone())) {
            let (one, other) = (path.display(), other.display());
            return Err(usage(format!("{one} and {other} are of one host; remove one")));
        }
    }
    if found.is_empty() {
        return Err(usage(
            "it holds no capture; make one on each host: gpuio topo --capture HOST.tar \
             --keep-addresses"
                .to_owned(),
        ));
    }
    found.into_values().map(|(name, path)| one(name, &path)).collect()
}

fn one(name: String, path: &Path) -> Result<Host, Failure> {
    let whole = |root: &Root| Captured::of(gpuio_load::machine::read(root));
    if !path.is_dir() {
        let bytes = captured::bytes(path).map_err(of_hosts)?;
        let root = captured::tar(path, &bytes).map_err(of_hosts)?;
        let addresses_replaced = !captured::has_addresses(&root);
        return Ok(Host { name, captured: whole(&root), addresses_replaced });
    }
    if path.join("sys").is_dir() || path.join("proc").is_dir() {
        let captured = whole(&Root::at(path));
        return Ok(Host { name, captured, addresses_replaced: false });
    }
    let entries = std::fs::read_dir(path)
        .map_err(|error| Failure::Usage(format!("--hosts {}: {error}", path.display())))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.is_file());
    files.sort();
    if files.is_empty() {
        let at = path.display();
        let why = "it holds neither sys and proc nor the output of tools";
        return Err(Failure::Usage(format!("--hosts {at}: {why}")));
    }
    let captured = source::of_one_host(&files).map_err(of_hosts)?;
    Ok(Host { name, captured, addresses_replaced: false })
}

/// The reader of captures names the flag `--from`.
fn of_hosts(failure: Failure) -> Failure {
    match failure {
        Failure::Usage(text) => Failure::Usage(text.replacen("--from ", "--hosts ", 1)),
        other => other,
    }
}

/// Words and numbers by turns.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let word = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (digits, after) = after.split_at(digits);
        // The one of equal numbers with fewer zeros in front comes first; more digits than a number
        // has are compared as a word.
        parts.push((word.to_owned(), digits.parse().unwrap_or(u64::MAX)));
        parts.push((digits.to_owned(), 0));
        rest = after;
    }
    parts
}
