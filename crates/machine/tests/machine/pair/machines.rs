//! Pairings of the guides' servers, from their tables.

use gpuio_machine::pair::{
    HostsPlan, JobFileRefusal, Load, Pairing, StoreKind, Wanted, When, ends, format,
    hosts_job_file, pair,
};
use gpuio_machine::topo::{Class, Topology};
use gpuio_record::facts::{Machine, MountKind};
use gpuio_testkit::machines::{DGX_2, DGX_A100, DGX_STATION, VIRTUAL, read};

fn plan(machine: &Machine, wanted: &Wanted) -> Pairing {
    pair(machine, &Topology::of(machine, &[]), wanted).unwrap()
}

fn wanted(gpus: &[&str], mounts: &[&str], drives: &[&str]) -> Wanted {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let (gpus, mounts, drives) = (owned(gpus), owned(mounts), owned(drives));
    Wanted { gpus, mounts, drives, load: Load::default() }
}

/// The machine without its mounts and arrays: drives as they come.
fn bare(text: &str) -> Machine {
    let lines = text.lines().filter(|line| {
        let made = line.starts_with("md md1 ") || line.contains(" /raid ");
        !made && !line.contains("nfs")
    });
    read(&lines.collect::<Vec<_>>().join("\n"))
}

/// Stores of each GPU.
fn stores(pairing: &Pairing) -> Vec<String> {
    let names = pairing.pairs.iter().map(|pair| {
        let all: Vec<&str> = pair.stores.iter().map(|given| given.name.as_str()).collect();
        all.join(" ")
    });
    names.collect()
}

fn text(pairing: &Pairing) -> String {
    format::document(pairing).unbroken()
}

#[test]
fn screens() {
    for (name, machine) in [
        ("dgx_2", read(DGX_2)),
        ("dgx_a100", read(DGX_A100)),
        ("dgx_station", read(DGX_STATION)),
        ("virtual", read(VIRTUAL)),
        ("empty", Machine::default()),
    ] {
        insta::assert_snapshot!(name, text(&plan(&machine, &Wanted::default())));
    }
}

fn hosts(machines: &[(&str, &Machine)]) -> HostsPlan {
    let each = machines
        .iter()
        .map(|(name, machine)| ((*name).to_owned(), *machine, plan(machine, &Wanted::default())));
    HostsPlan::of(each.collect())
}

/// Two DGX A100, one without its mount: 16 ranks, with the same job on all and a place for each
/// directory that differs.
#[test]
fn hosts_have_one_job_file_with_places() {
    let (with, without) = (read(DGX_A100), bare(DGX_A100));
    let plan = hosts(&[("a", &with), ("b", &with), ("c", &without)]);
    assert_eq!(plan.ranks(), 24);
    let file = hosts_job_file(&plan).unwrap();
    assert!(file.contains("\n[place a,b/0]\ngpu = 0\ndirectory = /raid\n"), "{file}");
    assert!(file.contains("\n[place c/0]\ngpu = 0\nfilename = /dev/nvme"), "{file}");
    assert!(file.contains("--host a:8,b:8,c:8 "), "{file}");
    assert_eq!(file.matches("\n[place ").count(), 16, "{file}");
    assert_eq!(file.matches("\n[read]\n").count(), 1, "{file}");
}

/// All ranks run one load: hosts without a GPU, or without storage, are named.
#[test]
fn hosts_that_do_not_fit_into_one_job_file_are_named() {
    let (gpus, none) = (read(DGX_A100), read(VIRTUAL));
    let mixed = hosts_job_file(&hosts(&[("a", &gpus), ("v", &none)]));
    assert_eq!(mixed, Err(JobFileRefusal::Mixed { hosts: "v".to_owned() }));
    let empty = hosts_job_file(&hosts(&[("a", &gpus), ("e", &Machine::default())]));
    assert_eq!(empty, Err(JobFileRefusal::NoStorage { hosts: "e".to_owned() }));
    let bad = hosts_job_file(&hosts(&[("a,b", &gpus)]));
    assert!(matches!(bad, Err(JobFileRefusal::Name { .. })), "{bad:?}");
}

