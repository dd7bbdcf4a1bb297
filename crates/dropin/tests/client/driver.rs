//! Opening, closing, properties, versions.

use std::ffi::c_int;

use crate::client::{GOOD, alone, child, code, cuda, cufile, is_child, name};

#[test]
fn opens_are_counted_and_implicit_ones_count() {
    alone(name(opens_are_counted_and_implicit_ones_count), &[], || {
        let cufile = cufile();
        assert_eq!((cufile.uses(), cufile.close()), (0, code(5001)));
        assert_eq!((cufile.open(), cufile.open(), cufile.uses()), (GOOD, GOOD, 2));
        // SAFETY: takes nothing.
        assert_eq!(unsafe { (cufile.cuFileDriverClose)() }, GOOD);
        assert_eq!((cufile.close(), cufile.uses(), cufile.close()), (GOOD, 0, code(5001)));
        let file = tempfile::tempfile().unwrap();
        let handle = cufile.register(&file).unwrap();
        assert_eq!((cufile.uses(), cufile.open(), cufile.uses()), (1, GOOD, 2));
        assert_eq!((cufile.close(), cufile.close(), cufile.uses()), (GOOD, GOOD, 0));
        // A handle lives on, and its next use opens again.
        let mut bytes = [0_u8; 8];
        let base = bytes.as_mut_ptr().expose_provenance() as u64;
        assert_eq!((cufile.read(handle, base, 8, 0, 0), cufile.uses()), (0, 1));
    });
}

#[test]
fn properties_are_all_written_and_setters_may_come_after_the_open() {
    alone(name(properties_are_all_written_and_setters_may_come_after_the_open), &[], || {
        let cufile = cufile();
        let properties = || {
            let mut found = [0xdead_beef_u32; 14];
            // SAFETY: room for the structure of 56 bytes.
            assert_eq!(unsafe { (cufile.cuFileDriverGetProperties)(&raw mut found) }, GOOD);
            found
        };
        let before = properties();
        // nvidia-fs 0.0, no file system, compatibility mode allowed, batches and parallel I/O.
        assert_eq!((before[0], before[1], before[6], before[7]), (0, 0, 0, 2));
        assert_eq!((before[8] & 0b1010, before[12], before[13]), (0b1010, 128, 5));
        assert_eq!(cufile.uses(), 0, "properties open nothing");
        assert_eq!(cufile.open(), GOOD);
        // SAFETY: numbers only, here and below.
        assert_eq!(unsafe { (cufile.cuFileDriverSetPollMode)(true, 16) }, GOOD);
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileDriverSetMaxCacheSize)(8192) }, GOOD);
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileDriverSetMaxPinnedMemSize)(4096) }, GOOD);
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileDriverSetMaxDirectIOSize)(2048) }, GOOD);
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileDriverSetMaxDirectIOSize)(0) }, code(5003));
        let after = properties();
        assert_eq!((after[2], after[4], after[7], after[9], after[11]), (16, 2048, 3, 8192, 4096));
        // SAFETY: null is refused.
        let null = unsafe { (cufile.cuFileDriverGetProperties)(std::ptr::null_mut()) };
        assert_eq!(null, code(5022));
    });
}

fn version() -> c_int {
    let mut version = 0;
    // SAFETY: room for one number.
    assert_eq!(unsafe { (cufile().cuFileGetVersion)(&raw mut version) }, GOOD);
    version
}

#[test]
fn the_version_is_that_of_the_small_statistics() {
    alone(name(the_version_is_that_of_the_small_statistics), &[], || {
        assert_eq!(version(), 1150);
    });
}

#[test]
fn the_version_may_be_set() {
    let variables = [("GPUIO_CUFILE_VERSION", "1200")];
    alone(name(the_version_may_be_set), &variables, || assert_eq!(version(), 1200));
}

#[test]
fn what_there_is_nothing_of_says_so() {
    alone(name(what_there_is_nothing_of_says_so), &[], || {
        let cufile = cufile();
        let (mut size, mut flags) = (7, 7);
        // SAFETY: room for a number, here and below.
        assert_eq!(unsafe { (cufile.cuFileGetBARSizeInKB)(0, &raw mut size) }, GOOD);
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileGetBARSizeInKB)(99, &raw mut size) }, code(5029));
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileDriverGetP2PFlags)(4, &raw mut flags) }, GOOD);
        assert_eq!((size, flags), (0, 0));
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileDriverGetP2PFlags)(15, &raw mut flags) }, code(5022));
        // SAFETY: numbers only.
        assert_eq!(unsafe { (cufile.cuFileDriverSetP2PFlags)(4, 1) }, code(5008));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("topology");
        let name = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
        // SAFETY: a text that ends.
        let answer = unsafe { (cufile.cuFileExportPCIeTopology)(name.as_ptr().cast()) };
        assert_eq!(answer, code(5008));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    });
}

#[test]
fn without_a_driver_the_open_answers_at_once() {
    let variables = [("GPUIO_CUFILE_DRIVER", "/nowhere/libcuda.so.1")];
    alone(name(without_a_driver_the_open_answers_at_once), &variables, || {
        let cufile = cufile();
        let answer = cufile.open();
        assert_eq!((answer.code, answer.cuda, cufile.uses()), (5011, 3, 0));
        let file = tempfile::tempfile().unwrap();
        assert_eq!(cufile.register(&file).unwrap_err().code, 5011);
    });
}

#[test]
fn nothing_is_logged_unless_configured() {
    let test = name(nothing_is_logged_unless_configured);
    let directory = tempfile::tempdir().unwrap();
    if is_child(test) {
        std::env::set_current_dir(directory.path()).unwrap();
        let _cuda = cuda();
        let cufile = cufile();
        assert_eq!(cufile.open(), GOOD);
        cufile.register(&tempfile::tempfile().unwrap()).unwrap();
        assert_eq!(cufile.close(), GOOD);
        let found = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(found, usize::from(std::env::var_os("CUFILE_LOGFILE_PATH").is_some()));
        return;
    }
    let gone = ("CUFILE_ENV_PATH_JSON", "$PWD/local_cufile.json");
    let (status, quiet) = child(test, &[gone]);
    assert!(status.success() && !quiet.contains("gpuio cuFile"), "{quiet}");
    let (status, with_level) = child(test, &[gone, ("CUFILE_LOGGING_LEVEL", "WARN")]);
    assert!(status.success(), "{with_level}");
    let lines: Vec<&str> =
        with_level.lines().filter(|line| line.contains("gpuio cuFile")).collect();
    assert_eq!(lines.len(), 1, "{with_level}");
    assert!(lines[0].contains("WARN") && lines[0].contains("local_cufile.json"), "{with_level}");
    let variables = [gone, ("CUFILE_LOGFILE_PATH", "here.log"), ("CUFILE_LOGGING_LEVEL", "INFO")];
    let (status, logged) = child(test, &variables);
    assert!(status.success() && !logged.contains("gpuio cuFile"), "{logged}");
}
