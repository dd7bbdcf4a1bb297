//! gds_stats' sections and fields, held against what NVIDIA's guide prints.

use gpuio_watch::page::Direction;
use gpuio_watch::page::format::gds_stats;

use super::{key, own, page, pages};

const GUIDE: &str = include_str!("../fixtures/gds_stats_level_3.txt");

/// The text with `#` for every value behind a colon or an equals sign.
fn shape(text: &str) -> Vec<String> {
    let value = |word: &str| word == "n/a" || word.parse::<f64>().is_ok();
    let word = |word: &str| match word.rsplit_once('=') {
        Some((name, number)) if value(number) => format!("{name}=#"),
        _ if value(word) => "#".to_owned(),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect()
}

#[test]
fn the_shape_is_that_of_the_guide() {
    let (_dir, pages) = pages();
    let page = page(&pages, 2);
    let mut slot = page.worker_slot(&key(Some(2), "staged")).unwrap();
    slot.opened(8);
    slot.begin(1, 1_000_000_000);
    for _ in 0..2048 {
        slot.add(Direction::Read, 1 << 20, 1_044_000, false);
    }
    slot.now(2_000_000_000, 0);
    let host = page.worker_slot(&key(None, "host")).unwrap();
    host.add(Direction::Write, 100, 3_000, true);
    let snapshot = own(&pages).page.unwrap();
    let ours = gds_stats::text(&snapshot, 3, &[]);
    assert_eq!(shape(&ours), shape(GUIDE));
    for line in [
        "Total Files: 8",
        "Total Read Size (MiB): 2048",
        "Read BandWidth (GiB/s): 2",
        "Avg Read Latency (us): 1044",
        "0-4(KiB): 0 1",
        "1024-2048(KiB): 2048 0",
    ] {
        assert!(ours.lines().any(|ours| ours == line), "no {line:?} in {ours}");
    }
    assert!(ours.contains("GPU 2 Read: bw=2 util(%)=214 n=2048 posix=2048 unalign=0 r_sparse=n/a"));
    let first = |level: u8| gds_stats::text(&snapshot, level, &[]).lines().count();
    assert_eq!((first(1), first(2), first(3)), (11, 28, 35));
}

/// gds_stats has a line for each GPU of the machine, and so a reader counts on them.
#[test]
fn gpus_that_are_not_used_have_lines_of_zeros() {
    let (_dir, pages) = pages();
    let page = page(&pages, 1);
    page.worker_slot(&key(Some(2), "staged")).unwrap().add(Direction::Read, 4096, 1000, false);
    let snapshot = own(&pages).page.unwrap();
    let gpu = |index: u32, bus: u32| gds_stats::Gpu { index, pci: format!("0000:{bus:02X}:00.0") };
    let numbers = |machine: &[gds_stats::Gpu]| -> Vec<String> {
        let text = gds_stats::text(&snapshot, 3, machine);
        let lines = text.lines().filter(|line| line.starts_with("GPU "));
        lines.map(|line| line.split(" Write").next().unwrap().to_owned()).collect()
    };
    let lines = numbers(&[gpu(0, 0x34), gpu(2, 2), gpu(3, 0x3b)]);
    let zeros = "bw=0 util(%)=0 n=0 posix=0 unalign=0 r_sparse=0 r_inline=0 err=0 MiB=0";
    assert_eq!(lines[0], format!("GPU 0 Read: {zeros}"));
    assert!(lines[1].starts_with("GPU 2 Read: bw=0 util(%)=0 n=1 "), "{lines:?}");
    assert_eq!(lines[2], format!("GPU 3 Read: {zeros}"));
    // The process calls 2 what the machine calls 7: its GPU is used, and 2 is taken.
    assert_eq!(numbers(&[gpu(7, 2), gpu(2, 0x39)]).len(), 1);
}

#[test]
fn what_cufile_did_is_not_called_posix() {
    let (_dir, pages) = pages();
    let page = page(&pages, 1);
    let cufile = gpuio_watch::page::Key { registrations_unknown: true, ..key(Some(0), "gds") };
    page.worker_slot(&cufile).unwrap().add(Direction::Read, 4096, 1000, false);
    let ours = gds_stats::text(&own(&pages).page.unwrap(), 3, &[]);
    assert!(ours.contains(" n=1 posix=n/a ") && ours.contains("BufRegister: n=n/a"), "{ours}");
}