#[test]
fn job_files() {
    let dgx_2 = plan(&read(DGX_2), &wanted(&["0", "12", "15"], &[], &[]));
    insta::assert_snapshot!("dgx_2_job", format::job_file(&dgx_2).unwrap());
    let dgx_a100 = plan(&read(DGX_A100), &wanted(&["GPU0", "bd:00.0"], &[], &[]));
    insta::assert_snapshot!("dgx_a100_job", format::job_file(&dgx_a100).unwrap());
    insta::assert_snapshot!("dgx_a100_gdsio", format::gdsio(&dgx_a100).unwrap());
    let virt = plan(&read(VIRTUAL), &Wanted::default());
    insta::assert_snapshot!("virtual_job", format::job_file(&virt).unwrap());
    assert_eq!(format::gdsio(&virt), None);
    assert_eq!(format::job_file(&plan(&Machine::default(), &Wanted::default())), None);
}

/// Every job file is one for the parser, with a job for each GPU.
#[test]
fn job_files_are_understood() {
    let no_env = |_: &str| None;
    for (text, gpus) in [(DGX_2, 16), (DGX_A100, 8), (DGX_STATION, 2)] {
        let file = format::job_file(&plan(&read(text), &Wanted::default())).unwrap();
        let spec = gpuio_job::spec::parse_job_file("plan", file.into_bytes(), &no_env).unwrap();
        assert_eq!(spec.jobs.len(), gpus);
        assert!(spec.jobs.iter().all(|job| job.gpu.is_some() && job.directory.is_some()));
    }
}

/// NVIDIA's table of GPUs and the drives near to them ("GPUDirect Storage Benchmarking and
/// Configuration Guide", chapter 4.1), on drives without an array: each GPU has one of its two.
#[test]
fn gpus_of_a_dgx_2_have_the_drives_of_the_guide() {
    let pairing = plan(&bare(DGX_2), &Wanted::default());
    let row = |numbers: [u32; 2]| numbers.map(|n| format!("/dev/nvme{n}n1")).to_vec();
    for (number, pair) in pairing.pairs.iter().enumerate() {
        let near = row([[2, 3], [4, 5], [6, 7], [8, 9]][number / 4]);
        assert_eq!(pair.stores.len(), 1);
        assert!(near.contains(&pair.stores[0].name), "GPU{number}: {:?}", pair.stores);
        assert_eq!(pair.stores[0].class, Some(Class::Pxb));
        assert_eq!(pair.stores[0].shared_with.len(), 1);
    }
    assert!(pairing.notes.iter().any(|note| note.contains("raw devices")));
    // For one GPU alone the drives of the others are no part of its array.
    let one = plan(&bare(DGX_2), &wanted(&["0"], &[], &[])).new_arrays.unwrap();
    assert_eq!(one.groups.len(), 1, "{one:?}");
    assert_eq!(
        (&one.groups[0].members[..], one.groups[0].gpus.len()),
        (&["nvme2n1", "nvme3n1"].map(String::from)[..], 1)
    );
}

/// Commands that destroy stand only where all drives are known to hold nothing.
#[test]
fn new_arrays_are_of_drives_that_hold_nothing() {
    let mut machine = bare(DGX_2);
    let unknown = plan(&machine, &Wanted::default());
    assert!(unknown.new_arrays.as_ref().unwrap().commands.is_empty(), "{unknown:?}");
    let said = text(&unknown);
    assert!(said.contains("Not known: whether these drives hold data"), "{said}");
    assert!(!said.contains("mdadm") && !said.contains("mkfs"), "{said}");
    let mut holds = |of: &dyn Fn(&str) -> &'static str| {
        for drive in &mut machine.block {
            drive.contents = Some(of(&drive.facts.name).to_owned());
        }
        plan(&machine, &Wanted::default()).new_arrays
    };
    let empty = holds(&|_| "").unwrap();
    assert_eq!((empty.groups.len(), empty.commands.len()), (4, 12), "{empty:?}");
    for contents in ["xfs", "LVM2_member", "linux_raid_member"] {
        let one_used = holds(&|name| if name == "nvme2n1" { contents } else { "" });
        assert_eq!(one_used, None, "one drive of its group is left");
    }
}

/// The same guide's table for the DGX A100: one drive of its own for each GPU.
#[test]
fn gpus_of_a_dgx_a100_have_the_drives_of_the_guide() {
    let pairing = plan(&bare(DGX_A100), &Wanted::default());
    let want = [0, 1, 4, 5, 6, 7, 8, 9].map(|number| format!("/dev/nvme{number}n1"));
    assert_eq!(stores(&pairing), want);
    let alone =
        |pair: &gpuio_machine::pair::Pair| pair.stores.iter().all(|one| one.shared_with.is_empty());
    assert!(pairing.pairs.iter().all(alone));
}

