//! A program that uses cuFile and CUDA.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

pub(crate) use gpuio_testkit::child::name;
pub(crate) use gpuio_testkit::gpu::{built, on_system};
pub(crate) use gpuio_testkit::random_bytes;
use libloading::os::unix::Library;

/// The test that a child process runs.
const CHILD: &str = "GPUIO_DROPIN_CHILD";

/// Runs `body` in a process of its own with these variables, and fails if it fails. Returns its
/// output.
pub(crate) fn alone(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) -> String {
    if std::env::var(CHILD).is_ok_and(|child| child == test) {
        body();
        return String::new();
    }
    let (status, output) = child(test, variables);
    assert!(status.success(), "{test} in its own process: {status}\n{output}");
    output
}

/// Whether this is the process that [`alone`] or [`child`] made.
pub(crate) fn is_child(test: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|child| child == test)
}

/// Runs one test of this program again, as a child, and returns its status and output.
pub(crate) fn child(test: &str, variables: &[(&str, &str)]) -> (std::process::ExitStatus, String) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = gpuio_testkit::child::command(test);
    command.arg("--test-threads=1");
    // Hides the machine's own configuration.
    let empty = directory.path().join("cufile.json");
    std::fs::write(&empty, "{}").unwrap();
    command.env(CHILD, test).env("CUFILE_ENV_PATH_JSON", empty);
    // And other processes' pages.
    command.env("GPUIO_PAGES", directory.path());
    if !on_system() {
        command.env("GPUIO_CUFILE_DRIVER", software());
    }
    command.envs(variables.iter().copied());
    let output = gpuio_testkit::child::run(&mut command);
    let said = [output.stdout, output.stderr].concat();
    (output.status, String::from_utf8_lossy(&said).into_owned())
}

fn software() -> PathBuf {
    built("libgpuio_softgpu.so")
}

macro_rules! table {
    ($(#[$doc:meta])* $table:ident { $($name:ident: fn($($arg:ty),*) -> $ret:ty;)* }) => {
        $(#[$doc])*
        #[expect(non_snake_case, reason = "the interface's own names")]
        pub(crate) struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) -> $ret,)*
        }

        impl $table {
            fn of(library: &Library) -> $table {
                $table {
                    // SAFETY: the types are those of the interface.
                    $($name: *unsafe { library.get(stringify!($name).as_bytes()) }.unwrap(),)*
                }
            }
        }
    };
}

/// `CUfileError_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: c_int,
    pub(crate) cuda: c_int,
}

pub(crate) const GOOD: Answer = Answer { code: 0, cuda: 0 };

pub(crate) fn code(code: c_int) -> Answer {
    Answer { code, cuda: 0 }
}

/// `CUfileDescr_t`, its third field with garbage.
#[repr(C)]
pub(crate) struct Descriptor {
    pub(crate) kind: c_int,
    pub(crate) fd: u64,
    pub(crate) operations: usize,
}

/// `CUfileIOParams_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) mode: c_int,
    pub(crate) base: u64,
    pub(crate) file_offset: i64,
    pub(crate) buffer_offset: i64,
    pub(crate) len: usize,
    pub(crate) handle: usize,
    pub(crate) opcode: c_int,
    pub(crate) cookie: u64,
}

/// `CUfileIOEvents_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Event {
    pub(crate) cookie: u64,
    pub(crate) status: c_int,
    pub(crate) result: isize,
}

