//! Runs the program in a directory of the test's own.

pub(crate) use gpuio_testkit::skip;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// No run here takes seconds on an idle machine; one that takes this long hangs on any.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// A directory of the test's own, which goes with the test, and beside it one with all that the
/// program keeps elsewhere: pages, journals, caches, settings, temporary files. No other test and
/// nobody's own run sees them, and what a run leaves in the directory can be counted.
pub(crate) struct Scratch {
    _whole: TempDir,
    dir: PathBuf,
}

impl Scratch {
    fn new_in(base: &Path) -> Scratch {
        let whole = TempDir::new_in(base).unwrap();
        // Tests run the program as another user too.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(whole.path(), open).unwrap();
        let dir = whole.path().join("work");
        std::fs::create_dir(&dir).unwrap();
        for (_, place) in PLACES.iter().filter(|(_, place)| *place != "state") {
            std::fs::create_dir_all(whole.path().join(BESIDE).join(place)).unwrap();
        }
        Scratch { _whole: whole, dir }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }
}

/// Where the program keeps what is not in its directory: the variable and the place of a test.
const PLACES: [(&str, &str); 7] = [
    ("GPUIO_PAGES", "pages"),
    ("HOME", "home"),
    ("TMPDIR", "tmp"),
    ("XDG_CACHE_HOME", "cache"),
    ("XDG_CONFIG_HOME", "config"),
    ("XDG_RUNTIME_DIR", "run"),
    ("XDG_STATE_HOME", "state"),
];
/// How variables begin that the program reads.
const SETTINGS: [&str; 8] =
    ["GPUIO_", "CUFILE_", "XDG_", "CLICOLOR", "NO_COLOR", "COLUMNS", "LC_", "LANG"];
/// The directory of these places, beside that of the test.
const BESIDE: &str = "beside";

/// A directory on a real file system.
pub(crate) fn scratch() -> Scratch {
    Scratch::new_in(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// One on a file system in memory, where this machine has one.
pub(crate) fn scratch_in_memory() -> Scratch {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { Scratch::new_in(shm) } else { scratch() }
}

/// One with a short path, in the system's own directory: that of a socket has 108 bytes at most
/// (unix(7)).
pub(crate) fn scratch_short() -> Scratch {
    Scratch::new_in(&std::env::temp_dir())
}

/// The program under test. To start it, take [`command`] or [`other`].
pub(crate) const GPUIO: &str = env!("CARGO_BIN_EXE_gpuio");

/// The program in `dir`.
pub(crate) fn command(dir: &Path) -> Command {
    let mut command = other(dir, GPUIO);
    command.current_dir(dir);
    command
}

/// Another program, which may start gpuio or load its libraries: with the places of the test that
/// has `dir`, and without what gpuio could mistake for a setting.
pub(crate) fn other(dir: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut command = plain(program);
    for (variable, place) in PLACES {
        command.env(variable, beside(dir).join(place));
    }
    command
}

/// A program that has nothing to do with gpuio. One that starts it all the same finds no place for
/// anything.
pub(crate) fn plain(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let begins = |start: &&str| name.as_encoded_bytes().starts_with(start.as_bytes());
        if SETTINGS.iter().any(begins) {
            command.env_remove(name);
        }
    }
    command.env("GPUIO_PAGES", "/nowhere").env("COLUMNS", "120");
    gpuio_testkit::programs::hears_hang_ups(&mut command);
    command
}

/// Gives a command that is made by other means the variables of one by [`command`].
pub(crate) fn with_variables_of(command: &mut Command, other: &Command) {
    for (name, value) in other.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

fn beside(dir: &Path) -> PathBuf {
    let above = dir.ancestors().filter_map(Path::parent).map(|above| above.join(BESIDE));
    let found = above.into_iter().find(|place| place.join("pages").is_dir());
    found.unwrap_or_else(|| panic!("{} is in no directory of a test", dir.display()))
}

/// Where runs in `dir` keep their journals.
pub(crate) fn state(dir: &Path) -> PathBuf {
    beside(dir).join("state")
}

/// The page of a process that was started in `dir`.
pub(crate) fn page_of(dir: &Path, pid: u32) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    beside(dir).join(format!("pages/gpuio-{user}/{pid}"))
}

/// The output of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

impl Ran {
    /// Checks the exit code, and shows the whole run where it is another.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// The record on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Checks that standard error names each of these.
    #[track_caller]
    pub(crate) fn prints(self, words: &[&str]) -> Ran {
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in {self:#?}");
        }
        self
    }
}

/// Copies a program that will run. Another process does it: one that a thread of this process
/// starts meanwhile would hold it open for writing, and it could not run (execve(2), ETXTBSY).
pub(crate) fn copy_program(from: &Path, to: &Path) {
    assert!(plain("cp").arg(from).arg(to).status().unwrap().success());
}

/// Words of a command line; a word can't hold a blank.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Runs a command to its end, or kills it and fails when it hangs.
#[track_caller]
pub(crate) fn finish(command: &mut Command) -> Ran {
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    wait(child.spawn().unwrap(), began)
}

/// Waits for a child whose outputs are piped.
#[track_caller]
pub(crate) fn wait(mut child: Child, began: Instant) -> Ran {
    let out = reader(child.stdout.take().unwrap());
    let err = reader(child.stderr.take().unwrap());
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("hangs: {} {}", out.join().unwrap(), err.join().unwrap());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = began.elapsed();
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    Ran { code: exit_code(status), out, err, took }
}

/// The code, or the number of the signal that ended it, negative.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().or(status.signal().map(|signal| -signal)).unwrap()
}

