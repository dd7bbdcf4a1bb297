//! Figures of drives, servers and processors: built in, from a file, or in a user's words.

use crate::flow::ini::{Entry, Section, error, sections};
use crate::flow::{FileError, ServerFigures};

/// The built-in table; a section per model with its source.
const BUILT_IN: &str = include_str!("drives.ini");
const BUILT_IN_NAME: &str = "built-in table";
/// Families of drives and network cards, which single models precede.
const FAMILIES: &str = include_str!("families.ini");

#[derive(Debug, Clone, Default, PartialEq)]
pub struct DriveFigures {
    /// Model as the kernel prints it, or a device's kernel name; `*` stands for any characters,
    /// case does not matter, and `_` is a blank.
    pub matches: String,
    /// The series as `lspci` names its controller, by the same rules; empty where that is not
    /// known.
    pub pci_name: String,
    /// Bytes per second of large sequential reads.
    pub read: Option<f64>,
    /// Bytes per second of large sequential writes.
    pub write: Option<f64>,
    /// Random reads of 4 KiB per second.
    pub read_iops: Option<f64>,
    /// Random writes of 4 KiB per second, in the steady state.
    pub write_iops: Option<f64>,
    /// Access time of one read alone, in nanoseconds.
    pub read_latency_ns: Option<f64>,
    /// Access time of one write alone, in nanoseconds.
    pub write_latency_ns: Option<f64>,
    /// Where the figures are from, with the host of [`DriveFigures::page`].
    pub source: String,
    /// Address of a page that has the figures, empty where there is none.
    pub page: String,
}

/// The most that a port of a network card carries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NicFigures {
    /// The card as `lspci` names it, with `*` as of [`DriveFigures::matches`].
    pub matches: String,
    /// Rate of a port, in Mbit/s.
    pub megabits: u64,
    /// Where the figure is from, with the host of [`NicFigures::page`].
    pub source: String,
    /// Address of a page that has the figure, empty where there is none.
    pub page: String,
}

/// The measured TCP rate of the network through a port of the machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PortFigures {
    /// The interface, with `*` as of [`DriveFigures::matches`].
    pub matches: String,
    /// Bytes per second that arrive.
    pub read: Option<f64>,
    /// Bytes per second that leave.
    pub write: Option<f64>,
    pub source: String,
}

const DRIVE_KEYS: &[&str] = &[
    "read",
    "write",
    "read-iops",
    "write-iops",
    "read-latency",
    "write-latency",
    "pci-name",
    "estimate",
    "source",
    "page",
];

/// All figures that are known in addition to the machine's own facts. Figures added later go first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    drives: Vec<DriveFigures>,
    nics: Vec<NicFigures>,
    ports: Vec<PortFigures>,
    servers: Vec<ServerFigures>,
    memory: Option<(f64, String)>,
    interconnect: Option<(f64, String)>,
    network: Option<(f64, String)>,
    /// I/Os per second of one processor.
    processor: Option<(f64, String)>,
}

impl Figures {
    /// The built-in table.
    ///
    /// # Panics
    ///
    /// Never: a test reads the table.
    pub fn built_in() -> Self {
        let mut figures = Figures::default();
        // Figures added later go first.
        for text in [FAMILIES, BUILT_IN] {
            let added = figures.add(BUILT_IN_NAME, text);
            debug_assert_eq!(added, Ok(()));
        }
        figures
    }

