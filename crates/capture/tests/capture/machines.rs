//! Several machines in texts are parted, and nothing is guessed where that can't be.

use gpuio_capture::machines::{Machines, Text, read_all};
use gpuio_record::facts::Fact;

fn texts(all: &[(&str, &str)]) -> Machines {
    let text =
        |(name, body): &(&str, &str)| Text { name: (*name).to_owned(), body: (*body).to_owned() };
    read_all(&all.iter().map(text).collect::<Vec<_>>())
}

fn names(all: &Machines) -> Vec<&str> {
    all.machines.iter().map(|one| one.name.as_str()).collect()
}

fn query(addresses: &[&str]) -> String {
    let rows: String = addresses
        .iter()
        .enumerate()
        .map(|(at, pci)| format!("{at}, GPU {at}, 00000000:{pci}:00.0\n"))
        .collect();
    format!("index, name, pci.bus_id\n{rows}")
}

const LSBLK_A: &str = "NAME    SIZE TYPE MODEL    MOUNTPOINT\nnvme0n1 3.5T disk SAMSUNG1 /a\n";
const LSBLK_B: &str = "NAME    SIZE TYPE MODEL    MOUNTPOINT\nnvme0n1 7.0T disk INTEL001 /b\n";

/// nvme-cli, issue 128: the list after a reset shows no second machine.
#[test]
fn a_damaged_list_is_of_the_same_machine() {
    let list = |row: &str| {
        format!(
            "# nvme list\nNode             SN           Model                    Usage\n\
             ---------------- ------------ ------------------------ -----\n{row}\n\n"
        )
    };
    let text = list("/dev/nvme0n1     STM0001A8A15 PCIe3 1.6TB NVMe Adapter 1.60  TB")
        + "# nvme subsystem-reset /dev/nvme0; echo $?\n0\n\n"
        + &list("/dev/nvme0n1                  @                        1.60  TB");
    let all = texts(&[("post.txt", &text)]);
    assert_eq!(all.machines.len(), 1);
    let drives = &all.machines[0].captured.machine.block;
    assert_eq!(drives[0].facts.model.as_deref(), Some("PCIe3 1.6TB NVMe Adapter"));
}

#[test]
fn prompts_part_a_text() {
    let text = format!(
        "joe@dgx2:~$ nvidia-smi --query-gpu=index,name,pci.bus_id --format=csv\n{}joe@dgxa100:~\
            $ nvidia-smi --query-gpu=index,name,pci.bus_id --format=csv\n{}joe@dgx2:~$ \
                lsblk\n{LSBLK_A}",
        query(&["34", "36"]),
        query(&["07", "0f", "47"]),
    );
    let all = texts(&[("post.txt", &text)]);
    assert_eq!(names(&all), ["dgx2", "dgxa100"]);
    let counts: Vec<usize> =
        all.machines.iter().map(|one| one.captured.machine.gpus.len()).collect();
    assert_eq!(counts, [2, 3]);
    assert_eq!(all.machines[0].captured.machine.mounts.len(), 1);
    assert!(all.machines[1].captured.machine.mounts.is_empty());
}

#[test]
fn prefixes_and_blocks_of_parallel_shells_part_a_text() {
    let lines = "n1: Personalities : [raid0]\nn1: md0 : active raid0 nvme1n1[1] nvme0n1[0]\nn2: \
        Personalities : [raid0]\nn2: md0 : active raid0 sdb[1] sda[0]\n";
    let all = texts(&[("out", lines)]);
    assert_eq!(names(&all), ["n1", "n2"]);
    assert_eq!(all.machines[1].captured.machine.block.len(), 3);
    let blocks = format!(
        "---------------\nn1\n---------------\n{LSBLK_A}---------------\nn2\n---------------\n{L\
            SBLK_B}"
    );
    let all = texts(&[("out", &blocks)]);
    assert_eq!(names(&all), ["n1", "n2"]);
    assert_eq!(all.machines[1].captured.machine.mounts[0].mount.mount_point, "/b");
}

