//! Streams: each is a thread and the queue it works off.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::backing::MemoryRange;
use crate::code::{
    Answer, Code, INVALID_HANDLE, NOT_READY, OUT_OF_MEMORY, STREAM_CAPTURE_UNSUPPORTED, UNKNOWN,
};
use crate::device::Device;
use crate::event::{Event, StreamError, report};
use crate::kernel::Filling;
use crate::machine::Machine;
use crate::managed::{Managed, Residence};
use crate::memory::{Kind, MemOp};
use crate::module::Launch;
use crate::pace::Progress;

/// How often a word that a stream waits for is looked at.
const POLL: Duration = Duration::from_micros(10);

#[derive(Debug)]
pub(crate) enum Work {
    /// Copy `len` bytes; with `spoil`, get one bit of them wrong.
    Copy {
        to: MemoryRange,
        from: MemoryRange,
        len: usize,
        spoil: bool,
    },
    /// Move the pages of managed memory.
    Migrate {
        memory: Arc<Managed>,
        skip: usize,
        len: usize,
        to: Residence,
    },
    /// Run a kernel.
    Launch(Launch),
    /// Set `len` bytes.
    Set {
        to: MemoryRange,
        len: usize,
        value: u8,
    },
    Write {
        to: MemoryRange,
        value: u32,
    },
    /// Hold the stream until a word is as `compare` wants it.
    Wait {
        at: MemoryRange,
        compare: Compare,
    },
    /// Do work of a synchronous call that has returned: later than that by the requested lag
    /// for. Then the operation is over.
    Late(Box<Work>, [Option<MemOp>; 2]),
    Free(u64, Kind),
    /// Call a function of the host's.
    Call(HostCall),
    /// Come to an event's record of this number.
    Record(Arc<Event>, u64),
    /// Hold the stream until an event's record of this number is reached.
    Await(Arc<Event>, u64),
    /// Fail with this code and touch nothing.
    Fail(Code),
}

/// Whether a stream's work is captured, by `CUstreamCaptureStatus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Capture {
    None = 0,
    Active = 1,
    Spoiled = 2,
}

/// The comparison for which a word is waited for, by the flags of `cuStreamWaitValue32`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Compare {
    /// At or past the value, going round.
    AtLeast(u32),
    Equal(u32),
    /// Any bit of the value set.
    And(u32),
    /// Any bit clear that is clear in the value.
    Nor(u32),
}

impl Compare {
    fn holds(self, word: u32) -> bool {
        match self {
            Self::AtLeast(value) => word.wrapping_sub(value).cast_signed() >= 0,
            Self::Equal(value) => word == value,
            Self::And(value) => word & value != 0,
            Self::Nor(value) => !(word | value) != 0,
        }
    }
}

/// A function of the host's and what it is given.
#[derive(Debug)]
pub(crate) struct HostCall {
    pub(crate) function: unsafe extern "C" fn(*mut c_void),
    pub(crate) data: *mut c_void,
}

// SAFETY: the caller of `cuLaunchHostFunc` expects that the stream calls it, in a thread of its
// own.
unsafe impl Send for HostCall {}

/// A queue of work of one device. Dropping it lets the queue run empty and ends the thread.
#[derive(Debug)]
pub(crate) struct Stream(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    machine: &'static Machine,
    device: u32,
    context: usize,
    captured: AtomicU8,
    capture_mode: AtomicI32,
    delay: Duration,
    queue: Mutex<Queue>,
    /// There is work, or the queue is closed.
    work: Condvar,
    /// A piece of work is done.
    done: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    /// With the time at which each was put there.
    work: VecDeque<(Work, Instant)>,
    put: u64,
    done: u64,
    closed: bool,
    /// Failures that were not reported yet, oldest first, and some that were.
    failures: Vec<StreamError>,
}