table! {
    /// The functions of cuFile that programs call.
    Cufile {
        cuFileDriverOpen: fn() -> Answer;
        cuFileDriverClose: fn() -> Answer;
        cuFileDriverClose_v2: fn() -> Answer;
        cuFileUseCount: fn() -> i64;
        cuFileDriverGetProperties: fn(*mut [u32; 14]) -> Answer;
        cuFileDriverSetPollMode: fn(bool, usize) -> Answer;
        cuFileDriverSetMaxDirectIOSize: fn(usize) -> Answer;
        cuFileDriverSetMaxCacheSize: fn(usize) -> Answer;
        cuFileDriverSetMaxPinnedMemSize: fn(usize) -> Answer;
        cuFileDriverGetP2PFlags: fn(c_int, *mut c_uint) -> Answer;
        cuFileDriverSetP2PFlags: fn(c_int, c_uint) -> Answer;
        cuFileGetVersion: fn(*mut c_int) -> Answer;
        cuFileExportPCIeTopology: fn(*const i8) -> Answer;
        cuFileGetBARSizeInKB: fn(c_int, *mut usize) -> Answer;
        cuFileHandleRegister: fn(*mut usize, *mut Descriptor) -> Answer;
        cuFileHandleDeregister: fn(usize) -> ();
        cuFileBufRegister: fn(u64, usize, c_int) -> Answer;
        cuFileBufDeregister: fn(u64) -> Answer;
        cuFileRead: fn(usize, u64, usize, i64, i64) -> isize;
        cuFileWrite: fn(usize, u64, usize, i64, i64) -> isize;
        cuFileReadv: fn(usize, *const [u64; 2], usize, i64, c_uint) -> isize;
        cuFileWritev: fn(usize, *const [u64; 2], usize, i64, c_uint) -> isize;
        cuFileBatchIOSetUp: fn(*mut usize, c_uint) -> Answer;
        cuFileBatchIOSubmit: fn(usize, c_uint, *mut Entry, c_uint) -> Answer;
        cuFileBatchIOGetStatus:
            fn(usize, c_uint, *mut c_uint, *mut Event, *mut libc::timespec) -> Answer;
        cuFileBatchIOCancel: fn(usize) -> Answer;
        cuFileBatchIODestroy: fn(usize) -> ();
        cuFileReadAsync:
            fn(usize, u64, *mut usize, *mut i64, *mut i64, *mut isize, usize) -> Answer;
        cuFileWriteAsync:
            fn(usize, u64, *mut usize, *mut i64, *mut i64, *mut isize, usize) -> Answer;
        cuFileStreamRegister: fn(usize, c_uint) -> Answer;
        cuFileStreamDeregister: fn(usize) -> Answer;
        cuFileGetParameterSizeT: fn(c_int, *mut usize) -> Answer;
        cuFileSetParameterSizeT: fn(c_int, usize) -> Answer;
        cuFileGetParameterMinMaxValue: fn(c_int, *mut usize, *mut usize) -> Answer;
        cuFileGetParameterBool: fn(c_int, *mut bool) -> Answer;
        cuFileSetParameterBool: fn(c_int, bool) -> Answer;
        cuFileGetParameterString: fn(c_int, *mut u8, c_int) -> Answer;
        cuFileSetParameterString: fn(c_int, *const u8) -> Answer;
        cuFileGetParameterPosixPoolSlabArray: fn(*mut usize, *mut usize, c_int) -> Answer;
        cuFileSetParameterPosixPoolSlabArray: fn(*const usize, *const usize, c_int) -> Answer;
        cuFileSetStatsLevel: fn(c_int) -> Answer;
        cuFileGetStatsLevel: fn(*mut c_int) -> Answer;
        cuFileStatsStart: fn() -> Answer;
        cuFileStatsStop: fn() -> Answer;
        cuFileStatsReset: fn() -> Answer;
        cuFileGetStatsL3: fn(*mut u64) -> Answer;
    }
}

table! {
    /// The functions of CUDA that programs call.
    Cuda {
        cuInit: fn(c_uint) -> c_int;
        cuDevicePrimaryCtxRetain: fn(*mut usize, c_int) -> c_int;
        cuCtxSetCurrent: fn(usize) -> c_int;
        cuCtxGetCurrent: fn(*mut usize) -> c_int;
        cuCtxCreate_v2: fn(*mut usize, c_uint, c_int) -> c_int;
        cuCtxDestroy_v2: fn(usize) -> c_int;
        cuMemAlloc_v2: fn(*mut u64, usize) -> c_int;
        cuMemFree_v2: fn(u64) -> c_int;
        cuMemAllocManaged: fn(*mut u64, usize, c_uint) -> c_int;
        cuMemHostAlloc: fn(*mut u64, usize, c_uint) -> c_int;
        cuMemAllocAsync: fn(*mut u64, usize, usize) -> c_int;
        cuStreamCreate: fn(*mut usize, c_uint) -> c_int;
        cuStreamBeginCapture_v2: fn(usize, c_int) -> c_int;
        cuLaunchHostFunc:
            fn(usize, unsafe extern "C" fn(*mut c_void), *mut c_void) -> c_int;
        cuStreamSynchronize: fn(usize) -> c_int;
        cuMemCreate: fn(*mut u64, usize, *const [u64; 4], u64) -> c_int;
        cuMemAddressReserve: fn(*mut u64, usize, usize, u64, u64) -> c_int;
        cuMemMap: fn(u64, usize, usize, u64, u64) -> c_int;
        cuMemSetAccess: fn(u64, usize, *const [u32; 3], usize) -> c_int;
        cuMemcpyHtoD_v2: fn(u64, *const c_void, usize) -> c_int;
        cuMemcpyDtoH_v2: fn(*mut c_void, u64, usize) -> c_int;
        cuMemcpyDtoD_v2: fn(u64, u64, usize) -> c_int;
        cuMemsetD8_v2: fn(u64, u8, usize) -> c_int;
        cuPointerGetAttribute: fn(*mut u32, c_int, u64) -> c_int;
        cuPointerSetAttribute: fn(*const u32, c_int, u64) -> c_int;
        cuCtxSynchronize: fn() -> c_int;
        cuDevicePrimaryCtxReset_v2: fn(c_int) -> c_int;
    }
}

/// The library, loaded by its path as a plugin would.
pub(crate) fn cufile() -> Cufile {
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
    // SAFETY: its initialisers are what is tested.
    let library = unsafe { Library::open(Some(built("libcufile.so")), flags) }.unwrap();
    let table = Cufile::of(&library);
    std::mem::forget(library);
    table
}