#[test]
fn devices_that_contradict_each_other_part_texts() {
    let (a, b) = (query(&["34", "36", "39"]), query(&["07", "0f", "47"]));
    let all =
        texts(&[("x/old/gpus.txt", &a), ("x/new/gpus.txt", &b), ("x/new/lsblk.txt", LSBLK_B)]);
    assert_eq!(names(&all), ["old", "new"]);
    assert_eq!(all.machines[1].captured.machine.mounts.len(), 1);
    assert!(all.undecided.is_empty());
    let post = format!("The first machine has these:\n{a}\nThe second machine has others:\n{b}");
    let all = texts(&[("post", &post)]);
    assert_eq!(names(&all), ["machine 1", "machine 2"]);
    let first = &all.machines[0].captured.machine.gpus;
    assert_eq!((first.len(), first[0].pci.as_deref()), (3, Some("0000:34:00.0")));
}

#[test]
fn a_report_of_gdscheck_on_other_gpus_is_of_another_machine() {
    let report = |name: &str| {
        format!("GPU index 0 {name} bar:1 bar size (MiB):131072 supports GDS\nIOMMU: disabled\n")
    };
    let tree = include_str!("../fixtures/dgx-2.lspci-tv");
    for own in [include_str!("../fixtures/dgx-2.query.csv"), tree] {
        let other = report("NVIDIA A100 80GB PCIe");
        // Texts that a prompt names stay together.
        let all = texts(&[("own", own), ("gdscheck", &format!("dgx2> gdscheck -p\n{other}"))]);
        assert_eq!(names(&all), ["dgx2"]);
        let one = &all.machines[0].captured;
        assert!(one.machine.gdscheck.is_none());
        assert!(one.remarks().iter().any(|text| text.contains("lists A100 GPUs")));
        let own = own.replace("dgx2>", "$");
        let all = texts(&[("own", &own), ("gdscheck", &other)]);
        assert_eq!(names(&all), ["machine 1", "machine 2"]);
        assert!(all.machines[0].captured.machine.gdscheck.is_none());
        let all = texts(&[("own", &own), ("gdscheck", &report("Tesla V100-SXM3-32GB"))]);
        assert_eq!(all.machines.len(), 1);
        assert!(all.machines[0].captured.machine.gdscheck.is_some());
    }
}

/// Reports of one machine have its GPUs; pieces of a report are one, and of two the later counts.
#[test]
fn reports_of_gdscheck_are_parted_by_their_gpus_joined_or_named() {
    let head = |release: &str| format!("GDS release version: {release}\n NVMe : Supported\n");
    let gpus = |all: &[&str]| -> String {
        let row = |at: usize, name: &str| format!("GPU index {at} {name} bar:1 bar size (MiB):9\n");
        all.iter().enumerate().map(|(at, name)| row(at, name)).collect()
    };
    let two = head("1.7") + &gpus(&["NVIDIA H100", "NVIDIA H100"]);
    for other in [&["NVIDIA A100", "NVIDIA A100"][..], &["NVIDIA H100"]] {
        let other = head("1.13") + &gpus(other);
        let files = texts(&[("a", &two), ("b", &other)]);
        let post = texts(&[("post", &format!("{two}\n{other}"))]);
        for all in [files, post] {
            assert_eq!(names(&all), ["machine 1", "machine 2"], "{other}");
            let counts = all.machines.iter().map(|one| &one.captured.machine.gdscheck);
            let counts: Vec<usize> = counts.map(|one| one.as_ref().unwrap().gpus.len()).collect();
            assert_eq!(counts[0], 2, "{other}");
        }
    }
    let later = two.replace("1.7", "1.13");
    let post = format!("{two}{later}");
    for all in [texts(&[("a", &two), ("b", &later)]), texts(&[("post", &post)])] {
        let one = &all.machines[0].captured;
        let check = one.machine.gdscheck.as_ref().unwrap();
        assert_eq!((all.machines.len(), check.gpus.len(), check.drivers.len()), (1, 2, 1));
        assert_eq!(check.release, Fact::Known("1.13".to_owned()));
        let words = "gdscheck's reports (release: 1.7, then 1.13; for an earlier one give its \
                     lines alone)";
        assert_eq!(one.contradictions, [words]);
    }
    // Lines without a release are a part: each line's last value counts, whatever parts them.
    let lines = |nvme: &str, nfs: &str| format!(" NVMe : {nvme}\n NFS : {nfs}\n");
    let (first, second) = (lines("Supported", "Unsupported"), lines("Unsupported", "Supported"));
    for text in [format!("Before:\n{first}After:\n{second}"), first.clone() + "$ ls\n" + &second] {
        let all = texts(&[("post", &text)]);
        let one = &all.machines[0].captured;
        let drivers = &one.machine.gdscheck.as_ref().unwrap().drivers;
        let values: Vec<&str> =
            drivers.iter().map(|line| line.value.known().unwrap().as_str()).collect();
        assert_eq!(values, ["Unsupported", "Supported"], "{text}");
        let said = &one.contradictions[0];
        assert!(said.contains("NVMe: Supported, then Unsupported; NFS: Unsupp"), "{said}");
    }
    // A line that is quoted below its report takes nothing away.
    let all = texts(&[("post", &format!("{two}\nSo this is right:\n\n NVMe : Supported\n"))]);
    let check = all.machines[0].captured.machine.gdscheck.as_ref().unwrap();
    assert_eq!((check.gpus.len(), check.release.known().is_some()), (2, true));
    assert!(all.machines[0].captured.contradictions.is_empty());
    let all = texts(&[("a", &head("1.7")), ("b", &gpus(&["NVIDIA H100"]))]);
    let one = &all.machines[0].captured;
    let check = one.machine.gdscheck.as_ref().unwrap();
    assert_eq!((check.drivers.len(), check.gpus.len()), (1, 1));
    assert!(one.contradictions.is_empty());
}

