//! Any part of a machine's texts gives the answers of all of them, or none: what a text leaves out
//! is not taken for absent.

use gpuio_capture::{Captured, read};
use gpuio_machine::check::{Answer, Gpu, Pair, gpu_of, verdict, why};

const TEXTS: [&str; 9] = [
    include_str!("../fixtures/dgx-2.lspci-tv"),
    include_str!("../fixtures/dgx-2.by-path"),
    include_str!("../fixtures/dgx-2.query.csv"),
    include_str!("../fixtures/dgx-2.topo-mp"),
    include_str!("../fixtures/dgx-2.ibdev2netdev"),
    include_str!("../fixtures/dgx-2.mount"),
    "NAME    MAJ:MIN RM SIZE RO TYPE  MOUNTPOINT\nnvme2n1 259:3 0 3.5T 0 disk /data\n\
     nvme3n1 259:4 0 3.5T 0 disk\n└─md7 9:7 0 3.5T 0 raid0 /array\n",
    "/dev/nvme2n1 on /data type xfs (rw,noatime)\n/dev/md7 on /array type ext4 (rw)\n\
     10.0.0.1@o2ib:/scratch on /lustre type lustre (rw)\n/dev/sdz1 on /old type btrfs (rw)\n",
    "{ \"properties\": { \"allow_compat_mode\": false } }",
];

fn of(parts: usize) -> Captured {
    let mut captured = Captured::default();
    for (_, text) in TEXTS.iter().enumerate().filter(|(at, _)| parts >> at & 1 == 1) {
        read("a text", text, &mut captured).unwrap();
    }
    captured
}

/// For each mount, whether GDS can be on for GPU 0, and whether each data path works.
fn answers(captured: &Captured) -> Vec<(String, Vec<Answer>, String)> {
    let machine = &captured.machine;
    let gpu = gpu_of(machine, "0").map_or(Gpu::None, Gpu::Real);
    let all = machine.mounts.iter().map(|mount| {
        let point = mount.mount.mount_point.clone();
        let verdict = verdict(&Pair { machine, mount, gpu }, &point);
        let why = why::of(&verdict);
        let modes = verdict.modes.iter().map(|mode| mode.works).chain([why.gds]);
        (point, modes.collect(), why.conclusion)
    });
    all.collect()
}

#[test]
fn what_a_part_of_the_texts_says_all_of_them_say() {
    let all = (1 << TEXTS.len()) - 1;
    let whole = answers(&of(all));
    assert!(whole.len() > 5);
    assert!(whole.iter().any(|(_, modes, _)| modes.contains(&Answer::No)), "{whole:?}");
    for parts in 1..all {
        for (point, modes, words) in answers(&of(parts)) {
            let (_, known, _) = whole.iter().find(|(other, ..)| *other == point).unwrap();
            for (now, was) in modes.iter().zip(known) {
                assert!(
                    *now == Answer::Unknown || now == was,
                    "{point} by texts {parts:#b}: {modes:?}, by all {known:?}: {words}"
                );
            }
            assert!(!words.contains("()") && !words.contains("network without"), "{words}");
        }
    }
}
