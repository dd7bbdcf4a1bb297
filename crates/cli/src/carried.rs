//! Unpacks the shared objects that the program carries, privately.
//!
//! `LD_PRELOAD` and `LD_LIBRARY_PATH` need files with names which outlive gpuio: `exec` becomes the
//! program, and that may start others and close descriptors, so that a memfd would be gone. So
//! there is one directory per content, in the first of these places that can be used:
//! `$XDG_CACHE_HOME/gpuio` (`~/.cache/gpuio`), `$XDG_RUNTIME_DIR/gpuio`, `/tmp/gpuio-UID`.
//!
//! Who could write there could run code as this user. A directory is used only if it is this
//! user's with mode 0700, and no other user can rename the directories above it
//! ([`gpuio_guard::objects::trust`]). Each file is compared with what the program carries, byte by
//! byte, at every start, and replaced where it differs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gpuio_guard::objects::environment;
use gpuio_guard::outfile::{Directory, Draft, Place, make_place, own_directory};
use rustix::fs::{Mode, StatVfsMountFlags};

/// The archive; empty if the program carries nothing.
const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/objects.tar.gz"));
/// A second name, by which some programs ask for the drop-in.
const LINK: (&str, &str) = ("libcufile.so", "libcufile.so.0");

/// Whether the program carries its shared objects.
pub(crate) fn is_there() -> bool {
    !ARCHIVE.is_empty()
}

/// Unpacks them, for [`gpuio_guard::objects::carried_by`]. Says why where it is not possible.
pub(crate) fn unpack() -> Option<PathBuf> {
    if !is_there() {
        return None;
    }
    let done = objects(ARCHIVE).and_then(|objects| unpack_in(&places(), ARCHIVE, &objects));
    match done {
        Ok(directory) => Some(directory),
        Err(why) => {
            message!(
                "gpuio's shared objects can't be unpacked ({why}). Set XDG_CACHE_HOME to a \
                 directory of yours that others can't write to"
            );
            None
        }
    }
}

/// Name and content of each object.
fn objects(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let wrong = |error: std::io::Error| format!("the archive in this program: {error}");
    let mut objects = Vec::new();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    for entry in archive.entries().map_err(wrong)? {
        let mut entry = entry.map_err(wrong)?;
        let name = entry.path().map_err(wrong)?.display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(wrong)?;
        objects.push((name, bytes));
    }
    Ok(objects)
}

/// Where a directory of this user's alone can be, in this order.
pub(crate) fn places() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let runtime = environment::absolute("XDG_RUNTIME_DIR").map(|place| place.join("gpuio"));
    let named = Path::new("/tmp").join(format!("gpuio-{user}"));
    [Place::CACHE.path(), runtime, Some(named)].into_iter().flatten().collect()
}

/// The first place that can be used, or why each can't.
fn unpack_in(
    places: &[PathBuf],
    archive: &[u8],
    objects: &[(String, Vec<u8>)],
) -> Result<PathBuf, String> {
    let name = format!("objects-{}-{:016x}", env!("CARGO_PKG_VERSION"), digest(archive));
    in_first(places, &name, |directory| {
        let flags = rustix::fs::statvfs(directory.path()).map_err(io)?.f_flag;
        if flags.contains(StatVfsMountFlags::NOEXEC) {
            return Err("the file system is mounted with noexec".to_owned());
        }
        filled(directory, objects)
    })
}

/// Uses the directory `name` in the first of these places where it is, or can be made, this user's
/// alone. Gives its path, or why none can be used.
pub(crate) fn in_first(
    places: &[PathBuf],
    name: &str,
    used: impl Fn(&Directory) -> Result<PathBuf, String>,
) -> Result<PathBuf, String> {
    let mut refused = Vec::new();
    for place in places {
        match private(place, name).and_then(|directory| used(&directory)) {
            Ok(directory) => return Ok(directory),
            Err(why) => refused.push(format!("{}: {why}", place.display())),
        }
    }
    Err(refused.join("; "))
}

/// A name for a content: FNV-1a with 64 bits. It tells versions apart and protects nothing.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn io(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The directory `name` below `place`, which only this user can change.
fn private(place: &Path, name: &str) -> Result<Directory, String> {
    let place = make_place(place).map_err(io)?;
    let path = place.path().join(name);
    // The loader's lists have no quoting (ld.so(8)).
    if path.as_os_str().as_encoded_bytes().iter().any(|byte| b" \t\n:;$".contains(byte)) {
        return Err("the path has a blank, colon, semicolon or dollar".to_owned());
    }
    let not_own =
        |error| format!("{} is not a directory of yours with mode 0700: {error}", path.display());
    own_directory(&path).map_err(not_own)
}

