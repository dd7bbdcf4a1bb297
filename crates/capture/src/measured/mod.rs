//! Figures that tools measured, as they printed them. Nothing is concluded from them here; devices
//! that they name are listed.

pub(crate) mod cufile_log;
pub(crate) mod nvidia_fs;
pub(crate) mod results;

pub use cufile_log::LogLine;
pub use gpuio_base::measured::{Measured, Sample};
pub use results::Results;

use gpuio_base::measured::{DCGMI_DMON, GDS_STATS, IOSTAT, MOST_TABLES, NVIDIA_DMON, Tool, iostat};

use crate::{CaptureError, Captured, Kind, lines, merge};

pub(crate) const KIND_OF_IOSTAT: Kind = Kind {
    command: IOSTAT.command,
    gives: "drives, their rates, request sizes, waits and use; also `-x`, `-m`, `-c`, `-o JSON`",
    most_bytes: crate::LOG,
    looks_like: |text| looks_like(&IOSTAT, text) || text.lines().any(iostat::is_head_of_cpu),
    add: |text, captured| {
        if let Some((release, _)) = text.lines().find_map(iostat::release_and_host_of) {
            captured.machine.host.kernel.release.get_or_insert_with(|| release.to_owned());
        }
        let from = captured.measured.len();
        add(&IOSTAT, text, captured)?;
        let tables = &captured.measured[from..];
        let names = tables.iter().flat_map(|table| &table.rows).map(|row| row.of.clone());
        let names: std::collections::BTreeSet<String> = names.collect();
        for name in names {
            if captured.machine.block.len() > crate::MOST_DEVICES {
                return Err(CaptureError::new(0, &name, 0, "fewer devices"));
            }
            merge::device_of_kernel_name(&mut captured.machine, &name);
        }
        Ok(())
    },
};

pub(crate) const KIND_OF_NVIDIA_DMON: Kind = Kind {
    command: NVIDIA_DMON.command,
    gives: "power, use, memory and PCIe rates of GPUs over time",
    most_bytes: crate::LOG,
    looks_like: |text| looks_like(&NVIDIA_DMON, text),
    add: |text, captured| add(&NVIDIA_DMON, text, captured),
};

pub(crate) const KIND_OF_DCGMI_DMON: Kind = Kind {
    command: DCGMI_DMON.command,
    gives: "DCGM's fields of GPUs over time, PCIe bytes among them",
    most_bytes: crate::LOG,
    looks_like: |text| looks_like(&DCGMI_DMON, text),
    add: |text, captured| add(&DCGMI_DMON, text, captured),
};

pub(crate) const KIND_OF_GDS_STATS: Kind = Kind {
    command: GDS_STATS.command,
    gives: "a process' totals, block sizes, counts by GPU, pool buffers",
    most_bytes: crate::SHORT,
    looks_like: |text| looks_like(&GDS_STATS, text),
    add: |text, captured| add(&GDS_STATS, text, captured),
};

fn looks_like(tool: &Tool, text: &str) -> bool {
    text.lines().any(tool.begins)
}

fn add(tool: &Tool, text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut reader = (tool.reader)();
    for (index, line) in lines(text) {
        if !reader.line(line) {
            captured.skip(CaptureError::new(index, line, 0, tool.wanted));
        }
    }
    reader.tables().into_iter().for_each(|table| put(captured, table));
    Ok(())
}

/// Adds a table that has rows.
pub(crate) fn put(captured: &mut Captured, table: Measured) {
    if !table.rows.is_empty() && captured.measured.len() < MOST_TABLES {
        captured.measured.push(table);
    }
}
