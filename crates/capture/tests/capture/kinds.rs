//! Kinds of texts beside the classic ones: as tools print them, worn by web pages, and joined to
//! one line.

use gpuio_capture::{Captured, kind_of, read};
use gpuio_record::facts::{BlockDevice, BlockKind, MountKind, MountedStorage};

fn captured(text: &str) -> Captured {
    let mut captured = Captured::default();
    read("a text", text, &mut captured).unwrap();
    captured.finish();
    captured
}

fn whole(text: &str) -> Captured {
    let captured = captured(text);
    assert!(captured.texts[0].skipped.is_empty(), "{:?}", captured.texts[0].skipped);
    captured
}

#[test]
fn a_line_that_a_mail_wrapped_is_named_and_details_go_on() {
    let text = "> Alice wrote:\n>> 04:00.0 Non-Volatile memory controller: Samsung NVMe SSD\n\
                >> Controller PM9A1/PM9A3/980PRO (prog-if 02 [NVM Express])\n>> \tNUMA node: 1\n\
                >> \tLnkSta:\tSpeed 8GT/s (downgraded), Width x2 (downgraded)\n";
    let captured = captured(text);
    let skipped: Vec<usize> = captured.texts[0].skipped.iter().map(|one| one.line).collect();
    assert_eq!(skipped, [1, 3], "{:?}", captured.texts[0].skipped);
    let one = &captured.machine.pci[0];
    assert_eq!((one.link_now.width, one.node), (Some(2), Some(1)));
}

/// The command names the function whose line `grep` dropped.
#[test]
fn details_below_a_command_for_one_function_are_those_of_it() {
    let cap = "LnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported\n";
    let now = "LnkSta:\tSpeed 16GT/s, Width x8 (downgraded)\n";
    let list = "$ lspci\n41:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB]\n";
    for command in [
        "root@n1:~# lspci -vvv -s 41:00.0 | grep -i lnk",
        "$ sudo lspci -s 0000:41:00.0 -vv | egrep 'LnkCap|LnkSta'",
        "$ lspci -vv -s41:00.0 | grep Lnk",
    ] {
        for (above, below) in [("", list), (list, "")] {
            for tab in ["\t\t", ""] {
                let text = format!("{above}{command}\n{tab}{cap}{tab}{now}{below}");
                let machine = whole(&text).machine;
                let [one] = &machine.pci[..] else { panic!("{command}: {:?}", machine.pci) };
                assert_eq!(one.address, "0000:41:00.0");
                assert_eq!((one.link_most.width, one.link_now.width), (Some(16), Some(8)));
                assert_eq!(machine.gpus.len(), 1, "{command}");
            }
        }
    }
    // Without one address they are of any function.
    let text = format!("{list}$ lspci -vvv | grep -i lnk\n\t\t{cap}\t\t{now}");
    assert_eq!(captured(&text).texts[0].skipped.len(), 2);
    assert_eq!(captured(&text).machine.pci[0].link_now.width, None);
}

fn drive<'c>(captured: &'c Captured, name: &str) -> &'c BlockDevice {
    let all: Vec<&str> = captured.machine.block.iter().map(|one| one.facts.name.as_str()).collect();
    captured
        .machine
        .block
        .iter()
        .find(|one| one.facts.name == name)
        .unwrap_or_else(|| panic!("{name} is not among {all:?}"))
}

fn model<'c>(captured: &'c Captured, name: &str) -> &'c str {
    drive(captured, name).facts.model.as_deref().unwrap_or_default()
}

fn mount<'c>(captured: &'c Captured, at: &str) -> &'c MountedStorage {
    let all: Vec<&str> =
        captured.machine.mounts.iter().map(|one| one.mount.mount_point.as_str()).collect();
    captured
        .machine
        .mounts
        .iter()
        .find(|one| one.mount.mount_point == at)
        .unwrap_or_else(|| panic!("{at} is not among {all:?}"))
}

fn figure(captured: &Captured, of: &str, column: &str) -> Option<f64> {
    captured.measured.iter().find_map(|table| {
        let at = table.columns.iter().position(|name| name == column)?;
        let (_, _, values) = table.means().into_iter().find(|(device, ..)| *device == of)?;
        values.get(at).copied().flatten().map(|mean| mean.value)
    })
}

