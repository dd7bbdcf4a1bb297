//! The meaning of printed lines for rules.

use gpuio_record::facts::{BlockDevice, Fact, GdsCheck, GdsLine, GpuFacts, Machine};

use super::drivers::STORAGE;
use super::settings::printed_name;
use crate::check::configuration::as_switch;
use crate::check::finding::{Found, Severity};
use crate::check::verdict::layer::{self, Disk};

/// The output and how to call it in a finding.
pub(crate) fn printed(machine: &Machine) -> Option<(&GdsCheck, &'static str)> {
    let check = machine.gdscheck.as_ref()?;
    Some((check, if check.by_gpuio { "gpuio's gdscheck printed" } else { "gdscheck printed" }))
}

/// Findings by the machine's own facts; where some are unknown, `answer` by gdscheck's lines in
/// their place. It gets the output, how to call it, and the unknown findings.
pub(crate) fn or_printed(
    machine: &Machine,
    own: Vec<Found>,
    answer: impl FnOnce(&GdsCheck, &str, Vec<Found>) -> Vec<Found>,
) -> Vec<Found> {
    let Some((check, printed)) = printed(machine) else { return own };
    let (open, mut found): (Vec<Found>, Vec<Found>) =
        own.into_iter().partition(|one| one.severity == Severity::Unknown);
    if !open.is_empty() {
        found.extend(answer(check, printed, open));
    }
    found
}

/// Whether NVIDIA's driver is the open one: by its own file, else by gdscheck's line.
pub(crate) fn open_driver(machine: &Machine) -> Fact<bool> {
    let own = &machine.settings.open_driver;
    let status = printed(machine).and_then(|(check, _)| check.driver_status.known());
    match (own, status) {
        (Fact::Unknown(_), Some(status)) if status.contains("Open Driver") => Fact::Known(true),
        _ => own.clone(),
    }
}

/// A GPU's model: the driver's word, else the one that gdscheck printed of all GPUs. CUDA's numbers
/// need not be those of `nvidia-smi`, so that different models are of no GPU in particular.
pub(crate) fn model(machine: &Machine, gpu: &GpuFacts) -> Fact<String> {
    let all = printed(machine).map(|(check, _)| check.gpus.as_slice()).unwrap_or_default();
    match (&gpu.name, all) {
        (Fact::Unknown(_), [first, rest @ ..])
            if first.name.known().is_some() && rest.iter().all(|one| one.name == first.name) =>
        {
            first.name.clone()
        }
        (name, _) => name.clone(),
    }
}

/// Whether gdscheck printed the kind of storage of a kernel module as one of nvidia-fs, with its
/// line; `None` where the line does not show it.
pub(crate) fn by_nvidia_fs(machine: &Machine, module: &str) -> Option<(bool, String)> {
    let (check, printed) = printed(machine)?;
    let (name, ..) = STORAGE.iter().find(|row| row.1 == Some(module))?;
    // The oldest releases have this name.
    let old = if *name == "DDN EXAScaler" { "LUSTRE" } else { name };
    let mut lines = storage(check);
    let line = lines.find(|line| [*name, old].iter().any(|n| line.name.eq_ignore_ascii_case(n)))?;
    let direct = match data_path(line) {
        DataPath::NvidiaFs => true,
        DataPath::Other | DataPath::Unknown => return None,
        DataPath::Host | DataPath::Nothing => false,
    };
    Some((direct, quote(printed, line)?))
}

/// A line with its value, as it was printed.
fn quote(printed: &str, line: &GdsLine) -> Option<String> {
    Some(format!("{printed} `{} : {}`", line.name, line.value.known()?))
}

/// Whether NVIDIA's module for RDMA with GPU memory is loaded, as gdscheck printed it, with its
/// line.
pub(crate) fn peer_direct(machine: &Machine) -> Option<(bool, String)> {
    let (check, printed) = printed(machine)?;
    let line = check.drivers.iter().find(|line| line.is("--Mellanox PeerDirect"))?;
    let loaded = match line.value.known()?.as_str() {
        "Enabled" => true,
        "Disabled" => false,
        _ => return None,
    };
    Some((loaded, quote(printed, line)?))
}

