//! Descriptions of systems as files.

use gpuio_record::Towards;

use super::{Clients, Count, Drives, Job, Kind, Nodes, Port, Switch, System, Tier};
use crate::flow::figures::drive;
use crate::flow::ini::{Entry, Section, error, sections};
use crate::flow::link::{self, Transport};
use crate::flow::{Figures, FileError, Level, Pattern};

const SECTIONS: &str = "clients, switch, nodes, drives, link, drive, job";

pub(super) fn system(file: &str, text: &str, figures: Figures) -> Result<System, FileError> {
    let mut system = System {
        tiers: Vec::new(),
        jobs: Vec::new(),
        counts: Vec::new(),
        client_counts: Vec::new(),
        figures,
    };
    let mut through: Vec<(String, u32, u32)> = Vec::new();
    let all = sections(file, text)?;
    let clients = all.iter().find(|section| section.kind == "clients");
    for section in &all {
        let same = matches!(section.kind, "nodes" | "switch");
        let from = From { file, section, peer: clients.filter(|_| same) };
        let kind = match section.kind {
            "clients" => Kind::Clients(from.clients(&mut system.client_counts)?),
            "switch" => Kind::Switch(from.switch()?),
            "nodes" => Kind::Nodes(from.nodes(&mut system.counts)?),
            "drives" => Kind::Drives(from.drives()?),
            "link" => Kind::Link(from.link()?),
            "drive" => {
                system.figures.add_drive(drive(file, section)?);
                continue;
            }
            "job" => {
                let job = from.job()?;
                if let Some(entry) = section.entries.iter().find(|entry| entry.key == "through") {
                    let at = (entry.line, entry.columns.1);
                    through.extend(job.through.iter().map(|name| (name.clone(), at.0, at.1)));
                }
                system.jobs.push(job);
                continue;
            }
            other => {
                let what = format!("no section {other:?} here; there are {SECTIONS}");
                return Err(error(file, section.line, 2, what));
            }
        };
        let name = if section.name.is_empty() { section.kind } else { section.name };
        if system.tiers.iter().any(|tier| tier.name == name) {
            let what =
                format!("{name} is there twice: give each its name, [{} NAME]", section.kind);
            return Err(error(file, section.line, 2, what));
        }
        system.tiers.push(Tier { name: name.to_owned(), count: from.count()?, kind });
    }
    let unknown = through.iter().find(|(name, ..)| system.tiers.iter().all(|t| t.name != *name));
    if let Some((name, line, column)) = unknown {
        return Err(error(file, *line, *column, format!("no section is called {name}")));
    }
    if system.tiers.is_empty() {
        let what = format!("nothing is described: there are sections {SECTIONS}");
        return Err(error(file, 1, 1, what));
    }
    if system.jobs.is_empty() {
        system.jobs = vec![Job::plain("read", Towards::Read)];
    }
    Ok(system)
}

impl Job {
    /// A large sequential load.
    fn plain(name: &str, towards: Towards) -> Job {
        Job {
            name: name.to_owned(),
            towards,
            pattern: Pattern::Sequential,
            block_bytes: 1 << 20,
            in_flight: None,
            rate: None,
            through: Vec::new(),
        }
    }
}

struct From<'f> {
    file: &'f str,
    section: &'f Section<'f>,
    /// The clients, whose connections end at the ports here: what is not known of these is as
    /// there.
    peer: Option<&'f Section<'f>>,
}