#[test]
fn lsblk_with_any_columns_in_any_order() {
    let all = whole(
        "$ lsblk -o SIZE,TYPE,MOUNTPOINT,MODEL,NAME\n\
         \x20 SIZE TYPE  MOUNTPOINT MODEL            NAME\n\
         \x20 3.5T disk             SAMSUNG MZQL23T8 nvme0n1\n\
         \x20 3.5T disk             SAMSUNG MZQL23T8 nvme1n1\n\
         \x20   7T raid0 /data                       └─md0\n",
    );
    assert_eq!(model(&all, "nvme1n1"), "SAMSUNG MZQL23T8");
    assert_eq!(drive(&all, "md0").made_of, ["nvme1n1"]);
    assert_eq!(mount(&all, "/data").mount.source, "/dev/md0");

    let short = whole("NAME TRAN RQ-SIZE\nsda  sata     128\nsdb  sata     128\n");
    assert_eq!(drive(&short, "sdb").facts.transport.as_deref(), Some("sata"));

    let paths = whole(
        "PATH         ROTA   SIZE TYPE FSTYPE MOUNTPOINT\n/dev/sda        1  10.9T disk xfs    \
            /bulk\n",
    );
    assert_eq!(drive(&paths, "sda").facts.rotational, Some(true));
    assert_eq!(mount(&paths, "/bulk").mount.fs_type, "xfs");

    let pairs = whole("SIZE=\"3.5T\" NAME=\"nvme0n1\" TYPE=\"disk\" MOUNTPOINTS=\"/a\\x0a/b\"\n");
    assert_eq!(mount(&pairs, "/b").mount.source, "/dev/nvme0n1");

    let lines = whole(
        "NAME    MAJ:MIN RM  SIZE RO TYPE MOUNTPOINTS\nnvme1n1 259:0    0  3.5T  0 disk \
            /data\n                                     /scratch\n",
    );
    assert_eq!(mount(&lines, "/scratch").mount.source, "/dev/nvme1n1");
}

#[test]
fn lsblk_whose_blanks_are_lost() {
    let worn = whole(
        "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINT MODEL\nnvme0n1 259:0 0 1.8T 0 disk SAMSUNG \
            MZ1L21T9\n\
         ├─nvme0n1p1 259:1 0 512M 0 part /boot/efi\n└─nvme0n1p2 259:2 0 1.8T 0 part /\n\
         nvme1n1 259:3 0 3.5T 0 disk /data Micron 9300 MTFDHAL3T8TDP\n",
    );
    assert_eq!(mount(&worn, "/boot/efi").mount.source, "/dev/nvme0n1p1");
    assert_eq!(mount(&worn, "/data").mount.source, "/dev/nvme1n1");
    assert_eq!(model(&worn, "nvme1n1"), "Micron 9300 MTFDHAL3T8TDP");
    assert_eq!(model(&worn, "nvme0n1"), "SAMSUNG MZ1L21T9");

    let one_line = captured(include_str!("../kinds/lsblk-one-line.txt"));
    assert_eq!(one_line.machine.block.len(), 3);
    assert_eq!(drive(&one_line, "sdc").facts.transport.as_deref(), Some("sata"));
}

#[test]
fn lsblk_and_findmnt_as_json() {
    let tree = whole(include_str!("../kinds/lsblk-J.txt"));
    assert_eq!(drive(&tree, "md127").made_of, ["nvme0n1", "nvme1n1"]);
    assert_eq!(
        (drive(&tree, "md127").facts.kind, mount(&tree, "/raid").kind),
        (BlockKind::Md, MountKind::Block)
    );
    let points = whole(
        "root@n1:~# lsblk -J -o NAME,SIZE,TYPE,MOUNTPOINTS,MODEL\n{\n  \"blockdevices\": [\n    \
            {\"name\":\"sda\",\"size\":1000,\"type\":\"disk\",\
         \"mountpoints\":[null],\"model\":\"X\",\"children\":[{\"name\":\"sda1\",\"size\":500,\"\
             type\":\"part\",\"mountpoints\":[\"/\",\"/snap\"]}]}\n  ]\n}\n",
    );
    assert_eq!(mount(&points, "/snap").mount.source, "/dev/sda1");
    assert_eq!(drive(&points, "sda").facts.size_bytes, Some(1000));
    let mounts = captured(
        "Output of findmnt:\n{\n   \"filesystems\": [\n      {\"target\":\"/\", \
            \"source\":\"/dev/sda1[/@]\", \"fstype\":\"btrfs\", \"options\":\"rw,ssd\",\n\
         \"children\": [ {\"target\":\"/data\", \"source\":\"10.0.0.1:/x\", \"fstype\":\"nfs4\"\
             , \"options\":\"rw,proto=rdma,vers=4.2\"} ] } ] }\n",
    );
    assert_eq!(mount(&mounts, "/").mount.source, "/dev/sda1");
    assert_eq!(mount(&mounts, "/data").nfs.as_ref().unwrap().transport.as_deref(), Some("rdma"));
}

