//! Texts and files of a machine: what tools printed, and captured trees.

use std::path::Path;

use gpuio_capture::bundle::Bundle;
use gpuio_capture::machines::{Text, read_all};
use gpuio_capture::{Captured, KINDS, Kind, add, kind_of, pack};
use gpuio_host::{Entry, Root, Tree, machine};
use gpuio_machine::topo::Topology;

use crate::{is_inside, is_shown};

/// One text, by every reader and by the one that it looks like; what came of that is shown.
pub(crate) fn capture(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for kind in &KINDS {
        let mut captured = Captured::default();
        one(kind, &text, &mut captured);
    }
    if let Some(kind) = kind_of(&text) {
        let mut captured = Captured::default();
        if one(kind, &text, &mut captured) {
            shown(&captured);
        }
    }
}

/// A text as people paste it: several commands' output in one, with decoration.
pub(crate) fn pasted(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut captured = Captured::default();
    match gpuio_capture::read("text", &text, &mut captured) {
        Err(error) => {
            is_inside(&text, error.line, error.column);
            assert_eq!(captured, Captured::default(), "of a refused text nothing is taken in");
        }
        Ok(()) => {
            let _ = captured.summary();
            shown(&captured);
        }
    }
}

/// Several texts of any machines, parted by NUL: what was read of each is shown.
pub(crate) fn machines(data: &[u8]) {
    let parts = data.split(|byte| *byte == 0).take(8).enumerate();
    let texts: Vec<Text> = parts
        .map(|(at, part)| Text {
            name: format!("{}/text", at % 3),
            body: String::from_utf8_lossy(part).into_owned(),
        })
        .collect();
    let all = read_all(&texts);
    assert!(all.machines.len() <= texts.len() * 300, "machines are made up");
    for one in &all.machines {
        assert!(!one.name.is_empty(), "a machine without a name");
        let _ = (one.captured.summary(), one.captured.remarks());
        shown(&one.captured);
    }
}

/// A file of a bundle: what is unpacked has names and bounds.
pub(crate) fn bundle(data: &[u8]) {
    let mut bundle = Bundle::default();
    bundle.add("file", data.to_vec());
    assert!(bundle.texts.iter().all(|text| text.name.starts_with("file")), "{:?}", bundle.texts);
    assert!(bundle.others.iter().all(|(_, why)| !why.is_empty()));
}

/// Several texts in one machine, parted by NUL.
pub(crate) fn captures(data: &[u8]) {
    let mut captured = Captured::default();
    for part in data.split(|byte| *byte == 0).take(8) {
        let text = String::from_utf8_lossy(part);
        if let Some(kind) = kind_of(&text) {
            one(kind, &text, &mut captured);
        }
    }
    shown(&captured);
}

fn one(kind: &Kind, text: &str, captured: &mut Captured) -> bool {
    let before = captured.clone();
    let added = add(kind, text, captured);
    if let Err(error) = &added {
        if text.len() <= kind.most_bytes {
            is_inside(text, error.line, error.column);
        }
        assert_eq!(*captured, before, "of a text that is refused nothing is taken in");
    }
    added.is_ok()
}

fn shown(captured: &Captured) {
    let topology = Topology::of(&captured.machine, &[]);
    is_shown(&gpuio_machine::topo::format::document(&topology).unbroken());
    let machine = &captured.machine;
    assert!(gpuio_machine::topo::format::svg(machine, &topology).ends_with("</svg>\n"));
    let page = gpuio_machine::topo::format::html(machine, &topology);
    assert_eq!(page.matches("</script>").count(), 2, "a name ends the page's data");
    let xml = gpuio_machine::topo::format::hwloc_xml(&captured.machine);
    is_shown(&xml);
    let rules: Vec<_> = gpuio_machine::check::RULES.iter().collect();
    let findings = gpuio_machine::check::check(&captured.machine, &rules);
    for (all, read) in [(false, None), (true, None), (false, Some(&["lspci -vv"][..]))] {
        is_shown(&gpuio_machine::check::text::document(&findings, all, read).terminal(100));
    }
}

/// A packed capture.
pub(crate) fn tar(data: &[u8]) {
    if let Ok(tree) = pack::read(data) {
        let facts = machine::read(&Root::of(tree.clone()));
        let _ = Topology::of(&facts, &[]);
        let redacted = pack::redact(&tree, &["atlas".to_owned()], 3);
        if let Ok(bytes) = pack::write(&redacted) {
            assert!(pack::read(&bytes).is_ok(), "what is packed can be unpacked");
        }
    }
}

/// A capture of a small tree.
pub(crate) fn a_tar() -> Vec<u8> {
    let mut tree = Tree::default();
    for (path, body) in [
        ("proc/self/mountinfo", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"),
        ("proc/mounts", "/dev/sda1 / ext4 rw,relatime 0 0\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/devices/pci0000:00/0000:00:01.0/class", "0x010802\n"),
        ("proc/sys/kernel/hostname", "atlas\n"),
    ] {
        tree.put(Path::new(path), Entry::File(body.as_bytes().to_vec()));
    }
    pack::write(&pack::redact(&tree, &["atlas".to_owned()], 1)).unwrap_or_default()
}

/// Files of the kernel, each a line with its path and then its text, parted by NUL.
pub(crate) fn tree(data: &[u8]) {
    let mut tree = Tree::default();
    for part in data.split(|byte| *byte == 0).take(64) {
        let end = part.iter().position(|byte| *byte == b'\n').unwrap_or(part.len());
        let (path, body) = part.split_at(end);
        let Ok(path) = std::str::from_utf8(path) else { continue };
        let body = body.get(1..).unwrap_or_default().to_vec();
        tree.put(Path::new(path.trim_start_matches('/')), Entry::File(body));
    }
    // One file alone takes the places in which readers look for its kind.
    for place in ["proc/self/mountinfo", "proc/self/mountstats", "proc/mdstat", "proc/net/route"] {
        tree.put(Path::new(place), Entry::File(data.to_vec()));
    }
    let root = Root::of(tree);
    let _ = gpuio_host::collect(&root);
    let _ = machine::read(&root);
}
