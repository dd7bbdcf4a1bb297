//! `gpuio topo`: the running machine, captured ones, and what is no machine.

use std::fs;
use std::path::Path;

use crate::tool::{command, finish, scratch};

const QUERY: &str =
    "index, name, pci.domain, pci.bus\n0, V100, 0x0000, 0x34\n1, V100, 0x0000, 0x36\n";
const BY_PATH: &str =
    "lrwxrwxrwx 1 root root 13 Nov 19 12:08 pci-0000:2e:00.0-nvme-1 -> ../../nvme2n1\n";

/// As `lspci -tv` prints it.
fn lspci() -> String {
    let switch = " ".repeat(43);
    let gpus = " ".repeat(75);
    format!(
        "-[0000:2b]---00.0-[2c-36]----00.0-[2d-36]--+-00.0-[2e]----00.0  Micron 9200 NVMe SSD\n\
         {switch}\\-04.0-[32-36]----00.0-[33-36]--+-00.0-[34]----00.0  NVIDIA GV100GL\n\
         {gpus}\\-10.0-[36]----00.0  NVIDIA GV100GL\n"
    )
}

fn texts(dir: &Path) -> [&'static str; 3] {
    for (name, text) in [("lspci", &*lspci()), ("query", QUERY), ("by-path", BY_PATH)] {
        fs::write(dir.join(name), text).unwrap();
    }
    ["lspci", "query", "by-path"]
}

#[test]
fn this_machine_is_shown() {
    let dir = scratch();
    let ran = finish(command(dir.path()).args(["topo", "--format", "json"])).exits(0);
    let json = ran.json();
    assert_eq!(json["gpuio_topo"], 1);
    let count = json["devices"].as_array().unwrap().len();
    let routes = json["routes"].as_array().unwrap().len();
    assert_eq!(routes, count * count.saturating_sub(1) / 2);
    finish(command(dir.path()).arg("topo")).exits(0);
}

#[test]
fn texts_of_another_machine_are_put_together() {
    let dir = scratch();
    let names = texts(dir.path());
    let ran = finish(command(dir.path()).args(["topo", "--from"]).args(names)).exits(0);
    assert!(ran.out.contains("GPU0  34:00.0  nvme2n1 (PXB)"), "{}", ran.out);
    let pair = ["topo", "GPU1", "/dev/nvme2n1", "--from"];
    let ran = finish(command(dir.path()).args(pair).args(names)).exits(0);
    assert!(ran.out.starts_with("GPU1 to nvme2n1: PXB"), "{}", ran.out);
    assert!(ran.out.contains("5 bridges between, of 2 switches"), "{}", ran.out);
    assert!(ran.out.contains("2c:00.0  switch, where both meet"), "{}", ran.out);
}

/// Neither of two cells counts that contradict each other, and each verb names them.
#[test]
fn a_matrix_that_contradicts_itself_is_named() {
    let dir = scratch();
    let matrix = "\tGPU0\tGPU1\tmlx5_0\nGPU0\t X \tNV18\tPXB\nGPU1\tNV18\t X \tSYS\n\
                  mlx5_0\tPXB\tPIX\t X \n";
    fs::write(dir.path().join("m"), matrix).unwrap();
    let of = |verb: &str| finish(command(dir.path()).args([verb, "--from", "m"]));
    let named = "row GPU1 has SYS for mlx5_0, row mlx5_0 has PIX for GPU1";
    for verb in ["topo", "plan", "check"] {
        let said = of(verb).out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(named), "{verb}: {said}");
    }
    let check = of("check").out;
    assert!(check.contains("CONTRADICTIONS (1)"), "{check}");
    let pair = ["topo", "GPU1", "mlx5_0", "--from", "m"];
    let pair = finish(command(dir.path()).args(pair)).out;
    assert!(!pair.contains("SYS") && !pair.contains("PIX"), "{pair}");
}

#[test]
fn a_capture_of_this_machine_gives_its_answers() {
    let dir = scratch();
    let run = |words: &[&str]| finish(command(dir.path()).args(words));
    let said = run(&["topo", "--capture", "here.tar"]).exits(0);
    assert!(said.out.contains("Captured to here.tar") && said.out.contains("MANIFEST"));
    let (here, there) = (run(&["topo"]), run(&["topo", "--from", "here.tar"]));
    assert_eq!(here.exits(0).out, there.exits(0).out);
    let findings = |words: &[&str]| -> Vec<String> {
        let found = run(words).json();
        let rows = found["findings"].as_array().unwrap().iter();
        rows.map(|one| format!("{} {}", one["rule"], one["severity"])).collect()
    };
    let checked = findings(&["check", "--format", "json"]);
    assert!(!checked.is_empty());
    assert_eq!(checked, findings(&["check", "--format", "json", "--from", "here.tar"]));
}

#[test]
fn pictures_and_hwlocs_xml_are_whole() {
    let dir = scratch();
    let names = texts(dir.path());
    let run = |format: &str| {
        let words = ["topo", "--format", format, "--from"];
        finish(command(dir.path()).args(words).args(names)).exits(0).out
    };
    let svg = run("svg");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains(">GPU1</text>"));
    let page = run("html");
    assert!(page.starts_with("<!doctype html>") && page.contains("data-device=\"GPU1\""), "{page}");
    fs::write(dir.path().join("x.xml"), run("hwloc-xml")).unwrap();
    let again = finish(command(dir.path()).args(["topo", "--from", "x.xml"])).exits(0);
    assert!(again.out.contains("GPU0  34:00.0  nvme2n1 (PXB)"), "{}", again.out);
}

#[test]
fn what_is_no_machine_or_device_is_refused_with_its_name() {
    let dir = scratch();
    let names = texts(dir.path());
    let run = |words: &[&str]| finish(command(dir.path()).arg("topo").args(words)).exits(2);
    run(&["GPU0", "nvme7n1", "--from", names[0], names[1], names[2]])
        .prints(&["'nvme7n1' is not a GPU", "GPU0, GPU1, nvme2n1"]);
    run(&["GPU0", "gpu0", "--from", names[0], names[1]]).prints(&["same device"]);
    run(&["--from", "nothing"]).prints(&["--from nothing", "No such file"]);
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    run(&["--from", "empty"]).prints(&["--from empty", "neither sys nor proc"]);
    run(&["--format", "png"]).prints(&["formats are text, json, svg, html, hwloc-xml"]);
    run(&["GPU0", "GPU1", "--format", "svg", "--from", names[0], names[1]])
        .prints(&["for two devices the formats are text, json"]);
    run(&["--capture", "x.tar", "--from", names[0]]).prints(&["--capture", "a directory"]);
    run(&["--capture", "lspci"]).prints(&["--capture lspci", "choose another name"]);
    fs::write(dir.path().join("letter"), "Dear Sir\n").unwrap();
    run(&["--from", "letter"]).prints(&["--from letter", "docs/machines.md"]);
    fs::write(dir.path().join("torn"), "-[0000:2b]---00.0-[zz]----\n").unwrap();
    run(&["--from", "torn"]).prints(&["--from torn", "line 1, column 19"]);
}