impl Stream {
    /// Starts the thread of an empty stream.
    pub(crate) fn new(machine: &'static Machine, device: u32, context: usize) -> Answer<Self> {
        let shared = Arc::new(Shared {
            machine,
            device,
            context,
            captured: AtomicU8::new(Capture::None as u8),
            capture_mode: AtomicI32::new(0),
            delay: machine.config.delay,
            queue: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        let worker = Arc::clone(&shared);
        let name = format!("softgpu{device}-stream");
        let thread = std::thread::Builder::new().name(name);
        thread.spawn(move || worker.run()).map_err(|_| OUT_OF_MEMORY)?;
        Ok(Self(shared))
    }

    /// The context it belongs to, by handle.
    pub(crate) fn context(&self) -> usize {
        self.0.context
    }

    /// Begins or ends the capture of its work. Nothing can be captured here: work that is put there
    /// during that time is refused.
    pub(crate) fn capture(&self, state: Capture, mode: i32) {
        self.0.capture_mode.store(mode, Ordering::Release);
        self.0.captured.store(state as u8, Ordering::Release);
    }

    pub(crate) fn capture_mode(&self) -> i32 {
        self.0.capture_mode.load(Ordering::Acquire)
    }

    /// A capture in progress becomes invalid.
    pub(crate) fn spoil_capture(&self) {
        let (from, to) = (Capture::Active as u8, Capture::Spoiled as u8);
        let order = Ordering::AcqRel;
        let _ = self.0.captured.compare_exchange(from, to, order, Ordering::Acquire);
    }

    /// Whether its work is captured, by the driver's numbers.
    pub(crate) fn captured(&self) -> u8 {
        self.0.captured.load(Ordering::Acquire)
    }

    pub(crate) fn put(&self, work: Work) -> Answer<()> {
        if self.captured() != Capture::None as u8 {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        let mut queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.closed {
            return Err(INVALID_HANDLE);
        }
        queue.work.push_back((work, Instant::now()));
        queue.put += 1;
        drop(queue);
        self.0.work.notify_one();
        Ok(())
    }

    /// Whether all work is done.
    pub(crate) fn query(&self) -> Answer<()> {
        let queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.done == queue.put { report(&queue.failures) } else { Err(NOT_READY) }
    }

    /// Waits until the work that is there now is done.
    pub(crate) fn sync(&self) -> Answer<()> {
        report(&self.passed().failures)
    }

    /// The same, without a report of failures.
    pub(crate) fn wait(&self) {
        drop(self.passed());
    }

    /// Waits, and answers the queue as it is then.
    fn passed(&self) -> MutexGuard<'_, Queue> {
        let queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let put = queue.put;
        let wait = self.0.done.wait_while(queue, |queue| queue.done < put);
        wait.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.0.work.notify_one();
    }
}

impl Shared {
    /// The thread: works the queue off, asleep while it is empty.
    fn run(&self) {
        let mut progress = Progress::new();
        while let Some((work, put)) = self.next() {
            if let Work::Record(event, number) = work {
                // One step under the lock: a caller that observes the event observes the stream's
                // progress, and vice versa.
                let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                queue.failures.retain(|failure| failure.load(Ordering::Acquire) != 0);
                event.reach(number, &queue.failures, progress.reached(put));
                queue.done += 1;
            } else {
                let outcome =
                    catch_unwind(AssertUnwindSafe(|| self.at_pace(work, put, &mut progress)));
                let outcome = outcome.unwrap_or(Err(UNKNOWN));
                let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(code) = outcome {
                    self.lose(code);
                    queue.failures.push(Arc::new(AtomicI32::new(code.0)));
                }
                queue.done += 1;
            }
            self.done.notify_all();
        }
    }

    fn next(&self) -> Option<(Work, Instant)> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |queue: &mut Queue| queue.work.is_empty() && !queue.closed;
        let wait = self.work.wait_while(queue, idle);
        wait.unwrap_or_else(PoisonError::into_inner).work.pop_front()
    }

    /// Performs it, and returns when it ended by the device's clock.
    fn at_pace(&self, work: Work, put: Instant, progress: &mut Progress) -> Answer<()> {
        if let (Work::Launch(launch), Some(device)) = (&work, self.device()) {
            let reach = self.machine.reach(self.device);
            if let Some(lasts) = launch.lasts(&reach).filter(|_| !device.is_lost()) {
                let _filling = Filling::now();
                progress.last(device, put, lasts + self.delay);
                return launch.run(&reach);
            }
        }
        let done = self.perform(work);
        progress.now();
        done
    }

    fn perform(&self, work: Work) -> Answer<()> {
        if self.device().is_some_and(Device::is_lost) {
            // A lost device touches no memory any more, and each wait answers why.
            return Ok(());
        }
        match work {
            Work::Copy { to, from, len, spoil } => {
                self.dawdle();
                // Both ranges were looked up in full when the copy was put here.
                to.copy_by_driver(&from, len)?;
                if spoil {
                    let middle = to.now(len)?.wrapping_add(len / 2);
                    // SAFETY: within the range, for no copy of 0 bytes is put here.
                    let byte = unsafe { middle.read() };
                    // SAFETY: as above.
                    unsafe { middle.write(byte ^ 1) };
                }
                Ok(())
            }
            Work::Migrate { memory, skip, len, to } => {
                self.dawdle();
                memory.migrate(skip, len, to)
            }
            Work::Launch(launch) => {
                self.dawdle();
                launch.run(&self.machine.reach(self.device))
            }
            Work::Set { to, len, value } => {
                self.dawdle();
                to.set(value, len)
            }
            Work::Write { to, value } => {
                self.dawdle();
                word(&to)?.store(value, Ordering::Release);
                Ok(())
            }
            Work::Late(work, memops) => {
                std::thread::sleep(self.machine.config.lag);
                let done = self.perform(*work);
                drop(memops);
                done
            }
            Work::Wait { at, compare } => self.hold(&at, compare),
            Work::Free(address, kind) => self.machine.memory.free(address, kind),
            Work::Call(HostCall { function, data }) => {
                // SAFETY: the caller that submitted it promised that it may be called once, by the
                // manual.
                unsafe { function(data) };
                Ok(())
            }
            Work::Await(event, number) => {
                event.pass(number);
                Ok(())
            }
            // Done in `run`.
            Work::Record(..) => Ok(()),
            Work::Fail(code) => {
                self.dawdle();
                Err(code)
            }
        }
    }

    /// Waits for the word, as long as the device is not lost.
    fn hold(&self, at: &MemoryRange, compare: Compare) -> Answer<()> {
        while !compare.holds(word(at)?.load(Ordering::Acquire)) {
            if self.device().is_some_and(Device::is_lost) {
                break;
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn dawdle(&self) {
        if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
        if let Some(device) = self.device() {
            let config = &self.machine.config;
            device.pace.disturb(config.steal, config.contention);
        }
    }

    fn device(&self) -> Option<&Device> {
        self.machine.devices.get(self.device as usize)
    }

    /// Takes the device away, if the failure is one that lasts.
    fn lose(&self, code: Code) {
        if code.is_sticky()
            && let Some(device) = self.device()
        {
            device.lose(code);
        }
    }
}

/// The word at a range, which was looked up with four bytes and is aligned.
fn word(range: &MemoryRange) -> Answer<&AtomicU32> {
    let at = range.now(4)?.cast::<u32>();
    // SAFETY: four bytes that were looked up, aligned by the check of the call that put the work
    // here; what is ours lives in the share that the range holds, the rest is memory that the
    // caller of the driver must keep. Both sides use it atomically, by the manual.
    Ok(unsafe { AtomicU32::from_ptr(at) })
}
