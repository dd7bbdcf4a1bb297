//! The parts of the CUDA driver API that gpuio uses: types, constants and the table of functions.
//!
//! Written from the reference manual of the CUDA driver API (release 11.0 and later). The names of
//! functions and types are the driver's own, so that they can be looked up there.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::error::{Absent, GpuError};

/// The result of each call: 0, or a code of the enumeration of the same name.
pub(crate) type CUresult = c_int;
/// A device by its number.
pub(crate) type CUdevice = c_int;
/// An address on the device.
pub(crate) type CUdeviceptr = u64;
/// An opaque pointer that the driver hands out.
pub(crate) type CUcontext = *mut c_void;
/// As [`CUcontext`].
pub(crate) type CUstream = *mut c_void;
/// As [`CUcontext`].
pub(crate) type CUevent = *mut c_void;
/// As [`CUcontext`].
pub(crate) type CUmodule = *mut c_void;
/// As [`CUcontext`].
pub(crate) type CUfunction = *mut c_void;
/// A function of the host's that a stream calls.
pub(crate) type HostFn = unsafe extern "C" fn(*mut c_void);
/// Physical memory of the virtual memory management calls.
pub(crate) type CUmemGenericAllocationHandle = u64;

pub(crate) const SUCCESS: CUresult = 0;
/// An argument is out of its range.
pub(crate) const INVALID_VALUE: CUresult = 1;
/// There is not enough memory.
pub(crate) const OUT_OF_MEMORY: CUresult = 2;
/// The driver was not initialised, or is being taken down at exit.
pub(crate) const NOT_INITIALIZED: CUresult = 3;
/// The library is the stub that the CUDA SDK ships for linking.
pub(crate) const STUB_LIBRARY: CUresult = 34;
/// No GPU, or none that this process may see.
pub(crate) const NO_DEVICE: CUresult = 100;
/// No context, or a destroyed one, is current on the calling thread.
pub(crate) const INVALID_CONTEXT: CUresult = 201;
/// The code is no image that the driver knows.
pub(crate) const INVALID_IMAGE: CUresult = 200;
/// The driver cannot compile or load the code it was given.
pub(crate) const NO_BINARY_FOR_GPU: CUresult = 209;
/// The code is nothing that can be compiled.
pub(crate) const INVALID_SOURCE: CUresult = 300;
/// The PTX is newer than the driver.
pub(crate) const UNSUPPORTED_PTX_VERSION: CUresult = 222;
/// The context was destroyed, or reset.
pub(crate) const CONTEXT_IS_DESTROYED: CUresult = 709;
/// Access was already enabled: no error.
pub(crate) const PEER_ACCESS_ALREADY_ENABLED: CUresult = 704;
/// Asynchronous work is still in flight: no error.
pub(crate) const NOT_READY: CUresult = 600;
/// The memory is registered already.
pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: CUresult = 712;
/// The device or the driver does not support the request.
pub(crate) const NOT_SUPPORTED: CUresult = 801;
/// The fabric manager, or another service that the GPUs need, is not up.
pub(crate) const SYSTEM_NOT_READY: CUresult = 802;
/// The user-space driver and the kernel module are of different releases.
pub(crate) const SYSTEM_DRIVER_MISMATCH: CUresult = 803;
/// The forward-compatibility libraries do not support this GPU.
pub(crate) const COMPAT_NOT_SUPPORTED_ON_DEVICE: CUresult = 804;
/// The driver does not say why.
pub(crate) const UNKNOWN: CUresult = 999;

