//! The program: where it lies, and whether the loader will heed what it is given.

use std::ffi::OsStr;
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// The kernel follows that many scripts whose interpreter is a script (Linux, fs/exec.c).
const SCRIPTS: usize = 4;

/// A file that can be executed.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// What the kernel starts in the end: the program, or the interpreter of a script.
    image: PathBuf,
    kind: Kind,
}

/// What the loader does for an image (elf(5)).
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// Loads objects, for this machine's kind of programs; with the loader's path.
    Dynamic(String),
    /// There is no loader.
    Static,
    /// For another kind of machine: its loader skips our object.
    Foreign,
    /// No ELF file: a shell runs it.
    Text,
}

/// Why a program can't be started.
#[derive(Debug)]
pub(crate) enum Missing {
    /// There is none: 127.
    Absent(String),
    /// It can't be executed: 126.
    Refused(String),
}

impl Missing {
    /// Of the system's answer to execve(2).
    pub(crate) fn refused(path: &Path, error: &std::io::Error) -> Missing {
        let what = format!("{}: {error}", path.display());
        match error.kind() {
            ErrorKind::NotFound => Missing::Absent(format!("{what}, or its interpreter")),
            _ => Missing::Refused(what),
        }
    }

    /// As env(1) and POSIX shells have it.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Missing::Absent(_) => 127,
            Missing::Refused(_) => 126,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Missing::Absent(what) | Missing::Refused(what)) = self;
        f.write_str(what)
    }
}

impl Program {
    /// By its path, or a bare name in the directories of `PATH` (execvp(3)).
    pub(crate) fn find(name: &OsStr) -> Result<Program, Missing> {
        let list = std::env::var_os("PATH").unwrap_or("/bin:/usr/bin".into());
        let path = lying(name, &std::env::split_paths(&list).collect::<Vec<_>>())?;
        let (image, kind) = image(&path, SCRIPTS);
        Ok(Program { path, image, kind })
    }

    /// Why the program could not see the library at all.
    pub(crate) fn hidden(&self) -> Option<String> {
        let why = rights(&self.image)?;
        Some(format!(
            "{} {why}, so the loader ignores LD_PRELOAD and takes it away (ld.so(8), \
             \"secure-execution mode\"), and programs that it starts do not get it either. Turn \
             the order round, such as: sudo gpuio exec -- PROGRAM",
            self.image.display()
        ))
    }

    /// What the program will not see, though others that it starts may.
    pub(crate) fn note(&self) -> Option<String> {
        let image = self.image.display();
        match &self.kind {
            Kind::Dynamic(loader) if loader.contains("ld-musl") => Some(format!(
                "{image} uses musl ({loader}), and gpuio's libcufile.so.0 is made for glibc: the \
                 program may not start"
            )),
            Kind::Static => Some(format!(
                "{image} is linked statically: it loads no library, gpuio's neither; programs \
                 that it starts do"
            )),
            Kind::Foreign => Some(format!(
                "{image} is for another kind of machine than gpuio: its loader skips gpuio's \
                 library; programs that it starts may take it"
            )),
            Kind::Dynamic(_) | Kind::Text => None,
        }
    }
}

fn lying(name: &OsStr, path: &[PathBuf]) -> Result<PathBuf, Missing> {
    let shown = name.display();
    let executable = |file: &Path| match rustix::fs::access(file, Access::EXEC_OK) {
        Ok(()) if file.is_file() => Ok(()),
        Ok(()) => Err("it is no file".to_owned()),
        Err(error) => Err(std::io::Error::from(error).to_string()),
    };
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return match (file.exists(), executable(&file)) {
            (true, Ok(())) => Ok(file),
            (false, _) => Err(Missing::Absent(format!("{shown}: no such file"))),
            (true, Err(why)) => Err(Missing::Refused(format!("{shown} can't be executed: {why}"))),
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
            Missing::Refused(format!("{} can't be executed: {why}", file.display()))
        }
        None => Missing::Absent(format!("{shown}: no such program in PATH")),
    })
}

/// What the kernel starts for this file. What can't be read is taken for a program like most.
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
    /// Offsets in the header of 64 bits, and in a program header.
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

fn le(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes)
}

fn number(head: &[u8], at: usize) -> Option<u64> {
    let bytes: [u8; 2] = head.get(at..at + 2)?.try_into().ok()?;
    Some(u64::from(u16::from_le_bytes(bytes)))
}

/// The right that this user gains by starting it, which makes the kernel set AT_SECURE
/// (getauxval(3)): none on a mount without set-user-ID.
fn rights(image: &Path) -> Option<&'static str> {
    const SET_USER: u32 = 0o4000;
    /// The group's, with the right to execute: without it the bit is of no effect here.
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
