//! `gpuio exec`: real programs find gpuio's cuFile library before any other.
//!
//! The libraries are three lines of C, so that the output is which of them answers. gpuio runs
//! from a directory of the test's own, laid out as an installed program is.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

pub(crate) use gpuio_testkit::programs::cc;

use crate::tool::{
    GPUIO, Ran, Scratch, copy_program, finish, is_root, other, plain, scratch, skip, wait,
};

/// The directory, `bin/gpuio` in it, and `lib/gpuio` with a library that says "ours".
struct Installed {
    root: Scratch,
}

/// A cuFile library whose version is `version`.
fn library(cc: &Path, file: &Path, version: u32, more: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = format!(
        "struct answer {{ int code, cuda; }};\n\
         const char *const who_am_i = \"{more}\";\n\
         struct answer cuFileGetVersion(int *version) {{\n\
           struct answer fine = {{0, 0}};\n\
           *version = {version};\n\
           return fine;\n\
         }}\n"
    );
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libcufile.so.0"];
    compile(cc, file, &text, &flags);
}

pub(crate) fn compile(cc: &Path, file: &Path, text: &str, flags: &[&str]) {
    let source = file.with_extension("c");
    std::fs::write(&source, text).unwrap();
    let mut command = plain(cc);
    command.arg(&source).arg("-o").arg(file).args(flags);
    finish(&mut command).exits(0);
    std::fs::remove_file(source).unwrap();
}

impl Installed {
    fn new(cc: Option<&Path>) -> Installed {
        let root = scratch();
        let place = |name: &str| root.path().join(name);
        std::fs::create_dir_all(place("bin")).unwrap();
        if std::fs::hard_link(GPUIO, place("bin/gpuio")).is_err() {
            copy_program(GPUIO.as_ref(), &place("bin/gpuio"));
        }
        if let Some(cc) = cc {
            library(cc, &place("lib/gpuio/libcufile.so.0"), 1, "reads GPUIO_CUFILE");
            let link = place("lib/gpuio/libcufile.so");
            std::os::unix::fs::symlink("libcufile.so.0", link).unwrap();
            library(cc, &place("theirs/libcufile.so.0"), 2, "theirs");
            std::os::unix::fs::symlink("libcufile.so.0", place("theirs/libcufile.so")).unwrap();
        }
        Installed { root }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn gpuio(&self) -> Command {
        let mut command = other(self.root.path(), self.place("bin/gpuio"));
        command.current_dir(self.root.path());
        command.env_remove("LD_PRELOAD").env_remove("LD_LIBRARY_PATH");
        command.env("XDG_CACHE_HOME", self.place("cache")).arg("exec");
        command
    }

    #[track_caller]
    fn exec(&self, words: &[&str]) -> Ran {
        finish(self.gpuio().args(words))
    }
}

/// Prints the version that its library tells: linked, or by dlopen where a name is given.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
struct answer { int code, cuda; };
struct answer cuFileGetVersion(int *version);
int main(int argc, char **argv) {
  int version = 0;
  struct answer (*call)(int *) = cuFileGetVersion;
  if (argc > 1) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) { puts(dlerror()); return 1; }
    call = (struct answer (*)(int *))dlsym(library, "cuFileGetVersion");
  }
  call(&version);
  printf("%d\n", version);
  return 0;
}
"#;

#[test]
fn linked_programs_get_ours_whatever_their_own_path_says() {
    let Some(cc) = cc() else { return };
    let here = Installed::new(Some(&cc));
    let theirs = here.place("theirs");
    let (find, path) =
        (format!("-L{}", theirs.display()), format!("-Wl,-rpath,{}", theirs.display()));
    for (name, tags) in
        [("rpath", "-Wl,--disable-new-dtags"), ("runpath", "-Wl,--enable-new-dtags")]
    {
        let program = here.place(name);
        compile(&cc, &program, PROGRAM, &[&find, "-l:libcufile.so.0", &path, tags, "-ldl"]);
        assert_eq!(
            finish(&mut other(here.root.path(), &program)).exits(0).out,
            "2\n",
            "{name} without exec"
        );
        let mut behind = here.gpuio();
        behind.env("LD_LIBRARY_PATH", &theirs).arg(&program);
        assert_eq!(finish(&mut behind).exits(0).out, "1\n", "{name}");
        let program = program.to_str().unwrap();
        let dlopen = |name: &str| here.exec(&["--", program, name]).exits(0).out;
        assert_eq!(dlopen("libcufile.so.0"), "1\n", "{name}");
        // This name is not the SONAME, so it is looked for, and DT_RPATH comes before
        // LD_LIBRARY_PATH (ld.so(8)): docs/cufile.md says so.
        let unversioned = if name == "rpath" { "2\n" } else { "1\n" };
        assert_eq!(dlopen("libcufile.so"), unversioned, "{name}");
    }
}