/// All outputs below a title are of one machine, also those that show none of its devices.
#[test]
fn titles_part_machines_before_their_outputs_do() {
    let chapter = |title: &str, path: &str, model: &str, uuid: &str| {
        format!(
            "## {title}\n\n$ gdscheck -p | grep NVMe\n NVMe : {path}\n$ nvidia-smi -L\n\
             GPU 0: NVIDIA {model} (UUID: GPU-{uuid}-2222-3333-4444-555555555555)\n\n"
        )
    };
    let post = chapter("Node A", "Supported", "A100-SXM4-80GB", "11111111")
        + &chapter("Node B", "Unsupported", "H100 PCIe", "22222222");
    let all = texts(&[("post", &post)]);
    let paths = all.machines.iter().map(|one| {
        let check = one.captured.machine.gdscheck.as_ref().unwrap();
        check.drivers[0].value.known().unwrap().as_str()
    });
    assert_eq!(paths.collect::<Vec<_>>(), ["Supported", "Unsupported"]);
}

/// Words between the lines of `pdsh` name no machine.
#[test]
fn lines_of_hosts_are_parted_by_the_hosts() {
    let each = "# pdsh -a mount -t xfs\na1: /dev/sda on /a type xfs (rw)\na2: /dev/sdb on /b type \
                xfs (rw)\n";
    let all = texts(&[("post", each)]);
    assert_eq!(names(&all), ["a1", "a2"]);
    assert_eq!(all.machines[1].captured.machine.mounts[0].mount.source, "/dev/sdb");
    let both = format!("{each}and the other shelf:\na1: /dev/sdc on /c type xfs (rw)\n");
    let all = texts(&[("post", &both)]);
    assert_eq!(names(&all), ["a1", "a2"]);
    assert_eq!(all.machines[0].captured.machine.mounts.len(), 2);
}

