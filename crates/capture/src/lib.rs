//! Parses what tools print (`lspci`, `nvidia-smi`, `mount`, `gdscheck` and others) into the facts
//! that `host` reads from the kernel, and packs and reads captures of a machine.
//!
//! Each text covers a part of a machine. [`add`] merges one into a [`Captured`], in any order:
//! functions are identified by PCI address, devices by kernel name, and what one text knows stays
//! when another does not. Prompt lines with the command, blank lines and lines of dots are
//! skipped. Any other line that the tool does not print is passed over and noted with line and
//! column ([`TextRead::skipped`]); a text of which nothing is understood is refused. [`read`] takes
//! texts as they stand in posts, with several commands' output in one (`paste`). `gdscheck`'s
//! unknown lines are kept as notes, since its releases differ. Nothing here reads the system. A
//! text may have 1 MiB (`lspci -vv` and `lstopo`'s XML: 32 MiB), and no more devices than a
//! machine can have.
//!
//! This is not part of `host`, because kernel interfaces promise a format, and tools print for
//! people: their texts come cut, filtered and pasted. `host` lends what both share: the spelling
//! of addresses, options of NFS mounts, kinds of file systems, the choice of a route. That a mount
//! point is named after an interface is no fact: the machine marks such a route as derived from
//! the name; `topo`, `pair` and `flow` use it, the rules of `check` do not.
//!
//! [`pack`] replaces secrets by position and format, the same value by the same token. A capture
//! contains exactly the files that a reader of the machine opened (`host::Recorder`), so it gives
//! the same answers.
//!
//! To add a text: a file `TOOL.rs` here and a row in `KINDS`.

pub mod bundle;
mod by_path;
mod cards;
mod cmdline;
mod columns;
mod cufile_json;
mod dcgmi_diag;
mod dmesg;
mod error;
mod files;
mod findmnt;
mod finish;
mod gdscheck;
mod hwloc;
mod hwloc_links;
mod ib_text;
mod ibdev2netdev;
mod ip_addr;
mod ip_route;
mod json;
mod lsblk;
mod lscpu;
mod lsmod;
mod lspci_tree;
mod lspci_verbose;
mod lsscsi;
mod lstopo;
pub mod machines;
mod mdadm;
mod mdstat;
mod measured;
mod merge;
mod mig;
mod mounts;
mod nccl_xml;
mod netplan;
mod network;
mod nfsstat;
mod numactl;
mod nvidia_list;
mod nvidia_q;
mod nvidia_query;
mod nvidia_table;
mod nvidia_topo;
mod nvme_json;
mod nvme_list;
pub mod pack;
mod paste;
mod pci_names;
mod proc_mounts;
mod prompt;
mod rdma_link;
mod summary;
mod uname;
mod unfold;
mod xml;

use measured::{cufile_log, nvidia_fs, results};

pub use error::CaptureError;
pub use measured::{LogLine, Measured, Results, Sample};
pub use mig::Instance;
pub use netplan::ServerPort;
pub use network::Network;
pub use nvidia_topo::Matrix;

use gpuio_record::facts::{Machine, MountedStorage, NvmeController};
pub(crate) use prompt::lines;

