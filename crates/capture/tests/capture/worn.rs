//! Texts as pages and people wear them down: blanks drawn together, lines joined, titles above,
//! columns in another order, names without their underscore.

use gpuio_capture::{CaptureError, Captured, read};
use gpuio_record::facts::{BlockKind, Fact, Machine};

fn captured(text: &str) -> Captured {
    let mut captured = Captured::default();
    read("a text", text, &mut captured).unwrap();
    captured
}

fn machine(text: &str) -> Machine {
    captured(text).machine
}

/// Lines that were passed over.
fn skipped(captured: &Captured) -> Vec<(usize, &str)> {
    let all = captured.texts.iter().flat_map(|text| &text.skipped);
    all.map(|one: &CaptureError| (one.line, one.wanted)).collect()
}

/// As a web page shows a text that it does not take for one: runs of blanks are one.
fn collapsed(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_tree_whose_blanks_were_drawn_together_is_the_same_tree() {
    for text in [include_str!("../fixtures/dgx-2.lspci-tv"), TREE] {
        let (whole, worn) = (captured(text), captured(&collapsed(text)));
        assert_eq!(skipped(&worn).len(), skipped(&whole).len(), "{:?}", skipped(&worn));
        for one in &whole.machine.pci {
            let same = worn.machine.pci.iter().find(|other| other.address == one.address);
            let same = same.unwrap_or_else(|| panic!("{} is lost", one.address));
            assert_eq!(same.parent, one.parent, "{}", one.address);
            assert_eq!(same.host_bridge, one.host_bridge, "{}", one.address);
        }
        assert_eq!(worn.machine.pci.len(), whole.machine.pci.len());
    }
}

/// Where lines are missing too, bars are: a port is then left out, and no other is made up.
#[test]
fn a_worn_tree_that_was_cut_says_no_more_than_the_whole_one() {
    let text = include_str!("../fixtures/dgx-a100.lspci-tv");
    let lines: Vec<&str> = TREE.lines().collect();
    let cut = (1..lines.len()).map(|gone| {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != gone);
        kept.map(|(_, line)| format!("{line}\n")).collect::<String>()
    });
    for text in cut.chain([text.to_owned()]) {
        let (whole, worn) = (machine(&text), machine(&collapsed(&text)));
        for one in &worn.pci {
            let above = whole.upstream_path(&one.address);
            assert!(!above.is_empty(), "{} is not there:\n{text}", one.address);
            let is = |parent: &String| above.iter().any(|bridge| bridge.address == *parent);
            assert!(one.parent.as_ref().is_none_or(is), "{}: {:?}", one.address, one.parent);
        }
    }
}

/// Two root buses, a switch below a switch, and a bus whose last port closes it.
const TREE: &str = "\
-+-[80]-+-01.0-[81-8a]----00.0-[82-8a]--+-00.0-[83-86]----00.0-[84-86]--+-00.0-[85]----00.0  GA100
 |      |                               |                               \\-01.0-[86]----00.0  GA100
 |      |                               +-04.0-[87]----00.0  Samsung NVMe SSD
 |      |                               \\-08.0-[88-8a]----00.0-[89-8a]----00.0-[8a]----00.0  MT28
 |      \\-03.0-[8b]----00.0  Samsung NVMe SSD
 \\-[00]-+-01.0-[01]----00.0  Intel NVMe SSD
        \\-02.0-[02]----00.0  GA100
";

#[test]
fn lines_that_were_joined_are_parted() {
    let links = include_str!("../fixtures/dgx-2.by-path");
    let one_line = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join(" ");
    let (whole, joined) = (machine(links), machine(&one_line(links)));
    assert_eq!(joined.block, whole.block);
    assert!(!joined.block.is_empty());
    let tree = collapsed(TREE);
    let (whole, joined) = (machine(&tree), machine(&one_line(&tree)));
    let quoted: String = TREE.lines().map(|line| format!("> {line}\n")).collect();
    assert_eq!(machine(&quoted).pci, machine(TREE).pci, "quotes stay as they are");
    let addresses = |machine: &Machine| -> Vec<(String, Option<String>)> {
        let all = machine.pci.iter().map(|one| (one.address.clone(), one.parent.clone()));
        all.collect()
    };
    assert_eq!(addresses(&joined), addresses(&whole));
    // Also a small tree, with devices that have no bus below.
    let small = "-[0000:00]-+-00.0  Intel Corporation Device 09a2\n\
        \x20          +-01.0-[01]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]\n\
        \x20          +-02.0-[02-05]----00.0-[03-05]--+-00.0-[04]----00.0  Samsung PM173X\n\
        \x20          |                               \\-01.0-[05]----00.0  Mellanox MT28908\n\
        \x20          \\-1f.0  Intel Corporation C621 Series Chipset LPC Controller\n";
    let joined = machine(&one_line(&collapsed(small)));
    assert_eq!(addresses(&joined), addresses(&machine(small)));
}

