//! Programs that have rights which their caller lacks: a set-user-ID program, and one with file
//! capabilities. No variable of the caller's may have an effect there, and no object of the
//! caller's may be loaded.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpuio_guard::objects::environment::NAMING;

use crate::example::built;
use crate::exec::{cc, compile};
use crate::tool::{
    GPUIO, Ran, Scratch, command, copy_program, finish, is_root, plain, scratch, skip,
};

/// The caller: a user without rights.
const CALLER: u32 = 1000;

/// Its constructor shows that it was loaded.
const LOADED: &str = r#"
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
  close(open(MARK, O_CREAT | O_WRONLY, 0666));
}
"#;

/// A program that reads and writes a file through cuFile, and says whether it has more rights.
const CLIENT: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
struct answer { int code, cuda; };
struct file { int kind; union { int fd; void *handle; } of; const void *system; };
struct answer cuFileDriverOpen(void);
struct answer cuFileHandleRegister(void **, struct file *);
long cuFileRead(void *, void *, unsigned long, long, long);
int main(int argc, char **argv) {
  static char bytes[4096];
  struct file file = {1};
  void *handle = 0;
  printf("secure %lu\n", getauxval(AT_SECURE));
  cuFileDriverOpen();
  file.of.fd = open(argv[1], O_RDONLY);
  cuFileHandleRegister(&handle, &file);
  cuFileRead(handle, bytes, sizeof bytes, 0, 0);
  return 0;
}
"#;

/// Loads the library and starts the program, as far as they are found.
const SCRIPT: &str = "
import sys
sys.path.insert(0, sys.argv[1])
import gpuio
for call in (gpuio.gpus, lambda: gpuio._program._run(['list'])):
    try:
        call()
    except Exception as error:
        print(error)
";

/// How a program gets its rights.
#[derive(Debug, Clone, Copy)]
enum Rights {
    None,
    SetUser,
    Capability,
}

/// Which program reads a variable.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reader {
    Gpuio(&'static str),
    /// The program that is linked to the drop-in.
    Client,
    Python,
}

/// The sign that a variable had an effect.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// The object or program that it names has run.
    Ran,
    /// This exists below the caller's directory.
    Made(&'static str),
    /// A message has these words.
    Said(&'static str),
}

/// A variable with a value below the caller's directory, what is set beside it, and what reads it.
struct Row {
    name: &'static str,
    value: &'static str,
    beside: &'static [(&'static str, &'static str)],
    reader: Reader,
    sign: Sign,
}

const fn row(
    name: &'static str,
    value: &'static str,
    beside: &'static [(&'static str, &'static str)],
    reader: Reader,
    sign: Sign,
) -> Row {
    Row { name, value, beside, reader, sign }
}

const LIST: Reader = Reader::Gpuio("list");
const SMALL: Reader = Reader::Gpuio("bench --path host --rw write --size 1m --runtime 50ms");
/// It has a configuration for cuFile, and a journal.
const CUFILE: Reader =
    Reader::Gpuio("bench --gpu software --path gds --rw read --size 1m --runtime 50ms");
const EXEC: Reader = Reader::Gpuio("exec -- true");
const RANKS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "0"),
    ("OMPI_COMM_WORLD_SIZE", "2"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
];
/// Another driver would have its own reasons to fail.
const OURS: (&str, &str) = ("GPUIO_CUFILE", "gpuio");
const LOUD: [(&str, &str); 2] = [OURS, ("CUFILE_LOGGING_LEVEL", "TRACE")];

