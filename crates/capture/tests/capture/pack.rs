//! A capture gives the answers of the machine that it was taken from, and none of its secrets.

use gpuio_capture::pack::{self, MANIFEST, PackError, Redacted};
use gpuio_host::{Entry, Root, machine};
use gpuio_machine::check::{Finding, RULES, Rule, check};
use gpuio_machine::topo::{Topology, format};
use gpuio_record::facts::Machine;
use gpuio_testkit::machines::{DGX_2, DGX_A100, DGX_STATION, VIRTUAL};
use gpuio_testkit::tree;

const TABLES: [&str; 4] = [DGX_2, DGX_A100, DGX_STATION, VIRTUAL];

/// Secrets of the machine of [`secretive`] that must be gone.
const SECRETS: [&str; 27] = [
    "atlas17",
    "filer3",
    "projects",
    "alice",
    "acme",
    "S3CRET4711",
    "eui.0025385b71b00f4e",
    "1a2b3c4d-5e6f-4a8b-9c0d-112233445566",
    "1a2b3c4d_5e6f_4a8b_9c0d_112233445566",
    "GPU-8f3e",
    "0c42a1ff1020",
    "0c:42:a1",
    "10.77.",
    "0A4D0A0A",
    "4D0A",
    "fd77:beef",
    "fd77beef",
    "bigdata",
    "images.img",
    "k9XyVolume",
    "deadbeefcafe0123",
    "hunter2",
    "PRETTY",
    "Acme Build Farm",
    "session-4242",
    "nfsclient-id",
    "rpool/tank",
];

fn answers(machine: &Machine) -> (Topology, Vec<Finding>) {
    let rules: Vec<&Rule> = RULES.iter().collect();
    (Topology::of(machine, &[]), check(machine, &rules))
}

/// The machine of a tree on disk, and what was noted while it was read.
fn noted(tree: &tree::Tree) -> (Machine, gpuio_host::Tree) {
    let (root, recorder) = tree.root().recording();
    let machine = machine::read(&root);
    (machine, recorder.tree())
}

fn json(value: &impl serde::Serialize, tree: &tree::Tree) -> String {
    let text = serde_json::to_string_pretty(value).unwrap();
    text.replace(tree.path("").to_str().unwrap().trim_end_matches('/'), "")
}

fn back(redacted: &Redacted) -> Machine {
    machine::read(&Root::of(pack::read(&pack::write(redacted).unwrap()).unwrap()))
}

#[test]
fn what_was_noted_gives_the_same_facts() {
    for table in TABLES {
        let tree = tree::build(table);
        let (machine, notes) = noted(&tree);
        let again = machine::read(&Root::of(notes));
        assert_eq!(json(&machine, &tree), json(&again, &tree));
        let (root, recorder) = Root::at(tree.path("")).recording();
        assert_eq!(recorder.tree().entries().count(), 0);
        drop(root);
    }
}

#[test]
fn captures_of_servers_give_the_same_answers() {
    for table in TABLES {
        let tree = tree::build(table);
        let (machine, notes) = noted(&tree);
        let (there, findings) = answers(&machine);
        let (here, again) = answers(&back(&pack::redact(&notes, &[], 7)));
        let shape = |topology: &Topology| (topology.routes.clone(), topology.affinity.clone());
        assert_eq!(shape(&there), shape(&here));
        assert_eq!(format::document(&there).unbroken(), format::document(&here).unbroken());
        let words = |all: &[Finding]| -> Vec<(String, String)> {
            all.iter().map(|one| (one.rule.to_owned(), format!("{:?}", one.severity))).collect()
        };
        assert_eq!(words(&findings), words(&again));
    }
}

/// The counts of nvidia-fs come along, with its release and without the GPUs' UUIDs.
#[test]
fn captures_hold_what_nvidia_fs_counted() {
    let tree = tree::build(TABLES[0]);
    let stats = gpuio_testkit::machines::NVIDIA_FS_STATS;
    let stats = stats.replace("cross_root_port(%)=0", "cross_root_port(%)=42");
    tree.file("proc/driver/nvidia-fs/stats", stats);
    tree.file("sys/module/nvidia_fs/parameters/rw_stats_enabled", "1\n");
    let (machine, notes) = noted(&tree);
    let shares = &machine.settings.cross_root_ports;
    assert_eq!(shares.known().map(Vec::len), Some(2), "{shares:?}");
    let redacted = pack::redact(&notes, &[], 7);
    let captured = pack::read(&pack::write(&redacted).unwrap()).unwrap();
    let file = captured.entries().find(|(path, _)| path.ends_with("nvidia-fs/stats"));
    let Some((_, Entry::File(bytes))) = file else { panic!("no statistics") };
    let text = String::from_utf8_lossy(bytes).into_owned();
    assert!(text.contains("GDS Version: 1.0.0.71\n") && !text.contains("87e5c586"), "{text}");
    assert_eq!(&back(&redacted).settings.cross_root_ports, shares);
}

