//! Finds gpuio's cuFile library, and a directory where the loader finds it by each of its names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use gpuio_guard::objects::SOFTWARE_GPU;

use crate::carried;
use crate::failure::Failure;

/// The name that programs link against, and the name from cargo and most languages.
const NAMES: [&str; 2] = ["libcufile.so.0", "libcufile.so"];

/// The library, and how the loader finds it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// The object, for `LD_PRELOAD`.
    pub(crate) object: PathBuf,
    /// For `LD_LIBRARY_PATH`: holds both names of this library and no other library.
    pub(crate) directory: PathBuf,
}

impl Library {
    /// Searches where gpuio's own objects are, those that the program carries last.
    pub(crate) fn find() -> Result<Library, Failure> {
        let carried = std::iter::once_with(gpuio_guard::objects::unpacked).flatten();
        let directories = gpuio_guard::objects::directories().into_iter().chain(carried);
        Library::among(directories, &carried::places())
    }

    /// The first of these directories that has the library. A directory of links can be created in
    /// the first of `places` that this user alone can change.
    fn among(
        directories: impl Iterator<Item = PathBuf>,
        places: &[PathBuf],
    ) -> Result<Library, Failure> {
        let mut tried = Vec::new();
        for directory_tried in directories {
            for name in NAMES {
                // A refusal is reported there.
                let Ok(file) = gpuio_guard::objects::own(&directory_tried.join(name)) else {
                    continue;
                };
                match std::fs::read(&file) {
                    // A copy of NVIDIA's library in the program's directory must not be used.
                    Ok(bytes) if gpuio_drivers::cufile::is_gpuio_library(&bytes) => {
                        return Library::reached(file, places);
                    }
                    Ok(_) => tried.push(format!("{} is another library", file.display())),
                    Err(error) => tried.push(format!("{}: {error}", file.display())),
                }
            }
            tried.push(format!("no {} in {}", NAMES[0], directory_tried.display()));
        }
        Err(Failure::Unavailable(format!(
            "gpuio's libcufile.so.0 was not found ({}){}. Build it (cargo build -p gpuio), \
             install it as PREFIX/lib/gpuio/libcufile.so.0 for PREFIX/bin/gpuio, or install a \
             gpuio that carries it (docs/install.md)",
            tried.join("; "),
            if carried::is_there() { "" } else { ", and this gpuio carries none" },
        )))
    }

    /// Uses the library's own directory if nothing else can be found there by mistake.
    fn reached(object: PathBuf, places: &[PathBuf]) -> Result<Library, Failure> {
        let directory = object.parent().unwrap_or(Path::new("/")).to_path_buf();
        if is_plain(&object) && is_alone(&directory, &object) {
            let preloaded = directory.join(NAMES[0]);
            return Ok(Library { object: preloaded, directory });
        }
        // A program that asks for the software GPU loads it by its name.
        let software = object.with_file_name(SOFTWARE_GPU);
        let software = gpuio_guard::objects::own(&software).ok();
        let name = format!("cufile-{:016x}", digest(&object));
        let made = carried::in_first(places, &name, |directory| {
            linked(directory.path(), &object, software.as_deref())
                .map_err(|(path, error)| format!("{}: {error}", path.display()))?;
            Ok(directory.path().to_path_buf())
        });
        let directory = made.map_err(|why| {
            Failure::Unavailable(format!(
                "The directory of {} holds other libraries too, so gpuio needs a directory with \
                 links to it, and can use none ({why}). Set XDG_CACHE_HOME to a directory of yours \
                 that others can't write to",
                object.display()
            ))
        })?;
        Ok(Library { object: directory.join(NAMES[0]), directory })
    }
}

/// Whether the loader reads the path as one path: its lists have no quoting (ld.so(8)).
fn is_plain(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b" \t\n:;$".contains(byte))
}

/// Whether the directory has both names of the object, and no other library that a program could
/// load.
fn is_alone(directory: &Path, object: &Path) -> bool {
    let answers = |name| {
        std::fs::canonicalize(directory.join(name)).is_ok_and(|file| file.as_path() == object)
    };
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    let foreign = |name: &OsStr| {
        let name = name.to_string_lossy();
        let ours = name.starts_with("libgpuio") || name.starts_with("libcufile.so");
        name.contains(".so") && !ours
    };
    NAMES.iter().all(answers) && !entries.flatten().any(|entry| foreign(&entry.file_name()))
}

