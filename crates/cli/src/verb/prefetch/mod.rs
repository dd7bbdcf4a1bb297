//! `gpuio prefetch`: fills the page cache with the files of a model, or with what a program read at
//! its last start, in that order.
//!
//! Files are opened to be read and never changed or locked. The order is that of a trace's calls,
//! or of the files' layout ([`order`]); how the bytes come, and how many, is [`fill`]'s.

mod fill;
mod order;

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gpuio_base::units::{human_bytes, human_rate};
use gpuio_host::{Root, memory};
use rustix::process::{Pid, test_kill_process};

use self::fill::{Filled, Left};
use self::order::Order;
use crate::args::Prefetch;
use crate::failure::Failure;
use crate::{interrupt, output};

pub(crate) fn run(prefetch: &Prefetch) -> Result<ExitCode, Failure> {
    let order = Order::of(&prefetch.paths)?;
    if prefetch.background {
        let mut command = again(prefetch.process, &prefetch.paths)?;
        command.stdin(Stdio::null()).stdout(std::io::stderr());
        command.spawn().map_err(not_started)?;
        return Ok(ExitCode::SUCCESS);
    }
    let process = prefetch.process.and_then(Pid::from_raw);
    let (signal, root) = (interrupt::flag(), Root::live());
    let stop = || {
        if signal.load(Ordering::Relaxed) {
            return Some("a signal".to_owned());
        }
        let ended = process.filter(|process| {
            test_kill_process(*process).is_err_and(|error| error == rustix::io::Errno::SRCH)
        });
        ended.map(|process| format!("the end of process {}", Pid::as_raw(Some(process))))
    };
    let began = Instant::now();
    let filled = fill::fill(&order, || memory::available_bytes(&root), stop)?;
    output::put(&format!("{}\n", line(&order, &filled, began.elapsed())))?;
    Ok(ExitCode::SUCCESS)
}

/// Fills the page cache beside a program: for `gpuio exec`, whose process becomes the program.
/// The one that works is no child of it, since the one that starts it ends at once: a program may
/// wait for all of its children.
pub(crate) fn beside(process: u32, paths: &[PathBuf]) -> Result<(), Failure> {
    let process = i32::try_from(process).ok();
    let mut command = again(process, paths)?;
    command.arg("--background");
    let status = command.status().map_err(not_started)?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Usage("--prefetch: nothing is prefetched, as it says above".into())),
    }
}

/// This verb again, in a process of its own.
fn again(process: Option<i32>, paths: &[PathBuf]) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(not_started)?;
    let mut command = Command::new(program);
    command.arg("prefetch");
    if let Some(process) = process {
        command.arg("--while").arg(process.to_string());
    }
    let paths = paths.iter().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    // A name may begin with a dash, but none that begins at the root.
    command.args(paths.map(PathBuf::into_os_string));
    Ok(command)
}

fn not_started(error: std::io::Error) -> Failure {
    Failure::Ran(format!("gpuio's own executable: {error}"))
}

fn line(order: &Order, filled: &Filled, took: Duration) -> String {
    let shown = |bytes: u64| human_bytes(bytes as f64);
    let files = match order.files.as_slice() {
        [path] => path.display().to_string(),
        several => format!("{} files", several.len()),
    };
    let mut text = format!("prefetch: {files}, {}: ", shown(order.bytes()));
    text += &match filled.cached {
        Some(cached) => format!("{} cached already, {} read", shown(cached), shown(filled.read)),
        None => format!(
            "{} read or cached already (the kernel says which only to their owner) in {:.1} s",
            shown(filled.read),
            took.as_secs_f64()
        ),
    };
    // A rate of bytes that were perhaps not read says nothing.
    if filled.read > 0 && filled.cached.is_some() {
        let rate = filled.read as f64 / took.as_secs_f64().max(1e-9);
        text += &format!(" in {:.1} s ({})", took.as_secs_f64(), human_rate(rate));
    }
    match &filled.left {
        None => {}
        Some((left, Left::Memory(available))) => {
            text += &format!(
                "; {} left out: {} of memory are available, of which an eighth stays free",
                shown(*left),
                shown(*available)
            );
        }
        Some((left, Left::Stopped(why))) => {
            text += &format!("; {} left out: stopped by {why}", shown(*left));
        }
    }
    text
}
