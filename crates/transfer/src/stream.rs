//! Transfers in the order of a program's stream.
//!
//! Nothing here is put into a stream of ours: the program's stream itself tells us that it has come
//! to the transfer, waits for a word that a thread of ours stores when the file's bytes lie in
//! page-locked memory (`cuStreamWaitValue32`), and runs the kernel that moves them. A copy in a
//! stream of ours could stand behind that very wait: streams share the few hardware queues of a
//! context (`CUDA_DEVICE_MAX_CONNECTIONS`), and one that waits holds up all of them. Sources: CUDA
//! driver API manual, "Stream Memory Operations" and `cuLaunchHostFunc`; CUDA C++ Programming
//! Guide, "Environment Variables".
//!
//! A read, in rounds of a part of the page-locked memory each, of which there are one or two:
//!
//! ```text
//! stream:   tell   wait   gather   tell   wait   gather   ...   store "empty"
//! threads:     read   read ...        read (the next round into the free part)
//! ```
//!
//! A write is the other way round: gather, tell; the threads write; the stream waits for them
//! before a part is used again, and at the end.
//!
//! The stream tells by storing a word (`cuStreamWriteValue32`), which one thread of ours, the
//! sentry (`sentry.rs`), looks at. Behind it, where the sentry has too much to look at or the
//! stream was held up by others the last time, it also calls a function (`cuLaunchHostFunc`), on a
//! thread of the driver's that an interrupt wakes: the stream goes on when that has returned, which
//! takes longer than to read 1 MiB. Where the driver has no waits for words, the function reads or
//! writes itself and returns when that is done.
//!
//! Progress: the threads that serve streams ([mod@threads]) wait for nothing but file I/O, so each
//! word comes whatever else the GPU is held up by. Page-locked memory for the whole transfer is
//! taken when it is put into the stream, and where the bound is reached a small piece beyond it, so
//! nobody waits for memory that only later work of a stream gives back.
//!
//! What a kernel of ours can't reach, memory of a context that the program created, is moved by
//! threads of a second kind with our own streams, which are of the primary context, while the
//! stream waits: queues are not shared between contexts. For memory of the host there is no GPU's
//! part at all.

mod area;
mod order;
mod put;
mod rounds;
mod sentry;
mod serve;
mod threads;
mod watch;

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use gpuio_gpu::{GatherKernel, GpuError, RawStream, UserStream};
use gpuio_io::engine::Op;

use crate::fault::Fault;
use crate::file::File;
use crate::gpus::{Device, Gpus};
use crate::moved::Moved;
use crate::place::Place;
use crate::settings::Settings;
use crate::transfer::{State, Transfer};
use area::Areas;
use order::{Order, Way};
use threads::Threads;
use watch::Key;

/// When a parameter is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param<T> {
    /// When the transfer is put into the stream.
    Now(T),
    /// When the stream comes to the transfer: it is read from there then.
    Later(*const T),
}

/// What a transfer in a stream takes.
#[derive(Debug, Clone, Copy)]
pub struct Params {
    /// The most bytes that `size` may be.
    pub size_most: usize,
    /// Bytes.
    pub size: Param<usize>,
    /// Where in the file, in bytes.
    pub file_offset: Param<i64>,
    /// Where in the memory, in bytes from the base on.
    pub buffer_offset: Param<i64>,
}

// SAFETY: the addresses are only read from, once, by whoever serves the transfer; the caller of
// `Transfer::read_on` keeps them for any thread.
unsafe impl Send for Params {}
// SAFETY: as for Send.
unsafe impl Sync for Params {}

/// Parameters as they were when the stream came to the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Read {
    /// Bytes.
    pub size: usize,
    /// Where in the file, in bytes.
    pub file_offset: i64,
    /// Where in the memory, in bytes from the base on.
    pub buffer_offset: i64,
}

/// How many mappings that follow one another are looked at, some 100 ns each: 128 GiB of the
/// smallest.
const MAPPINGS_MOST: u32 = 1 << 16;

