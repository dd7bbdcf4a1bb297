//! A machine in a few words, and QEMU's arguments for it. Pure.
//!
//! A line is a word, the part's name, and `KEY=VALUE`s:
//!
//! ```text
//! board cpus=2 sockets=2 memory=1G release=backports       stable (default), backports, aarch64
//! kernel cgroup_disable=memory              words for the kernel's command line
//! node 0 cpus=0 memory=512M
//! bridge b0 node=0                          a host bridge (pxb-pcie)
//! port r0 at=b0                             a root port
//! switch s0 at=r0 ports=2                   a PCIe switch; its ports are s0.0, s0.1
//! drive a at=s0.0 size=256M iops-read=400   serial number `a`; without `at`, in the root complex
//! card c at=s0.1 link=lan                   machines with one link are connected
//! ```
//!
//! Keys of a drive: `size`, `kind` (nvme, sata, virtio, scsi), `block` (512 or 4096), `namespaces`,
//! `paths` (NVMe: controllers of one subsystem; SCSI: disks of one content), `count` (drives a0,
//! a1, …), `latency-ms` (a drive without content), `error` (read:SECTOR or write:SECTOR, where each
//! I/O fails), and QEMU's throttles: `iops-read`, `iops-write`,
//! `iops-total`, `bps-read`, `bps-write`, `bps-total`.

use anyhow::{Context as _, bail, ensure};

use super::kernel::Release;

#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) word: String,
    pub(super) id: String,
    keys: Vec<(String, String)>,
}

/// Words, and the keys that each may have.
const WORDS: &[(&str, &[&str])] = &[
    ("board", &["cpus", "sockets", "memory", "release"]),
    ("kernel", &[]),
    ("node", &["cpus", "memory"]),
    ("bridge", &["node"]),
    ("port", &["at"]),
    ("switch", &["at", "ports"]),
    (
        "drive",
        &[
            "at",
            "size",
            "kind",
            "block",
            "namespaces",
            "paths",
            "count",
            "latency-ms",
            "error",
            "iops-read",
            "iops-write",
            "iops-total",
            "bps-read",
            "bps-write",
            "bps-total",
        ],
    ),
    ("card", &["at", "link", "kind"]),
];

impl Line {
    pub(super) fn read(text: &str) -> anyhow::Result<Line> {
        let mut words = text.split_whitespace();
        let word = words.next().context("an empty line")?.to_owned();
        let row = WORDS.iter().find(|(known, _)| *known == word);
        let (_, known) = row.with_context(|| format!("{word}: no such part of a machine"))?;
        if word == "kernel" {
            let id = words.collect::<Vec<_>>().join(" ");
            return Ok(Line { word, id, keys: Vec::new() });
        }
        let mut line = Line { word, id: String::new(), keys: Vec::new() };
        for part in words {
            match part.split_once('=') {
                None => {
                    ensure!(line.id.is_empty(), "{part}: a part has one name");
                    part.clone_into(&mut line.id);
                }
                Some((key, value)) => {
                    ensure!(known.contains(&key), "{}: keys are {}", line.word, known.join(", "));
                    line.keys.push((key.to_owned(), value.to_owned()));
                }
            }
        }
        Ok(line)
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    fn number(&self, key: &str, default: u32) -> anyhow::Result<u32> {
        let value = self.get(key).map_or(Ok(default), str::parse);
        value.with_context(|| format!("{} {}: {key} is no number", self.word, self.id))
    }

    /// Whether the other changes this part.
    pub(super) fn fits(&self, other: &Line) -> bool {
        self.word == other.word && (self.id == other.id || self.word == "kernel")
    }

    /// Takes the other's keys over, or its words for the kernel.
    pub(super) fn replace(&mut self, other: &Line) {
        self.id.clone_from(&other.id);
        for (key, value) in &other.keys {
            self.keys.retain(|(name, _)| name != key);
            self.keys.push((key.clone(), value.clone()));
        }
    }
}

/// The parts that QEMU needs for a machine.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) arguments: Vec<String>,
    /// Disk images: name and size as truncate(1) takes it.
    pub(super) images: Vec<(String, String)>,
    pub(super) kernel: String,
    /// Numbers given so far.
    bridges: u32,
    chassis: u32,
    functions: u32,
    cards: u32,
    sata: u32,
}

impl Machine {
    pub(super) fn new(name: &str) -> Machine {
        Machine { name: name.to_owned(), lines: Vec::new() }
    }

