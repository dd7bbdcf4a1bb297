//! PCIe links above a device.

use gpuio_host::pci::{Lanes, parse_speed, parse_width, way_up};

use gpuio_testkit::tree::Tree;

const TOP: &str = "sys/devices/pci0000:00";

/// Writes a function of a tree and its link; `speed` and `width` as (now, most).
fn function(tree: &Tree, dir: &str, speed: [&str; 2], width: [&str; 2]) {
    let name = dir.rsplit('/').next().unwrap();
    for (at, when) in ["current", "max"].into_iter().enumerate() {
        tree.file(&format!("{dir}/{when}_link_speed"), format!("{}\n", speed[at]));
        tree.file(&format!("{dir}/{when}_link_width"), format!("{}\n", width[at]));
    }
    tree.link(&format!("sys/bus/pci/devices/{name}"), dir);
}

fn lanes(mega_transfers: u64, width: u64) -> Lanes {
    Lanes { mega_transfers: Some(mega_transfers), width: Some(width) }
}

#[test]
fn the_way_up_ends_at_the_host_bridge() {
    let tree = Tree::new();
    let port = format!("{TOP}/0000:00:01.0");
    let gpu = format!("{port}/0000:3b:00.0");
    function(&tree, &port, ["16.0 GT/s PCIe"; 2], ["8", "16"]);
    function(&tree, &gpu, ["2.5 GT/s PCIe", "32.0 GT/s PCIe"], ["8", "16"]);
    let way = way_up(&tree.root(), "3B:00.0").unwrap().unwrap();
    let names: Vec<&str> = way.iter().map(|function| function.address.as_str()).collect();
    assert_eq!(names, ["0000:3b:00.0", "0000:00:01.0"]);
    assert_eq!((way[0].now, way[0].most), (lanes(2500, 8), lanes(32_000, 16)));
    assert_eq!((way[1].now, way[1].most), (lanes(16_000, 8), lanes(16_000, 16)));
}

#[test]
fn what_a_virtual_machine_does_not_say_is_unknown() {
    let tree = Tree::new();
    let disk = format!("{TOP}/0000:00:04.0");
    function(&tree, &disk, ["Unknown"; 2], ["0", "255"]);
    let way = way_up(&tree.root(), "0000:00:04.0").unwrap().unwrap();
    assert_eq!((way[0].now, way[0].most), (Lanes::default(), Lanes::default()));

    let bare = format!("{TOP}/0000:00:05.0");
    tree.file(&format!("{bare}/vendor"), "0x1af4\n");
    tree.link("sys/bus/pci/devices/0000:00:05.0", &bare);
    let way = way_up(&tree.root(), "0000:00:05.0").unwrap().unwrap();
    assert_eq!(way[0].now, Lanes::default());
}

#[test]
fn a_device_that_is_not_there_has_no_way() {
    let tree = Tree::new();
    assert_eq!(way_up(&tree.root(), "0000:3b:00.0").unwrap(), None);
    assert_eq!(way_up(&tree.root(), "not an address").unwrap(), None);
}

#[test]
fn speeds_and_widths_are_read_as_kernels_have_written_them() {
    for (text, speed) in [
        ("2.5 GT/s PCIe\n", Some(2500)),
        ("8 GT/s", Some(8000)),
        ("64.0 GT/s PCIe", Some(64_000)),
        ("Unknown", None),
        ("Unknown speed", None),
        ("", None),
    ] {
        assert_eq!(parse_speed(text).unwrap(), speed, "{text:?}");
    }
    for text in ["x GT/s", "2. GT/s", "1.2345 GT/s", "99999999999999999999 GT/s"] {
        assert!(parse_speed(text).is_err(), "{text:?}");
    }
    assert_eq!(parse_width("16\n").unwrap(), Some(16));
    assert_eq!(parse_width("0").unwrap(), None);
    assert_eq!(parse_width("255").unwrap(), None);
    assert!(parse_width("x16").is_err());
}
