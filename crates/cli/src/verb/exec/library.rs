//! Where gpuio's cuFile library lies, and a directory that answers its names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The name that linked programs ask for, and cargo's and most languages' name.
const NAMES: [&str; 2] = ["libcufile.so.0", "libcufile.so"];

/// The library and how the loader is to find it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// The object, for `LD_PRELOAD`.
    pub(crate) object: PathBuf,
    /// For `LD_LIBRARY_PATH`: answers both names, and no other object's.
    pub(crate) directory: PathBuf,
}

impl Library {
    /// Looks beside the running program and in `deps/` below it, in `../deps` (cargo's tests), and
    /// in `../lib/gpuio` (an installed program).
    pub(crate) fn find() -> Result<Library, Failure> {
        let exe = std::env::current_exe().map_err(|error| {
            Failure::Unavailable(format!("gpuio's own path can't be read (/proc): {error}"))
        })?;
        let beside = exe.parent().unwrap_or(Path::new("/"));
        let places =
            [beside.to_path_buf(), beside.join("deps"), beside.join("../deps")].into_iter();
        Library::among(places.chain([beside.join("../lib/gpuio")]), cache().as_deref())
    }

    /// The first of these directories that has it. `cache` is where a directory of links can be
    /// made.
    fn among(
        places: impl Iterator<Item = PathBuf>,
        cache: Option<&Path>,
    ) -> Result<Library, Failure> {
        let mut tried = Vec::new();
        for place in places {
            for name in NAMES {
                let Ok(file) = std::fs::canonicalize(place.join(name)) else { continue };
                match std::fs::read(&file) {
                    // NVIDIA's copy beside the program is not to be taken for it.
                    Ok(bytes) if gpuio_cufile::is_gpuios(&bytes) => {
                        return Library::reached(file, cache);
                    }
                    Ok(_) => tried.push(format!("{} is another library", file.display())),
                    Err(error) => tried.push(format!("{}: {error}", file.display())),
                }
            }
            tried.push(format!("no {} in {}", NAMES[0], place.display()));
        }
        Err(Failure::Unavailable(format!(
            "gpuio's libcufile.so.0 is not here ({}): build it (cargo build -p gpuio), or install \
             it as PREFIX/lib/gpuio/libcufile.so.0 beside PREFIX/bin/gpuio",
            tried.join("; ")
        )))
    }

    /// Its own directory serves where nothing else can be found there by mistake.
    fn reached(object: PathBuf, cache: Option<&Path>) -> Result<Library, Failure> {
        let directory = object.parent().unwrap_or(Path::new("/")).to_path_buf();
        if is_plain(&object) && is_alone(&directory, &object) {
            let preloaded = directory.join(NAMES[0]);
            return Ok(Library { object: preloaded, directory });
        }
        let cache = cache.ok_or_else(|| {
            Failure::Unavailable(format!(
                "{} lies among other objects, so a directory of links to it is needed, and \
                 neither XDG_CACHE_HOME nor HOME says where it could be made: set one of them",
                object.display()
            ))
        })?;
        let directory = cache.join("gpuio").join(format!("cufile-{:016x}", digest(&object)));
        linked(&directory, &object).map_err(|(path, error)| {
            Failure::Unavailable(format!(
                "{}: {error}: {} lies among other objects, so links to it are made there; set \
                 XDG_CACHE_HOME to a directory that can be written",
                path.display(),
                object.display()
            ))
        })?;
        if !is_plain(&directory) {
            return Err(Failure::Unavailable(format!(
                "{} has a character that the loader takes for an end (blank, colon, semicolon, \
                 dollar; ld.so(8)): set XDG_CACHE_HOME to a plain path",
                directory.display()
            )));
        }
        Ok(Library { object: directory.join(NAMES[0]), directory })
    }
}

/// Where programs keep what can be made again (XDG Base Directory Specification).
fn cache() -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))
}

/// Whether the loader takes the path for one path: its lists have no way to quote (ld.so(8)).
fn is_plain(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b" \t\n:;$".contains(byte))
}

/// Whether the directory answers both names with the object, and holds no other library that
/// somebody could ask for.
fn is_alone(directory: &Path, object: &Path) -> bool {
    let answers = |name| {
        std::fs::canonicalize(directory.join(name)).is_ok_and(|file| file.as_path() == object)
    };
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    let foreign = |name: &OsStr| {
        let name = name.to_string_lossy();
        let ours = name.starts_with("libgpuio_") || name.starts_with("libcufile.so");
        name.contains(".so") && !ours
    };
    NAMES.iter().all(answers) && !entries.flatten().any(|entry| foreign(&entry.file_name()))
}

