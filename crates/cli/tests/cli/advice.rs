//! Advice of warnings: each flag that a warning names is one that the command at hand takes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use gpuio_job::spec::{LoadKind, TakenKeys, find};
use gpuio_record::{ThreadsOf, WarningKind};

use crate::tool::{command, file, finish, scratch, words};

use LoadKind::{Feed, Ranges, Replay};

/// A load that a command runs.
struct Case {
    line: &'static str,
    kinds: &'static [Option<LoadKind>],
    reads: bool,
    writes: bool,
}

const fn case(
    line: &'static str,
    kinds: &'static [Option<LoadKind>],
    (reads, writes): (bool, bool),
) -> Case {
    Case { line, kinds, reads, writes }
}

const READS: (bool, bool) = (true, false);
const WRITES: (bool, bool) = (false, true);
const BOTH: (bool, bool) = (true, true);

const CASES: &[Case] = &[
    case("bench --rw randread --size 4m --directory d", &[None], READS),
    case("bench --rw write --size 4m --directory d", &[None], WRITES),
    case("bench feed.ini", &[Some(Feed)], READS),
    case("bench files.ini", &[Some(Ranges)], READS),
    case("sweep --rw randread --size 4m --vary seed=1,2", &[None], READS),
    case("replay trace", &[Some(Replay)], BOTH),
    case("workload unet3d-h100 --directory d", &[Some(Feed)], READS),
    case("workload dali-inference --directory d", &[Some(Feed)], READS),
    case("workload kv-cache-llama3-8b --directory d", &[Some(Feed), Some(Feed)], BOTH),
    case("workload checkpoint-llama3-8b --directory d", &[None, None], BOTH),
    case("workload vector-search --directory d", &[None], READS),
    case("workload safetensors models", &[Some(Ranges), Some(Ranges)], READS),
    case("workload feed.ini", &[Some(Feed)], READS),
];

/// The warnings that such a load may have, with the fields that it gives them.
fn warnings(case: &Case) -> Vec<WarningKind> {
    let given = case.kinds.iter().any(|kind| matches!(kind, Some(Ranges | Replay)));
    let feeds = case.kinds.iter().all(|kind| *kind == Some(Feed));
    let mut all = WarningKind::examples();
    all.retain(|kind| match kind {
        WarningKind::BufferedWrites { .. }
        | WarningKind::SyncWrites
        | WarningKind::DirectWritesInDeviceCache { .. } => case.writes,
        WarningKind::ComputeOverran { .. } | WarningKind::ComputeFellShort { .. } => {
            feeds && !case.line.contains("kv-cache")
        }
        // Feeds and replays have neither rates nor a length of their own.
        WarningKind::RateNotReached { .. }
        | WarningKind::NeverStarted { .. }
        | WarningKind::NotSteady { .. }
        | WarningKind::RunTooShort { .. }
        | WarningKind::UnevenFinish { .. } => !feeds && case.kinds != [Some(Replay)],
        // Files of the user's are compared after the run.
        WarningKind::WorkBetweenIos { .. } => !given,
        _ => true,
    });
    for kind in &mut all {
        match kind {
            WarningKind::PageCacheServedReads { of_files, .. }
            | WarningKind::DataSetFitsMemory { of_files, .. }
            | WarningKind::UnevenFinish { of_files, .. }
            | WarningKind::RunTooShort { of_files, .. } => *of_files = given,
            WarningKind::WorkBetweenIos { reads, writes, refill, .. } => {
                (*reads, *writes, *refill) = (case.reads, case.writes, case.writes && !feeds);
            }
            WarningKind::BlocksCut { random, .. } => *random = case.line.contains("rand"),
            WarningKind::MoreThreadsThanCpus { of, .. } if feeds => *of = ThreadsOf::Feed,
            WarningKind::MoreThreadsThanCpus { of, .. } if case.kinds == [Some(Replay)] => {
                *of = ThreadsOf::Trace;
            }
            _ => {}
        }
    }
    all
}

/// The key with a value that this machine has.
fn with_value(key: &str) -> String {
    let (name, value) = key.split_once([' ', '=']).unwrap_or((key, ""));
    let row = find(name).unwrap_or_else(|| panic!("there is no key {name}"));
    let is_switch = row.flags.iter().any(gpuio_job::spec::Flag::is_switch);
    match (name, value) {
        ("gpu", _) => "gpu software".to_owned(),
        ("numa", _) => "numa 0".to_owned(),
        ("inject", _) => "inject eio=1%".to_owned(),
        (_, "") if is_switch => name.to_owned(),
        ("directory", _) => "directory e".to_owned(),
        (_, "") => format!("{name} {}", row.tried[0]),
        _ => key.to_owned(),
    }
}