fn reader(mut from: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// `gpuio LINE` in `dir`.
#[track_caller]
pub(crate) fn gpuio(dir: &Path, line: &str) -> Ran {
    finish(command(dir).args(words(line)))
}

/// `gpuio bench LINE` in `dir`.
#[track_caller]
pub(crate) fn bench(dir: &Path, line: &str) -> Ran {
    finish(command(dir).arg("bench").args(words(line)))
}

/// The same with variables set.
#[track_caller]
pub(crate) fn bench_with(dir: &Path, set: &[(&str, &str)], line: &str) -> Ran {
    finish(command(dir).envs(set.iter().copied()).arg("bench").args(words(line)))
}

/// A file with this text, for a job file.
pub(crate) fn file(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Everything in a directory, names relative to it, sorted.
pub(crate) fn tree(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            all.push(path.strip_prefix(dir).unwrap().display().to_string());
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    all.sort();
    all
}

/// Whether this process may do what only root may.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Thousands of threads keep the others waiting for a processor for many seconds: not beside tests
/// of answers that must come within some.
static MANY_THREADS: RwLock<()> = RwLock::new(());

/// No test with thousands of threads runs meanwhile.
pub(crate) fn calm() -> RwLockReadGuard<'static, ()> {
    MANY_THREADS.read().unwrap_or_else(PoisonError::into_inner)
}

/// No test that needs an answer within seconds runs meanwhile.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    MANY_THREADS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for what comes in the end; `missing` says that it did not.
#[track_caller]
pub(crate) fn until(missing: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    loop {
        let asked = Instant::now();
        if done() {
            return;
        }
        assert!(began.elapsed() < TIMEOUT, "{missing}");
        // Most questions start a program or read all of /proc, which others are to get on beside.
        let pause =
            (2 * asked.elapsed()).clamp(Duration::from_millis(5), Duration::from_millis(100));
        std::thread::sleep(pause);
    }
}

/// Whether the process has counted an I/O, by its live page: its load runs then.
pub(crate) fn counts(dir: &Path, pid: u32) -> bool {
    let ran = gpuio(dir, &format!("stats {pid} --json"));
    ran.code == 0 && ran.json()["read"]["ios"].as_u64() > Some(0)
}

/// A program that serves metrics, until it is dropped.
pub(crate) struct Serving {
    child: Child,
    /// Where it says that it listens.
    pub(crate) at: String,
}

impl Serving {
    pub(crate) fn start(dir: &Path, line: &str) -> Serving {
        let mut command = command(dir);
        let command = command.args(words(line)).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line =
            lines.find_map(|line| line.unwrap().strip_prefix("serving http://").map(str::to_owned));
        let at = line.unwrap().split('/').next().unwrap().to_owned();
        // Further output must not end it.
        std::thread::spawn(move || lines.for_each(drop));
        Serving { child, at }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn page(&self) -> String {
        self.request("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    }

    pub(crate) fn request(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Where `gpuio top --serve 0` says that it listens, and what it answers there to one request.
pub(crate) fn served(dir: &Path) -> (String, String) {
    let serving = Serving::start(dir, "top --serve 0");
    (serving.at.clone(), serving.page())
}

/// The first row of a table in CSV (RFC 4180), by its columns.
pub(crate) fn csv_row(csv: &str) -> BTreeMap<String, String> {
    let mut lines = csv.lines().filter(|line| !line.starts_with('#'));
    let mut cells = || {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        for letter in lines.next().unwrap().chars() {
            match letter {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                _ => cells.last_mut().unwrap().push(letter),
            }
        }
        cells
    };
    let (heads, row) = (cells(), cells());
    assert_eq!(heads.len(), row.len(), "{csv}");
    heads.into_iter().zip(row).collect()
}