#[test]
fn mounts_as_the_kernel_and_other_tools_print_them() {
    let kernel = whole(include_str!("../kinds/proc-mounts.txt"));
    assert_eq!(mount(&kernel, "/mnt/with space").mount.source, "/dev/sdc1");
    assert_eq!(
        (mount(&kernel, "/fsx").kind, mount(&kernel, "/home").kind),
        (MountKind::Lustre, MountKind::Nfs)
    );

    let info = whole(
        "$ cat /proc/self/mountinfo\n22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n\
         95 22 0:50 / /mnt/nfs rw,relatime shared:46 - nfs4 srv:/x rw,vers=4.1,rsize=1048576,pro\
             to=tcp,addr=10.1.1.1\n\
         23 22 0:21 / /proc rw,nosuid - proc proc rw\n",
    );
    assert_eq!(info.machine.mounts.len(), 2);
    assert_eq!(mount(&info, "/mnt/nfs").nfs.as_ref().unwrap().read_bytes, Some(1 << 20));

    let found = whole(include_str!("../kinds/findmnt.txt"));
    assert_eq!(mount(&found, "/mnt/lustre").kind, MountKind::Lustre);
    let tree = whole(
        "TARGET                       SOURCE         FSTYPE     OPTIONS\n\
            /                            /dev/nvme0n1p2 ext4       rw,relatime\n\
         ├─/sys                       sysfs          sysfs      rw,nosuid\n├─/rai\
             d                      /dev/md1       xfs        rw,noatime\n\
         │ └─/raid/deep               nas:/deep      nfs4       rw,vers=4.2\n",
    );
    assert_eq!(mount(&tree, "/raid/deep").mount.source, "nas:/deep");
    assert_eq!(tree.machine.mounts.len(), 3);
    let pairs =
        whole("TARGET=\"/data\" SOURCE=\"/dev/md0\" FSTYPE=\"xfs\" OPTIONS=\"rw,noatime\"\n");
    assert_eq!(mount(&pairs, "/data").mount.fs_type, "xfs");

    let nfs = whole(
        "/mnt/nfs from 10.10.0.5:/export\n Flags:\trw,relatime,vers=3,rsize=524288,wsize=524288,\
            proto=tcp,nconnect=8,addr=10.10.0.5\n",
    );
    assert_eq!(mount(&nfs, "/mnt/nfs").nfs.as_ref().unwrap().connections, 8);

    let sizes = whole(
        "Filesystem      Size  Used Avail Use% Mounted on\nudev            252G     0  252G   \
            0% /dev\n/dev/md0         28T   12T   15T  45% /raid\n\
         nas.example.org:/a/very/long/export/name\n                 10T    1T    9T  10% /nas\n",
    );
    assert_eq!(mount(&sizes, "/raid").mount.source, "/dev/md0");
    assert_eq!(mount(&sizes, "/nas").mount.source, "nas.example.org:/a/very/long/export/name");
    let typed = whole(
        "Filesystem     Type  1K-blocks  Used Available Use% Mounted on\n/dev/sda1      xfs   \
            100        50   50        50% /data\n",
    );
    assert_eq!(mount(&typed, "/data").mount.fs_type, "xfs");
}

const FSTAB: &str = "# /etc/fstab: static file system information.\n#\n# <file system> <mount \
    point> <type> <options> <dump> <pass>\n\
UUID=1b2c-3d / ext4 errors=remount-ro 0 1\n/dev/md0 /raid xfs defaults,noatime 0 2\nnas:/x /nas \
    nfs vers=3,proto=rdma,port=20049\n/swapfile none swap sw 0 0\n";

