//! Reads of many ranges in one call, and copies of their bytes to other GPUs.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Known;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gpuio_base::safetensors::loader;
use gpuio_gpu::{Context, DevPtr, Stream};
use gpuio_transfer::live_page::monotonic_ns;
use gpuio_transfer::{Batch, Entry, File, MemoryLocation, Op, spawn_thread};

use crate::error::{CallError, run};
use crate::memory::Moved;
use crate::process::{context, count, file, gpu, path, read, transfer};
use crate::strips::{self, Rows, Strip};

/// Rows of so many bytes or more are read each by a call of their own, shorter ones in batches.
const LONG: usize = 256 << 10;
/// Rows that a batch has at a time.
const BATCH: u32 = 4096;

/// `gpuio_part`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    offset: u64,
    length: u64,
    rows: u64,
    stride: u64,
    address: *mut c_void,
    copies: *const *mut c_void,
    copy_count: u32,
    fd: c_int,
}

/// Memory of a part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) location: MemoryLocation,
    pub(crate) address: u64,
}

/// A range of a file that one call reads, or rows that a batch reads.
pub(crate) struct Range {
    pub(crate) fd: c_int,
    pub(crate) file: File,
    pub(crate) to: Target,
    pub(crate) copies: Vec<Target>,
    pub(crate) offset: u64,
    /// Bytes of a row.
    pub(crate) len: usize,
    pub(crate) rows: u64,
    pub(crate) stride: u64,
}

/// The ranges and strips of a call, which its lanes take one after another.
struct Job {
    ranges: Vec<Range>,
    strips: Vec<Strip>,
    contexts: HashMap<u32, Context>,
    next: AtomicUsize,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    moved: Moved,
    failed: Option<CallError>,
    lanes: usize,
}

/// The kinds of memory of addresses. Neighbours are most often in one allocation.
#[derive(Default)]
struct Places(Option<MemoryLocation>);

impl Places {
    fn target(&mut self, address: *mut c_void, bytes: usize) -> Result<Target, CallError> {
        let address = address.expose_provenance() as u64;
        let location = match self.0.filter(|known| known.holds(address, bytes)) {
            Some(known) => known,
            None => transfer().locate(address).map_err(|error| CallError::of_gpu(&error))?,
        };
        self.0 = Some(location);
        Ok(Target { location, address })
    }
}

