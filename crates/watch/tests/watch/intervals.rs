//! Rates of two snapshots of kernel files, made by hand from what kernels print.

#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests")]

use gpuio_host::Root;
use gpuio_record::facts::{BlockDevice, BlockFacts, BlockKind, DeviceNumber, Machine, NumaNode};
use gpuio_testkit::tree::put;
use gpuio_watch::{Interval, PROBES, Sample, Selection, Watcher, openmetrics, print, select};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// The first sums of all files are 0 but for what comes from before.
fn tree(disks: &str, later: bool) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    put(at, "proc/diskstats", disks);
    let n = u64::from(later);
    let net =
        format!("a\nb\n  eth0: {} {} 0 0 0 0 0 0 500 5 {n} 0 0 0 0 0\n", 100 + n * 2048, 7 + n);
    put(at, "proc/net/dev", &net);
    put(at, "proc/meminfo", "MemFree: 1 kB\nCached: 2 kB\nDirty: 3 kB\nWriteback: 0 kB\n");
    let (busy, idle) = (100 + 50 * n, 1000 + 150 * n);
    put(at, "proc/stat", format!("cpu 0 0 0 0\ncpu0 {busy} 0 0 {idle} 0 0 0 0\ncpu1 0 0 0 0\n"));
    let ticks = 10 + 30 * n;
    let process = format!("7 (gpuio) S 1 7 7 0 -1 4 0 0 0 0 {ticks} 20 0 0 20 0 1 0 99 0 0\n");
    put(at, "proc/7/stat", &process);
    let io = format!("read_bytes: {}\nwrite_bytes: 4096\n", 4096 + n * (6 << 20));
    put(at, "proc/7/io", &io);
    put(at, "proc/9/stat", "9 (kworker/0:1) I 2 0 0 0 -1 4 0 0 0 0 5 5 0 0 20 0 1 0 1 0 0\n");
    let port = "sys/class/infiniband/mlx5_0/ports/1/counters";
    put(at, &format!("{port}/port_rcv_data"), format!("{}\n", 1000 + n * 262_144));
    put(at, &format!("{port}/port_xmit_data"), format!("{}\n", u32::MAX));
    let (ops, rtt) = (10 + 4 * n, 30 + 20 * n);
    let nfs = format!(
        "device srv:/a mounted on /mnt with fstype nfs4 statvers=1.1\n\
         \tbytes:\t0 0 0 0 {} 0 0 0\n\tper-op statistics\n\
         \tREAD: {ops} {ops} 0 0 0 0 {rtt} {rtt} 0\n",
        n << 20
    );
    put(at, "proc/self/mountstats", &nfs);
    dir
}

fn watcher(root: &tempfile::TempDir, selection: Selection) -> Watcher {
    let nodes = vec![NumaNode { node: 0, cpus: Some(vec![0, 1]), ..NumaNode::default() }];
    Watcher::new(Root::at(root.path()), nodes, selection)
}

fn between(first: &str, second: &str, seconds: u64) -> (Sample, Sample) {
    let (one, two) = (tree(first, false), tree(second, true));
    let mut watcher = watcher(&one, Selection::default());
    let before = watcher.sample_at(SECOND);
    watcher.look_at(Root::at(two.path()));
    (before, watcher.sample_at(SECOND + seconds * SECOND))
}

fn figure(interval: &Interval, probe: &str, device: &str, key: &str) -> Option<f64> {
    let table = interval.table(probe).unwrap();
    let row = table.rows.iter().find(|row| row.name == device).unwrap();
    let nth = table.probe.figures.iter().position(|figure| figure.key == key).unwrap();
    row.figures(table.probe)[nth]
}

/// The drive of a published experiment: fio read 519 blocks of 1 MiB per second, and `iostat -x`
/// showed 2077 requests/s, 531712 kB/s, await 0.86 ms, queue 1.79, 100 % busy.
const BEFORE: &str = "8 16 sdb 1000 0 512000 860 0 0 0 0 0 1000 1790\n";
const AFTER: &str = "8 16 sdb 3077 0 1575424 2646 0 0 0 0 2 2000 3580\n";

