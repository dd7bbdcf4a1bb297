//! Where facts are read from: this machine, or what was captured of another.

use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Read as _;
use std::path::Path;

use gpuio_capture::pack;
use gpuio_host::Root;

use crate::failure::Failure;
use crate::output::Output;

/// Longest capture that is read: what it holds is bounded besides.
const MOST_BYTES: u64 = 512 << 20;

/// The running system, a directory with a captured tree, or a capture's tar.
pub(crate) fn root(from: Option<&Path>) -> Result<Root, Failure> {
    let Some(from) = from else {
        return Ok(Root::live());
    };
    if is_tar(from) {
        return tar(from);
    }
    if from.join("sys").is_dir() || from.join("proc").is_dir() {
        return Ok(Root::at(from));
    }
    let at = from.display();
    Err(Failure::Usage(format!(
        "--from {at}: there is neither {at}/sys nor {at}/proc, and it is no tar; give the \
         directory of a captured tree, or what gpuio topo --capture wrote"
    )))
}

/// Whether a file begins as a tar does (`ustar` at byte 257).
pub(crate) fn is_tar(path: &Path) -> bool {
    let mut start = [0u8; 262];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start[257..] == b"ustar"
}

fn tar(path: &Path) -> Result<Root, Failure> {
    let refused = |why: String| Failure::Usage(format!("--from {}: {why}", path.display()));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| refused(error.to_string()))?;
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| refused(error.to_string()))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(refused("it is longer than 512 MiB, as no capture is".to_owned()));
    }
    let tree = pack::read(&bytes).map_err(|error| refused(error.to_string()))?;
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
