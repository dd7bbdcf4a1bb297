//! The redaction of each file of a capture, by its path.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use gpuio_host::{Entry, Tree, build_config, settings};

use super::secrets::{Secret, Secrets};
use super::words::scrub;
use super::{ADDRESSES_KEPT, mounts};

/// A capture that may be sent to somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted {
    /// The files as they go into the capture.
    pub tree: Tree,
    /// The redactions, by path.
    pub taken: Vec<Taken>,
    /// How many secrets of each kind were replaced.
    pub counts: BTreeMap<Secret, usize>,
    /// Names of hosts, network addresses and sources of mounts are those of the machine.
    pub addresses_kept: bool,
}

/// One file of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Where it lies in the capture.
    pub path: PathBuf,
    pub bytes: usize,
    /// Whether it is not what the machine had.
    pub changed: bool,
}

/// Files of which the program reads a few lines only: the others are left out.
const LINES: [(&str, &[&str]); 2] = [
    ("proc/self/status", &["Cpus_allowed_list", "CapEff"]),
    (
        "proc/cpuinfo",
        &[
            "processor",
            "vendor_id",
            "model name",
            "stepping",
            "flags",
            "Features",
            "CPU implementer",
            "CPU part",
        ],
    ),
];

/// A tree without secrets. `names` are names of the host to be replaced wherever they stand as a
/// word; `key` turns IP addresses and should be random and forgotten.
pub fn redact(tree: &Tree, names: &[String], key: u64) -> Redacted {
    let secrets = Secrets::new(key);
    made(tree, names, secrets)
}

/// The same with names of hosts, network addresses and sources of mounts as they are, for captures
/// that are compared with those of other hosts: it has a file [`ADDRESSES_KEPT`].
pub fn redact_but_addresses(tree: &Tree, key: u64) -> Redacted {
    let mut tree = tree.clone();
    tree.put(Path::new(ADDRESSES_KEPT), Entry::File(Vec::new()));
    made(&tree, &[], Secrets::new(key).but_addresses())
}

fn made(tree: &Tree, names: &[String], secrets: Secrets) -> Redacted {
    let mut work = Work { devices: devices(tree), secrets };
    names.iter().for_each(|name| work.secrets.name(Secret::Host, name));
    let mut redacted = Tree::default();
    let mut taken = Vec::new();
    for (path, entry) in tree.entries() {
        let new_path = work.path(path);
        let new = match entry {
            Entry::File(bytes) => {
                let after = work.file(path, bytes);
                taken.push(Taken {
                    path: new_path.clone(),
                    bytes: after.len(),
                    changed: after != *bytes || new_path != path,
                });
                Entry::File(after)
            }
            Entry::Link(target) => Entry::Link(work.target(path, target)),
            // Its names come with what lies in it.
            Entry::Directory(_) => Entry::Directory(BTreeSet::new()),
        };
        redacted.put(&new_path, new);
    }
    taken.sort_by(|a, b| a.path.cmp(&b.path));
    let counts = work.secrets.counts().clone();
    Redacted { tree: redacted, taken, counts, addresses_kept: work.secrets.keeps_addresses() }
}