#[test]
fn a_drive_on_usb_is_known_by_its_path_and_by_lsblk() {
    let links = "lrwxrwxrwx 1 root root 9 Nov 19 12:08 pci-0000:00:14.0-usb-0:8.2:1.0-scsi-0:0:0:0 \
                 -> ../../sda\n\
                 lrwxrwxrwx 1 root root 9 Nov 19 12:08 pci-0000:00:14.0-usbv3-0:1:1.0-scsi-0:0:0:0 \
                 -> ../../sdb\n\
                 lrwxrwxrwx 1 root root 9 Nov 19 12:08 pci-0000:01:00.0-nvme-1 -> ../../nvme0n1\n";
    let transports = |machine: &Machine| -> Vec<String> {
        let all = machine.block.iter().map(|one| {
            format!("{} {}", one.facts.name, one.facts.transport.as_deref().unwrap_or("-"))
        });
        let mut all: Vec<String> = all.collect();
        all.sort();
        all
    };
    assert_eq!(transports(&machine(links)), ["nvme0n1 -", "sda usb", "sdb usb"]);
    let table = "NAME    TYPE TRAN   MODEL\nsda     disk usb    Flash\nnvme0n1 disk nvme   Fast\n";
    let words = "`nvme` is no transport of NVMe";
    assert_eq!(transports(&machine(table)), ["nvme0n1 -", "sda usb"], "{words}");
}

#[test]
fn columns_of_lsblk_stand_in_any_order() {
    let rows = [
        "NAME        MAJ:MIN RM  SIZE RO TYPE  MOUNTPOINTS MODEL\n\
         nvme0n1     259:0    0  3.5T  0 disk  /data       A Fast 9000\n",
        "NAME        MAJ:MIN RM  SIZE RO TYPE  MODEL       MOUNTPOINTS\n\
         nvme0n1     259:0    0  3.5T  0 disk  A Fast 9000 /data\n",
        "NAME    MODEL       MOUNTPOINT TYPE\nnvme0n1 A Fast 9000 /data      disk\n",
    ];
    for text in rows {
        let machine = machine(text);
        assert_eq!(machine.mounts[0].mount.mount_point, "/data", "{text}");
        assert_eq!(machine.block[0].facts.model.as_deref(), Some("A Fast 9000"), "{text}");
    }
    // Without the gaps nobody knows where the model ends.
    let worn = machine(&collapsed(rows[0]));
    assert_eq!(worn.mounts[0].mount.mount_point, "/data");
    assert_eq!(worn.block[0].facts.kind, BlockKind::Disk);
    // A last column of mount points may have blanks in it.
    let blank =
        "NAME    MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\nnvme0n1 259:0 0 3.5T 0 disk /my data\n";
    assert_eq!(machine(blank).mounts[0].mount.mount_point, "/my data");
}

#[test]
fn a_cards_name_that_lost_its_underscore_makes_no_other_card() {
    let text = "mlx5_0 port 1 ==> ens6f0 (Up)\nmlx5 1 port 1 ==> ens6f1 (Up)\n\
                mlx5 x 2 port 1 ==> ens7 (Up)\n";
    let captured = captured(text);
    let names: Vec<&str> = captured
        .machine
        .nics
        .iter()
        .flat_map(|nic| &nic.rdma)
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["mlx5_0", "mlx5_1"]);
    assert_eq!(captured.machine.nics[1].interfaces[0].name, "ens6f1");
    assert_eq!(skipped(&captured).len(), 1);
    let verbose =
        "0000:0c:00.0 mlx5_0 (MT4123 - X) ConnectX-6 fw 20.33 port 1 (ACTIVE) ==> ib0 (Up)\n";
    let port = &machine(verbose).nics[0].rdma[0].ports[0];
    assert_eq!(port.state.as_deref(), Some("ACTIVE"));
}