/// The CUDA driver, initialised, with the first device's primary context current.
pub(crate) fn cuda() -> Cuda {
    let path = if on_system() { PathBuf::from("libcuda.so.1") } else { software() };
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
    // SAFETY: the driver that the test asks for.
    let library = unsafe { Library::open(Some(path), flags) }.unwrap();
    let cuda = Cuda::of(&library);
    std::mem::forget(library);
    // SAFETY: as the driver's manual has it, here and below.
    assert_eq!(unsafe { (cuda.cuInit)(0) }, 0);
    let mut context = 0;
    // SAFETY: as above.
    assert_eq!(unsafe { (cuda.cuDevicePrimaryCtxRetain)(&raw mut context, 0) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { (cuda.cuCtxSetCurrent)(context) }, 0);
    cuda
}

impl Cuda {
    /// Memory of the device, filled with `bytes`.
    pub(crate) fn with(&self, bytes: &[u8]) -> u64 {
        let address = self.room(bytes.len());
        self.put(address, bytes);
        address
    }

    pub(crate) fn room(&self, len: usize) -> u64 {
        let mut address = 0;
        // SAFETY: as the driver's manual has it.
        assert_eq!(unsafe { (self.cuMemAlloc_v2)(&raw mut address, len) }, 0);
        address
    }

    /// Memory of the virtual memory calls, on hardware in pieces of 2 MiB that lie side by side:
    /// the software GPU knows no ranges over several.
    pub(crate) fn mapped(&self, len: usize) -> u64 {
        const PIECE: usize = 2 << 20;
        let len = len.next_multiple_of(PIECE);
        let piece_len = if on_system() { PIECE } else { len };
        // Page-locked memory of device 0 (`CUmemAllocationProp`): kind 1 at 0, place 1 at 8.
        let (kind, access) = ([1, 1, 0, 0], [1, 0, 3]);
        let mut base = 0;
        // SAFETY: as the driver's manual has it, here and below.
        assert_eq!(unsafe { (self.cuMemAddressReserve)(&raw mut base, len, 0, 0, 0) }, 0);
        for at in (0..len).step_by(piece_len) {
            let mut piece = 0;
            // SAFETY: as above.
            let code = unsafe { (self.cuMemCreate)(&raw mut piece, piece_len, &raw const kind, 0) };
            assert_eq!(code, 0);
            // SAFETY: as above.
            let code = unsafe { (self.cuMemMap)(base + at as u64, piece_len, 0, piece, 0) };
            assert_eq!(code, 0);
        }
        // SAFETY: as above.
        assert_eq!(unsafe { (self.cuMemSetAccess)(base, len, &raw const access, 1) }, 0);
        base
    }

    pub(crate) fn put(&self, address: u64, bytes: &[u8]) {
        // SAFETY: both ranges are the caller's.
        let code = unsafe { (self.cuMemcpyHtoD_v2)(address, bytes.as_ptr().cast(), bytes.len()) };
        assert_eq!(code, 0);
    }

    pub(crate) fn get(&self, address: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: both ranges are the caller's.
        let code = unsafe { (self.cuMemcpyDtoH_v2)(bytes.as_mut_ptr().cast(), address, len) };
        assert_eq!(code, 0);
        bytes
    }
}

impl Cufile {
    /// Registers a descriptor; the error is any result but success.
    pub(crate) fn register(&self, file: &impl AsRawFd) -> Result<usize, Answer> {
        let fd = u64::from(file.as_raw_fd().cast_unsigned()) | 0xdead_beef_0000_0000;
        let mut descriptor = Descriptor { kind: 1, fd, operations: 0x1234_5678 };
        let mut handle = 0;
        // SAFETY: both are valid.
        let answer = unsafe { (self.cuFileHandleRegister)(&raw mut handle, &raw mut descriptor) };
        if answer == GOOD { Ok(handle) } else { Err(answer) }
    }

    pub(crate) fn deregister(&self, handle: usize) {
        // SAFETY: any number is one.
        unsafe { (self.cuFileHandleDeregister)(handle) }
    }

    pub(crate) fn read(&self, handle: usize, base: u64, len: usize, at: i64, skip: i64) -> isize {
        // SAFETY: the memory is the test's.
        unsafe { (self.cuFileRead)(handle, base, len, at, skip) }
    }

    pub(crate) fn write(&self, handle: usize, base: u64, len: usize, at: i64, skip: i64) -> isize {
        // SAFETY: the memory is the test's.
        unsafe { (self.cuFileWrite)(handle, base, len, at, skip) }
    }

    pub(crate) fn open(&self) -> Answer {
        // SAFETY: takes nothing.
        unsafe { (self.cuFileDriverOpen)() }
    }

    pub(crate) fn close(&self) -> Answer {
        // SAFETY: takes nothing.
        unsafe { (self.cuFileDriverClose_v2)() }
    }

    pub(crate) fn uses(&self) -> i64 {
        // SAFETY: takes nothing.
        unsafe { (self.cuFileUseCount)() }
    }
}

/// The errno of this thread.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