/// Every variable of [`NAMING`].
const ROWS: [Row; NAMING.len()] = [
    row("CONDA_PREFIX", "env", &[], LIST, Sign::Ran),
    row("CUFILE_ENV_PATH_JSON", "cufile.json", &[OURS], Reader::Client, Sign::Made("logs")),
    row("CUFILE_LOGFILE_PATH", "made", &LOUD, Reader::Client, Sign::Made("made")),
    row(
        "GPUIO_CHROMIUM",
        "program",
        &[],
        Reader::Gpuio("report r.json --format pdf -o r.pdf"),
        Sign::Ran,
    ),
    row("GPUIO_CONFIG", "config/gpuio/config", &[], LIST, Sign::Said("nonsense")),
    row("GPUIO_CUFILE_DRIVER", "planted.so", &[OURS], Reader::Client, Sign::Ran),
    row("GPUIO_CUFILE_LIB", "planted.so", &[("GPUIO_CUFILE", "nvidia")], Reader::Client, Sign::Ran),
    row("GPUIO_CUFILE_RECORD", "made", &[OURS], Reader::Client, Sign::Made("made")),
    row("GPUIO_DIRECTORY", "directory", &[], SMALL, Sign::Said("by GPUIO_DIRECTORY")),
    row(
        "GPUIO_LIBCUDA",
        "planted.so",
        &[],
        Reader::Gpuio("bench --path staged --rw read --size 1m --runtime 50ms"),
        Sign::Ran,
    ),
    row("GPUIO_LIBGPUIO", "planted.so", &[], Reader::Python, Sign::Ran),
    row("GPUIO_PAGES", "pages", &[], Reader::Gpuio("stats"), Sign::Said("pages need one")),
    row("GPUIO_PROGRAM", "program", &[], Reader::Python, Sign::Ran),
    row("GPUIO_MPI", "planted.so", &RANKS, SMALL, Sign::Ran),
    row("HOME", "home", &[], LIST, Sign::Said("nonsense")),
    row("LD_LIBRARY_PATH", "env/lib", &[], LIST, Sign::Ran),
    row("LD_PRELOAD", "planted.so", &[], LIST, Sign::Ran),
    row("PATH", "", &[], Reader::Gpuio("exec -- program"), Sign::Ran),
    row("TMPDIR", "gone", &[], CUFILE, Sign::Said("check TMPDIR")),
    row("VIRTUAL_ENV", "env", &[], LIST, Sign::Ran),
    row("XDG_CACHE_HOME", "made", &[], EXEC, Sign::Made("made")),
    row("XDG_CONFIG_HOME", "config", &[], LIST, Sign::Said("nonsense")),
    row("XDG_RUNTIME_DIR", "made", &[], EXEC, Sign::Made("made")),
    row("XDG_STATE_HOME", "made", &[], CUFILE, Sign::Made("made")),
];

/// The programs, root's, and a directory of the caller's.
struct Ground {
    root: Scratch,
}