impl Job {
    fn new(parts: &[Part]) -> Result<Job, CallError> {
        let (mut files, mut places) = (HashMap::new(), Places::default());
        let (mut ranges, mut contexts) = (Vec::with_capacity(parts.len()), HashMap::new());
        for part in parts {
            let what = || format!("{} bytes at {} of {}", part.length, part.offset, path(part.fd));
            let wrong = |text: &str| CallError::new(libc::EINVAL, text).of(&what());
            let (rows, len) = match part.rows {
                0 | 1 => (1, Some(part.length)),
                rows if part.stride == part.length => (1, rows.checked_mul(part.length)),
                rows => (rows, Some(part.length)),
            };
            let len = len.and_then(|len| usize::try_from(len).ok());
            let bytes =
                len.zip(usize::try_from(rows).ok()).and_then(|(len, rows)| len.checked_mul(rows));
            let (Some(len), Some(bytes)) = (len, bytes) else {
                return Err(wrong("no memory has so many bytes"));
            };
            if bytes == 0 {
                continue;
            }
            if part.address.is_null() {
                return Err(wrong("`address` is NULL. Pass valid memory"));
            }
            let named = |error: CallError| error.of(&what());
            let file: File = match files.entry(part.fd) {
                Known::Occupied(known) => File::clone(known.get()),
                Known::Vacant(place) => place.insert(file(part.fd).map_err(named)?).clone(),
            };
            let to = places.target(part.address, bytes).map_err(named)?;
            let copies = match part.copy_count {
                0 => &[][..],
                _ if part.copies.is_null() => {
                    return Err(wrong("`copies` is NULL. Pass addresses"));
                }
                // SAFETY: the caller's promise: so many addresses.
                count => unsafe { std::slice::from_raw_parts(part.copies, count as usize) },
            };
            let copies: Vec<Target> = copies
                .iter()
                .map(|address| places.target(*address, bytes).map_err(named))
                .collect::<Result<_, _>>()?;
            for target in copies.iter().chain((!copies.is_empty()).then_some(&to)) {
                let Some(device) = target.location.device() else {
                    return Err(wrong("bytes are copied between GPUs, and this is host memory"));
                };
                know(&mut contexts, device).map_err(named)?;
            }
            if let Some(device) = to.location.device().filter(|_| rows > 1) {
                know(&mut contexts, device).map_err(named)?;
            }
            let one = Range {
                fd: part.fd,
                file,
                to,
                copies,
                offset: part.offset,
                len,
                rows,
                stride: part.stride,
            };
            ranges.push(one);
        }
        let copied = ranges.iter().any(|one| !one.copies.is_empty());
        let reach = match reach_each_other(&contexts) {
            Err(error) if copied => return Err(error),
            // Each GPU can read its columns by itself.
            reach => reach.unwrap_or(false),
        };
        let strips = strips::take(&mut ranges, reach);
        let (next, state, ended) = (AtomicUsize::new(0), Mutex::default(), Condvar::new());
        Ok(Job { ranges, strips, contexts, next, state, ended })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many lanes are of use.
    fn lanes(&self) -> usize {
        let strips = self.strips.iter().map(|strip| &strip.rows);
        let ranges = self.ranges.iter().chain(strips);
        let mut devices: Vec<_> = ranges.map(|one| one.to.location.device()).collect();
        let all = devices.len();
        devices.sort_unstable();
        devices.dedup();
        (devices.len() * loader::CALLS).min(all)
    }

    /// Reads all ranges, with threads that help.
    fn run(self) -> Result<Moved, CallError> {
        let job = Arc::new(self);
        for nth in 1..job.lanes() {
            job.lock().lanes += 1;
            let lane = Arc::clone(&job);
            let work = move || {
                // Another lane takes its ranges where it panics, and its share of work is missing.
                let _ended = Ended(&lane);
                lane.take_all(nth);
            };
            if !spawn_thread("gpuio-load", work) {
                job.lock().lanes -= 1;
            }
        }
        job.take_all(0);
        let mut state = job.lock();
        // The memory is the caller's, and not to be written after this call.
        while state.lanes > 0 {
            state = job.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match state.failed.take() {
            Some(error) => Err(error),
            None => Ok(state.moved),
        }
    }

    /// The work of the lane with this number.
    fn take_all(&self, lane: usize) {
        let mut copier = Copier::new(self, lane);
        let mut moved = Moved::default();
        let mut failed = None;
        while failed.is_none() && self.lock().failed.is_none() {
            let nth = self.next.fetch_add(1, Ordering::Relaxed);
            let strip = nth.checked_sub(self.ranges.len()).and_then(|nth| self.strips.get(nth));
            let (done, range) = match (self.ranges.get(nth), strip) {
                (Some(range), _) => {
                    let read = range.read();
                    (read.and_then(|done| copier.copy(range).map(|()| done)), range)
                }
                (None, Some(strip)) => {
                    let read = match copier.rows(strip) {
                        Ok(rows) => strip.read(rows),
                        // No memory is left beside the caller's.
                        Err(_) => strip.columns().try_fold(Moved::default(), |mut all, one| {
                            all.add(&one.read()?);
                            Ok(all)
                        }),
                    };
                    (read, &strip.rows)
                }
                (None, None) => break,
            };
            let named = |error: CallError| {
                let Range { offset, len, rows, .. } = range;
                let rows = match strip {
                    None if *rows > 1 => format!("{rows} rows of "),
                    _ => String::new(),
                };
                let file = path(range.fd);
                error.of(&format!("gpuio_read_parts: {rows}{len} bytes at {offset} of {file}"))
            };
            match done {
                Ok(done) => moved.add(&done),
                Err(error) => failed = Some(named(error)),
            }
        }
        let failed = failed.or(copier.wait().err());
        let mut state = self.lock();
        state.moved.add(&moved);
        if state.failed.is_none() {
            state.failed = failed;
        }
    }
}

/// The end of a lane, however it ends.
struct Ended<'a>(&'a Job);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if std::thread::panicking() && state.failed.is_none() {
            let text = "a defect in gpuio: a thread panicked. Please report it";
            state.failed = Some(CallError::new(libc::ENOTRECOVERABLE, text));
        }
        state.lanes -= 1;
        self.0.ended.notify_all();
    }
}

