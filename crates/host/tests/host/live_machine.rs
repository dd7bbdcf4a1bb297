//! The whole machine that runs the tests, against other ways of asking.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gpuio_host::{Root, machine};

#[test]
fn functions_hang_where_sysfs_has_them() {
    let machine = machine::read(&Root::live());
    let listed = fs::read_dir("/sys/bus/pci/devices").map_or(0, Iterator::count);
    assert_eq!(machine.pci.len(), listed);
    for function in &machine.pci {
        let dir = Path::new("/sys/bus/pci/devices").join(&function.address);
        let dir = dir.canonicalize().unwrap();
        let above = dir.parent().unwrap().file_name().unwrap().to_str().unwrap();
        match &function.parent {
            Some(parent) if !above.starts_with("pci") => assert_eq!(parent, above),
            // Behind a host bridge that a function makes up, or right below the machine's own.
            _ => assert!(above.starts_with("pci"), "{function:?}"),
        }
        assert!(function.vendor.is_some() && function.class.is_some(), "{function:?}");
    }
}

#[test]
fn block_devices_are_those_of_partitions() {
    let partitions = || fs::read_to_string("/proc/partitions").unwrap_or_default();
    let before = partitions();
    let machine = machine::read(&Root::live());
    let after = partitions();
    let names: BTreeSet<&str> =
        machine.block.iter().map(|device| device.facts.name.as_str()).collect();
    // Loop devices come and go; one that was there all the time is a line of both.
    for line in before.lines().skip(2).filter(|line| after.lines().any(|one| one == *line)) {
        let [_, _, blocks, name] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let hollow = blocks == "0";
        assert!(hollow || names.contains(name.replace('/', "!").as_str()), "{name} in {names:?}");
    }
    for device in &machine.block {
        for below in &device.made_of {
            assert!(names.contains(below.as_str()), "{below} below {}", device.facts.name);
        }
        for address in &device.pci {
            assert!(machine.pci.iter().any(|function| function.address == *address), "{address}");
        }
    }
}

#[test]
fn the_root_is_mounted_and_the_kernel_is_not() {
    let machine = machine::read(&Root::live());
    let dirs: Vec<&str> = machine.mounts.iter().map(|one| one.mount.mount_point.as_str()).collect();
    assert!(dirs.contains(&"/"), "{dirs:?}");
    assert!(!dirs.contains(&"/proc"), "{dirs:?}");
}
