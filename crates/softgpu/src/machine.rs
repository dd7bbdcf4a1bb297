//! The whole: settings, devices, memory, handles. One for the process, made by the first `cuInit`.

use std::cell::RefCell;
use std::ffi::c_void;
use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use crate::capture::Captures;
use crate::code::{
    Answer, CONTEXT_IS_DESTROYED, INVALID_CONTEXT, INVALID_DEVICE, INVALID_HANDLE, INVALID_VALUE,
    NOT_INITIALIZED,
};
use crate::config::Config;
use crate::default::{Defaults, Which};
use crate::device::{Device, FIRST_CONTEXT};
use crate::event::Event;
use crate::frees::Frees;
use crate::handles::Handles;
use crate::memory::Memory;
use crate::module::{Function, Module};
use crate::peer::Peers;
use crate::reach::Reach;
use crate::stream::Stream;
use crate::vmm::Physical;

/// The handles of the contexts that programs create begin here.
const FIRST_CREATED: usize = 0x0600_0000_0000;

/// A context that a program created.
#[derive(Debug)]
pub(crate) struct Created {
    device: u32,
}

/// `CU_CTX_SYNC_MEMOPS`.
const SYNC_MEMOPS: u32 = 0x80;

#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) config: Config,
    pub(crate) devices: Vec<Device>,
    pub(crate) memory: Memory,
    pub(crate) frees: Frees,
    pub(crate) peers: Peers,
    pub(crate) contexts: Handles<Created>,
    pub(crate) streams: Handles<Stream>,
    pub(crate) defaults: Defaults,
    pub(crate) captures: Captures,
    pub(crate) events: Handles<Event>,
    pub(crate) modules: Handles<Module>,
    pub(crate) functions: Handles<Function>,
    pub(crate) physical: Handles<Physical>,
}

static MACHINE: OnceLock<Option<Machine>> = OnceLock::new();

thread_local! {
    /// The calling thread's stack of contexts, by handle; the last is current.
    static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Makes the machine, if there is none yet.
pub(crate) fn start() -> Answer<&'static Machine> {
    let made =
        MACHINE.get_or_init(|| match Config::read(gpuio_guard::objects::environment::text) {
            Ok(config) => Some(Machine::new(config)),
            Err(error) => {
                // The answer is a number: only here can the reason be printed.
                let _ = writeln!(std::io::stderr(), "gpuio software GPU: {error}");
                None
            }
        });
    made.as_ref().ok_or(INVALID_VALUE)
}

/// The machine that [`start`] made.
pub(crate) fn get() -> Answer<&'static Machine> {
    MACHINE.get().and_then(Option::as_ref).ok_or(NOT_INITIALIZED)
}

impl Machine {
    fn new(config: Config) -> Self {
        let devices = (0..config.devices).map(|index| Device::new(index, config.memory)).collect();
        let peers = Peers::new(config.peer);
        Self {
            config,
            devices,
            memory: Memory::new(),
            frees: Frees::default(),
            peers,
            contexts: Handles::from("context", FIRST_CREATED),
            streams: Handles::from("stream", 0x0100_0000),
            defaults: Defaults::default(),
            captures: Captures::default(),
            events: Handles::from("event", 0x0200_0000_0000),
            modules: Handles::from("module", 0x0300_0000_0000),
            functions: Handles::from("function", 0x0400_0000_0000),
            physical: Handles::from("physical memory", 0x0500_0000_0000),
        }
    }

    pub(crate) fn device(&self, number: i32) -> Answer<&Device> {
        let index = usize::try_from(number).map_err(|_| INVALID_DEVICE)?;
        self.devices.get(index).ok_or(INVALID_DEVICE)
    }

