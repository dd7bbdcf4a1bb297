//! How long `gpuio topo` and `gpuio check` think, in milliseconds:
//!
//! `cargo run --release -p gpuio-capture --example topo_speed [-- PATH-OF-GPUIO]`
//!
//! A server of 16 GPUs and 64 drives (the DGX-2 of the tests and 54 drives more) as a directory and
//! as a capture in memory, and this machine without NVML; with a path, the program as a whole. Rows
//! are medians of 21 after a first that does not count, with the limit that is asked for and the
//! share of it. Exit code 1 when a median is over its limit.
#![expect(clippy::unwrap_used, reason = "a tool of developers: what fails there fails it")]
#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::fmt::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use gpuio_capture::pack;
use gpuio_host::{Root, machine};
use gpuio_machine::check::{RULES, Rule, check};
use gpuio_machine::topo::{DeviceKind, Topology, format};
use gpuio_record::facts::Machine;
use gpuio_testkit::machines::DGX_2;
use gpuio_testkit::tree;

const RUNS: usize = 21;
const CAPTURED_MS: f64 = 50.0;
const LIVE_MS: f64 = 300.0;

fn main() -> ExitCode {
    let tree = tree::build(&server());
    let (root, recorder) = tree.root().recording();
    let machine = machine::read(&root);
    let tar = pack::write(&pack::redact(&recorder.tree(), &[], 0)).unwrap();
    let captured = Root::of(pack::read(&tar).unwrap());
    let (directory, live) = (tree.root(), Root::live());
    let counts = Topology::of(&machine, &[]);
    let count = |kind| counts.of_kind(kind).count();
    assert_eq!((count(DeviceKind::Gpu), count(DeviceKind::Drive)), (16, 64));
    println!(
        "{:<48} {:>9} {:>9} {:>7}",
        "16 GPUs, 64 drives, 10 NICs (DGX-2 and more)", "median ms", "limit ms", "share"
    );
    let mut over = false;
    let mut row = |what: &str, limit: Option<f64>, work: &mut dyn FnMut()| {
        let median = median(work);
        over |= limit.is_some_and(|limit| median > limit);
        let limits = limit.map_or((String::new(), String::new()), |limit| {
            (format!("{limit:.0}"), format!("{:.0}%", 100.0 * median / limit))
        });
        println!("{what:<48} {median:>9.2} {:>9} {:>7}", limits.0, limits.1);
    };
    row("facts from a directory", None, &mut || drop(machine::read(&directory)));
    row("facts from a capture in memory", None, &mut || drop(machine::read(&captured)));
    row("topology", None, &mut || drop(Topology::of(&machine, &[])));
    row("check, all rules", None, &mut || answers(&machine, false));
    row("directory: facts, topology, check", Some(CAPTURED_MS), &mut || {
        answers(&machine::read(&directory), true);
    });
    row("capture: facts, topology, check", Some(CAPTURED_MS), &mut || {
        answers(&machine::read(&captured), true);
    });
    row("reading the capture's tar", None, &mut || drop(pack::read(&tar).unwrap()));
    row("drawing the picture", None, &mut || drop(format::svg(&machine, &counts)));
    row("this machine: facts, topology, check", Some(LIVE_MS), &mut || {
        answers(&machine::read(&live), true);
    });
    if let Some(gpuio) = std::env::args().nth(1) {
        for verb in ["topo", "check"] {
            row(&format!("this machine: gpuio {verb}, whole"), Some(LIVE_MS), &mut || {
                let mut program = Command::new(&gpuio);
                let ended = program.arg(verb).stdout(Stdio::null()).stderr(Stdio::null()).status();
                // 1 is check's word for findings.
                assert!(ended.unwrap().code().is_some_and(|code| code <= 1));
            });
        }
    }
    ExitCode::from(u8::from(over))
}

/// The DGX-2 with 54 drives more, each on a root port of its own.
fn server() -> String {
    let mut table = DGX_2.to_owned();
    table.push_str("\nroot 0001:00 node=1\n");
    for drive in 0..54u32 {
        let (device, function, bus) = (1 + drive / 8, drive % 8, format!("{:02x}", drive + 1));
        writeln!(
            table,
            "  0001:00:{device:02x}.{function} 8086:a190 060400 port=root buses={bus}-{bus} \
             link=8.0x4 driver=pcieport\n    0001:{bus}:00.0 144d:a804 010802 port=end \
             link=8.0x4 driver=nvme nvme=nvme{} model=MODEL size=960197124096",
            drive + 10
        )
        .unwrap();
    }
    table
}

fn answers(machine: &Machine, topology: bool) {
    if topology {
        drop(Topology::of(machine, &[]));
    }
    let rules: Vec<&Rule> = RULES.iter().collect();
    drop(check(machine, &rules));
}

fn median(work: &mut dyn FnMut()) -> f64 {
    work();
    let mut all: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[RUNS / 2]
}
