//! A page as PDF: an installed browser prints the HTML report, without a window.
//!
//! gpuio has no typesetting of its own. The page goes into a private directory below `$TMPDIR`, the
//! browser writes its PDF beside it, and nothing of both stays.

use std::ffi::OsStr;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use gpuio_guard::objects::environment;
use gpuio_guard::outfile::Private;

use crate::failure::Failure;

/// Browsers that print without a window (Chromium's `--print-to-pdf`), by the names of their
/// programs.
const BROWSERS: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "brave-browser",
];
/// Names a browser that is not in `PATH`.
const VARIABLE: &str = "GPUIO_CHROMIUM";
const PAGE: &str = "page.html";
/// The most that is read of a browser's standard error, in bytes: the reason is in the last of few
/// lines.
const MOST_WORDS: u64 = 1 << 20;
/// A page of 10,000 rows takes seconds, on a busy machine some more.
const TIMEOUT: Duration = Duration::from_mins(3);

/// The browser: the one that `GPUIO_CHROMIUM` names, or the first of [`BROWSERS`] in `PATH`.
///
/// # Errors
/// There is none (exit code 3).
pub(super) fn browser() -> Result<PathBuf, Failure> {
    if let Some(named) = environment::variable(VARIABLE).filter(|named| !named.is_empty()) {
        return Ok(PathBuf::from(named));
    }
    let all = environment::paths("PATH")
        .into_iter()
        .flat_map(|directory| BROWSERS.map(|name| directory.join(name)));
    all.into_iter().find(|file| file.is_file()).ok_or_else(|| {
        Failure::Unavailable(format!(
            "PDF is printed by a browser, and none is in PATH ({}).\nInstall one (Debian, Ubuntu: \
             apt-get install chromium), name one in {VARIABLE}, or write HTML and use the page's \
             button \"Print or PDF\" on another machine",
            BROWSERS.join(", ")
        ))
    })
}

/// The PDF of a page.
///
/// # Errors
/// The browser does not start or does not print, in its own words.
pub(super) fn print(browser: &Path, html: &str) -> Result<Vec<u8>, Failure> {
    let parent = environment::temporary();
    let failed = |error: std::io::Error| {
        Failure::Ran(format!("{}: the page could not be printed: {error}", parent.display()))
    };
    let private = Private::make(&parent, "gpuio-pdf").map_err(failed)?;
    let printed = print_in(&private, browser, html);
    // The browser's profile is a tree of its own; the directory is ours alone.
    let gone = std::fs::remove_dir_all(private.path());
    let pdf = printed.map_err(failed)??;
    gone.map_err(failed)?;
    Ok(pdf)
}

fn print_in(
    private: &Private,
    browser: &Path,
    html: &str,
) -> std::io::Result<Result<Vec<u8>, Failure>> {
    let directory = private.path();
    let pdf = directory.join("page.pdf");
    private.inside().create(OsStr::new(PAGE))?.write_all(html.as_bytes())?;
    let mut said = private.inside().create(OsStr::new("said.txt"))?;
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--no-pdf-header-footer", "--virtual-time-budget=20000"])
        .arg(option("--user-data-dir=", &directory.join("profile")))
        .arg(option("--print-to-pdf=", &pdf))
        .arg(option("file://", &directory.join(PAGE)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.try_clone()?);
    if rustix::process::geteuid().is_root() {
        // Chromium's sandbox refuses root. The page is our own and forbids all requests.
        command.arg("--no-sandbox");
    }
    let failed = |why: String| {
        Ok(Err(Failure::Ran(format!("{} did not print the page: {why}", browser.display()))))
    };
    let status = match run(&mut command) {
        Ok(status) => status,
        Err(error) => return failed(error.to_string()),
    };
    match (status, std::fs::read(&pdf)) {
        (Some(_), Ok(bytes)) if bytes.starts_with(b"%PDF-") => Ok(Ok(bytes)),
        (None, _) => failed(format!("it was stopped after {} s", TIMEOUT.as_secs())),
        (Some(status), _) => {
            let mut words = Vec::new();
            said.rewind()?;
            said.take(MOST_WORDS).read_to_end(&mut words)?;
            let words = String::from_utf8_lossy(&words);
            let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            failed(format!("{status}; its last words: {last}"))
        }
    }
}

fn option(start: &str, path: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(start);
    option.push(path);
    option
}

/// Runs it to its end; `None` if it was stopped.
fn run(command: &mut Command) -> std::io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > TIMEOUT {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
