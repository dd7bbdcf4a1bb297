//! Where facts are read from: this machine, or what was captured of another.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;

use gpuio_capture::pack;
use gpuio_host::{Root, input};

use crate::failure::Failure;
use crate::output::Output;

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
        "--from {at}: there is neither {at}/sys nor {at}/proc, and it is no tar; give the \
         directory of a captured tree, or what gpuio topo --capture wrote"
    )))
}

/// A capture: read once, as it may be a pipe.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    input::read(path, input::MOST_CAPTURE)
        .map_err(|error| Failure::Usage(format!("--from {}: {error}", path.display())))
}

/// Whether it begins as a tar does (`ustar` at byte 257).
pub(crate) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// The machine in a capture's tar.
pub(crate) fn tar(path: &Path, bytes: &[u8]) -> Result<Root, Failure> {
    let tree = pack::read(bytes)
        .map_err(|error| Failure::Usage(format!("--from {}: {error}", path.display())))?;
    Ok(Root::of(tree))
}

/// Writes a capture of a machine to a new file; says in a few words what is in it.
pub(crate) fn write(root: Root, path: &Path) -> Result<String, Failure> {
    let output = Output::begin("--capture", path)?;
    let (bytes, words) =
        packed(root).map_err(|why| Failure::Ran(format!("--capture {}: {why}", path.display())))?;
    let at = output.save("the capture", &bytes)?;
    Ok(format!("Captured to {}: {words}", at.display()))
}

fn packed(root: Root) -> Result<(Vec<u8>, String), String> {
    let names = host_names(&root);
    let live = root.is_live();
    let (root, recorder) = root.recording();
    let machine = gpuio_load::machine::read(&root);
    let mut tree = recorder.tree();
    if live {
        gpuio_load::machine::put_gpus(&machine, &mut tree).map_err(|error| error.to_string())?;
    }
    // Seeded by the system, and forgotten: nothing else here is random.
    let key = RandomState::new().build_hasher().finish();
    let redacted = pack::redact(&tree, &names, key);
    let bytes = pack::write(&redacted).map_err(|error| error.to_string())?;
    let replaced: Vec<String> =
        redacted.counts.iter().map(|(kind, count)| format!("{count} {}", kind.words())).collect();
    let replaced = if replaced.is_empty() { "none met".to_owned() } else { replaced.join(", ") };
    let words = format!(
        "{} files.\nReplaced: {replaced}.\nKept: places of mounts, names of interfaces and block \
         devices. The whole list is in it, as {}: look before you send it.\n",
        redacted.taken.len(),
        pack::MANIFEST,
    );
    Ok((bytes, words))
}

/// The host's name, whole and without its domain.
fn host_names(root: &Root) -> Vec<String> {
    let told = root.word("proc/sys/kernel/hostname").ok().flatten().unwrap_or_default();
    let short = told.split('.').next().unwrap_or_default().to_owned();
    // That is what hosts without a name are called, and it is part of other words.
    let names = [told, short].into_iter();
    names.filter(|name| !name.is_empty() && name != "localhost" && name != "(none)").collect()
}