#[test]
fn fstab_is_what_is_mounted_at_boot() {
    let alone = whole(FSTAB);
    assert_eq!(mount(&alone, "/nas").nfs.as_ref().unwrap().port, Some(20049));
    assert_eq!(alone.machine.mounts.len(), 3);
    assert_eq!(alone.machine.at_boot, ["/", "/raid", "/nas"]);
    assert!(alone.remarks().iter().any(|note| note.contains("may not be mounted: /, /raid, /nas")));
    let both = captured(&format!(
        "$ cat /etc/fstab\n{FSTAB}\n$ mount\n/dev/sda2 on / type ext4 (rw)\n/dev/md0 on /raid \
            type xfs (rw)\n"
    ));
    assert_eq!(both.machine.mounts.len(), 2);
    assert!(both.machine.at_boot.is_empty());
    assert!(
        both.remarks().iter().any(|note| note == "In /etc/fstab and not mounted: /nas."),
        "{:?}",
        both.remarks()
    );
}

#[test]
fn nvme_lists_in_every_form() {
    let first = whole(include_str!("../kinds/nvme-list-json.txt"));
    assert_eq!(model(&first, "nvme0n1"), "INTEL SSDPE2KX080T8");
    assert_eq!(drive(&first, "nvme0n1").facts.size_bytes, None, "the size overflowed there");
    let second = whole(
        "{\"Devices\":[{\"HostNQN\":\"x\",\"Subsystems\":[{\"Subsystem\":\"nvme-subsys0\",\"Cont\
            rollers\":[{\"Controller\":\"nvme0\",\
         \"SerialNumber\":\"S\",\"ModelNumber\":\"SAMSUNG MZWLJ3T8\",\"Transport\":\"pcie\",\"Ad\
             dress\":\"0000:21:00.0\",\"Namespaces\":[\
         {\"NameSpace\":\"nvme0n1\",\"NSID\":1,\"PhysicalSize\":3840755982336}]}],\"Namespaces\"\
             :[]}]}]}\n",
    );
    let one = drive(&second, "nvme0n1");
    assert_eq!(
        (model(&second, "nvme0n1"), one.pci[0].as_str()),
        ("SAMSUNG MZWLJ3T8", "0000:21:00.0")
    );
    let worn = whole(
        "Node SN Model Namespace Usage Format FW Rev\n---------------- -------------------- \
            ---------------------------------------- --------- -------------------------- \
                ---------------- --------\n\
         /dev/nvme0n1 S4EWNX0R123 SAMSUNG MZWLL3T2HAJQ-00005 1 3.20 TB / 3.20 TB 512 B + 0 B \
             GPJA0B3Q\n",
    );
    assert_eq!(model(&worn, "nvme0n1"), "SAMSUNG MZWLL3T2HAJQ-00005");
    let paths = "nvme-subsys0 - NQN=nqn.2014-08.org.nvmexpress:uuid:x\n\\\n +- nvme0 pcie \
        0000:01:00.0 live\n\
                 nvme-subsys1 - NQN=nqn.x\n\\\n +- nvme1 rdma traddr=192.0.2.9,trsvcid=4420 \
                     live optimized\n +- nvme2 rdma traddr=192.0.2.8,trsvcid=4420 live\n";
    let with_names = whole(&format!(
        "{paths}\n$ lsblk\nNAME    MAJ:MIN RM  SIZE RO TYPE MOUNTPOINT\nnvme0n1 259:0    0  \
            3.5T  0 disk\nnvme1n1 259:1    0  3.5T  0 disk\n"
    ));
    assert_eq!(drive(&with_names, "nvme0n1").pci, ["0000:01:00.0"]);
    let remote = drive(&with_names, "nvme1n1").nvme.as_ref().unwrap();
    assert_eq!((remote.controllers.len(), remote.multipath), (2, true));
    assert_eq!(drive(&with_names, "nvme1n1").facts.transport.as_deref(), Some("rdma"));
    assert!(whole(paths).machine.block.iter().any(|one| one.facts.name == "nvme@01:00.0"));
}