#[test]
fn python_gets_one_library_by_both_names() {
    let Some(cc) = cc() else { return };
    let here = Installed::new(Some(&cc));
    let script = "\
import ctypes
for name in ('libcufile.so', 'libcufile.so.0', None):
    library = ctypes.CDLL(name)
    version = ctypes.c_int()
    library.cuFileGetVersion(ctypes.byref(version))
    print(version.value, ctypes.cast(library.cuFileGetVersion, ctypes.c_void_p).value)
";
    let ran = here.exec(&["python3", "-c", script]);
    if ran.code == 127 {
        return skip("no python3 here");
    }
    let ran = ran.exits(0);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 3, "{ran:?}");
    assert!(lines[0].starts_with("1 ") && lines.iter().all(|line| *line == lines[0]), "{lines:?}");
}

/// Cargo's directories, and installations beside other libraries, are not put into the path.
#[test]
fn a_library_among_others_is_reached_by_links() {
    let Some(cc) = cc() else { return };
    let here = Installed::new(Some(&cc));
    std::fs::write(here.place("lib/gpuio/libstdc++.so.6"), "no shared library").unwrap();
    let program = here.place("program");
    let find = format!("-L{}", here.place("theirs").display());
    compile(&cc, &program, PROGRAM, &[&find, "-l:libcufile.so.0", "-ldl"]);
    let program = program.to_str().unwrap();
    for words in [&[program][..], &[program, "libcufile.so"], &[program, "libcufile.so.0"]] {
        assert_eq!(here.exec(words).exits(0).out, "1\n", "{words:?}");
    }
    let ran = here.exec(&["--env"]).exits(0);
    assert!(ran.out.contains("/cache/gpuio/cufile-") && !ran.out.contains("lib/gpuio"), "{ran:?}");
}