/// Kernel names of block devices.
fn devices(tree: &Tree) -> BTreeSet<String> {
    let block = Path::new("sys/class/block");
    let here = tree.entries().filter(|(path, _)| path.parent() == Some(block));
    here.filter_map(|(path, _)| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

struct Work {
    devices: BTreeSet<String>,
    secrets: Secrets,
}

impl Work {
    fn path(&mut self, path: &Path) -> PathBuf {
        let text = path.to_string_lossy();
        if let Some(device) = text.strip_prefix("dev/") {
            return Path::new("dev").join(self.device(device));
        }
        if let Some(group) = text.strip_prefix("sys/fs/cgroup/") {
            let (dir, file) = group.rsplit_once('/').unwrap_or(("", group));
            let known = ["memory.max", "memory.limit_in_bytes"].contains(&file);
            let file = if known { file.to_owned() } else { mounts::group(file, &mut self.secrets) };
            let dir = mounts::group(dir, &mut self.secrets);
            return Path::new("sys/fs/cgroup").join(dir).join(file);
        }
        let parts = text.split('/').map(|part| scrub(part, true, &mut self.secrets));
        parts.collect()
    }

    fn device(&mut self, path: &str) -> String {
        mounts::device_name(path, &self.devices, &mut self.secrets)
    }

    fn target(&mut self, link: &Path, target: &Path) -> PathBuf {
        let text = target.to_string_lossy();
        if link.starts_with("dev") {
            return match text.strip_prefix("/dev/") {
                Some(device) => Path::new("/dev").join(self.device(device)),
                None => self.device(&text).into(),
            };
        }
        let parts = text.split('/').map(|part| scrub(part, true, &mut self.secrets));
        parts.collect::<Vec<_>>().join("/").into()
    }

    fn file(&mut self, path: &Path, bytes: &[u8]) -> Vec<u8> {
        let full = path.to_string_lossy();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Bytes of configuration space, of which only what is read was noted.
        if name == "config" && full.starts_with("sys/") {
            return bytes.to_vec();
        }
        if full == "proc/config.gz" {
            return packed(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        self.text(&full, &name, &text).into_bytes()
    }

    fn text(&mut self, path: &str, name: &str, text: &str) -> String {
        if let Some((_, keys)) = LINES.iter().find(|(file, _)| *file == path) {
            return some_lines(text, keys);
        }
        let secrets = &mut self.secrets;
        match path {
            "proc/self/mountinfo" => {
                let devices = &self.devices;
                return each_line(text, |line| mounts::line(line, devices, secrets));
            }
            "proc/self/cgroup" => return each_line(text, |line| mounts::group(line, secrets)),
            "proc/cmdline" => return settings::parse_command_line(text).join(" ") + "\n",
            // Numbers of releases (`1.0.0.71`), UUIDs of GPUs, and other numbers.
            "proc/driver/nvidia-fs/stats" => return scrub(text, true, secrets),
            "proc/net/route" => return each_line(text, |line| route(line, secrets)),
            "proc/net/ipv6_route" => return each_line(text, |line| route_v6(line, secrets)),
            _ if path.starts_with("boot/config-") || path.starts_with("lib/modules/") => {
                return options(text);
            }
            _ => {}
        }
        let above = Path::new(path).parent().and_then(Path::file_name).unwrap_or_default();
        match name {
            // Numbers in hexadecimal throughout.
            "resource" => text.to_owned(),
            "serial" | "wwid" | "nfs4_unique_id" => {
                word(text, |word| secrets.token(Secret::Serial, word))
            }
            "name" if above == "dm" => word(text, |word| secrets.token(Secret::Volume, word)),
            // The maker of the volume stands before the first hyphen.
            "uuid" if above == "dm" => word(text, |word| match word.split_once('-') {
                Some((maker, uuid)) => format!("{maker}-{}", secrets.token(Secret::Uuid, uuid)),
                None => secrets.token(Secret::Uuid, word),
            }),
            "backing_file" => word(text, |word| {
                let (dir, file) = word.rsplit_once('/').unwrap_or(("", word));
                let (file, gone) = file.split_once(" (").unwrap_or((file, ""));
                let file = secrets.token(Secret::Path, file);
                let gone = if gone.is_empty() { "" } else { " (deleted)" };
                format!("{}/{file}{gone}", mounts::mount_point(dir, secrets))
            }),
            "version" | "fw_ver" | "firmware_rev" | "osrelease" => scrub(text, true, secrets),
            _ => scrub(text, false, secrets),
        }
    }
}

/// Replaces a file's only word, if there is one.
fn word(text: &str, replace: impl FnOnce(&str) -> String) -> String {
    match text.trim() {
        "" => String::new(),
        word => replace(word) + "\n",
    }
}

fn each_line(text: &str, mut replace: impl FnMut(&str) -> String) -> String {
    text.lines().map(|line| replace(line) + "\n").collect()
}

/// The first line of each of these keys: `flags` of one processor is as that of the others.
fn some_lines(text: &str, keys: &[&str]) -> String {
    let first = |key: &&str| {
        text.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == *key))
    };
    keys.iter().filter_map(first).map(|line| format!("{line}\n")).collect()
}

/// The options that are read, as the file has them.
fn options(text: &str) -> String {
    let known = build_config::parse_config("");
    let kept = text.lines().filter(|line| {
        line.split_once('=').is_some_and(|(option, _)| known.contains_key(option.trim()))
    });
    kept.map(|line| format!("{line}\n")).collect()
}

/// `/proc/config.gz` with the options that are read; as it was where it can't be unpacked.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut text = String::new();
    let most = gpuio_host::MOST_BYTES;
    if flate2::read::GzDecoder::new(bytes).take(most).read_to_string(&mut text).is_err() {
        return Vec::new();
    }
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let written = out.write_all(options(&text).as_bytes()).and_then(|()| out.finish());
    written.unwrap_or_default()
}

/// A line of `/proc/net/route`: destination and gateway in the machine's byte order.
fn route(line: &str, secrets: &mut Secrets) -> String {
    let mut fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
    for field in fields.iter_mut().skip(1).take(2) {
        let digits = field.trim();
        if digits.len() == 8
            && let Ok(number) = u32::from_str_radix(digits, 16)
        {
            let image = secrets.v4(Ipv4Addr::from(number.to_ne_bytes()));
            *field = format!("{:08X}", u32::from_ne_bytes(image.octets()));
        }
    }
    if let Some(interface) = fields.first_mut() {
        *interface = scrub(interface, true, secrets);
    }
    fields.join("\t")
}

/// A line of `/proc/net/ipv6_route`: destination, source and next hop of 32 digits each.
fn route_v6(line: &str, secrets: &mut Secrets) -> String {
    let fields = line.split(' ').map(|field| match u128::from_str_radix(field, 16) {
        Ok(number) if field.len() == 32 => {
            format!("{:032x}", secrets.v6(Ipv6Addr::from_bits(number)).to_bits())
        }
        Ok(_) => field.to_owned(),
        Err(_) => scrub(field, true, secrets),
    });
    fields.collect::<Vec<_>>().join(" ")
}
