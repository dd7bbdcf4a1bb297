//! The library as C programs use it: its functions by their names, on gpuio's software GPU, or with
//! `GPUIO_TEST_GPU=system` on the system's.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(unsafe_code, reason = "the interface under test is unsafe")]
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(crate) use gpuio_testkit::gpu::{built, on_system};
pub(crate) use gpuio_testkit::random_bytes;
use libloading::os::unix::Library;
use tempfile::TempDir;

/// Only a hang takes so long.
pub(crate) const HANG: Duration = Duration::from_secs(120);
/// The variable that names the driver.
pub(crate) const DRIVER: &str = "GPUIO_CUFILE_DRIVER";

pub(crate) const SURE: c_int = 0;
pub(crate) const WANTED: c_int = 1;

/// `gpuio_map`.
pub(crate) enum Map {}

/// `gpuio_memory`.
pub(crate) enum Memory {}

/// `gpuio_rings`.
pub(crate) enum Rings {}

/// `gpuio_part`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) rows: u64,
    pub(crate) stride: u64,
    pub(crate) address: *mut c_void,
    pub(crate) copies: *const *mut c_void,
    pub(crate) copy_count: u32,
    pub(crate) fd: c_int,
}

/// `gpuio_arrangement`.
#[repr(C)]
pub(crate) struct Arrangement {
    pub(crate) groups: *const u64,
    pub(crate) group_count: u64,
    pub(crate) runs: *const [u64; 4],
    pub(crate) run_count: u64,
    pub(crate) places: *const [u64; 3],
    pub(crate) place_count: u64,
}

/// `gpuio_rings_options`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RingsOptions {
    pub(crate) rings: u32,
    pub(crate) poll_threads: u32,
    pub(crate) buffers: u32,
    pub(crate) max_buffers: u32,
    pub(crate) max_files: u32,
    pub(crate) reserved: u32,
    pub(crate) buffer_length: u64,
}

/// `DLManagedTensor` of DLPack 1.1.
#[repr(C)]
pub(crate) struct Managed {
    pub(crate) data: *mut c_void,
    pub(crate) device: [i32; 2],
    pub(crate) dimensions: i32,
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
    pub(crate) shape: *const i64,
    pub(crate) strides: *const i64,
    pub(crate) byte_offset: u64,
    pub(crate) owner: *mut c_void,
    pub(crate) deleter: unsafe extern "C" fn(*mut Managed),
}

/// `gpuio_text`.
#[repr(C)]
pub(crate) struct Text {
    bytes: *const c_char,
    length: u64,
}

impl Text {
    pub(crate) fn get(&self) -> &str {
        let len = usize::try_from(self.length).unwrap();
        // SAFETY: of a header that is open, by the header's words.
        let bytes = unsafe { std::slice::from_raw_parts(self.bytes.cast(), len) };
        std::str::from_utf8(bytes).unwrap()
    }
}

/// `gpuio_stored`.
#[repr(C)]
pub(crate) struct Stored {
    pub(crate) name: Text,
    pub(crate) dtype: Text,
    pub(crate) bits: u32,
    pub(crate) dimensions: u32,
    pub(crate) shape: *const u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// `gpuio_base::safetensors`, with `gpuio_pair` as two texts.
#[repr(C)]
pub(crate) struct Safetensors {
    pub(crate) tensors: *const Stored,
    pub(crate) tensor_count: u64,
    pub(crate) metadata: *const [Text; 2],
    pub(crate) metadata_count: u64,
}

/// A mapping's address, which any thread may use.
#[derive(Clone, Copy)]
pub(crate) struct Mapped(pub(crate) *mut Map);

// SAFETY: the header says so.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

macro_rules! table {
    ($table:ident { $($name:ident: fn($($arg:ty),*) -> $ret:ty;)* }) => {
        #[allow(non_snake_case, reason = "the interface's own names")]
        pub(crate) struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) -> $ret,)*
        }

        impl $table {
            fn of(path: &Path) -> $table {
                let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
                // SAFETY: its initialisers are part of what is tested.
                let library = unsafe { Library::open(Some(path), flags) }.unwrap();
                let table = $table {
                    // SAFETY: the types are those of the interface.
                    $($name: *unsafe { library.get(stringify!($name).as_bytes()) }.unwrap(),)*
                };
                std::mem::forget(library);
                table
            }
        }
    };
}

