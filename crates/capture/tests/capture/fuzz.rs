//! Every reader of texts, and of captures, on texts that are broken and on hostile ones.

use std::sync::LazyLock;
use std::time::Duration;

use gpuio_capture::{Captured, KINDS, Kind, add, kind_of, pack};
use gpuio_host::{Root, machine};
use gpuio_machine::topo;
use gpuio_testkit::machines::DGX_STATION;
use gpuio_testkit::on_cpu;
use gpuio_testkit::tree;
use proptest::prelude::*;
use proptest::sample::Index;

/// Each fixture with the start of its kind's command.
const TEXTS: &[(&str, &[u8])] = &[
    ("lstopo --of xml", include_bytes!("../fixtures/dgx-a100.lstopo.xml")),
    ("lstopo --of xml", include_bytes!("../fixtures/package.lstopo.xml")),
    ("lspci -tv", include_bytes!("../fixtures/dgx-2.lspci-tv")),
    ("lspci -tv", include_bytes!("../fixtures/dgx-a100.lspci-tv")),
    ("lspci -vv", include_bytes!("../fixtures/switch.lspci-vv")),
    ("nvidia-smi --query", include_bytes!("../fixtures/dgx-2.query.csv")),
    ("nvidia-smi topo", include_bytes!("../fixtures/dgx-2.topo-mp")),
    ("nvidia-smi topo", include_bytes!("../fixtures/dgx-2-nfs.topo-mp")),
    ("nvidia-smi topo", include_bytes!("../fixtures/r7525.topo-mp")),
    ("ibdev2netdev", include_bytes!("../fixtures/dgx-2.ibdev2netdev")),
    ("ls -l", include_bytes!("../fixtures/dgx-2.by-path")),
    ("cat /proc/mdstat", include_bytes!("../fixtures/arrays.mdstat")),
    ("mount", include_bytes!("../fixtures/dgx-2.mount")),
    ("mount", include_bytes!("../fixtures/r7525.mount")),
    ("ip addr", include_bytes!("../fixtures/dgx-2.ip-addr")),
    ("ip route", include_bytes!("../fixtures/dgx-2.ip-route")),
    ("gdscheck", include_bytes!("../fixtures/a100-1.6-pdf.gdscheck")),
    ("gdscheck", include_bytes!("../fixtures/tokens-1.16.gdscheck")),
    ("NCCL", include_bytes!("../posted/nccl-507.txt")),
    ("nvidia-smi", include_bytes!("../posted/pytorch-rfcs-59.txt")),
    ("nvidia-smi -q", include_bytes!("../posted/bart-323.txt")),
    ("lstopo", include_bytes!("../posted/hwloc-385.txt")),
    ("ibstat", include_bytes!("../posted/mooncake-1999.txt")),
    (
        "ibv_devices",
        b"    device          node GUID\n    ------   ------\n    mlx5_0   88e9a4ffffa746e6\n",
    ),
    ("ibv_devinfo", include_bytes!("../posted/ompi-6184.txt")),
    ("nvme list", include_bytes!("../posted/nvme-cli-849.txt")),
    ("numactl", include_bytes!("../posted/numactl-165.txt")),
    ("lscpu", include_bytes!("../posted/xpu-perf-129.txt")),
    ("lspci", include_bytes!("../posted/raspberrypi-6195.txt")),
    ("nvidia-smi -L", b"GPU 0: NVIDIA H200 (UUID: GPU-1)\n"),
    ("ibstatus", IBSTATUS),
    ("rdma link", b"link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1np0\n"),
    ("lsblk", LSBLK),
    ("cat /etc/cufile.json", CUFILE_JSON),
    ("lsblk -J", include_bytes!("../kinds/lsblk-J.txt")),
    ("findmnt -J", FINDMNT_JSON),
    ("findmnt", include_bytes!("../kinds/findmnt.txt")),
    ("df", b"Filesystem Size Used Avail Use% Mounted on\n/dev/md0 1T 1T 1T 50% /raid\n"),
    ("nvme list -o json", include_bytes!("../kinds/nvme-list-json.txt")),
    ("nvme list-subsys", b"nvme-subsys0 - NQN=nqn.x\n\\\n +- nvme0 pcie 0000:01:00.0 live\n"),
    ("dcgmi diag", b"| Diagnostic | Result |\n| PCIe | Fail - GPU: 3 |\n| Warning | Gen 3 |\n"),
    ("nvidia-smi mig -lgi", b"| GPU instances:   |\n|   2  MIG 1g.10gb   19   9   2:1  |\n"),
    ("dmesg", include_bytes!("../kinds/dmesg-one-line.txt")),
    ("a table of results", b"| Threads | Read GB/s |\n|---|---|\n| 8 | 6.5 |\n"),
    ("cat /proc/cmdline", b"BOOT_IMAGE=/vmlinuz root=x ro iommu=pt\nGRUB_CMDLINE_LINUX=\"a\"\n"),
    ("cufile.log", include_bytes!("../kinds/cufile.log.txt")),
    ("lsscsi", include_bytes!("../kinds/lsscsi-one-line.txt")),
    ("mdadm --detail", include_bytes!("../kinds/mdadm-detail.txt")),
    ("gds_stats", include_bytes!("../kinds/gds_stats.txt")),
    ("cat /proc/driver/nvidia-fs/stats", include_bytes!("../kinds/nvidia-fs-stats.txt")),
    ("iostat", include_bytes!("../kinds/iostat.txt")),
    ("iostat", include_bytes!("../kinds/iostat-one-line.txt")),
    ("nvidia-smi dmon", include_bytes!("../kinds/dmon.txt")),
    ("dcgmi dmon", include_bytes!("../kinds/dcgmi.txt")),
    ("gdsio", include_bytes!("../kinds/gdsio-wrapped.txt")),
    ("fio", include_bytes!("../kinds/fio-2-progress.txt")),
    (
        "elbencho",
        b"OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n=== ===\nREAD  \
        Elapsed time  :  1s 1s\n",
    ),
    ("nfsstat -m", b"/mnt/nfs from 10.10.0.5:/export\n Flags:\trw,vers=3,addr=10.10.0.5\n"),
    ("cat /proc/mounts", include_bytes!("../kinds/proc-mounts.txt")),
    ("cat /proc/self/mountinfo", b"22 1 259:2 / / rw shared:1 - ext4 /dev/nvme0n1p2 rw\n"),
    ("cat /etc/fstab", b"UUID=1b2c / ext4 defaults 0 1\nnas:/x /nas nfs vers=3,proto=rdma\n"),
    ("cat /etc/netplan", include_bytes!("../kinds/netplan-torn.txt")),
    ("isi network", include_bytes!("../kinds/isi-torn.txt")),
    ("uname", b"Linux n1 5.15.0-1042-nvidia #42-Ubuntu SMP x86_64 GNU/Linux\n"),
    ("lsmod", b"$ lsmod | grep nv\nnvidia 5659 4 nvidia_uvm\nnvidia_uvm 1523712 0\n"),
    ("dd", b"1+0 records in\n1+0 records out\n4194304 bytes (4.2 MB) copied, 0.5 s, 8 MB/s\n"),
    ("hdparm", b"/dev/sda:\n Timing buffered disk reads: 1200 MB in 3.00 seconds = 400 MB/sec\n"),
    ("single_node_io.py", b"GPU | A100 (dev #0)\nnthreads | 1\ncufile read | 9.00 MiB/s\n"),
    ("ib_write_bw", b" RDMA_Write BW Test\n #bytes BW average[MB/sec]\n 8 1 0.0 1.0 0.1\n"),
    (
        "vdbench",
        b"rd=r,wd=w\nwd=w,sd=s\nsd=s,lun=/dev/sda\n14:13:02.050 avg_2-9 1 1 1048576 100 5\n",
    ),
    (
        "gpuio collect",
        b"/proc/sys/kernel/osrelease:6.8.0\n/sys/class/block/sda/queue/scheduler:[none]\n\
        /sys/module/kernel/:\n/run/udev/:\n/proc/self/limits:Max locked memory 65536 65536 bytes\n",
    ),
];

