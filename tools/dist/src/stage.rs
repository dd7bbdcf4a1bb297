//! The tree of an installation, below `/usr`.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::build::OBJECTS;
use crate::runner::Runner;
use crate::{Entry, Job, succeed};

/// Files of the repository, and where they go.
const COPIED: [(&str, &str); 11] = [
    ("LICENSE", "share/doc/gpuio/LICENSE"),
    ("README.md", "share/doc/gpuio/README.md"),
    ("ARCHITECTURE.md", "share/doc/gpuio/ARCHITECTURE.md"),
    ("BENCHMARKS.md", "share/doc/gpuio/BENCHMARKS.md"),
    ("CHANGELOG.md", "share/doc/gpuio/CHANGELOG.md"),
    ("CONTRIBUTING.md", "share/doc/gpuio/CONTRIBUTING.md"),
    ("crates/clib/include/gpuio.h", "include/gpuio.h"),
    ("crates/gpu/kernels/gpuio_device.cuh", "include/gpuio_device.cuh"),
    ("crates/dropin/include/cufile.h", "include/gpuio/cufile.h"),
    ("packaging/gpuio-exporter.service", "lib/systemd/system/gpuio-exporter.service"),
    ("packaging/grafana-dashboard.json", "share/gpuio/grafana-dashboard.json"),
];

/// Folders with the pages that README.md links to, their pictures and schemas, and the programs
/// that the pages name.
const PAGES: [&str; 7] = [
    "docs",
    "docs/example",
    "docs/lab-book",
    "docs/plots",
    "docs/schema",
    "examples/c",
    "examples/gdsio",
];

/// Makes the tree anew, and lists it by name.
pub(crate) fn run(job: &Job) -> anyhow::Result<Vec<Entry>> {
    let tree = job.tree();
    if tree.exists() {
        std::fs::remove_dir_all(&tree)?;
    }
    let program = job.built().join("gpuio");
    put(&tree, "bin/gpuio", &program)?;
    for (_, file, name) in OBJECTS {
        put(&tree, &format!("lib/gpuio/{name}"), &job.objects().join(file))?;
    }
    for (from, to) in COPIED {
        put(&tree, to, &job.root.join(from))?;
    }
    for folder in PAGES {
        for entry in std::fs::read_dir(job.root.join(folder))? {
            let path = entry?.path();
            let name = path.file_name().context("a page has a name")?.display().to_string();
            if path.is_file() {
                put(&tree, &format!("share/doc/gpuio/{folder}/{name}"), &path)?;
            }
        }
    }
    for (what, directory) in [
        ("man", "share/man/man1"),
        ("bash", "share/bash-completion/completions"),
        ("zsh", "share/zsh/site-functions"),
        ("fish", "share/fish/vendor_completions.d"),
    ] {
        let to = tree.join(directory);
        std::fs::create_dir_all(&to)?;
        let mut generate = match Runner::find(job) {
            Ok(runner) => runner.start(&program, &[]),
            // A build for this machine says the same.
            Err(_) => {
                let mut cargo = Command::new(crate::cargo());
                cargo.current_dir(&job.root).args(["run", "--quiet", "-p", "gpuio", "--"]);
                cargo.env("CARGO_TARGET_DIR", &job.target_dir);
                cargo
            }
        };
        succeed(generate.args(["generate", what]).arg(&to))?;
    }
    let mut entries = Vec::new();
    collect(&tree, "", &mut entries)?;
    for (link, to) in [("libcufile.so", "libcufile.so.0"), ("libgpuio.so", "libgpuio.so.0")] {
        entries.push(Entry {
            path: format!("lib/gpuio/{link}"),
            bytes: Vec::new(),
            mode: 0o777,
            link: Some(to.to_owned()),
        });
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

fn put(tree: &Path, to: &str, from: &Path) -> anyhow::Result<()> {
    let to = tree.join(to);
    std::fs::create_dir_all(to.parent().context("a file lies in a directory")?)?;
    std::fs::copy(from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn collect(directory: &Path, below: &str, entries: &mut Vec<Entry>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a name is not UTF-8")?;
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if entry.path().is_dir() {
            collect(&entry.path(), &path, entries)?;
        } else {
            let runs = path.starts_with("bin/") || path.contains(".so");
            let mode = if runs { 0o755 } else { 0o644 };
            entries.push(Entry { path, bytes: std::fs::read(entry.path())?, mode, link: None });
        }
    }
    Ok(())
}
