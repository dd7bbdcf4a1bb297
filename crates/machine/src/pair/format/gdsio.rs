//! The same as a configuration of gdsio.

use gpuio_base::units::format_bytes;

use super::job::{can_be_opened, is_write};
use crate::pair::{Given, Pairing};

/// A configuration file of NVIDIA's `gdsio` (format: its user guide, "gdsio" in the GPUDirect
/// Storage documentation): keys of its jobs, one for each GPU and store. gdsio makes its files
/// only in write jobs, so a read run needs a write run with the same file before it, and has a
/// comment on that.
/// `None` without GPUs, or where nothing can be opened.
pub fn gdsio(pairing: &Pairing) -> Option<String> {
    let load = pairing.load;
    let mut out =
        String::from("# Made by gpuio plan --format gdsio. Make the directories first.\n");
    if !is_write(pairing) {
        out.push_str("# gdsio reads only what it wrote: run it once with rw=write first.\n");
    }
    out.push_str(&format!(
        "[global]\nname=gpuio-plan\nxfer_type=0\nrw={}\nbs={}\nsize=1G\nruntime=30\n",
        load.rw(),
        format_bytes(load.block_bytes)
    ));
    let mut job = 0;
    for pair in &pairing.pairs {
        let Some(number) = pair.gpu.as_ref().and_then(|gpu| gpu.strip_prefix("GPU")) else {
            continue;
        };
        let stores = u32::try_from(pair.stores.len().max(1)).unwrap_or(1);
        for given in pair.stores.iter().filter(|given| can_be_opened(given)) {
            job += 1;
            out.push_str(&format!("\n[job{job}]\n"));
            if let Some(node) = pair.node {
                out.push_str(&format!("numa_node={node}\n"));
            }
            // gdsio has one I/O in flight per thread.
            let threads = pair.start.sync_threads.div_ceil(stores);
            out.push_str(&format!("# threads of one I/O each: {}\n", pair.start.why));
            out.push_str(&format!(
                "gpu_dev_id={number}\nnum_threads={threads}\n{}\n",
                target(given, number)
            ));
        }
    }
    (job > 0).then_some(out)
}

/// Jobs in one directory would have files of the same names.
fn target(given: &Given, gpu: &str) -> String {
    match &given.directory {
        Some(directory) => {
            format!("directory={}/gpuio-gpu{gpu}", directory.trim_end_matches('/'))
        }
        None => format!("filename={}", given.name),
    }
}
