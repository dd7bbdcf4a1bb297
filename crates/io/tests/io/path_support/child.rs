//! This test program again, with an environment of its own: a driver reads it once per process.

use std::panic::Location;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Far above what any child takes on a loaded machine: a child that is still there hangs.
const HANG: Duration = Duration::from_secs(100);

/// The variable that tells a child what to do.
const CASE: &str = "GPUIO_TEST_CASE";

/// In a child: what it was told to do.
pub(crate) fn case() -> String {
    std::env::var(CASE).expect("run as a child")
}

/// Runs the ignored test `name` of the caller's file alone in a process of its own; it must
/// succeed, and end.
#[track_caller]
pub(crate) fn passes(name: &str, case: &str, environment: &[(&str, &str)]) {
    let module = Path::new(Location::caller().file()).file_stem().unwrap();
    let name = format!("{}::{name}", module.to_str().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| std::fs::File::create(directory.path().join(name)).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--ignored", "--nocapture"])
        .env(CASE, case)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(file("out"))
        .stderr(file("err"))
        .spawn()
        .unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if began.elapsed() > HANG {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let said = |name: &str| {
        let bytes = std::fs::read(directory.path().join(name)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (out, err) = (said("out"), said("err"));
    assert!(
        status.is_some_and(|status| status.success()) && out.contains("1 passed"),
        "{name} {case} {environment:?}: {} after {:.1} s\n{out}\n{err}",
        status.map_or("hangs".to_owned(), |status| status.to_string()),
        began.elapsed().as_secs_f64()
    );
    for line in err.lines().filter(|line| line.starts_with("skipped")) {
        eprintln!("{case}: {line}");
    }
}
