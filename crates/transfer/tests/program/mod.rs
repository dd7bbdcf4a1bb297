//! A program with streams of its own: it calls the driver itself.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ffi::{c_int, c_uint, c_void};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use gpuio_gpu::{DevPtr, RawStream, UserStream};
use gpuio_transfer::{
    Fault, File, OnCompletion, Op, Params, ResolvedParams, Transfer, Transferred,
};
use libloading::Library;

use crate::support::gpu;

fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let path = gpu().context.driver().library_path_hint();
        // SAFETY: the library is loaded already; its initialisers do not run again.
        unsafe { Library::new(path) }.unwrap()
    })
}

/// One test of a program at a time: a test that frees GPU memory waits for the stream that another
/// test holds, and blocks the call that would let that stream on. To be taken first in a test, so
/// that it is given back last.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A driver call that creates something: an output pointer, flags, and one more number.
pub(crate) fn make(name: &str, flags: c_uint, device: c_int) -> *mut c_void {
    type Make = unsafe extern "C" fn(*mut *mut c_void, c_uint, c_int) -> c_int;
    let mut made = std::ptr::null_mut();
    // SAFETY: the symbol's type, by the manual; one that takes fewer arguments leaves the last.
    let call = unsafe { library().get::<Make>(name) }.unwrap();
    // SAFETY: `made` is valid for the write of a pointer.
    assert_eq!(unsafe { call(&raw mut made, flags, device) }, 0, "{name}");
    made
}

pub(crate) fn on(name: &str, handle: *mut c_void) -> c_int {
    type On = unsafe extern "C" fn(*mut c_void) -> c_int;
    // SAFETY: the symbol's type, by the manual.
    let on = unsafe { library().get::<On>(name) }.unwrap();
    // SAFETY: a handle that the program made.
    unsafe { on(handle) }
}

pub(crate) fn alloc(len: usize) -> u64 {
    type Alloc = unsafe extern "C" fn(*mut u64, usize) -> c_int;
    let mut address = 0;
    // SAFETY: the symbol's type, by the manual.
    let call = unsafe { library().get::<Alloc>("cuMemAlloc_v2") }.unwrap();
    // SAFETY: `address` is valid for the write of an address.
    assert_eq!(unsafe { call(&raw mut address, len) }, 0);
    address
}

pub(crate) fn capture(handle: *mut c_void, begin: bool) {
    type Begin = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
    type End = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int;
    if begin {
        // SAFETY: the symbol's type, by the manual.
        let call = unsafe { library().get::<Begin>("cuStreamBeginCapture_v2") }.unwrap();
        // SAFETY: a stream of the test's; mode 2 forbids nothing to other threads.
        assert_eq!(unsafe { call(handle, 2) }, 0);
    } else {
        let mut graph = std::ptr::null_mut();
        // SAFETY: the symbol's type, by the manual.
        let call = unsafe { library().get::<End>("cuStreamEndCapture") }.unwrap();
        // SAFETY: a stream of the test's; `graph` is valid for the write of a pointer.
        assert_eq!(unsafe { call(handle, &raw mut graph) }, 0);
    }
}

/// A stream of the program's, which has the primary context current.
pub(crate) struct Made {
    pub(crate) handle: *mut c_void,
    is_ours: bool,
}

// SAFETY: the driver takes a handle from any thread.
unsafe impl Send for Made {}
// SAFETY: as for Send.
unsafe impl Sync for Made {}

/// The result of a transfer, after the stream has passed it.
pub(crate) type Completion = Receiver<(ResolvedParams, Result<Transferred, Fault>)>;

impl Made {
    pub(crate) fn new() -> Self {
        gpu().context.make_current().unwrap();
        // Not ordered with the legacy stream.
        Self { handle: make("cuStreamCreate", 1, 0), is_ours: true }
    }

    /// One that the test destroys itself.
    pub(crate) fn of(handle: *mut c_void) -> Self {
        Self { handle, is_ours: false }
    }

    pub(crate) fn default(number: usize) -> Self {
        gpu().context.make_current().unwrap();
        Self { handle: std::ptr::without_provenance_mut(number), is_ours: false }
    }

    pub(crate) fn sync(&self) {
        assert_eq!(on("cuStreamSynchronize", self.handle), 0);
    }

    pub(crate) fn raw(&self) -> RawStream {
        RawStream::new(self.handle)
    }

    fn user(&self) -> UserStream {
        // SAFETY: the stream lives as long as `self`.
        unsafe { UserStream::new(gpu().context.driver(), self.raw()) }.unwrap()
    }

    /// A copy of the program's own.
    pub(crate) fn copy(&self, to: u64, from: u64, len: usize) {
        // SAFETY: memory of the test's, which lives until the stream is waited for.
        unsafe { self.user().copy(DevPtr(to), DevPtr(from), len) }.unwrap();
    }

    /// Holds the stream until the gate is opened.
    pub(crate) fn hold(&self, gate: &'static Gate) {
        let data = std::ptr::from_ref(gate).cast_mut().cast();
        // SAFETY: the function takes a gate, which lives for ever.
        unsafe { self.user().call(pass, data) }.unwrap();
    }

    pub(crate) fn put(
        &self,
        transfer: &Transfer,
        (op, file): (Op, &File),
        address: u64,
        params: Params,
    ) -> Result<Completion, Fault> {
        let (report, completion) = channel();
        let on_completion: OnCompletion = Box::new(move |read, outcome| {
            let _ = report.send((read, outcome));
        });
        let location = transfer.locate(address).unwrap();
        let at = (location, address);
        // SAFETY: memory and parameters of the test's, which live until the stream was passed.
        unsafe { transfer.enqueue(self.raw(), (op, file), at, params, on_completion) }?;
        Ok(completion)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.is_ours {
            gpu().context.make_current().unwrap();
            on("cuStreamDestroy_v2", self.handle);
        }
    }
}

/// The gate at which a stream waits.
#[derive(Default)]
pub(crate) struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn new() -> &'static Self {
        Box::leak(Box::default())
    }

    pub(crate) fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

unsafe extern "C" fn pass(data: *mut c_void) {
    // SAFETY: a gate of the test's, which lives for ever.
    let gate = unsafe { &*data.cast::<Gate>() };
    let open = gate.open.lock().unwrap();
    drop(gate.changed.wait_while(open, |open| !*open).unwrap());
}