#[test]
fn a_disk_is_as_iostat_has_it() {
    let (before, after) = between(BEFORE, AFTER, 1);
    let interval = Interval::between(&before, &after);
    let sdb = |key| figure(&interval, "block", "sdb", key).unwrap();
    assert_eq!(sdb("reads_per_second"), 2077.0);
    assert_eq!(sdb("read_bytes_per_second"), 531_712.0 * 1024.0);
    assert!((sdb("read_await_seconds") * 1000.0 - 0.86).abs() < 0.005);
    assert_eq!(sdb("read_request_bytes"), 262_144.0);
    assert!((sdb("queue") - 1.79).abs() < 1e-9);
    assert!((sdb("busy_percent") - 100.0).abs() < 1e-9);
    assert_eq!(figure(&interval, "block", "sdb", "write_await_seconds"), None, "no write was made");
    // One write of less than a millisecond took some time.
    let (before, after) = between(BEFORE, &AFTER.replace("2646 0 0 0 0 2", "2646 1 0 8 0 2"), 1);
    let interval = Interval::between(&before, &after);
    assert_eq!(figure(&interval, "block", "sdb", "writes_per_second"), Some(1.0));
    assert_eq!(figure(&interval, "block", "sdb", "write_await_seconds"), None, "unknown");
    // The counter may be read later than the clock.
    let (before, after) = between(BEFORE, &AFTER.replace("2000 3580", "2180 3580"), 1);
    let share = figure(&Interval::between(&before, &after), "block", "sdb", "busy_percent");
    assert_eq!(share, Some(100.0));
}

#[test]
fn every_kind_of_device_has_its_figures() {
    let (before, after) = between(BEFORE, AFTER, 2);
    let interval = Interval::between(&before, &after);
    let of = |probe, device, key| figure(&interval, probe, device, key);
    assert_eq!(of("interface", "eth0", "received_bytes_per_second"), Some(1024.0));
    assert_eq!(of("interface", "eth0", "errors"), Some(1.0));
    // 262144 units of four bytes in two seconds.
    assert_eq!(of("rdma", "mlx5_0/1", "received_bytes_per_second"), Some(524_288.0));
    assert_eq!(of("rdma", "mlx5_0/1", "sent_bytes_per_second"), None, "it stays at its most");
    assert_eq!(of("nfs", "/mnt", "reads_per_second"), Some(2.0));
    assert_eq!(of("nfs", "/mnt", "read_round_trip_seconds"), Some(0.005));
    assert_eq!(of("page_cache", "memory", "dirty_bytes"), Some(3072.0));
    assert_eq!(of("cpu", "node 0 (2 CPUs)", "user_percent"), Some(25.0));
    let hertz = rustix_ticks();
    let busy = of("process", "7 gpuio", "cpu_percent").unwrap();
    let read = of("process", "7 gpuio", "read_bytes_per_second").unwrap();
    assert_eq!(read, f64::from(6 << 20) / 2.0);
    assert!((busy - 30.0 / hertz / 2.0 * 100.0).abs() < 0.51, "{busy}");
    assert_eq!(interval.table("process").unwrap().rows.len(), 1, "threads of the kernel are not");
    assert!(interval.table("gpu").unwrap().absent.is_some());
    assert!(interval.table("nvidia_fs").unwrap().absent.as_ref().unwrap().contains("not loaded"));
}

/// A shell has waited for a `dd` of 4 GiB: those bytes were not moved in this interval.
#[test]
fn a_process_has_no_jump_by_the_bytes_of_its_children() {
    let dir = tree(BEFORE, false);
    let mut watcher = watcher(&dir, Selection::default());
    let mut sample = |nth: u64, faults, bytes: u64| {
        let stat = format!("7 (sh) S 1 7 7 0 -1 4 0 {faults} 0 0 0 0 0 0 20 0 1 0 99 0 0\n");
        put(dir.path(), "proc/7/stat", &stat);
        put(dir.path(), "proc/7/io", format!("read_bytes: {bytes}\nwrite_bytes: 0\n"));
        watcher.sample_at(nth * SECOND)
    };
    let all = [(0, 0), (0, 4096), (9, 4 << 30), (9, 4 << 30), (9, (4 << 30) + 4096)];
    let all: Vec<Sample> =
        (1..).zip(all).map(|(nth, (faults, bytes))| sample(nth, faults, bytes)).collect();
    let rates = all.windows(2).map(|pair| {
        let interval = Interval::between(&pair[0], &pair[1]);
        let about = interval.table("process").unwrap().rows[0].about.clone();
        let marked = about == "bytes unknown: a child ended";
        (figure(&interval, "process", "7 sh", "read_bytes_per_second"), marked)
    });
    let rates: Vec<(Option<f64>, bool)> = rates.collect();
    let known = (Some(4096.0), false);
    assert_eq!(rates, [known, (None, true), (None, false), known]);
}