    /// Adds a file of figures (`--spec`): sections `[drive MODEL]`, `[nic CARD]`,
    /// `[port INTERFACE]`, `[server NAME]`, `[memory]`, `[interconnect]`, `[network]` and
    /// `[processor]`. `file` is the name that errors and sources print.
    ///
    /// # Errors
    ///
    /// The first thing that can't be read, with line and column; nothing is added then.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), FileError> {
        let mut new = Figures::default();
        for section in sections(file, text)? {
            match section.kind {
                "drive" => new.drives.push(drive(file, &section)?),
                "nic" => new.nics.push(nic(file, &section)?),
                "port" => new.ports.push(port(file, &section)?),
                "server" => new.servers.push(ServerFigures::of(file, &section)?),
                "memory" => new.memory = Some(one(file, &section, "rate", Entry::rate)?),
                "interconnect" => {
                    new.interconnect = Some(one(file, &section, "rate", Entry::rate)?)
                }
                "network" => new.network = Some(one(file, &section, "rate", Entry::rate)?),
                "processor" => new.processor = Some(one(file, &section, "ios", Entry::ios)?),
                other => {
                    let what = format!(
                        "no section {other:?} here; there are drive, server, nic, port, memory, \
                         interconnect, network, processor"
                    );
                    return Err(error(file, section.line, 2, what));
                }
            }
        }
        self.drives.splice(0..0, new.drives);
        self.nics.splice(0..0, new.nics);
        self.ports.splice(0..0, new.ports);
        self.servers.splice(0..0, new.servers);
        self.memory = new.memory.or(self.memory.take());
        self.interconnect = new.interconnect.or(self.interconnect.take());
        self.network = new.network.or(self.network.take());
        self.processor = new.processor.or(self.processor.take());
        Ok(())
    }

    pub fn add_server(&mut self, server: ServerFigures) {
        self.servers.insert(0, server);
    }

    /// Adds a drive's figures, such as measured ones.
    pub fn add_drive(&mut self, drive: DriveFigures) {
        self.drives.insert(0, drive);
    }

    /// Figures of a drive: by its kernel name if there are any, else by its model.
    pub fn drive(&self, device: &str, model: Option<&str>) -> Option<&DriveFigures> {
        let find = |name: &str| self.drives.iter().find(|one| fits(&one.matches, name));
        find(device).or_else(|| find(model?))
    }

    /// Figures of a drive of which only its controller's name on PCI is known: that of a series.
    pub fn drive_by_pci_name(&self, name: &str) -> Option<&DriveFigures> {
        let named = self.drives.iter().filter(|one| !one.pci_name.is_empty());
        named.into_iter().find(|one| fits(&one.pci_name, name))
    }

    /// The most that a port of a card carries, by the card's name on PCI.
    pub fn nic(&self, name: &str) -> Option<&NicFigures> {
        self.nics.iter().find(|one| fits(&one.matches, name))
    }

    /// The figures measured through a port, by its interface.
    pub fn port(&self, interface: &str) -> Option<&PortFigures> {
        self.ports.iter().find(|one| fits(&one.matches, interface))
    }

    /// Figures of a server by any of its names, with the name that fits: exactly, then a pattern
    /// with `*`, which describes each server that it fits by itself. Else the figures of all
    /// servers together, without a name. The last of several names is the most exact.
    pub fn server(&self, names: &[&str]) -> Option<(&ServerFigures, Option<String>)> {
        let by = |same: &dyn Fn(&str, &str) -> bool| {
            self.servers.iter().find_map(|one| {
                let pattern = one.name.as_deref()?;
                // The address stands for a server under all its names.
                let fits = names.iter().rev().find(|name| same(pattern, name))?;
                Some((one, Some((*fits).to_owned())))
            })
        };
        let all = || Some((self.servers.iter().find(|one| one.name.is_none())?, None));
        by(&|pattern, name| pattern == name)
            .or_else(|| by(&|pattern, name| pattern.contains('*') && fits(pattern, name)))
            .or_else(all)
    }

    /// Bytes per second of a NUMA node's memory, reads and writes together, with its source.
    pub fn memory(&self) -> Option<(f64, &str)> {
        self.memory.as_ref().map(|(rate, source)| (*rate, source.as_str()))
    }

    /// I/Os per second that one processor does, with its source.
    pub fn processor(&self) -> Option<(f64, &str)> {
        self.processor.as_ref().map(|(ios, source)| (*ios, source.as_str()))
    }

    /// Bytes per second between two processors in one direction, with its source.
    pub fn interconnect(&self) -> Option<(f64, &str)> {
        self.interconnect.as_ref().map(|(rate, source)| (*rate, source.as_str()))
    }

    /// Bytes per second in one direction between all hosts and their servers, with its source.
    pub fn network(&self) -> Option<(f64, &str)> {
        self.network.as_ref().map(|(rate, source)| (*rate, source.as_str()))
    }

    /// The drives, those first that go first.
    pub fn drives(&self) -> &[DriveFigures] {
        &self.drives
    }

    /// The network cards, those first that go first.
    pub fn nics(&self) -> &[NicFigures] {
        &self.nics
    }
}

pub(crate) fn drive(file: &str, section: &Section<'_>) -> Result<DriveFigures, FileError> {
    if section.name.is_empty() {
        let what = "which drive? [drive MODEL], with * for any characters, or a kernel name";
        return Err(error(file, section.line, 2, what.to_owned()));
    }
    let mut drive = DriveFigures {
        matches: section.name.to_owned(),
        source: file.to_owned(),
        ..DriveFigures::default()
    };
    let mut estimate = None;
    for entry in &section.entries {
        if entry.key == "estimate" {
            estimate = Some(entry.value);
        } else if !set_drive(&mut drive, file, entry)? {
            return Err(entry.unknown_key(file, DRIVE_KEYS));
        }
    }
    drive.source = marked(drive.source, &drive.page, estimate);
    Ok(drive)
}

