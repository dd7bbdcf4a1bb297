//! A tree of `/sys` and `/proc` from a table of text, so that a server of thousands of files is a
//! page to read. `machines/README.md` has the words of the table.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::Tree;

/// Where a function or disk is written: a directory below `sys/devices`.
struct AncestorDir {
    depth: usize,
    dir: String,
}

/// Writes what the table says into a new tree.
pub fn build(table: &str) -> Tree {
    let mut writer = Writer {
        tree: Tree::new(),
        above: Vec::new(),
        node: -1,
        minors: 0,
        dirs: HashMap::new(),
        numbers: HashMap::new(),
    };
    for line in table.lines() {
        let plain = line.trim();
        if plain.is_empty() || plain.starts_with('#') {
            continue;
        }
        let depth = line.len() - line.trim_start().len();
        writer.line(depth, &Words::of(plain));
    }
    writer.tree
}

/// A line's words: those that stand alone, and pairs `key=value` with `_` for a blank.
struct Words<'l> {
    line: &'l str,
    plain: Vec<&'l str>,
    pairs: HashMap<&'l str, &'l str>,
}

impl<'l> Words<'l> {
    fn of(line: &'l str) -> Self {
        let (pairs, plain) =
            line.split_whitespace().partition::<Vec<_>, _>(|word| word.contains('='));
        Words {
            line,
            plain,
            pairs: pairs.into_iter().filter_map(|pair| pair.split_once('=')).collect(),
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        self.pairs.get(key).map(|value| value.replace('_', " "))
    }

    /// A size such as `960G`; `K`, `M`, `G` and `T` are powers of 1024.
    fn size(&self, key: &str) -> Option<u64> {
        let value = self.pairs.get(key)?;
        let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let power = match &value[digits.len()..] {
            "" => 0,
            "K" => 1,
            "M" => 2,
            "G" => 3,
            "T" => 4,
            other => panic!("no such unit: {other}"),
        };
        Some(digits.parse::<u64>().unwrap() << (10 * power))
    }
}

struct Writer {
    tree: Tree,
    above: Vec<AncestorDir>,
    node: i64,
    minors: u32,
    /// Directories of block devices by name.
    dirs: HashMap<String, String>,
    /// Device numbers by name.
    numbers: HashMap<String, String>,
}

impl Writer {
    fn line(&mut self, depth: usize, words: &Words<'_>) {
        match words.plain[0] {
            "file" => {
                let rest = words.line.strip_prefix("file ").unwrap();
                let (path, text) = rest.split_once(" =").unwrap();
                let text = text.trim_start();
                self.tree
                    .file(path, format!("{}\n", text.replace("\\n", "\n").replace("\\t", "\t")));
            }
            "node" => self.numa(words),
            "root" => {
                self.node = words.pairs.get("node").map_or(-1, |node| node.parse().unwrap());
                let dir = format!("sys/devices/pci{}", words.plain[1]);
                self.above = vec![AncestorDir { depth, dir }];
            }
            "part" => self.part(words),
            "md" => self.array(words),
            "dm" => self.mapped(words),
            "loop" => self.looped(words),
            "bond" => self.bond(words),
            "mounts" => {
                let numbered =
                    words.line.split(' ').skip(1).map(|word| match word.strip_prefix('%') {
                        Some(name) => self.numbers[name].clone(),
                        None => word.to_owned(),
                    });
                let line = numbered.collect::<Vec<_>>().join(" ");
                self.append("proc/self/mountinfo", &line);
            }
            _ => self.function(depth, words),
        }
    }

    fn append(&self, path: &str, line: &str) {
        let before = std::fs::read_to_string(self.tree.path(path)).unwrap_or_default();
        self.tree.file(path, format!("{before}{line}\n"));
    }

    fn numa(&mut self, words: &Words<'_>) {
        let node = words.plain[1];
        let dir = format!("sys/devices/system/node/node{node}");
        let kib = words.size("memory").unwrap() >> 10;
        self.tree
            .file("sys/devices/system/node/online", format!("0-{node}\n").replace("0-0", "0"))
            .file(&format!("{dir}/cpulist"), format!("{}\n", words.pairs["cpus"]))
            .file(&format!("{dir}/distance"), words.pairs["distance"].replace(',', " "))
            .file(&format!("{dir}/meminfo"), format!("Node {node} MemTotal: {kib} kB\n"));
    }

