//! Processors: `/proc/cpuinfo`, `/sys/devices/system/cpu` and the affinity mask.

use gpuio_record::facts::CpuFacts;

use crate::parse::{field, keep, parse_cpu_list};
use crate::{HostError, LineFault, Root};

/// Reads the processors. A value that cannot be understood goes to `problems` and stays `None`.
pub fn read(root: &Root, problems: &mut Vec<HostError>) -> CpuFacts {
    let (l2, l3) = keep(caches(root).map(Some), problems).unwrap_or_default();
    CpuFacts {
        model: keep(model(root), problems),
        online: keep(list(root, "sys/devices/system/cpu/online"), problems),
        allowed: keep(allowed(root), problems),
        l2_cache_bytes: l2,
        l3_cache_bytes: l3,
    }
}

fn model(root: &Root) -> Result<Option<String>, HostError> {
    let text = root.read("proc/cpuinfo")?;
    Ok(text.and_then(|text| parse_model(&text.body)))
}

/// `model name` of the first processor in `/proc/cpuinfo`. Most arm64 kernels print two numbers
/// instead (`MIDR_EL1`, Arm ARM): the design's name where it is in `DESIGNS`, and the numbers.
pub fn parse_model(cpuinfo: &str) -> Option<String> {
    if let Some((_, name)) = field(cpuinfo, "model name") {
        return (!name.is_empty()).then(|| name.to_owned());
    }
    let (_, maker) = field(cpuinfo, "CPU implementer")?;
    let (_, part) = field(cpuinfo, "CPU part")?;
    let design = DESIGNS.iter().find(|(m, p, _)| (*m, *p) == (maker, part));
    let name = design.map_or("arm64 processor", |(.., name)| name);
    Some(format!("{name} (implementer {maker}, part {part})"))
}

/// Designs of servers' arm64 processors: implementer, part, name (Arm's reference manuals, section
/// `MIDR_EL1` of each).
const DESIGNS: [(&str, &str, &str); 4] = [
    ("0x41", "0xd0c", "Arm Neoverse N1"),
    ("0x41", "0xd40", "Arm Neoverse V1"),
    ("0x41", "0xd49", "Arm Neoverse N2"),
    ("0x41", "0xd4f", "Arm Neoverse V2"),
];

/// A file that holds a processor list.
pub(crate) fn list(root: &Root, path: &str) -> Result<Option<Vec<u32>>, HostError> {
    let Some(text) = root.read(path)? else {
        return Ok(None);
    };
    text.parse(parse_cpu_list).map(Some)
}

/// Processors this process may run on (`Cpus_allowed_list` of proc_pid_status(5)), which is the
/// affinity mask cut by the control group's processor set.
///
/// # Errors
/// [`HostError`] when the file cannot be read or understood.
pub fn allowed(root: &Root) -> Result<Option<Vec<u32>>, HostError> {
    let Some(text) = root.read("proc/self/status")? else {
        return Ok(None);
    };
    text.parse(parse_allowed)
}

/// `Cpus_allowed_list` of `/proc/self/status`.
///
/// # Errors
/// [`LineFault`] when the line is there and is no list.
pub fn parse_allowed(status: &str) -> Result<Option<Vec<u32>>, LineFault> {
    let Some((index, value)) = field(status, "Cpus_allowed_list") else {
        return Ok(None);
    };
    match parse_cpu_list(value) {
        Ok(cpus) => Ok(Some(cpus)),
        Err(error) => Err(LineFault { line: index as u64 + 1, ..error }),
    }
}

/// Sizes of the second- and third-level data caches of processor 0.
fn caches(root: &Root) -> Result<(Option<u64>, Option<u64>), HostError> {
    let base = "sys/devices/system/cpu/cpu0/cache";
    let (mut l2, mut l3) = (None, None);
    for index in root.list(base)?.iter().filter(|name| name.starts_with("index")) {
        let kind = root.word(format!("{base}/{index}/type"))?;
        if kind.as_deref() == Some("Instruction") {
            continue;
        }
        let level = root.number(format!("{base}/{index}/level"))?;
        let Some(text) = root.read(format!("{base}/{index}/size"))? else {
            continue;
        };
        let size = Some(text.parse(parse_cache_size)?);
        match level {
            Some(2) => l2 = size,
            Some(3) => l3 = size,
            _ => {}
        }
    }
    Ok((l2, l3))
}

/// A cache size such as `1024K`, in bytes. Linux prints KiB always; `M` is read too.
///
/// # Errors
/// [`LineFault`] when it is not a number with `K` or `M`.
pub fn parse_cache_size(text: &str) -> Result<u64, LineFault> {
    let word = text.trim();
    let malformed = || LineFault::new(0, word, "a cache size like 1024K");
    let (digits, scale) = match word.strip_suffix('K') {
        Some(digits) => (digits, 1024),
        None => (word.strip_suffix('M').ok_or_else(malformed)?, 1024 * 1024),
    };
    let size: u64 = digits.parse().map_err(|_| malformed())?;
    size.checked_mul(scale).ok_or_else(malformed)
}