/// Table 5 of that guide, "New Mapping of the RAID Array and GPU Affinity".
#[test]
fn the_array_of_a_dgx_a100_is_regrouped_as_the_guide_does() {
    let pairing = plan(&read(DGX_A100), &Wanted::default());
    let [regroup] = pairing.regroup.as_slice() else { panic!("{:?}", pairing.regroup) };
    assert_eq!((regroup.array.as_str(), regroup.mount.as_deref()), ("md1", Some("/raid")));
    let rows: Vec<(String, String, String, String)> = regroup
        .groups
        .iter()
        .map(|group| {
            let mount = group.mount.clone().unwrap();
            (mount, group.device.clone(), group.gpus.join(" "), group.members.join(" "))
        })
        .collect();
    let row = |n: u32, gpus: &str, drives: &str| {
        (format!("/raid{n}"), format!("md{n}"), gpus.to_owned(), drives.to_owned())
    };
    assert_eq!(
        rows,
        [
            row(1, "GPU0 GPU1", "nvme0n1 nvme1n1"),
            row(2, "GPU2 GPU3", "nvme4n1 nvme5n1"),
            row(3, "GPU4 GPU5", "nvme6n1 nvme7n1"),
            row(4, "GPU6 GPU7", "nvme8n1 nvme9n1"),
        ]
    );
    assert_eq!(regroup.commands[..2], ["umount /raid", "mdadm --stop /dev/md1"]);
    assert!(text(&pairing).contains("DESTROYS ALL DATA ON md1"));
}

#[test]
fn an_array_is_left_alone_where_regrouping_gains_nothing_or_loses_safety() {
    // All of its members are near to the GPUs that are wanted.
    let mut machine = read(DGX_A100);
    let array = machine.block.iter_mut().find(|one| one.facts.name == "md1").unwrap();
    array.made_of.truncate(2);
    assert!(plan(&machine, &wanted(&["0", "1"], &[], &[])).regroup.is_empty());

    let mut machine = read(DGX_A100);
    let array = machine.block.iter_mut().find(|one| one.facts.name == "md1").unwrap();
    array.array.as_mut().unwrap().level = Some("raid5".to_owned());
    let pairing = plan(&machine, &Wanted::default());
    let regroup = &pairing.regroup[0];
    assert!(regroup.hindrance.as_deref().unwrap().contains("raid5 takes 3 members"));
    assert!(regroup.commands.is_empty());
    assert!(!text(&pairing).contains("mdadm"));
}

/// GPUs as they are seen from a mount: the guide calls 12 and 13 near to `ib8`.
#[test]
fn gpus_stand_in_the_order_of_their_distance_from_a_mount() {
    let machine = read(DGX_2);
    let topology = Topology::of(&machine, &[]);
    let seen = ends(&machine, &topology, "/mnt/nfs/ib8/data/0/deep/er").unwrap();
    assert_eq!((seen.mount.as_str(), seen.network), ("/mnt/nfs/ib8/data/0", true));
    let position = |at: usize| (seen.gpus[at].0.as_str(), seen.gpus[at].1);
    assert_eq!(
        [position(0), position(1)],
        [("GPU12", Some(Class::Pix)), ("GPU13", Some(Class::Pix))]
    );
    assert_eq!((seen.gpus.len(), position(15).1), (16, Some(Class::Sys)));
    let local = ends(&read(DGX_A100), &Topology::of(&read(DGX_A100), &[]), "/raid").unwrap();
    assert!(!local.network && local.gpus.iter().all(|(_, way)| way.is_some()));
    assert!(ends(&Machine::default(), &Topology::of(&Machine::default(), &[]), "/x").is_err());
}