/// Called once, before work that stands in the stream behind the transfer, on any thread: it must
/// not call the driver nor wait for the GPU. It is not called if the context is lost before the
/// stream comes to the transfer.
pub type Ended = Box<dyn FnOnce(Read, Result<Moved, Fault>) + Send>;

/// What is kept for streams.
#[derive(Debug)]
pub(crate) struct Streams {
    bytes_most: u64,
    chunk: usize,
    words: bool,
    devices: RwLock<HashMap<u32, &'static Served>>,
    /// They wait for file I/O alone.
    files: Threads,
    /// They make whole calls, which wait for the GPU.
    calls: Threads,
}

/// What is kept for streams of one device.
#[derive(Debug)]
struct Served {
    device: &'static Device,
    areas: Areas,
    words: bool,
}

impl Streams {
    pub(crate) fn new(settings: &Settings) -> Self {
        // Those who only help are no more than pay beside the program's own threads.
        let most = settings.workers_most.clamp(1, settings.busy_most.max(1));
        Self {
            bytes_most: settings.ring_bytes_most,
            chunk: settings.chunk(),
            words: settings.stream_words,
            devices: RwLock::default(),
            files: Threads::new(most, settings.stream_sentry),
            calls: Threads::new(most, settings.stream_sentry),
        }
    }

    /// What is kept for a device, made when it is first asked for.
    fn device(&self, gpus: &Gpus, index: u32) -> Result<&'static Served, GpuError> {
        // Before the locks: this may call the driver.
        let device = gpus.device(index)?;
        let known = self.devices.read().unwrap_or_else(PoisonError::into_inner);
        let is_current = |served: &&&'static Served| std::ptr::eq(served.device, device);
        if let Some(served) = known.get(&index).filter(is_current) {
            return Ok(served);
        }
        drop(known);
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(served) = devices.get(&index).filter(is_current) {
            return Ok(served);
        }
        let served: &'static Served = Box::leak(Box::new(Served {
            device,
            areas: Areas::new(self.bytes_most, self.chunk),
            words: self.words && device.context().driver().waits_for_words(index),
        }));
        devices.insert(index, served);
        Ok(served)
    }
}

impl Served {
    fn kernel(&self) -> Option<&GatherKernel> {
        self.device.gather().ok()
    }
}

impl Transfer {
    /// Puts a read into a stream: from the file into the memory at `base`, which `place` was asked
    /// for. It happens after all that was put there before and before all that comes later, and
    /// `ended` is called with what became of it. Does not wait for the stream, unless the driver
    /// does because the stream is full.
    ///
    /// A default stream is that of the calling thread's current context.
    ///
    /// # Errors
    ///
    /// Nothing was put into the stream, or what was does nothing, and `ended` is not called: a
    /// stream that is being captured, or the driver's refusal.
    ///
    /// # Safety
    ///
    /// The stream is live. Until it has passed the transfer the addresses of parameters are valid
    /// for reads, and the memory from `base` on, as far as the parameters then tell, is live and
    /// used by nobody but earlier and later work of the stream.
    pub unsafe fn read_on(
        &self,
        stream: RawStream,
        file: &File,
        (place, base): (Place, u64),
        params: Params,
        ended: Ended,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's promise.
        unsafe { self.put_on(stream, (Op::Read, file), (place, base), params, ended) }
    }

    /// As [`Transfer::read_on`], from memory to the file.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Safety
    ///
    /// As there.
    pub unsafe fn write_on(
        &self,
        stream: RawStream,
        file: &File,
        (place, base): (Place, u64),
        params: Params,
        ended: Ended,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's promise.
        unsafe { self.put_on(stream, (Op::Write, file), (place, base), params, ended) }
    }

