//! Files that the device reads in the page cache by itself.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use gpuio_gpu::{
    Context, DevPtr, DeviceBuf, Driver, FilePages, GatherKernel, MapError, MappedFile, MemoryKind,
    PageWatch, Pinned, Registered, Shape, Stream,
};
use gpuio_testkit::child;
use gpuio_testkit::file_systems::{self, Mount};
use gpuio_testkit::gpu::{skipped, which};

fn context() -> Context {
    Context::new(&Driver::load(&which()).unwrap(), 0).unwrap()
}

/// A file of its own, without a name, with these bytes.
fn file(bytes: &[u8]) -> File {
    let name = std::env::temp_dir().join(format!(
        "gpuio-mapped-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let mut file = File::options().read(true).write(true).create_new(true).open(&name).unwrap();
    std::fs::remove_file(&name).unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn some_bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| u8::try_from((at * 31 + at / 256) % 251).unwrap()).collect()
}

/// The bytes that the device finds `skip` bytes into the mapping, by a copy.
fn copied(context: &Context, mapped: &MappedFile, skip: usize, len: usize) -> Vec<u8> {
    context.make_current().unwrap();
    let stream = Stream::new(context).unwrap();
    let buffer = DeviceBuf::alloc(context, MemoryKind::Device, len).unwrap();
    let mut found = vec![0; len];
    // SAFETY: inside the mapping and the buffer; the stream is waited for.
    unsafe { stream.h2d(buffer.ptr(), mapped.as_ptr().wrapping_add(skip), len) }.unwrap();
    // SAFETY: both are as long as this, and the stream is waited for.
    unsafe { stream.d2h(found.as_mut_ptr(), buffer.ptr(), len) }.unwrap();
    stream.sync().unwrap();
    found
}

#[test]
fn the_device_reads_a_part_of_a_file() {
    let context = context();
    let bytes = some_bytes(100_000);
    let file = file(&bytes);
    let mapped = MappedFile::new(&context, file.as_fd(), 10_000..99_999, false).unwrap();
    assert_eq!(mapped.part(), 8192..99_999, "from the page on");
    assert_eq!(mapped.pinned_bytes(), (99_999 - 8192_u64).next_multiple_of(4096));
    let found = copied(&context, &mapped, 10_000 - 8192, 89_999);
    assert_eq!(found, bytes[10_000..99_999]);
    assert_ne!(mapped.seen_by(&context).unwrap(), DevPtr(0));
    mapped.close().unwrap();
}

/// Not the same addresses: a second mapping of the same bytes is another registration.
#[test]
fn a_file_may_be_mapped_twice() {
    let context = context();
    let bytes = some_bytes(50_000);
    let file = file(&bytes);
    let one = MappedFile::new(&context, file.as_fd(), 0..50_000, false).unwrap();
    let two = MappedFile::new(&context, file.as_fd(), 0..50_000, true).unwrap();
    assert_eq!(copied(&context, &one, 4000, 5000), copied(&context, &two, 4000, 5000));
    drop(one);
    assert_eq!(copied(&context, &two, 0, 50_000), bytes);
}

#[test]
fn what_can_not_be_mapped_is_an_error() {
    let context = context();
    let file = file(&some_bytes(5000));
    let why = |part| MappedFile::new(&context, file.as_fd(), part, false).unwrap_err();
    let short = why(0..5001);
    assert!(matches!(short, MapError::Short { length: 5000, end: 5001 }), "{short}");
    assert!(matches!(why(4096..4096), MapError::Range(_)));
    #[expect(clippy::reversed_empty_ranges, reason = "it is what is tested")]
    let reversed = why(5000..10);
    assert!(matches!(reversed, MapError::Short { .. } | MapError::Range(_)), "{reversed}");
    let (pipe, _end) = std::io::pipe().unwrap();
    let error = MappedFile::new(&context, pipe.as_fd(), 0..10, false).unwrap_err();
    assert!(error.to_string().starts_with("lseek: "), "{error}");
    let writes = File::options().write(true).open("/dev/null").unwrap();
    assert!(MappedFile::new(&context, writes.as_fd(), 0..1, false).is_err());
}

#[test]
fn a_device_that_can_not_register_it_refuses() {
    child::alone_on_software(&[("GPUIO_SOFT_READ_ONLY_REGISTER", "0")], || {
        let driver = Driver::load(&which()).unwrap();
        assert!(!driver.devices().unwrap()[0].read_only_register);
        let file = file(&some_bytes(5000));
        let error = MappedFile::new(&context(), file.as_fd(), 0..5000, false).unwrap_err();
        let MapError::Gpu(error) = error else { panic!("{error}") };
        assert_eq!((error.call, error.code), ("cuMemHostRegister_v2", 801));
    });
}

#[test]
fn the_device_says_that_it_can() {
    if skipped("the_device_says_that_it_can") {
        return;
    }
    let driver = Driver::load(&which()).unwrap();
    assert!(driver.devices().unwrap()[0].read_only_register);
}

#[test]
fn what_can_not_be_unregistered_stays_mapped() {
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuMemHostUnregister:1")], || {
        let context = context();
        let bytes = some_bytes(8192);
        let file = file(&bytes);
        let mapped = MappedFile::new(&context, file.as_fd(), 0..8192, false).unwrap();
        let start = mapped.as_ptr() as usize;
        assert_eq!(mapped.close().unwrap_err().call, "cuMemHostUnregister");
        // It stays mapped: no other memory gets its addresses.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(maps.contains(&format!("{start:x}-")), "{maps}");
    });
}

