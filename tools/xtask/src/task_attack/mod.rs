//! `cargo xtask attack`: tries to make gpuio lose or change data of others, and counts.
//!
//! Each attack is a file below and a row of [`ATTACKS`]. It puts files of a user where gpuio works,
//! races it or kills it, and then compares every byte of them. Lost bytes are counted, with files
//! that lost their last name; one lost byte fails the task. The seed decides what is tried in which
//! order; when the kernel does what is not ours to decide.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

mod kill;
mod links;
mod list;
mod model;
mod other_user;
mod output;
mod swap;
mod swap_names;
mod sweep;

#[derive(Debug, Default)]
struct Outcome {
    /// Runs of gpuio.
    tries: u64,
    /// Swaps or kills.
    acts: u64,
    /// Tries after which something was lost.
    failures: u64,
    /// Bytes of the user's files that are gone or changed.
    lost: u64,
    /// The faults, the first few times.
    reports: Vec<String>,
    /// The cases that could not be tried here.
    left_out: Vec<String>,
}

impl Outcome {
    /// Counts a try, and what it lost.
    fn count(&mut self, lost: u64, what: impl FnOnce() -> String) {
        self.tries += 1;
        if lost > 0 {
            self.failures += 1;
            self.lost += lost;
            self.report(format!("{}: {lost} bytes", what()));
        }
    }

    /// A failure that lost no bytes.
    fn fail(&mut self, what: String) {
        self.failures += 1;
        self.report(what);
    }

    fn report(&mut self, what: String) {
        const MOST: usize = 5;
        if self.reports.len() < MOST {
            self.reports.push(what);
        }
    }
}

type Attack = fn(&mut Lab) -> anyhow::Result<Outcome>;

/// Name, what it counts in addition to tries, and the function that does it.
const ATTACKS: &[(&str, &str, Attack)] = &[
    ("swap", "swaps", swap::run),
    ("other-user", "swaps", other_user::run),
    ("swap-names", "swaps", swap_names::run),
    ("output", "swaps", output::run),
    ("list", "swaps", list::run),
    ("kill", "kills", kill::run),
    ("links", "names", links::run),
    ("sweep", "kills", sweep::run),
    ("model", "comparisons", model::run),
];

pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let options = Options::of(arguments)?;
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |dir| root.join(dir));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).current_dir(root).args(["build", "-p", "gpuio"]).status();
    ensure!(built.context("cannot start cargo")?.success(), "gpuio does not build");
    println!("seed {}, at most {:?} for each attack", options.seed, options.time);
    let mut bad = Vec::new();
    for (name, acts, attack) in ATTACKS {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == name) {
            continue;
        }
        let mut lab = Lab::new(&target, name, &options)?;
        let outcome = attack(&mut lab).with_context(|| format!("attack {name}"));
        lab.close();
        let outcome = outcome?;
        let Outcome { tries, acts: count, failures, lost, .. } = outcome;
        println!("{name:<12}{tries} tries, {count} {acts}, {failures} failures, {lost} bytes lost");
        outcome.reports.iter().for_each(|line| println!("            {line}"));
        outcome.left_out.iter().for_each(|line| println!("            left out: {line}"));
        if failures > 0 || lost > 0 {
            bad.push(*name);
        }
    }
    ensure!(bad.is_empty(), "data was lost or something stayed behind: {}", bad.join(", "));
    Ok(())
}

struct Options {
    time: Duration,
    seed: u64,
    /// All where none is named.
    only: Vec<String>,
}

impl Options {
    fn of(arguments: &[String]) -> anyhow::Result<Options> {
        let mut options = Options { time: Duration::from_secs(60), seed: 1, only: Vec::new() };
        let mut words = arguments.iter();
        while let Some(flag) = words.next() {
            let value = words.next().with_context(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--time" => {
                    let seconds = value.strip_suffix('s').unwrap_or(value).parse();
                    options.time = Duration::from_secs(seconds.context("--time: seconds, as 60s")?);
                }
                "--seed" => options.seed = value.parse().context("--seed: a number")?,
                "--only" => {
                    let known = ATTACKS.iter().map(|row| row.0).collect::<Vec<_>>();
                    ensure!(known.contains(&value.as_str()), "attacks are {}", known.join(", "));
                    options.only.push(value.clone());
                }
                _ => bail!("{flag}: flags are --time, --seed, --only"),
            }
        }
        Ok(options)
    }
}

