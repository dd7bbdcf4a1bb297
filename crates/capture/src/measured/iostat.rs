//! `iostat` (sysstat), with any of its flags and columns: a block per interval, with the
//! processors' shares and a line per device.

use super::{Measured, below, put};
use crate::{CaptureError, Captured, Kind, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "iostat",
    gives: "drives, their rates, request sizes, waits and use; also `-x`, `-m`, `-c`",
    most_bytes: crate::LOG,
    looks_like: |text| text.lines().any(|line| is_head(line) || is_head_of_cpu(line)),
    add,
};

fn is_head(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = matches!(words.next(), Some("Device" | "Device:"));
    let known =
        ["tps", "r/s", "rrqm/s", "kB_read/s", "MB_read/s", "rkB/s", "rMB/s", "%util", "aqu-sz"];
    first && words.any(|word| known.contains(&word))
}

fn is_head_of_cpu(line: &str) -> bool {
    line.trim_start().starts_with("avg-cpu:") && line.contains("%idle")
}

/// The line above everything: `Linux 5.15.0-1 (dgx2)  11/11/24  _x86_64_ (96 CPU)`.
pub(crate) fn host_of(line: &str) -> Option<&str> {
    let (_, rest) = line.strip_prefix("Linux ")?.split_once(" (")?;
    let (host, rest) = rest.split_once(')')?;
    rest.contains(" CPU)").then_some(host)
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut head: Vec<&str> = Vec::new();
    let mut processors: Vec<&str> = Vec::new();
    let mut tables: Vec<Measured> = Vec::new();
    for (index, line) in lines(text) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if is_head_of_cpu(line) {
            processors = words[1..].to_vec();
        } else if is_head(line) {
            head = words[1..].to_vec();
            processors.clear();
        } else if let Some(values) = below(&processors, &words).filter(|_| !processors.is_empty()) {
            table(&mut tables, &processors).push("processors", values);
            processors.clear();
        } else if let Some((device, values)) = row(&head, &words) {
            device_of(captured, device);
            table(&mut tables, &head).push(device, values);
        } else if !is_between(line) {
            captured.skip(CaptureError::new(index, line, 0, "a device below iostat's head"));
        }
        if captured.machine.block.len() > crate::MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
    }
    tables.into_iter().for_each(|table| put(captured, table));
    Ok(())
}

fn table<'t>(tables: &'t mut Vec<Measured>, head: &[&str]) -> &'t mut Measured {
    let names: Vec<&str> =
        head.iter().filter(|word| !word.trim_matches('.').is_empty()).copied().collect();
    let at = tables.iter().position(|one| one.columns == names).unwrap_or_else(|| {
        tables.push(Measured::new(KIND.command, &names));
        tables.len() - 1
    });
    &mut tables[at]
}

fn row<'l>(head: &[&str], words: &[&'l str]) -> Option<(&'l str, Vec<Option<f64>>)> {
    let (device, values) = words.split_first()?;
    let values = below(head, values).filter(|_| !head.is_empty())?;
    let name = device.chars().all(|c| c.is_ascii_alphanumeric() || "-_.!".contains(c));
    (name && values.iter().any(Option::is_some)).then_some((*device, values))
}

/// The kernel line, and the times of `-t`.
fn is_between(line: &str) -> bool {
    host_of(line).is_some()
        || line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(':') && line.len() < 30
}

fn device_of(captured: &mut Captured, name: &str) {
    use gpuio_record::facts::BlockKind;
    if name.starts_with("md") {
        merge::block(&mut captured.machine, name, BlockKind::Md);
    } else if name.starts_with("dm-") {
        merge::block(&mut captured.machine, name, BlockKind::DeviceMapper);
    } else if ["nvme", "sd", "vd", "xvd", "hd"].iter().any(|start| name.starts_with(start)) {
        // Paths of a multipath drive (`nvme0c0n1`) are no drives of their own.
        let path = name.strip_prefix("nvme").is_some_and(|rest| rest.contains('c'));
        if !path {
            merge::disk_or_partition(&mut captured.machine, name);
        }
    }
}

/// The blanks of a line, in bytes, at which head and rows begin, where a page has joined them.
pub(crate) fn rows_on_one_line(line: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let start = ["Device: ", "Device "].iter().find_map(|name| line.find(name));
    let Some(start) = start.filter(|start| *start == 0 || line[..*start].ends_with(' ')) else {
        return places;
    };
    if !is_head(&line[start..]) {
        return places;
    }
    let starts: Vec<usize> =
        line.match_indices(' ').map(|(at, _)| at + 1).filter(|at| *at > start).collect();
    let word = |at: usize| line[at..].split(' ').next().unwrap_or_default();
    let is_name = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().any(|c| c.is_ascii_alphanumeric())
            && !word.contains('/')
    };
    // The head ends before the first device, which stands before a number.
    let rows = starts
        .windows(2)
        .filter(|two| is_name(word(two[0])) && super::number(word(two[1])).is_some());
    places.extend(rows.map(|two| two[0] - 1));
    if start > 0 && !places.is_empty() {
        places.insert(0, start - 1);
    }
    places
}
