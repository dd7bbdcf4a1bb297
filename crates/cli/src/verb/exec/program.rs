//! Finds the program, and tells whether its loader will use `LD_PRELOAD`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use gpuio_guard::objects::environment;
use rustix::fs::Access;

/// The kernel follows at most this many scripts whose interpreter is a script (Linux, fs/exec.c).
const SCRIPTS: usize = 4;

/// An executable file.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The file that the kernel finally starts: the program, or the interpreter of a script.
    image: PathBuf,
    kind: Kind,
}

/// How an image is loaded (elf(5)).
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// Loads shared objects of this machine's architecture; with the loader's path.
    Dynamic(String),
    /// It has no loader.
    Static,
    /// It is for another architecture, whose loader skips our library.
    Foreign,
    /// It is no ELF file: a shell runs it.
    Text,
}

/// Why a program can't be started.
pub(crate) enum ExecError {
    /// It does not exist: 127.
    Absent(String),
    /// It can't be executed: 126.
    Refused(String),
}

impl ExecError {
    /// From the error of execve(2).
    pub(crate) fn refused(path: &Path, error: &std::io::Error) -> ExecError {
        let what = format!("{}: {error}", path.display());
        match error.kind() {
            ErrorKind::NotFound => ExecError::Absent(format!("{what}, or its interpreter")),
            _ => ExecError::Refused(what),
        }
    }

    /// The exit codes of env(1) and POSIX shells.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            ExecError::Absent(_) => 127,
            ExecError::Refused(_) => 126,
        }
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ExecError::Absent(what) | ExecError::Refused(what)) = self;
        f.write_str(what)
    }
}

impl Program {
    /// By its path, or by its name in the directories of `PATH` (execvp(3)).
    pub(crate) fn find(name: &OsStr) -> Result<Program, ExecError> {
        let list = environment::variable("PATH").unwrap_or("/bin:/usr/bin".into());
        let path = lying(name, &std::env::split_paths(&list).collect::<Vec<_>>())?;
        let (image, kind) = image(&path, SCRIPTS);
        Ok(Program { path, image, kind })
    }

    /// Why the program could not load the library at all.
    pub(crate) fn hidden(&self) -> Option<String> {
        let why = rights(&self.image)?;
        Some(format!(
            "{} {why}, so the loader ignores and removes LD_PRELOAD (ld.so(8), \"secure-execution \
             mode\"), also for the programs that it starts. Swap the order: sudo gpuio exec -- \
             PROGRAM",
            self.image.display()
        ))
    }

    /// The first object that the program is linked to and for which this holds, by its name.
    pub(crate) fn linked_to(&self, wanted: fn(&[u8]) -> bool) -> Option<OsString> {
        let needed = needed(&self.image).unwrap_or_default();
        needed.into_iter().find(|name| wanted(name)).map(OsString::from_vec)
    }

    /// Why the program itself will not load the library, although programs that it starts may.
    pub(crate) fn note(&self) -> Option<String> {
        let image = self.image.display();
        match &self.kind {
            Kind::Dynamic(loader) if loader.contains("ld-musl") => Some(format!(
                "{image} uses musl ({loader}), but gpuio's libcufile.so.0 is built for glibc, so \
                 the program may not start"
            )),
            Kind::Static => Some(format!(
                "{image} is statically linked and loads no shared library, so gpuio's library has \
                 no effect on it; programs that it starts can use it"
            )),
            Kind::Foreign => Some(format!(
                "{image} is for another architecture than gpuio, so its loader skips gpuio's \
                 library; programs that it starts may use it"
            )),
            Kind::Dynamic(_) | Kind::Text => None,
        }
    }
}

fn lying(name: &OsStr, path: &[PathBuf]) -> Result<PathBuf, ExecError> {
    let shown = name.display();
    let executable = |file: &Path| match rustix::fs::access(file, Access::EXEC_OK) {
        Ok(()) if file.is_file() => Ok(()),
        Ok(()) => Err("it is not a regular file".to_owned()),
        Err(error) => Err(std::io::Error::from(error).to_string()),
    };
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return match (file.exists(), executable(&file)) {
            (true, Ok(())) => Ok(file),
            (false, _) => Err(ExecError::Absent(format!("{shown}: file not found"))),
            (true, Err(why)) => {
                Err(ExecError::Refused(format!("{shown} can't be executed: {why}")))
            }
        };
    }
    let mut refused = None;
    for directory in path {
        let file = directory.join(name);
        match executable(&file) {
            Ok(()) => return Ok(file),
            Err(why) if file.is_file() => refused = refused.or(Some((file, why))),
            Err(_) => {}
        }
    }
    Err(match refused {
        Some((file, why)) => {
            ExecError::Refused(format!("{} can't be executed: {why}", file.display()))
        }
        None => ExecError::Absent(format!("{shown}: program not found in PATH")),
    })
}

/// The file that the kernel starts for this one. An unreadable file is treated as an ordinary
/// program.
fn image(path: &Path, scripts: usize) -> (PathBuf, Kind) {
    let here = |kind| (path.to_path_buf(), kind);
    let mut head = [0; 256];
    let Ok(file) = std::fs::File::open(path) else { return here(Kind::Dynamic(String::new())) };
    let len = file.read_at(&mut head, 0).unwrap_or(0);
    let head = head.get(..len).unwrap_or_default();
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        return match words.next().filter(|_| scripts > 0) {
            Some(word) => image(Path::new(OsStr::from_bytes(word)), scripts - 1),
            None => here(Kind::Text),
        };
    }
    here(kind(&file, head))
}

