//! The environment variables that gpuio reads, for the reference. Those that give flags their
//! defaults are in `settings`.

pub(super) struct Variable {
    /// Its name, or several of one effect, or how such names begin.
    pub(super) names: &'static [&'static str],
    /// Verbs or programs that read it.
    pub(super) read_by: &'static str,
    pub(super) effect: &'static str,
}

const fn row(
    names: &'static [&'static str],
    read_by: &'static str,
    effect: &'static str,
) -> Variable {
    Variable { names, read_by, effect }
}

/// Read by the program. The reference has the rows.
pub(super) const PROGRAM: [Variable; 21] = [
    row(&["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"], "all verbs", "colours; `--color` wins"),
    row(
        &["LC_ALL", "LC_CTYPE", "LANG"],
        "all verbs",
        "the first that is set: without UTF-8 in it, printed text is ASCII; files and formats for \
         programs are not changed",
    ),
    row(&["TERM"], "all verbs", "`dumb`: no progress bar, and `top` prints rows"),
    row(
        &["COLUMNS"],
        "all verbs",
        "width of text, instead of the terminal's own, or of 80 where there is none",
    ),
    row(&["GPUIO_CONFIG"], "all verbs", "the user's configuration file"),
    row(&["XDG_CONFIG_HOME", "HOME"], "all verbs", "where that file is looked for without it"),
    row(
        &["XDG_CACHE_HOME", "XDG_RUNTIME_DIR"],
        "verbs with `--gpu software` or gpuio's library",
        "where the shared objects that the program carries are unpacked (install.md)",
    ),
    row(
        &["XDG_STATE_HOME"],
        "`bench`, `gdsio`",
        "where the journal of a run lies (formats.md, \"Saved records and crashed runs\")",
    ),
    row(
        &["GPUIO_PAGES"],
        "verbs with live counters, gpuio's libcufile",
        "the directory of live pages, instead of `/dev/shm` (stats.md)",
    ),
    row(&["TMPDIR"], "paths of cuFile, `report --format pdf`", "temporary directories"),
    row(&["GPUIO_LIBCUDA"], "all verbs", "another CUDA driver library than the system's"),
    row(
        &["GPUIO_MPI"],
        "`bench`, `gdsio`, `sweep`, `check`",
        "another MPI library; `off`: each process by itself (mpi.md)",
    ),
    row(
        &["LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"],
        "`check`, `why`, paths of cuFile",
        "where NVIDIA's library is looked for",
    ),
    row(
        &["PATH"],
        "`exec`, `report --format pdf`",
        "where the program, or a browser, is looked for",
    ),
    row(&["GPUIO_CHROMIUM"], "`report --format pdf`", "the browser that prints (report.md)"),
    row(&["CUFILE_…"], "paths of cuFile, `check`, `why`", "NVIDIA's own variables"),
    row(
        &["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"],
        "all paths to a GPU",
        "CUDA's own variables",
    ),
    row(&["GPUIO_CUFILE…"], "programs on gpuio's libcufile", "cufile.md, dropin.md"),
    row(&["GPUIO_INSTALL", "GPUIO_LIBGPUIO", "GPUIO_PROGRAM"], "the Python module", "python.md"),
    row(&["GPUIO_SOFT_GPUS"], "`--gpu software`", "how many software GPUs there are, 1 to 64 [1]"),
    row(&["GPUIO_SOFT_…"], "the software GPU", "its others are for tests of gpuio itself"),
];

/// Read by gpuio's `libcufile.so.0`. docs/cufile.md says what each does.
pub(super) const LIBRARY: [(&str, &str); 13] = [
    ("GPUIO_CUFILE", "which library serves a call: `auto`, `gpuio` or `nvidia`"),
    ("GPUIO_CUFILE_LIB", "path of NVIDIA's library"),
    ("GPUIO_CUFILE_VERSION", "the answer of `cuFileGetVersion`"),
    ("GPUIO_CUFILE_WORKERS", "most pool threads"),
    ("GPUIO_CUFILE_BUSY", "most threads that move bytes of large calls at once"),
    ("GPUIO_CUFILE_CROWD", "concurrent calls from which pool threads read cached files"),
    ("GPUIO_CUFILE_RING_MB", "most page-locked memory per GPU"),
    ("GPUIO_CUFILE_MAPPED_MB", "most bytes of files that the GPU reads or fills in the page cache"),
    ("GPUIO_CUFILE_CHUNK_KB", "longest piece of a large call"),
    ("GPUIO_CUFILE_RESIDENT", "0: no resident copy kernel"),
    ("GPUIO_CUFILE_RECORD", "the trace of the program's calls to make"),
    ("GPUIO_CUFILE_RECORD_ANONYMOUS", "1: a trace without names"),
    ("GPUIO_CUFILE_STRICT", "which files with `O_DIRECT` may be read from the page cache"),
];

/// The same, and read by `libgpuio.so.0` and the Python module.
pub(super) const DRIVER: (&str, &str) =
    ("GPUIO_CUFILE_DRIVER", "the CUDA driver: `system`, `software`, or a path");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Set by gpuio for the processes that it starts.
    const INTERNAL: [&str; 6] = [
        "GPUIO_SWEEP_PID",
        "GPUIO_AB_PID",
        "GPUIO_RUN_OF",
        "GPUIO_RANK_OF",
        "GPUIO_CUFILE_RECORD_PID",
        "GPUIO_CUFILE_STDERR",
    ];

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|it| it == "rs" || it == "py") {
                found.push(path);
            }
        }
    }

    /// The names quoted in the crates and the Python module as variables of gpuio's.
    fn quoted() -> BTreeSet<String> {
        let mut files = Vec::new();
        let crates = std::fs::read_dir(root().join("crates")).unwrap();
        // Variables that only tests read are in CONTRIBUTING.md.
        for one in crates.map(|one| one.unwrap().path()).filter(|one| !one.ends_with("testkit")) {
            sources(&one.join("src"), &mut files);
        }
        sources(&root().join("python/gpuio"), &mut files);
        let mut names = BTreeSet::new();
        for file in files {
            let text = std::fs::read_to_string(file).unwrap();
            for (at, _) in text.match_indices("\"GPUIO_") {
                let name = text[at + 1..].split('"').next().unwrap();
                if name.len() > "GPUIO_".len()
                    && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
                {
                    names.insert(name.to_owned());
                }
            }
        }
        names
    }

    #[test]
    fn every_variable_of_the_sources_is_listed() {
        let settings: Vec<String> = crate::settings::variables().map(|row| row.0).collect();
        let quoted = quoted();
        assert!(quoted.len() > 20, "{quoted:?}");
        for name in &quoted {
            let of_program = PROGRAM.iter().any(|row| row.names.contains(&name.as_str()));
            let of_library = LIBRARY.iter().chain([&DRIVER]).any(|row| row.0 == name);
            let known = of_program
                || of_library
                || INTERNAL.contains(&name.as_str())
                || settings.contains(name)
                || name.starts_with("GPUIO_SOFT_");
            assert!(known, "{name} is not in the tables of variables");
        }
        for (name, _) in LIBRARY.iter().chain([&DRIVER]) {
            assert!(quoted.contains(*name), "nothing reads {name}");
        }
    }

    #[test]
    fn the_page_of_cufile_names_each_variable_of_the_library() {
        let page = std::fs::read_to_string(root().join("docs/cufile.md")).unwrap();
        for (name, _) in LIBRARY.iter().chain([&DRIVER]) {
            assert!(page.contains(&format!("`{name}`")), "docs/cufile.md lacks {name}");
        }
    }
}
