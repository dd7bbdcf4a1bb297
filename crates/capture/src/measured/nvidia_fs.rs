//! `/proc/driver/nvidia-fs/stats` as text: what the driver has counted, and what `host` makes of
//! it.

use gpuio_base::measured::nvidia_fs::{NvidiaFsSample, is_line};
use gpuio_host::nvidia_fs::{crossed, parse_stats};
use gpuio_record::facts::ModuleFacts;

use super::{Measured, put};
use crate::{CaptureError, Captured, Kind, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "cat /proc/driver/nvidia-fs/stats",
    gives: "nvidia-fs: its version, counts, errors, shares across root ports",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines().any(|line| line.contains("NVFS statistics(ver") || is_absent(line))
    },
    add,
};

/// `cat: /proc/driver/nvidia-fs/stats: No such file or directory`: the module makes the directory.
fn is_absent(line: &str) -> bool {
    line.contains(": ")
        && line.contains("/proc/driver/nvidia-fs")
        && line.trim_end().ends_with("No such file or directory")
}

fn module(loaded: bool, version: Option<String>) -> ModuleFacts {
    ModuleFacts { name: "nvidia_fs".to_owned(), loaded, version, ..ModuleFacts::default() }
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut own = String::new();
    for (index, line) in lines(text) {
        if is_absent(line) {
            merge::module(&mut captured.machine, module(false, None));
            continue;
        }
        if is_line(line) {
            own.push_str(line.trim_end());
            own.push('\n');
        } else {
            captured.skip(CaptureError::new(index, line, 0, "a line of nvidia-fs' statistics"));
        }
    }
    if own.is_empty() {
        return Ok(());
    }
    let first = text.lines().next().unwrap_or_default();
    let mut sample = parse_stats(&own)
        .map_err(|_| CaptureError::new(0, first, 0, "counts, as nvidia-fs prints them"))?;
    let enabled = own.lines().find_map(|line| line.strip_prefix("IO stats:"));
    sample.counts = enabled.map(|rest| rest.trim_start().starts_with("Enabled"));
    captured.machine.settings.cross_root_ports = crossed(&sample);
    let version = sample.driver_version.as_ref().map(|version| version.replace(':', "."));
    merge::module(&mut captured.machine, module(true, version));
    tables(&sample, captured);
    Ok(())
}

fn tables(sample: &NvidiaFsSample, captured: &mut Captured) {
    let some = |count: u64| Some(count as f64);
    let mut counts = Measured::new(KIND.command, &["begun", "ok", "errors", "MiB"]);
    for (of, one) in [("reads", sample.reads), ("writes", sample.writes)] {
        if one.begun > 0 || one.failed > 0 {
            let mib = some(one.bytes >> 20);
            counts.push(of, vec![some(one.begun), some(one.ok), some(one.failed), mib]);
        }
    }
    let further = sample.further;
    if further.maps.is_some_and(|maps| maps > 0) {
        let values = [further.maps, further.maps_ok, further.map_errors, None];
        counts.push("buffers mapped (Mmap)", values.map(|count| count.and_then(some)).to_vec());
        let unmapped = vec![None, further.unmaps.and_then(some), None, None];
        counts.push("buffers unmapped (munmap)", unmapped);
    }
    if let Some(mib) = further.shadow_mib {
        counts.push("shadow buffers, now", vec![None, None, None, some(mib)]);
    }
    put(captured, counts);
    let mut errors = Measured::new(KIND.command, &["errors"]);
    for (of, count) in [
        ("mappings into BAR1", further.bar1_map_errors),
        ("requests with pages of processor and GPU", further.mixed_page_errors),
        ("scatter lists", further.scatter_errors),
        ("mappings for DMA", further.dma_map_errors),
        ("references to mappings for DMA", further.dma_reference_errors),
    ] {
        if let Some(count) = count.filter(|count| *count > 0) {
            errors.push(of, vec![some(count)]);
        }
    }
    put(captured, errors);
    let columns = ["registered MiB", "cache MiB", "most pinned MiB", "across root ports %"];
    let mut gpus = Measured::new(KIND.command, &columns);
    for (gpu, one) in sample.gpus.iter().zip(&sample.of_gpus) {
        let mib = |bytes: Option<u64>| bytes.map(|bytes| (bytes >> 20) as f64);
        let share = one.cross_root_port_percent.map(|share| share as f64);
        let values = vec![
            mib(one.registered_bytes),
            mib(one.cache_bytes),
            mib(one.most_pinned_bytes),
            share,
        ];
        gpus.push(gpu, values);
    }
    put(captured, gpus);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_that_are_not_there_are_of_a_module_that_is_not_loaded() {
        let mut captured = Captured::default();
        let text = "$ cat /proc/driver/nvidia-fs/stats\n\
                    cat: /proc/driver/nvidia-fs/stats: No such file or directory\n";
        crate::read("text", text, &mut captured).unwrap();
        assert_eq!(captured.machine.modules, [module(false, None)]);
    }
}