const FINDMNT_JSON: &[u8] = br#"{"filesystems": [
    {"target":"/", "source":"/dev/sda1", "fstype":"ext4", "options":"rw"} ] }"#;

const IBSTATUS: &[u8] = b"Infiniband device 'mlx5_0' port 1 status:\n\tstate: 4: ACTIVE\n\
                          \trate: 200 Gb/sec (4X HDR)\n";

const LSBLK: &[u8] = b"NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\nsda 8:0 0 1T 0 disk\n\
                       `-md0 9:0 0 1T 0 raid0 /data\n";

/// Comments, a repeated key and a comma before the end, as cuFile's own file has them.
const CUFILE_JSON: &[u8] = br#"{
    // NOTE : comments
    "logging": { "dir": "/var/log", "level": "ERROR" },
    "profile": { "nvtx": false, "cufile_stats": 0 },
    "properties": {
        "max_direct_io_size_kb": 16384, /* KiB */
        "max_direct_io_size_kb": 1024,
        "allow_compat_mode": true,
        "rdma_dev_addr_list": ["10.0.0.7", "10.0.0.8"],
    },
    "fs": { "lustre": { "posix_gds_min_kb": 0 } },
}
"#;

fn kind(start: &str) -> &'static Kind {
    let exact = KINDS.iter().find(|kind| kind.command == start);
    exact.or_else(|| KINDS.iter().find(|kind| kind.command.starts_with(start))).unwrap()
}

