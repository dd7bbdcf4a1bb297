//! A test of this program again, in a process of its own: drivers and libraries read their
//! environment once in a process, and some tests end theirs.
//!
//! The test is named by its function, or by a closure in it: one that was moved is found, and one
//! that is gone does not compile.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Far above what any child takes on a loaded machine: one that is still there hangs.
const HANG: Duration = Duration::from_secs(300);

/// The variable that tells a child what to do.
const CASE: &str = "GPUIO_TEST_CASE";

/// The variable that has a child's test.
const CHILD: &str = "GPUIO_TEST_CHILD";

/// In a child: the case that its parent gave it.
pub fn case() -> String {
    std::env::var(CASE).expect("run as a child")
}

/// The name of a test, or of the test that a closure is in, as the test harness has it: its path
/// without the crate.
pub fn name(test: impl FnOnce()) -> &'static str {
    let path = std::any::type_name_of_val(&test);
    path.split_once("::").unwrap().1.trim_end_matches("::{{closure}}")
}

/// Whether this process was started to run the test that the closure is in.
pub fn is_child(body: impl FnOnce()) -> bool {
    std::env::var(CHILD).is_ok_and(|child| child == name(body))
}

/// This program, which will run the test of that [`name`] alone, be it ignored or not.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--include-ignored", "--nocapture"]).env(CHILD, name);
    command
}

/// Runs a [`command`], which must end and must have run its test; its output.
pub fn run(command: &mut Command) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let [out, err] = ["out", "err"].map(|name| directory.path().join(name));
    // Into files: a process that outlives the child may hold a pipe open.
    let [stdout, stderr] = [&out, &err].map(|path| File::create(path).unwrap());
    // As `gpuio exec` says it, so that the library's lines get there.
    let facts = stderr.metadata().unwrap();
    command.env("GPUIO_CUFILE_STDERR", format!("{}:{}", facts.dev(), facts.ino()));
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let mut child = command.spawn().unwrap();
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
    let [stdout, stderr] = [out, err].map(|path| std::fs::read(path).unwrap());
    let said = [&stdout, &stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(said[0].contains("running 1 test\n"), "{command:?} runs no test:\n{}", said.join("\n"));
    let Some(status) = status else { panic!("{command:?} hangs:\n{}", said.join("\n")) };
    Output { status, stdout, stderr }
}

/// Runs that test with these variables; its output.
pub fn output(test: impl FnOnce(), environment: &[(&str, &str)]) -> Output {
    run(command(name(test)).envs(environment.iter().copied()))
}

/// Runs that test with these variables; it must succeed.
pub fn passes(test: impl FnOnce(), environment: &[(&str, &str)]) {
    let name = name(test);
    let output = run(command(name).envs(environment.iter().copied()));
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{name} {environment:?}: {}\n{out}\n{err}", output.status);
    for line in err.lines().filter(|line| line.starts_with("skipped")) {
        eprintln!("{name}: {line}");
    }
}

/// The same of a test that asks for its [`case`].
pub fn passes_case(test: impl Fn(), case: &str, environment: &[(&str, &str)]) {
    passes(test, &[&[(CASE, case)], environment].concat());
}

/// As [`passes`], of a test that needs the software GPU.
pub fn passes_on_software(test: impl Fn(), environment: &[(&str, &str)]) {
    if !crate::gpu::skipped(name(&test)) {
        passes(test, environment);
    }
}

/// Runs the rest of a test, `body`, in a process of its own that has these variables.
pub fn alone(environment: &[(&str, &str)], body: impl Fn()) {
    if is_child(&body) { body() } else { passes(body, environment) }
}

/// As [`alone`], of a test that needs the software GPU.
pub fn alone_on_software(environment: &[(&str, &str)], body: impl Fn()) {
    if is_child(&body) { body() } else { passes_on_software(body, environment) }
}