/// Where users' directories are.
const HOME: &str = "/home";

/// A server with secrets at every place that is known to hold some.
fn secretive() -> tree::Tree {
    let tree = tree::build(TABLES[2]);
    secretive_network(&tree);
    secretive_process(&tree);
    secretive_devices(&tree);
    tree
}

fn append(tree: &tree::Tree, path: &str, more: &str) {
    let before = std::fs::read_to_string(tree.path(path)).unwrap_or_default();
    tree.file(path, before + more);
}

fn secretive_network(tree: &tree::Tree) {
    let mounts = "40 25 0:70 / /mnt/ai rw,relatime - nfs filer3.acme.com:/projects/bigdata \
         rw,vers=3,rsize=524288,wsize=524288,proto=rdma,port=20049,addr=10.77.10.9,\
         mountaddr=10.77.10.9,sec=sys\n\
         41 25 0:71 / HOME/alice/x rw - cifs //filer3/projects rw,username=alice,\
         password=hunter2,addr=10.77.10.9\n\
         42 25 0:72 / /pods/1a2b3c4d-5e6f-4a8b-9c0d-112233445566/v rw - overlay overlay \
         rw,lowerdir=/acme/a:/acme/b,upperdir=/acme/c\n\
         43 25 0:73 / /tank rw - zfs rpool/tank rw,xattr,noacl\n\
         44 25 0:74 / /fast rw - nfs4 [fd77:beef::9]:/projects/bigdata \
         rw,vers=4.2,proto=tcp6,addr=fd77:beef::9\n\
         45 25 0:30 /user.slice/session-4242.scope /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    append(tree, "proc/self/mountinfo", &mounts.replace("HOME", HOME));
    tree.file(
        "proc/net/route",
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
         eno1\t00000000\t01014D0A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
         eno1\t000A4D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n",
    );
    tree.file(
        "proc/net/ipv6_route",
        "fd77beef000000000000000000000000 40 00000000000000000000000000000000 00 \
         00000000000000000000000000000000 00000100 00000001 00000000 00000001     eno1\n",
    );
    tree.file(
        "proc/net/fib_trie",
        "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.77.10.4\n        /32 host LOCAL\n",
    );
}

fn secretive_process(tree: &tree::Tree) {
    tree.file(
        "proc/self/cgroup",
        "0::/user.slice/session-4242.scope/acme-\
        pod1a2b3c4d_5e6f_4a8b_9c0d_112233445566.slice\n",
    );
    tree.file("proc/self/status", "Name:\tacme\nCpus_allowed_list:\t0-39\n");
    tree.file(
        "proc/cmdline",
        "root=UUID=1a2b3c4d-5e6f-4a8b-9c0d-112233445566 pci=realloc \
        ip=10.77.1.2 iommu=pt\n",
    );
    tree.file(
        "proc/cpuinfo",
        "processor : 0\nmodel name : Xeon\nflags : fpu\n\
        Serial : S3CRET4711\n",
    );
    tree.file(
        "boot/config-4.4.0-104-generic",
        "CONFIG_NUMA=y\n\
        CONFIG_DEFAULT_HOSTNAME=\"Acme Build Farm\"\n",
    );
    tree.file("proc/sys/kernel/version", "#12 SMP atlas17 Thu\n");
    tree.file("sys/module/nfs/parameters/nfs4_unique_id", "nfsclient-id\n");
    tree.file("sys/module/nvme/parameters/x", "10.77.3.4 atlas17\n");
}