/// `cuMemHostAlloc`, `cuMemHostRegister`: pinned for every context, not only the current one.
pub(crate) const MEMHOST_PORTABLE: c_uint = 1;
/// `cuMemHostRegister`: mapped where the device sees it (each is, under unified addressing).
pub(crate) const MEMHOST_DEVICEMAP: c_uint = 2;
/// `cuMemHostRegister`: the device only reads it. Memory that the host itself may only read can't
/// be registered otherwise (CUDA 11.1).
pub(crate) const MEMHOSTREGISTER_READ_ONLY: c_uint = 8;
/// `cuPointerGetAttributes`: the context of the memory, null for pools and mappings.
pub(crate) const POINTER_CONTEXT: c_int = 1;
/// `cuPointerGetAttributes`: `CUmemorytype`, 0 for memory that the driver does not know.
pub(crate) const POINTER_MEMORY_TYPE: c_int = 2;
/// `cuPointerSetAttribute`: do synchronous memory operations on the allocation always synchronize?
pub(crate) const POINTER_SYNC_MEMOPS: c_int = 6;
/// `cuPointerGetAttributes`: a number of the allocation, which no other one of the process has.
pub(crate) const POINTER_BUFFER_ID: c_int = 7;
/// `cuCtxSetFlags`: synchronous memory operations issued in the context always synchronize (CUDA
/// 12.1).
pub(crate) const CTX_SYNC_MEMOPS: c_uint = 0x80;
/// The default stream that all threads share (`CU_STREAM_LEGACY`).
pub(crate) const STREAM_LEGACY: usize = 1;
/// The calling thread's default stream (`CU_STREAM_PER_THREAD`).
pub(crate) const STREAM_PER_THREAD: usize = 2;
/// `cuPointerGetAttributes`: from `cuMemAllocManaged`?
pub(crate) const POINTER_IS_MANAGED: c_int = 8;
/// `cuPointerGetAttributes`: the device's number; negative for none.
pub(crate) const POINTER_DEVICE_ORDINAL: c_int = 9;
/// `cuPointerGetAttributes`: where the allocation begins.
pub(crate) const POINTER_RANGE_START: c_int = 11;
/// `cuPointerGetAttributes`: the length of the allocation in bytes.
pub(crate) const POINTER_RANGE_SIZE: c_int = 12;
/// `cuPointerGetAttributes`: is memory behind the address? (CUDA 10.2.)
pub(crate) const POINTER_MAPPED: c_int = 13;
/// `cuPointerGetAttribute`: the pool that it was allocated from, or null (CUDA 11.3).
pub(crate) const POINTER_MEMPOOL_HANDLE: c_int = 17;
/// `CUmemorytype`: of the host.
pub(crate) const MEMORY_TYPE_HOST: u64 = 1;
/// `CUmemorytype`: of a device.
pub(crate) const MEMORY_TYPE_DEVICE: u64 = 2;
/// `cuStreamCreate`: no implicit order with the default stream.
pub(crate) const STREAM_NON_BLOCKING: c_uint = 1;
/// `cuThreadExchangeStreamCaptureMode`: captures of other threads forbid nothing to this one.
pub(crate) const CAPTURE_MODE_RELAXED: c_int = 2;
/// `cuCtxSetLimit`: bytes of the stack of each of a kernel's threads.
pub(crate) const LIMIT_STACK_SIZE: c_int = 0;
/// `cuEventCreate`: waiting sleeps where the default spins.
pub(crate) const EVENT_BLOCKING_SYNC: c_uint = 1;
/// `cuEventCreate`: no time stamp, which makes records and queries cheaper.
pub(crate) const EVENT_DISABLE_TIMING: c_uint = 2;
/// `cuDeviceGetAttribute`.
pub(crate) const ATTRIBUTE_MULTIPROCESSOR_COUNT: c_int = 16;
/// `cuDeviceGetAttribute`.
pub(crate) const ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: c_int = 75;
/// `cuDeviceGetAttribute`.
pub(crate) const ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: c_int = 76;
/// `cuDeviceGetAttribute`: may host and GPU use managed memory at once, with hints?
pub(crate) const ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: c_int = 89;
/// `cuDeviceGetAttribute`: may streams wait for words, by the first form of the calls?
pub(crate) const ATTRIBUTE_STREAM_MEM_OPS_V1: c_int = 92;
/// `cuDeviceGetAttribute`: may streams wait for words of 64 bits, by the second form (CUDA 11.7)?
/// The documentation names no attribute for words of 32 bits.
pub(crate) const ATTRIBUTE_64_BIT_STREAM_MEM_OPS: c_int = 122;
/// `cuStreamWaitValue32`: until the word less the value is not negative, as signed numbers.
pub(crate) const STREAM_WAIT_VALUE_GEQ: c_uint = 0;
/// `cuStreamWriteValue32`: after all that was put into the stream before, for everybody who sees
/// it.
pub(crate) const STREAM_WRITE_VALUE_DEFAULT: c_uint = 0;
/// `cuDeviceGetAttribute`: may memory of the VMM calls be reached by other PCI devices?
pub(crate) const ATTRIBUTE_RDMA_WITH_VMM: c_int = 110;
/// `cuDeviceGetAttribute`: does the device follow the host's page tables, so that registering pins
/// nothing?
pub(crate) const ATTRIBUTE_HOST_PAGE_TABLES: c_int = 100;
/// `cuDeviceGetAttribute`: can memory be registered as read-only?
pub(crate) const ATTRIBUTE_READ_ONLY_REGISTER: c_int = 113;
/// `CUmemAllocationProp`: memory that does not move.
pub(crate) const MEM_ALLOCATION_TYPE_PINNED: c_int = 1;
/// `CUmemLocation`: on a device.
pub(crate) const MEM_LOCATION_TYPE_DEVICE: c_int = 1;
/// `CUmemLocation`: on the host (CUDA 12.2).
pub(crate) const MEM_LOCATION_TYPE_HOST: c_int = 2;
/// In a device's place: the host.
pub(crate) const DEVICE_CPU: CUdevice = -1;
/// `cuMemAllocManaged`: every stream of every device may use it.
pub(crate) const MEM_ATTACH_GLOBAL: c_uint = 1;
/// `cuMemAdvise`: the preferred location of the pages.
pub(crate) const MEM_ADVISE_SET_PREFERRED_LOCATION: c_int = 3;
/// `CUmemAccessDesc`: read and write.
pub(crate) const MEM_ACCESS_READWRITE: c_int = 3;
/// `cuMemGetAllocationGranularity`: the least size.
pub(crate) const MEM_GRANULARITY_MINIMUM: c_int = 0;