#[test]
fn each_kind_is_broken_here() {
    for kind in &KINDS {
        let broken = |(start, _): &(&str, &[u8])| std::ptr::eq(self::kind(start), kind);
        assert!(TEXTS.iter().any(broken), "{}", kind.command);
    }
}

/// Bytes flipped, lines cut, doubled or moved, cut off, NULs, bytes that are no UTF-8.
fn broken() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let one = (0u8..8, any::<Index>(), any::<Index>(), any::<u8>());
    (0..TEXTS.len(), prop::collection::vec(one, 1..8)).prop_map(|(which, harms)| {
        let mut bytes = TEXTS[which].1.to_vec();
        for (what, at, other, byte) in harms {
            bytes = broken_once(&bytes, what, (at, other), byte);
        }
        (which, bytes)
    })
}

fn broken_once(bytes: &[u8], what: u8, (at, other): (Index, Index), byte: u8) -> Vec<u8> {
    let index = at.index(bytes.len() + 1);
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let (line, elsewhere) = (at.index(lines.len().max(1)), other.index(lines.len().max(1)));
    let mut out = bytes.to_vec();
    match what {
        0 if index < out.len() => out[index] = byte,
        1 => out.insert(index, byte),
        2 => out.truncate(index),
        3 => out.insert(index, 0),
        4 => out.insert(index, 0x80 | byte),
        5 if !lines.is_empty() => {
            lines.remove(line);
            out = lines.concat();
        }
        6 if !lines.is_empty() => {
            lines.insert(elsewhere, lines[line]);
            out = lines.concat();
        }
        7 if !lines.is_empty() => {
            lines.swap(line, elsewhere);
            out = lines.concat();
        }
        _ => {}
    }
    out
}

fn errors_have_their_place(kind: &Kind, text: &str) -> Result<(), TestCaseError> {
    if let Err(error) = add(kind, text, &mut Captured::default()) {
        let lines = text.lines().count().max(1);
        prop_assert!(error.line >= 1 && error.line <= lines, "{}: {error}", kind.command);
        prop_assert!(error.column >= 1 && error.text.chars().count() <= 60);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 1000,
        ..ProptestConfig::default()
    })]

    /// Its own reader, and every other: people name the wrong file.
    #[test]
    fn broken_texts_are_read_or_refused((which, bytes) in broken()) {
        let text = String::from_utf8_lossy(&bytes);
        errors_have_their_place(kind(TEXTS[which].0), &text)?;
        for kind in &KINDS {
            errors_have_their_place(kind, &text)?;
        }
        let _ = kind_of(&text);
    }

    /// Several broken texts in one machine.
    #[test]
    fn broken_texts_are_merged(all in prop::collection::vec(broken(), 2..5)) {
        let mut captured = Captured::default();
        for (which, bytes) in &all {
            let text = String::from_utf8_lossy(bytes);
            let _ = add(kind(TEXTS[*which].0), &text, &mut captured);
        }
        let topology = topo::Topology::of(&captured.machine, &[]);
        prop_assert!(topo::format::svg(&captured.machine, &topology).ends_with("</svg>\n"));
        prop_assert!(topo::format::hwloc_xml(&captured.machine).ends_with("</topology>\n"));
    }
}

