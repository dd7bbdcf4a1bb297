//! `cufile.log`, errors of gdsio, and the kernel's messages on I/O that fails: each once, with how
//! often it stands there and, where known, its meaning.

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

/// A message of the library, of gdsio or of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// `ERROR`, `WARN`, `NOTICE`, `INFO`; `KERNEL`.
    pub level: &'static str,
    /// Its words, of its first line.
    pub message: String,
    /// How many lines say it, numbers aside.
    pub count: u64,
    /// The message without numbers.
    words: String,
}

impl LogLine {
    /// Its meaning for the bytes, where that is known.
    pub fn meaning(&self) -> Option<&'static str> {
        let mut all = MEANINGS.iter().chain(&OF_THE_KERNEL);
        let known = all.find(|(part, _)| self.message.contains(part));
        known.map(|(_, meaning)| *meaning)
    }
}

/// The level of messages from the kernel's log.
pub(crate) const KERNEL: &str = "kernel";

/// Parts of the kernel's messages on I/O that fails or waits, and what they mean: nvme/host/pci.c,
/// block/blk-core.c, pci/pcie/aer.c, net/sunrpc/clnt.c in Linux; NVIDIA's list of Xid errors.
const OF_THE_KERNEL: [(&str, &str); 18] = [
    (
        "timeout, aborting",
        "the drive gave no answer in time (nvme_core.io_timeout): link, power saving or firmware",
    ),
    ("timeout, reset controller", "the drive gave no answer to the abort either: it is restarted"),
    (
        "timeout, disable controller",
        "the drive gave no answer while it was started or stopped: it is switched off",
    ),
    ("Removing after probe failure", "the kernel gave the drive up: it is gone until a restart"),
    ("Buffer I/O error on dev", "a page of the page cache could not be read or written"),
    ("timeout, completion polled", "an interrupt was lost: the drive had answered"),
    ("controller is down; will reset", "the drive left the bus or hangs: link, power or firmware"),
    ("Device not ready; aborting", "the drive did not come back after a reset"),
    (
        "I/O error, dev ",
        "an I/O of this device failed: the program got EIO, unless an array or another path took \
         it",
    ),
    ("PCIe Bus Error: severity=", "errors on a PCIe link: riser, slot or cable"),
    (
        "AER: Corrected error",
        "errors on a PCIe link that were put right: riser, slot or cable, if there are many",
    ),
    (
        "disagrees about version of symbol",
        "the module was built for other modules than those that run: build it anew",
    ),
    (
        "uses symbols from proprietary module",
        "the kernel lets a module with GPL-only symbols use none of a proprietary module: it stays \
         out; NVIDIA's open kernel modules are not proprietary",
    ),
    (
        "Unknown symbol ",
        "the kernel gives the module no such symbol, so it stays out: what has it is not loaded, \
         is of another build, or is forbidden to it, as another message may say",
    ),
    ("not responding, still trying", "the NFS server gave no answer: I/O on its mounts waits"),
    ("NVRM: Xid", "the GPU's driver reports an error"),
    (
        "nvidia-fs:read IO failed",
        "a read by nvidia-fs ended with this errno; -512: a signal interrupted it",
    ),
    (
        "nvidia-fs:write IO failed",
        "a write by nvidia-fs ended with this errno; -512: a signal interrupted it",
    ),
];

const NO_MODULE: &str = "cuFile has no nvidia-fs (`modprobe nvidia-fs`): at most the kernel's \
                         peer-to-peer DMA is direct";

/// Parts of messages and what they mean: NVIDIA's Troubleshooting Guide, and issues of
/// gds-nvidia-fs (62, 70, 78) and cudf (13651).
const MEANINGS: [(&str, &str); 20] = [
    (
        "GPUDirect Storage not supported on current file",
        "cuFile refuses this file: it has no direct way to it, and takes none through host memory",
    ),
    (
        "running in compatible mode",
        "cuFile reads into host memory and copies: nvidia-fs is not used",
    ),
    (
        "using cuFile posix read/write",
        "this file goes through host memory: GDS can't take it, or the configuration switches GDS \
         off; which of them the message does not say",
    ),
    ("nvidia_peermem.ko is not loaded", "RDMA from user space is off: `modprobe nvidia_peermem`"),
    (
        "No matching pair for network device",
        "no card is near to the GPU: routes over the network are not chosen by distance",
    ),
    (
        "Inc-bar-usage failed",
        "the buffer is larger than what is left of BAR1: fewer or smaller registered buffers, or a \
         GPU with a larger BAR1",
    ),
    ("MAP ioctl failed", "nvidia-fs could not map the buffer's GPU memory"),
    ("error allocating nvfs handle", "the buffer could not be registered: see the line above it"),
    (
        "NVMe Driver not registered with nvidia-fs",
        "the kernel's NVMe driver does not work with nvidia-fs, which so has no direct way to NVMe \
         drives: a patched driver (MLNX_OFED, DOCA) registers when it is loaded",
    ),
    ("Unsupported block device", "cuFile does not take this kind of block device"),
    ("error creating udev_device", "cuFile finds no block device of the file system in udev"),
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
    ("nvidia-fs.ko driver not loaded", NO_MODULE),
    (
        "not found in mount table",
        "cuFile takes ext4 in ordered mode alone, and the mount's options do not show that",
    ),
    ("nvidia-fs driver is not loaded", NO_MODULE),
    ("failed to open /proc/driver/nvidia-fs", NO_MODULE),
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
        // gdsio's own.
        None if rest.starts_with("file register error:") => return Some(("ERROR", rest.trim())),
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
        note(level, message, captured);
    }
    Ok(())
}