/// Where memory of the VMM calls lies or is used from.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct CUmemLocation {
    pub(crate) kind: c_int,
    pub(crate) id: c_int,
}

/// `CUDA_MEMCPY2D`: memory of the host or a device, as unified addressing finds.
pub(crate) const MEMORYTYPE_UNIFIED: c_uint = 4;

/// One side of [`CUmemcpy2D`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct CUmemcpy2DSide {
    pub(crate) x_in_bytes: usize,
    pub(crate) y: usize,
    pub(crate) memory_type: c_uint,
    pub(crate) host: *mut c_void,
    pub(crate) device: CUdeviceptr,
    pub(crate) array: *mut c_void,
    pub(crate) pitch: usize,
}

impl CUmemcpy2DSide {
    pub(crate) fn unified(device: CUdeviceptr, pitch: usize) -> Self {
        let (host, array) = (std::ptr::null_mut(), std::ptr::null_mut());
        Self { x_in_bytes: 0, y: 0, memory_type: MEMORYTYPE_UNIFIED, host, device, array, pitch }
    }
}

/// `CUDA_MEMCPY2D` (CUDA 3.2): rows, each `pitch` bytes after the one before it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct CUmemcpy2D {
    pub(crate) src: CUmemcpy2DSide,
    pub(crate) dst: CUmemcpy2DSide,
    pub(crate) width_in_bytes: usize,
    pub(crate) height: usize,
}

/// Flags at the end of [`CUmemAllocationProp`].
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CUmemAllocationFlags {
    pub(crate) compression: u8,
    pub(crate) gpu_direct_rdma_capable: u8,
    pub(crate) usage: u16,
    pub(crate) reserved: [u8; 4],
}

/// The memory that `cuMemCreate` shall make.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct CUmemAllocationProp {
    pub(crate) kind: c_int,
    pub(crate) requested_handle_types: c_int,
    pub(crate) location: CUmemLocation,
    pub(crate) win32_handle_meta_data: *mut c_void,
    pub(crate) flags: CUmemAllocationFlags,
}

/// Who may use a mapping, for `cuMemSetAccess`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct CUmemAccessDesc {
    pub(crate) location: CUmemLocation,
    pub(crate) flags: c_int,
}

/// Declares the table from one list, required and optional symbols apart, and how it is loaded.
macro_rules! table {
    (
        required { $($name:ident($($arg:ty),*);)* }
        optional { $($maybe:ident($($maybe_arg:ty),*);)* }
    ) => {
        /// The functions of one loaded library.
        #[expect(non_snake_case, reason = "the fields bear the driver's own names")]
        pub(crate) struct Table {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) -> CUresult,)*
            $(pub(crate) $maybe: Option<unsafe extern "C" fn($($maybe_arg),*) -> CUresult>,)*
            /// Last, so that it is closed after everything that points into it.
            _library: Library,
        }

        impl Table {
            fn resolve(library: Library, path: &Path) -> Result<Self, Absent> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the type is that of the symbol in the reference manual; the
                        // pointer lives beside the library that it points into.
                        let found = unsafe { library.get(stringify!($name)) };
                        *found.map_err(|_| missing(path, stringify!($name)))?
                    },)*
                    $($maybe: {
                        // SAFETY: as for the required symbols.
                        unsafe { library.get(stringify!($maybe)) }.ok().map(|found| *found)
                    },)*
                    _library: library,
                })
            }
        }
    };
}