    /// Which kernel it boots, `default` where it does not say.
    pub(super) fn release(&self, default: Release) -> anyhow::Result<Release> {
        let board = self.lines.iter().find(|line| line.word == "board");
        board.and_then(|board| board.get("release")).map_or(Ok(default), Release::read)
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| line.get("link"))
    }

    /// The parts that QEMU needs. `index` tells the machines of a scene apart. The machine that has
    /// a link first waits for the other's: it is started first, and has the socket before it
    /// answers.
    pub(super) fn parts(
        &self,
        index: usize,
        is_first: &dyn Fn(&str) -> bool,
    ) -> anyhow::Result<Parts> {
        let mut parts = Parts::default();
        let board = Line::read("board")?;
        let board = self.lines.iter().find(|line| line.word == "board").unwrap_or(&board);
        let (cpus, sockets) = (board.number("cpus", 2)?, board.number("sockets", 1)?);
        ensure!(sockets > 0 && cpus % sockets == 0, "board: as many CPUs in each socket");
        let smp = format!("{cpus},sockets={sockets},cores={}", cpus / sockets);
        parts.add("-smp", smp);
        parts.add("-m", board.get("memory").unwrap_or("1G"));
        for line in &self.lines {
            let added = match line.word.as_str() {
                "kernel" => {
                    parts.kernel.push_str(&line.id);
                    parts.kernel.push(' ');
                    Ok(())
                }
                "node" => parts.node(line),
                "bridge" => parts.bridge(line),
                "port" => parts.port(line),
                "switch" => parts.switch(line),
                "drive" => parts.drives(line),
                "card" => parts.card(line, index, is_first),
                _ => Ok(()),
            };
            added.with_context(|| format!("{} {}", line.word, line.id))?;
        }
        Ok(parts)
    }
}

