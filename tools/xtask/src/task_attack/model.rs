//! Processes that read and write through `libcufile.so.0` while others change the files: the test
//! `model` of the crate `dropin`, on several file systems, for all of the time.
//!
//! As root each file system is an image of its own, mounted where no other process sees it. File
//! systems that a machine does not have are left out by name. The output of a run that failed stays
//! beside this attack's directory, with the core of a process that was ended by a signal.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;

use super::{Lab, Outcome, is_root};

const TEST: &str = "model::files_that_other_processes_change";
/// Name, and what makes one of the image `$1` and mounts it at `$2`.
const FILE_SYSTEMS: [(&str, &str); 4] = [
    ("ext4", "mkfs.ext4 -q -F \"$1\" && mount -o loop \"$1\" \"$2\""),
    ("xfs", "mkfs.xfs -q -f \"$1\" && mount -o loop \"$1\" \"$2\""),
    ("btrfs", "mkfs.btrfs -q -f \"$1\" && mount -o loop \"$1\" \"$2\""),
    ("tmpfs", "mount -t tmpfs -o size=400m tmpfs \"$2\""),
];
/// The script's exit code where the file system can't be had.
const MISSING: i32 = 77;
const IMAGE_BYTES: u64 = 400 << 20;

pub(super) fn run(lab: &mut Lab) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    let program = program(lab)?;
    let places: Vec<_> = if is_root() {
        FILE_SYSTEMS.to_vec()
    } else {
        outcome.left_out.push("ext4, xfs, btrfs, tmpfs of its own: this is not root".to_owned());
        vec![("here", ":")]
    };
    let kept = lab.dir.with_extension("kept");
    std::fs::create_dir_all(&kept)?;
    for (number, (name, mounts)) in places.iter().enumerate() {
        let left = lab.until.saturating_duration_since(Instant::now());
        let seconds = left.as_secs() / u64::try_from(places.len() - number)?;
        one(lab, &mut outcome, (&program, &kept), (name, mounts), seconds.max(1))?;
    }
    if outcome.failures == 0 {
        std::fs::remove_dir_all(&kept)?;
    }
    Ok(outcome)
}

/// The test program, built with the libraries that it loads.
fn program(lab: &Lab) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["test", "--no-run", "-p", "gpuio-dropin", "--test", "client"];
    let built = Command::new(cargo)
        .args(words)
        .arg("--message-format=json-render-diagnostics")
        .arg("--target-dir")
        .arg(lab.gpuio.parent().and_then(Path::parent).context("the directory of builds")?)
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8(built.stdout)?;
    let mut made = text.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        (line["target"]["name"] == "client")
            .then(|| line["executable"].as_str().map(PathBuf::from))?
    });
    made.next_back().context("the test program `client` does not build")
}

fn one(
    lab: &mut Lab,
    outcome: &mut Outcome,
    (program, kept): (&Path, &Path),
    (name, mounts): (&str, &str),
    seconds: u64,
) -> anyhow::Result<()> {
    let (image, place) = (lab.dir.join(format!("{name}.image")), lab.dir.join(name));
    std::fs::create_dir_all(&place)?;
    let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(&image)?;
    file.set_len(IMAGE_BYTES)?;
    // Mounts go with the mount table, which ends with the last of these processes.
    let script =
        format!("{{ {mounts}; }} || exit {MISSING}; shift 2; ulimit -c unlimited; exec \"$@\"");
    let shell = ["sh", "-c", &script, "sh"];
    let own_mounts = ["unshare", "-m", "--propagation", "private"];
    let prefix: Vec<&str> =
        if is_root() { [&own_mounts[..], &shell[..]].concat() } else { shell.to_vec() };
    let mut command = Command::new(prefix[0]);
    command.args(&prefix[1..]).arg(&image).arg(&place).arg(program);
    command.args([TEST, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("GPUIO_MODEL_DIR", &place).env("GPUIO_MODEL_SECONDS", seconds.to_string());
    command.env("GPUIO_MODEL_SEED", lab.below(1 << 30).to_string());
    command.env_remove("CUFILE_ENV_PATH_JSON");
    let ended = command.current_dir(kept).stdin(Stdio::null()).output()?;
    std::fs::remove_file(&image)?;
    let said = String::from_utf8_lossy(&ended.stdout);
    let errors = String::from_utf8_lossy(&ended.stderr);
    if ended.status.code() == Some(MISSING) {
        outcome.left_out.push(format!("{name}: {}", errors.trim().replace('\n', "; ")));
        return Ok(());
    }
    let counts = said.lines().find_map(|line| line.split("model: ").nth(1));
    let number = |at: usize| -> u64 {
        let word = counts.and_then(|line| line.split(", ").nth(at)?.split(' ').next());
        word.and_then(|word| word.parse().ok()).unwrap_or(0)
    };
    println!("            {name}, {seconds} s: {}", counts.unwrap_or("no counts"));
    outcome.tries += number(0);
    outcome.acts += number(1);
    if !ended.status.success() || counts.is_none() {
        let log = kept.join(format!("{name}.log"));
        write_new(&log, format!("{}\n{said}\n{errors}", ended.status).as_bytes())?;
        let signal = ended.status.signal().map(|number| format!(" (signal {number})"));
        let signal = signal.unwrap_or_default();
        outcome.fail(format!("{name}: {}{signal}; see {}", ended.status, log.display()));
    }
    Ok(())
}

/// A file that is not there yet.
fn write_new(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes).with_context(|| path.display().to_string())
}