table! {
    required {
        cuInit(c_uint);
        cuDriverGetVersion(*mut c_int);
        cuGetErrorName(CUresult, *mut *const c_char);
        cuGetErrorString(CUresult, *mut *const c_char);
        cuDeviceGetCount(*mut c_int);
        cuDeviceGet(*mut CUdevice, c_int);
        cuDeviceGetName(*mut c_char, c_int, CUdevice);
        cuDeviceGetUuid(*mut [u8; 16], CUdevice);
        cuDeviceGetPCIBusId(*mut c_char, c_int, CUdevice);
        cuDeviceTotalMem_v2(*mut usize, CUdevice);
        cuDeviceGetAttribute(*mut c_int, c_int, CUdevice);
        cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
        cuDevicePrimaryCtxRelease_v2(CUdevice);
        cuCtxSetCurrent(CUcontext);
        cuCtxPushCurrent_v2(CUcontext);
        cuCtxPopCurrent_v2(*mut CUcontext);
        cuCtxGetDevice(*mut CUdevice);
        cuCtxSynchronize();
        cuPointerGetAttributes(c_uint, *mut c_int, *mut *mut c_void, CUdeviceptr);
        cuPointerGetAttribute(*mut c_void, c_int, CUdeviceptr);
        cuPointerSetAttribute(*const c_void, c_int, CUdeviceptr);
        cuMemGetInfo_v2(*mut usize, *mut usize);
        cuMemAlloc_v2(*mut CUdeviceptr, usize);
        cuMemFree_v2(CUdeviceptr);
        cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
        cuMemFreeHost(*mut c_void);
        cuMemHostRegister_v2(*mut c_void, usize, c_uint);
        cuMemHostUnregister(*mut c_void);
        cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
        cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
        cuMemcpyAsync(CUdeviceptr, CUdeviceptr, usize, CUstream);
        cuMemcpy2DAsync_v2(*const CUmemcpy2D, CUstream);
        cuStreamCreate(*mut CUstream, c_uint);
        cuStreamDestroy_v2(CUstream);
        cuStreamSynchronize(CUstream);
        cuStreamQuery(CUstream);
        cuStreamGetCtx(CUstream, *mut CUcontext);
        cuStreamIsCapturing(CUstream, *mut c_int);
        cuLaunchHostFunc(CUstream, HostFn, *mut c_void);
        cuEventCreate(*mut CUevent, c_uint);
        cuEventDestroy_v2(CUevent);
        cuEventRecord(CUevent, CUstream);
        cuEventQuery(CUevent);
        cuEventSynchronize(CUevent);
        cuModuleLoadData(*mut CUmodule, *const c_void);
        cuModuleUnload(CUmodule);
        cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
        cuLaunchKernel(
            CUfunction,
            c_uint, c_uint, c_uint,
            c_uint, c_uint, c_uint,
            c_uint,
            CUstream,
            *mut *mut c_void,
            *mut *mut c_void
        );
    }
    optional {
        // CUDA 11.4; distinguishes the instances of a partitioned (MIG) GPU.
        cuDeviceGetUuid_v2(*mut [u8; 16], CUdevice);
        // CUDA 10.1: what a thread may call while another one captures.
        cuThreadExchangeStreamCaptureMode(*mut c_int);
        // CUDA 12: a number that no other context ever has.
        cuCtxGetId(CUcontext, *mut u64);
        // CUDA 3.2: contexts beside the primary one.
        cuCtxCreate_v2(*mut CUcontext, c_uint, CUdevice);
        cuCtxDestroy_v2(CUcontext);
        cuCtxSetLimit(c_int, usize);
        // CUDA 7, and CUDA 12.1: how a context behaves.
        cuCtxGetFlags(*mut c_uint);
        cuCtxSetFlags(c_uint);
        // CUDA 2: milliseconds from one event to another, by the device's clock.
        cuEventElapsedTime(*mut f32, CUevent, CUevent);
        // CUDA 3.2: what a device calls memory of the host.
        cuMemHostGetDevicePointer_v2(*mut CUdeviceptr, *mut c_void, c_uint);
        // CUDA 8: words that streams wait for and write; CUDA 11.7 brought the second form.
        cuStreamWaitValue32(CUstream, CUdeviceptr, u32, c_uint);
        cuStreamWriteValue32(CUstream, CUdeviceptr, u32, c_uint);
        cuStreamWaitValue32_v2(CUstream, CUdeviceptr, u32, c_uint);
        cuStreamWriteValue32_v2(CUstream, CUdeviceptr, u32, c_uint);
        // CUDA 10.2: virtual memory management.
        cuMemGetAllocationGranularity(*mut usize, *const CUmemAllocationProp, c_int);
        cuMemCreate(
            *mut CUmemGenericAllocationHandle, usize, *const CUmemAllocationProp, u64
        );
        cuMemRelease(CUmemGenericAllocationHandle);
        cuMemAddressReserve(*mut CUdeviceptr, usize, usize, CUdeviceptr, u64);
        cuMemAddressFree(CUdeviceptr, usize);
        cuMemMap(CUdeviceptr, usize, usize, CUmemGenericAllocationHandle, u64);
        cuMemUnmap(CUdeviceptr, usize);
        cuMemSetAccess(CUdeviceptr, usize, *const CUmemAccessDesc, usize);
        cuMemGetAccess(*mut u64, *const CUmemLocation, CUdeviceptr);
        // CUDA 8: managed memory, and hints in their first form.
        cuMemAllocManaged(*mut CUdeviceptr, usize, c_uint);
        cuMemPrefetchAsync(CUdeviceptr, usize, CUdevice, CUstream);
        cuMemAdvise(CUdeviceptr, usize, c_int, CUdevice);
        // CUDA 12.2: hints in their second form.
        cuMemPrefetchAsync_v2(CUdeviceptr, usize, CUmemLocation, c_uint, CUstream);
        cuMemAdvise_v2(CUdeviceptr, usize, c_int, CUmemLocation);
        // CUDA 4: other GPUs' memory.
        cuDeviceCanAccessPeer(*mut c_int, CUdevice, CUdevice);
        cuCtxEnablePeerAccess(CUcontext, c_uint);
        cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, usize, CUstream);
        // Only gpuio's software GPU has it.
        gpuio_soft_version();
    }
}

