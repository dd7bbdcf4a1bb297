//! Rings for kernels: the device functions of `gpuio_device.cuh`, which a C++ compiler builds for
//! threads of the host, on gpuio's software GPU; and the functions that open them.

mod file_systems;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use gpuio_testkit::repository;
use tempfile::TempDir;

use crate::support::{DRIVER, HANG, Rings, RingsOptions, driver, gpuio, on_system};
use crate::{built, dir, output, random_bytes, text};

/// The last word of the programs: whether files are open with `O_DIRECT`.
const BUFFERED: &str = "0";
const DIRECT: &str = "1";

/// A program in C++ that uses the device's half, and the directory of its libraries; nothing, with
/// a line, where it can't be built or run.
fn program(source: &str) -> Option<(TempDir, PathBuf)> {
    if on_system() {
        println!(
            "SKIPPED: host threads are no kernels of a GPU; tools/benches/hardware.sh has nvcc"
        );
        return None;
    }
    if let Err(why) = gpuio_gpu::initiated::available() {
        println!("SKIPPED: {why}");
        return None;
    }
    let dir = dir();
    let program = dir.path().join("program");
    for name in ["libgpuio.so", "libgpuio.so.0"] {
        std::os::unix::fs::symlink(built("libgpuio.so"), dir.path().join(name)).unwrap();
    }
    let mut compile = Command::new("c++");
    compile.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]);
    for include in ["crates/clib/include", "crates/gpu/kernels", "examples/gpu"] {
        compile.arg("-I").arg(repository(include));
    }
    compile.args(["-x", "c++"]).arg(repository(source)).arg("-o").arg(&program);
    compile.arg("-L").arg(dir.path()).args(["-lgpuio", "-pthread"]);
    let made = output(&mut compile)?;
    assert!(made.status.success(), "{}", text(&made.stderr));
    Some((dir, program))
}

fn run(program: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(program);
    let directory = program.parent().unwrap();
    command.env("LD_LIBRARY_PATH", directory).env(DRIVER, driver()).args(words);
    let output = command.current_dir(directory).output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Runs it, which has to find no difference; what it says, or nothing, with a line, where files
/// can't be opened so.
fn agrees(program: &Path, place: &str, words: &[&str]) -> Option<String> {
    let (code, out, err) = run(program, words);
    if code == Some(3) && words.last() == Some(&DIRECT) {
        println!("SKIPPED: no O_DIRECT on {place}");
        return None;
    }
    assert_eq!(code, Some(0), "{place}, {words:?}: {out}{err}");
    Some(out)
}

#[test]
fn random_ios_of_many_threads_are_those_of_pread_and_pwrite() {
    let Some((dir, program)) = program("crates/clib/tests/rings/random.cu") else { return };
    let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
    for (seed, place, operations, direct) in [
        ("1", dir.path(), "60", BUFFERED),
        ("2", in_memory.path(), "60", BUFFERED),
        ("3", dir.path(), "30", DIRECT),
    ] {
        let place = place.to_str().unwrap();
        agrees(&program, place, &[&format!("{place}/file"), seed, operations, direct]);
    }
}

#[test]
fn the_example_follows_its_pointers_and_takes_no_foreign_file() {
    let Some((dir, program)) = program("examples/gpu/pointer_chase.cu") else { return };
    let name = dir.path().join("nodes");
    let words = [name.to_str().unwrap(), "500", "1", "3", "400"];
    for _ in 0..2 {
        let (code, out, err) = run(&program, &words);
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(
            out.contains("of 1.0 GiB (500 nodes") && out.contains("was the right one"),
            "{out}"
        );
    }
    // A wrong pointer is found.
    let node = std::os::unix::fs::FileExt::write_all_at;
    node(&File::options().write(true).open(&name).unwrap(), &[1], 9).unwrap();
    let (code, out, err) = run(&program, &words);
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.contains("a wrong node"), "{err}");
    let foreign = dir.path().join("foreign");
    std::fs::write(&foreign, random_bytes(1, 9000)).unwrap();
    assert_eq!(run(&program, &[foreign.to_str().unwrap()]).0, Some(2));
    assert_eq!(std::fs::read(&foreign).unwrap(), random_bytes(1, 9000));
    assert_eq!(run(&program, &[]).0, Some(2));
}

/// Rings, or none where the pointer is null.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Opened(*mut Rings);

impl Opened {
    const NONE: Opened = Opened(std::ptr::null_mut());

    fn new(options: RingsOptions) -> Result<Opened, i32> {
        let mut rings = std::ptr::dangling_mut::<Rings>();
        // SAFETY: both are valid.
        let code = unsafe { (gpuio().gpuio_rings_open)(0, &raw const options, &raw mut rings) };
        assert_eq!(code != 0, rings.is_null(), "{code}");
        if code == 0 { Ok(Opened(rings)) } else { Err(code) }
    }