/// Notes a message of the kernel, where it says that I/O fails or waits; false for another one.
pub(crate) fn note_of_kernel(message: &str, captured: &mut Captured) -> bool {
    let says = OF_THE_KERNEL.iter().any(|(part, _)| message.contains(part));
    if says {
        note(KERNEL, message, captured);
    }
    says
}

fn note(level: &'static str, message: &str, captured: &mut Captured) {
    let words = without_numbers(message);
    let same = |one: &&mut LogLine| one.level == level && one.words == words;
    if let Some(known) = captured.log.iter_mut().find(same) {
        known.count += 1;
    } else if captured.log.len() < MOST {
        let message = message.chars().take(200).collect();
        captured.log.push(LogLine { level, message, count: 1, words });
    }
}

/// Messages that differ in addresses and sizes alone are one.
fn without_numbers(message: &str) -> String {
    let mut out = String::new();
    for word in message.split_whitespace() {
        let number = word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains("/dev");
        // The kernel's tag and size of an I/O.
        let number = number || word.starts_with('(') || word.starts_with("size:");
        out.push_str(if number { "#" } else { word });
        out.push(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A meaning says no more than its message: a cause that the message leaves open stays open.
    #[test]
    fn meanings_leave_open_what_their_messages_do() {
        let text = "[ 3927.730583] nvidia_fs: module using GPL-only symbols uses symbols from \
            proprietary module nvidia.\n\
            [ 3927.730590] nvidia_fs: Unknown symbol nvidia_p2p_dma_unmap_pages (err -2)\n";
        let log = "NOTICE  cufio:1036 cuFileHandleRegister GDS not supported or disabled by \
            config, using cuFile posix read/write with compat mode enabled\n\
            ERROR  cufio-fs:199 NVMe Driver not registered with nvidia-fs!!!\n\
            ERROR  0:1072 Inc-bar-usage failed: size 524288000 remaining bytes 281018368\n";
        let mut captured = Captured::default();
        for text in [text, log] {
            crate::read("text", text, &mut captured).unwrap();
        }
        let meanings: Vec<&str> = captured.log.iter().filter_map(LogLine::meaning).collect();
        let wanted = [
            "proprietary",
            "is forbidden to it",
            "or the configuration",
            "patched",
            "left of BAR1",
        ];
        assert_eq!(meanings.len(), wanted.len(), "{:?}", captured.log);
        for (meaning, words) in meanings.iter().zip(wanted) {
            assert!(meaning.contains(words), "{meaning}");
        }
    }

    #[test]
    fn what_the_kernel_and_gdsio_say_of_failed_io_is_noted_once() {
        let text = "[    1.000001] nvme nvme1: 8/0/0 default/read/poll queues\n\
            [   31.777624] nvme nvme1: I/O tag 64 (c281) opcode 0x1 (I/O Cmd) QID 8 timeout, \
            aborting req_op:WRITE(1) size:4096\n\
            [   32.777624] nvme nvme1: I/O tag 65 (c282) opcode 0x1 (I/O Cmd) QID 9 timeout, \
            aborting req_op:WRITE(1) size:8192\n\
            [   61.985629] nvme nvme1: I/O tag 64 (c281) opcode 0x1 (I/O Cmd) QID 8 timeout, reset \
            controller\n";
        let mut captured = Captured::default();
        crate::read("text", text, &mut captured).unwrap();
        let counts: Vec<(&str, u64)> =
            captured.log.iter().map(|one| (one.level, one.count)).collect();
        assert_eq!(counts, [(KERNEL, 2), (KERNEL, 1)], "{:?}", captured.log);
        assert!(captured.log.iter().all(|one| one.meaning().is_some()));
        let text = "file register error: GPUDirect Storage not supported on current file \
            filename:/data/gdsio.0\n";
        crate::read("text", text, &mut captured).unwrap();
        assert_eq!((captured.log[2].level, captured.log[2].meaning().is_some()), ("ERROR", true));
    }
}
