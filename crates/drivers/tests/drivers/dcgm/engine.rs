//! The crate over a stand-in for the library, and over none.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use gpuio_drivers::dcgm::{Absent, Engine, FIELDS};

/// The stand-in, compiled once for all tests.
fn stand_in() -> &'static str {
    static BUILT: OnceLock<(tempfile::TempDir, String)> = OnceLock::new();
    let (_, library) = BUILT.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let library = directory.path().join("libdcgm.so.4");
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers/dcgm/stand_in/dcgm.rs");
        let rustc = PathBuf::from(env!("CARGO")).with_file_name("rustc");
        let made = Command::new(rustc)
            .args(["--edition=2024", "--crate-name=dcgm", "--crate-type=cdylib", "-o"])
            .arg(&library)
            .arg(&source)
            .status();
        assert!(made.unwrap().success());
        (directory, library.to_str().unwrap().to_owned())
    });
    library
}

fn at(field: u16) -> usize {
    FIELDS.iter().position(|one| *one == field).unwrap()
}

#[test]
fn values_of_all_gpus_come_with_their_uuids_and_blanks_are_none() {
    let mut engine = Engine::at(stand_in(), "127.0.0.1").unwrap();
    let gpus = engine.latest().unwrap();
    let uuids: Vec<&str> = gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    assert_eq!(uuids, ["GPU-00000000", "GPU-00000001"]);
    for gpu in &gpus {
        assert_eq!(gpu.values[at(1002)], Some(0.25));
        assert_eq!(gpu.values[at(1009)], Some(7e9));
        // No data, two blanks, and a field that was not given.
        for none in [1003, 1004, 1011, 1001] {
            assert_eq!(gpu.values[at(none)], None, "{none}");
        }
    }
}

#[test]
fn values_of_another_size_are_refused() {
    let mut engine = Engine::at(stand_in(), "foreign").unwrap();
    let text = engine.latest().unwrap_err().to_string();
    assert!(text.contains("0x1001020") && text.contains("0x1001018"), "{text}");
}

#[test]
fn what_the_engine_refuses_is_told_in_its_words() {
    let text = Engine::at(stand_in(), "not profiled").unwrap_err().to_string();
    assert!(text.contains("dcgmWatchFields") && text.contains("not supported"), "{text}");
    let text = Engine::at(stand_in(), "nowhere").unwrap_err().to_string();
    assert!(text.contains("nv-hostengine") && text.contains("(-21)"), "{text}");
    let mut engine = Engine::at(stand_in(), "stopped").unwrap();
    assert!(matches!(engine.latest(), Err(Absent::Refused { .. })));
}

#[test]
fn without_a_library_or_with_another_there_is_none() {
    assert_eq!(Engine::at("libgpuio-no-dcgm.so", "x").unwrap_err(), Absent::NoLibrary);
    let text = Engine::at("libc.so.6", "x").unwrap_err().to_string();
    assert!(text.contains("lacks dcgmInit"), "{text}");
}