    fn add_file(self, fd: i32) -> Result<u32, i32> {
        let mut number = 77;
        // SAFETY: open or null, and a number that is valid for the write.
        let code = unsafe { (gpuio().gpuio_rings_add_file)(self.0, fd, &raw mut number) };
        assert!(code == 0 || number == 77, "{code}, {number}");
        if code == 0 { Ok(number) } else { Err(code) }
    }

    fn grow(self, buffers: u32) -> i32 {
        // SAFETY: open or null.
        unsafe { (gpuio().gpuio_rings_grow)(self.0, buffers) }
    }

    fn wake(self) -> i32 {
        // SAFETY: open or null.
        unsafe { (gpuio().gpuio_rings_wake)(self.0) }
    }

    fn in_flight(self) -> u64 {
        // SAFETY: open or null.
        unsafe { (gpuio().gpuio_rings_in_flight)(self.0) }
    }

    /// How many there are, and where the first is.
    fn place(self) -> (u32, u64) {
        // SAFETY: open or null.
        let count = unsafe { (gpuio().gpuio_rings_count)(self.0) };
        // SAFETY: as above.
        (count, unsafe { (gpuio().gpuio_rings_address)(self.0) })
    }

    /// Nothing uses it afterwards.
    fn close(self) -> i32 {
        // SAFETY: open or null, and closed once.
        unsafe { (gpuio().gpuio_rings_close)(self.0) }
    }
}

#[test]
fn options_outside_their_ranges_are_refused_and_said() {
    if gpuio_gpu::initiated::available().is_err() {
        println!("SKIPPED: no rings here");
        return;
    }
    let none = RingsOptions::default();
    for (options, words) in [
        (RingsOptions { rings: 1025, ..none }, "1 to 1024"),
        (RingsOptions { poll_threads: 2, ..none }, "1 for each at most"),
        (RingsOptions { buffers: 9, max_buffers: 8, ..none }, "9 buffers at first of 8"),
        (RingsOptions { max_buffers: 16385, ..none }, "1 to 16384"),
        (RingsOptions { max_files: 65537, ..none }, "1 to 65536"),
        (RingsOptions { buffer_length: 4097, ..none }, "multiples of 4096"),
        (RingsOptions { reserved: 1, ..none }, "`reserved` is not 0"),
    ] {
        assert_eq!(Opened::new(options), Err(-libc::EINVAL), "{options:?}");
        assert!(gpuio().error().contains(words), "{options:?}: {}", gpuio().error());
    }
    let rings = Opened::new(none).unwrap();
    assert_eq!(rings.add_file(-1), Err(-libc::EBADF));
    let directory = File::open("/").unwrap();
    assert_eq!(rings.add_file(directory.as_raw_fd()), Err(-libc::EINVAL));
    assert!(matches!(rings.place(), (1, 1..)), "{:?}", rings.place());
    assert_eq!(rings.grow(65), -libc::EINVAL);
    assert_eq!(rings.close(), 0);
    assert_eq!(Opened::NONE.close(), -libc::EINVAL);
    assert_eq!((Opened::NONE.place(), Opened::NONE.in_flight()), ((0, 0), 0));
}

#[test]
fn the_header_that_nvrtc_gets_is_the_file() {
    // SAFETY: without arguments.
    let text = unsafe { (gpuio().gpuio_device_header)() };
    // SAFETY: a C string that lives as long as the process.
    let text = unsafe { std::ffi::CStr::from_ptr(text) };
    let file = std::fs::read(repository("crates/gpu/kernels/gpuio_device.cuh")).unwrap();
    assert!(text.to_bytes() == file);
}

/// Threads of this process with this name.
fn threads(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|found| found.starts_with(name)).count()
}

#[test]
fn opening_and_closing_leaves_no_thread() {
    if gpuio_gpu::initiated::available().is_err() {
        println!("SKIPPED: no rings here");
        return;
    }
    for _ in 0..50 {
        let few = RingsOptions { rings: 4, poll_threads: 1, ..Default::default() };
        assert_eq!(Opened::new(few).unwrap().close(), 0);
    }
    let began = Instant::now();
    // Another test's, at most.
    while threads("gpuio-rings") > 2 || threads("iou-sqp") > 2 {
        assert!(began.elapsed() < HANG, "{} threads", threads("gpuio-rings"));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_child_of_fork_has_no_rings() {
    if gpuio_gpu::initiated::available().is_err() {
        println!("SKIPPED: no rings here");
        return;
    }
    let rings = Opened::new(RingsOptions::default()).unwrap();
    // SAFETY: the child uses nothing that another thread may hold, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = rings.in_flight() == 0
            && [rings.wake(), rings.grow(64), rings.close()] == [-libc::EPERM; 3];
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if right { 7 } else { 1 }) }
    }
    let mut status = 0;
    // SAFETY: `status` is valid for the write of a number.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 7));
    assert_eq!((rings.wake(), rings.close()), (0, 0));
}
