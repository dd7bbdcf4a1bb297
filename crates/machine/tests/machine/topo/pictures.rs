//! The picture and hwloc's XML of each server.

use std::fmt::Write as _;

use gpuio_capture::{Captured, KINDS, add};
use gpuio_machine::topo::{Topology, format};
use gpuio_record::facts::{Fact, Machine, NvLinkEnd, NvLinkPeer};
use gpuio_testkit::machines::{DGX_2, DGX_A100, DGX_STATION, R7525, VIRTUAL, read};

const TABLES: [&str; 5] = [DGX_2, DGX_A100, DGX_STATION, VIRTUAL, R7525];

fn picture(machine: &Machine) -> String {
    format::svg(machine, &Topology::of(machine, &[]))
}

/// A text of the picture and the place that it takes: left, right, line.
#[derive(Debug, Clone)]
struct Word {
    text: String,
    left: f64,
    right: f64,
    y: f64,
    size: f64,
}

fn attribute(tag: &str, name: &str) -> Option<f64> {
    let rest = &tag[tag.find(&format!(" {name}=\""))? + name.len() + 3..];
    rest[..rest.find('"')?].parse().ok()
}

/// Every text, by the sizes that the style sheet gives.
fn words(svg: &str) -> Vec<Word> {
    // A text that reads upwards has no place of its own in a row.
    let tags = svg.split("<text ").skip(1).filter(|tag| !tag.contains("gt-up"));
    let word = |tag: &str| {
        let tag = format!(" {tag}");
        let written = &tag[tag.find('>').unwrap() + 1..tag.find("</text>").unwrap()];
        let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
        let text =
            entities.iter().fold(written.to_owned(), |text, (from, to)| text.replace(from, to));
        let small = ["gt-small", "gt-in"].iter().any(|class| tag.contains(class));
        let size = if small { 11.0 } else { 12.0 };
        let wide = text.chars().count() as f64 * size * 0.6;
        let x = attribute(&tag, "x").unwrap();
        let middle = tag.contains("gt-mid") || tag.contains("gt-in");
        let left = if middle { x - wide / 2.0 } else { x };
        Word { text, left, right: left + wide, y: attribute(&tag, "y").unwrap(), size }
    };
    tags.map(word).collect()
}

fn no_text_overlaps(svg: &str) {
    let words = words(svg);
    let view: Vec<f64> = svg
        .split_once("viewBox=\"0 0 ")
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap()
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let (width, height) = (view[0], view[1]);
    for (at, one) in words.iter().enumerate() {
        let inside = one.left >= 0.0 && one.right <= width && one.y < height;
        assert!(inside, "{}: {one:?} of {width}", one.text);
        for other in &words[at + 1..] {
            let beside = one.right <= other.left + 0.5 || other.right <= one.left + 0.5;
            let apart = (one.y - other.y).abs() >= one.size.min(other.size);
            assert!(beside || apart, "{} and {}: {one:?} {other:?}", one.text, other.text);
        }
    }
}

