//! The test programs: built once by cargo, then started some at a time.
//!
//! `cargo test` runs one program after another, and most programs end with tests that wait. Here a
//! program starts as soon as another has ended, the largest first. Its output is shown when it has
//! ended, so that no two mix. The output of tests that pass is left out, except why they did not do
//! all that they could.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// A test program that cargo has built.
struct Program {
    /// As cargo names it: the crate, then the program.
    name: String,
    package: String,
    /// The crate's directory: tests run there.
    directory: PathBuf,
    executable: PathBuf,
    bytes: u64,
}

/// How programs are started.
pub(super) struct How<'a> {
    pub(super) at_a_time: usize,
    /// Tests at a time in each.
    pub(super) threads: usize,
    /// The order of the tests in a program is drawn from this.
    pub(super) seed: Option<u64>,
    pub(super) envs: &'a [(&'a str, OsString)],
}

impl How<'_> {
    /// Tests at a time of the programs that run one after another in this slot. The first begins
    /// with the largest program, which still runs when all others have ended: it has more, and the
    /// second has fewer.
    fn threads_of(&self, slot: usize) -> usize {
        match slot {
            0 if self.at_a_time > 1 => self.threads + self.threads / 2,
            1 => self.threads - self.threads / 4,
            _ => self.threads,
        }
    }
}

/// All test programs, built.
pub(super) struct Programs {
    /// The largest first.
    programs: Vec<Program>,
    /// The loader's path with cargo's addition: the shared objects that it has built.
    libraries: OsString,
}

impl Programs {
    /// # Errors
    /// Something does not build.
    pub(super) fn build(root: &Path) -> anyhow::Result<Programs> {
        let debug = super::target(root).join("debug");
        let (mut programs, objects) = build(root)?;
        programs.sort_by_key(|program| std::cmp::Reverse(program.bytes));
        for object in objects {
            show(&object, &debug)?;
        }
        let own = [debug.join("deps"), debug];
        let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let given = std::env::split_paths(&given).filter(|path| !path.as_os_str().is_empty());
        let libraries = std::env::join_paths(own.into_iter().chain(given))?;
        Ok(Programs { programs, libraries })
    }

    /// Runs them. Each line that they print goes to `line`. Answers which failed.
    ///
    /// # Errors
    /// A program can't be started.
    pub(super) fn run(
        &self,
        how: &How<'_>,
        mut line: impl FnMut(&str),
    ) -> anyhow::Result<Vec<String>> {
        let waiting = Mutex::new(self.programs.iter());
        let next = || waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
        let mut failed = Vec::new();
        std::thread::scope(|scope| {
            let (ended, results) = mpsc::channel();
            for slot in 0..how.at_a_time {
                let (ended, next, threads) = (ended.clone(), &next, how.threads_of(slot));
                let mut program = next();
                scope.spawn(move || {
                    while let Some(one) = program {
                        let result = run_one(one, threads, how, &self.libraries);
                        if ended.send((one, result)).is_err() {
                            return;
                        }
                        program = next();
                    }
                });
            }
            drop(ended);
            for (program, result) in results {
                let Ended { output, passed, seconds } = result?;
                line(&format!("     Running {} ({seconds:.1} s)", program.name));
                for text in without_successes(&String::from_utf8_lossy(&output)) {
                    line(&text);
                }
                if !passed {
                    failed.push(program.name.clone());
                }
            }
            Ok(failed)
        })
    }
}

/// The examples in documentation, which cargo builds and runs itself.
///
/// # Errors
/// Cargo can't be started, or an example failed.
pub(super) fn examples(
    root: &Path,
    envs: &[(&str, OsString)],
    line: impl FnMut(&str),
) -> anyhow::Result<()> {
    let mut command = Command::new(super::cargo_path());
    command.current_dir(root).args(["test", "--workspace", "--doc", "--no-fail-fast"]);
    command.envs(envs.iter().map(|(name, value)| (name, value))).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    String::from_utf8_lossy(&output.stdout).lines().for_each(line);
    ensure!(output.status.success(), "an example in documentation failed");
    Ok(())
}

struct Ended {
    output: Vec<u8>,
    passed: bool,
    seconds: f64,
}