/// Puts what is missing or different into the directory.
fn filled(directory: &Directory, objects: &[(String, Vec<u8>)]) -> Result<PathBuf, String> {
    for (name, bytes) in objects {
        put(directory, name, bytes).map_err(|why| format!("{name}: {why}"))?;
    }
    let link = directory.path().join(LINK.0);
    let leads = || std::fs::read_link(&link).is_ok_and(|to| to == Path::new(LINK.1));
    if !leads() {
        match std::os::unix::fs::symlink(LINK.1, &link) {
            // Another process may have made it since.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && leads() => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(format!("{} is not a link to {}", link.display(), LINK.1));
            }
            made => made.map_err(io)?,
        }
    }
    Ok(directory.path().to_path_buf())
}

fn put(directory: &Directory, name: &str, bytes: &[u8]) -> Result<(), String> {
    let name = OsStr::new(name);
    let old = match right(directory, name, bytes)? {
        Found::Right => return Ok(()),
        Found::Wrong(file) => Some(file),
        Found::None => None,
    };
    let draft = directory.try_clone().and_then(|it| Draft::begin(it, name)).map_err(io)?;
    draft.fill_unsynced(bytes).map_err(io)?;
    draft.set_mode(Mode::RUSR | Mode::XUSR).map_err(io)?;
    match draft.replace(old.as_ref()) {
        Ok(_) => Ok(()),
        // Another process was faster.
        Err(unnamed) => match right(directory, name, bytes)? {
            Found::Right => Ok(()),
            _ => Err(unnamed.error.to_string()),
        },
    }
}

enum Found {
    None,
    Right,
    Wrong(File),
}

