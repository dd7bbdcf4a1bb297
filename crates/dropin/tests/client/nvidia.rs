//! All calls are forwarded. gpuio's stand-in plays NVIDIA's library.

use std::io::Write;

use gpuio_watch::page::format::gds_stats;
use gpuio_watch::page::{LivePageRoot, Snapshot, read};

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

fn page() -> Snapshot {
    let pages = LivePageRoot::live();
    let listing = read::find(&pages, &gpuio_host::Root::live(), std::process::id());
    listing.found[0].page.clone().unwrap()
}

#[test]
fn forwarded_calls_are_on_the_page_with_the_library_s_own_counts() {
    let library = stand_in();
    let test = name(forwarded_calls_are_on_the_page_with_the_library_s_own_counts);
    let variables = [("GPUIO_CUFILE", "nvidia"), ("GPUIO_CUFILE_LIB", library.as_str())];
    alone(test, &variables, || {
        if on_system() {
            return;
        }
        let (cuda, cufile) = (cuda(), cufile());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&random_bytes(1, 65536)).unwrap();
        let handle = cufile.register(file.as_file()).unwrap();
        let device = cuda.room(65536);
        let read = |len: usize| cufile.read(handle, device, len, 0, 0);
        assert_eq!((read(65536), read(100)), (65536, 100));
        assert!(cufile.read(handle, device, 4096, -1, 0) < 0);
        let mut host = vec![0_u8; 4096];
        let host_base = host.as_mut_ptr().expose_provenance() as u64;
        assert_eq!(cufile.read(handle, host_base, 4096, 0, 0), 4096);
        // SAFETY: a number.
        assert_eq!(unsafe { (cufile.cuFileBufRegister)(device, 65536, 0) }, GOOD);
        let now = page();
        let gpu = now.paths.iter().find(|one| one.gpu == Some(0) && one.path == "nvidia").unwrap();
        assert_eq!((gpu.read.ios(), gpu.read.bytes, gpu.read.failed), (2, 65636, 1));
        assert_eq!((gpu.read.unaligned, gpu.engine.as_str()), (1, "cufile"));
        assert_eq!((now.total().read.ios(), now.total().files), (3, 1));
        assert_eq!(now.registered_on(Some(0)), Some(1));
        assert!(now.library.unwrap().why_absent().unwrap().contains("profile.cufile_stats"));
        // SAFETY: a number, and nothing.
        assert_eq!(unsafe { (cufile.cuFileSetStatsLevel)(3) }, GOOD);
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileStatsStart)() }, GOOD);
        // They are looked at a few times per second.
        let counts = loop {
            assert_eq!(read(4096), 4096);
            let library = page().library.unwrap();
            assert_eq!(library.version, (1, 15));
            match library.gpu(Some(0)) {
                Some(gpu) if gpu.read.posix > 0 => break *gpu,
                _ => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        };
        assert_eq!((counts.read.all, counts.write.all), (counts.read.posix, 0));
        let text = gds_stats::text(&page(), 3, &[]);
        assert!(text.contains(&format!(" posix={} unalign=", counts.read.posix)), "{text}");
        assert!(text.contains("BufRegister: n=0 err=0 free=0 MiB=0"), "{text}");
        assert!(text.contains("n/a: pool buffers, POSIX pool buffers"), "{text}");
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileBufDeregister)(device) }, GOOD);
        cufile.deregister(handle);
        assert_eq!((page().registered_on(Some(0)), page().total().files), (Some(0), 0));
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