/// Runs one program. Both of its outputs go to one file, in the order in which they come.
fn run_one(
    program: &Program,
    threads: usize,
    how: &How<'_>,
    libraries: &OsString,
) -> anyhow::Result<Ended> {
    let begin = Instant::now();
    let mut log = unnamed()?;
    let mut command = Command::new(&program.executable);
    command.arg("--show-output").arg(format!("--test-threads={threads}"));
    if let Some(seed) = how.seed {
        // Its own option is not stable yet (Rust 1.97).
        command.args(["-Zunstable-options", &format!("--shuffle-seed={seed}")]);
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    command.current_dir(&program.directory).stdin(Stdio::null());
    command.stdout(log.try_clone()?).stderr(log.try_clone()?);
    command.env("CARGO_MANIFEST_DIR", &program.directory).env("CARGO_PKG_NAME", &program.package);
    command.env("LD_LIBRARY_PATH", libraries);
    command.envs(how.envs.iter().map(|(name, value)| (name, value)));
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    let mut output = Vec::new();
    log.rewind()?;
    log.read_to_end(&mut output)?;
    if !status.success() {
        writeln!(output, "{} ended with {status}", program.name)?;
    }
    Ok(Ended { output, passed: status.success(), seconds: begin.elapsed().as_secs_f64() })
}

/// Whether a test says with this line that it leaves something out.
pub(super) fn is_skipped(line: &str) -> bool {
    ["SKIPPED", "skipped"].iter().any(|word| line.starts_with(word))
}

/// The lines of a test program's output: of tests that passed the first that says what was left
/// out, and the test's name behind it.
fn without_successes(output: &str) -> Vec<String> {
    let mut lines = Vec::new();
    // Inside the list of what tests that passed have printed: the test, while it has said nothing.
    let mut inside = false;
    let mut test = None;
    for line in output.lines() {
        let header = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        match (line, header) {
            ("successes:", _) => inside = true,
            ("failures:", _) => inside = false,
            (_, Some(name)) if inside => test = Some(name),
            _ if line.starts_with("test result:") => inside = false,
            _ => {}
        }
        if !inside {
            lines.push(line.to_owned());
        } else if is_skipped(line)
            && let Some(name) = test.take()
        {
            lines.push(format!("{line} ({name})"));
        }
    }
    lines
}

/// A file in memory, of which the position is shared by its copies.
fn unnamed() -> anyhow::Result<std::fs::File> {
    let file = rustix::fs::memfd_create("tests", rustix::fs::MemfdFlags::CLOEXEC);
    Ok(file.context("memfd_create")?.into())
}

/// Builds, and answers which programs and shared objects there are.
fn build(root: &Path) -> anyhow::Result<(Vec<Program>, Vec<PathBuf>)> {
    let mut command = Command::new(super::cargo_path());
    command.current_dir(root).args(["test", "--workspace", "--no-run"]);
    command.args(["--message-format", "json-render-diagnostics"]).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let output = child.stdout.take().context("the child's standard output is missing")?;
    let (mut programs, mut objects) = (Vec::new(), Vec::new());
    for line in BufReader::new(output).lines() {
        let message: Value = serde_json::from_str(&line?).context("a message of cargo")?;
        programs.extend(program(&message)?);
        objects.extend(shared_objects(&message));
    }
    let status = child.wait().context("cannot wait for cargo")?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok((programs, objects))
}

/// The shared objects that a message of cargo is about.
fn shared_objects(message: &Value) -> Vec<PathBuf> {
    let kinds = message["target"]["crate_types"].as_array();
    if !kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib")) {
        return Vec::new();
    }
    let files = message["filenames"].as_array().into_iter().flatten();
    let files = files.filter_map(|file| file.as_str()).map(PathBuf::from);
    files.filter(|file| file.extension().is_some_and(|end| end == "so")).collect()
}

/// Puts a shared object beside the program, which prefers those in its directory to those of the
/// test build: none of an older build may be tested instead.
fn show(object: &Path, beside: &Path) -> anyhow::Result<()> {
    let to = beside.join(object.file_name().context("a file without a name")?);
    if to == *object {
        return Ok(());
    }
    match std::fs::remove_file(&to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", to.display()));
        }
        _ => {}
    }
    let linked = std::fs::hard_link(object, &to).or_else(|_| std::fs::copy(object, &to).map(drop));
    linked.with_context(|| format!("cannot put {} at {}", object.display(), to.display()))
}