fn secretive_devices(tree: &tree::Tree) {
    for (disk, serial) in [("sda", "S3CRET4711"), ("sdb", "eui.0025385b71b00f4e")] {
        let dir = Root::at(tree.path("")).resolve(format!("sys/class/block/{disk}")).unwrap();
        tree.file(&format!("{}/device/wwid", dir.display()), format!("{serial}\n"));
    }
    let volume = Root::at(tree.path("")).resolve("sys/class/block/dm-0").unwrap();
    tree.file(&format!("{}/dm/name", volume.display()), "k9XyVolume\n");
    tree.file(&format!("{}/dm/uuid", volume.display()), "LVM-deadbeefcafe0123PRETTY\n");
    tree.link("dev/mapper/k9XyVolume", "dev/dm-0");
    tree.file("dev/dm-0", "");
    append(tree, "proc/self/mountinfo", "46 25 0:75 / /v rw - xfs /dev/mapper/k9XyVolume rw\n");
    let loops = Root::at(tree.path("")).resolve("sys/class/block/loop0").unwrap();
    let file = format!("{HOME}/alice/x/images.img\n");
    tree.file(&format!("{}/loop/backing_file", loops.display()), file);
    tree.file(
        "proc/driver/nvidia/gpus/0000:07:00.0/information",
        "Model: \t\t Tesla V100\n\
        GPU UUID: \t GPU-8f3e3c4d-5e6f-4a8b-9c0d-112233445566\nDevice Minor: \t 0\n",
    );
    let card = Root::at(tree.path("")).resolve("sys/class/net/eno1").unwrap();
    let usb = card.with_file_name("enx0c42a1ff1020");
    for (file, text) in
        [("type", "1"), ("mtu", "1500"), ("speed", "1000"), ("address", "0c:42:a1:ff:10:20")]
    {
        tree.file(&format!("{}/{file}", usb.display()), format!("{text}\n"));
    }
    tree.link("sys/class/net/enx0c42a1ff1020", usb.to_str().unwrap());
}

#[test]
fn no_secret_is_left_and_the_answers_stay() {
    let tree = secretive();
    let (machine, notes) = noted(&tree);
    let names = ["atlas17".to_owned()];
    let redacted = pack::redact(&notes, &names, 0x5eed);
    let tar = pack::write(&redacted).unwrap();
    let text = String::from_utf8_lossy(&tar).to_ascii_lowercase();
    for secret in SECRETS {
        let at = text.find(&secret.to_ascii_lowercase());
        let around = at.map(|at| &text[at.saturating_sub(120)..(at + 60).min(text.len())]);
        assert_eq!(around, None, "{secret} is left");
    }
    let again = back(&redacted);
    let (there, findings) = answers(&machine);
    let (here, found) = answers(&again);
    assert_eq!(there.routes.len(), here.routes.len());
    let classes = |topology: &Topology| -> Vec<String> {
        topology.routes.iter().map(gpuio_machine::topo::Route::cell).collect()
    };
    assert_eq!(classes(&there), classes(&here));
    let shape = |all: &[Finding]| -> Vec<(String, String, usize)> {
        let row = |one: &Finding| {
            (one.rule.to_owned(), format!("{:?}", one.severity), one.locations.len())
        };
        all.iter().map(row).collect()
    };
    assert_eq!(shape(&findings), shape(&found));
    // Routes still lead to the servers, and one secret is one word all over.
    let nfs = |machine: &Machine, at: &str| {
        let mount = machine.mounts.iter().find(|one| one.mount.mount_point == at).unwrap();
        (mount.nfs.clone().unwrap(), mount.pci.clone())
    };
    for at in ["/mnt/ai", "/fast"] {
        let ((before, cards), (after, same)) = (nfs(&machine, at), nfs(&again, at));
        assert_eq!(before.interface.known().map(String::as_str), Some("eno1"), "{at}");
        assert_eq!((before.interface, cards), (after.interface, same));
        assert_eq!(before.read_bytes, after.read_bytes);
    }
    let (rdma, fast) = (nfs(&again, "/mnt/ai").0, nfs(&again, "/fast").0);
    assert_eq!(rdma.export, fast.export);
    let volume = again.mounts.iter().find(|one| one.mount.mount_point == "/v").unwrap();
    assert_eq!(volume.devices, ["dm-0"]);
    assert_eq!(again.settings.command_line, machine.settings.command_line);
    assert_eq!(again.config.options, machine.config.options);
}