/// The longest text of the wordy kinds, in bytes. `lspci -vv` of a server of 200 functions has
/// 600 kB, `lstopo`'s XML with all caches 2 MB.
const LONG: usize = 32 << 20;
/// The longest text that grows with time, in bytes.
const LOG: usize = 4 << 20;
/// The longest text of the others, in bytes.
const SHORT: usize = 1 << 20;
/// More of each than any machine has: what goes beyond is an error, so that a hostile text costs
/// seconds at most.
const MOST_FUNCTIONS: usize = 16_384;
const MOST_DEVICES: usize = 4096;
const MOST_GPUS: usize = 1024;
/// Lines that are noted as passed over; of more, the first ones.
const MOST_SKIPPED: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Captured {
    /// The machine, as far as it is known.
    pub machine: Machine,
    /// The matrices of `nvidia-smi topo` as printed: what the tool makes of the machine, to be held
    /// against it.
    pub matrices: Vec<Matrix>,
    /// The facts from `ip`; those about cards and mounts are in `machine` too.
    pub network: Network,
    /// The texts that were read, in the order in which they were added by [`read`].
    pub texts: Vec<TextRead>,
    /// Facts that two texts report differently, as sentences.
    pub contradictions: Vec<String>,
    /// Statements that can't both be right and of which neither counts, as whole sentences.
    pub conflicts: Vec<String>,
    /// Figures that tools measured.
    pub measured: Vec<Measured>,
    /// Results of load generators.
    pub results: Vec<Results>,
    /// Messages of cuFile's log.
    pub log: Vec<LogLine>,
    /// Whether a log of cuFile was read, with or without messages to keep.
    pub log_was_read: bool,
    /// Instances that GPUs are parted into.
    pub mig: Vec<Instance>,
    /// Interfaces of the servers.
    pub server_ports: Vec<ServerPort>,
    /// Mounts of `/etc/fstab`.
    pub at_boot: Vec<MountedStorage>,
    /// Arguments of the kernel that GRUB's file sets.
    next_boot: Vec<String>,
    /// The kind of the IOMMU's domains where nothing else was set, as sysfs calls it.
    iommu_domain: Option<&'static str>,
    /// Whether a text shows what is mounted.
    lists_mounts: bool,
    /// Sentences on what was read, beside the facts.
    remarks: Vec<String>,
    /// Whether addresses and MTUs are those that are set at boot.
    sets_at_boot: bool,
    /// Controllers by the number in the names of their drives.
    nvme_paths: Vec<(u32, NvmeController)>,
    /// Lines that the text being read has and its tool does not print.
    skipped: Vec<CaptureError>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextRead {
    /// Where it is from: the file's name.
    pub name: String,
    /// The commands whose output it holds.
    pub commands: Vec<&'static str>,
    /// The lines that were not understood and passed over, with what was expected there.
    pub skipped: Vec<CaptureError>,
}

impl Captured {
    /// A machine that was read whole, and not from texts.
    pub fn of(machine: Machine) -> Captured {
        Captured { machine, ..Captured::default() }
    }

    /// Notes that a text differs from one before it, which counts no more.
    fn differ(&mut self, what: String) {
        if !self.contradictions.contains(&what) {
            self.contradictions.push(what);
        }
    }

    /// Notes two statements of which neither counts.
    fn conflict(&mut self, what: String) {
        if !self.conflicts.contains(&what) {
            self.conflicts.push(what);
        }
    }

    /// Notes a total that a text prints itself and that the rows read of it do not make up. More
    /// rows contradict it; where they are fewer the rest is cut off or was not understood.
    fn counted(&mut self, command: &str, printed: &str, total: Option<usize>, rows: usize) {
        let Some(total) = total.filter(|total| *total != rows && rows > 0) else { return };
        let read = gpuio_base::units::many(rows as u64, "such row was|such rows were");
        let said = format!("{command} printed `{printed}`, and {read} read");
        match rows > total {
            true => self.conflict(format!("{said}.")),
            false => self.remarks.push(format!("{said}: the rest is not known here.")),
        }
    }

    /// Passes over a line.
    fn skip(&mut self, why: CaptureError) {
        if self.skipped.len() < MOST_SKIPPED {
            self.skipped.push(why);
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The command that prints it.
    pub command: &'static str,
    /// The facts that are taken from it, as a list for documents.
    pub gives: &'static str,
    /// The longest text that is read, in bytes.
    pub most_bytes: usize,
    /// Whether a text looks like it: a guess by its first marks.
    looks_like: fn(&str) -> bool,
    add: fn(&str, &mut Captured) -> Result<(), CaptureError>,
}

/// Every kind of text, the more certain marks first.
pub const KINDS: [Kind; 64] = [
    hwloc::KIND,
    nccl_xml::KIND,
    lsblk::JSON,
    findmnt::JSON,
    nvme_json::LIST,
    nvme_json::SUBSYSTEMS,
    lspci_tree::KIND,
    mig::KIND,
    nvidia_table::KIND,
    nvidia_q::KIND,
    nvidia_list::KIND,
    nvidia_query::KIND,
    nvidia_topo::KIND,
    dmesg::KIND,
    cufile_log::KIND,
    lspci_verbose::KIND,
    lspci_verbose::PLAIN,
    lstopo::KIND,
    ibdev2netdev::KIND,
    ib_text::IBSTAT,
    ib_text::IBSTATUS,
    ib_text::IBV_DEVINFO,
    ib_text::IBV_DEVICES,
    rdma_link::KIND,
    lsblk::KIND,
    nvme_list::KIND,
    lsscsi::KIND,
    numactl::KIND,
    lscpu::KIND,
    lsmod::KIND,
    by_path::KIND,
    mdstat::KIND,
    mdadm::KIND,
    measured::KIND_OF_GDS_STATS,
    nvidia_fs::KIND,
    measured::KIND_OF_IOSTAT,
    measured::KIND_OF_NVIDIA_DMON,
    measured::KIND_OF_DCGMI_DMON,
    dcgmi_diag::KIND,
    results::GDSIO,
    results::FIO,
    results::ELBENCHO,
    results::DD,
    results::HDPARM,
    results::KVIKIO,
    results::PERFTEST,
    results::VDBENCH,
    results::TABLE,
    gdscheck::KIND,
    mounts::KIND,
    nfsstat::KIND,
    findmnt::KIND,
    findmnt::DF,
    proc_mounts::MOUNTINFO,
    proc_mounts::MOUNTS,
    proc_mounts::FSTAB,
    files::KIND,
    ip_addr::KIND,
    ip_route::KIND,
    netplan::NETPLAN,
    netplan::ISI,
    uname::KIND,
    cmdline::KIND,
    cufile_json::KIND,
];

/// The kind that a text looks like; `None` when it looks like none.
pub fn kind_of(text: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| (kind.looks_like)(text))
}

/// Adds the facts of a text of one kind to `captured`. Lines that the tool does not print are
/// passed over: [`read`] notes them.
///
/// # Errors
/// [`CaptureError`] where nothing is understood, or there is more than any machine has; nothing is
/// added then.
pub fn add(kind: &Kind, text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    if text.len() > kind.most_bytes {
        return Err(CaptureError::too_long(text.len()));
    }
    // These keep lines as they stand.
    let own = [cufile_json::KIND.command, gdscheck::KIND.command].contains(&kind.command);
    let plain = if own { text.to_owned() } else { paste::plain(text) };
    add_plain(kind, &plain, captured)?;
    captured.skipped.clear();
    Ok(())
}

/// Adds the facts of a text that people pasted, of whatever kinds it holds, and notes what was read
/// and what was passed over. `name` is what to call it.
///
/// # Errors
/// As of [`add`].
pub fn read(name: &str, text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut with = captured.clone();
    paste::read(name, text, &mut with)?;
    *captured = with;
    Ok(())
}

fn add_plain(kind: &Kind, text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    if text.len() > kind.most_bytes {
        return Err(CaptureError::too_long(text.len()));
    }
    let mut with = captured.clone();
    with.skipped.clear();
    (kind.add)(text, &mut with)?;
    if let Some(first) = with.skipped.first().cloned() {
        let skipped = std::mem::take(&mut with.skipped);
        let nothing_new = with
            == Captured {
                skipped: Vec::new(),
                lists_mounts: with.lists_mounts,
                ..captured.clone()
            };
        with.skipped = skipped;
        if nothing_new {
            return Err(first);
        }
    }
    merge::replaced(&captured.machine, &mut with);
    nvme_json::complete(&mut with);
    merge::complete(&mut with.machine);
    with.network.complete(&mut with.machine);
    nvidia_topo::complete(&mut with);
    merge::complete(&mut with.machine);
    *captured = with;
    Ok(())
}
