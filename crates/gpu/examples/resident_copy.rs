//! Measures the resident copy kernel: `cargo run --release -p gpuio-gpu --example resident_copy`.
//!
//! For each number of threads and each length: moves per second of all threads, and the time of
//! one, from page-locked memory to the device. Beside it what plain copies of the same threads do,
//! each with a stream of its own.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for developers")]
#![expect(unsafe_code, reason = "the copies are unsafe")]

use std::sync::Barrier;
use std::time::{Duration, Instant};

use gpuio_gpu::resident_copy::{CommandQueue, Outcome, Timing};
use gpuio_gpu::{Context, DevPtr, DeviceBuf, Driver, Locked, MemoryKind, PageSize, Stream, Which};

const SPAN: Duration = Duration::from_millis(500);

/// The result of one thread: the time of each move, in nanoseconds, and moves that found no room.
struct Done {
    times: Vec<u64>,
    busy: u64,
}

fn measure(threads: usize, work: impl Fn(&Barrier) -> Done + Sync) -> (f64, u64, u64, u64) {
    let gate = Barrier::new(threads);
    let done: Vec<Done> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(&gate))).collect();
        spawned.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let busy = done.iter().map(|done| done.busy).sum();
    let mut times: Vec<u64> = done.into_iter().flat_map(|done| done.times).collect();
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    let rate = times.len() as f64 / SPAN.as_secs_f64();
    (rate, at(50), at(99), busy)
}

fn repeat(gate: &Barrier, mut each: impl FnMut() -> bool) -> Done {
    let mut done = Done { times: Vec::new(), busy: 0 };
    each();
    gate.wait();
    let began = Instant::now();
    while began.elapsed() < SPAN {
        let since = Instant::now();
        if each() {
            done.times.push(u64::try_from(since.elapsed().as_nanos()).unwrap());
        } else {
            done.busy += 1;
        }
    }
    done
}

fn main() {
    let driver = Driver::load(&Which::System).or_else(|_| Driver::load(&Which::Software)).unwrap();
    let context = Context::new(&driver, 0).unwrap();
    let queue = CommandQueue::new(&context, Timing::default()).unwrap();
    println!("{}", driver.devices().unwrap()[0].name);
    println!(
        "threads  bytes  resident kernel: copies/s  p50 us  p99 us  busy  driver: copies/s  p50 us"
    );
    for threads in [1, 2, 4, 8, 12, 16, 24] {
        for len in [512, 4096, 16384, 65536] {
            let ends = || {
                let host = Locked::new(&context, len, PageSize::Plain).unwrap();
                (host, DeviceBuf::alloc(&context, MemoryKind::Device, len).unwrap())
            };
            let (rate, p50, p99, busy) = measure(threads, |gate| {
                let (host, device) = ends();
                let mut submitter = queue.submitter();
                // SAFETY: memory of this thread's own.
                let each = || unsafe { submitter.copy(host.ptr(), device.ptr(), len) }.unwrap();
                let mut each = each;
                repeat(gate, || each() == Outcome::Copied)
            });
            let (plain, plain_p50, ..) = measure(threads, |gate| {
                let (host, device) = ends();
                context.make_current().unwrap();
                let stream = Stream::new(&context).unwrap();
                repeat(gate, || {
                    let (dst, src): (DevPtr, DevPtr) = (device.ptr(), host.ptr());
                    // SAFETY: memory of this thread's own; the wait follows.
                    unsafe { stream.copy(dst, src, len) }.unwrap();
                    stream.sync().unwrap();
                    true
                })
            });
            let us = |nanoseconds: u64| Duration::from_nanos(nanoseconds).as_secs_f64() * 1e6;
            println!(
                "{threads:7} {len:6} {rate:19.0} {:7.1} {:7.1} {busy:5} {plain:17.0} {:7.1}",
                us(p50),
                us(p99),
                us(plain_p50),
            );
        }
    }
    println!("{} launches", queue.launches());
}