#[test]
fn the_manifest_lists_what_was_taken() {
    let redacted = pack::redact(&noted(&secretive()).1, &[], 1);
    let tar = pack::write(&redacted).unwrap();
    let mut archive = tar::Archive::new(tar.as_slice());
    let mut first = archive.entries().unwrap().next().unwrap().unwrap();
    assert_eq!(first.path().unwrap().to_str(), Some(MANIFEST));
    let mut list = String::new();
    std::io::Read::read_to_string(&mut first, &mut list).unwrap();
    for line in ["* proc/self/mountinfo", "  IP addresses", "  serial numbers", "  volumes"] {
        assert!(list.contains(line), "{line} in\n{list}");
    }
    let files = redacted.tree.entries().filter(|(_, entry)| matches!(entry, Entry::File(_)));
    assert_eq!(files.count(), redacted.taken.len());
    assert_eq!(tar, pack::write(&pack::redact(&noted(&secretive()).1, &[], 1)).unwrap());
}

/// Captures that are compared with those of other hosts: servers are as on the machine, and all
/// other secrets are gone.
#[test]
fn addresses_stay_where_that_is_requested() {
    let (machine, notes) = noted(&secretive());
    let redacted = pack::redact_but_addresses(&notes, 1);
    let tar = pack::write(&redacted).unwrap();
    let text = String::from_utf8_lossy(&tar).into_owned();
    for kept in ["filer3.acme.com:/projects/bigdata", "10.77.10.9", "--keep-addresses"] {
        assert!(text.contains(kept), "{kept}");
    }
    for secret in ["hunter2", "alice", "112233445566"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let again = back(&redacted);
    let servers = |machine: &Machine| -> Vec<_> {
        let nfs = machine.mounts.iter().filter_map(|mount| mount.nfs.clone());
        nfs.map(|nfs| (nfs.server, nfs.export, nfs.address)).collect()
    };
    assert_eq!(servers(&machine), servers(&again));
    assert_eq!(servers(&again).len(), 3, "its own one, and two with secrets");
    let marked = |redacted: &Redacted| {
        redacted.tree.entries().any(|(path, _)| path.to_str() == Some(pack::ADDRESSES_KEPT))
    };
    assert!(marked(&redacted) && !marked(&pack::redact(&notes, &[], 1)));
}

/// A password can stand in what was mounted, and a number can be one.
#[test]
fn a_login_goes_even_where_addresses_stay() {
    let cases = [
        ("cifs", "//ann:hunter2@filer9/share", "@filer9/share"),
        ("cifs", "//ann:hun@ter2/hunter2@filer9/share", "@filer9/share"),
        ("fuse.sshfs", "ann@filer9:/data", "@filer9:/data"),
        ("fuse.sshfs", "sshfs#ann:hunter2@filer9:/data", "@filer9:/data"),
        ("fuse.davfs", "https://ann:hunter2@filer9/dav", "https://user"),
        ("fuse", "https://filer9/container?sig=hunter2&user=ann", "https://filer9/container?"),
        ("ceph", "ann@0-1.fs=/", "@0-1.fs=/"),
        ("lustre", "10.9.8.7@o2ib1:/lfs", "10.9.8.7@o2ib1:/lfs"),
        ("nfs4", "filer9:/vol@monday", "filer9:/vol@monday"),
        ("zfs", "pool/data@monday", "pool/data@monday"),
    ];
    for (kind, source, kept) in cases {
        let tree = tree::build(TABLES[2]);
        let options = "rw,password=4711471147,pass=4711471147,username=ann,pin=47114711";
        let line = format!("40 25 0:70 / /mnt/x rw - {kind} {source} {options}\n");
        append(&tree, "proc/self/mountinfo", &line);
        let notes = noted(&tree).1;
        let open =
            |redacted| String::from_utf8_lossy(&pack::write(&redacted).unwrap()).into_owned();
        let text = open(pack::redact_but_addresses(&notes, 1));
        assert!(text.contains(kept), "{kept} of {source}");
        let hidden = open(pack::redact(&notes, &[], 1));
        for secret in ["hunter2", "hun@ter2", "ann@", "ann:", "=ann", "47114711"] {
            assert!(!text.contains(secret) && !hidden.contains(secret), "{secret} of {source}");
        }
        assert!(!hidden.contains("filer9"), "{source}");
    }
}

#[test]
fn what_is_no_capture_is_refused() {
    assert!(matches!(pack::read(b"no tar at all"), Err(PackError::Tar(_) | PackError::NoMachine)));
    assert!(matches!(pack::read(&[0u8; 4096]), Err(PackError::NoMachine)));
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(1 << 40);
    header.set_path("proc/meminfo").unwrap();
    header.set_cksum();
    tar.append(&header, std::io::empty()).unwrap();
    let error = pack::read(&tar.into_inner().unwrap()).unwrap_err();
    assert!(matches!(error, PackError::TooMuch { .. }), "{error}");
}