/// Two machines with the same tools: each has its own report, whatever parts them, also where
/// their devices are equal but a title names them.
#[test]
fn machines_are_parted_in_the_ways_in_which_people_part_them() {
    let outputs = |path: &str, gpus: &[&str]| -> [String; 3] {
        [
            format!("GDS release version: 1.7\n NVMe : {path}\n NFS : Unsupported\n"),
            format!("/dev/nvme0n1 on /{path} type xfs (rw)\n/dev/sda1 on / type ext4 (rw)\n"),
            query(gpus),
        ]
    };
    let (same, other) = (&["34", "36"][..], &["07", "0f"][..]);
    let sides = |second: &[&str]| [outputs("Supported", same), outputs("Unsupported", second)];
    let blocks = |heads: [&str; 2], second: &[&str]| -> String {
        let block = |(head, side): (&str, [String; 3])| format!("{head}\n{}\n", side.join("\n"));
        heads.into_iter().zip(sides(second)).map(block).collect()
    };
    let lines = |heads: [&str; 2]| -> String {
        let turn = |at: usize| -> String {
            let sides = heads.into_iter().zip(sides(other));
            let row = |(head, side): (&str, [String; 3])| -> String {
                side[at].lines().map(|line| format!("{head}: {line}\n")).collect()
            };
            sides.map(row).collect()
        };
        (0..3).map(turn).collect()
    };
    let pssh = |heads: [&str; 2]| blocks(heads, other);
    let machines = ["machine 1", "machine 2"];
    for (text, named) in [
        (blocks(["## Node A", "## Node B"], other), ["Node A", "Node B"]),
        (blocks(["Node 1:", "Node 2:"], same), ["Node 1", "Node 2"]),
        (blocks(["=== host1 ===", "=== host2 ==="], other), ["host1", "host2"]),
        (blocks(["=====> host1 <=====", "=====> host2 <====="], same), ["host1", "host2"]),
        (blocks(["[node01]", "[node02]"], other), ["node01", "node02"]),
        (blocks(["**Server 1 (works)**", "**Server 2**"], same), ["Server 1 (works)", "Server 2"]),
        (blocks(["node01\n------", "node02\n------"], other), ["node01", "node02"]),
        (blocks(["$ hostname\na1", "$ hostname\na2"], other), ["a1", "a2"]),
        (pssh(["[1] 10:00:00 [SUCCESS] a1", "[2] 10:00:01 [SUCCESS] a2"]), ["a1", "a2"]),
        (lines(["a1", "a2"]), ["a1", "a2"]),
        (format!("$ pdsh -w a[1-2] sh all\n{}", lines(["a1", "a2"])), ["a1", "a2"]),
        (lines(["0", "1"]), ["task 0", "task 1"]),
        (blocks(["# The good one", "# The bad one"], other), machines),
        (blocks(["Where it works:", "Where it fails:"], other), machines),
        (blocks(["", "\n---\n"], other), machines),
        (blocks(["$ gdscheck -p", "$ gdscheck -p"], other), machines),
    ] {
        let all = texts(&[("post", &text)]);
        assert_eq!(names(&all), named, "{text}");
        for (one, path) in all.machines.iter().zip(["Supported", "Unsupported"]) {
            let check = one.captured.machine.gdscheck.as_ref().unwrap();
            assert_eq!(check.drivers[0].value.known().unwrap(), path, "{text}");
            let mount = &one.captured.machine.mounts[0].mount;
            assert_eq!(
                (&*mount.mount_point, &*mount.source),
                (&*format!("/{path}"), "/dev/nvme0n1")
            );
            assert_eq!(one.captured.contradictions, [""; 0], "{text}");
            let skipped = one.captured.texts.iter().map(|text| text.skipped.len());
            assert_eq!(skipped.sum::<usize>(), 0, "{text}");
        }
        assert!(all.undecided.is_empty());
    }
    // Equal devices and words that name no machine: one machine, whose later report counts.
    let all = texts(&[("post", &blocks(["Before:", "After:"], same))]);
    assert_eq!(all.machines.len(), 1);
    // Tools whose lines look like titles part nothing.
    let numactl = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 1 cpus: 2 3\nnode \
        distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n";
    assert_eq!(texts(&[("n", numactl)]).machines.len(), 1);
}

/// cuFile's file stands among other outputs too, and its mistakes keep their lines.
#[test]
fn a_configuration_below_its_prompt_is_read() {
    let json = "{\n  \"properties\": { \"allow_compat_mode\": false }\n}";
    let post = format!("c$ lsblk\n{LSBLK_A}c$ cat /etc/cufile.json\n{json}\nc$ lsblk\n{LSBLK_A}");
    let all = texts(&[("post", &post)]);
    let machine = &all.machines[0].captured.machine;
    let text = machine.cufile.text.known().cloned().flatten().unwrap();
    assert_eq!((text.trim(), text.lines().position(|line| line == "{")), (json, Some(4)));
    assert_eq!(machine.mounts.len(), 1);
    assert!(all.machines[0].captured.texts.iter().all(|text| text.skipped.is_empty()));
}

/// A fact that a machine has once comes from the later of two texts, which is said; another
/// processor is another machine's.
#[test]
fn facts_that_a_machine_has_once_are_named_where_texts_differ() {
    let json = |mode: bool| format!("{{\"properties\": {{\"allow_compat_mode\": {mode}}}}}\n");
    let all = texts(&[("a.json", &json(true)), ("b.json", &json(false)), ("c.json", &json(false))]);
    assert_eq!(all.machines.len(), 1);
    assert_eq!(all.machines[0].captured.contradictions, ["cufile.json"]);
    let cpu = |model: &str| format!("CPU(s): 8\nModel name: {model}\nSocket(s): 1\n");
    let all = texts(&[("a", &cpu("AMD EPYC 7742")), ("b", &cpu("Intel Xeon 8480+"))]);
    assert_eq!(all.machines.len(), 2);
}

