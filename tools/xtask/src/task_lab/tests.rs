//! Scenes are read, machines become arguments, claims hold or not, without QEMU.

use std::path::Path;

use super::claim::Claim;
use super::image::{closure, libraries};
use super::kernel::{Release, archive};
use super::machine::{Line, Machine};
use super::run::{bytes, throttle};
use super::scene::Scene;
use super::scenes;

const SCENE: &str = "\
proves a drive has its rate
group truth
limit 60
smoke
modules raid0
tools mdadm@mdadm
[machine]
# A comment.
board cpus=4 sockets=2 memory=1G
node 0 cpus=0-1 memory=512M
bridge b node=0
port r at=b
switch s at=r ports=2
drive a at=s.1 size=64M iops-read=400
drive n count=2 kind=nvme
[script]
[global]
bench read
[holds]
read.json#/jobs/0/iops within 2% of 400
[plant faster]
drive a iops-read=450
set X=1
catches read.json#/jobs
";

fn check(claim: &str) -> Result<String, String> {
    let files = |name: &str| match name {
        "read.rc" => Some("0\n".to_owned()),
        "read.json" => Some(
            r#"{"jobs": [{"name": "a", "iops": 396.0, "ok": true, "r/s": 5}], "one": 400}"#
                .to_owned(),
        ),
        "top.json" => {
            let line = |v: u32| format!("{{\"d\": [{{\"n\": 1, \"k\": 2, \"v\": {v}}}]}}\n");
            Some(line(10) + &line(30))
        }
        "full.err" => Some("error: No space\nleft".to_owned()),
        _ => None,
    };
    let claim = Claim::read(claim).map_err(|error| format!("{error:#}"))?;
    claim.check(&files).map_err(|error| format!("{error:#}"))
}

#[test]
fn claims_hold_or_say_what_was_found() {
    for holds in [
        "read.rc is 0",
        "read.rc not 1",
        "read.json#/jobs/0/iops within 2% of 400",
        "read.json#/jobs/name=a/iops within 2% of 4 * 100",
        "read.json#/jobs/0/iops within 2% of read.json#/one",
        "read.json#/one + read.json#/jobs/0/iops within 0.1% of 400 + 396",
        "read.json#/jobs/0/ok is true",
        "read.json#/jobs/0/r~1s at-least 5",
        "top.json#/*/d/n=1,k=2/v within 0% of 20",
        "top.json#/1/d/0/v at-most 30",
        "full.err contains No space",
        "full.err lacks panic",
    ] {
        check(holds).unwrap_or_else(|error| panic!("{holds}: {error}"));
    }
    for (fails, why) in [
        ("read.rc is 1", "it is 0"),
        ("read.json#/jobs/0/iops within 0.5% of 400", "396.000 is -1.00 % from 400.000"),
        ("read.json#/jobs/0/iops at-least 397", "396.000 is below 397.000"),
        ("read.json#/jobs/0/iops at-most 395", "above"),
        ("read.json#/jobs/1/iops is 4", "read.json has no 1"),
        ("read.json#/jobs/name=b/iops is 4", "read.json has no name=b"),
        ("read.json#/jobs/0/name within 1% of 4", "is no number"),
        ("none.json#/jobs is 4", "there is no none.json"),
        ("full.err lacks space", "it is"),
        ("full.err#/x is 4", "full.err is no JSON"),
        ("read.rc equals 0", "operators are"),
    ] {
        let error = check(fails).expect_err(fails);
        assert!(error.contains(why), "{fails}: {error}");
    }
}

#[test]
fn a_machine_becomes_arguments_and_a_plant_changes_them() {
    let scene = Scene::read("x", SCENE).expect("a scene");
    assert!(scene.smoke && scene.limit == 60);
    assert_eq!(scene.scripts["one"], "[global]\nbench read\n");
    let arguments = |scene: &Scene| {
        let parts = scene.machines[0].parts(0, &|_| true).expect("parts");
        assert_eq!(parts.images.len(), 3, "{:?}", parts.images);
        parts.arguments.join(" ")
    };
    let built = arguments(&scene);
    for part in [
        "-smp 4,sockets=2,cores=2 -m 1G",
        "-numa node,nodeid=0,cpus=0-1,memdev=node0",
        "pxb-pcie,id=b,bus_nr=32,numa_node=0",
        "pcie-root-port,id=r,bus=b,chassis=1,slot=1",
        "xio3130-downstream,id=s.1,bus=s,chassis=3",
        "file=a.img,format=raw,throttling.iops-read=400",
        "nvme,id=dev-a,drive=a,serial=a,bus=s.1",
        "serial=n1,bus=pcie.0,addr=8.1",
    ] {
        assert!(built.contains(part), "{part} in {built}");
    }
    let planted = scene.with(&scene.plants[0]).expect("a plant");
    assert_eq!(arguments(&planted), built.replace("=400", "=450"));
    assert_eq!(planted.variables, [("X".to_owned(), "1".to_owned())]);
}

