//! Libraries that are missing, are not cuFile, or must not be opened: reported without hanging.

use std::path::PathBuf;

use gpuio_drivers::cufile::{Absent, Calls, Driver, Library, Search, Vendor, stand_in_candidates};

fn stand_in() -> Library {
    let search = Search { stand_in: true, ..Search::default() };
    Library::load(&search).unwrap()
}

#[test]
fn a_library_that_is_not_there_is_reported_with_what_was_tried() {
    let directory = tempfile::tempdir().unwrap();
    let given = directory.path().join("libcufile.so.0");
    let search = Search { given: Some(given.clone()), ..Search::default() };
    let absent = Library::load(&search).unwrap_err();
    let text = absent.to_string();
    for word in [given.to_str().unwrap(), "--cufile-lib", "No such file"] {
        assert!(text.contains(word), "{text}");
    }
    std::fs::write(&given, "no library").unwrap();
    let text = Library::load(&search).unwrap_err().to_string();
    assert!(text.contains("libcufile.so.0") && !text.contains("No such file"), "{text}");
}

#[test]
fn an_object_without_cufiles_functions_is_refused() {
    // Any shared object will do; this one every program on Linux has loaded.
    let given = Some(PathBuf::from("libc.so.6"));
    let absent = Library::load(&Search { given, ..Search::default() }).unwrap_err();
    assert!(matches!(&absent, Absent::SymbolMissing { symbol: "cuFileDriverOpen", .. }));
    assert!(absent.to_string().contains("no cuFile library"), "{absent}");
}

#[test]
fn the_stand_in_works_with_the_software_gpu_alone() {
    assert!(stand_in().is_stand_in());
    let absent = Driver::open(stand_in(), None, false).unwrap_err();
    assert!(matches!(absent, Absent::Mixed { vendor: Vendor::StandIn, .. }), "{absent}");
    assert!(absent.to_string().contains("--gpu software"), "{absent}");
}

#[test]
fn without_a_cuda_driver_an_open_is_refused_by_the_library() {
    let absent = Driver::open(stand_in(), None, true).unwrap_err();
    let Absent::Open(error) = &absent else { panic!("{absent}") };
    assert_eq!((error.call, error.code, error.cuda), ("cuFileDriverOpen", 5011, 3));
    let text = absent.to_string();
    assert!(text.contains("CUDA_DRIVER_ERROR") && text.contains("code is 3"), "{text}");
}

#[test]
fn the_stand_in_has_all_calls() {
    for calls in [Calls::Blocking, Calls::Batch, Calls::Streams] {
        assert_eq!(stand_in().missing_function(calls), None);
    }
}

#[test]
fn the_stand_in_is_among_the_candidates() {
    let loaded = stand_in().path().to_path_buf();
    let candidates: Vec<PathBuf> =
        stand_in_candidates().iter().filter_map(|path| path.canonicalize().ok()).collect();
    assert!(candidates.contains(&loaded), "{loaded:?} {candidates:?}");
}
