//! `gpuio collect`: the script under every shell that is here, and what gpuio reads of its output.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::tool::{gpuio, other, scratch};

/// Shells that the script is for; `sh` is always here, and others may be missing.
const SHELLS: [&[&str]; 4] = [&["sh"], &["dash"], &["bash", "--posix"], &["busybox", "sh"]];

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Settings, limits, modules and a log.
fn settings(root: &Path) {
    for (file, text) in [
        ("proc/sys/kernel/osrelease", "6.1.0-9-generic"),
        ("boot/config-6.1.0-9-generic", "CONFIG_PCI_P2PDMA=y\n# CONFIG_ZONE_DEVICE is not set"),
        ("proc/self/limits", "Limit Soft Hard\nMax locked memory         65536    65536    bytes"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave"),
        ("sys/class/block/nvme0n1/queue/scheduler", "none [mq-deadline]"),
        ("sys/class/block/nvme0n1/queue/nr_requests", "1023"),
        ("sys/module/kernel/parameters/x", "1"),
        ("sys/module/nvme_core/parameters/multipath", "Y"),
        ("proc/modules", "nvme_core 151552 2 nvme, Live 0x0\nib_core 442368 1 mlx5_ib, Live 0x0"),
        (
            "var/log/cufile.log",
            " 26-02-2026 03:08:04:645 [pid=1 tid=1] ERROR  cufio:1 nvidia-fs driver is not loaded \
             /vol/alice/x 192.168.10.5\n 26-02-2026 03:08:04:646 [pid=1 tid=1] TRACE  cufio:1 hush",
        ),
    ] {
        put(root, file, &format!("{text}\n"));
    }
}

/// A root port with a drive below it that has fewer lanes than it could, a card, and mounts with
/// private names.
fn machine(root: &Path) {
    settings(root);
    let port = "sys/devices/pci0000:00/0000:00:01.0";
    for (file, text) in [
        ("class", "0x060400"),
        ("vendor", "0x8086"),
        ("device", "0x1234"),
        ("numa_node", "1"),
        ("secondary_bus_number", "1"),
        ("subordinate_bus_number", "1"),
        ("0000:01:00.0/class", "0x010802"),
        ("0000:01:00.0/vendor", "0x144d"),
        ("0000:01:00.0/device", "0xa824"),
        ("0000:01:00.0/numa_node", "1"),
        ("0000:01:00.0/max_link_speed", "16.0 GT/s PCIe"),
        ("0000:01:00.0/current_link_speed", "16.0 GT/s PCIe"),
        ("0000:01:00.0/max_link_width", "4"),
        ("0000:01:00.0/current_link_width", "2"),
        ("0000:01:00.0/serial", "S4U0NE0N100123"),
    ] {
        put(root, &format!("{port}/{file}"), &format!("{text}\n"));
    }
    let list = root.join("sys/bus/pci/devices");
    fs::create_dir_all(&list).unwrap();
    let up = "../../../devices/pci0000:00/0000:00:01.0";
    symlink(up, list.join("0000:00:01.0")).unwrap();
    symlink(format!("{up}/0000:01:00.0"), list.join("0000:01:00.0")).unwrap();
    put(root, "sys/class/nvme/nvme0/address", "0000:01:00.0\n");
    put(root, "sys/class/nvme/nvme0/nvme0n1/size", "100\n");
    put(root, "sys/devices/0000:02:00.0/net/ib0/operstate", "up\n");
    let card = "sys/class/infiniband/mlx5_0";
    for (file, text) in [
        ("state", "4: ACTIVE"),
        ("phys_state", "5: LinkUp"),
        ("rate", "100 Gb/sec (4X EDR)"),
        ("link_layer", "InfiniBand"),
    ] {
        put(root, &format!("{card}/ports/1/{file}"), &format!("{text}\n"));
    }
    symlink("../../../devices/0000:02:00.0", root.join(card).join("device")).unwrap();
    put(
        root,
        "proc/mounts",
        "/dev/nvme0n1 /data ext4 rw,relatime,data=ordered 0 0\n\
         filer.secret.example:/vol/alice /mnt/nfs nfs4 \
         rw,vers=4.2,rsize=1048576,proto=rdma,port=20049,clientaddr=192.168.10.5,\
         addr=192.168.10.9,note=hush 0 0\n\
         10.1.2.3@o2ib:/scratch /mnt/l lustre rw,flock 0 0\n\
         198.51.100.7:/x /mnt/d nfs4 rw,addr=198.51.100.7 0 0\n[fe80::1:2]:/x /mnt/e nfs4 rw 0 0\n\
         alice@bastion.acme.example:/srv /mnt/s fuse.sshfs rw 0 0\n\
         /dev/mapper/acme--vg-alice /mnt/v xfs rw 0 0\n/dev/acmevg/data /mnt/w xfs rw 0 0\n\
         acmefs /gpfs gpfs rw 0 0\nacme /fast tmpfs rw,size=1g 0 0\n\
         proc /proc proc rw 0 0\n",
    );
    put(
        root,
        "etc/cufile.json",
        "{ // set by alice, password=hush\n\"api_token\": \"hush\", /* of acme\n hush */\n\
         \"properties\": { \"rdma_dev_addr_list\": [\"192.168.10.5\"] },\n\
         \"logging\": { \"dir\": \"/data/alice/acme\" } }\n",
    );
    put(
        root,
        "proc/driver/nvidia-fs/stats",
        "GDS Version: 1.11.0.15\nGPU 0000:be:00.0  uuid:87e5c586-88ed-583b-df45-fcee0f1e7917 : \
         Registered_MiB=0\n",
    );
}

/// The script's output under each shell that is here.
fn collected(dir: &Path, root: Option<&Path>) -> Vec<(String, String)> {
    let made = gpuio(dir, "collect -o collect.sh").exits(0);
    assert!(made.out.contains("gpuio check --from machine.txt"), "{made:#?}");
    let mut all = Vec::new();
    for shell in SHELLS {
        let mut command = other(dir, Path::new(shell[0]));
        command.args(&shell[1..]).arg("collect.sh").args(root).current_dir(dir);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}/bin:{path}", dir.display()));
        let Ok(output) = command.output() else { continue };
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && errors.is_empty(), "{shell:?}: {errors}");
        all.push((shell.join(" "), String::from_utf8(output.stdout).unwrap()));
    }
    assert!(!all.is_empty(), "there is no sh");
    all
}