#[test]
fn pictures_of_servers_are_readable() {
    for table in TABLES {
        let machine = read(table);
        let topology = Topology::of(&machine, &[]);
        let svg = format::svg(&machine, &topology);
        no_text_overlaps(&svg);
        for device in &topology.devices {
            assert!(svg.contains(&format!(">{}</text>", device.name)), "{}", device.name);
        }
        for tag in ["g", "svg", "style"] {
            let opened =
                svg.matches(&format!("<{tag}>")).count() + svg.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, svg.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(!svg.contains("<script") && !svg.contains("http://www.w3.org/1999/xlink"));
    }
}

#[test]
fn a_cell_for_each_gpu_and_device() {
    let machine = read(DGX_2);
    let topology = Topology::of(&machine, &[]);
    let svg = format::svg(&machine, &topology);
    let cells = svg.matches("class=\"gt-in\"").count();
    assert_eq!(cells, topology.devices.len() * 16 + 8, "devices by GPUs, and the legend");
    assert!(
        svg.contains("<title>nvme2n1 to GPU0: PXB, several")
            || svg.contains("<title>GPU0 to nvme2n1: PXB, several")
    );
}

#[test]
fn slow_links_and_nvlinks_show() {
    let mut machine = read(TABLES[2]);
    let svg = picture(&machine);
    assert!(svg.contains(">of Gen3 x16</text>"));
    let path = "gt-line gt-slow\" d=";
    assert_eq!(svg.matches(path).count(), 3, "two GPUs and the legend");
    for (gpu, other) in [(0, "0000:08:00.0"), (1, "0000:07:00.0")] {
        machine.gpus[gpu].nvlinks = Fact::Known(vec![NvLinkPeer {
            pci: Some(other.to_owned()),
            kind: NvLinkEnd::Gpu,
            links: 4,
            version: None,
            bytes_per_second: None,
        }]);
    }
    let svg = picture(&machine);
    assert_eq!(svg.matches(">NV4</text>").count(), 4, "two cells, and over both GPUs' lines");
    assert_eq!(svg.matches("gt-line gt-nvline").count(), 1);
    assert!(svg.contains(">NVLink: 1 pair of GPUs joined by NVLinks"));
}

/// Each cell of a matrix has a GPU's links to the switches: they are not added up.
#[test]
fn links_of_a_matrix_that_no_gpu_has_go_to_switches() {
    let mut machine = read(DGX_2);
    let all: Vec<_> = machine.gpus.iter().filter_map(|gpu| gpu.pci.clone()).collect();
    for gpu in &mut machine.gpus {
        let others = all.iter().filter(|other| Some(*other) != gpu.pci.as_ref());
        let peer = |other: &String| NvLinkPeer {
            pci: Some(other.clone()),
            kind: NvLinkEnd::Gpu,
            links: 6,
            version: None,
            bytes_per_second: None,
        };
        gpu.nvlinks = Fact::Known(others.map(peer).collect());
    }
    let svg = picture(&machine);
    assert!(svg.contains(">NVLink: 16 GPUs on NVSwitches, 6 links each."));
    assert!(!svg.contains("NV90") && svg.matches(">6 links</text>").count() == 16);
}

/// Switches are a bar that all their GPUs reach; what is not known is said.
#[test]
fn nvswitches_are_drawn_or_said_to_be_unknown() {
    let mut machine = read(DGX_2);
    assert!(picture(&machine).contains(">NVLink and NVSwitch: unknown, "));
    for gpu in &mut machine.gpus {
        gpu.nvlinks = Fact::Known(vec![NvLinkPeer {
            pci: None,
            kind: NvLinkEnd::Switch,
            links: 6,
            version: Some(2),
            bytes_per_second: Some(25_000_000_000),
        }]);
    }
    let svg = picture(&machine);
    no_text_overlaps(&svg);
    assert!(svg.contains(">NVSwitch</text>"));
    assert_eq!(svg.matches(">6 links</text>").count(), 16);
    assert!(svg.contains("16 GPUs on NVSwitches, 6 links each, 150.0 GB/s each way."));
    for gpu in &mut machine.gpus {
        gpu.nvlinks = Fact::Known(Vec::new());
    }
    assert!(picture(&machine).contains(">NVLink and NVSwitch: none is up.</text>"));
}

/// Speeds stand as people name them, and far is not drawn as an alarm.
#[test]
fn links_have_generation_and_rate_and_the_picture_scales() {
    let svg = picture(&read(DGX_2));
    assert!(svg.contains(">Gen3 x16</text>") && svg.contains(">15.8 GB/s</text>"));
    assert!(svg.starts_with("<svg ") && svg.contains(" width=\"100%\" viewBox="));
    let far = svg.split(".gt-sys { fill: #").nth(1).unwrap();
    let channel = |at: usize| u8::from_str_radix(&far[at..at + 2], 16).unwrap();
    assert!(channel(0).abs_diff(channel(2)) < 16 && channel(0).abs_diff(channel(4)) < 16);
}

#[test]
fn many_devices_and_odd_names_fit() {
    let mut machine = read(DGX_2);
    let drive = machine.block.iter().find(|one| one.facts.name == "nvme9n1").unwrap().clone();
    for number in 10..64 {
        let mut another = drive.clone();
        another.facts.name = format!("nvme{number}n1");
        machine.block.push(another);
    }
    machine.nics[0].rdma[0].name = "<&\"\u{1}a-name-that-is-much-longer-than-any-box".to_owned();
    machine.mounts[1].mount.mount_point = "/x".repeat(500);
    machine.block[0].facts.model = Some("a]]>b</title>".to_owned());
    let svg = picture(&machine);
    no_text_overlaps(&svg);
    assert!(!svg.contains("</title></title>") && !svg.contains('\u{1}'));
    let empty = picture(&Machine::default());
    assert!(empty.ends_with("</svg>\n"));
}

/// The picture in the documentation is the one that is drawn.
#[test]
fn the_documents_picture_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/topo-dgx-2.svg");
    let svg = picture(&read(DGX_2));
    if std::env::var_os("UPDATE_PICTURE").is_some() {
        std::fs::write(path, &svg).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == svg, "run the test again with UPDATE_PICTURE=1");
}

