//! Opens pages in a real Chromium, without a window.
//!
//! Where none is installed tests say so and are skipped. `GPUIO_CHROMIUM` names one that is not in
//! the path.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A page takes seconds, on a busy machine some more.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A browser, or `None` where there is none.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("GPUIO_CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let all: Vec<PathBuf> =
        std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).collect();
    all.into_iter().find(|file| file.is_file())
}

/// Watches from the first moment on.
const WATCH: &str = "<head><script>
window.seen = [];
addEventListener('error', (event) => seen.push(`error: ${event.message} ${event.lineno}`), true);
addEventListener('unhandledrejection', (event) => seen.push(`rejected: ${event.reason}`));
document.addEventListener('securitypolicyviolation',
  (event) => seen.push(`refused: ${event.violatedDirective} ${event.blockedURI}`));
</script>";

/// Opens the page, runs `steps` (which fill `out`), and gives `out` with what was seen meanwhile.
pub fn open(browser: &Path, name: &str, html: &str, steps: &str) -> Value {
    open_at(browser, name, html, steps, 1300)
}

/// [`open`] in a window of this width; below 500 the browser takes 500.
pub fn open_at(browser: &Path, name: &str, html: &str, steps: &str, width: u32) -> Value {
    let dir = tempfile::Builder::new().prefix(name).tempdir().unwrap();
    let dir = dir.path();
    let end = format!(
        "<script>setTimeout(async () => {{ const out = {{}};
         try {{ {steps} }} catch (error) {{ seen.push(`step: ${{error}} ${{error.stack}}`); }}
         out.seen = seen;
         out.requests = performance.getEntriesByType('resource').map((entry) => entry.name);
         const made = document.createElement('pre');
         made.id = 'out';
         made.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(out))));
         document.body.append(made); }}, 1500);</script></body>\n</html>"
    );
    let html = html.replacen("<head>", WATCH, 1).replacen("</body>\n</html>", &end, 1);
    let file = dir.join("page.html");
    std::fs::write(&file, html).unwrap();
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--virtual-time-budget=15000", "--dump-dom"])
        .arg(format!("--window-size={width},1000"))
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .stderr(Stdio::null());
    let dom = finish(&mut command, &dir.join("dom.html"));
    let reported = dom.split("<pre id=\"out\">").nth(1).and_then(|rest| rest.split('<').next());
    let reported = reported.unwrap_or_else(|| panic!("{command:?} gave no answer"));
    serde_json::from_slice(&unbase64(reported)).unwrap()
}

/// The page on paper, as PDF.
pub fn print(browser: &Path, name: &str, html: &str) -> Vec<u8> {
    let dir = tempfile::Builder::new().prefix(name).tempdir().unwrap();
    let [page, pdf] = ["page.html", "page.pdf"].map(|name| dir.path().join(name));
    std::fs::write(&page, html).unwrap();
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--virtual-time-budget=20000", "--no-pdf-header-footer"])
        .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("file://{}", page.display()))
        .stderr(Stdio::null());
    finish(&mut command, &dir.path().join("out"));
    std::fs::read(&pdf).unwrap()
}

/// Runs the browser to its end, or kills it and fails when it hangs.
fn finish(command: &mut Command, into: &Path) -> String {
    let mut child = command.stdout(std::fs::File::create(into).unwrap()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    String::from_utf8_lossy(&std::fs::read(into).unwrap()).into_owned()
}

fn unbase64(text: &str) -> Vec<u8> {
    let mut bits = 0u32;
    let mut held = 0;
    let mut out = Vec::new();
    for letter in text.bytes() {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = (bits << 6) | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from(bits >> held & 0xff).unwrap());
        }
    }
    out
}

/// Runs `test` with a browser, or says that there is none.
pub fn with_browser(test: impl FnOnce(&Path)) {
    match browser() {
        Some(browser) => test(&browser),
        None => println!(
            "SKIPPED: no Chromium in the path; install the package chromium, or name one in \
             GPUIO_CHROMIUM"
        ),
    }
}

pub fn nothing_wrong(out: &Value) {
    assert_eq!(out["seen"], Value::Array(Vec::new()), "{out:#}");
    assert_eq!(out["requests"], Value::Array(Vec::new()), "{out:#}");
}