#[test]
fn a_machine_is_described_without_root_and_without_names() {
    let dir = scratch();
    let root = dir.path().join("root");
    machine(&root);
    // It is there, and each read of it fails, for root as well.
    let unreadable = "sys/module/nvme/parameters/broken";
    put(&root, "sys/module/nvme/parameters/empty", "\n");
    symlink("/proc/self/mem", root.join(unreadable)).unwrap();
    for (shell, text) in collected(dir.path(), Some(&root)) {
        let left_out = format!("# left out: /{unreadable}: it may not be read\n");
        assert!(text.contains(&left_out), "{shell}: {text}");
        assert!(text.contains("\n/sys/module/nvme/parameters/empty:\n"), "{shell}: {text}");
        for secret in [
            "secret",
            "alice",
            "192.168.10.",
            "10.1.2.3",
            "hush",
            "87e5c586",
            "S4U0NE0N",
            "scratch",
            "acme",
        ] {
            assert!(!text.contains(secret), "{shell}: {secret} in {text}");
        }
        // The same value by the same word; both in one network as before.
        let value = |name: &str| {
            let (_, rest) = text.split_once(name).unwrap();
            rest.split([',', ')', '"']).next().unwrap().to_owned()
        };
        let (own, server) = (value("clientaddr="), value(",addr="));
        assert_eq!(value("\"rdma_dev_addr_list\": [\""), own, "{shell}");
        let network = |address: &str| address.rsplit_once('.').unwrap().0.to_owned();
        assert_eq!(network(&own), network(&server), "{shell}");
        assert!(text.contains("GDS Version: 1.11.0.15"), "{shell}: a release is no address");
        assert!(text.contains("198.51.100.7") && text.contains("[2001:db8::"), "{shell}: {text}");
        let private = ["10.", "172.", "100.", "198.51.100."];
        assert!(private.iter().any(|net| own.starts_with(net)), "{shell}: {own}");
        assert!(text.contains("\n/dev/nvme0n1 on /data type ext4"), "{shell}: {text}");
        assert!(text.contains("# left out: /proc/mdstat"), "{shell}: {text}");
    }
}