#[test]
fn arrays_by_mdadm() {
    let imsm = whole(include_str!("../kinds/mdadm-detail.txt"));
    let array = drive(&imsm, "md/Volume1");
    assert_eq!(array.made_of, ["nvme0n1", "nvme1n1"]);
    assert_eq!(array.array.as_ref().unwrap().chunk_bytes, Some(128 << 10));
    let degraded = whole(
        "/dev/md1:\n           Version : 1.2\n     Creation Time : Tue Nov 19 12:08:00 \
            2024\n        Raid Level : raid10\n        Array Size : 7501209600 (7.00 TiB 7.68 TB)\n\
         \x20     Raid Devices : 4\n    Active Devices : 3\n             State : clean, \
             degraded\n            Layout : near=2\n        Chunk Size : 512K\n\n\
         \x20   Number   Major   Minor   RaidDevice State\n       0     259        1        \
             0      active sync set-A   /dev/nvme2n1p1\n       -       0        0        1      \
                 removed\n\
         \x20      2     259        3        2      active sync set-A   /dev/nvme4n1\n       \
             4     259        9        -      spare   /dev/nvme9n1\n",
    );
    let array = drive(&degraded, "md1");
    assert_eq!(array.made_of, ["nvme2n1p1", "nvme4n1"]);
    assert_eq!(
        (array.array.as_ref().unwrap().disks, array.array.as_ref().unwrap().degraded),
        (Some(4), Some(1))
    );
    let scanned = whole(
        "ARRAY /dev/md/0 level=raid0 num-devices=8 metadata=1.2 name=dgx:0 UUID=a:b:c:d\n   \
            devices=/dev/nvme0n1,/dev/nvme1n1\n",
    );
    assert_eq!(drive(&scanned, "md/0").array.as_ref().unwrap().disks, Some(8));
}

#[test]
fn scsi_devices_and_their_links() {
    let list = whole(
        "[0:0:0:0]    disk    ATA      SAMSUNG MZ7LH960 904Q  /dev/sda \n[1:0:0:0]    cd/dvd  \
            HL-DT-ST DVDRAM           1.0   /dev/sr0\n\
         [N:0:1:1]    disk    INTEL SSDPE2KX080T8__1                     /dev/nvme0n1\n[6:0:0:0\
             ]    enclosu AIC      12G Expander     0b01  -\n",
    );
    assert_eq!(
        (model(&list, "sda"), model(&list, "nvme0n1")),
        ("SAMSUNG MZ7LH960", "INTEL SSDPE2KX080T8")
    );
    assert_eq!(list.machine.block.len(), 2);
    let joined = captured(include_str!("../kinds/lsscsi-one-line.txt"));
    assert_eq!((joined.machine.block.len(), model(&joined, "sda")), (6, "Mobius H/W RAID0"));
    let sized = whole("[2:0:0:0]    disk    ATA      Samsung SSD 850  3B6Q  /dev/sdb   1.00TB\n");
    assert_eq!(drive(&sized, "sdb").facts.transport.as_deref(), Some("sata"));

    let log = captured(
        "[    1.952332] ata3: SATA link up 3.0 Gbps (SStatus 123 SControl 300)\n[    1.954756] \
            ata3.00: ATA-9: Samsung SSD 850 EVO 1TB, EMT03B6Q, max UDMA/133\n\
         [    2.001000] scsi 2:0:0:0: Direct-Access     ATA      Samsung SSD 850  3B6Q PQ: 0 \
             ANSI: 5\n[    2.010000] sd 2:0:0:0: [sda] 1953525168 512-byte logical blocks: \
                 (1.00 TB/932 GiB)\n\
         [    2.020000] nvme nvme0: pci function 0000:3b:00.0\n[    2.030000]  nvme0n1: p1 \
             p2\n[    2.040000] usb 1-1: new device\n",
    );
    let link = drive(&log, "sda").link.as_ref().unwrap();
    assert_eq!((link.port.as_str(), link.now_megabits), ("ata3", Some(3000)));
    assert_eq!(model(&log, "sda"), "Samsung SSD 850 EVO 1TB");
    assert_eq!(drive(&log, "nvme0n1").pci, ["0000:3b:00.0"]);
    let dmesg = include_str!("../kinds/dmesg-one-line.txt");
    let joined = captured(dmesg);
    assert_eq!(model(&joined, "drive@ata4"), "Samsung SSD 850 EVO 1TB");
    // The port is the disk of its model, whichever text comes first.
    let lsscsi = "$ lsscsi\n[3:0:0:0] disk ATA Samsung SSD 850 3B6Q /dev/sdb\n";
    for text in [format!("{lsscsi}$ dmesg\n{dmesg}"), format!("$ dmesg\n{dmesg}\n{lsscsi}")] {
        let mut both = captured(&text);
        both.finish();
        assert_eq!(drive(&both, "sdb").link.as_ref().unwrap().port, "ata4", "{text}");
        assert!(both.machine.block.iter().all(|one| one.facts.name != "drive@ata4"), "{text}");
    }
    let mut apart = captured(&format!("$ dmesg\n{dmesg}\n$ lsblk\nNAME TRAN\nsdb sata\n"));
    apart.finish();
    assert!(apart.remarks().join(" ").contains("sdb may be the same as drive@ata"));
}