#[test]
fn the_program_takes_gpuios_place() {
    let Some(cc) = cc() else { return };
    let here = Installed::new(Some(&cc));
    // Its number, its arguments as they are, its name as it was called, and its exit code.
    let began = Instant::now();
    let script = "echo $$; echo \"$0\" \"$1\"; exit 42";
    let mut command = here.gpuio();
    command.env("GPUIO_CUFILE_DRIVER", "software");
    command.args(["--", "sh", "-c", script, "-v", "a b"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let number = child.id();
    let ran = wait(child, began).exits(42);
    assert_eq!(ran.out, format!("{number}\n-v a b\n"));
    assert_eq!(ran.err, "", "nothing is said unless asked");
    // A signal ends it as it would without gpuio.
    assert_eq!(here.exec(&["sh", "-c", "kill -TERM $$"]).code, -15);
}

#[test]
fn what_it_does_is_reported_or_printed() {
    let Some(cc) = cc() else { return };
    let here = Installed::new(Some(&cc));
    let mut command = here.gpuio();
    command.env("GPUIO_CUFILE_DRIVER", "/none/libcuda.so.1");
    command.args(["-v", "--cufile", "gpuio", "sh", "-c", "echo $GPUIO_CUFILE"]);
    let said = finish(&mut command).exits(0);
    assert_eq!(said.out, "gpuio\n");
    // Without a driver calls answer a number alone, so the reason is here.
    assert_eq!(said.err.lines().count(), 2, "{said:?}");
    assert!(said.err.contains("5011") && said.err.contains("/none/libcuda.so.1"), "{said:?}");
    assert!(said.err.contains("gpuio exec --gpu software (GPUIO_CUFILE_DRIVER"), "{said:?}");
    let said = said.prints(&["lib/gpuio/libcufile.so.0", "GPUIO_CUFILE=gpuio", "/sh"]);
    drop(said);
    // Where there are no devices it is said without -v, too: once.
    if !["/dev/nvidiactl", "/dev/dxg"].iter().any(|file| Path::new(file).exists()) {
        let mut command = here.gpuio();
        command.env("GPUIO_CUFILE_DRIVER", "/none/libcuda.so.1").args(["sh", "-c", "echo done"]);
        let said = finish(&mut command).exits(0);
        assert_eq!((&*said.out, said.err.lines().count()), ("done\n", 1), "{said:?}");
        assert!(said.err.contains("calls will answer 5011"), "{said:?}");
    }
    // The flag comes before the variable.
    let mut command = here.gpuio();
    command.env("GPUIO_CUFILE_DRIVER", "/none/libcuda.so.1");
    command.args(["--gpu", "software", "sh", "-c", "echo $GPUIO_CUFILE_DRIVER"]);
    assert_eq!(finish(&mut command).exits(0).out, "software\n");

    std::fs::write(here.place("cufile.json"), "{}").unwrap();
    let mut command = here.gpuio();
    command.env("LD_PRELOAD", "").env("GPUIO_CUFILE", "nvidia");
    let printed = finish(command.args(["--env", "--cufile-json", "cufile.json"])).exits(0);
    let shell = finish(plain("sh").args([
        "-c",
        "eval \"$1\"; echo \"$LD_PRELOAD|$LD_LIBRARY_PATH|$GPUIO_CUFILE|$CUFILE_ENV_PATH_JSON\"",
        "sh",
        &printed.out,
    ]));
    let lib = std::fs::canonicalize(here.place("lib/gpuio")).unwrap();
    let json = std::fs::canonicalize(here.place("cufile.json")).unwrap();
    let (lib, json) = (lib.display(), json.display());
    assert_eq!(shell.exits(0).out, format!("{lib}/libcufile.so.0|{lib}|nvidia|{json}\n"));
    let printed = here.exec(&["--env", "--json"]).exits(0).json();
    assert_eq!(printed["LD_LIBRARY_PATH"], lib.to_string());
}

#[test]
fn refusals_have_their_exit_codes() {
    let bare = Installed::new(None);
    bare.exec(&["true"]).exits(3).prints(&["libcufile.so.0", "lib/gpuio", "cargo build"]);
    let Some(cc) = cc() else { return };
    let here = Installed::new(Some(&cc));
    for words in
        [&[][..], &["--env", "true"], &["--json", "true"], &["--json"], &["--cufile", "x", "true"]]
    {
        here.exec(words).exits(2);
    }
    here.exec(&["--cufile-json", "gone.json", "true"]).exits(2).prints(&["gone.json"]);
    let mut command = here.gpuio();
    finish(command.env("GPUIO_CUFILE", "what").arg("true")).exits(2).prints(&["GPUIO_CUFILE=what"]);
    here.exec(&["--", "no-such-program"]).exits(127).prints(&["no-such-program", "PATH"]);
    here.exec(&["--", "./gone"]).exits(127).prints(&["./gone"]);
    here.exec(&["--", "./lib"]).exits(126).prints(&["./lib"]);
    std::fs::write(here.place("plain"), "echo").unwrap();
    here.exec(&["--", "./plain"]).exits(126).prints(&["./plain", "denied"]);
    std::fs::write(here.place("orphan"), "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(here.place("orphan"), PermissionsExt::from_mode(0o755)).unwrap();
    here.exec(&["--", "./orphan"]).exits(127).prints(&["./orphan", "interpreter"]);
}

/// The runtime of a sanitizer refuses to start behind another object.
#[test]
fn programs_with_a_sanitizer_start() {
    let Some(cc) = cc() else { return };
    let here = Installed::new(Some(&cc));
    let find = format!("-L{}", here.place("theirs").display());
    let program = here.place("program");
    std::fs::write(here.place("program.c"), PROGRAM).unwrap();
    let mut command = plain(&cc);
    command.arg(here.place("program.c")).arg("-o").arg(&program);
    command.args(["-fsanitize=address", "-shared-libasan", &find, "-lcufile", "-ldl"]);
    if finish(&mut command).code != 0 {
        // GCC has no such flag, and links the shared runtime anyway.
        let mut command = plain(&cc);
        command.arg(here.place("program.c")).arg("-o").arg(&program);
        command.args(["-fsanitize=address", &find, "-lcufile", "-ldl"]);
        if finish(&mut command).code != 0 {
            return skip("this compiler has no AddressSanitizer");
        }
    }
    let ran = here.exec(&["--", "./program"]).exits(0);
    assert_eq!(ran.out, "1\n", "{ran:#?}");
    // Preloaded, for a program that is not linked to it.
    let runtime = plain(&cc).arg("-print-file-name=libasan.so").output().unwrap();
    let runtime = String::from_utf8(runtime.stdout).unwrap();
    let runtime = std::fs::canonicalize(runtime.trim()).unwrap();
    let mut command = here.gpuio();
    command.env("LD_PRELOAD", runtime).env("ASAN_OPTIONS", "detect_leaks=0");
    finish(command.args(["--", "true"])).exits(0);
}

#[test]
fn programs_that_can_not_load_it_are_reported() {
    let Some(cc) = cc() else { return };
    let here = Installed::new(Some(&cc));
    let fixed = here.place("fixed");
    let text = "int main(void) { return 5; }\n";
    let source = fixed.with_extension("c");
    std::fs::write(&source, text).unwrap();
    let mut command = plain(&cc);
    if finish(command.arg("-static").arg(&source).arg("-o").arg(&fixed)).code == 0 {
        here.exec(&["--", "./fixed"]).exits(5).prints(&["note:", "statically"]);
    } else {
        skip("no static libc here");
    }
    if !is_root() {
        return skip("only root can make a program that runs as another user");
    }
    let other = here.place("other");
    compile(&cc, &other, text, &[]);
    // By way of a script, too: it is the interpreter that the kernel starts.
    let script = format!("#!{}\n", other.display());
    std::fs::write(here.place("script"), script).unwrap();
    std::fs::set_permissions(here.place("script"), PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&other, Some(65534), None).unwrap();
    std::fs::set_permissions(&other, PermissionsExt::from_mode(0o4755)).unwrap();
    for name in ["./other", "./script"] {
        here.exec(&["--", name]).exits(3).prints(&["set-user-ID", "LD_PRELOAD", "sudo"]);
    }
}