#[test]
fn what_the_script_prints_is_read() {
    let dir = scratch();
    let root = dir.path().join("root");
    machine(&root);
    for (shell, text) in collected(dir.path(), Some(&root)) {
        fs::write(dir.path().join("machine.txt"), text).unwrap();
        let check = gpuio(dir.path(), "check --from machine.txt --only pcie-link,nfs-transport");
        let out = &check.out;
        assert!(out.contains("FAIL (1)") && out.contains("x2"), "{shell}: {check:#?}");
        assert!(out.contains("PASS (1)"), "{shell}: {check:#?}");
        let settings = "scheduler,huge-pages,memlock,governor,nvidia-fs,udev,p2pdma";
        let check = gpuio(dir.path(), &format!("check --from machine.txt --only {settings}"));
        for part in [
            "NVMe drives have a scheduler",
            "transparent huge pages: never",
            "may lock 64K",
            "1 processors at powersave",
            "nvidia-fs driver is not loaded",
        ] {
            assert!(check.out.contains(part), "{shell}: {part}: {check:#?}");
        }
        let topo = gpuio(dir.path(), "topo --from machine.txt").exits(0);
        for part in ["nvme0n1", "mlx5_0", "/mnt/nfs"] {
            assert!(topo.out.contains(part), "{shell}: {part}: {topo:#?}");
        }
    }
}

#[test]
fn this_machine_is_described_too() {
    let dir = scratch();
    put(dir.path(), "bin/gdscheck.py", "#!/bin/sh\necho GDS release version: 1.13.1.3 \"$@\"\n");
    let tool = dir.path().join("bin/gdscheck.py");
    fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
    for (shell, text) in collected(dir.path(), None) {
        assert!(text.starts_with("# gpuio collect "), "{shell}");
        assert!(text.contains("# left out: serial numbers"), "{shell}: {text}");
        assert!(!text.contains("left out: gdscheck"), "{shell}: {text}");
        // Integers of sysctl, which answer one read alone.
        for file in [
            "/proc/sys/fs/aio-max-nr",
            "/proc/sys/vm/zone_reclaim_mode",
            "/proc/sys/kernel/osrelease",
        ] {
            let Ok(value) = fs::read_to_string(file) else { continue };
            let line = format!("{file}:{}", value.trim_end());
            assert!(text.lines().any(|one| one == line), "{shell}: no {line} in {text}");
        }
        fs::write(dir.path().join("machine.txt"), &text).unwrap();
        let check = gpuio(dir.path(), "check --from machine.txt");
        assert!(check.code < 2 && check.out.contains("Read from "), "{shell}: {check:#?}");
    }
    let script = gpuio(dir.path(), "collect").exits(0);
    assert!(script.out.starts_with("#!/bin/sh\n"));
}

#[test]
fn a_script_is_replaced_on_request_only() {
    let dir = scratch();
    gpuio(dir.path(), "collect --output collect.sh").exits(0);
    gpuio(dir.path(), "collect --output collect.sh").exits(2);
    gpuio(dir.path(), "collect --output collect.sh --force").exits(0);
    fs::write(dir.path().join("mine.sh"), "true\n").unwrap();
    gpuio(dir.path(), "collect --output mine.sh --force").exits(2);
    assert_eq!(fs::read_to_string(dir.path().join("mine.sh")).unwrap(), "true\n");
}
