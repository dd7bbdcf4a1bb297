//! The library's state: what is open and registered.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gpuio_guard::objects::environment;

use crate::cuda::{Context, Cuda, HostFunction, NOT_INITIALIZED};
use crate::error::{CallError, code};
use crate::fault::{FaultMode, Faults};
use crate::file::Registered;
use crate::properties;
use crate::stats::Stats;

/// Most bytes that a transfer holds in host memory at once.
const CHUNK: usize = 1 << 20;
/// O_DIRECT requires at most page alignment (open(2)).
const PAGE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) direction: Direction,
    pub(crate) handle: usize,
    pub(crate) base: u64,
    pub(crate) len: usize,
    pub(crate) file_offset: i64,
    pub(crate) buffer_offset: i64,
}

#[derive(Default)]
struct State {
    cuda: Option<Arc<Cuda>>,
    uses: u32,
    files: BTreeMap<usize, Arc<Registered>>,
    buffers: BTreeMap<u64, usize>,
    next: usize,
}

/// The whole library.
pub(crate) struct Machine {
    faults: Faults,
    pub(crate) stats: Stats,
    state: Mutex<State>,
}

/// The library of this process. If the environment can't be parsed, every call fails.
pub(crate) fn get() -> Result<&'static Machine, CallError> {
    static MACHINE: OnceLock<Option<Machine>> = OnceLock::new();
    let made = MACHINE.get_or_init(|| {
        let text = environment::text("GPUIO_SOFT_CUFILE_FAIL").unwrap_or_default();
        let faults = Faults::read(&text).ok()?;
        Some(Machine { faults, stats: Stats::default(), state: Mutex::default() })
    });
    made.as_ref().ok_or(CallError::from(code::INVALID_PROPS))
}

impl Machine {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The injected fault, as a failure of a call that moves nothing.
    pub(crate) fn fault(&self, call: &str) -> Result<(), CallError> {
        self.next(call).map_or(Ok(()), |mode| Err(mode.refusal()))
    }

    pub(crate) fn next(&self, call: &str) -> Option<FaultMode> {
        self.faults.next(call)
    }

    /// The context that is current in this thread.
    pub(crate) fn context(&self) -> Result<Context, CallError> {
        let cuda = self.start(&mut self.lock())?;
        cuda.context().map_err(driver)
    }

    /// Makes a context current in this thread.
    pub(crate) fn enter(&self, context: Context) -> Result<(), CallError> {
        let cuda = self.start(&mut self.lock())?;
        cuda.enter(context).map_err(driver)
    }

    /// Makes a stream call a function when it reaches it.
    ///
    /// # Safety
    /// As for [`Cuda::call_in_stream`].
    pub(crate) unsafe fn call_in_stream(
        &self,
        stream: *mut c_void,
        function: HostFunction,
        data: *mut c_void,
    ) -> Result<(), CallError> {
        let cuda = self.start(&mut self.lock())?;
        // SAFETY: the caller's promise.
        unsafe { cuda.call_in_stream(stream, function, data) }.map_err(driver)
    }

    pub(crate) fn open(&self) -> Result<(), CallError> {
        let mut state = self.lock();
        self.start(&mut state)?;
        state.uses += 1;
        Ok(())
    }

    /// Finds the software GPU, unless that is done.
    fn start(&self, state: &mut State) -> Result<Arc<Cuda>, CallError> {
        if let Some(cuda) = &state.cuda {
            return Ok(Arc::clone(cuda));
        }
        let named = environment::variable("CUFILE_ENV_PATH_JSON");
        if let Some(path) = named.filter(|path| !path.is_empty()) {
            let text = std::fs::read_to_string(path).map_err(|_| code::INVALID_PROPS)?;
            let config = gpuio_base::cufilejson::read(&text).map_err(|_| code::INVALID_PROPS)?;
            properties::configure(&config);
        }
        let cuda = Cuda::find();
        let cuda = cuda.ok_or(CallError::Code(code::CUDA_DRIVER_ERROR, NOT_INITIALIZED))?;
        let cuda = Arc::new(cuda);
        state.cuda = Some(Arc::clone(&cuda));
        Ok(cuda)
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.uses = state.uses.saturating_sub(1);
    }

    pub(crate) fn register(&self, fd: i32) -> Result<usize, CallError> {
        let mut state = self.lock();
        self.start(&mut state)?;
        if fd < 0 {
            return Err(code::INVALID_VALUE.into());
        }
        // Host memory is the only path here.
        if !properties::takes_files() {
            return Err(code::NVFS_SETUP_ERROR.into());
        }
        if state.files.values().any(|file| file.number == fd) {
            return Err(code::HANDLE_ALREADY_REGISTERED.into());
        }
        // SAFETY: the caller's descriptor, open during the call by the guide; a closed one fails.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        let own = borrowed.try_clone_to_owned().map_err(|_| code::GETNEWFD_FAILED)?;
        // Like NVIDIA's 1.15, with O_DIRECT and without.
        if has_no_follow(&own) {
            return Err(code::INVALID_FILE_OPEN_FLAG.into());
        }
        state.next += 1;
        let handle = state.next;
        state.files.insert(handle, Arc::new(Registered::new(fd, own)));
        Ok(handle)
    }

