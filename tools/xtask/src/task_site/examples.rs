//! Example pages: what the program makes of records of a machine with an H200, which the lab book
//! keeps.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

/// The records, packed: a sweep of paths and a single run.
const RECORDS: &str = "docs/lab-book/records/h200-2026-12-01.tar.xz";

/// Each example: its file, what it is, and the command that makes it.
const EXAMPLES: [(&str, &str, &str); 4] = [
    (
        "paths.html",
        "A sweep of paths: block sizes by path, 84 runs in three minutes",
        "report paths --topo none -o",
    ),
    (
        "run.html",
        "A single run: path `gather`, 64 KiB random reads of a virtual disk",
        "report run.json --topo none -o",
    ),
    (
        "compare-gds-gather.html",
        "NVIDIA's library against path `gather`, point by point, as a page",
        "compare paths --axis path=gds,gather --despite all --format html -o",
    ),
    (
        "compare-gds-gather.txt",
        "The same as text",
        "compare paths --axis path=gds,gather --despite all -o",
    ),
];

/// Makes the examples below `source`, with work in `scratch`, and returns the page that lists them.
pub(super) fn make(
    root: &Path,
    source: &Path,
    scratch: &Path,
    program: &dyn Fn() -> Command,
) -> anyhow::Result<String> {
    if scratch.exists() {
        std::fs::remove_dir_all(scratch)?;
    }
    std::fs::create_dir_all(scratch)?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(root.join(RECORDS)).arg("-C").arg(scratch);
    let status = unpack.status().context("cannot run tar, which unpacks the example's records")?;
    ensure!(status.success(), "tar could not unpack {RECORDS} (it needs xz): {status}");
    let folder = source.join("example");
    std::fs::create_dir_all(&folder)?;
    let mut page = "# Examples\n\nThis release made these pages of records of 2026-12-01 \
                    (`docs/lab-book/records`): a virtual machine with an H200 and 16 CPUs read \
                    its virtual disk, without the page cache; path `gds` is NVIDIA's library in \
                    compatibility mode.\n\n\
                    | Page | Command |\n| --- | --- |\n"
        .to_owned();
    for (file, about, words) in EXAMPLES {
        let mut command = program();
        let out = folder.join(file);
        let output = command.current_dir(scratch).args(words.split(' ')).arg(&out).output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "gpuio {words} {file}: {}: {complaint}", output.status);
        page.push_str(&format!("| [{about}](example/{file}) | `gpuio {words} {file}` |\n"));
    }
    page.push_str(
        "\n[`gpuio top vda GPU0`](example/top.txt) while such a sweep ran on such a machine; the \
         processes there are left out.\n",
    );
    Ok(page)
}