/// An address of a page, which a reader can open.
fn page(file: &str, entry: &Entry<'_>) -> Result<String, FileError> {
    if host_of(entry.value).is_empty() || entry.value.contains(char::is_whitespace) {
        return Err(entry.bad(file, 0, "an address begins with https:// or http://"));
    }
    Ok(entry.value.to_owned())
}

/// The host of an address, empty where it is none.
fn host_of(page: &str) -> &str {
    let rest = page.strip_prefix("https://").or_else(|| page.strip_prefix("http://"));
    rest.and_then(|rest| rest.split('/').next()).unwrap_or_default()
}

/// A source with the host of its page, and the reason why its figures are no more than an
/// estimate.
fn marked(mut source: String, page: &str, estimate: Option<&str>) -> String {
    if !page.is_empty() {
        source = format!("{source}, {}", host_of(page));
    }
    match estimate {
        Some(why) => format!("estimate, {why}: {source}"),
        None => source,
    }
}

fn nic(file: &str, section: &Section<'_>) -> Result<NicFigures, FileError> {
    let mut nic = NicFigures {
        matches: section.name.to_owned(),
        source: file.to_owned(),
        ..NicFigures::default()
    };
    let mut estimate = None;
    for entry in &section.entries {
        match entry.key {
            "megabits" => nic.megabits = entry.count(file)?,
            "estimate" => estimate = Some(entry.value),
            "source" => entry.value.clone_into(&mut nic.source),
            "page" => nic.page = page(file, entry)?,
            _ => return Err(entry.unknown_key(file, &["megabits", "estimate", "source", "page"])),
        }
    }
    if section.name.is_empty() || nic.megabits == 0 {
        let what = "[nic CARD] needs the card's name on PCI, with * for any characters, and \
                    megabits=";
        return Err(error(file, section.line, 2, what.to_owned()));
    }
    nic.source = marked(nic.source, &nic.page, estimate);
    Ok(nic)
}

fn port(file: &str, section: &Section<'_>) -> Result<PortFigures, FileError> {
    let mut port = PortFigures {
        matches: section.name.to_owned(),
        source: file.to_owned(),
        ..PortFigures::default()
    };
    for entry in &section.entries {
        match entry.key {
            "read" => port.read = Some(entry.rate(file)?),
            "write" => port.write = Some(entry.rate(file)?),
            "source" => entry.value.clone_into(&mut port.source),
            _ => return Err(entry.unknown_key(file, &["read", "write", "source"])),
        }
    }
    if section.name.is_empty() || (port.read.is_none() && port.write.is_none()) {
        let what = "[port INTERFACE] needs the interface's name and read=, write= or both";
        return Err(error(file, section.line, 2, what.to_owned()));
    }
    Ok(port)
}

/// Sets a figure; `false` for a key that drives don't have.
pub(crate) fn set_drive(
    drive: &mut DriveFigures,
    file: &str,
    entry: &Entry<'_>,
) -> Result<bool, FileError> {
    match entry.key {
        "read" => drive.read = Some(entry.rate(file)?),
        "write" => drive.write = Some(entry.rate(file)?),
        "read-iops" => drive.read_iops = Some(entry.ios(file)?),
        "write-iops" => drive.write_iops = Some(entry.ios(file)?),
        "read-latency" => drive.read_latency_ns = Some(entry.ns(file)?),
        "write-latency" => drive.write_latency_ns = Some(entry.ns(file)?),
        "pci-name" => entry.value.clone_into(&mut drive.pci_name),
        "source" => entry.value.clone_into(&mut drive.source),
        "page" => drive.page = page(file, entry)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// A section that has one figure, and its source.
fn one<'s>(
    file: &str,
    section: &Section<'s>,
    key: &'static str,
    read: fn(&Entry<'s>, &str) -> Result<f64, FileError>,
) -> Result<(f64, String), FileError> {
    let mut found = None;
    let mut source = file.to_owned();
    for entry in &section.entries {
        match entry.key {
            "source" => entry.value.clone_into(&mut source),
            own if own == key => found = Some(read(entry, file)?),
            _ => return Err(entry.unknown_key(file, &[key, "source"])),
        }
    }
    let what = || error(file, section.line, 2, format!("[{}] lacks {key}=", section.kind));
    Ok((found.ok_or_else(what)?, source))
}

/// Whether a pattern with `*` fits a name, blank and `_` alike, case aside.
fn fits(pattern: &str, name: &str) -> bool {
    let plain = |text: &str| text.trim().to_ascii_lowercase().replace('_', " ");
    gpuio_base::units::fits_wildcard(&plain(pattern), &plain(name))
}
