//! pread(2) and pwrite(2) on threads of its own: asynchronous on every file system and kernel.
//!
//! Threads inherit the CPU affinity of the thread that opens the pool (clone(2),
//! sched_setaffinity(2)). More I/Os than threads wait in a queue. I/Os start in the order in
//! which they were pushed and finish in any.

use super::psync::{fds, transfer};
use super::{Done, Engine, EngineConfig, EngineError, Io, OpenedEngine, Push};
use gpuio_base::units::many;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most threads of one pool; a load of many workers with deep queues would otherwise run into
/// the limit on processes.
const MOST_THREADS: u32 = 64;

const NAME: &str = "pool";

pub(super) fn open(config: &EngineConfig) -> Result<OpenedEngine, EngineError> {
    let depth = config.depth.max(1);
    let wanted = depth.min(MOST_THREADS);
    let shared = Arc::new(Shared::default());
    let files: Arc<[RawFd]> = fds(&config.files).into();
    let mut pool = Pool { shared, threads: Vec::new(), batch: Vec::new(), out: 0, depth };
    let mut steps_down = Vec::new();
    let (sender, receiver) = channel();
    for number in 0..wanted {
        let (shared, files, sender) =
            (Arc::clone(&pool.shared), Arc::clone(&files), sender.clone());
        let builder = std::thread::Builder::new().name(format!("pool-{number}"));
        let body = move || {
            // The opener hears every thread out before it goes on.
            let _ = sender.send(rustix::thread::gettid().as_raw_nonzero().get());
            drop(sender);
            work(&shared, &files);
        };
        match builder.spawn(body) {
            Ok(thread) => pool.threads.push(thread),
            Err(err) if number == 0 => {
                let hint = "free some threads or raise the limit (ulimit -u, pids.max)";
                return Err(EngineError::new(NAME, "clone", &err, hint));
            }
            Err(err) => {
                steps_down.push(format!("pool: {number} threads, not {wanted}: {err}"));
                break;
            }
        }
    }
    let count = pool.threads.len();
    if depth > MOST_THREADS {
        steps_down.push(format!(
            "pool: {count} I/Os run at once, not {depth}: a pool has at most {MOST_THREADS} threads"
        ));
    }
    let actual = format!("pool ({})", many(count as u64, "thread"));
    drop(sender);
    let helpers = receiver.iter().collect();
    Ok(OpenedEngine { engine: Box::new(pool), actual, steps_down, helpers })
}

#[derive(Debug, Default)]
struct Shared {
    work: Mutex<Work>,
    more: Condvar,
    done: Mutex<Vec<Done>>,
    completed: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    queue: VecDeque<Io>,
    stop: bool,
}

/// No code that can panic runs under these locks, and what they guard is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread's life: what is in the queue is done before a stop is obeyed.
fn work(shared: &Shared, files: &[RawFd]) {
    let mut work = lock(&shared.work);
    loop {
        if let Some(io) = work.queue.pop_front() {
            drop(work);
            let done = Done { io, result: transfer(files, &io) };
            lock(&shared.done).push(done);
            shared.completed.notify_one();
            work = lock(&shared.work);
        } else if work.stop {
            return;
        } else {
            work = shared.more.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Pushed since the last submit: one lock for all of them.
    batch: Vec<Io>,
    out: usize,
    depth: u32,
}

impl Engine for Pool {
    fn push(&mut self, io: Io) -> Push {
        if self.out >= self.depth as usize {
            return Push::Full(io);
        }
        self.out += 1;
        self.batch.push(io);
        Push::Taken
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let many = self.batch.len() > 1;
        lock(&self.shared.work).queue.extend(self.batch.drain(..));
        if many {
            self.shared.more.notify_all();
        } else {
            self.shared.more.notify_one();
        }
        Ok(())
    }

    fn reap(&mut self, done: &mut Vec<Done>, at_least: usize) -> Result<(), EngineError> {
        self.submit()?;
        let want = at_least.min(self.out);
        let mut completed = lock(&self.shared.done);
        while completed.len() < want {
            completed =
                self.shared.completed.wait(completed).unwrap_or_else(PoisonError::into_inner);
        }
        self.out -= completed.len();
        done.append(&mut completed);
        Ok(())
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Result<(), EngineError> {
        self.submit()?;
        if self.out > 0 {
            let completed = lock(&self.shared.done);
            let none = |completed: &mut Vec<Done>| completed.is_empty();
            drop(self.shared.completed.wait_timeout_while(completed, timeout, none));
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.out
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut work = lock(&self.shared.work);
        work.queue.extend(self.batch.drain(..));
        work.stop = true;
        drop(work);
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked holds no I/O any more; there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}