/// Class, bridges, switches and the meeting place of each pair.
fn routes(machine: &Machine) -> String {
    let mut out = String::new();
    for route in &Topology::of(machine, &[]).routes {
        writeln!(
            out,
            "{} {} {:?} {:?} {:?} {:?}",
            route.a, route.b, route.class, route.bridges, route.switches, route.meets
        )
        .unwrap();
    }
    out
}

#[test]
fn our_xml_read_again_has_the_same_routes() {
    for table in TABLES {
        let machine = read(table);
        let xml = format::hwloc_xml(&machine);
        let mut back = Captured::default();
        let kind = KINDS.iter().find(|kind| kind.command.starts_with("lstopo")).unwrap();
        add(kind, &xml, &mut back).unwrap();
        assert_eq!(routes(&machine), routes(&back.machine));
        let nodes = |machine: &Machine| -> Vec<(u32, Option<Vec<u32>>)> {
            machine.host.numa.nodes.iter().map(|node| (node.node, node.cpus.clone())).collect()
        };
        if !machine.host.numa.nodes.is_empty() {
            assert_eq!(nodes(&machine), nodes(&back.machine));
        }
        let rate = |machine: &Machine, topology: &Topology| -> Vec<Option<u64>> {
            let rates = topology.devices.iter().flat_map(|device| &device.pci).map(|pci| {
                let one = machine.pci.iter().find(|one| one.address == *pci)?;
                one.link_now.width.map(|_| 0).or(one.link_bytes_per_second.map(|_| 0))
            });
            rates.collect()
        };
        let topology = Topology::of(&machine, &[]);
        assert_eq!(rate(&machine, &topology), rate(&back.machine, &topology));
    }
}

/// hwloc itself takes the XML and shows each device, where it is installed.
#[test]
fn hwloc_takes_our_xml() {
    if std::process::Command::new("lstopo-no-graphics").arg("--version").output().is_err() {
        println!("SKIPPED: there is no lstopo-no-graphics; install the package hwloc-nox");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for table in TABLES {
        let machine = read(table);
        let file = dir.path().join("x.xml");
        std::fs::write(&file, format::hwloc_xml(&machine)).unwrap();
        let out = std::process::Command::new("lstopo-no-graphics")
            .args(["-i", file.to_str().unwrap(), "--of", "console", "-v", "--whole-io"])
            .env("HWLOC_XML_VERBOSE", "1")
            .env("HWLOC_HIDE_ERRORS", "0")
            .output()
            .unwrap();
        let (shown, said) = (
            String::from_utf8_lossy(&out.stdout).into_owned(),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        );
        assert!(out.status.success() && said.is_empty(), "{said}");
        let names =
            machine.block.iter().filter(|one| !one.pci.is_empty() && one.made_of.is_empty());
        for disk in names {
            assert!(shown.contains(&format!("\"{}\"", disk.facts.name)), "{}", disk.facts.name);
        }
        for one in machine.pci.iter().filter(|one| one.secondary_bus.is_none()) {
            assert!(shown.contains(&format!("busid={}", one.address)), "{}", one.address);
        }
    }
}