    fn function(&mut self, depth: usize, words: &Words<'_>) {
        let address = match words.plain[0].matches(':').count() {
            1 => format!("0000:{}", words.plain[0]),
            _ => words.plain[0].to_owned(),
        };
        let (vendor, device) = words.plain[1].split_once(':').unwrap();
        let class = words.plain[2];
        self.above.retain(|above| above.depth < depth);
        let dir = format!("{}/{address}", self.above.last().unwrap().dir);
        self.above.push(AncestorDir { depth, dir: dir.clone() });
        let file = |name: &str, text: &str| {
            self.tree.file(&format!("{dir}/{name}"), format!("{text}\n"));
        };
        file("vendor", &format!("0x{vendor}"));
        file("device", &format!("0x{device}"));
        file("class", &format!("0x{class}"));
        let sub = words.pairs.get("sub").unwrap_or(&"0000:0000");
        let (sub_vendor, sub_device) = sub.split_once(':').unwrap();
        file("subsystem_vendor", &format!("0x{sub_vendor}"));
        file("subsystem_device", &format!("0x{sub_device}"));
        file("numa_node", &self.node.to_string());
        for (when, key) in [("current", "link"), ("max", "most")] {
            let link = words.pairs.get(key).or(words.pairs.get("link"));
            if let Some((speed, width)) = link.and_then(|link| link.split_once('x')) {
                file(&format!("{when}_link_speed"), &format!("{speed} GT/s PCIe"));
                file(&format!("{when}_link_width"), width);
            }
        }
        if let Some((first, last)) =
            words.pairs.get("buses").and_then(|buses| buses.split_once('-'))
        {
            let decimal = |bus: &str| u8::from_str_radix(bus, 16).unwrap().to_string();
            file("secondary_bus_number", &decimal(first));
            file("subordinate_bus_number", &decimal(last));
        }
        if let Some(size) = words.size("bar1") {
            let line = |start: u64, size: u64| {
                format!("0x{start:016x} 0x{:016x} 0x{:016x}\n", start + size - 1, 0x14220c)
            };
            let text = format!("{}{}", line(0xc000_0000, 16 << 20), line(0x38_0000_0000, size));
            self.tree.file(&format!("{dir}/resource"), text);
        }
        self.tree.link(&format!("sys/bus/pci/devices/{address}"), &dir);
        if let Some(driver) = words.pairs.get("driver") {
            self.tree.link(&format!("{dir}/driver"), &format!("sys/bus/pci/drivers/{driver}"));
        }
        if let Some(group) = words.pairs.get("group") {
            self.tree
                .link(&format!("{dir}/iommu_group"), &format!("sys/kernel/iommu_groups/{group}"));
        }
        if words.pairs.contains_key("port") {
            self.tree.file(&format!("{dir}/config"), configuration(words));
        }
        self.gpu(&address, words);
        self.disks(&dir, words);
        self.network(&dir, words);
    }

    fn gpu(&self, address: &str, words: &Words<'_>) {
        let Some(model) = words.text("gpu") else { return };
        let mut text = format!("Model: \t\t {model}\nBus Type: \t PCIe\n");
        writeln!(text, "Bus Location: \t {address}").unwrap();
        if let Some(minor) = words.pairs.get("minor") {
            writeln!(text, "Device Minor: \t {minor}").unwrap();
        }
        self.tree.file(&format!("proc/driver/nvidia/gpus/{address}/information"), text);
    }

    /// `nvme=nvme3`, `subsystem=nvme3` (multipath), `ata=4:sdb:6.0`, `virtio=vda`.
    fn disks(&mut self, dir: &str, words: &Words<'_>) {
        if let Some(name) = words.pairs.get("nvme") {
            let controller = format!("{dir}/nvme/{name}");
            self.controller(&controller, words);
            self.disk(&format!("{controller}/{name}n1"), words);
            self.tree.file(&format!("{controller}/{name}n1/nsid"), "1\n");
        }
        if let Some(name) = words.pairs.get("subsystem") {
            let number = name.strip_prefix("nvme").unwrap();
            let controller = format!("{dir}/nvme/{name}");
            self.controller(&controller, words);
            self.block(&format!("{controller}/nvme{number}c{number}n1"), 0);
            self.tree.file(&format!("{controller}/nvme{number}c{number}n1/hidden"), "1\n");
            let above = format!("sys/devices/virtual/nvme-subsystem/nvme-subsys{number}");
            self.tree.link(&format!("{above}/{name}"), &controller);
            self.tree.file(&format!("{above}/iopolicy"), "numa\n");
            let model = words.text("model").unwrap_or_default();
            self.tree.file(&format!("{above}/model"), format!("{model}\n"));
            self.disk(&format!("{above}/{name}n1"), words);
            self.tree.file(&format!("{above}/{name}n1/nsid"), "1\n");
        }
        for disk in words.pairs.get("ata").iter().flat_map(|list| list.split(',')) {
            let [port, name, rate, model] = disk.split(':').collect::<Vec<_>>()[..] else {
                panic!("ata=PORT:NAME:RATE:MODEL, not {disk}");
            };
            let host = port.parse::<u32>().unwrap() - 1;
            let device = format!("{dir}/ata{port}/host{host}/target{host}:0:0/{host}:0:0:0");
            self.tree.file(&format!("{device}/model"), format!("{}\n", model.replace('_', " ")));
            let link = format!("sys/class/ata_link/link{port}");
            self.tree.file(&format!("{link}/sata_spd"), format!("{rate} Gbps\n"));
            self.tree.file(&format!("{link}/hw_sata_spd_limit"), "6.0 Gbps\n");
            self.disk(&format!("{device}/block/{name}"), words);
            self.tree.link(&format!("{device}/block/{name}/device"), &device);
        }
        if let Some(name) = words.pairs.get("virtio") {
            self.disk(&format!("{dir}/virtio0/block/{name}"), words);
        }
    }