#[test]
fn a_configuration_of_one_group_is_one_and_a_title_above_it_is_passed_over() {
    let groups = [
        "{ \"properties\": { \"use_pci_p2pdma\": true, \"allow_compat_mode\": false } }",
        "{ \"execution\": { \"parallel_io\": true } }",
        "// mine\n{ \"profile\": { \"cufile_stats\": 3 }, }",
        "{ \"fs\": { \"lustre\": { \"posix_gds_min_kb\": 4 } } }",
        "{ \"denylist\": { \"mounts\": [] } }",
    ];
    for text in groups {
        let read = captured(text);
        assert_eq!(read.machine.cufile.text, Fact::Known(Some(text.to_owned())));
        for title in ["# /etc/cufile.json", "$ cat /etc/cufile.json", "Listing 4: cufile.json"] {
            let read = captured(&format!("{title}\n{text}"));
            let kept = read.machine.cufile.text.known().unwrap().clone().unwrap();
            assert_eq!(kept.trim(), text, "below {title}");
            assert!(kept.starts_with('\n'), "lines keep their numbers");
            // A prompt is no part of the file.
            let noted = [(1, "JSON (`#` begins no comment there)")];
            let noted = if title.starts_with('$') { &[][..] } else { &noted };
            assert_eq!(skipped(&read), noted, "below {title}");
        }
    }
    for other in ["{ \"devices\": [] }", "{ \"version\": \"3.33\" }", "{}"] {
        let mut captured = Captured::default();
        assert!(read("a text", other, &mut captured).is_err(), "{other}");
    }
}

#[test]
fn rows_of_gdscheck_are_known_without_the_rest() {
    let rows = " NVMe               : Supported\n NVMeOF             : Unsupported\n";
    let check = machine(rows).gdscheck.unwrap();
    assert_eq!(check.drivers.len(), 2);
    let settings = "profile.cufile_stats : 3\nproperties.use_compat_mode : false\n";
    assert_eq!(machine(settings).gdscheck.unwrap().settings.len(), 2);
    let mut captured = Captured::default();
    let other = "block.size : 4096\nNVMe : my drive\n";
    assert!(read("a text", other, &mut captured).is_err(), "of another tool");
}

/// The rows of Dell's report as its PDF gives them: the `X` of a row says which one it is.
#[test]
fn rows_that_a_pdf_has_torn_are_named_by_their_place() {
    let head = "\t\tGPU0\tGPU1\tNICO\tNICI\tCPU Affinity\tNUMA Affinity\n";
    let rows = [
        "GPU\t10\t\u{425}\tNODE\tNODE\tNODE\t64-127 1\t\n",
        "GPU\t11\tNODE\tX\tNODE\tNODE\t64-127 1\n",
        "NIC\t:0\tNODE\tNODE\tX\tPIX\n",
        "NIC\t:1\tNODE\tNODE\tPIX\tX\n",
    ];
    let text = format!("{head}{}", rows.concat());
    let mut captured = Captured::default();
    read("a text", &text, &mut captured).unwrap();
    let matrix = &captured.matrices[0];
    assert_eq!(matrix.rows, ["GPU0", "GPU1", "NIC0", "NIC1"]);
    assert_eq!(matrix.cell("NIC1", "NIC0"), Some("PIX"));
    assert_eq!(captured.machine.gpus.iter().map(|gpu| gpu.node).collect::<Vec<_>>(), [Some(1); 2]);
    // The same place twice, and cells that are lost.
    let twice = format!("{head}{}{}{}", rows[1], rows[1], rows[2].replace("\tPIX", ""));
    let mut captured = Captured::default();
    read("a text", &twice, &mut captured).unwrap();
    assert_eq!(captured.matrices[0].rows, ["GPU1"]);
}

