//! Parses what tools print (`lspci`, `nvidia-smi`, `mount`, `gdscheck` and others) into the facts
//! that `host` reads from the kernel, and packs and reads captures of a machine.
//!
//! Each text covers a part of a machine. [`add`] merges one into a [`Captured`], in any order:
//! functions are identified by PCI address, devices by kernel name, and what one text knows stays
//! when another does not. Prompt lines with the command, blank lines and lines of dots are
//! skipped. Any other line that the tool does not print is a [`CaptureError`] with line and
//! column. Only for `gdscheck`, whose releases differ, unknown lines are kept as notes. Nothing
//! here reads the system. A text may have 1 MiB (`lspci -vv` and `lstopo`: 32 MiB), and no more
//! devices than a machine can have.
//!
//! This is not part of `host`, because kernel interfaces promise a format, and tools print for
//! people: their texts come cut, filtered and pasted. `host` lends what both share: the spelling
//! of addresses, options of NFS mounts, kinds of file systems, the choice of a route. That a mount
//! point is named after an interface is no fact: the machine marks such a route as derived from
//! the name; `topo`, `pair` and `flow` use it, the rules of `check` do not.
//!
//! [`pack`] replaces secrets by position and format, the same value by the same token. A capture
//! contains exactly the files that a reader of the machine opened (`host::Recorder`), so it gives
//! the same answers.
//!
//! To add a text: a file `TOOL.rs` here and a row in `KINDS`.

mod by_path;
mod cufile_json;
mod error;
mod gdscheck;
mod hwloc;
mod ibdev2netdev;
mod ip_addr;
mod ip_route;
mod lspci_tree;
mod lspci_verbose;
mod mdstat;
mod merge;
mod mounts;
mod network;
mod nvidia_query;
mod nvidia_topo;
pub mod pack;
mod xml;

pub use error::CaptureError;
pub use network::Network;
pub use nvidia_topo::Matrix;

use gpuio_record::facts::Machine;

/// The longest text of the wordy kinds, in bytes. `lspci -vv` of a server of 200 functions has
/// 600 kB, `lstopo`'s XML with all caches 2 MB.
const LONG: usize = 32 << 20;
/// The longest text of the others, in bytes.
const SHORT: usize = 1 << 20;
/// More of each than any machine has: what goes beyond is an error, so that a hostile text costs
/// seconds at most.
const MOST_FUNCTIONS: usize = 16_384;
const MOST_DEVICES: usize = 4096;
const MOST_GPUS: usize = 1024;

/// The facts from captures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Captured {
    /// The machine, as far as it is known.
    pub machine: Machine,
    /// `nvidia-smi topo`'s matrix as printed: what the tool makes of the machine, to be held
    /// against it.
    pub matrix: Option<Matrix>,
    /// The facts from `ip`; those about cards and mounts are in `machine` too.
    pub network: Network,
}

/// A kind of text.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The command that prints it.
    pub command: &'static str,
    /// The longest text that is read, in bytes.
    pub most_bytes: usize,
    /// Whether a text looks like it: a guess by its first marks.
    looks_like: fn(&str) -> bool,
    add: fn(&str, &mut Captured) -> Result<(), CaptureError>,
}

/// Every kind of text, the more certain marks first.
pub const KINDS: [Kind; 13] = [
    hwloc::KIND,
    lspci_tree::KIND,
    lspci_verbose::KIND,
    nvidia_query::KIND,
    nvidia_topo::KIND,
    ibdev2netdev::KIND,
    by_path::KIND,
    mdstat::KIND,
    gdscheck::KIND,
    mounts::KIND,
    ip_addr::KIND,
    ip_route::KIND,
    cufile_json::KIND,
];

/// The kind that a text looks like; `None` when it looks like none.
#[must_use]
pub fn kind_of(text: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| (kind.looks_like)(text))
}

/// Adds a text's facts to `captured`. On an error it adds none.
///
/// # Errors
/// [`CaptureError`] with the first line and column that is not understood.
pub fn add(kind: &Kind, text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    if text.len() > kind.most_bytes {
        return Err(CaptureError::too_long(text.len()));
    }
    let mut with = captured.clone();
    (kind.add)(text, &mut with)?;
    merge::complete(&mut with.machine);
    with.network.complete(&mut with.machine);
    nvidia_topo::complete(&mut with);
    *captured = with;
    Ok(())
}

/// Lines with their index, without prompts that carry `command`, blank lines and lines of dots,
/// which people put for what they cut.
fn lines<'t>(text: &'t str, command: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    let all = text.lines().enumerate().map(|(index, line)| (index, line.trim_end()));
    all.filter(move |(_, line)| {
        let dots = line.bytes().all(|byte| byte == b'.' || byte == b' ');
        let at_prompt = line.contains(command) && line.contains(['$', '#', '>']);
        let prompt = at_prompt || line.ends_with(['$', '#']);
        !dots && !prompt
    })
}