impl Range {
    fn read(&self) -> Result<Moved, CallError> {
        if self.rows == 1 {
            return self.row(0);
        }
        let mut moved = Moved::default();
        if self.len >= LONG {
            for nth in 0..self.rows {
                moved.add(&self.row(nth)?);
            }
            return Ok(moved);
        }
        let batch = transfer().batch(BATCH);
        let mut nth = 0;
        while nth < self.rows || batch.outstanding() > 0 {
            let room = u64::from(batch.capacity() - batch.outstanding());
            let end = self.rows.min(nth + room);
            let entries = (nth..end).map(|row| self.entry(row)).collect();
            nth = end;
            self.take(&batch, entries, &mut moved)?;
        }
        Ok(moved)
    }

    /// Gives a batch rows, and takes what is ready.
    fn take(&self, batch: &Batch, rows: Vec<Entry>, moved: &mut Moved) -> Result<(), CallError> {
        // SAFETY: the memory is the caller's promise for all of the call, which ends after the
        // batch: `Batch` waits for what runs when it is dropped.
        let submitted = unsafe { batch.submit(rows) };
        submitted.map_err(|full| CallError::new(libc::EIO, full.to_string()))?;
        for event in batch.events(BATCH / 2, BATCH, None) {
            let range = (self.offset, self.len as u64);
            count(event.cookie, self.to.location, range, &event.outcome);
            let done = event.outcome.map_err(|fault| CallError::of_fault(&fault))?;
            moved.add(&done.into());
        }
        Ok(())
    }

    fn address(&self, nth: u64) -> u64 {
        self.to.address + nth * self.len as u64
    }

    fn entry(&self, nth: u64) -> Entry {
        Entry {
            op: Op::Read,
            file: self.file.clone(),
            location: self.to.location,
            address: self.address(nth),
            len: self.len,
            offset: self.offset.saturating_add(nth.saturating_mul(self.stride)),
            cookie: monotonic_ns(),
        }
    }

    fn row(&self, nth: u64) -> Result<Moved, CallError> {
        let Entry { file, location, address, len, offset, .. } = self.entry(nth);
        // SAFETY: the caller's promise for the whole call.
        let done = unsafe { read(&file, location, address, len, offset) };
        done.map(Moved::from).map_err(|fault| CallError::of_fault(&fault))
    }
}

/// The copies of a lane to other GPUs, which go on while it reads the next range.
struct Copier<'a> {
    contexts: &'a HashMap<u32, Context>,
    streams: HashMap<u32, Stream>,
    /// Memory for strips, of `longest` bytes.
    rows: HashMap<u32, Rows>,
    longest: usize,
    lane: usize,
}

impl<'a> Copier<'a> {
    fn new(job: &'a Job, lane: usize) -> Self {
        let longest = job.strips.iter().map(|strip| strip.rows.len).max().unwrap_or(0);
        let (streams, rows) = (HashMap::new(), HashMap::new());
        Copier { contexts: &job.contexts, streams, rows, longest, lane }
    }

    /// The lane's memory on the strip's GPU.
    fn rows(&mut self, strip: &Strip) -> Result<&Rows, CallError> {
        let device = strip.device(self.lane);
        let device = device.and_then(|device| self.contexts.get_key_value(&device));
        let Some((device, context)) = device else {
            unreachable!("`Job::new` made a context for each GPU of a strip")
        };
        match self.rows.entry(*device) {
            Known::Occupied(known) => Ok(known.into_mut()),
            Known::Vacant(place) => Ok(place.insert(Rows::new(context, self.longest)?)),
        }
    }

