//! `nvme list` (nvme-cli): NVMe namespaces with their models.

use gpuio_record::facts::BlockKind;

use crate::columns::words;
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "nvme list",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines().any(|line| line.starts_with("Node") && line.contains("Model"))
            && text.lines().any(is_row)
    },
    add,
};

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut names: Vec<&str> = Vec::new();
    // Where each column begins and ends, in characters: the ruler shows it, as heads are moved in
    // posts.
    let mut columns: Vec<(usize, usize)> = Vec::new();
    for (index, line) in lines(text) {
        if line.starts_with("Node") && line.contains("Model") {
            names = line.split("  ").map(str::trim).filter(|name| !name.is_empty()).collect();
        } else if line.starts_with("---") {
            columns = words(line).map(|(at, dashes)| (at, at + dashes.chars().count())).collect();
        } else if is_row(line) && !names.is_empty() && !columns.is_empty() {
            put(captured, (&names, &columns), line);
        } else {
            captured.skip(CaptureError::new(index, line, 0, "a namespace, like /dev/nvme0n1 …"));
        }
        if captured.machine.block.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
    }
    Ok(())
}

/// `/dev/nvme0n1 …`; some versions leave the directory out.
fn is_row(line: &str) -> bool {
    line.strip_prefix("/dev/").unwrap_or(line).starts_with("nvme")
}

fn put(captured: &mut Captured, (names, columns): (&[&str], &[(usize, usize)]), line: &str) {
    let value = |name: &str| {
        let at = names.iter().position(|known| *known == name)?;
        let (start, end) = *columns.get(at)?;
        let value: String = line.chars().skip(start).take(end - start).collect();
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let first = line.split_whitespace().next().unwrap_or_default();
    let name = first.trim_start_matches("/dev/").to_owned();
    let model = value("Model");
    let block = merge::block(&mut captured.machine, &name, BlockKind::Disk);
    block.facts.model = model.or(block.facts.model.take());
}