/// The test program that a message of cargo is about, if it is about one.
fn program(message: &Value) -> anyhow::Result<Option<Program>> {
    let is_test = message["profile"]["test"] == true;
    let (Some(executable), true) = (message["executable"].as_str(), is_test) else {
        return Ok(None);
    };
    let manifest = message["manifest_path"].as_str().context("no manifest_path")?;
    let directory = Path::new(manifest).parent().context("a manifest in no directory")?;
    let folder = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let target = message["target"]["name"].as_str().unwrap_or_default();
    // `path+file:///place/crates/cli#gpuio@0.1.0`, or without the name where it is the folder's.
    let id = message["package_id"].as_str().unwrap_or_default();
    let after = id.rsplit_once('#').map_or("", |(_, after)| after);
    let package = after.split_once('@').map_or(folder.as_str(), |(name, _)| name);
    Ok(Some(Program {
        name: format!("{package} {target}"),
        package: package.to_owned(),
        directory: directory.to_owned(),
        executable: executable.into(),
        bytes: std::fs::metadata(executable)?.len(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_test_programs_are_programs() {
        let own = std::env::current_exe().unwrap();
        let message = |test: bool, id: &str| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": id,
                "manifest_path": "/place/crates/cli/Cargo.toml",
                "target": { "name": "cli", "kind": ["test"] },
                "profile": { "test": test },
                "executable": own,
            })
        };
        let found = program(&message(true, "path+file:///place/crates/cli#gpuio@0.1.0")).unwrap();
        let found = found.unwrap();
        assert_eq!((found.name.as_str(), found.package.as_str()), ("gpuio cli", "gpuio"));
        assert_eq!(found.directory, Path::new("/place/crates/cli"));
        let same = program(&message(true, "path+file:///place/crates/cli#0.1.0")).unwrap().unwrap();
        assert_eq!(same.package, "cli");
        assert!(program(&message(false, "x")).unwrap().is_none(), "an ordinary program");
        let end = serde_json::json!({ "reason": "build-finished", "success": true });
        assert!(program(&end).unwrap().is_none());
        assert!(shared_objects(&end).is_empty());
    }

    #[test]
    fn shared_objects_stand_beside_the_program() {
        let message = serde_json::json!({
            "reason": "compiler-artifact",
            "target": { "crate_types": ["cdylib", "rlib"] },
            "filenames": ["/t/debug/deps/libx.so", "/t/debug/deps/libx-1.rlib"],
        });
        assert_eq!(shared_objects(&message), [Path::new("/t/debug/deps/libx.so")]);
        let place = std::env::temp_dir().join(format!("gpuio-objects-{}", std::process::id()));
        let deps = place.join("deps");
        std::fs::create_dir_all(&deps).unwrap();
        std::fs::write(deps.join("libx.so"), "new").unwrap();
        std::fs::write(place.join("libx.so"), "old").unwrap();
        for _ in 0..2 {
            show(&deps.join("libx.so"), &place).unwrap();
            assert_eq!(std::fs::read(place.join("libx.so")).unwrap(), b"new");
        }
        show(&place.join("libx.so"), &place).unwrap();
        assert_eq!(std::fs::read(place.join("libx.so")).unwrap(), b"new");
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn what_tests_leave_out_is_shown_once_a_test() {
        let output = "running 3 tests\ntest a ... ok\n\nsuccesses:\n\n---- a stdout ----\n\
                      much\nSKIPPED: no disk\nskipped: no GPU\n\n---- b stdout ----\nskipped: x\n\n\
                      \n\
                      successes:\n    a\n    b\n\nfailures:\n\n---- c stdout ----\nit is wrong\n\n\
                      failures:\n    c\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored";
        let lines = without_successes(output);
        let wanted = "running 3 tests\ntest a ... ok\n\nSKIPPED: no disk (a)\nskipped: x (b)\n\
                      failures:\n\n---- c stdout ----\nit is wrong\n\n\
                      failures:\n    c\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored";
        assert_eq!(lines.join("\n"), wanted);
    }

    #[test]
    fn outputs_keep_their_order_and_a_failure_is_named() {
        let program = |script: &str| {
            let place = std::env::temp_dir().join(format!("gpuio-program-{}", std::process::id()));
            std::fs::create_dir_all(&place).unwrap();
            let executable = place.join(script.len().to_string());
            // Written by a process that is over: a file that any thread has open can't be started.
            let mut shell = Command::new("sh");
            shell.args([
                "-c",
                "printf '#!/bin/sh\\n%s\\n' \"$0\" >\"$1\" && chmod 755 \"$1\"",
                script,
            ]);
            assert!(shell.arg(&executable).status().unwrap().success());
            let (name, package) = ("some program".to_owned(), "some".to_owned());
            Program { name, package, directory: place, executable, bytes: 0 }
        };
        let path = OsString::from("/none");
        let of_slots = |at_a_time: usize| {
            let how = How { at_a_time, threads: 4, seed: None, envs: &[] };
            (0..at_a_time).map(|slot| how.threads_of(slot)).collect::<Vec<_>>()
        };
        assert_eq!([of_slots(1), of_slots(2), of_slots(3)].concat(), [4, 6, 3, 6, 3, 4]);
        let how = How { at_a_time: 1, threads: 1, seed: Some(7), envs: &[] };
        let say = program("echo one; echo $3 >&2; echo $LD_LIBRARY_PATH");
        let ended = run_one(&say, 1, &how, &path);
        let ended = ended.unwrap();
        assert!(ended.passed);
        assert_eq!(ended.output, b"one\n-Zunstable-options\n/none\n");
        let killed = program("echo here; kill -9 $$");
        let ended = run_one(&killed, 1, &how, &path).unwrap();
        assert!(!ended.passed);
        let said = String::from_utf8(ended.output).unwrap();
        assert!(said.starts_with("here\nsome program ended with signal: 9"), "{said}");
        std::fs::remove_dir_all(killed.directory).unwrap();
    }
}
