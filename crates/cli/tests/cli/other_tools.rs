//! The program beside programs of others: what they say of the same thing, and whether they read
//! what it writes. `cargo xtask ci` installs them where it may.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use gpuio_testkit::programs::python_with;

use crate::tool::{
    GPUIO, Scratch, TIMEOUT, bench, command, finish, gpuio, other, plain, scratch, scratch_short,
    served, skip, until, wait, words,
};

/// Seconds that both tools watch. The load lies within, with seconds to spare on either side.
const WINDOW: u32 = 6;

/// Whether a program can be started.
fn starts(program: &str) -> bool {
    let mut command = plain(program);
    command.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// The block device that files of this directory are on, as `gpuio top` finds it.
fn device_of(dir: &Path) -> Option<String> {
    let ran = gpuio(dir, "top d --json --interval 100ms --count 1").exits(0);
    let json = ran.json();
    let mut devices = json["devices"].as_array().unwrap().iter();
    let device = devices.find(|one| one["kind"] == "block")?;
    Some(device["device"].as_str().unwrap().to_owned())
}

/// Tries to have the device for itself.
const TRIES: usize = 5;

/// Both read the same counters, so over a window in which the whole load lies they must have
/// counted the same, whenever each of them began. A try does not count where other programs used
/// the device, or the load took longer than the window.
#[test]
fn top_counts_what_iostat_counts() {
    if !starts("iostat") {
        return skip("there is no iostat; install the package sysstat");
    }
    let dir = scratch();
    let dir = dir.path();
    // The data set exists before either of them counts.
    bench(dir, "--directory d --rw read --bs 1m --size 64m --loops 1 -q").exits(0);
    let Some(device) = device_of(dir) else {
        return skip("the build's directory is on no block device; set CARGO_TARGET_DIR to one");
    };
    let Some(Watched { ours, theirs, read }) = (0..TRIES).find_map(|_| watched(dir, &device))
    else {
        return skip("other programs used the disk in each of five tries");
    };
    let seconds = n(&ours["seconds"]);
    // The load is the least that each must have counted.
    let ours_read = n(&ours["read_bytes_per_second"]) * seconds;
    let theirs_read = n(&theirs["rkB/s"]) * 1024.0 * f64::from(WINDOW);
    assert!(ours_read >= read && theirs_read >= 0.98 * read, "{ours_read} {theirs_read} {read}");
    for (name, ours_is, theirs_is) in [
        ("r/s", n(&ours["reads_per_second"]) * seconds, n(&theirs["r/s"])),
        ("rkB/s", n(&ours["read_bytes_per_second"]) / 1024.0 * seconds, n(&theirs["rkB/s"])),
        ("r_await", n(&ours["read_await_seconds"]) * 1e3, n(&theirs["r_await"])),
        ("rareq-sz", n(&ours["read_request_bytes"]) / 1024.0, n(&theirs["rareq-sz"])),
        ("aqu-sz", n(&ours["queue"]) * seconds, n(&theirs["aqu-sz"])),
        ("%util", n(&ours["busy_percent"]) * seconds, n(&theirs["util"])),
    ] {
        // Means of a request have no window; iostat prints two decimals of each.
        let mean = matches!(name, "r_await" | "rareq-sz");
        let window = if mean { 1.0 } else { f64::from(WINDOW) };
        let most = 0.02 * theirs_is * window + 0.005 * window;
        let figures = format!("{name}: {ours_is} here, {} there", theirs_is * window);
        println!("{figures}");
        assert!((ours_is - theirs_is * window).abs() <= most, "{figures}");
    }
}

/// The device's figures by gpuio and by iostat, and the bytes that the load read.
struct Watched {
    ours: Value,
    theirs: Value,
    read: f64,
}

/// The device's I/O since it started, in bytes: the kernel's own counter.
fn device_bytes(device: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/sys/class/block/{device}/stat")).unwrap();
    let fields: Vec<f64> = stat.split_whitespace().map(|field| field.parse().unwrap()).collect();
    // Sectors of 512 bytes, read and written (Documentation/block/stat.rst).
    (fields[2] + fields[6]) * 512.0
}

/// One load while both tools watch; `None` where the device did other I/O, or the load took longer
/// than the window.
fn watched(dir: &Path, device: &str) -> Option<Watched> {
    let (began, before) = (Instant::now(), device_bytes(device));
    let mut iostat = plain("iostat");
    iostat.args(["-x", "-k", "-y", "-o", "JSON", device, &WINDOW.to_string(), "1"]);
    let line = format!("top {device} --json --interval {WINDOW}s --count 1");
    let mut ours = command(dir);
    let [theirs, ours] = [&mut iostat, ours.args(words(&line))].map(|command| {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    std::thread::sleep(Duration::from_millis(1500));
    let line = "--directory d --rw randread --bs 256k --size 64m --depth 8 --engine io_uring \
                --direct --runtime 1 --format json";
    let load = bench(dir, line);
    let load_ended = began.elapsed();
    let (theirs, ours) = (wait(theirs, began).exits(0).json(), wait(ours, began).exits(0).json());
    let others = device_bytes(device) - before;
    let read = n(&load.exits(0).json()["jobs"][0]["read"]["bytes"]);
    if load_ended >= Duration::from_secs(WINDOW.into()) || others - read > 0.005 * read {
        println!("a try that does not count: {load_ended:?}, {} other bytes", others - read);
        return None;
    }
    let mut devices = ours["devices"].as_array().unwrap().iter();
    let mut figures = devices.find(|one| one["device"] == device).unwrap()["figures"].clone();
    figures["seconds"] = ours["seconds"].clone();
    let theirs = theirs["sysstat"]["hosts"][0]["statistics"][0]["disk"][0].clone();
    assert_eq!(theirs["disk_device"], device);
    Some(Watched { ours: figures, theirs, read })
}

#[track_caller]
fn n(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A terminal of tmux with one window, which goes with the test.
struct Terminal {
    socket: Scratch,
}

impl Terminal {
    /// Runs a line of shell in it.
    fn start(line: &str) -> Terminal {
        let terminal = Terminal { socket: scratch_short() };
        terminal.tmux(&["new-session", "-d", "-x", "100", "-y", "30", line]);
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut tmux = other(self.socket.path(), "tmux");
        tmux.env_remove("TMUX").args(["-u", "-f", "/dev/null", "-S"]);
        finish(tmux.arg(self.socket.path().join("s")).args(words)).exits(0).out
    }

    fn key(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Waits until the screen is as expected, and returns it.
    #[track_caller]
    fn until(&self, expected: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let shown = self.tmux(&["capture-pane", "-p"]);
            if expected(&shown) {
                return shown;
            }
            assert!(began.elapsed() < TIMEOUT, "this is shown, for ever: {shown}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut tmux = other(self.socket.path(), "tmux");
        let _ = tmux.arg("-S").arg(self.socket.path().join("s")).arg("kill-server").output();
    }
}

#[test]
fn the_screen_of_top_answers_keys_and_leaves_the_terminal_as_it_was() {
    if !starts("tmux") {
        return skip("there is no tmux; install the package tmux");
    }
    let line = format!("echo before; '{GPUIO}' top --interval 250ms; echo ended $?; exec cat");
    let terminal = Terminal::start(&line);
    let shown = terminal.until(|shown| shown.contains("Page cache") && shown.contains("measured"));
    assert!(shown.contains("every 0.25 s") && shown.contains("Processes"), "{shown}");
    assert!(!shown.contains("before"), "it has a screen of its own: {shown}");
    assert!(shown.trim_end().lines().last().unwrap().starts_with("q quit"), "{shown}");
    assert_eq!(shown.lines().count(), 30, "{shown}");
    terminal.key("s");
    terminal.until(|shown| shown.contains('▼'));
    terminal.key("p");
    terminal.until(|shown| shown.lines().next().unwrap().ends_with("PAUSED"));
    terminal.key("p");
    terminal.key("+");
    terminal.until(|shown| shown.contains("every 0.5 s") && !shown.contains("PAUSED"));
    terminal.tmux(&["resize-window", "-x", "40", "-y", "10"]);
    let fits = |shown: &str| {
        let widest = shown.lines().map(|line| line.chars().count()).max();
        shown.lines().count() == 10 && widest <= Some(40) && shown.contains("\nq quit")
    };
    terminal.until(fits);
    terminal.key("q");
    let shown = terminal.until(|shown| shown.contains("ended"));
    assert!(shown.contains("before") && shown.contains("ended 0"), "{shown}");
    assert!(!shown.contains("q quit"), "the screen is gone: {shown}");
}

#[test]
fn top_prints_rows_on_a_terminal_that_has_no_screen() {
    if !starts("tmux") {
        return skip("there is no tmux; install the package tmux");
    }
    for set in ["TERM=dumb", "LC_ALL=C"] {
        let top = format!("{set} '{GPUIO}' top --interval 100ms --count 1");
        let line = format!("echo before; {top}; echo ended $?; exec cat");
        let terminal = Terminal::start(&line);
        terminal.until(|shown| shown.contains("ended 0"));
        // A screen of its own would be gone by now, with all that was on it.
        let shown = terminal.tmux(&["capture-pane", "-p", "-S", "-"]);
        assert!(shown.contains("before") && shown.contains("Page cache"), "{set}: {shown}");
    }
}

#[test]
fn top_ends_with_its_terminal() {
    if !starts("tmux") {
        return skip("there is no tmux; install the package tmux");
    }
    let dir = scratch();
    let file = dir.path().join("pid");
    let line = format!("echo $$ > '{}'; exec '{GPUIO}' top --interval 250ms", file.display());
    let terminal = Terminal::start(&line);
    terminal.until(|shown| shown.contains("measured"));
    let pid = std::fs::read_to_string(file).unwrap();
    drop(terminal);
    // Its parent has gone too, and who inherits it may leave its entry.
    let stat = format!("/proc/{}/stat", pid.trim());
    until("it goes on without a terminal", || {
        !std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "))
    });
}

/// How many samples Prometheus' own parser finds, which fails on the first fault.
fn parsed(python: &Path, text: &str) -> usize {
    const READ: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
print(sum(len(family.samples) for family in read(sys.stdin.read())))
";
    let mut command = plain(python);
    let command = command.args(["-c", READ]).stdin(Stdio::piped());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut child, began) = (child.spawn().unwrap(), Instant::now());
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    wait(child, began).exits(0).out.trim().parse().unwrap()
}

fn samples(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with('#')).count()
}

#[test]
fn prometheus_reads_what_top_serves_and_report_writes() {
    let Some(python) = python_with("prometheus_client.openmetrics.parser") else { return };
    let dir = scratch();
    let (_, response) = served(dir.path());
    let (head, page) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("openmetrics-text"), "{head}");
    assert!(samples(page) > 3, "{page}");
    assert_eq!(parsed(&python, page), samples(page), "{page}");

    bench(dir.path(), "--size 1m --runtime 200ms --rw randrw --bs 4k -q -o r.json").exits(0);
    let page = gpuio(dir.path(), "report r.json --format openmetrics -o -").exits(0).out;
    assert!(samples(&page) > 10, "{page}");
    assert_eq!(parsed(&python, &page), samples(&page), "{page}");
}

#[test]
fn fio_plot_draws_what_report_writes() {
    let Some(python) = python_with("fio_plot") else { return };
    let dir = scratch();
    let dir = dir.path();
    std::fs::create_dir(dir.join("r")).unwrap();
    for depth in [1, 4] {
        let line = "--size 4M --runtime 300ms --engine io_uring --rw randread --bs 64k -q";
        bench(dir, &format!("{line} --depth {depth} -o r/{depth}.json")).exits(0);
    }
    gpuio(dir, "report r --format fio-json -o fio/").exits(0);
    let plot = |kind: &str, rw: &str, depths: &str, file: &str| {
        let line = format!("{kind} -i fio/host-64K -r {rw} -d {depths} -n 1 -T t -o {file}");
        let mut plot = plain(&python);
        plot.args(["-c", "import sys; from fio_plot import main; sys.exit(main())"]);
        // It draws into a file, and keeps its fonts' list here.
        plot.env("MPLBACKEND", "Agg").env("MPLCONFIGDIR", dir.join("matplotlib"));
        finish(plot.current_dir(dir).args(words(&line)))
    };
    for (kind, depths, file) in [("-l", "1 4", "bars.png"), ("-H", "4", "histogram.png")] {
        plot(kind, "randread", depths, file).exits(0);
        let drawn = std::fs::read(dir.join(file)).unwrap();
        assert!(drawn.starts_with(b"\x89PNG") && drawn.len() > 10_000, "{} bytes", drawn.len());
    }
    // It would tell if it had found no run.
    let none = plot("-l", "randwrite", "1 4", "none.png");
    assert!(none.code != 0 && !dir.join("none.png").exists(), "{none:?}");
}