/// Reads an ELF file's header and program headers (elf(5)).
fn kind(file: &std::fs::File, head: &[u8]) -> Kind {
    /// Offsets in the 64-bit header and in a program header.
    const MACHINE: usize = 18;
    const TABLE: usize = 32;
    const SIZE_AND_COUNT: usize = 54;
    const PT_INTERP: u32 = 3;
    if !head.starts_with(b"\x7fELF") {
        return Kind::Text;
    }
    let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    // ELFCLASS64 and ELFDATA2LSB.
    if head.get(4..6) != Some(&[2, 1]) || number(head, MACHINE) != Some(u64::from(machine)) {
        return Kind::Foreign;
    }
    let table = head.get(TABLE..TABLE + 8).and_then(|bytes| Some(le(bytes.try_into().ok()?)));
    let size = number(head, SIZE_AND_COUNT);
    let count = number(head, SIZE_AND_COUNT + 2);
    let (Some(table), Some(size), Some(count)) = (table, size, count) else {
        return Kind::Foreign;
    };
    for n in 0..count {
        let mut entry = [0; 56];
        if file.read_exact_at(&mut entry, table.saturating_add(n * size)).is_err() {
            break;
        }
        let [a, b, c, d, ..] = entry;
        if u32::from_le_bytes([a, b, c, d]) == PT_INTERP {
            let at = entry.get(8..16).and_then(|bytes| Some(le(bytes.try_into().ok()?)));
            let mut name = [0; 128];
            let len = file.read_at(&mut name, at.unwrap_or(0)).unwrap_or(0);
            let name = name.get(..len).unwrap_or_default().split(|byte| *byte == 0).next();
            return Kind::Dynamic(String::from_utf8_lossy(name.unwrap_or_default()).into_owned());
        }
    }
    Kind::Static
}

/// The objects that an ELF file is linked to, in their order (elf(5), `DT_NEEDED`).
fn needed(image: &Path) -> Option<Vec<Vec<u8>>> {
    const PT_LOAD: u64 = 1;
    const PT_DYNAMIC: u64 = 2;
    const DT_NEEDED: u64 = 1;
    const DT_STRTAB: u64 = 5;
    /// No program has more entries, whatever a damaged file says.
    const MOST: u64 = 4096;
    let file = std::fs::File::open(image).ok()?;
    let word = |at: u64, more: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at.checked_add(more)?).ok()?;
        Some(le(bytes))
    };
    let (table, sizes) = (word(0, 32)?, word(0, 54)?);
    let (size, count) = (sizes & 0xffff, sizes >> 16 & 0xffff);
    // Kind, place in the file, address, and length in the file.
    let part = |n: u64| {
        let at = table.checked_add(n * size)?;
        Some([word(at, 0)? & 0xffff_ffff, word(at, 8)?, word(at, 16)?, word(at, 32)?])
    };
    let parts: Vec<[u64; 4]> = (0..count).map_while(part).collect();
    let [_, dynamic, _, length] = *parts.iter().find(|part| part[0] == PT_DYNAMIC)?;
    let entry = |n: u64| Some((word(dynamic, n * 16)?, word(dynamic, n * 16 + 8)?));
    let entries: Vec<(u64, u64)> = (0..MOST.min(length / 16)).map_while(entry).collect();
    let names = entries.iter().find(|(tag, _)| *tag == DT_STRTAB)?.1;
    let holds = |part: &&[u64; 4]| {
        part[0] == PT_LOAD && names.checked_sub(part[2]).is_some_and(|into| into < part[3])
    };
    let [_, place, address, _] = *parts.iter().find(holds)?;
    let names = place.checked_add(names - address)?;
    let name = |at: u64| {
        let mut name = [0; 128];
        let len = file.read_at(&mut name, names.checked_add(at)?).ok()?;
        name.get(..len)?.split(|byte| *byte == 0).next().map(<[u8]>::to_vec)
    };
    let needed =
        entries.iter().take_while(|(tag, _)| *tag != 0).filter(|(tag, _)| *tag == DT_NEEDED);
    Some(needed.filter_map(|(_, at)| name(*at)).collect())
}

fn le(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes)
}

fn number(head: &[u8], at: usize) -> Option<u64> {
    let bytes: [u8; 2] = head.get(at..at + 2)?.try_into().ok()?;
    Some(u64::from(u16::from_le_bytes(bytes)))
}

/// The privilege that this user gains by starting it, which makes the kernel set AT_SECURE
/// (getauxval(3)). None on a nosuid mount.
fn rights(image: &Path) -> Option<&'static str> {
    const SET_USER: u32 = 0o4000;
    /// Group execute permission: without it, the set-group-ID bit has no effect.
    const SET_GROUP: u32 = 0o2010;
    let about = std::fs::metadata(image).ok()?;
    let mount = rustix::fs::statvfs(image).ok()?;
    if mount.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID) {
        return None;
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if about.mode() & SET_USER != 0 && about.uid() != user.as_raw() {
        return Some("runs as another user (set-user-ID)");
    }
    if about.mode() & SET_GROUP == SET_GROUP && about.gid() != group.as_raw() {
        return Some("runs as another group (set-group-ID)");
    }
    let capable = rustix::fs::getxattr(image, "security.capability", &mut [0_u8; 64]);
    (!user.is_root() && capable.is_ok()).then_some("has file capabilities (capabilities(7))")
}