/// `/proc/driver/nvidia-fs/stats` as NVIDIA's troubleshooting guide prints it (version 4.0).
#[test]
fn nvidia_fs_shows_mappings_and_holes_and_each_gpu() {
    const STATS: &str = gpuio_testkit::machines::NVIDIA_FS_STATS;
    let far = STATS.replacen("cross_root_port(%)=0", "cross_root_port(%)=37", 1);
    let later = far.replace(
        "Bar1-map                        : n=183 ok=183 err=0",
        "Bar1-map : n=193 ok=190 err=3",
    );
    assert_ne!(far, later);
    let dir = tempfile::tempdir().unwrap();
    let mut watcher = watcher(&dir, Selection::default());
    let mut sample = |stats: &str, at_ns| {
        put(dir.path(), "proc/driver/nvidia-fs/stats", stats);
        watcher.sample_at(at_ns)
    };
    let before = sample(&far, SECOND);
    let interval = Interval::between(&before, &sample(&later, 3 * SECOND));
    let of = |probe, device, key| figure(&interval, probe, device, key);
    assert_eq!(of("nvidia_fs", "nvidia-fs", "bar1_maps_per_second"), Some(5.0));
    assert_eq!(of("nvidia_fs", "nvidia-fs", "mapping_errors"), Some(3.0));
    assert_eq!(of("nvidia_fs", "nvidia-fs", "reads_per_second"), None, "nobody counts them");
    let gpu = "0000:be:00.0";
    assert_eq!(of("nvidia_fs_gpu", gpu, "cross_root_port_percent"), Some(37.0));
    assert_eq!(of("nvidia_fs_gpu", gpu, "most_pinned_bytes"), Some(1_048_576.0));
}

fn rustix_ticks() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

#[test]
fn devices_come_go_and_begin_again() {
    let two = "8 16 sdb 5 0 5 5 0 0 0 0 0 5 5\n8 32 sdc 9 0 9 9 0 0 0 0 0 9 9\n";
    let (before, after) =
        between(two, "8 16 sdb 3 0 5 5 0 0 0 0 0 5 5\n8 48 sdd 1 0 8 1 0 0 0 0 0 1 1\n", 1);
    let interval = Interval::between(&before, &after);
    let rows = &interval.table("block").unwrap().rows;
    let said: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.why)).collect();
    assert_eq!(said, [("sdb", Some("its counters began again")), ("sdd", Some("new"))]);
    assert!(rows.iter().all(|row| row.change.is_none()));
}

#[test]
fn times_of_32_bits_turn_over() {
    let most = u32::MAX;
    let before = format!("8 16 sdb 10 0 0 {most} 0 0 0 0 0 {most} {most}\n");
    let (before, after) = between(&before, "8 16 sdb 20 0 0 9 0 0 0 0 0 499 999\n", 1);
    let interval = Interval::between(&before, &after);
    assert_eq!(figure(&interval, "block", "sdb", "read_await_seconds"), Some(0.001));
    assert_eq!(figure(&interval, "block", "sdb", "busy_percent"), Some(50.0));
    assert_eq!(figure(&interval, "block", "sdb", "queue"), Some(1.0));
}

#[test]
fn without_time_nothing_is_known() {
    let (before, mut after) = between(BEFORE, AFTER, 1);
    for at in [before.at_ns, before.at_ns - 1] {
        after.at_ns = at;
        let interval = Interval::between(&before, &after);
        let row = &interval.table("block").unwrap().rows[0];
        assert_eq!((interval.seconds, row.why), (0.0, Some("no time passed")));
    }
}