impl Parts {
    /// The board: without SATA where nothing uses it, since the kernel waits for its ports.
    pub(super) fn board(&self) -> &'static str {
        if self.sata > 0 { "q35" } else { "q35,sata=off" }
    }

    fn add(&mut self, flag: &str, value: impl Into<String>) {
        self.arguments.extend([flag.to_owned(), value.into()]);
    }

    fn device(&mut self, text: String) {
        self.add("-device", text);
    }

    fn node(&mut self, line: &Line) -> anyhow::Result<()> {
        let memory = line.get("memory").context("memory is due")?;
        let cpus = line.get("cpus").map_or(String::new(), |cpus| format!("cpus={cpus},"));
        let id = &line.id;
        self.add("-object", format!("memory-backend-ram,id=node{id},size={memory}"));
        self.add("-numa", format!("node,nodeid={id},{cpus}memdev=node{id}"));
        Ok(())
    }

    fn bridge(&mut self, line: &Line) -> anyhow::Result<()> {
        self.bridges += 1;
        let node = line.get("node").map_or(String::new(), |node| format!(",numa_node={node}"));
        let bus = self.bridges * 32;
        ensure!(bus < 256, "at most 7 bridges");
        self.device(format!("pxb-pcie,id={},bus_nr={bus}{node},bus=pcie.0", line.id));
        Ok(())
    }

    /// The next number of a chassis, which is unique in a machine.
    fn slot(&mut self) -> String {
        self.chassis += 1;
        format!("chassis={0},slot={0}", self.chassis)
    }

    fn port(&mut self, line: &Line) -> anyhow::Result<()> {
        let slot = self.slot();
        let at = line.get("at").unwrap_or("pcie.0");
        self.device(format!("pcie-root-port,id={},bus={at},{slot}", line.id));
        Ok(())
    }

    fn switch(&mut self, line: &Line) -> anyhow::Result<()> {
        let (id, at) = (&line.id, line.get("at").context("at is due")?);
        self.device(format!("x3130-upstream,id={id},bus={at}"));
        for port in 0..line.number("ports", 2)? {
            let slot = self.slot();
            self.device(format!("xio3130-downstream,id={id}.{port},bus={id},{slot}"));
        }
        Ok(())
    }

    /// Where a function is: in a port, or the next free one of the root complex.
    fn place(&mut self, line: &Line) -> anyhow::Result<String> {
        if let Some(at) = line.get("at") {
            return Ok(format!("bus={at}"));
        }
        let (device, function) = (8 + self.functions / 8, self.functions % 8);
        ensure!(device < 31, "the root complex is full");
        self.functions += 1;
        Ok(format!("bus=pcie.0,addr={device:x}.{function},multifunction=on"))
    }

    fn drives(&mut self, line: &Line) -> anyhow::Result<()> {
        match line.number("count", 0)? {
            0 => self.drive(line, &line.id),
            count => (0..count).try_for_each(|at| self.drive(line, &format!("{}{at}", line.id))),
        }
    }

    fn drive(&mut self, line: &Line, id: &str) -> anyhow::Result<()> {
        let block = match line.get("block") {
            Some(size) => format!(",logical_block_size={size},physical_block_size={size}"),
            None => String::new(),
        };
        let kind = line.get("kind").unwrap_or("nvme");
        let (namespaces, paths) = (line.number("namespaces", 0)?, line.number("paths", 1)?);
        ensure!(namespaces == 0 || kind == "nvme" && paths == 1, "only NVMe has namespaces");
        ensure!(paths == 1 || matches!(kind, "nvme" | "scsi"), "only NVMe and SCSI have paths");
        if namespaces == 0 && kind != "scsi" {
            self.image(line, id)?;
        }
        match kind {
            "nvme" if paths > 1 => {
                self.device(format!("nvme-subsys,id=sub-{id},nqn={id}"));
                for number in 0..paths {
                    let place = self.place(line)?;
                    let name = format!("nvme,id=dev-{id}.{number},serial={id},subsys=sub-{id}");
                    self.device(format!("{name},{place}"));
                }
                // A namespace of the subsystem has all its controllers.
                self.device(format!("nvme-ns,drive={id},nsid=1,bus=dev-{id}.0,shared=on{block}"));
            }
            "scsi" => {
                let place = self.place(line)?;
                self.device(format!("virtio-scsi-pci,id=bus-{id},{place}"));
                for number in 0..paths {
                    self.path(line, id, number);
                    let disk = format!("scsi-hd,id=dev-{id}.{number},drive={id}.{number}");
                    let at = format!("bus=bus-{id}.0,channel=0,scsi-id=0,lun={number}");
                    self.device(format!("{disk},serial={id},share-rw=on,{at}{block}"));
                }
            }
            "nvme" if namespaces > 0 => {
                let place = self.place(line)?;
                self.device(format!("nvme,id=dev-{id},serial={id},{place}"));
                for number in 1..=namespaces {
                    let image = format!("{id}.{number}");
                    self.image(line, &image)?;
                    let at = format!("bus=dev-{id},nsid={number}");
                    self.device(format!("nvme-ns,drive={image},{at}{block}"));
                }
            }
            "nvme" => {
                let place = self.place(line)?;
                self.device(format!("nvme,id=dev-{id},drive={id},serial={id},{place}{block}"));
            }
            "virtio" => {
                let place = self.place(line)?;
                let device = format!("virtio-blk-pci,id=dev-{id},drive={id},serial={id}");
                self.device(format!("{device},{place}{block}"));
            }
            "sata" => {
                let bus = self.sata;
                self.sata += 1;
                let device = format!("ide-hd,id=dev-{id},drive={id},serial={id}");
                self.device(format!("{device},bus=ide.{bus}{block}"));
            }
            _ => bail!("kinds are nvme, sata, scsi, virtio"),
        }
        Ok(())
    }

    /// One of several ways to the content of a SCSI disk.
    fn path(&mut self, line: &Line, id: &str, number: u32) {
        let mut text =
            format!("if=none,id={id}.{number},file={id}.img,format=raw,file.locking=off");
        rates(line, &mut text);
        self.add("-drive", text);
        if number == 0 {
            let size = line.get("size").unwrap_or("64M");
            self.images.push((format!("{id}.img"), size.to_owned()));
        }
    }

    /// The content of a drive, with its rates and faults.
    fn image(&mut self, line: &Line, id: &str) -> anyhow::Result<()> {
        let size = line.get("size").unwrap_or("64M");
        let file = format!("{id}.img");
        let mut text = format!("if=none,id={id},");
        if let Some(latency) = line.get("latency-ms") {
            let nanoseconds = latency.parse::<u64>().context("latency-ms")? * 1_000_000;
            text.push_str("driver=null-co,read-zeroes=on,");
            text.push_str(&format!("size={size},latency-ns={nanoseconds}"));
        } else if let Some(error) = line.get("error") {
            let (kind, sector) = error.split_once(':').context("error=read:SECTOR")?;
            text.push_str("driver=raw,file.driver=blkdebug,file.image.driver=file,");
            text.push_str(&format!("file.image.filename={file},file.inject-error.0.event=none,"));
            text.push_str(&format!("file.inject-error.0.iotype={kind},"));
            text.push_str(&format!(
                "file.inject-error.0.errno=5,file.inject-error.0.sector={sector}"
            ));
            self.images.push((file, size.to_owned()));
        } else {
            text.push_str(&format!("file={file},format=raw"));
            self.images.push((file, size.to_owned()));
        }
        rates(line, &mut text);
        self.add("-drive", text);
        Ok(())
    }

    fn card(
        &mut self,
        line: &Line,
        index: usize,
        is_first: &dyn Fn(&str) -> bool,
    ) -> anyhow::Result<()> {
        let link = line.get("link").context("link is due")?;
        let place = self.place(line)?;
        let server = if is_first(link) { "on" } else { "off" };
        let (id, kind) = (&line.id, line.get("kind").unwrap_or("virtio-net-pci"));
        let address = format!("addr.type=unix,addr.path={link}.link");
        self.add("-netdev", format!("stream,id=net-{id},server={server},{address}"));
        let mac = format!("52:54:00:00:{index:02x}:{:02x}", self.cards);
        self.cards += 1;
        self.device(format!("{kind},id={id},netdev=net-{id},mac={mac},{place}"));
        Ok(())
    }
}

/// Adds a drive's limits.
fn rates(line: &Line, text: &mut String) {
    for (key, value) in &line.keys {
        if key.starts_with("iops-") || key.starts_with("bps-") {
            text.push_str(&format!(",throttling.{key}={value}"));
        }
    }
}