impl Ground {
    /// `None` where such programs can't be made, which is said.
    fn new() -> Option<Ground> {
        if !is_root() {
            skip("only root can make programs that have other rights");
            return None;
        }
        let cc = cc()?;
        let ground = Ground { root: scratch() };
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        mode(ground.root.path(), 0o755);
        let flags = rustix::fs::statvfs(ground.root.path()).unwrap().f_flag;
        if flags.contains(rustix::fs::StatVfsMountFlags::NOSUID) {
            skip("the tests' directory is mounted with nosuid");
            return None;
        }
        for directory in ["bin", "lib/gpuio", "driver", "caller"] {
            std::fs::create_dir_all(ground.at(directory)).unwrap();
        }
        copy_program(GPUIO.as_ref(), &ground.at("bin/gpuio"));
        for (from, to) in [
            ("libcufile.so", "libcufile.so.0"),
            ("libgpuio_softgpu.so", "libgpuio_softgpu.so"),
            ("libgpuio_softcufile.so", "libgpuio_softcufile.so"),
        ] {
            std::fs::copy(built(from), ground.at("lib/gpuio").join(to)).unwrap();
        }
        let object = ground.at("lib/gpuio/libcufile.so.0");
        // The client's own path also leads to a driver, so that the library starts.
        std::fs::copy(built("libgpuio_softgpu.so"), ground.at("driver/libcuda.so.1")).unwrap();
        let paths = [ground.at("lib/gpuio"), ground.at("driver")];
        let paths = paths.map(|path| format!("-Wl,-rpath,{}", path.display()));
        let flags = [object.to_str().unwrap(), "-Wl,--disable-new-dtags", &paths[0], &paths[1]];
        compile(&cc, &ground.at("bin/client"), CLIENT, &flags);
        if let Some(python) = python() {
            copy_program(&python, &ground.at("bin/python"));
        }
        ground.plant(&cc);
        Some(ground)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Everything that the rows name, in the caller's directory.
    fn plant(&self, cc: &Path) {
        let own = self.at("caller");
        let mark = format!("-DMARK=\"{}\"", own.join("mark").display());
        compile(cc, &own.join("planted.so"), LOADED, &["-shared", "-fPIC", &mark]);
        let wheel = own.join("env/lib/python3/site-packages/nvidia/cufile/lib");
        for directory in [&wheel, &own.join("env/lib")] {
            std::fs::create_dir_all(directory).unwrap();
            for name in ["libcufile.so.0", "libcuda.so.1"] {
                symlink(own.join("planted.so"), directory.join(name)).unwrap();
            }
        }
        let program = format!("#!/bin/sh\n: >{}\n", own.join("mark").display());
        std::fs::write(own.join("program"), program).unwrap();
        for directory in ["config/gpuio", "home/.config/gpuio", "logs", "directory"] {
            std::fs::create_dir_all(own.join(directory)).unwrap();
        }
        for config in ["config/gpuio/config", "home/.config/gpuio/config"] {
            std::fs::write(own.join(config), "nonsense = 1\n").unwrap();
        }
        let logs = own.join("logs");
        let json = format!("{{\"logging\": {{\"dir\": {logs:?}, \"level\": \"TRACE\"}}}}");
        std::fs::write(own.join("cufile.json"), json).unwrap();
        std::fs::write(own.join("data"), [7; 4096]).unwrap();
        std::fs::create_dir(own.join("pages")).unwrap();
        std::fs::write(own.join(format!("pages/gpuio-{CALLER}")), "no directory").unwrap();
        let mut bench = command(&own);
        bench.env("XDG_STATE_HOME", self.at("state"));
        bench.args("bench --path host --rw write --size 1m --runtime 50ms -o r.json".split(' '));
        finish(&mut bench).exits(0);
        for path in crate::tool::tree(&own) {
            let mode = PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(own.join(&path), mode).unwrap();
            rustix::fs::chown(own.join(path), user(), group()).unwrap();
        }
        chown(&own, Some(CALLER), Some(CALLER)).unwrap();
    }

    /// The reader with these rights, as the caller starts it.
    fn command(&self, reader: Reader, rights: Rights) -> Command {
        let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python");
        let (program, words) = match reader {
            Reader::Gpuio(words) => ("bin/gpuio", words.split(' ').collect()),
            Reader::Client => ("bin/client", vec!["data"]),
            Reader::Python => ("bin/python", vec!["-B", "-c", SCRIPT, module]),
        };
        give(&self.at(program), rights);
        let mut command = plain(self.at(program));
        command.current_dir(self.at("caller")).args(words).uid(CALLER).gid(CALLER);
        command.env_clear().env("PATH", "/usr/bin:/bin");
        command
    }

    /// Runs a row. Whether its variable had an effect; and removes what shows that.
    fn effect(&self, row: &Row, rights: Rights) -> (bool, Ran) {
        self.effect_for(row, rights, CALLER)
    }

    fn effect_for(&self, row: &Row, rights: Rights, uid: u32) -> (bool, Ran) {
        let own = self.at("caller");
        let mut command = self.command(row.reader, rights);
        command.uid(uid).env("TMPDIR", own.join("directory"));
        if row.name != "HOME" && row.name != "XDG_RUNTIME_DIR" {
            command.env("HOME", self.at("nowhere"));
        }
        let ran =
            finish(command.envs(row.beside.iter().copied()).env(row.name, own.join(row.value)));
        let made = |name: &str| {
            let path = own.join(name);
            if name == "logs" {
                let logs: Vec<_> = std::fs::read_dir(path).unwrap().flatten().collect();
                logs.iter().for_each(|log| std::fs::remove_file(log.path()).unwrap());
                return !logs.is_empty();
            }
            let there = path.exists();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap();
            } else if there {
                std::fs::remove_file(path).unwrap();
            }
            there
        };
        let effect = match row.sign {
            Sign::Ran => made("mark"),
            Sign::Said(words) => ran.err.contains(words),
            Sign::Made(name) => made(name),
        };
        made("made");
        (effect, ran)
    }
}

/// The file of a Python, if there is one.
fn python() -> Option<PathBuf> {
    let script = "import os, sys; print(os.path.realpath(sys.executable))";
    let ran = plain(gpuio_testkit::programs::python()).args(["-c", script]).output().ok()?;
    let file = String::from_utf8(ran.stdout).ok()?;
    ran.status.success().then(|| PathBuf::from(file.trim()))
}

fn user() -> Option<rustix::fs::Uid> {
    Some(rustix::fs::Uid::from_raw(CALLER))
}

fn group() -> Option<rustix::fs::Gid> {
    Some(rustix::fs::Gid::from_raw(CALLER))
}

/// Sets a program's rights.
fn give(program: &Path, rights: Rights) {
    /// `struct vfs_cap_data` with CAP_DAC_OVERRIDE permitted and effective (linux/capability.h).
    const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const NAME: &str = "security.capability";
    let _ = rustix::fs::removexattr(program, NAME);
    let mode = if matches!(rights, Rights::SetUser) { 0o4755 } else { 0o755 };
    std::fs::set_permissions(program, PermissionsExt::from_mode(mode)).unwrap();
    if matches!(rights, Rights::Capability) {
        rustix::fs::setxattr(program, NAME, &CAPABILITY, rustix::fs::XattrFlags::empty()).unwrap();
    }
}