impl From<'_> {
    fn fail(&self, what: &str) -> FileError {
        error(self.file, self.section.line, 2, what.to_owned())
    }

    fn get(&self, key: &str) -> Option<&Entry<'_>> {
        self.section.entries.iter().find(|entry| entry.key == key)
    }

    /// Fails at the first key that is not among these.
    fn only(&self, keys: &[&str]) -> Result<(), FileError> {
        match self.section.entries.iter().find(|entry| !keys.contains(&entry.key)) {
            Some(entry) => Err(entry.unknown_key(self.file, keys)),
            None => Ok(()),
        }
    }

    fn rate(&self, key: &str) -> Result<Option<f64>, FileError> {
        self.get(key).map(|entry| entry.rate(self.file)).transpose()
    }

    fn ios(&self, key: &str) -> Result<Option<f64>, FileError> {
        self.get(key).map(|entry| entry.ios(self.file)).transpose()
    }

    /// `count = 7`, or `count = 2 per node`.
    fn count(&self) -> Result<Count, FileError> {
        let Some(entry) = self.get("count") else { return Ok(Count::Fixed(1)) };
        let Some(each) = entry.value.strip_suffix("per node") else {
            return entry.count(self.file).map(Count::Fixed);
        };
        if matches!(self.section.kind, "nodes") {
            return Err(entry.bad(self.file, 0, "nodes are what others are counted by"));
        }
        Entry { value: each.trim(), ..*entry }.count(self.file).map(Count::PerNode)
    }

    fn clients(&self, counts: &mut Vec<u64>) -> Result<Clients, FileError> {
        self.only(&[
            "count",
            "counts",
            "ports",
            "mtu",
            "transport",
            "nic-link",
            "gpus",
            "gpu-link",
        ])?;
        self.counts(counts)?;
        let pcie = |key: &str| self.get(key).map(|entry| pcie(self.file, entry)).transpose();
        let gpus = match self.get("gpus") {
            Some(entry) => Some((entry.count(self.file)?, pcie("gpu-link")?)),
            None => None,
        };
        Ok(Clients { ports: self.ports("ports")?, nic_link: pcie("nic-link")?, gpus })
    }

    /// `counts = 3, 7, 252`: the rows of a table.
    fn counts(&self, counts: &mut Vec<u64>) -> Result<(), FileError> {
        let Some(entry) = self.get("counts") else { return Ok(()) };
        for part in entry.value.split(',') {
            let one = Entry { value: part.trim(), ..*entry };
            counts.push(one.count(self.file)?);
        }
        Ok(())
    }

    fn switch(&self) -> Result<Switch, FileError> {
        self.only(&["count", "rate", "uplinks", "mtu", "transport", "oversubscription"])?;
        let over = self.get("oversubscription").map(|entry| {
            let number = entry.value.strip_suffix(":1").unwrap_or(entry.value).trim();
            let number = number.parse::<f64>().ok().filter(|over| *over >= 1.0 && *over < 1e6);
            number.ok_or_else(|| entry.bad(self.file, 0, "how many to one: 3 or 3:1"))
        });
        let switch = Switch {
            rate: self.rate("rate")?,
            uplinks: self.ports("uplinks")?,
            oversubscription: over.transpose()?,
        };
        if switch == Switch::default() {
            return Err(self.fail("a switch needs rate=, uplinks= or oversubscription="));
        }
        Ok(switch)
    }

    fn nodes(&self, counts: &mut Vec<u64>) -> Result<Nodes, FileError> {
        self.only(&[
            "count",
            "counts",
            "ports",
            "mtu",
            "transport",
            "read",
            "write",
            "read-iops",
            "write-iops",
            "latency",
            "drives",
            "drive",
            "raid",
            "chunk",
            "source",
        ])?;
        self.counts(counts)?;
        let drives = match self.get("drives") {
            Some(entry) => Some(self.array(entry.count(self.file)?)?),
            None => None,
        };
        Ok(Nodes {
            ports: self.ports("ports")?,
            read: self.rate("read")?,
            write: self.rate("write")?,
            read_iops: self.ios("read-iops")?,
            write_iops: self.ios("write-iops")?,
            latency_ns: self.get("latency").map(|entry| entry.ns(self.file)).transpose()?,
            drives,
            source: self.get("source").map_or(self.file, |entry| entry.value).to_owned(),
        })
    }

    /// Drives are the units of an array; the tier has one.
    fn drives(&self) -> Result<Drives, FileError> {
        self.only(&["drives", "drive", "raid", "chunk", "count"])?;
        let each = self.get("drives").map_or(Ok(1), |entry| entry.count(self.file))?;
        self.array(each)
    }

    fn array(&self, each: u64) -> Result<Drives, FileError> {
        let model = self.get("drive").ok_or_else(|| self.fail("which drives? drive = MODEL"))?;
        let level = match self.get("raid") {
            None => None,
            Some(entry) => {
                let wanted = "one of raid0, raid1, raid10, raid5, raid6";
                let level =
                    Level::parse(entry.value).ok_or_else(|| entry.bad(self.file, 0, wanted));
                let level = level?;
                if each < level.least_members() {
                    let least = level.least_members();
                    let what = format!("{} needs {least} drives at least", entry.value);
                    return Err(entry.bad(self.file, 0, what));
                }
                Some(level)
            }
        };
        let chunk_bytes = match self.get("chunk") {
            None => None,
            Some(entry) => Some(
                gpuio_base::units::parse_bytes(entry.value)
                    .map_err(|error| entry.bad(self.file, error.at, &error))?,
            ),
        };
        Ok(Drives { each, model: model.value.to_owned(), level, chunk_bytes })
    }

    /// `ports = 2x100Gb`, with `mtu` and `transport`.
    fn ports(&self, key: &str) -> Result<Option<(u64, Port)>, FileError> {
        let Some(entry) = self.get(key) else { return Ok(None) };
        let (count, raw) = crate::flow::server::ports(self.file, entry)?;
        Ok(Some((count, self.network(raw)?)))
    }

    /// A key of this section, else of the clients': a connection has one transport, and packets of
    /// one size, from end to end. Also whether it is theirs.
    fn shared(&self, key: &str) -> (Option<&Entry<'_>>, bool) {
        let theirs = || self.peer?.entries.iter().find(|entry| entry.key == key);
        match self.get(key) {
            Some(own) => (Some(own), false),
            None => (theirs(), theirs().is_some()),
        }
    }

    fn network(&self, raw_bytes_per_s: f64) -> Result<Port, FileError> {
        let (mtu, their_mtu) = self.shared("mtu");
        let (transport, their_transport) = self.shared("transport");
        let mtu = match mtu {
            None => 1500,
            Some(entry) => match entry.count(self.file)? {
                mtu @ 256..=65_536 => mtu,
                _ => return Err(entry.bad(self.file, 0, "an MTU from 256 to 65536 bytes")),
            },
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a port's rate"
        )]
        let megabits = (raw_bytes_per_s / 125_000.0).round() as u64;
        let gigabits = raw_bytes_per_s / 125e6;
        let (bytes_per_s, by) = match transport.map(|entry| entry.value) {
            None | Some("tcp") => {
                let rate = link::ethernet(megabits, mtu, Transport::Tcp);
                (rate, format!("TCP at MTU {mtu}"))
            }
            Some("rdma" | "roce") => {
                let rate = link::ethernet(megabits, mtu, Transport::Rdma);
                (rate, format!("RoCE at MTU {mtu}"))
            }
            Some("infiniband") => (link::infiniband(megabits), "InfiniBand".to_owned()),
            Some(_) => {
                let wanted = "one of tcp, rdma, infiniband";
                let entry = transport.map(|entry| entry.bad(self.file, 0, wanted));
                return Err(entry.unwrap_or_else(|| self.fail(wanted)));
            }
        };
        let same = if their_mtu || their_transport { ", as the clients" } else { "" };
        Ok(Port { bytes_per_s, what: format!("{gigabits} Gb/s, {by}{same}"), half_duplex: false })
    }

    fn link(&self) -> Result<Port, FileError> {
        let kinds = ["pcie", "sata", "sas", "ethernet", "infiniband", "rate"];
        self.only(&[&kinds[..], &["count", "mtu", "transport", "payload"]].concat())?;
        let given: Vec<&Entry<'_>> =
            self.section.entries.iter().filter(|entry| kinds.contains(&entry.key)).collect();
        let [entry] = given.as_slice() else {
            return Err(
                self.fail("a link is one of pcie=, sata=, sas=, ethernet=, infiniband=, rate=")
            );
        };
        let raw = || entry.rate(self.file);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a link's rate"
        )]
        let megabits = |raw: f64| (raw / 125_000.0).round() as u64;
        let half = |bytes_per_s, what| Port { bytes_per_s, what, half_duplex: true };
        let full = |bytes_per_s, what| Port { bytes_per_s, what, half_duplex: false };
        Ok(match entry.key {
            "pcie" => match self.get("payload") {
                Some(payload) => pcie_with(self.file, entry, payload.count(self.file)?)?,
                None => pcie(self.file, entry)?,
            },
            "sata" => half(link::sata(megabits(raw()?)), format!("SATA, {}", entry.value)),
            "sas" => full(link::sas(megabits(raw()?)), format!("SAS lane, {}", entry.value)),
            "ethernet" => self.network(raw()?)?,
            "infiniband" => {
                full(link::infiniband(megabits(raw()?)), format!("InfiniBand, {}", entry.value))
            }
            _ => full(raw()?, "as described".to_owned()),
        })
    }

    fn job(&self) -> Result<Job, FileError> {
        self.only(&["rw", "bs", "in-flight", "rate", "through"])?;
        let name = if self.section.name.is_empty() { "job" } else { self.section.name };
        let mut job = Job::plain(name, Towards::Read);
        if let Some(entry) = self.get("rw") {
            (job.pattern, job.towards) = match entry.value {
                "read" => (Pattern::Sequential, Towards::Read),
                "write" => (Pattern::Sequential, Towards::Write),
                "randread" => (Pattern::Random, Towards::Read),
                "randwrite" => (Pattern::Random, Towards::Write),
                _ => {
                    let wanted = "one of read, write, randread, randwrite";
                    return Err(entry.bad(self.file, 0, wanted));
                }
            };
        }
        if let Some(entry) = self.get("bs") {
            let size = gpuio_base::units::parse_bytes(entry.value);
            let size = size.map_err(|error| entry.bad(self.file, error.at, &error))?;
            if size == 0 {
                return Err(entry.bad(self.file, 0, "a block has one byte at least"));
            }
            job.block_bytes = size;
        }
        job.in_flight = self.get("in-flight").map(|entry| entry.count(self.file)).transpose()?;
        job.rate = self.rate("rate")?;
        if let Some(entry) = self.get("through") {
            job.through = entry.value.split(',').map(|name| name.trim().to_owned()).collect();
        }
        Ok(job)
    }
}

fn pcie(file: &str, entry: &Entry<'_>) -> Result<Port, FileError> {
    pcie_with(file, entry, link::PAYLOAD_TAKEN)
}

/// `3.0 x16`.
fn pcie_with(file: &str, entry: &Entry<'_>, payload: u64) -> Result<Port, FileError> {
    let bad = || entry.bad(file, 0, "generation and width, such as 4.0 x16");
    let text = entry.value.strip_prefix("pcie").unwrap_or(entry.value).trim();
    let (generation, width) = text.split_once('x').ok_or_else(bad)?;
    let generation = generation.trim();
    let generation = generation.strip_suffix(".0").unwrap_or(generation);
    let width = width.trim().parse::<u64>().ok().filter(|width| (1..=32).contains(width));
    let speed = generation.parse().ok().and_then(gpuio_base::units::pcie_mega_transfers);
    let (speed, width) = speed.zip(width).ok_or_else(bad)?;
    let bytes_per_s = link::pcie(speed, width, payload).ok_or_else(bad)?;
    let what = format!("PCIe {generation}.0 x{width}, packets of {payload} B");
    Ok(Port { bytes_per_s, what, half_duplex: false })
}
