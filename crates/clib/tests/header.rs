//! The headers and the shared object: what compilers of C and C++ make of them.
#![allow(unsafe_code, reason = "the interface under test is unsafe")]
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(clippy::print_stdout, reason = "a test says what it leaves out")]

mod rings;
mod support;

use std::process::{Command, Output};

use gpuio_testkit::repository;

use support::{DRIVER, built, dir, driver, file, random_bytes};

/// Runs a program, and returns what it printed; `None`, with a line, where it isn't here.
fn output(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("SKIPPED: no {} here", command.get_program().display());
            None
        }
        Err(error) => panic!("{command:?}: {error}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn compiler(flags: &[&str]) -> Command {
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]);
    compile.arg(repository("crates/clib/include")).arg("-I").arg(repository("examples/c"));
    compile.args(flags);
    compile
}

/// The names that the header declares as functions.
fn declared() -> Vec<String> {
    let header = std::fs::read_to_string(repository("crates/clib/include/gpuio.h")).unwrap();
    let mut code = String::new();
    for (nth, part) in header.split("/*").enumerate() {
        code += if nth == 0 { part } else { part.split_once("*/").unwrap().1 };
    }
    let mut names: Vec<String> = code
        .split('(')
        .filter_map(|before| before.rsplit(|one: char| !one.is_alphanumeric() && one != '_').next())
        .filter(|name| name.starts_with("gpuio_"))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn the_header_is_c_and_cpp() {
    let dir = dir();
    let source = dir.path().join("program");
    let program = "#include <gpuio.h>\n#include <gpuio.h>\n\
                   int main(void) { return gpuio_map_state(0) == GPUIO_MAP_WANTED; }\n";
    std::fs::write(&source, program).unwrap();
    for language in
        [["c", "-std=c11"], ["c", "-std=gnu17"], ["c++", "-std=c++11"], ["c++", "-std=c++20"]]
    {
        let mut compile = compiler(&["-fsyntax-only", "-x"]);
        let Some(output) = output(compile.args(language).arg(&source)) else { return };
        if text(&output.stderr).contains("cc1plus") {
            println!("SKIPPED: no C++ compiler here");
            continue;
        }
        assert!(output.status.success(), "{language:?}: {}", text(&output.stderr));
    }
}

#[test]
fn the_functions_of_the_header_are_exported_and_no_other() {
    let names = declared();
    assert_eq!(names.len(), 35, "{names:?}");
    let library = built("libgpuio.so");
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--format=posix"]).arg(&library);
    let Some(output) = output(&mut nm) else { return };
    let exported = text(&output.stdout);
    let mut exported: Vec<&str> =
        exported.lines().filter_map(|line| line.split(' ').next()).collect();
    exported.sort_unstable();
    assert_eq!(exported, names);
}

#[test]
fn the_shared_object_has_its_name_and_needs_no_cuda() {
    let mut readelf = Command::new("readelf");
    let Some(output) = output(readelf.arg("-dW").arg(built("libgpuio.so"))) else { return };
    let section = text(&output.stdout);
    assert!(section.contains("soname: [libgpuio.so.0]"), "{section}");
    assert!(section.contains("NODELETE"), "{section}");
    for needed in section.lines().filter(|line| line.contains("(NEEDED)")) {
        let known = ["libc.so", "libgcc_s.so", "libm.so", "ld-linux", "libpthread", "libdl"];
        assert!(known.iter().any(|known| needed.contains(known)), "{needed}");
    }
}

#[test]
fn the_example_reads_the_files_bytes() {
    let dir = dir();
    let (at, program) = (dir.path(), dir.path().join("map_file"));
    let library = built("libgpuio.so");
    std::os::unix::fs::symlink(&library, at.join("libgpuio.so.0")).unwrap();
    std::os::unix::fs::symlink(&library, at.join("libgpuio.so")).unwrap();
    let mut compile = compiler(&["-std=c11", "-O1"]);
    compile.arg(repository("examples/c/map_file.c")).arg("-o").arg(&program);
    compile.arg("-L").arg(at).args(["-lgpuio", "-ldl"]);
    let Some(made) = output(&mut compile) else { return };
    assert!(made.status.success(), "{}", text(&made.stderr));
    drop(file(&at.join("data"), &random_bytes(1, 2_500_001)));
    let run = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", at).env(DRIVER, driver()).args(words).current_dir(at);
        let output = command.output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    for (words, range) in [
        (&["data"][..], "2500001 bytes at 0 "),
        (&["data", "2500000"], "1 bytes at 2500000 "),
        (&["data", "4097", "1"], "1 bytes at 4097 "),
        (&["data", "12345", "2000003"], "2000003 bytes at 12345 "),
    ] {
        let (code, out, err) = run(words);
        assert_eq!(code, Some(0), "{words:?}: {out}{err}");
        let line = "read where the page cache has them, 0 of them wrong; no writer waits";
        assert!(out.contains(range) && out.contains(line), "{words:?}: {out}");
    }
    let (code, _, err) = run(&["data", "0", "2500002"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("it ends at byte 2500001"), "{err}");
    let (code, _, err) = run(&["/proc/version", "0", "1"]);
    assert_eq!(code, Some(3), "{err}");
    assert_eq!(run(&[]).0, Some(2));
    assert_eq!(run(&["data", "x"]).0, Some(2));
}