fn make(dir: &Path) {
    let feed = "[a]\nfiles=400\nsample_size=8k\nbatch_samples=2\ncompute_time=1ms\ndirectory=d\n";
    file(dir, "feed.ini", feed);
    file(dir, "files.ini", "[a]\nranges=files\nfilename=data\n");
    std::fs::write(dir.join("data"), vec![1; 32 << 20]).unwrap();
    // 16 tensors of 16 MiB and one byte.
    std::fs::create_dir(dir.join("models")).unwrap();
    let bytes = (16 << 20) + 1;
    let tensors = (0..16_u64).map(|nth| {
        let place = format!("[{},{}]", nth * bytes, (nth + 1) * bytes);
        format!("\"{nth}\":{{\"dtype\":\"U8\",\"shape\":[{bytes}],\"data_offsets\":{place}}}")
    });
    let header = format!("{{{}}}", tensors.collect::<Vec<_>>().join(","));
    let mut model = (header.len() as u64).to_le_bytes().to_vec();
    model.extend(header.bytes());
    let path = dir.join("models/a.safetensors");
    std::fs::write(&path, &model).unwrap();
    let model_file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    model_file.set_len(model.len() as u64 + 16 * bytes).unwrap();
    let calls = "fio version 2 iolog\n/f add\n/f open\n/f read 0 4096\n/f write 4096 4096\n";
    file(dir, "trace", &format!("{calls}/f close\n"));
}

/// The flags of a case's warnings that its command refuses, each with what it says.
fn refused(dir: &Path, case: &Case) -> Vec<String> {
    let line: Vec<String> =
        std::iter::once("gpuio").chain(case.line.split(' ')).map(str::to_owned).collect();
    let taken = TakenKeys::of_kinds(&line, case.kinds.to_vec());
    let named = RefCell::new(BTreeMap::new());
    for kind in warnings(case) {
        let text = kind.text(&|key| {
            let word = taken.spelled(key)?;
            named.borrow_mut().insert(with_value(key), kind.id());
            Some(word)
        });
        assert!(!text.contains(['<', '>']), "{text}");
    }
    let named = named.into_inner();
    assert!(named.len() > 3, "{}: {named:?}", case.line);
    // Path host has no use for a GPU.
    let (host, gpu): (Vec<_>, Vec<_>) = named
        .into_iter()
        .filter_map(|(key, warning)| Some((key == "path host", taken.spelled(&key)?, warning)))
        .partition(|(is_host, ..)| *is_host);
    let dry = |gpu: &str, flags: &[(bool, String, String)]| {
        let flags: Vec<&str> = flags.iter().map(|(_, flag, _)| &**flag).collect();
        let line = format!("{} {} --gpu {gpu} --dry-run", case.line, flags.join(" "));
        (finish(command(dir).args(words(&line))), line)
    };
    let mut refused = Vec::new();
    for (gpu, flags) in [("none", host), ("software", gpu)] {
        // All at once. Those that do not go together are tried in halves, down to each alone.
        let mut open = vec![&flags[..]];
        while let Some(flags) = open.pop().filter(|flags| !flags.is_empty()) {
            let (ran, line) = dry(gpu, flags);
            match flags {
                _ if ran.code != 2 => {}
                [(.., warning)] => {
                    refused.push(format!("{warning}: gpuio {line}: {}", ran.err.trim()));
                }
                _ => open.extend([&flags[..flags.len() / 2], &flags[flags.len() / 2..]]),
            }
        }
    }
    refused
}

#[test]
fn each_flag_that_a_warning_names_is_taken_by_the_command() {
    let dir = scratch();
    make(dir.path());
    let all: Vec<String> = std::thread::scope(|scope| {
        let cases = CASES.iter().map(|case| scope.spawn(|| refused(dir.path(), case)));
        let cases: Vec<_> = cases.collect();
        cases.into_iter().flat_map(|case| case.join().unwrap()).collect()
    });
    assert!(all.is_empty(), "{}", all.join("\n"));
}