/// As hardware has it: memory that may only be read is registered as that, or not at all.
#[test]
fn a_read_only_mapping_needs_the_flag() {
    if skipped("a_read_only_mapping_needs_the_flag") {
        return;
    }
    let context = context();
    let file = file(&some_bytes(8192));
    let mapped = MappedFile::new(&context, file.as_fd(), 0..8192, false).unwrap();
    let start = NonNull::new(mapped.as_ptr().cast_mut()).unwrap();
    // SAFETY: mapped, and it stays so for longer than the value.
    assert!(unsafe { Registered::new(&context, start, 8192) }.is_err(), "registered already");
    // SAFETY: a new mapping at an address of the kernel's choice.
    let plain = unsafe {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        libc::mmap(std::ptr::null_mut(), 8192, libc::PROT_READ, libc::MAP_SHARED, fd, 0)
    };
    let start = NonNull::new(plain.cast::<u8>()).unwrap();
    // SAFETY: as above.
    let refused = unsafe { Registered::new(&context, start, 8192) }.unwrap_err();
    assert_eq!(refused.call, "cuMemHostRegister_v2");
}

/// The bytes of before, or zeros in whole pages.
fn as_it_was(found: &[u8], bytes: &[u8]) {
    for (number, (found, was)) in found.chunks(4096).zip(bytes.chunks(4096)).enumerate() {
        assert!(found == was || found.iter().all(|&byte| byte == 0), "page {number}");
    }
}

/// The device's reads outlive a truncation, which is a signal for the host's. Copies of up to
/// 24 KiB are the host's too (driver 580.159 on an H100).
#[test]
fn the_device_reads_a_file_that_became_shorter() {
    const LEN: usize = 1 << 20;
    let context = context();
    let bytes = some_bytes(LEN);
    let file = file(&bytes);
    let mapped = MappedFile::new(&context, file.as_fd(), 0..LEN as u64, true).unwrap();
    assert_eq!(copied(&context, &mapped, 0, LEN), bytes);
    file.set_len(8192).unwrap();
    // A copy of the driver's, then one by a kernel.
    let found = copied(&context, &mapped, 0, LEN);
    assert_eq!(found[..8192], bytes[..8192], "what is left of it");
    as_it_was(&found, &bytes);
    as_it_was(&copied(&context, &mapped, 8192 + 4096, 70_000), &bytes[8192 + 4096..][..70_000]);
    let stream = Stream::new(&context).unwrap();
    let kernel = GatherKernel::load(&context).unwrap();
    let buffer = DeviceBuf::alloc(&context, MemoryKind::Device, LEN).unwrap();
    let list = Pinned::alloc(&context, 32).unwrap();
    let piece = [mapped.seen_by(&context).unwrap().0, buffer.ptr().0, LEN as u64, 0];
    // SAFETY: page-locked memory as long as this.
    unsafe { list.as_ptr().cast::<[u64; 4]>().write_unaligned(piece) };
    // SAFETY: the list and what it names live until the wait.
    unsafe { kernel.launch(&stream, list.ptr(), 1, Shape { grid: 1, block: 32 }) }.unwrap();
    let mut found = vec![0; LEN];
    // SAFETY: both are as long as this, and the stream is waited for.
    unsafe { stream.d2h(found.as_mut_ptr(), buffer.ptr(), LEN) }.unwrap();
    stream.sync().unwrap();
    as_it_was(&found, &bytes);
}

