//! `cargo xtask fuzz`: every reader of foreign bytes under libFuzzer, guided by coverage.
//!
//! `tools/fuzz/` is one program; this builds it with the coverage passes of the compiler (which
//! stable has) and no sanitizer, and runs its targets one after the other.
//! Their corpus stays in `target/fuzz/corpus`, and inputs that break them in `target/fuzz/finds`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

/// Flags that make the compiler count edges and compare operands for libFuzzer (LLVM,
/// SanitizerCoverage).
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";
/// Longest input in bytes that is made up: longer ones are made of what these already reach.
const MOST_BYTES: u64 = 1 << 16;
/// An input that takes longer is a find, in seconds; and one that takes so many MiB.
const MOST_SECONDS: u64 = 5;
const MOST_MIB: u64 = 1024;

#[derive(Debug, PartialEq, Eq)]
struct FuzzOptions {
    /// For all targets together.
    time: Duration,
    only: Vec<String>,
    /// Nothing is run: the targets have to build, and their seeds have to be there.
    build: bool,
}

/// The task. `--time 60s`, `--only NAME` (more than once), `--build`.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let options = parse(arguments)?;
    let target = super::task_ci::target(root).join("fuzz");
    let program = build(root, &target)?;
    let made = target.join("made");
    let all = targets(&program, &made)?;
    let unknown = options.only.iter().find(|name| !all.iter().any(|(known, _)| known == *name));
    if let Some(name) = unknown {
        let known: Vec<&str> = all.iter().map(|(known, _)| known.as_str()).collect();
        bail!("--only {name}: targets are {}", known.join(", "));
    }
    let chosen: Vec<&(String, Vec<String>)> = all
        .iter()
        .filter(|(name, _)| options.only.is_empty() || options.only.contains(name))
        .collect();
    let each = options.time / u32::try_from(chosen.len()).unwrap_or(u32::MAX).max(1);
    let mut finds = 0;
    println!("{:<12} {:>12} {:>9} {:>14} {:>6}", "target", "executions", "per s", "edges", "finds");
    for (name, sources) in chosen {
        let seeds = seeds(root, &made, &target.join("seeds").join(name), sources)
            .with_context(|| format!("the seeds of {name}"))?;
        if options.build {
            println!("{name:<12} builds, and has {seeds} seeds");
            continue;
        }
        let one = one(&program, &target, name, each)?;
        finds += one.finds.len();
        println!("{}", line(name, &one));
        one.finds.iter().for_each(|find| println!("  {}", find.display()));
    }
    ensure!(finds == 0, "{finds} inputs broke a target: {}", again(&program));
    Ok(())
}

fn again(program: &Path) -> String {
    format!("GPUIO_FUZZ=TARGET {} FILE runs one again", program.display())
}

fn parse(arguments: &[String]) -> anyhow::Result<FuzzOptions> {
    let mut options = FuzzOptions { time: Duration::from_mins(1), only: Vec::new(), build: false };
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--build" => options.build = true,
            "--time" => options.time = time(words.next().context("--time needs a time")?)?,
            "--only" => options.only.push(
                words
                    .next()
                    .context(
                        "--only needs a \
                 target",
                    )?
                    .to_owned(),
            ),
            other => bail!("'{other}': give --time 60s, --only NAME or --build"),
        }
    }
    Ok(options)
}

/// `60s`, `10m`, `1h`, or seconds.
fn time(text: &str) -> anyhow::Result<Duration> {
    let (number, factor) = match text.char_indices().last() {
        Some((end, 's')) => (&text[..end], 1),
        Some((end, 'm')) => (&text[..end], 60),
        Some((end, 'h')) => (&text[..end], 3600),
        _ => (text, 1),
    };
    let seconds = number.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
    let seconds = seconds.filter(|seconds| *seconds > 0);
    let seconds = seconds.with_context(|| format!("--time {text}: give 60s, 10m or 1h"))?;
    Ok(Duration::from_secs(u64::from(seconds)))
}

fn build(root: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    let host = Command::new("rustc").args(["--print", "host-tuple"]).output()?;
    let host = String::from_utf8(host.stdout)?.trim().to_owned();
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "-p", "gpuio-fuzz", "--profile", "fuzz", "--target", &host]);
    // With a target named, build scripts and macros are built without the flags.
    command.current_dir(root).env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", target);
    ensure!(command.status()?.success(), "the targets do not build");
    Ok(target.join(host).join("fuzz").join("gpuio-fuzz"))
}

/// The targets with the paths of their seeds, as the program lists them; it makes its own seeds.
fn targets(program: &Path, made: &Path) -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let list =
        Command::new(program).env("GPUIO_FUZZ", "list").env("GPUIO_FUZZ_MADE", made).output();
    let list = list.with_context(|| program.display().to_string())?;
    ensure!(list.status.success(), "the program does not list its targets");
    let lines = String::from_utf8(list.stdout)?;
    let target = |line: &str| {
        let (name, sources) = line.split_once('\t')?;
        Some((name.to_owned(), sources.split(',').map(str::to_owned).collect()))
    };
    Ok(lines.lines().filter_map(target).collect())
}

