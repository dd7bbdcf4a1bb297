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
    // It loads only where NVIDIA's driver exports functions to it (`nvidia_p2p_get_pages`).
    let driver = ModuleFacts { name: "nvidia".to_owned(), ..module(true, None) };
    merge::module(&mut captured.machine, driver);
    captured.remarks.extend(moved(&sample));
    tables(&sample, captured);
    Ok(())
}

/// The I/Os that went through the module, which it counts where they are not of cuFile's
/// compatibility mode.
fn moved(sample: &NvidiaFsSample) -> Option<String> {
    let (reads, writes) = (sample.reads.ok, sample.writes.ok);
    let failed = sample.reads.failed.saturating_add(sample.writes.failed);
    let failed = if failed == 0 { "none failed".to_owned() } else { format!("{failed} failed") };
    (reads > 0 || writes > 0).then(|| {
        format!(
            "nvidia-fs counts {reads} reads and {writes} writes that succeeded since it was \
             loaded or reset, {failed}: GDS moved bytes on this machine. For which mounts is not \
             said."
        )
    })
}

fn tables(sample: &NvidiaFsSample, captured: &mut Captured) {
    let some = |count: u64| Some(count as f64);
    let columns = ["begun", "ok", "errors", "undone", "now", "MiB", "MiB/s lately", "latency us"];
    let mut counts = Measured::new(KIND.command, &columns);
    let mut push = |of: &str, values: [Option<u64>; 8]| {
        counts.push(of, values.map(|count| count.and_then(some)).to_vec());
    };
    for (of, one) in [("reads", sample.reads), ("writes", sample.writes)] {
        if one.begun > 0 || one.failed > 0 {
            let [begun, ok, failed, mib] =
                [one.begun, one.ok, one.failed, one.bytes >> 20].map(Some);
            let rate = one.rate.map(|rate| rate >> 20);
            push(of, [begun, ok, failed, None, one.in_flight, mib, rate, one.latency_us]);
        }
    }
    let further = sample.further;
    if further.maps.is_some_and(|maps| maps > 0) {
        let (begun, ok, errors) = (further.maps, further.maps_ok, further.map_errors);
        let undone = further.unmaps;
        push("buffers mapped (Mmap)", [begun, ok, errors, undone, None, None, None, None]);
    }
    if further.bar1_maps.is_some_and(|maps| maps > 0) {
        let (begun, errors, undone) =
            (further.bar1_maps, further.bar1_map_errors, further.bar1_freed);
        let now = further.bar1_active;
        push("mappings into BAR1", [begun, None, errors, undone, now, None, None, None]);
    }
    if let Some(mib) = further.shadow_mib {
        push("shadow buffers", [None, None, None, None, None, Some(mib), None, None]);
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
    fn counts_show_the_driver_and_that_bytes_moved() {
        let mut captured = Captured::default();
        let text = "$ cat /proc/driver/nvidia-fs/stats\nGDS Version: 0.9.0.743\nNVFS \
                    statistics(ver: 2.0)\nNVFS Driver(version: 2:3:1)\nReads : n=130 ok=128 \
                    err=0 readMiB=128 io_state_err=0\nReads : Bandwidth(MiB/s)=13081 \
                    Avg-Latency(usec)=9773\nBar1-map : n=9 ok=9 err=0 free=7 callbacks=0 \
                    active=2\nOps : Read=2 Write=0\n";
        crate::read("text", text, &mut captured).unwrap();
        let loaded =
            |name: &str| captured.machine.modules.iter().any(|one| one.name == name && one.loaded);
        assert!(loaded("nvidia") && loaded("nvidia_fs"), "{:?}", captured.machine.modules);
        let remark = captured.remarks.concat();
        assert!(remark.contains("128 reads") && remark.contains("none failed"), "{remark}");
        let rows: Vec<_> = captured.measured.iter().flat_map(|one| &one.rows).collect();
        let row = |of: &str| rows.iter().find(|row| row.of == of).unwrap().values.clone();
        let [reads, maps] = ["reads", "mappings into BAR1"].map(row);
        assert_eq!(reads[4..], [Some(2.0), Some(128.0), Some(13_081.0), Some(9773.0)]);
        assert_eq!(maps[3..5], [Some(7.0), Some(2.0)]);
    }

    #[test]
    fn statistics_that_are_not_there_are_of_a_module_that_is_not_loaded() {
        let mut captured = Captured::default();
        let text = "$ cat /proc/driver/nvidia-fs/stats\n\
                    cat: /proc/driver/nvidia-fs/stats: No such file or directory\n";
        crate::read("text", text, &mut captured).unwrap();
        assert_eq!(captured.machine.modules, [module(false, None)]);
    }
}