/// A mapping of a part of a file that the device may write; nothing where the kernel pins no pages
/// of this file system for that.
fn written(context: &Context, file: &File, part: std::ops::Range<u64>) -> Option<MappedFile> {
    let pages = match FilePages::map_writable(context, file.as_fd(), part) {
        Err(MapError::Gpu(_)) => return None,
        pages => pages.unwrap(),
    };
    assert!(pages.allocate(file.as_fd(), 3, &|| true).unwrap());
    Some(pages.register(context, false).unwrap())
}

#[test]
fn pages_that_the_file_has_lost_are_counted() {
    const LEN: u64 = 40 << 20;
    const LEFT: u64 = 4 << 20;
    let context = context();
    let file = file(b"begins");
    file.set_len(LEN).unwrap();
    let Some(mapped) = written(&context, &file, 4096..LEN) else { return };
    let pagemap = File::open("/proc/self/pagemap").unwrap();
    assert!(mapped.is_writable());
    assert_eq!(mapped.lost_bytes(&pagemap, 0..LEN).unwrap(), 0);
    file.set_len(LEN - 4097).unwrap();
    file.set_len(LEN).unwrap();
    let lost = mapped.lost_bytes(&pagemap, 0..LEN).unwrap();
    assert!((4096..=2 << 20).contains(&lost), "{lost}: a page, or the folio that it is in");
    // Folios are shorter than what is left, and begin at multiples of their length.
    file.set_len(LEFT).unwrap();
    file.set_len(LEN).unwrap();
    assert_eq!(mapped.lost_bytes(&pagemap, 0..LEN).unwrap(), LEN - LEFT);
    assert_eq!(mapped.lost_bytes(&pagemap, 4096..LEFT).unwrap(), 0);
    assert_eq!(mapped.lost_bytes(&pagemap, LEFT - 1..LEFT + 1).unwrap(), 4096);
    let stopped = FilePages::map_writable(&context, file.as_fd(), 0..LEN).unwrap();
    assert!(!stopped.allocate(file.as_fd(), 2, &|| false).unwrap());
}

/// A page that a file has lost stays lost for a watch, though the file gets another one, and the
/// device's writes go to the one that was pinned.
#[test]
fn a_watch_says_which_pages_were_lost_since_it_was_made() {
    child::alone(&[("GPUIO_SOFT_KEEP_PAGES", "1")], || {
        const LEN: u64 = 1 << 20;
        let context = Context::own(&Driver::load(&which()).unwrap(), 0).unwrap();
        let fd = rustix::fs::memfd_create(c"watched", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = File::from(fd);
        file.write_all(&some_bytes(1 << 20)).unwrap();
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let watch = PageWatch::new(file.as_fd(), 0..LEN).unwrap();
        let pages = FilePages::map_to_write(file.as_fd(), 0..LEN).unwrap();
        assert!(pages.has_all_pages(file.as_fd()).unwrap());
        let mapped = pages.register(&context, false).unwrap();
        let lost = |part| watch.lost_bytes(&pagemap, part).unwrap();
        assert_eq!(lost(0..LEN), 0);
        // No child has them, no dump reads them, and the kernel makes no huge pages of the watch.
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let of_file = maps.split("VmFlags:").zip(maps.split("VmFlags:").skip(1));
        let of_file = of_file.filter(|(before, _)| {
            before
                .lines()
                .rev()
                .find(|line| line.contains('/'))
                .is_some_and(|line| line.contains("/memfd:watched"))
        });
        let flags: Vec<_> = of_file.map(|(_, flags)| flags.lines().next().unwrap()).collect();
        let have = |flag| flags.iter().filter(|flags| flags.contains(flag)).count();
        let huge = std::fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap();
        assert_eq!((flags.len(), have(" dc"), have(" dd")), (2, 2, 2), "{flags:?}");
        assert_eq!(have(" nh"), usize::from(huge), "{flags:?}");
        let fill = |value: u8| {
            context.make_current().unwrap();
            let stream = Stream::new(&context).unwrap();
            let buffer = DeviceBuf::alloc(&context, MemoryKind::Device, 1 << 20).unwrap();
            let bytes = vec![value; 1 << 20];
            // SAFETY: both are as long as this, and the stream is waited for.
            unsafe { stream.h2d(buffer.ptr(), bytes.as_ptr(), 1 << 20) }.unwrap();
            // SAFETY: as above.
            unsafe { stream.d2h(mapped.as_ptr().cast_mut(), buffer.ptr(), 1 << 20) }.unwrap();
            stream.sync().unwrap();
            let mut found = vec![0; 1 << 20];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, 0).unwrap();
            found
        };
        assert!(fill(1) == vec![1; 1 << 20]);
        file.set_len(LEN / 2).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![9; 1 << 19], LEN / 2).unwrap();
        assert_eq!((lost(0..LEN / 2), lost(0..LEN)), (0, LEN / 2));
        assert!(fill(2) == [vec![2; 1 << 19], vec![9; 1 << 19]].concat());
        mapped.let_go_of_file();
        watch.let_go_of_file();
        mapped.close().unwrap();
    });
}

