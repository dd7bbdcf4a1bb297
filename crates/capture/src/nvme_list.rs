//! `nvme list` (nvme-cli): NVMe namespaces with their models. `-v` has a table of controllers with
//! their PCI addresses.

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::BlockKind;

use crate::columns::words;
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "nvme list",
    gives: "NVMe drives and models; with `-v` addresses",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines().any(|line| is_head(line) || is_head_of_controllers(line))
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
        if is_head_of_controllers(line) {
            names = line.split_whitespace().collect();
        } else if is_head_of_namespaces(line) {
            names = vec!["Device"];
        } else if is_head(line) {
            names = line.split("  ").map(str::trim).filter(|name| !name.is_empty()).collect();
        } else if line.starts_with("---") {
            columns = words(line).map(|(at, dashes)| (at, at + dashes.chars().count())).collect();
        } else if is_row(line) && !names.is_empty() && !columns.is_empty() && !is_worn(line) {
            if !put(captured, (&names, &columns), line) {
                let wanted = "a drive's model, which a reset may have damaged";
                captured.skip(CaptureError::new(index, line, 0, wanted));
            }
        } else if let Some((name, model)) = by_usage(line) {
            let block = merge::block(&mut captured.machine, name, BlockKind::Disk);
            block.facts.model =
                Some(model).filter(|model| !model.is_empty()).or(block.facts.model.take());
        } else {
            captured.skip(CaptureError::new(index, line, 0, "a namespace, like /dev/nvme0n1 …"));
        }
        if captured.machine.block.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
    }
    Ok(())
}

fn is_head(line: &str) -> bool {
    line.starts_with("Node") && line.contains("Model")
}

/// `Device SN MN FR TxPort Address …`.
fn is_head_of_controllers(line: &str) -> bool {
    line.starts_with("Device") && line.contains(" MN ") && line.contains(" Address ")
}

/// `Device Generic NSID Usage …`.
fn is_head_of_namespaces(line: &str) -> bool {
    line.starts_with("Device") && line.contains(" NSID ")
}

/// `/dev/nvme0n1 …`; some versions leave the directory out.
fn is_row(line: &str) -> bool {
    line.strip_prefix("/dev/").unwrap_or(line).starts_with("nvme")
}

/// Whether the blanks between columns are lost.
fn is_worn(line: &str) -> bool {
    !line.trim().contains("  ") && by_usage(line).is_some()
}

/// Name and model of a row whose columns are lost: the model stands between the serial number and
/// the namespace's number, which the usage follows (`1 500.11 GB / 500.11 GB`).
fn by_usage(line: &str) -> Option<(&str, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = words.first()?.strip_prefix("/dev/")?;
    let slash = words.iter().position(|word| *word == "/")?;
    let number = slash.checked_sub(3)?;
    let is_number = |word: &str| {
        let word = word.trim_start_matches("0x");
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let ends = is_number(words[number]) && words[number + 1].parse::<f64>().is_ok();
    // The generic device stands behind the node since nvme-cli 2.
    let first = 2 + usize::from(words.get(1).is_some_and(|word| word.starts_with("/dev/ng")));
    let model = words.get(first..number)?;
    (name.starts_with("nvme") && ends).then(|| (name, model.join(" ")))
}

/// `nvme0n1`.
fn is_namespace(name: &str) -> bool {
    let numbers = name.strip_prefix("nvme").and_then(|rest| rest.split_once('n'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    numbers.is_some_and(|(controller, namespace)| is_number(controller) && is_number(namespace))
}

/// Takes in a row; `false` where its name is none of a namespace's, or its model has no letter and
/// no digit.
fn put(
    captured: &mut Captured,
    (names, columns): (&[&str], &[(usize, usize)]),
    line: &str,
) -> bool {
    let value = |name: &str| {
        let at = names.iter().position(|known| *known == name)?;
        let (start, end) = *columns.get(at)?;
        let value: String = line.chars().skip(start).take(end - start).collect();
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    if names.contains(&"Namespaces") {
        let address = value("Address").and_then(|address| normalize_pci(&address));
        // A long address moves them to the right.
        let words = line.split([',', ' ']).skip(1);
        for name in words.filter(|name| is_namespace(name)) {
            let block = merge::block(&mut captured.machine, name, BlockKind::Disk);
            block.facts.model = value("MN").or(block.facts.model.take());
            if let Some(address) = &address {
                block.facts.pci_address = Some(address.clone());
                block.pci = vec![address.clone()];
            }
        }
        return true;
    }
    if names.contains(&"Address") {
        return true;
    }
    let first = line.split_whitespace().next().unwrap_or_default();
    let name = first.trim_start_matches("/dev/").to_owned();
    if !is_namespace(&name) {
        return false;
    }
    let model = value("Model");
    if model.as_ref().is_some_and(|model| !model.contains(char::is_alphanumeric)) {
        return false;
    }
    let block = merge::block(&mut captured.machine, &name, BlockKind::Disk);
    block.facts.model = model.or(block.facts.model.take());
    true
}