    fn controller(&self, dir: &str, words: &Words<'_>) {
        let model = words.text("model").unwrap_or_default();
        self.tree
            .file(&format!("{dir}/transport"), "pcie\n")
            .file(&format!("{dir}/state"), "live\n")
            .file(&format!("{dir}/serial"), format!("S{dir}\n"))
            .file(&format!("{dir}/model"), format!("{model}\n"));
    }

    /// A disk with a queue as NVMe has it, but for what the line says.
    fn disk(&mut self, dir: &str, words: &Words<'_>) {
        self.block(dir, words.size("size").unwrap());
        let rotational = u8::from(words.plain.contains(&"spins"));
        let queue = [
            ("scheduler", "[none] mq-deadline\n".to_owned()),
            ("nr_requests", "1023\n".to_owned()),
            ("max_sectors_kb", format!("{}\n", words.pairs.get("max_kib").unwrap_or(&"128"))),
            ("read_ahead_kb", "128\n".to_owned()),
            ("logical_block_size", "512\n".to_owned()),
            ("physical_block_size", "4096\n".to_owned()),
            ("rotational", format!("{rotational}\n")),
            ("write_cache", "write back\n".to_owned()),
        ];
        for (name, text) in queue {
            self.tree.file(&format!("{dir}/queue/{name}"), text);
        }
        let parent = dir.rsplit_once('/').unwrap().0;
        if parent.rsplit('/').next().unwrap().starts_with("nvme") {
            self.tree.link(&format!("{dir}/device"), parent);
        }
    }

    fn block(&mut self, dir: &str, bytes: u64) {
        self.minors += 1;
        let name = dir.rsplit('/').next().unwrap();
        // Majors as Linux gives them out: md 9, device-mapper 253, loop 7, NVMe 259.
        let major = match name {
            name if name.starts_with("md") => 9,
            name if name.starts_with("dm-") => 253,
            name if name.starts_with("loop") => 7,
            _ => 259,
        };
        let number = format!("{major}:{}", self.minors);
        self.tree.device(dir, &number, bytes / 512);
        self.numbers.insert(name.to_owned(), number);
        self.dirs.insert(name.to_owned(), dir.to_owned());
    }

    fn part(&mut self, words: &Words<'_>) {
        let name = words.plain[1];
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let disk = digits.strip_suffix('p').filter(|disk| self.dirs.contains_key(*disk));
        let above = self.dirs[disk.unwrap_or(digits)].clone();
        let dir = format!("{above}/{name}");
        self.block(&dir, words.size("size").unwrap());
        self.tree.file(&format!("{dir}/partition"), &name[digits.len()..]);
        self.tree
            .file(&format!("{dir}/start"), format!("{}\n", words.size("start").unwrap() / 512));
    }

    fn members(&self, dir: &str, words: &Words<'_>) {
        for member in words.pairs["members"].split(',') {
            self.tree.link(&format!("{dir}/slaves/{member}"), &self.dirs[member]);
        }
    }

    fn array(&mut self, words: &Words<'_>) {
        let dir = format!("sys/devices/virtual/block/{}", words.plain[1]);
        self.block(&dir, words.size("size").unwrap());
        self.members(&dir, words);
        let disks = words.pairs["members"].split(',').count();
        self.tree
            .file(&format!("{dir}/md/level"), format!("{}\n", words.plain[2]))
            .file(
                &format!("{dir}/md/chunk_size"),
                format!("{}\n", words.size("chunk").unwrap_or(0)),
            )
            .file(&format!("{dir}/md/raid_disks"), format!("{disks}\n"))
            .file(&format!("{dir}/md/array_state"), "clean\n");
    }

    fn mapped(&mut self, words: &Words<'_>) {
        let dir = format!("sys/devices/virtual/block/{}", words.plain[1]);
        self.block(&dir, words.size("size").unwrap());
        self.members(&dir, words);
        self.tree.file(&format!("{dir}/dm/name"), format!("{}\n", words.pairs["name"]));
        self.tree.file(&format!("{dir}/dm/uuid"), format!("{}\n", words.pairs["uuid"]));
    }