/// Makes the directory with both links, or leaves those that are right. Two processes may do so at
/// once: a link gets its name by one rename.
fn linked(directory: &Path, object: &Path) -> Result<(), (PathBuf, std::io::Error)> {
    let told = |path: &Path, error| (path.to_path_buf(), error);
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| told(directory, error))?;
    for name in NAMES {
        let link = directory.join(name);
        if std::fs::read_link(&link).is_ok_and(|target| target == object) {
            continue;
        }
        // A link of ours may be replaced, by one rename; anything else is somebody's.
        if std::fs::symlink_metadata(&link).is_ok_and(|found| !found.is_symlink()) {
            return Err(told(&link, std::io::ErrorKind::AlreadyExists.into()));
        }
        let made = directory.join(format!(".{name}.{}", std::process::id()));
        std::os::unix::fs::symlink(object, &made).map_err(|error| told(&made, error))?;
        std::fs::rename(&made, &link).map_err(|error| {
            // It was made just now and leads where `object` is.
            let _ = std::fs::remove_file(&made);
            told(&link, error)
        })?;
    }
    Ok(())
}

/// A short name of a path: FNV-1a with 64 bits, the same in every release.
fn digest(path: &Path) -> u64 {
    path.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the library is known by (`gpuio_cufile::is_gpuios`).
    const MARK: &[u8] = b"GPUIO_CUFILE";

    fn put(directory: &Path, name: &str, mark: &[u8]) {
        std::fs::create_dir_all(directory).unwrap();
        let bytes = [b"\x7fELF", mark].concat();
        std::fs::write(directory.join(name), bytes).unwrap();
    }

    fn found(places: &[&Path], cache: Option<&Path>) -> Result<Library, Failure> {
        Library::among(places.iter().map(|place| place.to_path_buf()), cache)
    }

    #[test]
    fn an_installed_directory_serves_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let lib = std::fs::canonicalize(root.path()).unwrap().join("lib");
        put(&lib, "libcufile.so.0", MARK);
        put(&lib, "libgpuio_softgpu.so", b"");
        std::os::unix::fs::symlink("libcufile.so.0", lib.join("libcufile.so")).unwrap();
        let library = found(&[&root.path().join("gone"), &lib], None).unwrap();
        assert_eq!(library, Library { object: lib.join("libcufile.so.0"), directory: lib });
    }

    #[test]
    fn among_other_objects_or_under_one_name_links_are_made_once() {
        let root = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(root.path()).unwrap();
        let (deps, cache) = (real.join("deps dir"), real.join("cache"));
        put(&deps, "libcufile.so", MARK);
        put(&deps, "libstdc++.so.6", b"");
        let one = found(&[&deps], Some(&cache)).unwrap();
        assert!(one.directory.starts_with(&cache) && is_alone_links(&one, &deps));
        assert_eq!(found(&[&deps], Some(&cache)).unwrap(), one);
        // Links that lead elsewhere are put right.
        std::fs::remove_file(one.directory.join("libcufile.so")).unwrap();
        std::os::unix::fs::symlink("/gone", one.directory.join("libcufile.so")).unwrap();
        assert!(is_alone_links(&found(&[&deps], Some(&cache)).unwrap(), &deps));
        let Err(Failure::Unavailable(why)) = found(&[&deps], None) else { panic!() };
        assert!(why.contains("XDG_CACHE_HOME"), "{why}");
    }

    fn is_alone_links(library: &Library, deps: &Path) -> bool {
        let names: Vec<_> = std::fs::read_dir(&library.directory).unwrap().collect();
        let leads = |name: &str| std::fs::read_link(library.directory.join(name)).unwrap();
        names.len() == 2 && NAMES.iter().all(|name| leads(name) == deps.join("libcufile.so"))
    }

    #[test]
    fn a_path_that_the_loader_would_cut_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(root.path()).unwrap();
        let odd = real.join("a:b");
        put(&odd, "libcufile.so.0", MARK);
        put(&odd, "libcufile.so", MARK);
        let library = found(&[&odd], Some(&real.join("cache"))).unwrap();
        assert!(is_plain(&library.object), "{library:?}");
        let Err(Failure::Unavailable(why)) = found(&[&odd], Some(&odd)) else { panic!() };
        assert!(why.contains("colon"), "{why}");
    }

    #[test]
    fn nvidias_library_is_not_taken_for_ours() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "libcufile.so.0", b"cuFileRead");
        let Err(Failure::Unavailable(why)) = found(&[root.path()], None) else { panic!() };
        assert!(why.contains("another library") && why.contains("cargo build"), "{why}");
    }
}
