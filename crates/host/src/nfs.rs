//! NFS mounts: facts from their options, and the bytes they moved: `/proc/self/mountstats` (Linux
//! 2.6.17,
//! `fs/nfs/super.c`).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use gpuio_record::facts::NfsFacts;

use crate::LineFault;
use crate::parse::unescape_octal;

/// Bytes of one mount since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NfsSample {
    /// Where it is mounted, escapes undone.
    pub mount_point: PathBuf,
    /// Bytes that programs read with O_DIRECT.
    pub direct_read_bytes: u64,
    /// Bytes that programs wrote with O_DIRECT.
    pub direct_write_bytes: u64,
    /// Bytes that the server delivered.
    pub server_read_bytes: u64,
    /// Bytes that the server took.
    pub server_write_bytes: u64,
}

/// Parses `/proc/self/mountstats`: NFS mounts that have a line of bytes. Other mounts and lines
/// are passed over.
///
/// # Errors
/// [`LineFault`] when a line of bytes has not at least six numbers.
pub fn parse_mountstats(text: &[u8]) -> Result<Vec<NfsSample>, LineFault> {
    let mut found: Vec<NfsSample> = Vec::new();
    let mut current: Option<PathBuf> = None;
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if line.starts_with(b"device ") {
            current = nfs_mount(line);
            continue;
        }
        let (Some(_), Some(numbers)) = (&current, line.trim_ascii().strip_prefix(b"bytes:")) else {
            continue;
        };
        let numbers = String::from_utf8_lossy(numbers);
        let malformed = || LineFault::new(index, numbers.trim(), "six or more numbers");
        let mut values = [0u64; 6];
        let mut words = numbers.split_whitespace();
        for value in &mut values {
            *value = words.next().ok_or_else(malformed)?.parse().map_err(|_| malformed())?;
        }
        let [_, _, direct_read_bytes, direct_write_bytes, server_read_bytes, server_write_bytes] =
            values;
        found.push(NfsSample {
            mount_point: current.take().unwrap_or_default(),
            direct_read_bytes,
            direct_write_bytes,
            server_read_bytes,
            server_write_bytes,
        });
    }
    Ok(found)
}

/// `device SERVER:EXPORT mounted on PATH with fstype nfs4 statvers=1.1`; `None` for others.
fn nfs_mount(line: &[u8]) -> Option<PathBuf> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [b"device", _, b"mounted", b"on", at, b"with", b"fstype", kind, ..] = words.as_slice()
    else {
        return None;
    };
    matches!(*kind, b"nfs" | b"nfs4").then(|| PathBuf::from(OsString::from_vec(unescape_octal(at))))
}

/// Facts from a mount's source (`SERVER:EXPORT`) and options (nfs(5)). The interface stays unknown:
/// it comes from the routes.
pub fn of_options<'o>(source: &str, options: impl Iterator<Item = &'o str>) -> NfsFacts {
    let (server, export) = split_source(source);
    let mut facts = NfsFacts {
        server: server.to_owned(),
        export: export.to_owned(),
        connections: 1,
        ..NfsFacts::default()
    };
    for option in options {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match key {
            // nfs(5): these words alone stand for `proto=`.
            "rdma" | "tcp" | "udp" => facts.transport = Some(key.to_owned()),
            "vers" | "nfsvers" => facts.version = Some(value.to_owned()),
            "proto" => facts.transport = Some(value.to_owned()),
            "addr" => facts.address = Some(value.to_owned()),
            "port" => facts.port = value.parse().ok(),
            "rsize" => facts.read_bytes = value.parse().ok(),
            "wsize" => facts.write_bytes = value.parse().ok(),
            "nconnect" => facts.connections = value.parse().unwrap_or(1),
            _ => {}
        }
    }
    facts
}

/// `server:/export` or `[fd00::7]:/export`; the brackets go.
fn split_source(source: &str) -> (&str, &str) {
    if let Some((server, export)) = source.strip_prefix('[').and_then(|rest| rest.split_once("]:"))
    {
        return (server, export);
    }
    source.split_once(":/").map_or_else(
        || source.split_once(':').unwrap_or((source, "")),
        |(server, _)| (server, &source[server.len() + 1..]),
    )
}
