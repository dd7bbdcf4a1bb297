//! The counts.

use std::io::Write;

use gpuio_watch::page::{LivePageRoot, read};

use crate::client::{
    Cufile, GOOD, alone, code, cuda, cufile, is_child, name, on_system, random_bytes,
};

/// A reading of level 3, as words; the last was not written to.
fn level3(cufile: &Cufile) -> Vec<u64> {
    let mut words = vec![u64::MAX; 5112 / 8 + 1];
    // SAFETY: room for the structure of any release.
    assert_eq!(unsafe { (cufile.cuFileGetStatsL3)(words.as_mut_ptr()) }, GOOD);
    words
}

/// Reads 3 × 4096 and 100 bytes, writes 1 MiB, and fails once.
fn work(cufile: &Cufile) {
    let cuda = cuda();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&random_bytes(1, 1 << 20)).unwrap();
    let handle = cufile.register(file.as_file()).unwrap();
    let device = cuda.room(1 << 20);
    for nth in 0..3 {
        assert_eq!(cufile.read(handle, device, 4096, nth * 8192, 0), 4096);
    }
    assert_eq!(cufile.read(handle, device, 100, 5, 0), 100);
    assert_eq!(cufile.write(handle, device, 1 << 20, 0, 0), 1 << 20);
    assert_eq!(cufile.read(handle, device, 100, -5, 0), -5022);
    cufile.deregister(handle);
}

#[test]
fn levels_are_counted_as_release_1_15_lays_them_out() {
    alone(name(levels_are_counted_as_release_1_15_lays_them_out), &[], || {
        let cufile = cufile();
        // SAFETY: numbers only, here and below.
        assert_eq!(unsafe { (cufile.cuFileStatsStart)() }, code(5001));
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileSetStatsLevel)(4) }, code(5022));
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileSetStatsLevel)(3) }, GOOD);
        assert_eq!(cufile.open(), GOOD);
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileStatsStart)() }, GOOD);
        work(&cufile);
        let words = level3(&cufile);
        let at = |offset: usize| words[offset / 8];
        assert_eq!(words[5000 / 8], u64::MAX, "not a byte more than 1.15 has");
        assert_eq!((at(0), at(8), at(16), at(24)), (4, 1, 1, 0));
        assert_eq!((at(32), at(48), at(96), at(104)), (1, 1, 3 * 4096 + 100, 1 << 20));
        assert_eq!((at(512), at(520), at(768 + 72)), (1, 3, 1));
        assert!(at(1024) >= 1);
        let gpu = 1032;
        assert!(at(gpu) | at(gpu + 8) != 0, "it has a UUID");
        assert_eq!((at(gpu + 16), at(gpu + 48), at(gpu + 72)), (3 * 4096 + 100, 4, 4));
        assert_eq!((at(gpu + 120), at(gpu + 152), at(gpu + 176)), (1 << 20, 1, 1));
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileStatsStop)() }, GOOD);
        work(&cufile);
        assert_eq!(level3(&cufile)[0], 4);
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileStatsReset)() }, GOOD);
        assert_eq!(level3(&cufile)[0], 0);
        // SAFETY: as above.
        assert_eq!(unsafe { (cufile.cuFileSetStatsLevel)(1) }, GOOD);
        let mut words = [0; 1000];
        // SAFETY: room for the structure.
        assert_eq!(unsafe { (cufile.cuFileGetStatsL3)(words.as_mut_ptr()) }, code(5022));
    });
}

#[test]
fn programs_of_release_1_20_get_the_larger_ones() {
    let variables = [("GPUIO_CUFILE_VERSION", "1200"), ("CUFILE_STATS_LEVEL", "3")];
    alone(name(programs_of_release_1_20_get_the_larger_ones), &variables, || {
        let cufile = cufile();
        work(&cufile);
        let words = level3(&cufile);
        let at = |offset: usize| words[offset / 8];
        assert_eq!((at(0), at(96), words[5112 / 8]), (4, 3 * 4096 + 100, u64::MAX));
        assert_eq!((at(624), at(632), at(880 + 72)), (1, 3, 1));
        assert_eq!(at(1136 + 8 + 16), 3 * 4096 + 100);
    });
}