static TAR: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let table = DGX_STATION;
    let tree = tree::build(table);
    let (root, recorder) = tree.root().recording();
    assert!(machine::read(&root).problems.is_empty());
    pack::write(&pack::redact(&recorder.tree(), &[], 1)).unwrap()
});

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 200,
        ..ProptestConfig::default()
    })]

    /// A broken tar gives a tree or an error, and a broken tree a machine and a capture.
    #[test]
    fn broken_captures_are_read_or_refused(
        harms in prop::collection::vec((0u8..5, any::<Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = TAR.clone();
        for (what, at, byte) in harms {
            bytes = broken_once(&bytes, what, (at, at), byte);
        }
        if let Ok(tree) = pack::read(&bytes) {
            let machine = machine::read(&Root::of(tree.clone()));
            prop_assert!(machine.pci.len() <= 4096);
            let _ = pack::write(&pack::redact(&tree, &["atlas".to_owned()], 3));
        }
    }

    #[test]
    fn any_text_is_redacted(
        text in "([A-Za-z0-9:._/,=@%\\[\\] -]|ß|\u{0}|\n){0,300}",
        path in "(proc/self/mountinfo|proc/self/cgroup|proc/net/route|proc/net/ipv6_route|proc/x|\
                 proc/cpuinfo|sys/block/dm-0/dm/uuid|sys/x/loop/backing_file|dev/a/b)",
    ) {
        let mut tree = gpuio_host::Tree::default();
        tree.put(path.as_ref(), gpuio_host::Entry::File(text.into_bytes()));
        let once = pack::redact(&tree, &["abc".to_owned()], 3);
        prop_assert!(pack::read(&pack::write(&once).unwrap()).is_ok() || path.starts_with("dev"));
    }
}

/// Each kind as long as it may be, and a quarter of a MiB of lines that are understood and of ones
/// that are not: none takes the square of its length, which is minutes of that too.
#[test]
fn the_longest_texts_end_soon() {
    const PIECES: [&str; 5] = ["+-", "<a ", "\t", "[0]", "=\"&amp;"];
    const LONG: usize = 1 << 18;
    // Each kind looks at it, in a time that no test of ours limits.
    let all_look = |piece: &str| kind_of(&piece.repeat(LONG / piece.len().min(LONG)));
    for piece in PIECES {
        let _ = all_look(piece);
    }
    for (start, bytes) in TEXTS {
        let kind = kind(start);
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().collect();
        let longest = lines.iter().max_by_key(|line| line.len()).unwrap();
        let line = format!("{longest}\n");
        let own = [&*text, &line, longest];
        for piece in own {
            let _ = all_look(piece);
        }
        for piece in own.into_iter().chain(PIECES) {
            let most = if piece == text { kind.most_bytes } else { LONG };
            let whole = piece.repeat(most / piece.len().min(most));
            let start = on_cpu();
            errors_have_their_place(kind, &whole).unwrap();
            let spent = on_cpu() - start;
            assert!(spent < Duration::from_secs(30), "{}: {spent:?} of {piece:?}", kind.command);
        }
    }
}

#[test]
fn a_line_of_100_mb_is_refused_in_one_pass() {
    let line = "x".repeat(100 << 20);
    for kind in &KINDS {
        let start = on_cpu();
        let error = add(kind, &line, &mut Captured::default()).unwrap_err();
        assert_eq!((error.line, error.column), (1, 1));
        // One pass takes some tenths of a second, on a busy machine more than one; a search that
        // begins anew at each byte takes hours.
        assert!(on_cpu() - start < Duration::from_secs(30), "{}", kind.command);
    }
}