#[test]
fn no_variable_has_an_effect_where_the_program_has_more_rights() {
    let Some(ground) = Ground::new() else { return };
    let mut names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    names.sort_unstable();
    assert_eq!(names, NAMING);
    for row in &ROWS {
        if row.reader == Reader::Python && !ground.at("bin/python").exists() {
            skip("no Python here (GPUIO_TEST_PYTHON names one)");
            continue;
        }
        let (effect, ran) = ground.effect(row, Rights::None);
        assert!(effect, "{} has no effect without rights, so nothing is shown: {ran:#?}", row.name);
        for rights in [Rights::SetUser, Rights::Capability] {
            let (effect, ran) = ground.effect(row, rights);
            assert!(!effect, "{} has an effect with {rights:?}: {ran:#?}", row.name);
            if row.reader == Reader::Client {
                assert_eq!(ran.out, "secure 1\n", "{ran:#?}");
            } else if row.name.starts_with("GPUIO_") && row.reader != Reader::Python {
                assert!(ran.err.contains("reads no variable") && ran.err.contains(row.name));
            }
        }
    }
}

/// Every place where gpuio looks for its own objects, with an object of another user's: beside it,
/// and one level up, in a directory where anybody can make files.
#[test]
fn objects_of_other_users_are_passed_over_wherever_gpuio_looks() {
    let Some(ground) = Ground::new() else { return };
    let open = ground.at("open");
    let program = open.join("sub/gpuio");
    std::fs::create_dir_all(open.join("sub")).unwrap();
    copy_program(GPUIO.as_ref(), &program);
    for cargos in [&open, &open.join("sub")] {
        std::fs::create_dir(cargos.join(".fingerprint")).unwrap();
        std::fs::set_permissions(cargos, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    let mark = ground.at("caller/mark");
    for place in ["sub", "sub/deps", "deps", "lib/gpuio"] {
        for name in ["libgpuio_softgpu.so", "libcufile.so.0"] {
            let (place, file) = (open.join(place), open.join(place).join(name));
            let made = !place.exists();
            std::fs::create_dir_all(&place).unwrap();
            std::fs::copy(ground.at("caller/planted.so"), &file).unwrap();
            let words = if name == "libcufile.so.0" { "exec -- true" } else { "list" };
            let list = |owner| {
                if made {
                    chown(&place, Some(owner), None).unwrap();
                }
                chown(&file, Some(owner), None).unwrap();
                let mut command = plain(&program);
                command.current_dir(ground.root.path()).args(words.split(' '));
                finish(command.env("XDG_CACHE_HOME", ground.at("cache")))
            };
            let ran = list(CALLER);
            assert!(!mark.exists(), "{} was loaded: {ran:#?}", file.display());
            let refused = format!("{name} is not loaded");
            assert!(ran.err.contains(&refused), "{ran:#?}");
            let whose = format!("belongs to user {CALLER}");
            let why = if made { &whose } else { "mode 1777" };
            assert!(ran.err.contains(why), "{ran:#?}");
            // Root's own, in a directory where nobody else writes, is used.
            if made && name != "libcufile.so.0" {
                list(0);
                assert!(mark.exists(), "{} was not loaded", file.display());
                std::fs::remove_file(&mark).unwrap();
            }
            std::fs::remove_file(&file).unwrap();
            if made {
                std::fs::remove_dir_all(&place).unwrap();
            }
        }
    }
}

/// root, with variables of another user (`sudo -E`, `su`).
#[test]
fn what_a_variable_names_is_loaded_only_if_others_can_not_change_it() {
    let Some(ground) = Ground::new() else { return };
    let objects = ["planted.so", "env"];
    let rows = ROWS.iter().filter(|row| {
        objects.contains(&row.value)
            && matches!(row.sign, Sign::Ran)
            && row.reader != Reader::Python
            && row.name != "LD_PRELOAD"
    });
    let mut count = 0;
    for row in rows {
        let (effect, ran) = ground.effect_for(row, Rights::None, 0);
        assert!(!effect, "{}: {ran:#?}", row.name);
        let named = row.value == "planted.so" && row.reader != Reader::Client;
        assert!(!named || ran.err.contains("is not loaded"), "{}: {ran:#?}", row.name);
        count += 1;
    }
    assert_eq!(count, 6);
}

/// Links that `exec` makes are in no directory that another user can change.
#[test]
fn links_for_exec_are_not_made_in_another_users_cache() {
    let Some(ground) = Ground::new() else { return };
    for (name, value) in [("XDG_CACHE_HOME", "made"), ("HOME", "directory")] {
        for uid in [CALLER, 0] {
            let mut command = ground.command(Reader::Gpuio("exec --env"), Rights::None);
            command.uid(uid).env("XDG_RUNTIME_DIR", ground.at("runtime"));
            let ran = finish(command.env(name, ground.at("caller").join(value))).exits(0);
            let used = ran.out.contains(ground.at("caller").to_str().unwrap());
            assert_eq!(used, uid == CALLER, "{name}: {ran:#?}");
        }
    }
}