/// The guide's mounts go by the client's card: `/mnt/nfs/ib8` over `mlx5_8`, next to GPU 12 and 13.
#[test]
fn network_mounts_go_to_the_gpus_next_to_their_card() {
    let machine = read(DGX_2);
    let near = ["12", "13", "14", "15"];
    let mounts = [8, 9].map(|card| [0, 1].map(|end| format!("/mnt/nfs/ib{card}/data/{end}")));
    let mounts: Vec<&str> = mounts.iter().flatten().map(String::as_str).collect();
    let pairing = plan(&machine, &wanted(&near, &mounts, &[]));
    assert_eq!(stores(&pairing), mounts);
    for pair in &pairing.pairs {
        let given = &pair.stores[0];
        assert_eq!((given.kind, given.class), (StoreKind::NetworkMount, Some(Class::Pix)));
    }
    // Two mounts over one card share its link.
    let card = pairing.shared_links.iter().find(|link| link.above == "0000:e1:00.0").unwrap();
    assert_eq!((card.when, card.gpus.join(" ")), (When::Always, "GPU12 GPU13".to_owned()));
    assert!(pairing.unused_nics.is_empty());

    // Beside a local array they are the second choice, and idle cards are reported.
    let all = plan(&machine, &Wanted::default());
    for (number, mount) in (12..).zip(&mounts) {
        assert_eq!(all.pairs[number].network[0].name, *mount);
    }
    let idle: Vec<&str> = all.unused_nics.iter().map(|unused| unused.nic.as_str()).collect();
    assert_eq!(idle, ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_6", "mlx5_7"]);
}

/// That guide measured 28 thousand I/Os a second from drives of another tree, and 485 from near
/// ones: a plan for one GPU has near storage alone, and names the rest.
#[test]
fn far_storage_is_left_out_where_there_is_near_and_taken_where_it_is_named() {
    let raw = bare(DGX_2);
    let one = plan(&raw, &wanted(&["0"], &[], &[]));
    assert_eq!(stores(&one), ["/dev/nvme2n1 /dev/nvme3n1"]);
    let far: Vec<_> = one.not_used.iter().filter(|one| one.why.contains("nearer")).collect();
    assert_eq!(far.len(), 6, "{:?}", one.not_used);
    assert!(far[0].why.starts_with("NODE at best") && far[0].why.contains("--drive"), "{far:?}");
    let named = plan(&raw, &wanted(&["0"], &[], &["nvme2n1", "nvme8n1"]));
    assert_eq!(stores(&named), ["/dev/nvme2n1 /dev/nvme8n1"]);

    let mut mounts = read(DGX_2);
    mounts.mounts.retain(|mount| mount.kind == MountKind::Nfs);
    mounts.block.clear();
    for mount in mounts.mounts.iter_mut().filter(|one| one.mount.mount_point.contains("ib9")) {
        mount.pci.clear();
        let nfs = mount.nfs.as_mut().unwrap();
        nfs.interface = gpuio_record::facts::Fact::Known("ib0".to_owned());
    }
    let one = plan(&mounts, &wanted(&["12"], &[], &[]));
    assert_eq!(stores(&one), ["/mnt/nfs/ib8/data/0 /mnt/nfs/ib8/data/1"]);
    let far = one.not_used.iter().find(|one| one.name == "/mnt/nfs/ib9/data/0").unwrap();
    assert!(far.why.contains("--mount"), "{far:?}");
    // As the second choice too.
    mounts.block = read(DGX_2).block;
    mounts.mounts.extend(read(DGX_2).mounts.into_iter().filter(|one| one.devices == ["md1"]));
    let second = plan(&mounts, &wanted(&["12"], &[], &[]));
    assert_eq!(stores(&second), ["/raid"]);
    assert!(second.pairs[0].network.iter().all(|given| given.name.contains("ib8")), "{second:?}");
    // A card far from all GPUs stays where there is nothing nearer.
    let none_near = plan(&read(DGX_2), &wanted(&["0"], &[], &[]));
    assert_eq!(none_near.pairs[0].network.len(), 4);
}

#[test]
fn a_drive_on_usb_is_taken_by_name_alone() {
    let mut machine = bare(DGX_2);
    let stick = machine.block.iter_mut().find(|one| one.facts.name == "nvme2n1").unwrap();
    stick.facts.transport = Some("usb".to_owned());
    for gpus in [vec!["0"], Vec::new()] {
        let pairing = plan(&machine, &wanted(&gpus, &[], &[]));
        assert!(stores(&pairing).iter().all(|names| !names.contains("nvme2n1")));
        let refused = pairing.not_used.iter().find(|one| one.name == "nvme2n1").unwrap();
        assert!(refused.why.contains("USB") && refused.why.contains("--drive"), "{refused:?}");
    }
    let named = plan(&machine, &wanted(&["0"], &[], &["nvme2n1"]));
    assert_eq!(stores(&named), ["/dev/nvme2n1"]);
    let mut mounted = read(DGX_A100);
    for drive in &mut mounted.block {
        drive.facts.transport = Some("usb".to_owned());
    }
    let pairing = plan(&mounted, &Wanted::default());
    assert!(pairing.not_used.iter().any(|one| one.name == "/raid" && one.why.contains("USB")));
}

/// Texts show a part: the note is about what they lack.
#[test]
fn notes_on_missing_storage_are_about_what_was_not_read() {
    let mut machine = bare(DGX_2);
    machine.mounts.clear();
    machine.listed = gpuio_record::facts::Listed::default();
    let write = Wanted { load: Load::of("write", None).unwrap(), ..Wanted::default() };
    let notes = plan(&machine, &write).notes.join("\n");
    assert!(notes.contains("No mount is among what was read"), "{notes}");
    assert!(!notes.contains("Drives and mounts are not"), "{notes}");
    machine.block.clear();
    let notes = plan(&machine, &write).notes.join("\n");
    assert!(notes.contains("Drives and mounts are not among what was read"), "{notes}");
}

#[test]
fn the_next_kind_of_storage_is_the_second_choice() {
    let machine = read(DGX_2);
    let topology = Topology::of(&machine, &[]);
    let second = |wanted: &Wanted| gpuio_machine::pair::second_choice(&machine, &topology, wanted);
    let next = second(&Wanted::default()).unwrap();
    assert!(stores(&next).iter().all(|store| store.starts_with("/mnt/nfs")));
    assert!(second(&wanted(&[], &["/raid"], &[])).is_none(), "what was named has no second");
}

#[test]
fn links_are_shared_straight_or_only_by_host_memory() {
    let pairing = plan(&bare(DGX_2), &Wanted::default());
    let find = |above: &str| pairing.shared_links.iter().find(|link| link.above == above).unwrap();
    let low = find("0000:32:00.0");
    assert_eq!((low.when, low.gpus.join(" ")), (When::Always, "GPU0 GPU1".to_owned()));
    let top = find("0000:2c:00.0");
    assert_eq!((top.when, top.gpus.len()), (When::ByHostMemory, 4));
    // Two drives of x4 fill half of a link of x16.
    assert_eq!(top.enough, Some(true));
    assert_eq!(top.need_bytes_per_second, Some(4 * (3_938_461_538 / 2)));
}

#[test]
fn the_systems_disk_is_the_last_choice_and_said_so() {
    let machine = read(DGX_2);
    let all = plan(&machine, &Wanted::default());
    assert!(all.not_used.iter().any(|one| one.name == "/" && one.why.contains("system")));
    let mut alone = machine.clone();
    alone.mounts.retain(|mount| mount.mount.mount_point == "/");
    alone.block.retain(|one| !["md1"].contains(&one.facts.name.as_str()));
    let data = (2..10).map(|number| format!("nvme{number}n1")).collect::<Vec<_>>();
    alone.block.retain(|one| !data.contains(&one.facts.name));
    let pairing = plan(&alone, &Wanted::default());
    assert!(stores(&pairing).iter().all(|store| store == "/"));
    assert_eq!(pairing.pairs[0].stores[0].directory.as_deref(), Some("/var/tmp"));
    assert!(pairing.notes.iter().any(|note| note.contains("Only the system's own disk")));
    let named = plan(&machine, &wanted(&["0"], &["/srv/me/data/"], &[]));
    assert_eq!(named.pairs[0].stores[0].directory.as_deref(), Some("/srv/me/data"));
    assert_eq!(named.pairs[0].stores[0].name, "/");
}

#[test]
fn drives_go_by_name_alias_and_path_and_a_write_takes_no_raw_one() {
    let machine = bare(DGX_2);
    for name in ["nvme3n1", "/dev/nvme3n1", "nvme3"] {
        let pairing = plan(&machine, &wanted(&["0"], &[], &[name]));
        assert_eq!(stores(&pairing), ["/dev/nvme3n1"]);
    }
    // An array that is mounted stands for its mount.
    assert_eq!(stores(&plan(&read(DGX_2), &wanted(&["0"], &[], &["md1"]))), ["/raid"]);
    let write = Wanted { load: Load::of("write", None).unwrap(), ..Wanted::default() };
    let pairing = plan(&machine, &write);
    assert!(pairing.not_used.iter().any(|one| one.name == "nvme2n1" && one.why.contains("raw")));
    assert!(stores(&pairing).iter().all(|store| store == "/"), "{:?}", stores(&pairing));
}

#[test]
fn what_is_not_here_is_refused_with_what_is() {
    let machine = read(DGX_2);
    let topology = Topology::of(&machine, &[]);
    let reported = |gpus: &[&str], mounts: &[&str], drives: &[&str]| {
        pair(&machine, &topology, &wanted(gpus, mounts, drives)).unwrap_err().to_string()
    };
    assert!(
        reported(&["16"], &[], &[]).starts_with("--gpu 16: no such GPU; there are: GPU0, GPU1")
    );
    assert!(reported(&["mlx5_0"], &[], &[]).contains("no such GPU"));
    let [all, ranges, unnamed] = [["all"].as_slice(), &["0-3", "4-15"], &[]].map(|gpus| {
        let pairing = pair(&machine, &topology, &wanted(gpus, &[], &[])).unwrap();
        pairing.pairs.iter().map(|pair| pair.gpu.clone()).collect::<Vec<_>>()
    });
    assert_eq!((&all, &ranges), (&unnamed, &unnamed));
    assert!(reported(&[], &["raid"], &[]).contains("--mount raid: no mount"));
    assert!(reported(&[], &[], &["nvme77n1"]).contains("no such drive or array"));
    assert!(reported(&[], &[], &["nvme3n1"]).contains("it is part of md1"));
    let mut read_only = read(DGX_2);
    let raid = read_only.mounts.iter_mut().find(|one| one.mount.mount_point == "/raid").unwrap();
    raid.mount.options.push("ro".to_owned());
    let error = pair(&read_only, &topology, &wanted(&[], &["/raid"], &[])).unwrap_err();
    assert!(error.to_string().contains("mounted read-only"));
    let pairing = pair(&read_only, &topology, &Wanted::default()).unwrap();
    assert!(pairing.not_used.iter().any(|one| one.name == "/raid"));
    assert!(stores(&pairing).iter().all(|store| store.starts_with("/mnt/nfs")));
}

/// Bind mounts show a file system a second time; single files of a container are no storage.
#[test]
fn a_file_system_counts_once() {
    let mut machine = read(DGX_A100);
    let raid = machine.mounts.iter().find(|one| one.devices == ["md1"]).unwrap().clone();
    for (point, root) in [("/a", "/sub"), ("/etc/hosts", "/hosts")] {
        let mut bind = raid.clone();
        bind.mount.mount_point = point.to_owned();
        bind.mount.fs_root = root.to_owned();
        machine.mounts.insert(0, bind);
    }
    let pairing = plan(&machine, &Wanted::default());
    assert!(stores(&pairing).iter().all(|store| store == "/raid"), "{:?}", stores(&pairing));
    let commands = &pairing.regroup[0].commands;
    assert_eq!(commands[..3], ["umount /raid", "umount /a", "umount /etc/hosts"]);
}

/// A layered or made-up file system is taken where it is named, at an unknown distance.
#[test]
fn a_mount_of_any_kind_is_taken_by_name() {
    let mut machine = read(DGX_A100);
    let raid = machine.mounts.iter_mut().find(|one| one.devices == ["md1"]).unwrap();
    raid.devices.clear();
    raid.pci.clear();
    (raid.kind, raid.mount.fs_type) = (MountKind::Other, "zfs".to_owned());
    let named = plan(&machine, &wanted(&["0"], &["/raid/x"], &[]));
    let given = &named.pairs[0].stores[0];
    assert_eq!((given.kind, given.class, given.of), (StoreKind::Mount, None, 0));
    assert!(named.pairs[0].why.contains("not known"), "{}", named.pairs[0].why);
    let all = plan(&machine, &Wanted::default());
    let reported =
        |one: &gpuio_machine::pair::NotUsed| one.name == "/raid" && one.why.contains("zfs");
    assert!(all.not_used.iter().any(reported), "{:?}", all.not_used);
}

#[test]
fn names_that_a_job_file_cant_hold_are_reported() {
    let mut machine = read(DGX_2);
    for (point, held) in [("/a b${X}:c", true), ("/a #b", false), ("/a\nb", false)] {
        let raid = machine.mounts.iter_mut().find(|one| one.devices == ["md1"]).unwrap();
        raid.mount.mount_point = point.to_owned();
        let file = format::job_file(&plan(&machine, &wanted(&["0"], &[], &["md1"]))).unwrap();
        let spec = gpuio_job::spec::parse_job_file("plan", file.clone().into_bytes(), &|_| None);
        if held {
            assert_eq!(spec.unwrap().jobs[0].directory.as_deref(), Some(point), "{file}");
        } else {
            assert!(file.contains("left out") && !file.contains("[gpu0]"), "{file}");
        }
    }
}
