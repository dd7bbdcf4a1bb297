//! Every reader of foreign bytes under libFuzzer, in one program: `GPUIO_FUZZ` says which, and
//! `list` prints them with the places of their seeds. `cargo xtask fuzz` builds and runs it.
//!
//! A target asserts more than that nothing panics: errors lie inside the input, what is printed
//! reads back as the same, and no text that is shown holds what a terminal would obey. Time and
//! memory of one input are bounded by libFuzzer's flags.
//!
//! Built without `--cfg fuzzing`, it runs the target over the files that it is given, once each.
#![cfg_attr(fuzzing, no_main)]
#![allow(clippy::print_stdout, reason = "a terminal tool, not shipped")]

mod machine;
mod plan;
mod results;
mod texts;

use std::path::Path;
/// A reader, and folders or files of the repository whose files are its seeds. Below `MADE` are
/// those that this program makes itself, in the directory that `GPUIO_FUZZ_MADE` names.
struct Target {
    name: &'static str,
    seeds: &'static [&'static str],
    run: fn(&[u8]),
}

const CAPTURES: &str = "crates/capture/tests/fixtures";
const HOST: &str = "crates/host/tests/fixtures";
const SYSTEMS: &str = "crates/machine/tests/machine/flow/fixtures/seeds";
const POSTED: &str = "crates/capture/tests/posted";
const KINDS: &str = "crates/capture/tests/kinds";
const PACKED: &str = "crates/capture/tests/packed";
const SPECS: &str = "crates/job/tests/fixtures";
const FOREIGN: &str = "crates/report/tests/report/fixtures/foreign";
const POSTS: &str = "crates/report/tests/report/posts";
const RECORDS: &str = "crates/report/tests/report/compare/fixtures";
const FLAGS: &str = "tools/fuzz/seeds/flags";

const TARGETS: &[Target] = &[
    Target { name: "job-file", seeds: &[SPECS], run: texts::job_file },
    Target { name: "job-file-print", seeds: &[SPECS], run: plan::printed },
    Target { name: "data-set", seeds: &["crates/dataset/tests/fixtures/lists"], run: plan::list },
    Target { name: "gdsio-flags", seeds: &[SPECS, FLAGS], run: texts::gdsio_flags },
    Target { name: "quantity", seeds: &["tools/fuzz/seeds/quantities"], run: texts::quantity },
    Target { name: "capture", seeds: &[CAPTURES, POSTED, KINDS], run: machine::capture },
    Target { name: "pasted", seeds: &[POSTED, "tools/fuzz/seeds/pasted"], run: machine::pasted },
    Target { name: "captures", seeds: &[CAPTURES], run: machine::captures },
    Target { name: "machines", seeds: &[POSTED, KINDS], run: machine::machines },
    Target { name: "bundle", seeds: &["MADE/tar", KINDS, PACKED], run: machine::bundle },
    Target { name: "tar", seeds: &["MADE/tar"], run: machine::tar },
    Target { name: "tree", seeds: &[HOST, "crates/testkit/machines"], run: machine::tree },
    Target { name: "cufile-json", seeds: &["tools/fuzz/seeds/cufile"], run: texts::cufile_json },
    Target { name: "record", seeds: &[RECORDS], run: results::record },
    Target { name: "sweep", seeds: &["tools/fuzz/seeds/sweep"], run: results::sweep },
    Target { name: "foreign", seeds: &[FOREIGN], run: results::foreign },
    Target { name: "post", seeds: &[POSTS], run: results::post },
    Target { name: "page", seeds: &["MADE/page"], run: results::page },
    Target { name: "system", seeds: &[SYSTEMS], run: texts::system },
    Target { name: "figures", seeds: &["crates/machine/src/flow/drives.ini"], run: texts::figures },
    Target { name: "tensors", seeds: &["tools/fuzz/seeds/tensors"], run: texts::tensors },
    Target { name: "trace", seeds: &["tools/fuzz/seeds/trace"], run: results::trace },
    Target { name: "server", seeds: &["tools/fuzz/seeds/server"], run: texts::server },
];

#[cfg(fuzzing)]
static CHOSEN: std::sync::OnceLock<&Target> = std::sync::OnceLock::new();

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: {
        let _ = CHOSEN.set(chosen());
    },
    |data: &[u8]| {
        if let Some(target) = CHOSEN.get() {
            (target.run)(data);
        }
    }
);

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    let target = chosen();
    for file in std::env::args_os().skip(1) {
        (target.run)(&std::fs::read(file)?);
    }
    Ok(())
}

fn chosen() -> &'static Target {
    let name = std::env::var("GPUIO_FUZZ").unwrap_or_default();
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        if let Some(made) = std::env::var_os("GPUIO_FUZZ_MADE") {
            make(Path::new(&made)).unwrap_or_else(|error| panic!("seeds: {error}"));
        }
        for target in TARGETS {
            println!("{}\t{}", target.name, target.seeds.join(","));
        }
        std::process::exit(if name == "list" { 0 } else { 2 });
    };
    target
}

/// Seeds that are no text: a capture and a live page, as gpuio itself writes them.
fn make(folder: &Path) -> std::io::Result<()> {
    let write = |name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(folder.join(name))?;
        std::fs::write(folder.join(name).join("made"), bytes)
    };
    write("tar", &machine::a_tar())?;
    write("page", &results::a_page(folder)?)
}

/// Text of which nothing is obeyed by a terminal, and nothing is hidden.
fn is_shown(text: &str) {
    let odd = text.find(|c| c != '\n' && gpuio_base::units::is_hidden(c));
    assert_eq!(odd.map(|at| &text[at..]), None, "a hidden character is shown");
}

/// A place from 1, at most one past the end of its line, which is one of the text's or the one
/// after its last.
fn is_inside(text: &str, line: usize, column: usize) {
    let lines: Vec<&str> = text.split('\n').collect();
    assert!((1..=lines.len().max(1)).contains(&line), "line {line} of {}", lines.len());
    let length = lines.get(line - 1).map_or(0, |line| line.chars().count());
    assert!((1..=length + 1).contains(&column), "column {column} of {length} in line {line}");
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// Longest seed in bytes: as `cargo xtask fuzz` has it.
    const MOST_BYTES: u64 = 1 << 16;

    #[test]
    fn targets_hold_for_their_seeds() {
        let made = tempfile::tempdir().unwrap();
        make(made.path()).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for target in TARGETS {
            let at = |path: &&str| match path.strip_prefix("MADE/") {
                Some(own) => made.path().join(own),
                None => root.join(path),
            };
            let mut open: Vec<PathBuf> = target.seeds.iter().map(at).collect();
            let mut count = 0;
            while let Some(path) = open.pop() {
                let found = path.metadata().unwrap();
                if found.is_dir() {
                    open.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
                } else if found.len() <= MOST_BYTES {
                    (target.run)(&std::fs::read(path).unwrap());
                    count += 1;
                }
            }
            assert!(count > 0, "{}", target.name);
        }
    }
}
