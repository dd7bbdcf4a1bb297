//! Source of facts: this machine, or a capture of another.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;

use gpuio_base::units::many;
use gpuio_capture::pack;
use gpuio_host::{Root, input};

use crate::failure::Failure;
use crate::output::{Output, Replace};

/// The running system, or a directory with a captured tree.
pub(crate) fn root(from: Option<&Path>) -> Result<Root, Failure> {
    let Some(from) = from else {
        return Ok(Root::live());
    };
    if from.join("sys").is_dir() || from.join("proc").is_dir() {
        return Ok(Root::at(from));
    }
    let at = from.display();
    Err(Failure::Usage(format!(
        "--from {at}: there is neither {at}/sys nor {at}/proc, and it is not a tar file; name the \
         directory of a captured tree, or a file from gpuio topo --capture"
    )))
}

/// The content of a capture: read once, as it may be a pipe.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    input::read(path, input::MOST_CAPTURE)
        .map_err(|error| Failure::Usage(format!("--from {}: {error}", path.display())))
}

/// Whether it begins as a tar file does (`ustar` at byte 257).
pub(crate) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// Whether a tar begins as one of `gpuio topo --capture` does, or with `/sys` or `/proc`.
pub(crate) fn is_capture(bytes: &[u8]) -> bool {
    let name = bytes.get(..100).unwrap_or_default();
    let name = name.strip_prefix(b"./").unwrap_or(name);
    [pack::MANIFEST.as_bytes(), b"sys/", b"proc/", b"sys\0", b"proc\0"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// The machine in a capture's tar.
pub(crate) fn tar(path: &Path, bytes: &[u8]) -> Result<Root, Failure> {
    let tree = pack::read(bytes)
        .map_err(|error| Failure::Usage(format!("--from {}: {error}", path.display())))?;
    Ok(Root::of(tree))
}

/// Whether a capture has the addresses and names of its machine.
pub(crate) fn has_addresses(root: &Root) -> bool {
    root.read(pack::ADDRESSES_KEPT).ok().flatten().is_some()
}

/// Writes a capture of a machine to a new file, and describes its content in a few words.
pub(crate) fn write(root: Root, path: &Path, keep_addresses: bool) -> Result<String, Failure> {
    let output = Output::begin("--capture", path, Replace::No)?;
    let (bytes, words) = packed(root, keep_addresses)
        .map_err(|why| Failure::Ran(format!("--capture {}: {why}", path.display())))?;
    let at = output.save("the capture", &bytes)?;
    Ok(format!("Captured to {}: {words}", at.display()))
}

fn packed(root: Root, keep_addresses: bool) -> Result<(Vec<u8>, String), String> {
    let names = host_names(&root);
    let live = root.is_live();
    let (root, recorder) = root.recording();
    let machine = gpuio_load::machine::read(&root);
    let mut tree = recorder.tree();
    if live {
        gpuio_load::machine::put_answers(&machine, &mut tree).map_err(|error| error.to_string())?;
    }
    // Seeded by the system and not kept; the only random value here.
    let key = RandomState::new().build_hasher().finish();
    let redacted = match keep_addresses {
        true => pack::redact_but_addresses(&tree, key),
        false => pack::redact(&tree, &names, key),
    };
    let bytes = pack::write(&redacted).map_err(|error| error.to_string())?;
    let replaced: Vec<String> =
        redacted.counts.iter().map(|(kind, count)| format!("{count} {}", kind.words())).collect();
    let replaced = if replaced.is_empty() { "none found".to_owned() } else { replaced.join(", ") };
    let words = format!(
        "{}.\nReplaced: {replaced}.\nKept: mount points, names of network interfaces and \
         block devices{}. The capture has the full list in {}: check it before you share the \
         file.\n",
        many(redacted.taken.len() as u64, "file"),
        if keep_addresses { ", host names, addresses and mount sources" } else { "" },
        pack::MANIFEST,
    );
    Ok((bytes, words))
}

/// The host name, with and without its domain.
fn host_names(root: &Root) -> Vec<String> {
    let host_name = root.word("proc/sys/kernel/hostname").ok().flatten().unwrap_or_default();
    let short = host_name.split('.').next().unwrap_or_default().to_owned();
    // The default name of unnamed hosts, which is part of other words.
    let names = [host_name, short].into_iter();
    names.filter(|name| !name.is_empty() && name != "localhost" && name != "(none)").collect()
}