    /// The memory as a kernel of a device sees it.
    pub(crate) fn reach(&self, device: u32) -> Reach<'_> {
        let multiprocessors = self.config.multiprocessors;
        Reach { memory: &self.memory, peers: &self.peers, multiprocessors, device }
    }

    /// The device whose context has this handle. That of a context which was destroyed ends the
    /// process.
    pub(crate) fn owner(&self, context: *mut c_void) -> Answer<&Device> {
        if let Ok(created) = self.contexts.get(context) {
            return self.device(created.device.cast_signed());
        }
        self.primary(context)
    }

    /// The device whose primary context has this handle.
    fn primary(&self, context: *mut c_void) -> Answer<&Device> {
        let past = context.addr().checked_sub(FIRST_CONTEXT).ok_or(INVALID_CONTEXT)?;
        if past % 16 != 0 {
            return Err(INVALID_CONTEXT);
        }
        let device = self.devices.get(past / 16).ok_or(INVALID_CONTEXT)?;
        device.alive()?;
        Ok(device)
    }

    /// The device whose context is current on this thread. Answers the device's lasting failure,
    /// if it has one.
    pub(crate) fn current(&self) -> Answer<&Device> {
        let device = self.bound()?;
        device.usable()?;
        Ok(device)
    }

    /// The same, for a device that is lost too: for calls that wait. They have to wait even then,
    /// for what was in flight may still touch memory.
    pub(crate) fn bound(&self) -> Answer<&Device> {
        let here = self.here().ok_or(INVALID_CONTEXT)?;
        if here.addr() < FIRST_CREATED {
            return self.primary(here);
        }
        // A context stays current where it is after it was destroyed, and calls fail with that
        // error.
        let created = self.contexts.find(here).ok_or(CONTEXT_IS_DESTROYED)?;
        self.device(created.device.cast_signed())
    }

    /// The device of the current context and that context's handle, as ranges of memory name it.
    pub(crate) fn current_with_context(&self) -> Answer<(&Device, usize)> {
        let context = self.here().ok_or(INVALID_CONTEXT)?;
        Ok((self.current()?, context.addr()))
    }

    /// The handle of the calling thread's current context, which may have been destroyed.
    pub(crate) fn here(&self) -> Option<*mut c_void> {
        CONTEXTS.with_borrow(|stack| stack.last().copied()).map(std::ptr::without_provenance_mut)
    }

    /// Whether the calling thread's current context is a primary one.
    pub(crate) fn is_primary_here(&self) -> bool {
        self.here().is_some_and(|here| here.addr() < FIRST_CREATED)
    }

    /// Replaces the current context; null takes it away.
    pub(crate) fn set_current(&self, context: *mut c_void) -> Answer<()> {
        if context.is_null() {
            let _ = self.pop();
            return Ok(());
        }
        self.owner(context)?;
        CONTEXTS.with_borrow_mut(|stack| {
            stack.pop();
            stack.push(context.addr());
        });
        Ok(())
    }

    /// Makes a context current over the one that is.
    pub(crate) fn push(&self, context: *mut c_void) -> Answer<()> {
        self.owner(context)?;
        CONTEXTS.with_borrow_mut(|stack| stack.push(context.addr()));
        Ok(())
    }

    /// Takes the current context away and uncovers the one below.
    pub(crate) fn pop(&self) -> Answer<*mut c_void> {
        let popped = CONTEXTS.with_borrow_mut(Vec::pop).ok_or(INVALID_CONTEXT)?;
        Ok(std::ptr::without_provenance_mut(popped))
    }

    /// Makes another context of a device than the primary one, and makes it current.
    pub(crate) fn create(&self, device: &Device) -> *mut c_void {
        let made = self.contexts.add(Created { device: device.index });
        CONTEXTS.with_borrow_mut(|stack| stack.push(made.addr()));
        made
    }

    /// Destroys a context that a program created, with its memory and its streams. On the calling
    /// thread it is taken away if it is current; elsewhere it stays so and answers that it is
    /// destroyed.
    pub(crate) fn destroy(&self, context: *mut c_void) -> Answer<()> {
        self.contexts.remove(context).map_err(|_| INVALID_CONTEXT)?;
        CONTEXTS.with_borrow_mut(|stack| {
            if stack.last() == Some(&context.addr()) {
                stack.pop();
            }
        });
        self.clear(context.addr());
        Ok(())
    }

    /// Takes away what belongs to a device's primary context, which is another one from then on,
    /// though it keeps its handle.
    pub(crate) fn reset(&self, device: &Device) {
        device.resets.fetch_add(1, Ordering::AcqRel);
        self.clear(device.context().addr());
    }

    /// The number of a context, which no other one ever has.
    pub(crate) fn id(&self, context: *mut c_void) -> Answer<u64> {
        let device = self.owner(context)?;
        let made = context.addr() as u64;
        if made >= FIRST_CREATED as u64 {
            return Ok(made);
        }
        Ok(u64::from(device.resets.load(Ordering::Acquire)) << 8 | u64::from(device.index))
    }

    /// Takes away what belongs to a context, once what is in flight there is done.
    fn clear(&self, context: usize) {
        let mut streams = self.streams.take(|stream| stream.context() == context);
        streams.extend(self.defaults.take(context));
        streams.iter().for_each(|stream| stream.wait());
        self.memory.free_all_of(context);
    }

    /// The stream with this handle, if it belongs to the calling thread's current context: one that
    /// was made there, or a default stream (null and 1, the legacy one; 2, the thread's own).
    pub(crate) fn stream(&'static self, handle: *mut c_void) -> Answer<Arc<Stream>> {
        let device = self.bound()?;
        let context = self.here().ok_or(INVALID_CONTEXT)?.addr();
        if let Some(kind) = Which::of(handle) {
            return self.defaults.get(self, device.index, context, kind);
        }
        let stream = self.streams.get(handle)?;
        if stream.context() == context { Ok(stream) } else { Err(INVALID_HANDLE) }
    }

    /// Whether synchronous operations issued by the calling thread synchronize in any case. Only
    /// primary contexts have flags here.
    pub(crate) fn synchronizes_memops(&self) -> Answer<bool> {
        let device = self.bound()?;
        let is_primary = self.here() == Some(device.context());
        Ok(is_primary && device.flags.load(Ordering::Acquire) & SYNC_MEMOPS != 0)
    }

    /// All streams of the calling thread's current context.
    pub(crate) fn streams_here(&self) -> Vec<Arc<Stream>> {
        let context = self.here().map_or(0, |here| here.addr());
        let mut streams = self.streams.all();
        streams.extend(self.defaults.all());
        streams.retain(|stream| stream.context() == context);
        streams
    }
}