#[test]
fn the_kernels_log_shows_functions_and_slow_links() {
    let log = captured(
        "Nov 11 10:00:00 dgx kernel: pci 0000:07:00.0: [10de:20b0] type 00 class 0x030200\n\
         Nov 11 10:00:01 dgx kernel: pci 0000:07:00.0: 63.008 Gb/s available PCIe bandwidth, \
             limited by 8.0 GT/s PCIe x8 link at 0000:03:00.0 (capable of 252.048 Gb/s with \
                 16.0 GT/s PCIe x16 link)\n\
         Nov 11 10:00:01 dgx kernel: Command line: BOOT_IMAGE=/vmlinuz iommu=off\n",
    );
    assert_eq!(log.machine.gpus.len(), 1);
    let above = log.machine.function("0000:03:00.0").unwrap();
    assert_eq!((above.link_now.mega_transfers, above.link_now.width), (Some(8000), Some(8)));
    assert_eq!(log.machine.function("0000:07:00.0").unwrap().link_most.width, Some(16));
    assert_eq!(log.machine.settings.command_line.as_ref().unwrap()[0], "iommu=off");
    let mut grouped = captured(
        "[    1.500000] iommu: Default domain type: Translated\n[    2.500000] pci 0000:07:00.0: \
         Adding to iommu group 12\n",
    );
    grouped.finish();
    let gpu = grouped.machine.function("0000:07:00.0").unwrap();
    assert_eq!((gpu.iommu_group, gpu.iommu_domain.as_deref()), (Some(12), Some("DMA")));
    let module = captured(
        "[  695.440652] nvidia_fs: Initializing nvfs driver module\n[  695.440659] nvidia_fs: \
         registered correctly with major number 501\n",
    );
    assert!(module.machine.modules.iter().any(|one| one.name == "nvidia_fs" && one.loaded));
    let way = "between 0000:07:00.0 and its root 63.008 Gb/s pass at most, for the 8.0 GT/s PCIe \
               x8 link at 0000:03:00.0; the device can do 252.048 Gb/s.";
    assert!(log.remarks().iter().any(|one| one.ends_with(way)), "{:?}", log.remarks());
}

/// Namespaces over a network stand in all tables, though their addresses move the columns.
#[test]
fn nvme_list_v_has_drives_of_a_network() {
    let list = "# nvme list -v\n\
        Device   SN       MN             FR    TxPort Address      Slot Subsystem    Namespaces\n\
        -------- -------- -------------- ----- ------ ------------ ---- ------------ ----------\n\
        nvme0    S4YP     SAMSUNG MZWLJ3 EPK9  pcie   0000:41:00.0 3    nvme-subsys0 nvme0n1\n\
        nvme1    5A8B     FlashArray     6.3.4 rdma   traddr=10.2.0.11,trsvcid=4420,src_addr=\
        10.2.0.1        nvme-subsys1 nvme1n1, nvme1n2\n\n\
        Device       Generic    NSID Usage                  Format         Controllers\n\
        ------------ ---------- ---- ---------------------- -------------- -----------\n\
        /dev/nvme0n1 /dev/ng0n1 0x1    3.84  TB /   3.84  TB  512   B +  0 B nvme0\n\
        /dev/nvme1n3 /dev/ng1n3 0x3    2.20  TB /  10.99  TB  512   B +  0 B nvme1\n";
    let captured = captured(list);
    let drive = |name: &str| drive(&captured, name);
    assert_eq!(drive("nvme0n1").pci, ["0000:41:00.0"]);
    for name in ["nvme1n1", "nvme1n2"] {
        assert_eq!(drive(name).facts.model.as_deref(), Some("FlashArray"));
        assert!(drive(name).pci.is_empty());
    }
    assert_eq!(drive("nvme1n3").facts.model, None);
    assert_eq!(captured.machine.block.len(), 4);
}