/// Copies every file of these paths that is not too long into one folder; returns how many.
fn seeds(root: &Path, made: &Path, into: &Path, sources: &[String]) -> anyhow::Result<usize> {
    if into.exists() {
        std::fs::remove_dir_all(into)?;
    }
    std::fs::create_dir_all(into)?;
    let mut open: Vec<PathBuf> = sources
        .iter()
        .map(|path| path.strip_prefix("MADE/").map_or(root.join(path), |own| made.join(own)))
        .collect();
    let mut count = 0;
    while let Some(path) = open.pop() {
        let found = path.metadata().with_context(|| path.display().to_string())?;
        if found.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        } else if found.len() <= MOST_BYTES {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            std::fs::copy(&path, into.join(format!("{count}-{name}")))?;
            count += 1;
        }
    }
    ensure!(count > 0, "there is none in {}", sources.join(", "));
    Ok(count)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    executions: u64,
    per_second: u64,
    /// Edges reached by the corpus that was there, and in the end.
    edges: (u64, u64),
    finds: Vec<PathBuf>,
}

fn one(program: &Path, target: &Path, name: &str, time: Duration) -> anyhow::Result<Outcome> {
    let folder = |kind: &str| -> anyhow::Result<PathBuf> {
        let folder = target.join(kind).join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let (corpus, seeds, finds) = (folder("corpus")?, folder("seeds")?, folder("finds")?);
    let before = files(&finds)?;
    let ran = Command::new(program)
        .env("GPUIO_FUZZ", name)
        .args([&corpus, &seeds])
        .arg(format!("-max_total_time={}", time.as_secs().max(1)))
        .arg(format!("-max_len={MOST_BYTES}"))
        .arg(format!("-timeout={MOST_SECONDS}"))
        .arg(format!("-rss_limit_mb={MOST_MIB}"))
        .arg(format!("-artifact_prefix={}/", finds.display()))
        .arg("-print_final_stats=1")
        .output()?;
    let text = String::from_utf8_lossy(&ran.stderr).into_owned();
    let log = target.join(format!("{name}.log"));
    std::fs::write(&log, &text)?;
    let mut outcome = outcome(&text);
    outcome.finds = files(&finds)?.into_iter().filter(|find| !before.contains(find)).collect();
    if !ran.status.success() && outcome.finds.is_empty() {
        bail!("{name} ended with {} and saved no input: {}", ran.status, log.display());
    }
    Ok(outcome)
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

/// The figures in libFuzzer's output.
fn outcome(text: &str) -> Outcome {
    let stat = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().parse().ok()
    };
    let edges = |line: &str| {
        let after = line.split("cov: ").nth(1)?;
        after.split(' ').next()?.parse::<u64>().ok()
    };
    let first = text.lines().find(|line| line.contains("INITED")).and_then(edges);
    Outcome {
        executions: stat("stat::number_of_executed_units").unwrap_or(0),
        per_second: stat("stat::average_exec_per_sec").unwrap_or(0),
        edges: (first.unwrap_or(0), text.lines().filter_map(edges).next_back().unwrap_or(0)),
        finds: Vec::new(),
    }
}

fn line(name: &str, one: &Outcome) -> String {
    let (before, after) = one.edges;
    let new = format!("{after} (+{})", after.saturating_sub(before));
    let (executions, per_second, finds) = (one.executions, one.per_second, one.finds.len());
    format!("{name:<12} {executions:>12} {per_second:>9} {new:>14} {finds:>6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let options = parse(&words("--time 10m --only a --only b")).unwrap();
        assert_eq!(options.time, Duration::from_mins(10));
        assert_eq!(options.only, ["a", "b"]);
        assert!(parse(&words("--build")).unwrap().build);
        for wrong in ["--time", "--time 0", "--time 5d", "--only", "x"] {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn figures_of_libfuzzer() {
        let text = "INFO: Seed: 1\n#2\tINITED cov: 5 ft: 9 corp: 1/1b exec/s: 0 rss: 30Mb\n\
                    #9\tNEW    cov: 8 ft: 12 corp: 2/2b\nDone 512 runs in 2 second(s)\n\
                    stat::number_of_executed_units: 512\nstat::average_exec_per_sec:     256\n";
        let found = outcome(text);
        let expected = Outcome { executions: 512, per_second: 256, edges: (5, 8), finds: vec![] };
        assert_eq!(found, expected);
        assert_eq!(line("job-file", &found).split_whitespace().last(), Some("0"));
    }
}