/// Where an attack works: a directory of its own, and its choices.
struct Lab {
    gpuio: PathBuf,
    dir: PathBuf,
    until: Instant,
    state: u64,
}

impl Lab {
    fn new(target: &Path, name: &str, options: &Options) -> anyhow::Result<Lab> {
        let dir = target.join("attack").join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(dir.join("tmp")).with_context(|| dir.display().to_string())?;
        let dir = dir.canonicalize()?;
        let gpuio = target.join("debug/gpuio").canonicalize().context("target/debug/gpuio")?;
        let state = options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Ok(Lab { gpuio, dir, until: Instant::now() + options.time, state })
    }

    fn close(&self) {
        // All of it was made by this task.
        let _ = fs::remove_dir_all(&self.dir);
    }

    fn has_time(&self) -> bool {
        Instant::now() < self.until
    }

    /// A number below `end`, by the seed (xorshift64*).
    fn below(&mut self, end: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end.max(1)
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        let at = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        of[at]
    }

    /// Bytes that no pattern of gpuio's has.
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let first = self.below(256);
        (0..length as u64).map(|at| u8::try_from((at * 7 + first) % 251).unwrap_or(0)).collect()
    }

    /// `gpuio WORDS` in a directory, with a state and a directory for temporary files of the lab's
    /// own.
    fn gpuio(&self, dir: &Path, line: &str) -> Command {
        let mut command = Command::new(&self.gpuio);
        command.current_dir(dir).args(line.split_whitespace()).stdin(Stdio::null());
        command.env("TMPDIR", self.dir.join("tmp")).env("XDG_STATE_HOME", self.dir.join("state"));
        command.env_remove("CUFILE_ENV_PATH_JSON");
        command
    }

    /// Runs it to its end, and returns its output.
    fn end(&self, dir: &Path, line: &str) -> anyhow::Result<(ExitStatus, String)> {
        let out = self.gpuio(dir, line).stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
        Ok((out.status, String::from_utf8_lossy(&out.stderr).into_owned()))
    }

    /// Starts it; its output is dropped.
    fn start(&self, dir: &Path, line: &str) -> anyhow::Result<Child> {
        let silent = self.gpuio(dir, line).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        silent.with_context(|| format!("gpuio {line}"))
    }

    /// Starts it and kills it after a while that the seed chooses; whether it was killed alive.
    fn kill(&mut self, dir: &Path, line: &str, most_ms: u64) -> anyhow::Result<bool> {
        let mut child = self.start(dir, line)?;
        std::thread::sleep(Duration::from_micros(self.below(most_ms * 1000)));
        let alive = child.try_wait()?.is_none();
        child.kill()?;
        child.wait()?;
        Ok(alive)
    }
}

/// A file of a user's.
struct Victim {
    path: PathBuf,
    bytes: Vec<u8>,
    file: File,
}

impl Victim {
    fn put(path: &Path, bytes: Vec<u8>) -> anyhow::Result<Victim> {
        fs::write(path, &bytes).with_context(|| path.display().to_string())?;
        Victim::there(path, bytes)
    }

    /// One that is there, with these bytes.
    fn there(path: &Path, bytes: Vec<u8>) -> anyhow::Result<Victim> {
        Ok(Victim { path: path.to_owned(), bytes, file: File::open(path)? })
    }

    /// Whether this is the file itself.
    fn is(&self, found: &fs::Metadata) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        self.file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
    }

    /// Bytes that are not as they were, wherever the file is now; all of them where it has no
    /// name any more.
    fn lost(&self) -> anyhow::Result<u64> {
        let found = self.file.metadata()?;
        if found.nlink() == 0 {
            return Ok(self.bytes.len() as u64);
        }
        let mut now = vec![0; usize::try_from(found.len())?];
        self.file.read_exact_at(&mut now, 0)?;
        let changed = now.iter().zip(&self.bytes).filter(|(a, b)| a != b).count() as u64;
        Ok(changed + now.len().abs_diff(self.bytes.len()) as u64)
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