#[test]
fn mig_is_mentioned() {
    let table = whole(include_str!("../kinds/nvidia-smi-mig.txt"));
    assert_eq!(
        table.remarks()[0],
        "GPU0 is parted by MIG: 1 x 40320 MiB. All instances share its PCIe link."
    );
    let list = whole(
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-a)\n  MIG 3g.20gb     Device  0: (UUID: \
            MIG-b)\n  MIG 1g.5gb      Device  1: (UUID: MIG-c)\n  MIG 1g.5gb      Device  2: \
                (UUID: MIG-d)\n",
    );
    assert!(list.remarks()[0].starts_with("GPU0 is parted by MIG: 1 x 3g.20gb, 2 x 1g.5gb."));
    let instances = whole(
        "+-------------------------------------------------------+\n| GPU instances\
            :                                        |\n| GPU   Name             Profile  \
                Instance   Placement  |\n\
         |                          ID       ID       Start:Size |\n|===========================\
             ============================|\n|   2  MIG 1g.10gb         19        9          \
                 2:1     |\n+-------------------------------------------------------+\n",
    );
    assert!(instances.remarks()[0].starts_with("GPU2 is parted by MIG: 1 x 1g.10gb."));
}

#[test]
fn measured_figures_are_kept_as_printed() {
    let iostat = whole(include_str!("../kinds/iostat.txt"));
    assert_eq!(figure(&iostat, "nvme2n1", "rkB/s"), Some(3_478_144.0));
    assert_eq!(figure(&iostat, "nvme3n1", "%util"), Some(100.0));
    assert_eq!(figure(&iostat, "processors", "%idle"), Some(91.68));
    assert_eq!(drive(&iostat, "md127").facts.kind, BlockKind::Md);
    let joined = whole(include_str!("../kinds/iostat-one-line.txt"));
    assert_eq!(figure(&joined, "sda", "avgrq-sz"), Some((512.0 + 1929.70) / 2.0));
    let old = whole(
        "Linux 5.4.0 (host1) \t01/02/24 \t_x86_64_\t(96 CPU)\n\nDevice:            tps    \
            kB_read/s    kB_wrtn/s    kB_read    kB_wrtn\nsda              12,50       \
                100,00         0,00       1000          0\n",
    );
    assert_eq!(figure(&old, "sda", "tps"), Some(12.5));

    let dmon = captured(include_str!("../kinds/dmon.txt"));
    assert_eq!(
        figure(&dmon, "GPU2", "rxpci MB/s"),
        Some((8923.0 + 8922.0 + 8930.0 + 8764.0) / 4.0)
    );
    let timed = whole(
        "#Time        gpu    pwr  gtemp  mtemp     sm    mem\n#HH:MM:SS    Idx      W      \
            C      C      %      %\n 10:00:01      0     63     37      -      5      4\n",
    );
    assert_eq!(figure(&timed, "GPU0", "sm %"), Some(5.0));
    let dcgmi = captured(include_str!("../kinds/dcgmi.txt"));
    assert_eq!(figure(&dcgmi, "GPU12", "PCIRX"), Some(4_721_644_934.0));

    let stats = captured(include_str!("../kinds/gds_stats.txt"));
    assert_eq!(figure(&stats, "GPU10", "Read n"), Some(1_279_109.0));
    assert_eq!(figure(&stats, "GPU0", "buffers used"), Some(63.0));
    assert_eq!(figure(&stats, "process", "Read BandWidth (GiB/s)"), Some(0.126_041));

    let driver = captured(include_str!("../kinds/nvidia-fs-stats.txt"));
    assert!(driver.machine.modules.iter().any(|one| one.name == "nvidia_fs" && one.loaded));
    // It lists those in use alone, and says so.
    let listed: Vec<&str> = driver.machine.gpus.iter().flat_map(|gpu| gpu.pci.as_deref()).collect();
    assert_eq!(listed, ["0000:be:00.0", "0000:e7:00.0"]);
    assert!(driver.remarks().join(" ").contains("there may be more"), "{:?}", driver.remarks());
    assert_eq!(figure(&driver, "buffers mapped (Mmap)", "ok"), Some(183.0));
    assert_eq!(figure(&driver, "shadow buffers", "MiB"), Some(0.0));
    let sent = captured(
        "[me@n1 ~]# ib_send_bw -d mlx5_0 192.0.2.2 -R\n------------\n Send BW Test\n PCIe relax \
         order: Unsupported\n GID index : 3\n rdma_cm QPs : ON\n Data ex. method : rdma_cm\n \
         local address: LID 0000 QPN 0x01fc PSN 0xcf7f68\n GID: 00:00:00\n #bytes #iterations BW \
         peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\nConflicting CPU frequency values \
         detected: 3400.0 != 800.0. CPU Frequency is not max.\n 9000 1460 0.00 12538 1.460774\n",
    );
    assert_eq!((sent.results.len(), sent.texts[0].skipped.len()), (1, 0), "{:?}", sent.texts);

    let log = captured(include_str!("../kinds/cufile.log.txt"));
    assert_eq!(log.log.len(), 3);
    assert!(log.log[2].meaning().unwrap().contains("left of BAR1"));
}