/// A guide's newer edition shows the tree of another server below the same prompt.
#[test]
fn other_gpus_below_a_prompt_are_another_machines() {
    let tree = "07:00.0 3D controller: NVIDIA Corporation GA100\n0f:00.0 3D controller: NVIDIA \
        Corporation GA100\n";
    let post = |tree: &str| {
        let own = query(&["34", "36", "39"]);
        format!("dgx2> nvidia-smi\n{own}dgx2> lspci\n{tree}dgx2> lsblk\n{LSBLK_A}")
    };
    let all = texts(&[("post", &post(tree))]);
    assert_eq!(names(&all), ["dgx2", "machine 2"]);
    let gpus = all.machines.iter().map(|one| one.captured.machine.gpus.len());
    assert_eq!(gpus.collect::<Vec<_>>(), [3, 2]);
    assert_eq!(all.machines[0].captured.machine.mounts.len(), 1);
    assert!(all.machines[0].texts[0].body.contains("dgx2> lsblk"));
    // One of them may be lost to the driver.
    let own = tree.replace("07:00", "34:00");
    assert_eq!(names(&texts(&[("post", &post(&own))])), ["dgx2"]);
}

#[test]
fn one_machine_stays_one() {
    let a = query(&["34", "36", "39"]);
    // A container of the machine has a name of its own, and a drive was replaced.
    let container =
        format!("joe@dgx2:~$ nvidia-smi\n{a}root@3f2a9c0d1b2e:/workspace# lsblk\n{LSBLK_A}");
    assert_eq!(names(&texts(&[("post", &container)])), ["dgx2"]);
    assert_eq!(texts(&[("a", &a), ("b", LSBLK_A), ("c", &a)]).machines.len(), 1);
    let domain = format!("joe@dgx2.example.org:~$ nvidia-smi\n{a}[root@dgx2 ~]# lsblk\n{LSBLK_A}");
    assert_eq!(names(&texts(&[("post", &domain)])), ["dgx2"]);
    // A text without a host belongs to the only one.
    let all = texts(&[("a", &format!("joe@dgx2:~$ nvidia-smi\n{a}")), ("b", LSBLK_A)]);
    assert_eq!((names(&all), all.machines[0].captured.machine.mounts.len()), (vec!["dgx2"], 1));
}

#[test]
fn two_names_of_one_machine_are_one_machine() {
    let a = query(&["34", "36", "39"]);
    let gpus = "nvidia-smi --query-gpu=index,name,pci.bus_id --format=csv";
    let one = |post: &str, name: &str| {
        let all = texts(&[("post", post)]);
        assert_eq!(names(&all), [name], "{post}");
        assert_eq!(all.machines[0].captured.machine.mounts.len(), 1, "{post}");
        assert_eq!(all.machines[0].captured.machine.gpus.len(), 3, "{post}");
    };
    // A tool prints the host's own name below the prompt of a role.
    let said = "nfs_client> hostname\ndgx-2-rack7.example.org\n";
    one(&format!("{said}joe@dgx-2-rack7:~$ {gpus}\n{a}nfs_client> lsblk\n{LSBLK_A}"), "nfs_client");
    let kernel = "client> uname -a\nLinux n17 5.15.0-91-generic #1 SMP x86_64 GNU/Linux\n";
    one(&format!("{kernel}client> {gpus}\n{a}[root@n17 ~]# lsblk\n{LSBLK_A}"), "client");
    // Spellings of a name, and a title between rulers.
    one(&format!("joe@DGX_2:~$ {gpus}\n{a}dgx-2> lsblk\n{LSBLK_A}"), "DGX_2");
    let title = format!("joe@n1:~$ {gpus}\n{a}==========\nStorage\n==========\n{LSBLK_A}");
    one(&title, "n1");
    // One GPU is in one machine.
    let uuid = "uuid\nGPU-5a1f0c22-9d3e-4b1a-8f00-0123456789ab\n";
    let index = uuid.replace("uuid", "index, uuid").replace("GPU-", "0, GPU-");
    let same = format!("joe@a:~$ nvidia-smi\n{index}joe@b:~$ nvidia-smi\n{index}");
    assert_eq!(names(&texts(&[("post", &same)])), ["a"]);
    // Tools on other machines, and devices that contradict the names.
    let many = format!(
        "joe@head:~$ for h in n1 n2; do ssh $h hostname; lsblk; done\nn1\n{LSBLK_A}joe@n1:~$ \
            lsblk\n{LSBLK_B}joe@n2:~$ lsblk\n{LSBLK_A}"
    );
    assert_eq!(names(&texts(&[("post", &many)])), ["head", "n1", "n2"]);
    let other = format!("a> hostname\nb\na> lsblk\n{LSBLK_A}joe@b:~$ lsblk\n{LSBLK_B}");
    assert_eq!(names(&texts(&[("post", &other)])), ["a", "b"]);
}