    fn copy(&mut self, range: &Range) -> Result<(), CallError> {
        let contexts = self.contexts;
        let place = |target: &Target| {
            let context = target.location.device().and_then(|device| contexts.get(&device));
            context.map(|context| (DevPtr(target.address), context))
        };
        let len = range.len * usize::try_from(range.rows).unwrap_or(0);
        for copy in &range.copies {
            // `Job::new` made a context for each.
            let (Some(to), Some(from)) = (place(copy), place(&range.to)) else { continue };
            let made = from.1.entered(|| {
                let stream = match self.streams.entry(from.1.device()) {
                    Known::Occupied(known) => known.into_mut(),
                    Known::Vacant(place) => place.insert(Stream::new(from.1)?),
                };
                // SAFETY: the caller's promise for all of the call, and `wait` is called before its
                // end; the read of `from` has ended.
                unsafe { stream.peer_copy(to, from, len) }
            });
            made.flatten().map_err(|error| CallError::of_gpu(&error))?;
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), CallError> {
        let mut result = Ok(());
        let of_rows = self.rows.values().map(|rows| &rows.stream);
        for stream in self.streams.values().chain(of_rows) {
            let waited = stream.context().entered(|| stream.sync());
            result = result.and(waited.flatten().map_err(|error| CallError::of_gpu(&error)));
        }
        result
    }
}

/// Makes the context of a device, unless it is there.
fn know(contexts: &mut HashMap<u32, Context>, device: u32) -> Result<(), CallError> {
    if let Known::Vacant(place) = contexts.entry(device) {
        place.insert(context(device)?);
    }
    Ok(())
}

/// Lets each of these GPUs reach the others' memory, where it can. False if one can't.
fn reach_each_other(contexts: &HashMap<u32, Context>) -> Result<bool, CallError> {
    let mut all = true;
    let pairs = contexts.values().flat_map(|one| contexts.values().map(move |other| (one, other)));
    for (one, other) in pairs.filter(|(one, other)| one.device() != other.device()) {
        let reach = || match one.can_access_peer(other)? {
            true => one.enable_peer_access(other).map(|()| true),
            false => Ok(false),
        };
        all &= reach().map_err(|error| CallError::of_gpu(&error))?;
    }
    Ok(all)
}

/// Reads many ranges of files into memory.
///
/// # Safety
/// `parts` is valid for the read of `count` parts, whose memory is valid as in `gpuio_read`;
/// `moved` is null or valid for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_read_parts(
    parts: *const Part,
    count: u64,
    moved: *mut Moved,
) -> c_int {
    run(|| {
        let parts = match usize::try_from(count) {
            Ok(0) => &[][..],
            _ if parts.is_null() => return Err(CallError::null("gpuio_read_parts", "parts")),
            // SAFETY: not null, and the caller's promise.
            Ok(count) => unsafe { std::slice::from_raw_parts(parts, count) },
            Err(_) => return Err(CallError::new(libc::EINVAL, "no memory has so many parts")),
        };
        let done = Job::new(parts).map_err(|error| error.of("gpuio_read_parts"))?.run()?;
        if !moved.is_null() {
            // SAFETY: not null, and the caller's promise.
            unsafe { moved.write(done) };
        }
        Ok(())
    })
}

/// Whether copies between two GPUs go from one to the other.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn gpuio_reaches(device: c_int, other: c_int) -> c_int {
    let mut reaches = false;
    let code = run(|| {
        let ask = || {
            let (one, other) = (context(gpu(device)?)?, context(gpu(other)?)?);
            let both =
                one.can_access_peer(&other).and_then(|can| Ok(can && other.can_access_peer(&one)?));
            both.map_err(|error| CallError::of_gpu(&error))
        };
        reaches = device == other || ask().map_err(|error| error.of("gpuio_reaches"))?;
        Ok(())
    });
    if code == 0 { c_int::from(reaches) } else { code }
}
