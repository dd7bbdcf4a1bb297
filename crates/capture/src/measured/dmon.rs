//! `nvidia-smi dmon` and `dcgmi dmon`: a line per GPU and interval below a head of two lines.

use super::{Measured, number, put};
use crate::{CaptureError, Captured, Kind, lines};

pub(crate) const NVIDIA: Kind = Kind {
    command: "nvidia-smi dmon",
    gives: "power, use, memory and PCIe rates of GPUs over time",
    most_bytes: crate::LOG,
    looks_like: |text| text.lines().any(is_head),
    add: add_nvidia,
};

pub(crate) const DCGM: Kind = Kind {
    command: "dcgmi dmon",
    gives: "DCGM's fields of GPUs over time, PCIe bytes among them",
    most_bytes: crate::LOG,
    looks_like: |text| text.lines().any(is_head_of_dcgm),
    add: add_dcgm,
};

/// `# gpu   pwr gtemp …`, also with dates and times before.
fn is_head(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix('#') else { return false };
    let mut words = rest.split_whitespace();
    let first = words.find(|word| !matches!(*word, "Date" | "Time" | "YYYYMMDD"));
    let known = ["pwr", "sm", "rxpci", "mclk", "fb", "pviol", "sbecc", "mem", "gtemp"];
    first == Some("gpu") && words.any(|word| known.contains(&word))
}

fn add_nvidia(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut names: Vec<&str> = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    let mut tables: Vec<Measured> = Vec::new();
    for (index, line) in lines(text) {
        let words: Vec<&str> =
            line.trim_start().trim_start_matches('#').split_whitespace().collect();
        if is_head(line) {
            names = words;
            columns.clear();
            continue;
        }
        if line.trim_start().starts_with('#') && words.len() == names.len() {
            // The units stand below the names.
            columns =
                names.iter().zip(&words).map(|(name, unit)| format!("{name} {unit}")).collect();
            continue;
        }
        let gpu = names.iter().position(|name| *name == "gpu");
        let number_of = gpu.and_then(|at| words.get(at)).and_then(|word| word.parse::<u32>().ok());
        let Some(number_of) = number_of.filter(|_| words.len() == names.len()) else {
            captured.skip(CaptureError::new(index, line, 0, "a GPU below dmon's head"));
            continue;
        };
        let whole = columns.len() == names.len();
        let own: Vec<&str> = names
            .iter()
            .enumerate()
            .map(|(at, name)| if whole { columns[at].as_str() } else { *name })
            .collect();
        let kept = |at: &usize| !matches!(names[*at], "gpu" | "Date" | "Time");
        let places: Vec<usize> = (0..names.len()).filter(kept).collect();
        let own: Vec<&str> = places.iter().map(|at| own[*at]).collect();
        let values = places.iter().map(|at| number(words[*at])).collect();
        table(&mut tables, NVIDIA.command, &own).push(&format!("GPU{number_of}"), values);
    }
    tables.into_iter().for_each(|table| put(captured, table));
    Ok(())
}

fn table<'t>(
    tables: &'t mut Vec<Measured>,
    command: &'static str,
    names: &[&str],
) -> &'t mut Measured {
    let at = tables.iter().position(|one| one.columns == names).unwrap_or_else(|| {
        tables.push(Measured::new(command, names));
        tables.len() - 1
    });
    &mut tables[at]
}

/// `# Entity   PCITX  PCIRX`, in later releases `#Entity`.
fn is_head_of_dcgm(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix('#').map(str::trim_start);
    rest.is_some_and(|rest| rest.starts_with("Entity") && rest.split_whitespace().count() > 1)
}

fn add_dcgm(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut names: Vec<&str> = Vec::new();
    let mut tables: Vec<Measured> = Vec::new();
    for (index, line) in lines(text) {
        if is_head_of_dcgm(line) {
            names = line.trim_start().trim_start_matches('#').split_whitespace().skip(1).collect();
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        // `Id`, and units of some releases, stand below the head alone.
        let below_head =
            words.iter().all(|word| number(word).is_none()) && words.len() <= names.len() + 1;
        let entity = match words.as_slice() {
            [kind @ ("GPU" | "GPU-I" | "GPU-CI" | "Switch" | "Link" | "CPU"), of, ..] => {
                Some(format!("{kind}{of}"))
            }
            _ => None,
        };
        match entity.filter(|_| words.len() == names.len() + 2) {
            Some(of) => {
                let values = words[2..].iter().map(|word| number(word)).collect();
                table(&mut tables, DCGM.command, &names).push(&of, values);
            }
            None if below_head && !names.is_empty() => {}
            None => captured.skip(CaptureError::new(index, line, 0, "GPU 0 and its values")),
        }
    }
    tables.into_iter().for_each(|table| put(captured, table));
    Ok(())
}
