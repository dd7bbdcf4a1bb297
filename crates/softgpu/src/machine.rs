//! The whole: settings, devices, memory, handles. One for the process, made by the first `cuInit`.

use std::cell::RefCell;
use std::ffi::c_void;
use std::io::Write as _;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use crate::code::{Answer, Code, INVALID_CONTEXT, INVALID_DEVICE, INVALID_VALUE, NOT_INITIALIZED};
use crate::config::Config;
use crate::event::Event;
use crate::handles::Handles;
use crate::memory::Memory;
use crate::module::{Function, Module};
use crate::peer::Peers;
use crate::place::Budget;
use crate::stream::Stream;
use crate::vmm::Physical;

/// The handle of device 0's primary context; the next device's is 16 more.
const FIRST_CONTEXT: usize = 0x0C70_0000;

/// One software GPU.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) budget: Arc<Budget>,
    retained: AtomicU32,
    sticky: AtomicI32,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) config: Config,
    pub(crate) devices: Vec<Device>,
    pub(crate) memory: Memory,
    pub(crate) peers: Peers,
    pub(crate) streams: Handles<Stream>,
    pub(crate) events: Handles<Event>,
    pub(crate) modules: Handles<Module>,
    pub(crate) functions: Handles<Function>,
    pub(crate) physical: Handles<Physical>,
}

static MACHINE: OnceLock<Option<Machine>> = OnceLock::new();

thread_local! {
    /// The calling thread's stack of contexts, by device; the last is current.
    static CONTEXTS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Makes the machine, if there is none yet.
pub(crate) fn start() -> Answer<&'static Machine> {
    let made = MACHINE.get_or_init(|| match Config::read(|name| std::env::var(name).ok()) {
        Ok(config) => Some(Machine::new(config)),
        Err(error) => {
            // The answer is a number: this is the one place where the reason can be told.
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
        let devices = (0..config.devices)
            .map(|index| Device {
                index,
                budget: Arc::new(Budget::new(config.memory)),
                retained: AtomicU32::new(0),
                sticky: AtomicI32::new(0),
            })
            .collect();
        let peers = Peers::new(config.peer);
        Self {
            config,
            devices,
            memory: Memory::new(),
            peers,
            streams: Handles::from(0x0100_0000),
            events: Handles::from(0x0200_0000_0000),
            modules: Handles::from(0x0300_0000_0000),
            functions: Handles::from(0x0400_0000_0000),
            physical: Handles::from(0x0500_0000_0000),
        }
    }

    /// The device of this number.
    pub(crate) fn device(&self, number: i32) -> Answer<&Device> {
        let index = usize::try_from(number).map_err(|_| INVALID_DEVICE)?;
        self.devices.get(index).ok_or(INVALID_DEVICE)
    }

    /// The device whose primary context has this handle.
    pub(crate) fn owner(&self, context: *mut c_void) -> Answer<&Device> {
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
    /// for what was under way may still touch memory.
    pub(crate) fn bound(&self) -> Answer<&Device> {
        let index = CONTEXTS.with_borrow(|stack| stack.last().copied()).ok_or(INVALID_CONTEXT)?;
        let device = self.device(index.cast_signed())?;
        device.alive()?;
        Ok(device)
    }

    /// Replaces the current context; null takes it away.
    pub(crate) fn set_current(&self, context: *mut c_void) -> Answer<()> {
        if context.is_null() {
            let _ = self.pop();
            return Ok(());
        }
        let index = self.owner(context)?.index;
        CONTEXTS.with_borrow_mut(|stack| {
            stack.pop();
            stack.push(index);
        });
        Ok(())
    }

    /// Makes a context current over the one that is.
    pub(crate) fn push(&self, context: *mut c_void) -> Answer<()> {
        let index = self.owner(context)?.index;
        CONTEXTS.with_borrow_mut(|stack| stack.push(index));
        Ok(())
    }

    /// Takes the current context away and uncovers the one below.
    pub(crate) fn pop(&self) -> Answer<*mut c_void> {
        let index = CONTEXTS.with_borrow_mut(Vec::pop).ok_or(INVALID_CONTEXT)?;
        Ok(self.device(index.cast_signed())?.context())
    }
}

impl Device {
    /// The handle of the primary context.
    pub(crate) fn context(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(FIRST_CONTEXT + self.index as usize * 16)
    }

    /// Takes one more share in the primary context.
    pub(crate) fn retain(&self) -> *mut c_void {
        self.retained.fetch_add(1, Ordering::AcqRel);
        self.context()
    }

    /// Gives a share back.
    pub(crate) fn release(&self) -> Answer<()> {
        let less = |count: u32| count.checked_sub(1);
        let update = self.retained.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        update.map(|_| ()).map_err(|_| INVALID_CONTEXT)
    }

    fn alive(&self) -> Answer<()> {
        if self.retained.load(Ordering::Acquire) > 0 { Ok(()) } else { Err(INVALID_CONTEXT) }
    }

    /// Answers the failure by which the device was lost.
    pub(crate) fn usable(&self) -> Answer<()> {
        match self.sticky.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.usable().is_err()
    }

    /// From now on every call on this device answers `code`. The first such code stays.
    pub(crate) fn lose(&self, code: Code) {
        let _ = self.sticky.compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Acquire);
    }
}