/// Issues of nvme-cli (128, 151), bcachefs (628), OCSSD-plus (5) and siderolabs' docs (566).
#[test]
fn what_a_reset_leaves_and_a_page_of_mounts_shows_is_read() {
    let mut captured = Captured::default();
    let log = "Feb 24 10:58:12 osd-62 kernel: [ 2410.027903] nvme nvme0: I/O 111 QID 1 timeout, \
               disable controller\n[11508.697977] nvme nvme2: Removing after probe failure \
               status: -19\n[11508.698359] nvme2n1: detected capacity change from 8001 to 0\n";
    read("a text", log, &mut captured).unwrap();
    assert!(captured.log.len() == 2 && captured.log.iter().all(|one| one.meaning().is_some()));
    assert_eq!(captured.machine.block[0].facts.name, "nvme2n1");
    let head = "Node             SN           Model                    Usage\n\
                ---------------- ------------ ------------------------ -----\n";
    let lost = "/dev/nvme0n1                  @                        1.60  TB\n";
    let whole = "/dev/nvme1n1     STM0001A8A15 PCIe3 1.6TB NVMe Adapter 1.60  TB\n";
    let drives = machine(&format!("{head}{whole}{lost}")).block;
    assert_eq!(drives.iter().map(|one| one.facts.name.as_str()).collect::<Vec<_>>(), ["nvme1n1"]);
    let mounts = "NAME        FSTYPE FSUSE% MOUNTPOINTS\nnvme0n1\n\
                  ├─nvme0n1p2 btrfs     66% /home\n│                            /nix/store\n";
    let mounts = machine(mounts).mounts;
    assert!(
        mounts.len() == 2 && mounts.iter().all(|one| one.mount.fs_type == "btrfs"),
        "{mounts:?}"
    );
    let cards = "    device                 node GUID\n    ------   ------\n    \
                 mlx5_0              88e9a4ffffa746e6\n    mlx5_1              88e9a4ffff8dadde\n";
    assert_eq!(machine(cards).nics.len(), 2);
}

/// Grace and processors with several nodes a socket: lists of nodes, or none.
#[test]
fn nodes_of_a_matrix_are_lists() {
    let text = |affinity: &str| {
        format!(
            "\tGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n\
             GPU0\t X \tSYS\t{affinity}\nNIC0\tSYS\t X \t\t\t\t\n"
        )
    };
    let spaced = "        GPU0    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n\
                  GPU0     X      SYS     0-71    0,3-9,11-17             2\n\
                  NIC0    SYS      X\n";
    for (text, nodes, memory) in [
        (spaced.to_owned(), vec![0, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17], Some(2)),
        (
            text("0-71\t0,3-9,11-17\t2"),
            vec![0, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17],
            Some(2),
        ),
        (text("0-71\t0-1\tN/A"), vec![0, 1], None),
        (text("0-71\tN/A\tN/A"), Vec::new(), None),
    ] {
        let machine = machine(&text);
        let gpu = &machine.gpus[0];
        assert_eq!((gpu.node, gpu.memory_node), (None, memory), "{text}");
        assert_eq!(gpu.near_nodes, nodes, "{text}");
        assert_eq!(gpu.near_cpus.as_ref().map(Vec::len), Some(72), "{text}");
        let known: Vec<u32> = machine.host.numa.nodes.iter().map(|node| node.node).collect();
        assert_eq!(known, nodes, "{text}");
        let shared = machine.host.numa.nodes.iter().all(|node| node.cpus.is_none());
        assert!(shared, "the processors are of all these nodes together: {text}");
    }
    let one = machine(&text("0-71\t1\tN/A"));
    assert_eq!((one.gpus[0].node, one.gpus[0].near_nodes.len()), (Some(1), 0));
}

/// PIX to NODE is on the GPU's own node; of SYS that is not known.
#[test]
fn a_card_is_on_the_node_of_a_gpu_that_it_is_near_to() {
    let text = "\tGPU0\tGPU1\tmlx5_0\tmlx5_1\tmlx5_2\tCPU Affinity\tNUMA Affinity\n\
                GPU0\t X \tSYS\tPIX\tSYS\tSYS\t0-63\t0\n\
                GPU1\tSYS\t X \tSYS\tNODE\tSYS\t64-127\t1\n";
    let machine = machine(text);
    let nodes: Vec<Option<u32>> = machine.nics.iter().map(|nic| nic.node).collect();
    assert_eq!(nodes, [Some(0), Some(1), None]);
}

/// Readers of XML note lines out of order; nothing that was pasted may end the program.
#[test]
fn lines_that_were_passed_over_in_any_order_are_noted() {
    let text = "<object type=\"Bridge\" bridge_pci=\"0000:[02-03]\" pci_busid=\"0000:00:00.0\" \
                pci_type=\"0604 [1:0]\">\n<< \"\n\n<object type=\"Bridge\" pci_busid=\"x\">\n<";
    let mut captured = Captured::default();
    let _ = read("a text", text, &mut captured);
    let texts = [
        "<object type=\"Bridge\"bridge_pci=\"0:[4-5]\"pci_busid=\"0:0.0\"pci_type=\"0 2:0\"><<",
        text,
    ];
    for text in texts
        .iter()
        .flat_map(|text| [(*text).to_owned(), text.repeat(3), format!("$ lspci\n{text}")])
    {
        let mut captured = Captured::default();
        let _ = read("a text", &text, &mut captured);
    }
}
