//! The lock-free parts of gpuio's `libcufile.so.0`, and of its rings for kernels, in loom:
//! `cargo xtask model`.
//!
//! The modules are the crates' own sources, included by their paths. The items that they take from
//! `crate` and from other crates are here: loom's atomics, locks and threads in `sync`, and as
//! little of the rest as they need to be compiled. Code that has a GPU on its other side is run
//! against a thread that does the kernel's or the stream's part, with the kernel's memory order.
//!
//! loom runs each test once for each order of its threads' steps, of the larger ones up to a number
//! of times that a thread is interrupted (`LOOM_MAX_PREEMPTIONS` sets another), and each value that
//! the memory model of C11 lets a load see. A lost wake-up is a deadlock, which loom finds too.
//!
//! It is a program and no test of cargo's, whose `cfg(test)` the sources' own tests would hear.
//! `--smoke` leaves out the rows that take longer than three seconds, for the tests of all crates.
#![cfg(not(test))]

use std::num::NonZero;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

// The crates' names for what is in this one.
extern crate self as gpuio_base;
extern crate self as gpuio_gpu;
extern crate self as rustix;

pub mod abi {
    pub type Handle = *mut std::ffi::c_void;
}

pub mod fork {
    /// No process of the model forks.
    pub fn generation() -> u32 {
        0
    }
}

pub mod spawn;

pub mod clock;
#[path = "../../../crates/transfer/src/idle.rs"]
mod idle;
#[path = "../../../crates/base/src/catalog/op.rs"]
mod op;
pub use op::Op;
pub mod sync;
pub mod thread {
    pub use crate::sync::futex;
}

mod call;
mod gpu;
mod handles;
mod litmus;
mod mailbox;
mod permits;
mod pool;
mod recorder;
mod rings;
mod slots;
mod stream;
mod users;
mod waited;

pub use gpu::{
    Context, DevPtr, GpuError, Leaked, Locked, PageSize, Piece, RawContext, RawStream, UserStream,
    most_pieces,
};

pub mod device {
    /// No call of the model is of a GPU's memory.
    #[derive(Debug)]
    pub struct Devices;

    impl Devices {
        pub fn in_use(&self) -> u32 {
            0
        }
    }
}

pub mod mapped {
    /// A range of a mapped file: here it holds nothing.
    #[derive(Debug)]
    pub struct MappedRange;
}

pub mod file {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Bottleneck {
        Cpu,
        Device,
        FileLock,
    }
}

pub mod settings {
    /// Those of the pool.
    #[derive(Debug)]
    pub struct Settings {
        pub max_workers: u32,
        pub max_active: u32,
        pub workers_per_gpu: u32,
        pub oversubscription: Option<u32>,
        pub oversubscribed_per_gpu: u32,
    }
}

pub mod fault {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Fault {
        Cancelled,
        Panicked,
    }
}

pub mod trace {
    pub mod write {
        pub use crate::recorder::Encoded;
    }
}

pub mod transferred {
    #[derive(Debug, Clone, Copy, Default)]
    pub struct RouteBytes;

    impl RouteBytes {
        pub fn add(&mut self, _: &RouteBytes) {}
    }

    #[derive(Debug)]
    pub struct Transferred {
        pub bytes: usize,
        pub route: RouteBytes,
    }
}

/// A test: it holds, or it breaks with these words.
pub struct Row {
    name: &'static str,
    breaks: Option<&'static str>,
    /// It takes longer than three seconds.
    is_slow: bool,
    run: fn(),
}

impl Row {
    const fn slow(mut self) -> Row {
        self.is_slow = true;
        self
    }
}

const fn holds(name: &'static str, run: fn()) -> Row {
    Row { name, breaks: None, is_slow: false, run }
}

const fn breaks(name: &'static str, words: &'static str, run: fn()) -> Row {
    Row { name, breaks: Some(words), is_slow: false, run }
}

/// Runs it in every order in which a thread is interrupted three times at most, where it could go
/// on: all orders would take hours. Errors show up with two, nearly always.
fn often(run: impl Fn() + Send + Sync + 'static) {
    interrupted(3, run);
}

/// As [`often`], with so many interruptions.
fn interrupted(most: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(most));
    model.max_branches = 10_000;
    model.check(run);
}

const MODULES: &[(&str, &[Row])] = &[
    ("model", litmus::ROWS),
    ("handles", handles::ROWS),
    ("workers", pool::ROWS),
    ("permits", permits::ROWS),
    ("call", call::ROWS),
    ("stream", stream::ROWS),
    ("slots", slots::ROWS),
    ("mailbox", mailbox::ROWS),
    ("recorder", recorder::ROWS),
    ("rings", rings::ROWS),
    ("users", users::ROWS),
    ("waited", waited::ROWS),
];
/// A test that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let wanted = argument.as_deref().unwrap_or("");
    let is_smoke = wanted == "--smoke";
    let wanted = if is_smoke { "" } else { wanted };
    if let Some(name) = wanted.strip_prefix("--row=") {
        let all = MODULES.iter().flat_map(|(_, rows)| rows.iter());
        all.filter(|row| row.name == name).for_each(|row| (row.run)());
        return ExitCode::SUCCESS;
    }
    let rows = MODULES.iter().flat_map(|(module, rows)| rows.iter().map(move |row| (module, row)));
    let rows = rows.filter(|(_, row)| !(is_smoke && row.is_slow));
    let rows: Vec<_> =
        rows.filter(|(module, row)| format!("{module}: {}", row.name).contains(wanted)).collect();
    let (waiting, counts) = (Mutex::new(rows.iter()), Mutex::new((0, 0)));
    let next = || waiting.lock().expect("no thread panics with it").next();
    let at_a_time = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some((module, row)) = next() {
                    let began = Instant::now();
                    let wrong = wrong(row);
                    let took = began.elapsed().as_secs_f64();
                    let mut counts = counts.lock().expect("no thread panics with it");
                    match &wrong {
                        None => counts.0 += 1,
                        Some(_) => counts.1 += 1,
                    }
                    let word = if wrong.is_none() { "ok" } else { "FAILED" };
                    println!("{word:<7} {took:5.1} s  {module}: {}", row.name);
                    wrong.iter().for_each(|wrong| println!("{wrong}"));
                }
            });
        }
    });
    let (passed, failed) = counts.into_inner().expect("no thread panics with it");
    println!("{passed} passed, {failed} failed");
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The error of a test, which runs in a process of its own: a panic may leave loom in the middle of
/// a run.
fn wrong(row: &Row) -> Option<String> {
    let program = std::env::current_exe().expect("the program has a file");
    let mut child = Command::new(program)
        .arg(format!("--row={}", row.name))
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started again");
    let pipe = child.stderr.take().expect("it was asked for");
    let said = std::thread::spawn(move || std::io::read_to_string(pipe).unwrap_or_default());
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if began.elapsed() > TIMEOUT {
            child.kill().expect("it is our child");
            return Some(format!("did not end in {} s", TIMEOUT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let said = said.join().expect("it only reads");
    match row.breaks {
        None => (!status.success()).then_some(said),
        Some(words) if !status.success() && said.contains(words) => None,
        Some(words) => Some(format!("should break with \"{words}\": {status}\n{said}")),
    }
}