    pub(crate) fn deregister(&self, handle: usize) {
        self.lock().files.remove(&handle);
    }

    pub(crate) fn register_buffer(&self, base: u64, len: usize) -> Result<(), CallError> {
        let mut state = self.lock();
        self.start(&mut state)?;
        if base == 0 || len == 0 {
            return Err(code::INVALID_VALUE.into());
        }
        if state.buffers.contains_key(&base) {
            return Err(code::MEMORY_ALREADY_REGISTERED.into());
        }
        state.buffers.insert(base, len);
        Ok(())
    }

    pub(crate) fn deregister_buffer(&self, base: u64) -> Result<(), CallError> {
        let found = self.lock().buffers.remove(&base);
        found.map(|_| ()).ok_or(CallError::from(code::MEMORY_NOT_REGISTERED))
    }

    /// Moves bytes and returns how many. The lock is not held during the transfer.
    pub(crate) fn transfer(&self, mut request: Transfer) -> Result<usize, CallError> {
        let call = if request.direction == Direction::Read { "cuFileRead" } else { "cuFileWrite" };
        match self.faults.next(call) {
            None => {}
            Some(FaultMode::Crash) => std::process::abort(),
            Some(FaultMode::Code(code)) if code > 5000 => return Err(code.into()),
            Some(FaultMode::Code(errno)) => return Err(CallError::Errno(errno)),
            Some(FaultMode::Short) => request.len = request.len.div_ceil(2),
            Some(FaultMode::Lost) => return Err(CallError::Lost),
        }
        let (cuda, file, registered) = {
            let mut state = self.lock();
            let cuda = self.start(&mut state)?;
            let file = state.files.get(&request.handle).cloned();
            let file = file.ok_or(CallError::from(code::HANDLE_NOT_REGISTERED))?;
            (cuda, file, state.buffers.get(&request.base).copied())
        };
        let invalid = |_| CallError::from(code::INVALID_VALUE);
        let offset = u64::try_from(request.file_offset).map_err(invalid)?;
        let skip = u64::try_from(request.buffer_offset).map_err(invalid)?;
        let end = skip.checked_add(request.len as u64);
        if request.base == 0 || registered.is_some_and(|len| end.is_none_or(|end| end > len as u64))
        {
            return Err(code::CUDA_POINTER_RANGE_ERROR.into());
        }
        let moved = move_bytes(&cuda, &file, request, offset, request.base + skip)?;
        self.stats.count(request.direction, moved, offset);
        Ok(moved)
    }
}

/// Whether a file was opened with `O_NOFOLLOW`, which the kernel keeps among its flags (fcntl(2),
/// `F_GETFL`).
fn has_no_follow(fd: &OwnedFd) -> bool {
    // SAFETY: F_GETFL takes no third argument and touches no memory; the descriptor is open.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    flags >= 0 && flags & libc::O_NOFOLLOW != 0
}

/// A failure of the CUDA driver.
fn driver(code: c_int) -> CallError {
    CallError::Code(code::CUDA_DRIVER_ERROR, code)
}

/// In chunks through host memory, one after another.
fn move_bytes(
    cuda: &Cuda,
    file: &Registered,
    request: Transfer,
    offset: u64,
    memory: u64,
) -> Result<usize, CallError> {
    let mut buffer = vec![0_u8; request.len.min(CHUNK) + PAGE];
    let skip = buffer.as_ptr().align_offset(PAGE);
    let buffer = &mut buffer[skip..];
    let errno = |error: std::io::Error| CallError::Errno(error.raw_os_error().unwrap_or(libc::EIO));
    let mut done = 0;
    while done < request.len {
        let want = (request.len - done).min(CHUNK);
        let (at, device) = (offset + done as u64, memory + done as u64);
        let host = buffer.as_mut_ptr().expose_provenance() as u64;
        let moved = match request.direction {
            Direction::Read => {
                let count = file.read(&mut buffer[..want], at).map_err(errno)?;
                // SAFETY: `host` begins `count` bytes of ours; `device` is the caller's promise.
                unsafe { copy(cuda, device, host, count) }.map_err(driver)?;
                count
            }
            Direction::Write => {
                // SAFETY: `host` begins `want` bytes of ours; `device` is the caller's promise.
                unsafe { copy(cuda, host, device, want) }.map_err(driver)?;
                file.write(&buffer[..want], at).map_err(errno)?
            }
        };
        done += moved;
        if moved < want {
            break;
        }
    }
    Ok(done)
}

/// A copy of any length, 0 included.
///
/// # Safety
/// As for [`Cuda::copy`].
unsafe fn copy(cuda: &Cuda, to: u64, from: u64, len: usize) -> Result<(), c_int> {
    if len == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { cuda.copy(to, from, len) }
}
