//! Measures transfers and their cost: `cargo run --release -p gpuio-transfer --example rate --
//! --gpu system --file /data/x --size 4g --threads 1,16 --block 4k,64k,1m,4m`.
//!
//! Threads read (or write) blocks of a warm file for some seconds, into GPU memory of their own,
//! and a row shows the result. `--way plain` does the same by one `pread(2)` and one copy from
//! page-locked memory; nothing here may be slower. Each thread opens the file for itself; with
//! `--shared` all methods except `plain` open it once. `--way stream` enqueues transfers into a
//! stream per thread, as many as `--batch` says (1 without it), and waits for it.
#![allow(unsafe_code, reason = "the interface is unsafe")]
#![allow(clippy::unwrap_used, reason = "a tool for whoever works on the crate: a panic will do")]
#![allow(clippy::print_stdout, reason = "what it prints is what it is for")]

mod args;
mod methods;

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use args::Args;
use gpuio_gpu::{Context, Driver};
use gpuio_transfer::Transfer;

const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    let args = Args::read();
    make(&args);
    let driver = Driver::load(&args.settings.driver).unwrap();
    let context = Context::new(&driver, 0).unwrap();
    let transfer = Transfer::new(args.settings.clone());
    println!("{:?} on {}", args.settings, driver.devices().unwrap()[0].name);
    println!(
        "{:>8} {:>10} {:>7} {:>6} {:>9} {:>10} {:>11} {:>9} {:>9} {:>9}",
        "way",
        "block",
        "threads",
        "batch",
        "GiB/s",
        "calls/s",
        "CPU us/MiB",
        "p50 us",
        "p99 us",
        "max us"
    );
    for &block in &args.blocks {
        for &threads in &args.threads {
            for method in &args.methods {
                if args.cold {
                    chill(&args);
                }
                let row = run(&args, method, &context, &transfer, block, threads);
                row.print(method, block, threads, args.batch);
            }
        }
    }
}

/// Makes the file if it is shorter than requested, and reads it once.
fn make(args: &Args) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&args.file)
        .unwrap();
    let piece: Vec<u8> =
        (0..1_u32 << 18).flat_map(|word| word.wrapping_mul(0x9E37).to_le_bytes()).collect();
    let mut at = file.metadata().unwrap().len() / piece.len() as u64 * piece.len() as u64;
    while at < args.size {
        file.write_all_at(&piece, at).unwrap();
        at += piece.len() as u64;
    }
    file.sync_all().unwrap();
    let mut into = piece;
    for at in (0..args.size).step_by(into.len()) {
        file.read_at(&mut into, at).unwrap();
    }
}

fn chill(args: &Args) {
    use std::os::fd::AsRawFd;
    let file = File::open(&args.file).unwrap();
    // SAFETY: the call takes numbers only.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// The parameters of a method.
struct Work<'a> {
    args: &'a Args,
    context: &'a Context,
    transfer: &'a Transfer,
    file: File,
    /// The file that all threads share, with `--shared`.
    shared: Option<gpuio_transfer::File>,
    block: usize,
    thread: u64,
    over: &'a AtomicBool,
    start: &'a Barrier,
}

struct Row {
    bytes: u64,
    calls: u64,
    wall: Duration,
    cpu: Duration,
    /// Nanoseconds of each call, sorted.
    times: Vec<u32>,
}

fn run(
    args: &Args,
    method: &str,
    context: &Context,
    transfer: &Transfer,
    block: usize,
    threads: u64,
) -> Row {
    let (over, start) =
        (AtomicBool::new(false), Barrier::new(usize::try_from(threads).unwrap() + 1));
    let flags = if args.direct { libc::O_DIRECT } else { 0 };
    let mut row =
        Row { bytes: 0, calls: 0, wall: Duration::ZERO, cpu: Duration::ZERO, times: Vec::new() };
    let open =
        || OpenOptions::new().read(true).write(true).custom_flags(flags).open(&args.file).unwrap();
    let shared = args.shared.then(|| transfer.file(open().as_fd()).unwrap());
    std::thread::scope(|scope| {
        let one = |thread| {
            let (file, shared) = (open(), shared.clone());
            let (over, start) = (&over, &start);
            let work = Work { args, context, transfer, file, shared, block, thread, over, start };
            scope.spawn(move || match method {
                "plain" => methods::plain(&work),
                "stream" => methods::stream(&work),
                _ if args.batch > 0 => methods::batch(&work),
                _ => methods::call(&work),
            })
        };
        let handles: Vec<_> = (0..threads).map(one).collect();
        start.wait();
        let (began, cpu) = (Instant::now(), cpu());
        std::thread::sleep(args.seconds);
        over.store(true, Ordering::Relaxed);
        for handle in handles {
            let (bytes, calls, times) = handle.join().unwrap();
            row.bytes += bytes;
            row.calls += calls;
            row.times.extend(times);
        }
        row.wall = began.elapsed();
        row.cpu = self::cpu() - cpu;
    });
    row.times.sort_unstable();
    row
}

impl Work<'_> {
    fn file(&self) -> gpuio_transfer::File {
        let own = || self.transfer.file(self.file.as_fd()).unwrap();
        self.shared.as_ref().map_or_else(own, gpuio_transfer::File::with_own_count)
    }
}

impl Row {
    fn print(&self, method: &str, block: usize, threads: u64, batch: u32) {
        let seconds = self.wall.as_secs_f64();
        let mib = self.bytes as f64 / MIB;
        let at = |part: usize| {
            let index = (self.times.len() * part / 1000).min(self.times.len().saturating_sub(1));
            f64::from(self.times.get(index).copied().unwrap_or(0)) / 1000.0
        };
        println!(
            "{method:>8} {block:>10} {threads:>7} {batch:>6} {:>9.2} {:>10.0} {:>11.1} {:>9.1} \
             {:>9.1} {:>9.1}",
            mib / 1024.0 / seconds,
            self.calls as f64 / seconds,
            self.cpu.as_secs_f64() * 1e6 / mib,
            at(500),
            at(990),
            at(1000),
        );
    }
}

/// Processor time of the process so far, user and system.
fn cpu() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for the write of one rusage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: zeroed, then written.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.cast_unsigned())
            + Duration::from_micros(time.tv_usec.cast_unsigned())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}