/// The same for drives of one kind among these devices. An NVMe drive of which the transport was
/// not read may be a local or a remote one.
pub(crate) fn drives_by_nvidia_fs(
    machine: &Machine,
    devices: Vec<&BlockDevice>,
) -> Option<(bool, String)> {
    let drives = devices.into_iter().filter(|one| layer::is_disk(one));
    let kinds: Vec<Disk> = drives.map(layer::disk).collect();
    let [local, remote] = ["nvme", "nvme_rdma"].map(|module| by_nvidia_fs(machine, module));
    match kinds.first()? {
        first if kinds.iter().any(|kind| kind != first) => None,
        Disk::Nvme => local,
        Disk::NvmeRdma => remote,
        Disk::NvmeUnknown => {
            let is_no = |line: &Option<(bool, String)>| line.as_ref().is_some_and(|(yes, _)| !yes);
            local.filter(|(yes, _)| !yes && is_no(&remote))
        }
        Disk::NvmeOther | Disk::Other => None,
    }
}

/// The data path of a kind of storage, as a line reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataPath {
    /// nvidia-fs: `nvfs`, and up to release 1.13 `Supported`.
    NvidiaFs,
    /// Past host memory without it: `p2pdma`, `c2c`, `dmabuf`, `nvidia_peermem`, and up to
    /// release 1.13 the line `NVMe P2PDMA`.
    Other,
    /// Host memory: `compat`.
    Host,
    /// None: `Unsupported`.
    Nothing,
    /// Not known, or a word that no known release prints.
    Unknown,
}

/// The first data path that a line names.
pub(crate) fn data_path(line: &GdsLine) -> DataPath {
    let Some(value) = line.value.known() else { return DataPath::Unknown };
    let mut words = value.split(',').map(str::trim);
    let has = |wanted: &[&str]| value.split(',').any(|word| wanted.contains(&word.trim()));
    if has(&["nvfs"]) {
        DataPath::NvidiaFs
    } else if has(&["p2pdma", "c2c", "dmabuf", "nvidia_peermem"]) {
        DataPath::Other
    } else if has(&["compat"]) {
        DataPath::Host
    } else {
        match words.next() {
            Some("Supported") if line.name.contains("P2PDMA") || is_rdma(line) => DataPath::Other,
            Some("Supported") => DataPath::NvidiaFs,
            Some("Unsupported") => DataPath::Nothing,
            _ => DataPath::Unknown,
        }
    }
}

fn is_rdma(line: &GdsLine) -> bool {
    line.name.eq_ignore_ascii_case("userspace rdma")
}

/// Lines about kinds of storage, without those about parts of RDMA.
pub(crate) fn storage(check: &GdsCheck) -> impl Iterator<Item = &GdsLine> {
    check.drivers.iter().filter(|line| !line.name.starts_with("--") && !is_rdma(line))
}

/// Lines on which a row of the table was torn apart, as copying out of a PDF does: a value without
/// its name, or a name without its value. It is not known which belong together.
pub(crate) fn torn(check: &GdsCheck) -> Vec<u64> {
    let value = |text: &str| text.strip_prefix(':').is_some_and(|rest| !rest.trim().is_empty());
    let name = |text: &str| {
        let names = STORAGE.iter().map(|(name, ..)| *name).chain(["Userspace RDMA"]);
        names.into_iter().any(|name| name.eq_ignore_ascii_case(text))
    };
    let notes = check.notes.iter().filter(|note| value(&note.text) || name(&note.text));
    notes.map(|note| note.line).collect()
}

/// The line of a setting.
fn line<'c>(check: &'c GdsCheck, name: &str) -> Option<&'c GdsLine> {
    check.settings.iter().find(|line| line.is(name))
}

/// A setting's value.
pub(crate) fn setting<'c>(check: &'c GdsCheck, name: &str) -> Option<&'c str> {
    line(check, name)?.value.known().map(String::as_str)
}

/// Whether a printed switch is on.
pub(crate) fn is_on(value: &str) -> bool {
    as_switch(value) == Some(true)
}

/// The value of a key of cuFile's configuration as gdscheck printed it, and where that is from:
/// what was in force for gdscheck's own process, with its variables, the file and the defaults.
pub(crate) fn in_force<'m>(machine: &'m Machine, key: &str) -> Option<(&'m str, String)> {
    let (check, printed) = printed(machine)?;
    let name = printed_name(key);
    let line = line(check, name)?;
    Some((line.value.known()?, quote(printed, line)?))
}
