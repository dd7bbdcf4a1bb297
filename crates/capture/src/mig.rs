//! `nvidia-smi mig -lgi`, `-lci` and `-lgip`: the instances that a GPU is parted into (NVIDIA's
//! Multi-Instance GPU User Guide). Instances below GPUs in `nvidia-smi -L` and in its table are
//! read by those ([`instance`], [`row`]).

use crate::{CaptureError, Captured, Kind, MOST_GPUS, lines};

pub(crate) const KIND: Kind = Kind {
    command: "nvidia-smi mig -lgi",
    gives: "MIG instances of each GPU; also `-lci`; `-lgip` shows only possible ones",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(is_title),
    add,
};

/// An instance of MIG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The command that shows it.
    by: &'static str,
    /// The GPU's number.
    pub gpu: u32,
    /// `1g.10gb`, or the memory where only that is shown.
    pub profile: String,
}

fn is_title(line: &str) -> bool {
    ["| GPU instances:", "| Compute instances:", "| GPU instance profiles:"]
        .iter()
        .any(|title| line.trim().starts_with(title))
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut kind = "";
    for (index, line) in lines(text) {
        if is_title(line) {
            kind = if line.contains("profiles") {
                "profiles"
            } else if line.contains("Compute") {
                "compute"
            } else {
                "instances"
            };
        } else if let Some((gpu, profile)) = row_of_list(line) {
            if kind == "instances" {
                put(captured, KIND.command, gpu, &profile);
            }
        } else if !line.trim().starts_with(['|', '+']) {
            captured.skip(CaptureError::new(index, line, 0, "a row of nvidia-smi mig's table"));
        }
        if captured.mig.len() > MOST_GPUS * 8 {
            return Err(CaptureError::new(index, line, 0, "fewer GPUs"));
        }
    }
    Ok(())
}

/// `|   0  MIG 1g.10gb         19        9          2:1     |`.
fn row_of_list(line: &str) -> Option<(u32, String)> {
    let words: Vec<&str> = line.trim().trim_matches('|').split_whitespace().collect();
    let at = words.iter().position(|word| *word == "MIG")?;
    Some((words.first()?.parse().ok()?, (*words.get(at + 1)?).to_owned()))
}

/// Adds an instance of a profile to a GPU.
pub(crate) fn put(captured: &mut Captured, by: &'static str, gpu: u32, profile: &str) {
    if captured.mig.len() <= MOST_GPUS * 8 {
        captured.mig.push(Instance { by, gpu, profile: profile.to_owned() });
    }
}

/// The profile of `  MIG 1g.10gb     Device  0: (UUID: MIG-…)`.
pub(crate) fn instance(line: &str) -> Option<&str> {
    let (profile, rest) = line.trim().strip_prefix("MIG ")?.split_once(char::is_whitespace)?;
    rest.trim_start().starts_with("Device").then_some(profile)
}

/// GPU and share of memory of a row of the table's list: `|  0    1   0   0  |  38MiB / 40320MiB
/// |`.
pub(crate) fn row(line: &str) -> Option<(u32, String)> {
    let mut cells = line.trim().strip_prefix('|')?.split('|');
    let numbers: Vec<u32> =
        cells.next()?.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [gpu, _, _, _] = numbers.as_slice() else { return None };
    let memory = cells.next()?.split('/').nth(1)?.trim().strip_suffix("MiB")?;
    let mib: u64 = memory.parse().ok()?;
    Some((*gpu, format!("{mib} MiB")))
}

/// The instances by GPU, as sentences: of several texts the first one counts.
pub(crate) fn notes(all: &[Instance]) -> Vec<String> {
    let mut gpus: Vec<u32> = all.iter().map(|one| one.gpu).collect();
    gpus.sort_unstable();
    gpus.dedup();
    let sentence = |gpu: u32| {
        let by = all.iter().find(|one| one.gpu == gpu).map(|one| one.by);
        let mut profiles: Vec<(&str, usize)> = Vec::new();
        for one in all.iter().filter(|one| one.gpu == gpu && Some(one.by) == by) {
            match profiles.iter_mut().find(|(known, _)| *known == one.profile) {
                Some((_, count)) => *count += 1,
                None => profiles.push((&one.profile, 1)),
            }
        }
        let parts: Vec<String> =
            profiles.iter().map(|(profile, count)| format!("{count} x {profile}")).collect();
        let parts = parts.join(", ");
        format!("GPU{gpu} is parted by MIG: {parts}. All instances share its PCIe link.")
    };
    gpus.into_iter().map(sentence).collect()
}