/// Creates both links in the directory, and one to the software GPU where there is one, or keeps
/// links that are right. Two processes may do so at the same time: each link is put in place by one
/// rename.
fn linked(
    directory: &Path,
    object: &Path,
    software: Option<&Path>,
) -> Result<(), (PathBuf, std::io::Error)> {
    let with_path = |path: &Path, error| (path.to_path_buf(), error);
    let software = software.map(|object| (SOFTWARE_GPU, object));
    for (name, object) in NAMES.map(|name| (name, object)).into_iter().chain(software) {
        let link = directory.join(name);
        if std::fs::read_link(&link).is_ok_and(|target| target == object) {
            continue;
        }
        // Only a link of gpuio's is replaced, by one rename. Anything else belongs to the user.
        if std::fs::symlink_metadata(&link).is_ok_and(|found| !found.is_symlink()) {
            return Err(with_path(&link, std::io::ErrorKind::AlreadyExists.into()));
        }
        let made = directory.join(format!(".{name}.{}", std::process::id()));
        std::os::unix::fs::symlink(object, &made).map_err(|error| with_path(&made, error))?;
        std::fs::rename(&made, &link).map_err(|error| {
            // The link was just created and leads to `object`.
            let _ = std::fs::remove_file(&made);
            with_path(&link, error)
        })?;
    }
    Ok(())
}

/// A short name for a path: FNV-1a with 64 bits, the same in every release.
fn digest(path: &Path) -> u64 {
    path.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The symbol that identifies gpuio's library (`gpuio_drivers::cufile::is_gpuio_library`).
    const MARK: &[u8] = b"GPUIO_CUFILE";

    fn put(directory: &Path, name: &str, mark: &[u8]) {
        std::fs::create_dir_all(directory).unwrap();
        let bytes = [b"\x7fELF", mark].concat();
        std::fs::write(directory.join(name), bytes).unwrap();
    }

    fn found(directories: &[&Path], places: &[PathBuf]) -> Result<Library, Failure> {
        Library::among(
            directories.iter().map(|directory_tried| directory_tried.to_path_buf()),
            places,
        )
    }

    #[test]
    fn an_installed_directory_serves_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let lib = std::fs::canonicalize(root.path()).unwrap().join("lib");
        put(&lib, "libcufile.so.0", MARK);
        put(&lib, "libgpuio_softgpu.so", b"");
        std::os::unix::fs::symlink("libcufile.so.0", lib.join("libcufile.so")).unwrap();
        let library = found(&[&root.path().join("gone"), &lib], &[]).unwrap();
        assert_eq!(library, Library { object: lib.join("libcufile.so.0"), directory: lib });
    }

    #[test]
    fn among_other_objects_or_under_one_name_links_are_made_once() {
        let root = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(root.path()).unwrap();
        let (deps, cache) = (real.join("deps dir"), [real.join("cache")]);
        put(&deps, "libcufile.so", MARK);
        put(&deps, "libstdc++.so.6", b"");
        let one = found(&[&deps], &cache).unwrap();
        assert!(one.directory.starts_with(&cache[0]) && is_alone_links(&one, &deps));
        assert_eq!(found(&[&deps], &cache).unwrap(), one);
        // Links that lead elsewhere are corrected.
        std::fs::remove_file(one.directory.join("libcufile.so")).unwrap();
        std::os::unix::fs::symlink("/gone", one.directory.join("libcufile.so")).unwrap();
        assert!(is_alone_links(&found(&[&deps], &cache).unwrap(), &deps));
        let Err(Failure::Unavailable(why)) = found(&[&deps], &[]) else { panic!() };
        assert!(why.contains("XDG_CACHE_HOME"), "{why}");
    }

    /// The directory is in the program's `LD_LIBRARY_PATH`, and the program loads it by its name.
    #[test]
    fn the_software_gpu_beside_the_library_is_found_by_the_program() {
        let root = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(root.path()).unwrap();
        let (deps, cache) = (real.join("deps"), [real.join("cache")]);
        put(&deps, "libcufile.so", MARK);
        put(&deps, SOFTWARE_GPU, b"");
        let one = found(&[&deps], &cache).unwrap();
        assert!(one.directory.starts_with(&cache[0]));
        let led = std::fs::read_link(one.directory.join(SOFTWARE_GPU)).unwrap();
        assert_eq!(led, deps.join(SOFTWARE_GPU));
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
        let library = found(&[&odd], &[real.join("cache")]).unwrap();
        assert!(is_plain(&library.object), "{library:?}");
        let Err(Failure::Unavailable(why)) = found(&[&odd], std::slice::from_ref(&odd)) else {
            panic!()
        };
        assert!(why.contains("colon"), "{why}");
    }

    #[test]
    fn nvidias_library_is_not_taken_for_ours() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "libcufile.so.0", b"cuFileRead");
        let Err(Failure::Unavailable(why)) = found(&[root.path()], &[]) else { panic!() };
        assert!(why.contains("another library") && why.contains("cargo build"), "{why}");
    }
}