#[test]
fn the_live_page_shows_the_program() {
    let pages = tempfile::tempdir().unwrap();
    let variables = [("GPUIO_PAGES", pages.path().to_str().unwrap())];
    let output = alone(name(the_live_page_shows_the_program), &variables, || {
        let cufile = cufile();
        work(&cufile);
        let pid = std::process::id();
        println!("the child is {pid}.");
        let root = gpuio_host::Root::live();
        let pages = read::list(&LivePageRoot::live(), &root).found;
        let found = pages.iter().find(|found| found.pid == pid);
        let own = found.expect("a page of this process").page.as_ref().unwrap();
        assert!(own.program.starts_with("cuFile: "), "{}", own.program);
        let sum = |of: fn(&gpuio_watch::page::PathCounters) -> u64| {
            own.paths.iter().filter(|way| way.gpu == Some(0)).map(of).sum::<u64>()
        };
        assert_eq!(sum(|way| way.read.bytes), 3 * 4096 + 100);
        assert_eq!((sum(|way| way.write.ios()), sum(|way| way.read.ios())), (1, 4));
        // Calls of one thread, one after another: the time from the first one's begin holds all.
        let ways = own.paths.iter().filter(|way| way.read.ios() + way.write.ios() > 0);
        for way in ways {
            let busy_ns = way.read.latency_ns + way.write.latency_ns;
            let span_ns = way.last_ns.saturating_sub(way.first_ns);
            assert!(span_ns >= busy_ns, "{busy_ns} ns of calls in {span_ns}: {}", way.path);
        }
        let known = ["kernel", "copy", "host", "registered"];
        assert!(own.paths.iter().all(|way| known.contains(&way.path.as_str())), "{:?}", own.paths);
        let pci = own.paths.iter().find(|way| way.gpu == Some(0)).unwrap();
        assert_eq!(pci.is_software(), !on_system(), "{}", pci.pci);
        assert!(!pci.pci.is_empty());
    });
    let Some((_, rest)) = output.split_once("the child is ") else {
        assert!(is_child(name(the_live_page_shows_the_program)), "{output}");
        return;
    };
    let pid: u32 = rest.split('.').next().unwrap().parse().unwrap();
    // It ended by exit(3): its page is gone.
    let place = LivePageRoot::at(pages.path());
    let left = read::list(&place, &gpuio_host::Root::live()).found;
    assert!(left.iter().all(|found| found.pid != pid));
    let user = rustix::process::geteuid().as_raw();
    assert!(place.directory(user).is_dir(), "it was there");
}

/// Files and buffers in gds_stats' sections and on the page are those registered now.
#[test]
fn files_and_buffers_that_are_registered_are_counted() {
    alone(name(files_and_buffers_that_are_registered_are_counted), &[], || {
        let (cufile, cuda) = (cufile(), cuda());
        let file = tempfile::NamedTempFile::new().unwrap();
        let (one, two) = (cufile.register(file.as_file()), cufile.register(file.as_file()));
        let (one, two) = (one.unwrap(), two.unwrap());
        let device = cuda.room(1 << 20);
        let host = vec![0_u8; 8192];
        for base in [device, device + 8192, host.as_ptr() as u64] {
            // SAFETY: memory of this test's, which outlives the registration.
            assert_eq!(unsafe { (cufile.cuFileBufRegister)(base, 4096, 0) }, GOOD);
        }
        let pid = std::process::id();
        let page = || {
            let pages = read::list(&LivePageRoot::live(), &gpuio_host::Root::live()).found;
            let found = pages.into_iter().find(|found| found.pid == pid).unwrap();
            found.page.unwrap()
        };
        let text = |level| gpuio_watch::page::format::gds_stats::text(&page(), level, &[]);
        assert!(text(1).contains("Total Files: 2\n"), "{}", text(1));
        assert!(text(3).contains("BufRegister: n=2 err=n/a"), "{}", text(3));
        assert_eq!((page().registered_on(Some(0)), page().registered_on(None)), (Some(2), Some(1)));
        assert_eq!(page().total().threads, 0, "a registration is no thread");
        // After I/O they are counted still.
        assert_eq!(cufile.read(one, device, 4096, 0, 0), 0);
        cufile.deregister(two);
        // SAFETY: registered above.
        assert_eq!(unsafe { (cufile.cuFileBufDeregister)(device) }, GOOD);
        assert!(text(1).contains("Total Files: 1\n"), "{}", text(1));
        assert!(text(3).contains("BufRegister: n=1 err=n/a"), "{}", text(3));
        cufile.deregister(one);
        assert!(text(1).contains("Total Files: 0\n"), "{}", text(1));
    });
}