    fn looped(&mut self, words: &Words<'_>) {
        let dir = format!("sys/devices/virtual/block/{}", words.plain[1]);
        self.block(&dir, words.size("size").unwrap_or(0));
        if let Some(file) = words.pairs.get("backing") {
            self.tree.file(&format!("{dir}/loop/backing_file"), format!("{file}\n"));
        }
    }

    /// `net=ib0`, `rdma=mlx5_0`, `layer=ib|eth`, `gbit=100`, `mtu=4092`, `state=up|down`.
    fn network(&mut self, dir: &str, words: &Words<'_>) {
        let infiniband = words.pairs.get("layer") == Some(&"ib");
        let up = words.pairs.get("state") != Some(&"down");
        let gbit: u64 = words.pairs.get("gbit").map_or(0, |gbit| gbit.parse().unwrap());
        if let Some(name) = words.pairs.get("net") {
            let at = format!("{dir}/net/{name}");
            let kind = if infiniband { "32\n" } else { "1\n" };
            self.tree
                .file(&format!("{at}/type"), kind)
                .file(&format!("{at}/operstate"), if up { "up\n" } else { "down\n" })
                .file(
                    &format!("{at}/mtu"),
                    format!("{}\n", words.pairs.get("mtu").unwrap_or(&"1500")),
                );
            if gbit > 0 {
                let speed = if up { format!("{}\n", gbit * 1000) } else { "-1\n".to_owned() };
                self.tree.file(&format!("{at}/speed"), speed);
            }
            self.tree.link(&format!("sys/class/net/{name}"), &at);
        }
        if let Some(name) = words.pairs.get("rdma") {
            let at = format!("{dir}/infiniband/{name}");
            let port = format!("{at}/ports/1");
            let state =
                if up { ["4: ACTIVE\n", "5: LinkUp\n"] } else { ["1: DOWN\n", "2: Polling\n"] };
            self.tree
                .file(&format!("{at}/fw_ver"), "16.28.2006\n")
                .file(&format!("{port}/state"), state[0])
                .file(&format!("{port}/phys_state"), state[1])
                .file(&format!("{port}/rate"), format!("{gbit} Gb/sec (4X EDR)\n"))
                .file(
                    &format!("{port}/link_layer"),
                    if infiniband { "InfiniBand\n" } else { "Ethernet\n" },
                );
            self.tree.link(&format!("sys/class/infiniband/{name}"), &at);
        }
    }

    fn bond(&mut self, words: &Words<'_>) {
        let at = format!("sys/devices/virtual/net/{}", words.plain[1]);
        self.tree.file(&format!("{at}/operstate"), "up\n").file(&format!("{at}/type"), "1\n");
        for lower in words.pairs["lower"].split(',') {
            self.tree.link(&format!("{at}/lower_{lower}"), &format!("sys/class/net/{lower}"));
        }
        self.tree.link(&format!("sys/class/net/{}", words.plain[1]), &at);
    }
}

/// Configuration space of 4096 bytes: a PCI Express capability at 0x40 and, with `acs=`, ACS at
/// 0x100 (`acs=off`, or the register in hexadecimal).
fn configuration(words: &Words<'_>) -> Vec<u8> {
    let mut space = vec![0u8; 4096];
    space[6] = 0x10;
    space[0x34] = 0x40;
    space[0x40] = 0x10;
    let kind: u8 = match words.pairs["port"] {
        "end" => 0,
        "root" => 4,
        "up" => 5,
        "down" => 6,
        other => panic!("no such port: {other}"),
    };
    space[0x42] = kind << 4 | 2;
    let code = |key: &str, else_bytes: u64| {
        let bytes = words.size(key).unwrap_or(else_bytes);
        u16::try_from((bytes / 128).trailing_zeros()).unwrap()
    };
    space[0x44] = u8::try_from(code("mps_most", 512)).unwrap();
    let relaxed = u16::from(words.pairs.get("ro") != Some(&"0"));
    let control = code("mrrs", 512) << 12 | code("mps", 256) << 5 | relaxed << 4;
    space[0x48..0x4a].copy_from_slice(&control.to_le_bytes());
    // Advanced error reporting stands first, as on most devices; it ends the list without ACS.
    let acs = words.pairs.get("acs");
    let next: u32 = if acs.is_some() { 0x148 } else { 0 };
    space[0x100..0x104].copy_from_slice(&(next << 20 | 1 << 16 | 0x0001).to_le_bytes());
    if let Some(acs) = acs {
        let register = if *acs == "off" { 0 } else { u16::from_str_radix(acs, 16).unwrap() };
        space[0x148..0x14c].copy_from_slice(&(1u32 << 16 | 0x000d).to_le_bytes());
        space[0x14e..0x150].copy_from_slice(&register.to_le_bytes());
    }
    space
}