table! {
    Gpuio {
        gpuio_map_open: fn(c_int, u64, u64, c_int, *mut *mut Map) -> c_int;
        gpuio_map_address: fn(*const Map) -> u64;
        gpuio_map_length: fn(*const Map) -> u64;
        gpuio_map_state: fn(*const Map) -> c_int;
        gpuio_map_close: fn(*mut Map) -> c_int;
        gpuio_error: fn() -> *const c_char;
        gpuio_gpus: fn(*mut c_int) -> c_int;
        gpuio_read: fn(c_int, u64, *mut c_void, u64, *mut [u64; 4]) -> c_int;
        gpuio_read_parts: fn(*const Part, u64, *mut [u64; 4]) -> c_int;
        gpuio_reaches: fn(c_int, c_int) -> c_int;
        gpuio_memory_new: fn(c_int, u64, *mut *mut Memory) -> c_int;
        gpuio_memory_address: fn(*const Memory) -> *mut c_void;
        gpuio_memory_length: fn(*const Memory) -> u64;
        gpuio_memory_copy_out: fn(*const Memory, u64, *mut c_void, u64) -> c_int;
        gpuio_memory_release: fn(*mut Memory) -> ();
        gpuio_tensor_new:
            fn(*const Memory, u64, u8, u8, c_int, *const i64, *mut *mut Managed) -> c_int;
        gpuio_rings_open: fn(c_int, *const RingsOptions, *mut *mut Rings) -> c_int;
        gpuio_rings_address: fn(*const Rings) -> u64;
        gpuio_rings_count: fn(*const Rings) -> u32;
        gpuio_rings_add_file: fn(*mut Rings, c_int, *mut u32) -> c_int;
        gpuio_rings_grow: fn(*mut Rings, u32) -> c_int;
        gpuio_rings_wake: fn(*mut Rings) -> c_int;
        gpuio_rings_in_flight: fn(*const Rings) -> u64;
        gpuio_rings_close: fn(*mut Rings) -> c_int;
        gpuio_device_header: fn() -> *const c_char;
        gpuio_safetensors_open: fn(c_int, *mut *const Safetensors) -> c_int;
        gpuio_safetensors_close: fn(*const Safetensors) -> ();
        gpuio_safetensors_arrange:
            fn(*const Safetensors, u64, *mut *const Arrangement) -> c_int;
        gpuio_arrangement_free: fn(*const Arrangement) -> ();
    }
}

table! {
    Cuda {
        cuInit: fn(c_uint) -> c_int;
        cuDevicePrimaryCtxRetain: fn(*mut usize, c_int) -> c_int;
        cuDevicePrimaryCtxReset_v2: fn(c_int) -> c_int;
        cuCtxSetCurrent: fn(usize) -> c_int;
        cuCtxGetCurrent: fn(*mut usize) -> c_int;
        cuMemcpyDtoH_v2: fn(*mut c_void, u64, usize) -> c_int;
    }
}

/// The value of [`DRIVER`].
pub(crate) fn driver() -> PathBuf {
    if on_system() { PathBuf::from("libcuda.so.1") } else { built("libgpuio_softgpu.so") }
}

/// The library. A driver that a test's parent process named stays.
pub(crate) fn gpuio() -> &'static Gpuio {
    static GPUIO: OnceLock<Gpuio> = OnceLock::new();
    GPUIO.get_or_init(|| {
        if std::env::var_os(DRIVER).is_none() {
            // SAFETY: each test comes here first, so no other thread uses the environment.
            unsafe { std::env::set_var(DRIVER, driver()) };
            // Bytes that the file no longer has would be seen.
            // SAFETY: as above.
            unsafe { std::env::set_var("GPUIO_SOFT_KEEP_PAGES", "1") };
        }
        Gpuio::of(&built("libgpuio.so"))
    })
}

