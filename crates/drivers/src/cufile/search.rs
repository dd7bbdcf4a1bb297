//! Where the cuFile library is searched for.

use std::path::{Path, PathBuf};

const NAME: &str = "libcufile.so.0";

/// Which library to load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Search {
    /// The only library to try, if the user named one.
    pub given: Option<PathBuf>,
    /// Python environments whose wheels may hold the library: the values of `VIRTUAL_ENV` and
    /// `CONDA_PREFIX`.
    pub prefixes: Vec<PathBuf>,
    /// Use gpuio's stand-in instead of NVIDIA's library: with the software GPU.
    pub stand_in: bool,
}

/// Files to try, and directories without one.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) empty: Vec<(String, String)>,
}

/// The candidates for the stand-in: where gpuio's own objects are.
pub fn stand_in_candidates() -> Vec<PathBuf> {
    gpuio_guard::objects::candidates(gpuio_guard::objects::STAND_IN)
}

impl Search {
    /// Finds the library's file without loading it, links followed: where [`Library::load`]
    /// searches, and for the bare name in the directories of `library_path` (as in
    /// `LD_LIBRARY_PATH`) and of the distributions. `None` if there is none, though `ldconfig` may
    /// know more directories.
    ///
    /// [`Library::load`]: crate::cufile::Library::load
    pub fn find(&self, library_path: &[PathBuf]) -> Option<PathBuf> {
        self.find_all(library_path).into_iter().next()
    }

    /// All files of which [`Search::find`] returns the first, links followed.
    pub fn find_all(&self, library_path: &[PathBuf]) -> Vec<PathBuf> {
        let system = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];
        let directories = library_path.iter().cloned().chain(system.map(PathBuf::from));
        let bare = directories.map(|directory| directory.join(NAME));
        let files = self.candidates().files.into_iter().filter(|file| file.is_absolute());
        bare.chain(files).filter_map(|file| std::fs::canonicalize(file).ok()).collect()
    }

    pub(crate) fn candidates(&self) -> Candidates {
        self.candidates_below(Path::new("/"))
    }

    /// The candidates of a system whose root is `root`.
    fn candidates_below(&self, root: &Path) -> Candidates {
        if let Some(given) = &self.given {
            return Candidates { files: vec![given.clone()], empty: Vec::new() };
        }
        if self.stand_in {
            return Candidates { files: stand_in_candidates(), empty: Vec::new() };
        }
        let mut candidates = Candidates { files: vec![PathBuf::from(NAME)], empty: Vec::new() };
        let local = root.join("usr/local");
        let toolkits = beginning(&local, "cuda");
        let parts = ["lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];
        let before = candidates.files.len();
        for toolkit in &toolkits {
            candidates.add(parts.iter().map(|part| toolkit.join(part)));
        }
        if candidates.files.len() == before {
            candidates.none(format!("{}/cuda*", local.display()));
        }
        let system = [root.join("usr"), local];
        for prefix in self.prefixes.iter().chain(&system) {
            let before = candidates.files.len();
            candidates.add(std::iter::once(prefix.join("lib")));
            for python in beginning(&prefix.join("lib"), "python3") {
                let wheels = ["site-packages", "dist-packages"].map(|name| python.join(name));
                candidates.add(wheels.iter().flat_map(|wheels| {
                    ["cu13", "cufile"].map(|part| wheels.join("nvidia").join(part).join("lib"))
                }));
            }
            if candidates.files.len() == before {
                candidates.none(format!("{}/lib/{{.,python3*}}", prefix.display()));
            }
        }
        candidates
    }
}

impl Candidates {
    fn add(&mut self, directories: impl Iterator<Item = PathBuf>) {
        let files = directories.map(|directory| directory.join(NAME));
        self.files.extend(files.filter(|file| file.exists()));
    }

    fn none(&mut self, directory: String) {
        self.empty.push((directory, format!("no {NAME} there")));
    }
}

/// The entries of a directory whose names begin with `start`, in descending order: a newer toolkit
/// before an older one.
fn beginning(directory: &Path, start: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.path());
    let begins = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    let mut found: Vec<PathBuf> = names.filter(begins).collect();
    found.sort();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_library_is_the_only_one() {
        let given = Some(PathBuf::from("/opt/libcufile.so.0"));
        let search = Search { given, prefixes: vec!["/venv".into()], stand_in: true };
        assert_eq!(search.candidates().files, [PathBuf::from("/opt/libcufile.so.0")]);
    }

    #[test]
    fn a_library_is_found_without_loading_it() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("libcufile.so.1.15.0");
        std::fs::write(&file, "no library at all").unwrap();
        std::os::unix::fs::symlink(&file, root.path().join(NAME)).unwrap();
        let found = Search::default().find(&[root.path().join("gone"), root.path().into()]);
        assert_eq!(found.unwrap().file_name(), file.file_name());
    }

    #[test]
    fn toolkits_and_wheels_are_found_and_empty_places_are_reported() {
        let root = tempfile::tempdir().unwrap();
        let put = |directory: &str| {
            let file = root.path().join(directory).join(NAME);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            file
        };
        let old = put("usr/local/cuda-12.8/targets/x86_64-linux/lib");
        let new = put("usr/local/cuda-13.0/lib64");
        let wheel = put("venv/lib/python3.12/site-packages/nvidia/cu13/lib");
        let conda = put("conda/lib");
        let prefixes = ["venv", "conda", "gone"].map(|name| root.path().join(name)).to_vec();
        let candidates = Search { prefixes, ..Search::default() }.candidates_below(root.path());
        assert_eq!(candidates.files, [PathBuf::from(NAME), new, old, wheel, conda]);
        let empty: Vec<&str> =
            candidates.empty.iter().map(|(directory, _)| directory.as_str()).collect();
        assert_eq!(empty.len(), 3, "{empty:?}");
        assert!(empty[0].contains("gone/lib"), "{empty:?}");
    }
}