#[test]
fn what_may_be_of_any_machine_is_left_out_by_name() {
    let post = format!(
        "joe@n1:~$ nvidia-smi\n{}joe@n2:~$ nvidia-smi\n{}",
        query(&["34", "36"]),
        query(&["07", "0f"])
    );
    let all =
        texts(&[("post.txt", &post), ("disks.txt", LSBLK_A), ("README", "nothing of a tool\n")]);
    let undecided: Vec<&str> = all.undecided.iter().map(|text| text.name.as_str()).collect();
    assert_eq!((names(&all), undecided), (vec!["n1", "n2"], vec!["disks.txt"]));
    assert!(all.machines.iter().all(|one| one.captured.machine.mounts.is_empty()));
    assert_eq!(all.not_read.len(), 1);
    assert_eq!(all.not_read[0].0, "README");
    // Its devices decide.
    let more = query(&["07", "0f"]).replace("GPU 0", "NVIDIA A100");
    let all = texts(&[("post.txt", &post), ("more.txt", &more)]);
    assert!(all.undecided.is_empty());
    let name = all.machines[1].captured.machine.gpus[0].name.known().cloned();
    assert_eq!(Fact::or_unknown(name, "none"), Fact::Known("NVIDIA A100".to_owned()));
}

/// The later one of two lists of mounts counts, and the difference is said; a place that one
/// list has twice is mounted over.
#[test]
fn of_two_lists_of_mounts_the_later_one_counts() {
    let nfs = |options: &str| format!("nas:/a on /a type nfs (rw,{options},addr=192.0.2.9)\n");
    let all = "/dev/nvme0n1 on /data type xfs (rw,noatime)\n";
    let head = "Filesystem Type Size Used Avail Use% Mounted on\n";
    for (before, after, differ) in [
        (nfs("vers=3,proto=tcp"), nfs("proto=rdma"), Some("/a (proto=tcp, then proto=rdma)")),
        (nfs("vers=3"), nfs("vers=3"), None),
        (all.to_owned(), all.replace("nvme0n1", "md0"), Some("(/dev/nvme0n1, then /dev/md0)")),
        (all.to_owned(), all.replace("rw", "ro"), Some("/data (rw, then ro)")),
        (all.to_owned(), format!("{head}/dev/md0 ext4 1T 1T 1T 9% /data\n"), Some("md0 ext4)")),
        (all.to_owned(), format!("{head}/dev/nvme0n1 xfs 1T 1T 1T 9% /data\n"), None),
    ] {
        let text = format!("$ mount\n{before}Then:\n$ mount\n{after}");
        let all = texts(&[("post", &text)]);
        let [one] = all.machines.as_slice() else { panic!("{:?}", names(&all)) };
        assert_eq!(one.captured.machine.mounts.len(), 1, "{text}");
        let said = one.captured.contradictions.join(";");
        assert_eq!(said.is_empty(), differ.is_none(), "{said}");
        assert!(differ.is_none_or(|words| said.contains(words)), "{said}");
    }
    let over = format!("$ mount\n{all}{}", all.replace("nvme0n1", "md0"));
    assert_eq!(texts(&[("post", &over)]).machines[0].captured.machine.mounts.len(), 2);
    // Tools name volumes in different ways.
    let volume = |name: &str| format!("/dev/{name} on /data type xfs (rw)\n");
    let two = texts(&[("a", &volume("mapper/vg-data")), ("b", &volume("dm-0"))]);
    assert_eq!(two.machines[0].captured.contradictions, [""; 0]);
}