/// Whether the file has these bytes, is this user's, and nobody else may write to it.
fn right(directory: &Directory, name: &OsStr, bytes: &[u8]) -> Result<Found, String> {
    let Some(file) = directory.file(name).map_err(io)? else { return Ok(Found::None) };
    let facts = file.metadata().map_err(io)?;
    let own = facts.uid() == rustix::process::geteuid().as_raw() && facts.mode() & 0o022 == 0;
    if own && facts.len() == bytes.len() as u64 {
        let mut found = Vec::with_capacity(bytes.len());
        (&file).take(facts.len()).read_to_end(&mut found).map_err(io)?;
        if found == bytes {
            return Ok(Found::Right);
        }
    }
    Ok(Found::Wrong(file))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn sample() -> Vec<(String, Vec<u8>)> {
        let named = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
        vec![named("libcufile.so.0", b"drop-in"), named("libgpuio_softgpu.so", b"software")]
    }

    /// A directory whose parents only root and this user can write to.
    fn scratch() -> tempfile::TempDir {
        tempfile::tempdir_in("/tmp").unwrap()
    }

    fn unpacked(place: &Path) -> Result<PathBuf, String> {
        unpack_in(&[place.to_path_buf()], b"archive", &sample())
    }

    #[test]
    fn objects_are_unpacked_once_and_put_right_where_they_differ() {
        let root = scratch();
        let at = unpacked(&root.path().join("cache/gpuio")).unwrap();
        let file = at.join("libcufile.so");
        assert_eq!(std::fs::read(&file).unwrap(), b"drop-in");
        let facts = std::fs::metadata(&file).unwrap();
        assert_eq!(facts.mode() & 0o7777, 0o500);
        assert_eq!(unpacked(&root.path().join("cache/gpuio")).unwrap(), at);
        assert_eq!(std::fs::metadata(&file).unwrap().ino(), facts.ino());
        // Same length, other bytes; a shorter file; one that others may write to.
        let wrong: [fn(&Path); 3] = [
            |file| std::fs::write(file, "drop-IN").unwrap(),
            |file| std::fs::write(file, "").unwrap(),
            |file| std::fs::set_permissions(file, PermissionsExt::from_mode(0o777)).unwrap(),
        ];
        for spoil in wrong {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o700)).unwrap();
            spoil(&file);
            unpacked(&root.path().join("cache/gpuio")).unwrap();
            assert_eq!(std::fs::read(&file).unwrap(), b"drop-in");
            assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o7777, 0o500);
        }
        let names = std::fs::read_dir(&at).unwrap().count();
        assert_eq!(names, 3, "no draft is left");
    }

    #[test]
    fn a_directory_that_others_can_change_is_not_used_and_the_next_one_is() {
        let root = scratch();
        let open = root.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let why = unpacked(&open.join("gpuio")).unwrap_err();
        assert!(why.contains("others may write to"), "{why}");
        let good = root.path().join("good");
        let at = unpack_in(&[open.join("gpuio"), good.clone()], b"archive", &sample()).unwrap();
        assert!(at.starts_with(std::fs::canonicalize(&good).unwrap()));
        // Its own directory was opened to others, or is a link.
        std::fs::set_permissions(&at, PermissionsExt::from_mode(0o755)).unwrap();
        let why = unpacked(&good).unwrap_err();
        assert!(why.contains("mode 0700"), "{why}");
        std::fs::rename(&at, root.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(root.path().join("moved"), &at).unwrap();
        assert!(unpacked(&good).is_err());
        // A file in the place of a directory.
        std::fs::write(root.path().join("file"), "").unwrap();
        assert!(unpacked(&root.path().join("file")).is_err());
        assert!(unpacked(&root.path().join("a b")).unwrap_err().contains("blank"));
    }

    /// As `/tmp/gpuio-UID`, which any user can make first: a directory of another's, one that is
    /// open to all, another's link to one of mine, and a directory inside that another has made.
    #[test]
    fn a_place_that_another_user_made_first_is_left_alone_and_the_next_one_is_used() {
        if !rustix::process::geteuid().is_root() {
            return println!("SKIPPED: only root can give a file away");
        }
        use std::os::unix::fs::{chown, lchown, symlink};
        const OTHER: Option<u32> = Some(65534);
        let root = scratch();
        let tmp = root.path().join("tmp");
        std::fs::create_dir(&tmp).unwrap();
        std::fs::set_permissions(&tmp, PermissionsExt::from_mode(0o1777)).unwrap();
        let mine = root.path().join("mine");
        std::fs::create_dir(&mine).unwrap();
        for (name, mode) in [("closed", 0o700), ("open", 0o777)] {
            let place = tmp.join(name);
            std::fs::create_dir(&place).unwrap();
            std::fs::set_permissions(&place, PermissionsExt::from_mode(mode)).unwrap();
            chown(&place, OTHER, OTHER).unwrap();
        }
        symlink(&mine, tmp.join("link")).unwrap();
        lchown(tmp.join("link"), OTHER, OTHER).unwrap();
        for name in ["closed", "open", "link"] {
            let place = tmp.join(name);
            let why = unpacked(&place).unwrap_err();
            assert!(why.contains("belongs to user 65534") && !why.contains('\n'), "{why}");
            assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "{name}");
            let good = root.path().join("good");
            let at = unpack_in(&[place, good.clone()], b"archive", &sample()).unwrap();
            assert!(at.starts_with(std::fs::canonicalize(&good).unwrap()));
        }
        // Inside a place of mine.
        let inside = unpacked(&mine).unwrap();
        std::fs::remove_dir_all(&inside).unwrap();
        std::fs::create_dir(&inside).unwrap();
        chown(&inside, OTHER, OTHER).unwrap();
        assert!(unpacked(&mine).unwrap_err().contains("mode 0700"));
        assert_eq!(std::fs::read_dir(&inside).unwrap().count(), 0);
    }

    #[test]
    fn two_processes_unpack_at_once() {
        let root = scratch();
        let place = root.path().join("gpuio");
        std::thread::scope(|scope| {
            let made: Vec<_> = (0..8).map(|_| scope.spawn(|| unpacked(&place))).collect();
            for one in made {
                let at = one.join().unwrap().unwrap();
                assert_eq!(std::fs::read(at.join("libgpuio_softgpu.so")).unwrap(), b"software");
            }
        });
    }

    #[test]
    fn the_archive_is_read_back() {
        let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut archive = tar::Builder::new(encoder);
        for (name, bytes) in sample() {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            archive.append_data(&mut header, name, bytes.as_slice()).unwrap();
        }
        let bytes = archive.into_inner().unwrap().finish().unwrap();
        assert_eq!(objects(&bytes).unwrap(), sample());
        assert!(objects(b"nonsense").is_err());
    }
}