/// Where touching a page would be a signal.
#[test]
fn a_file_system_without_room_is_an_error_with_the_offset() {
    let small: Mount = |room| room.mount("small", &["-t", "tmpfs", "-o", "size=20m", "tmpfs"]);
    file_systems::on("mapped on a full tmpfs", tempfile::tempdir().unwrap(), small, |place| {
        let file = File::create_new(place.join("file")).unwrap();
        file.set_len(48 << 20).unwrap();
        let file = File::options().read(true).write(true).open(place.join("file")).unwrap();
        let pages = FilePages::map_writable(&context(), file.as_fd(), 0..48 << 20).unwrap();
        let error = pages.allocate(file.as_fd(), 1, &|| true).unwrap_err();
        assert!(
            matches!(error, MapError::Allocate { at: 16_777_216, errno: libc::ENOSPC }),
            "{error}"
        );
        file.set_len(4096).unwrap();
        let error = pages.allocate(file.as_fd(), 2, &|| true).unwrap_err();
        assert!(matches!(error, MapError::Short { length: 4096, .. }), "{error}");
    });
}

/// As far as the pages are there.
#[test]
fn the_device_writes_a_file_that_became_shorter() {
    const LEN: usize = 64 << 10;
    let context = context();
    context.make_current().unwrap();
    let file = file(&vec![1; LEN]);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let plain = unsafe {
        let (fd, access) =
            (std::os::fd::AsRawFd::as_raw_fd(&file), libc::PROT_READ | libc::PROT_WRITE);
        libc::mmap(std::ptr::null_mut(), LEN, access, libc::MAP_SHARED, fd, 0)
    };
    let start = NonNull::new(plain.cast::<u8>()).unwrap();
    // SAFETY: mapped, and it stays so for longer than the value.
    let Ok(registered) = (unsafe { Registered::new(&context, start, LEN) }) else {
        // The kernel pins no writable pages of ext4 or XFS for a device (Linux 6.4 on).
        return;
    };
    file.set_len(4096).unwrap();
    let stream = Stream::new(&context).unwrap();
    let bytes = some_bytes(LEN);
    let buffer = DeviceBuf::alloc(&context, MemoryKind::Device, LEN).unwrap();
    // SAFETY: both are as long as this, and the stream is waited for.
    unsafe { stream.h2d(buffer.ptr(), bytes.as_ptr(), LEN) }.unwrap();
    // SAFETY: as above.
    unsafe { stream.d2h(start.as_ptr(), buffer.ptr(), LEN) }.unwrap();
    stream.sync().unwrap();
    let mut left = vec![0; 4096];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut left, 0).unwrap();
    assert_eq!(left, bytes[..4096]);
    drop(registered);
}
