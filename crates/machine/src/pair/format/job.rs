//! The job file.

use gpuio_base::units::{format_bytes, is_hidden, printable_short};

use super::short;
use crate::pair::{Direction, Given, Pair, Pairing};

/// A job file in gpuio's dialect, all jobs at once: a section for each GPU, and one more for each
/// further store of a GPU. `None` where nothing can be opened.
///
/// A name that a job file can't hold (one with a control character in it) leaves its section out; a
/// comment says so.
pub fn job_file(pairing: &Pairing) -> Option<String> {
    if !pairing.pairs.iter().flat_map(|pair| &pair.stores).any(can_be_opened) {
        return None;
    }
    let load = pairing.load;
    // CUDA's own order begins with the fastest GPU (CUDA C++ Programming Guide, environment
    // variables: CUDA_DEVICE_ORDER).
    let order = if pairing.pairs.iter().any(|pair| pair.gpu.is_some()) {
        "# GPU numbers are nvidia-smi's: with GPUs of several kinds set \
         CUDA_DEVICE_ORDER=PCI_BUS_ID.\n"
    } else {
        ""
    };
    let mut out = format!(
        "# Made by gpuio plan. Run it: gpuio bench FILE; look first: gpuio bench FILE --dry-run\n\
         # All jobs run at the same time. Data files are made where they are missing.\n{order}\n\
         [global]\nrw = {}\nbs = {}\nruntime = 30s\n",
        load.rw(),
        format_bytes(load.block_bytes)
    );
    for pair in &pairing.pairs {
        for (number, given) in pair.stores.iter().enumerate() {
            out.push_str(&section(pairing, pair, number, given));
        }
    }
    Some(out)
}

fn section(pairing: &Pairing, pair: &Pair, number: usize, given: &Given) -> String {
    let target = given.directory.as_deref().unwrap_or(&given.name);
    if !can_be_opened(given) {
        return format!("\n# left out, the kernel's name of this drive is not known: {target}\n");
    }
    if !can_be_written(target) {
        return format!("\n# left out, a job file can't have this name: {target:?}\n");
    }
    let name = match (&pair.gpu, pair.stores.len()) {
        (Some(gpu), 0 | 1) => gpu.to_lowercase(),
        (Some(gpu), _) => format!("{}-{}", gpu.to_lowercase(), number + 1),
        (None, _) => format!("host-{}", gpu_index(pairing, pair) + 1),
    };
    let mut out = format!("\n[{name}]\n");
    for line in comments(pair, given) {
        out.push_str(&format!("# {}\n", printable_short(&line)));
    }
    let start = &pair.start;
    let stores = u32::try_from(pair.stores.len().max(1)).unwrap_or(1);
    match &pair.gpu {
        Some(gpu) => {
            out.push_str("path = auto\n");
            let digits = gpu.trim_start_matches(|c: char| !c.is_ascii_digit());
            out.push_str(&format!("gpu = {digits}\n"));
        }
        None => {
            out.push_str("path = host\n");
            out.push_str(&format!("depth = {}\n", start.depth));
            if let Some(node) = pair.node {
                out.push_str(&format!("numa = {node}\n"));
            }
        }
    }
    out.push_str(&format!("threads = {}\n", start.threads.div_ceil(stores)));
    match &given.directory {
        Some(directory) => {
            out.push_str(&format!("directory = {}\n", value(&directory.replace(':', "\\:"))));
            out.push_str(&format!("file_prefix = gpuio-{name}\n"));
        }
        None => out.push_str(&format!("filename = {}\n", value(&given.name).replace(':', "\\:"))),
    }
    out
}

/// Whether there is a path by which a job opens it: a drive that only PCI shows has none.
pub(crate) fn can_be_opened(given: &Given) -> bool {
    given.directory.is_some() || given.name.starts_with('/')
}

/// Whether a value can hold it: a blank and a comment's sign begin a comment, blanks at the ends
/// are lost, and invisible characters are shown as escapes.
pub(crate) fn can_be_written(name: &str) -> bool {
    let comment = name.match_indices(['#', ';']).any(|(at, _)| name[..at].ends_with([' ', '\t']));
    !comment && !name.contains(is_hidden) && name.trim() == name
}

/// `${NAME}` would be replaced from the environment.
pub(crate) fn value(text: &str) -> String {
    text.replace("${", "$${")
}

fn gpu_index(pairing: &Pairing, pair: &Pair) -> usize {
    pairing.pairs.iter().position(|other| std::ptr::eq(other, pair)).unwrap_or(0)
}

fn comments(pair: &Pair, given: &Given) -> Vec<String> {
    let mut lines = vec![pair.why.clone()];
    let on = given.on.join(" ");
    let drives = given.drives.join(" ");
    if given.drives.is_empty() || drives == on {
        lines.push(format!("{} on {on}", given.name));
    } else {
        lines.push(format!("{} on {on}: {drives}", given.name));
    }
    if let (Some(gpu), Some(pci)) = (&pair.gpu, &pair.pci) {
        lines.push(format!("{gpu} is {}", short(pci)));
    }
    let start = &pair.start;
    lines.push(format!("threads: {}", start.why));
    if pair.gpu.is_some() {
        lines.push(format!(
            "depth: the path that auto takes has its own; with path=staged begin with depth={}",
            start.depth
        ));
    }
    if given.directory.is_none() {
        lines.push("a raw device is only read; that takes root".to_owned());
    }
    lines
}

/// The word for a section of a write job.
pub(super) fn is_write(pairing: &Pairing) -> bool {
    pairing.load.direction == Direction::Write
}