    /// # Safety
    ///
    /// As [`Transfer::read_on`].
    unsafe fn put_on(
        &self,
        stream: RawStream,
        (op, file): (Op, &File),
        (place, base): (Place, u64),
        params: Params,
        ended: Ended,
    ) -> Result<(), Fault> {
        let state = self.state();
        if state.forked {
            return Err(Fault::Forked);
        }
        let driver = state.gpus.driver().ok_or(Fault::NoDriver)?;
        // SAFETY: the caller's promise.
        let stream = unsafe { UserStream::new(driver, stream) }?;
        if stream.entered(|| stream.is_capturing())?? {
            return Err(Fault::Captured);
        }
        let index = stream.device()?;
        if state.gpus.current(index).is_some_and(|device| device.context().is_reset()) {
            state.gpus.renew(index);
        }
        let served = state.streams.device(&state.gpus, index)?;
        let way = self.way(served, &stream, place, base, &params)?;
        let kept = (state, served, Key::of(&stream));
        let order = Order::new(kept, (op, file.clone()), (way, base), params, ended)?;
        put::put(&stream, served, &order)
    }

    /// How the bytes shall go.
    fn way(
        &self,
        served: &'static Served,
        stream: &UserStream,
        place: Place,
        base: u64,
        params: &Params,
    ) -> Result<Way, Fault> {
        let Some(device) = place.device() else {
            return Ok(Way::Host);
        };
        let context = served.device.context();
        if stream.context() != context.raw() || context.device() != device {
            return Ok(Way::Call(place));
        }
        if !is_reached(place) {
            return Err(Fault::OtherContext);
        }
        // Nothing but the kernel can move the bytes: a copy in a stream of ours could stand behind
        // the program's wait.
        served.device.gather()?;
        let skip = u64::try_from(now(params.buffer_offset)).unwrap_or(0);
        // An offset that is read later may lead anywhere.
        let wanted = match params.buffer_offset {
            Param::Now(_) => skip.saturating_add(params.size_most as u64),
            Param::Later(_) => u64::MAX,
        };
        let reach = self.reach(place, base, wanted);
        let bring = place.managed.then(|| {
            let len = reach.saturating_sub(skip).min(params.size_most as u64);
            (base.saturating_add(skip), usize::try_from(len).unwrap_or(0))
        });
        Ok(Way::Gather { reach, bring: bring.filter(|(_, len)| *len > 0) })
    }

    /// How many bytes from the base on kernels reach: one allocation, and mappings that follow one
    /// another without a gap (`cuMemMap`) until there are as many as are wanted. What the driver
    /// allocates may lie side by side too, and is another's.
    fn reach(&self, place: Place, base: u64, wanted: u64) -> u64 {
        let end_of = |place: Place| {
            let (start, len) = place.range()?;
            is_reached(place).then(|| start.saturating_add(len))
        };
        let wanted = base.saturating_add(wanted);
        let mut end = end_of(place).unwrap_or(base);
        let mut mappings = 1;
        while place.loose && end > base && end < wanted && mappings < MAPPINGS_MOST {
            mappings += 1;
            let next = self.place(end).ok().filter(|next| next.loose).and_then(end_of);
            match next {
                Some(next) if next > end => end = next,
                _ => break,
            }
        }
        end.saturating_sub(base)
    }
}

/// Whether our kernel may go there. Managed memory is brought to the GPU before, as far as is known
/// by then where it will be; what is not there the GPU fetches page by page.
fn is_reached(place: Place) -> bool {
    place.is_primary() || place.managed
}

/// What a parameter is when the transfer is put into the stream: of a later one but a hint.
fn now(param: Param<i64>) -> i64 {
    match param {
        Param::Now(value) => value,
        // SAFETY: the caller of the transfer keeps the address valid.
        Param::Later(at) => unsafe { at.read_volatile() },
    }
}

/// The threads that serve a way.
fn threads(state: &'static State, way: &Way) -> &'static Threads {
    match way {
        Way::Call(_) => &state.streams.calls,
        Way::Host | Way::Gather { .. } => &state.streams.files,
    }
}

#[cfg(test)]
mod tests;
