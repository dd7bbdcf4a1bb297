//! The header for C and C++, and the programs that use it, with the library that cargo built.

use std::path::{Path, PathBuf};
use std::process::Command;

use gpuio_testkit::repository;

use crate::exec::cc;
use crate::tool::{GPUIO, command, finish, other, plain, scratch, skip};

/// A shared object that cargo built, beside the program or where test builds have it.
pub(crate) fn built(name: &str) -> PathBuf {
    let beside = Path::new(GPUIO).parent().unwrap();
    let places = [beside.join(name), beside.join("deps").join(name)];
    let found = places.iter().find(|file| file.exists());
    found.unwrap_or_else(|| panic!("cargo built no {name}: {places:?}")).clone()
}

fn compiler(cc: &Path, flags: &[&str]) -> Command {
    let mut compile = plain(cc);
    compile.args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]);
    compile.arg(repository("crates/dropin/include")).arg("-I").arg(repository("examples/c"));
    compile.args(flags);
    compile
}

#[test]
fn the_header_is_c_and_cpp_and_its_layouts_hold() {
    let Some(cc) = cc() else { return };
    let dir = scratch();
    let source = dir.path().join("program");
    std::fs::write(&source, "#include <cufile.h>\nint main(void) { return IS_CUFILE_ERR(-1); }\n")
        .unwrap();
    let languages: [&[&str]; 5] = [
        &["-x", "c", "-std=c11"],
        &["-x", "c", "-std=gnu17", "-DGPUIO_CUFILE_NO_CUDA"],
        &["-x", "c", "-std=c11", "-DGPUIO_CUFILE_STATS_1_20"],
        &["-x", "c++", "-std=c++11"],
        &["-x", "c++", "-std=c++20"],
    ];
    for language in languages {
        let mut compile = compiler(&cc, language);
        let ran = finish(compile.arg("-fsyntax-only").arg(&source));
        if ran.err.contains("cc1plus") {
            skip("no C++ compiler here");
            continue;
        }
        ran.exits(0);
    }
}

/// `write_read` in `dir`, linked as docs/cufile.md says.
fn write_read(cc: &Path, dir: &Path) -> PathBuf {
    let program = dir.join("write_read");
    let library = built("libcufile.so");
    let mut compile = compiler(cc, &["-std=c11"]);
    compile.arg(repository("examples/c/write_read.c")).arg("-o").arg(&program);
    compile.arg("-L").arg(library.parent().unwrap()).args(["-lcufile", "-ldl"]);
    finish(&mut compile).exits(0);
    program
}

#[test]
fn the_example_runs_with_our_library_and_its_bytes_are_right() {
    let Some(cc) = cc() else { return };
    let dir = scratch();
    let program = write_read(&cc, dir.path());
    let run = |words: &[&str]| {
        let mut exec = command(dir.path());
        // A real GPU where that is asked for, as other tests have it.
        if std::env::var("GPUIO_TEST_GPU").as_deref() != Ok("system") {
            exec.env("GPUIO_CUFILE_DRIVER", "software");
        }
        // Cargo's place of all libraries is not the user's.
        exec.env("XDG_CACHE_HOME", dir.path().join("cache")).env_remove("LD_LIBRARY_PATH");
        exec.args(["exec", "--cufile", "gpuio", "--"]).arg(&program).args(words);
        finish(&mut exec)
    };
    for bytes in ["1", "4096", "1048576", "5000001"] {
        let ran = run(&["file", bytes]).exits(0);
        assert!(ran.out.contains(&format!("{bytes} bytes written and read back, 0 of")), "{ran:?}");
        let written = std::fs::read(dir.path().join("file")).unwrap();
        assert_eq!(written.len().to_string(), bytes);
        assert!(written.iter().all(|byte| *byte == 0xab));
    }
    run(&[]).exits(2).prints(&["FILE"]);
    run(&["gone/file"]).exits(1).prints(&["gone/file"]);
    // Nobody asked for a log.
    assert!(!dir.path().join("cufile.log").exists());
}

/// It can fail: with no library before it, the loader says what is missing.
#[test]
fn without_exec_the_example_finds_no_library_or_another() {
    let Some(cc) = cc() else { return };
    let dir = scratch();
    let program = write_read(&cc, dir.path());
    let mut alone = other(dir.path(), &program);
    alone.env_remove("LD_PRELOAD").env_remove("LD_LIBRARY_PATH").arg(dir.path().join("file"));
    let ran = finish(&mut alone);
    if ran.err.contains("libcufile.so.0: cannot open") {
        assert_eq!(ran.code, 127);
    } else {
        skip("this machine has a libcufile.so.0 of its own");
    }
}
