//! The files behind `--from`: directories, archives, files and standard input.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use gpuio_capture::bundle::{Bundle, belongs_to_tree};
use gpuio_capture::machines::Text;
use gpuio_host::{Root, input};

use super::is_stdin;
use crate::captured;
use crate::failure::Failure;

/// More files than a directory of texts has.
const MOST_FILES: usize = 20_000;
/// Directories within directories.
const DEEPEST: usize = 12;

pub(super) struct Files {
    pub(super) trees: Vec<(String, Root)>,
    pub(super) texts: Vec<Text>,
    pub(super) others: Vec<(String, String)>,
    given: usize,
}

impl Files {
    /// Whether one text alone was given: what is wrong with it is the answer.
    pub(super) fn is_alone(&self) -> bool {
        self.given == 1 && self.texts.len() == 1 && self.others.is_empty() && self.trees.is_empty()
    }
}

/// Reads everything.
///
/// # Errors
/// A file that was named can't be read. The rest of a directory is read all the same.
pub(super) fn gather(from: &[PathBuf]) -> Result<Files, Failure> {
    let mut bundle = Bundle::default();
    let mut trees = Vec::new();
    for path in from {
        let name = path.display().to_string();
        if path.is_dir() {
            let tree = path.join("sys").is_dir() || path.join("proc").is_dir();
            if tree {
                trees.push((name, Root::at(path)));
            }
            directory(path, tree, &mut bundle);
            continue;
        }
        let bytes = if is_stdin(path) { stdin()? } else { captured::bytes(path)? };
        // A capture that is no whole tar, or holds too much, is refused with its reason.
        if captured::is_tar(&bytes) && from.len() == 1 && captured::is_capture(&bytes) {
            trees.push((name, captured::tar(path, &bytes)?));
            continue;
        }
        bundle.add(if is_stdin(path) { "standard input" } else { &name }, bytes);
    }
    trees.extend(bundle.trees.into_iter().map(|(name, tree)| (name, Root::of(tree))));
    Ok(Files { trees, texts: bundle.texts, others: bundle.others, given: from.len() })
}

fn stdin() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let most = input::MOST_CAPTURE;
    std::io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Usage(format!("--from -: {error}")))?;
    Ok(bytes)
}

/// Adds the files below a directory in the order of their names. Links are not followed out of it,
/// and hidden files are passed over.
fn directory(top: &Path, has_tree: bool, bundle: &mut Bundle) {
    let mut open: Vec<(PathBuf, usize)> = vec![(top.to_owned(), 0)];
    let mut count = 0;
    while let Some((folder, deep)) = open.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                bundle.leave_out(&folder.display().to_string(), error.to_string());
                continue;
            }
        };
        let entries: BTreeSet<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        let mut below = Vec::new();
        for path in entries {
            let inside = path.strip_prefix(top).unwrap_or(&path);
            let hidden =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if hidden || has_tree && belongs_to_tree(inside) {
                continue;
            }
            let Ok(facts) = std::fs::symlink_metadata(&path) else { continue };
            if facts.is_dir() {
                if deep < DEEPEST {
                    below.push((path, deep + 1));
                }
                continue;
            }
            count += 1;
            if count > MOST_FILES {
                bundle.leave_out(&top.display().to_string(), "it holds more files than are read");
                return;
            }
            let name = path.display().to_string();
            // A thousand links may lead to one large file.
            if facts.is_symlink() {
                bundle.leave_out(&name, "a link");
                continue;
            }
            match input::read(&path, input::MOST_CAPTURE) {
                Ok(bytes) => bundle.add(&name, bytes),
                Err(error) => bundle.leave_out(&name, error.to_string()),
            }
        }
        below.reverse();
        open.extend(below);
    }
}