#[test]
fn networks_of_client_and_server() {
    let mut netplan = captured(
        "network:\n  version: 2\n  ethernets:\n    ens6f0:\n      addresses:\n        - \
            10.100.10.11/24\n      mtu: 9000\n    ens6f1:\n      addresses: [10.100.20.11/24, \
                \"fd00::1/64\"]\n      nameservers:\n        addresses: [192.0.2.53]\n",
    );
    assert_eq!(netplan.network.interfaces.len(), 2);
    assert_eq!(netplan.network.interfaces[0].mtu_bytes, Some(9000));
    assert_eq!(netplan.network.connected.len(), 3);
    netplan.finish();
    let notes = netplan.remarks().join(" ");
    assert!(
        notes.contains(": ens6f0 10.100.10.11/24, MTU 9000; ens6f1 10.100.20.11/24"),
        "{notes}"
    );
    let torn = captured(include_str!("../kinds/netplan-torn.txt"));
    assert_eq!(torn.network.interfaces.iter().filter(|one| one.mtu_bytes == Some(9000)).count(), 2);
    // A name that only its place tells from a key.
    let names: Vec<&str> = torn.network.interfaces.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["enol", "ens6f0", "ens6f1"]);
    assert_eq!(torn.network.connected[0].interface, "enol");

    let isi = captured(
        "F600-1# isi network interfaces list\nLNN  Name       Status  VLAN ID  \
            Owners                      Owner Type  IP Addresses\n------------------------------\
                --------------------------------------------------------\n\
         1    100gige-1  Up      -        groupnet0.subnet10.pool10   Static      \
             10.100.10.101\n1    100gige-2  Down    -        groupnet0.subnet20.pool20   \
                 Static      10.100.20.101\n\
         1    mgmt-1     No Carrier -  -  -  -\n\
             ----------------------------------------------------\
                     ----------------------------------\nTotal: 2\n\
         $ mount\n10.100.10.101:/ifs/data on /mnt/a type nfs (rw,vers=3,proto=rdma,addr=10.100.1\
             0.101)\n",
    );
    let total = "isi network interfaces list printed `Total: 2`, and 3 such rows were read.";
    assert_eq!(isi.conflicts, [total]);
    let notes = isi.remarks().join(" ");
    assert!(
        notes.contains(
            "3 interfaces of 1 node, 1 of them up; not up: node 1's 100gige-2 (Down), node \
             1's mgmt-1 (No Carrier)"
        ),
        "{notes}"
    );
    assert!(notes.contains("/mnt/a is served by node 1's 100gige-1."), "{notes}");
    let torn = captured(include_str!("../kinds/isi-torn.txt"));
    assert!(torn.server_ports.len() >= 12, "{:?}", torn.server_ports);
}

#[test]
fn results_are_kept_for_those_who_read_results() {
    let wrapped = captured(include_str!("../kinds/gdsio-wrapped.txt"));
    let lines: Vec<usize> = wrapped.results.iter().map(|one| one.text.lines().count()).collect();
    assert_eq!((wrapped.results[0].tool, lines), ("gdsio", vec![2, 2]));
    assert!(wrapped.texts[0].skipped.is_empty(), "{:?}", wrapped.texts[0].skipped);
    let fio = captured(include_str!("../kinds/fio-2-progress.txt"));
    assert_eq!(fio.results[0].tool, "fio");
}

#[test]
fn one_unknown_line_does_not_hide_another_tools_output() {
    let post = "We see this on our box:\n$ findmnt /data\nTARGET SOURCE FSTYPE OPTIONS\n/data \
        /dev/md0 xfs rw\nand then\n$ cat /proc/mdstat\nPersonalities : [raid0]\nmd0 : active \
            raid0 nvme1n1[1] nvme0n1[0]\n      100 blocks super 1.2 512k chunks\n\nany idea?\n";
    let all = captured(post);
    assert_eq!(mount(&all, "/data").devices, ["md0"]);
    assert_eq!(all.texts[0].skipped.len(), 3, "{:?}", all.texts[0].skipped);
    assert!(kind_of("We see this on our box:\n").is_none());
}