#[test]
fn an_array_brings_its_members_and_a_partition_its_disk() {
    let device = |name: &str, kind, made_of: &[&str]| BlockDevice {
        made_of: made_of.iter().map(ToString::to_string).collect(),
        ..BlockDevice::of(BlockFacts::unread(name, DeviceNumber::default(), kind))
    };
    let block = vec![
        device("md0", BlockKind::Md, &["nvme0n1p1", "nvme1n1"]),
        device("nvme0n1", BlockKind::Disk, &[]),
        device("nvme0n1p1", BlockKind::Partition, &["nvme0n1"]),
        device("nvme1n1", BlockKind::Disk, &[]),
        device("sda", BlockKind::Disk, &[]),
    ];
    let machine = Machine { block, ..Machine::default() };
    let found = select(&machine, &["/dev/md0".to_owned(), "nvme1n1".to_owned()]).unwrap();
    assert_eq!(found.block(), ["md0", "nvme0n1", "nvme0n1p1", "nvme1n1"]);
    let unknown = select(&machine, &["sdz".to_owned()]).unwrap_err().to_string();
    assert!(unknown.contains("'sdz'") && unknown.contains("nvme1n1"), "{unknown}");
}

#[test]
fn text_json_and_openmetrics_say_the_same() {
    let (before, after) = between(BEFORE, AFTER, 1);
    let interval = Interval::between(&before, &after);
    let text = print::plain(&interval, 160);
    let line = text.lines().find(|line| line.starts_with("sdb")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[1..5], ["2077", "0", "519.25", "0.00"], "{line}");
    assert!(print::plain(&interval, 80).lines().all(|line| line.chars().count() <= 80), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&print::json_line(&interval, "2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(json["schema"], "gpuio-top/1");
    assert_eq!(json["devices"][0]["figures"]["reads_per_second"], 2077.0);
    assert_eq!(json["devices"][0]["figures"]["write_await_seconds"], serde_json::Value::Null);
    let metrics = openmetrics::text(&after);
    assert!(metrics.contains("gpuio_block_reads_total{device=\"sdb\"} 3077\n"), "{metrics}");
    assert!(metrics.contains("gpuio_block_read_bytes_total{device=\"sdb\"} 806617088\n"));
    assert!(metrics.ends_with("# EOF\n"));
}

/// Prometheus' own reader of OpenMetrics, where it is installed.
#[test]
fn prometheus_reads_the_page() {
    let (_, after) = between(BEFORE, AFTER, 1);
    let script = "import sys\n\
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as f\n\
        found = {m.name: m for m in f(sys.stdin.read())}\n\
        s = found['gpuio_block_busy_seconds'].samples[0]\n\
        assert (s.value, s.labels) == (2.0, {'device': 'sdb'}), s\n\
        assert found['gpuio_block_in_flight'].type == 'gauge'\n\
        assert found['gpuio_rdma_received_bytes'].samples[0].value == 1052576.0\n";
    let module = "prometheus_client.openmetrics.parser";
    let Some(python) = gpuio_testkit::programs::python_with(module) else { return };
    let mut child = std::process::Command::new(python)
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let text = openmetrics::text(&after);
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
}

proptest! {
    /// Whatever counters do, what is known is finite and not negative, and what was counted is
    /// what was added where the counter can tell.
    #[test]
    fn counters_never_give_nonsense(
        from in any::<u64>(), to in any::<u64>(), added in 0u64..u64::from(u32::MAX),
        probe in 0..PROBES.len(), later in 0u64..10,
    ) {
        for metric in PROBES[probe].metrics {
            let narrow = metric.kind == gpuio_watch::Kind::Counter32;
            let start = if narrow { from & u64::from(u32::MAX) } else { from };
            let sum = start.wrapping_add(added);
            let end = if narrow { sum & u64::from(u32::MAX) } else { sum };
            prop_assert_eq!(metric.counted(start, end), Some(added));
        }
        let width = PROBES[probe].metrics.len();
        let sample = |at_ns, value| {
            let mut probes = vec![Err("not looked at".to_owned()); PROBES.len()];
            let values = vec![Some(value); width];
            probes[probe] =
                Ok(vec![gpuio_watch::Reading {
                    name: "x".to_owned(),
                    identity: 0,
                    values,
                    about: String::new(),
                }]);
            Sample { at_ns, probes }
        };
        let interval = Interval::between(&sample(5, from), &sample(5 + later, to));
        for table in &interval.tables {
            for row in &table.rows {
                for figure in row.figures(table.probe).into_iter().flatten() {
                    prop_assert!(figure.is_finite() && figure >= 0.0, "{figure}");
                }
            }
        }
    }
}