fn missing(library: &Path, symbol: &'static str) -> Absent {
    Absent::SymbolMissing { library: library.to_path_buf(), symbol }
}

impl Table {
    /// Opens the first of `candidates` that the loader accepts and resolves the list in it.
    ///
    /// # Errors
    /// [`Absent::NoLibrary`] if none opens, [`Absent::SymbolMissing`] if one opens that is no CUDA
    /// driver of release 11 or later.
    pub(crate) fn open(candidates: &[PathBuf]) -> Result<(Self, PathBuf), Absent> {
        let mut why = Vec::new();
        for path in candidates {
            // SAFETY: running the library's initialisers is what the caller requested by naming
            // it: the system's CUDA driver, gpuio's software GPU or a path that the user gave.
            match unsafe { gpuio_guard::objects::load(path, libc::RTLD_LAZY | libc::RTLD_LOCAL) } {
                Ok((library, file)) => return Ok((Self::resolve(library.into(), path)?, file)),
                Err(error) => why.push(error),
            }
        }
        Err(Absent::NoLibrary { tried: candidates.to_vec(), why })
    }

    /// An error for the result `code` of `call`, or `Ok` for success.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, code: CUresult) -> Result<(), GpuError> {
        if code == SUCCESS { Ok(()) } else { Err(self.error(call, code)) }
    }

    /// The error for the result `code` of `call`.
    #[cold]
    pub(crate) fn error(&self, call: &'static str, code: CUresult) -> GpuError {
        GpuError {
            call,
            code,
            name: explanation(self.cuGetErrorName, code),
            text: explanation(self.cuGetErrorString, code),
            device: None,
            detail: String::new(),
        }
    }

    /// The error for an optional function that this driver lacks.
    #[cold]
    pub(crate) fn lacking(&self, call: &'static str) -> GpuError {
        let mut error = self.error(call, NOT_SUPPORTED);
        error.detail = "this driver has no such function; that of CUDA 10.2 has it".into();
        error
    }
}

/// The text for `code` by `explain`, one of the driver's two functions that explain codes.
fn explanation(
    explain: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult,
    code: CUresult,
) -> String {
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: `text` is valid for the write of one pointer. Both functions may be called before
    // cuInit and from any thread.
    let result = unsafe { explain(code, &raw mut text) };
    if result != SUCCESS || text.is_null() {
        return "a code this driver does not know".into();
    }
    // SAFETY: on success the driver stores a NUL-terminated string that is never freed.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