#[test]
fn a_drive_with_several_paths_has_one_content() {
    let parts = |drive: &str| {
        let mut machine = Machine::new("one");
        machine.lines.push(Line::read(drive).expect("a drive"));
        let parts = machine.parts(0, &|_| true).map_err(|error| format!("{error:#}"))?;
        assert_eq!(parts.images.len(), 1, "{:?}", parts.images);
        Ok::<String, String>(parts.arguments.join(" "))
    };
    let nvme = parts("drive m paths=2 iops-read=300").expect("NVMe");
    for part in [
        "nvme-subsys,id=sub-m,nqn=m",
        "nvme,id=dev-m.0,serial=m,subsys=sub-m,bus=pcie.0,addr=8.0",
        "nvme,id=dev-m.1,serial=m,subsys=sub-m,bus=pcie.0,addr=8.1",
        "nvme-ns,drive=m,nsid=1,bus=dev-m.0,shared=on",
    ] {
        assert!(nvme.contains(part), "{part} in {nvme}");
    }
    let scsi = parts("drive z kind=scsi paths=2 iops-read=150").expect("SCSI");
    for part in [
        "id=z.1,file=z.img,format=raw,file.locking=off,throttling.iops-read=150",
        "scsi-hd,id=dev-z.1,drive=z.1,bus=bus-z.0,channel=0,scsi-id=0,lun=1,serial=z,share-rw=on",
    ] {
        let found = part.split(',').all(|word| scsi.contains(word));
        assert!(found, "{part} in {scsi}");
    }
    assert!(parts("drive t kind=sata paths=2").expect_err("SATA").contains("have paths"));
    assert!(parts("drive s namespaces=2 paths=2").expect_err("both").contains("namespaces"));
}

#[test]
fn a_machine_names_its_kernel() {
    let text = SCENE.replace("memory=1G", "memory=1G release=aarch64");
    let scene = Scene::read("x", &text).expect("a scene");
    assert!(scene.needs_aarch64(Release::Stable).expect("releases"));
    assert_eq!(scene.machines[0].release(Release::Stable).ok(), Some(Release::Aarch64));
    let scene = Scene::read("x", SCENE).expect("a scene");
    assert!(!scene.needs_aarch64(Release::Stable).expect("releases"));
    assert_eq!(scene.machines[0].release(Release::Backports).ok(), Some(Release::Backports));
    let text = SCENE.replace("memory=1G", "memory=1G release=newest");
    assert!(Scene::read("x", &text).is_err());
}

#[test]
fn a_link_is_waited_for_by_one_machine() {
    let mut machine = Machine::new("server");
    machine.lines.push(Line::read("card c link=lan").expect("a card"));
    let first = machine.parts(0, &|_| true).expect("parts");
    let second = machine.parts(1, &|_| false).expect("parts");
    assert!(first.arguments.join(" ").contains("server=on,addr.type=unix,addr.path=lan.link"));
    assert!(second.arguments.join(" ").contains("server=off,addr.type=unix,addr.path=lan.link"));
}

#[test]
fn a_scene_that_cannot_fail_or_says_something_unknown_is_refused() {
    for (from, to, why) in [
        ("[plant faster]", "# [plant", "operators are"),
        ("catches read.json#/jobs", "catches other", "no claim begins so"),
        ("drive a iops-read=450", "drive z iops-read=450", "there is no"),
        ("iops-read=400", "iops=400", "keys are"),
        ("port r at=b", "hub r at=b", "no such part"),
        ("[holds]", "[hold]", "it claims nothing"),
        ("limit 60", "time 60", "keys are"),
    ] {
        let text = SCENE.replace(from, to);
        let error = Scene::read("x", &text).map(drop).err();
        let error = format!("{:#}", error.expect(to));
        assert!(error.contains(why), "{to}: {error}");
    }
}

#[test]
fn kernel_modules_come_with_what_they_need() {
    let dep = "kernel/a/nvme.ko: kernel/a/nvme-core.ko kernel/b/t10.ko\nkernel/a/nvme-core.ko:\n\
               kernel/c/dm-mod.ko.xz:\n";
    let files = closure(dep, ["nvme", "dm_mod"].into_iter()).expect("modules");
    let all =
        ["kernel/a/nvme-core.ko", "kernel/a/nvme.ko", "kernel/b/t10.ko", "kernel/c/dm-mod.ko.xz"];
    assert_eq!(files.into_iter().collect::<Vec<_>>(), all);
    assert!(closure(dep, ["raid0"].into_iter()).is_err());
    let ldd =
        "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld.so (0x3)\n";
    assert_eq!(libraries(ldd).collect::<Vec<_>>(), ["/lib/libc.so.6", "/lib64/ld.so"]);
}

#[test]
fn the_mirror_is_that_of_debian_s_stable_release() {
    let text = "Google main x-bookworm http://other/\nDebian main bookworm-updates http://a/d/\n\
                Debian main bookworm http://a/d/\n";
    assert_eq!(archive(text), Some(("bookworm", "http://a/d/")));
    assert_eq!(archive("Debian main bookworm-updates http://a/d/\n"), None);
}

#[test]
fn sizes_and_rates() {
    assert_eq!(bytes("64M").ok(), Some(64 << 20));
    assert!(bytes("64X").is_err());
    let rates = throttle("a", &["iops_rd=400"]).expect("rates");
    assert_eq!((rates["iops_rd"].as_u64(), rates["bps"].as_u64()), (Some(400), Some(0)));
    assert!(throttle("a", &["speed=4"]).is_err());
}

/// All scenes are read, and each says what it proves.
#[test]
fn each_scene_says_what_it_proves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scenes = scenes(&root.join("tools/xtask/scenes")).expect("scenes");
    assert!(scenes.len() >= 24, "{}", scenes.len());
    for scene in &scenes {
        assert!(scene.proves.len() > 20, "{}: {}", scene.name, scene.proves);
    }
}