pub(crate) fn cuda() -> &'static Cuda {
    static CUDA: OnceLock<Cuda> = OnceLock::new();
    gpuio();
    CUDA.get_or_init(|| Cuda::of(&driver()))
}

impl Cuda {
    /// Makes the first device's primary context current in this thread.
    pub(crate) fn start(&self) {
        let mut context = 0;
        // SAFETY: as the driver's manual has it, here and below.
        assert_eq!(unsafe { (self.cuInit)(0) }, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { (self.cuDevicePrimaryCtxRetain)(&raw mut context, 0) }, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { (self.cuCtxSetCurrent)(context) }, 0);
    }

    pub(crate) fn get(&self, address: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: a range of a mapping, and memory of the test's own.
        let code = unsafe { (self.cuMemcpyDtoH_v2)(bytes.as_mut_ptr().cast(), address, len) };
        assert_eq!(code, 0);
        bytes
    }
}

impl Gpuio {
    /// Maps a range, or returns the code.
    pub(crate) fn open(
        &self,
        fd: c_int,
        offset: u64,
        length: u64,
        device: c_int,
    ) -> Result<Mapped, c_int> {
        let mut map = std::ptr::dangling_mut::<Map>();
        // SAFETY: `map` is valid for the write of a pointer.
        let code = unsafe { (self.gpuio_map_open)(fd, offset, length, device, &raw mut map) };
        assert_eq!(code != 0, map.is_null(), "{code}");
        if code == 0 { Ok(Mapped(map)) } else { Err(code) }
    }

    /// Maps a range, which works. A child that another test begins has a copy of each descriptor
    /// until it runs its program, also of a writer's that this test has closed.
    pub(crate) fn map(&self, file: &File, offset: u64, length: u64) -> Mapped {
        let began = Instant::now();
        loop {
            match self.open(file.as_raw_fd(), offset, length, 0) {
                Ok(map) => return map,
                Err(code) if code == -libc::EAGAIN && began.elapsed() < HANG => {
                    std::thread::yield_now();
                }
                Err(code) => panic!("{code}: {}", self.error()),
            }
        }
    }

    /// The negative errno of a range that can't be mapped.
    pub(crate) fn refusal(&self, fd: c_int, offset: u64, length: u64, device: c_int) -> c_int {
        self.open(fd, offset, length, device).map(|_| ()).expect_err("nothing to map")
    }

    pub(crate) fn address(&self, map: Mapped) -> u64 {
        // SAFETY: an open mapping.
        unsafe { (self.gpuio_map_address)(map.0) }
    }

    pub(crate) fn length(&self, map: Mapped) -> u64 {
        // SAFETY: an open mapping.
        unsafe { (self.gpuio_map_length)(map.0) }
    }

    pub(crate) fn state(&self, map: Mapped) -> c_int {
        // SAFETY: an open mapping.
        unsafe { (self.gpuio_map_state)(map.0) }
    }

    pub(crate) fn close(&self, map: Mapped) -> c_int {
        // SAFETY: an open mapping, which the test does not use again.
        unsafe { (self.gpuio_map_close)(map.0) }
    }

    pub(crate) fn error(&self) -> String {
        // SAFETY: takes nothing.
        let words = unsafe { (self.gpuio_error)() };
        assert!(!words.is_null());
        // SAFETY: a C string, valid until the next failure of this thread.
        unsafe { CStr::from_ptr(words) }.to_str().unwrap().to_owned()
    }
}

/// A directory on the file system of the build, on which a process may have leases on its files.
pub(crate) fn dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A file of these bytes that is not open for writing anywhere, open for reading.
pub(crate) fn file(path: &Path, bytes: &[u8]) -> File {
    std::fs::write(path, bytes).unwrap();
    File::open(path).unwrap()
}

/// Opens a file for writing and does not wait for who has a lease on it.
pub(crate) fn writer(path: &Path) -> std::io::Result<File> {
    File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path)
}
