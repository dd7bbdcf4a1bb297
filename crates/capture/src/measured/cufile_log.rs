//! `cufile.log`: each message of the library once, with how often it stands there and, where known,
//! its meaning.

use std::collections::BTreeMap;

use crate::{CaptureError, Captured, Kind, lines};

pub(crate) const KIND: Kind = Kind {
    command: "cufile.log",
    gives: "errors and notices of cuFile, each once, with what they mean",
    most_bytes: crate::LOG,
    looks_like: |text| text.lines().any(|line| parts(line).is_some()),
    add,
};

/// More messages than anybody reads.
const MOST: usize = 200;
const LEVELS: [&str; 7] = ["FATAL", "ERROR", "WARN", "NOTICE", "INFO", "DEBUG", "TRACE"];

/// A message of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// `ERROR`, `WARN`, `NOTICE`, `INFO`.
    pub level: &'static str,
    /// Its words, of its first line.
    pub message: String,
    /// How many lines say it, numbers aside.
    pub count: u64,
}

impl LogLine {
    /// Its meaning for the bytes, where that is known.
    #[must_use]
    pub fn meaning(&self) -> Option<&'static str> {
        let known = MEANINGS.iter().find(|(part, _)| self.message.contains(part));
        known.map(|(_, meaning)| *meaning)
    }
}

/// Parts of messages and what they mean: NVIDIA's Troubleshooting Guide, and issues of
/// gds-nvidia-fs (62, 78) and cudf (13651).
const MEANINGS: [(&str, &str); 14] = [
    (
        "running in compatible mode",
        "cuFile reads into host memory and copies: nvidia-fs is not used",
    ),
    (
        "using cuFile posix read/write",
        "this file goes through host memory: GDS does not take its file system",
    ),
    ("nvidia_peermem.ko is not loaded", "RDMA from user space is off: `modprobe nvidia_peermem`"),
    (
        "No matching pair for network device",
        "no card is near to the GPU: routes over the network are not chosen by distance",
    ),
    (
        "Inc-bar-usage failed",
        "BAR1 is full: fewer or smaller registered buffers, or a GPU with a larger BAR1",
    ),
    ("Unsupported block device", "cuFile does not take this kind of block device"),
    (
        "error creating udev_device",
        "the file system has no block device that udev knows: GDS is off for it",
    ),
    (
        "unable to load,  liburcu",
        "a library for Lustre and user-space RDMA is missing: only they need it",
    ),
    ("pci_p2pdma not supported", "CUDA's driver can't use the kernel's peer-to-peer DMA here"),
    (
        "Config doesn't support PCIP2PDMA",
        "the kernel's peer-to-peer DMA is off in cuFile's configuration",
    ),
    ("for bounce buffer", "bytes go through a buffer of another GPU or PCIe group"),
    ("nvidia-fs driver is not loaded", "cuFile can't use GDS: `modprobe nvidia-fs`"),
    ("failed to open /proc/driver/nvidia-fs", "cuFile can't use GDS: `modprobe nvidia-fs`"),
    ("gds path taken", "these I/Os took GDS"),
];

/// Level and message: ` 11-10-2023 15:49:50:24 [pid=1 tid=1] NOTICE  cufio-rdma:175 text`; level
/// and place alone, where people cut the times.
fn parts(line: &str) -> Option<(&'static str, &str)> {
    let rest = match line.split_once("[pid=") {
        Some((_, rest)) => rest.split_once(']')?.1,
        None => line,
    };
    let rest = rest.trim_start();
    let level = LEVELS
        .iter()
        .find(|level| rest.strip_prefix(**level).is_some_and(|rest| rest.starts_with(' ')));
    let (level, rest) = match level {
        Some(level) => (*level, rest[level.len()..].trim_start()),
        // Some copies have the place alone.
        None if rest.starts_with("cufio") => ("INFO", rest),
        None => return None,
    };
    // The place in the source: `cufio-rdma:175`, `0:1072`.
    let (place, message) = rest.split_once(' ')?;
    let (file, number) = place.split_once(':')?;
    let known = file.starts_with("cufio")
        || file.starts_with("cufile")
        || file == "0"
        || file.starts_with("curdma");
    let digits = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty();
    (known && digits).then(|| (level, message.trim()))
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut known: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for (at, one) in captured.log.iter().enumerate() {
        known.insert((one.level, without_numbers(&one.message)), at);
    }
    for (index, line) in lines(text) {
        let Some((level, message)) = parts(line) else {
            captured.skip(CaptureError::new(index, line, 0, "a line of cufile.log"));
            continue;
        };
        captured.log_was_read = true;
        // Traces of single I/Os count only where they show the path.
        if matches!(level, "DEBUG" | "TRACE")
            && !MEANINGS.iter().any(|(part, _)| message.contains(part))
        {
            continue;
        }
        let key = (level, without_numbers(message));
        if let Some(at) = known.get(&key) {
            captured.log[*at].count += 1;
        } else if captured.log.len() < MOST {
            known.insert(key, captured.log.len());
            let message = message.chars().take(200).collect();
            captured.log.push(LogLine { level, message, count: 1 });
        }
    }
    Ok(())
}

/// Messages that differ in addresses and sizes alone are one.
fn without_numbers(message: &str) -> String {
    let mut out = String::new();
    for word in message.split_whitespace() {
        let number = word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains("/dev");
        out.push_str(if number { "#" } else { word });
        out.push(' ');
    }
    out
}
