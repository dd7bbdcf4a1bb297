//! All calls are forwarded. gpuio's stand-in plays NVIDIA's library.

use std::io::Write;

use crate::client::{GOOD, alone, built, code, cuda, cufile, name, on_system, random_bytes};

pub(crate) fn stand_in() -> String {
    built("libgpuio_softcufile.so").into_os_string().into_string().unwrap()
}

#[test]
fn every_call_is_forwarded_on_request() {
    let library = stand_in();
    // The stand-in fails its second read, so the failure proves that the call reached it.
    let variables = [
        ("GPUIO_CUFILE", "nvidia"),
        ("GPUIO_CUFILE_LIB", library.as_str()),
        ("GPUIO_SOFT_CUFILE_FAIL", "cuFileRead:5016:1:1"),
    ];
    alone(name(every_call_is_forwarded_on_request), &variables, || {
        if on_system() {
            return;
        }
        let (cuda, cufile) = (cuda(), cufile());
        assert_eq!(cufile.open(), GOOD);
        let bytes = random_bytes(1, 10_000);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let handle = cufile.register(file.as_file()).unwrap();
        assert_eq!(handle, 1, "a handle of the stand-in's");
        assert_eq!(cufile.register(file.as_file()), Err(code(5028)));
        let device = cuda.room(10_000);
        assert_eq!(cufile.read(handle, device, 10_000, 0, 0), 10_000);
        assert!(cuda.get(device, 10_000) == bytes);
        assert_eq!(cufile.read(handle, device, 10_000, 0, 0), -5016);
        // Functions that it lacks are reported so.
        assert_eq!(cufile.uses(), 0);
        let list = [[device, 8]];
        // SAFETY: the memory is the test's.
        assert_eq!(unsafe { (cufile.cuFileReadv)(handle, list.as_ptr(), 1, 0, 0) }, -5008);
        cufile.deregister(handle);
        assert_eq!(cufile.close(), GOOD);
    });
}

#[test]
fn a_library_that_is_not_there_is_no_other() {
    let ours = built("libcufile.so").into_os_string().into_string().unwrap();
    for library in ["/nowhere/libcufile.so.0", &ours] {
        let variables = [("GPUIO_CUFILE", "nvidia"), ("GPUIO_CUFILE_LIB", library)];
        alone(name(a_library_that_is_not_there_is_no_other), &variables, || {
            let cufile = cufile();
            assert_eq!(cufile.open(), code(5001));
            assert_eq!(cufile.register(&tempfile::tempfile().unwrap()), Err(code(5001)));
        });
    }
}
