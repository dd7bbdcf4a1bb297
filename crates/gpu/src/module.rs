//! Code on the device.

use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;
use std::time::Duration;

use crate::DevPtr;
use crate::code::Code;
use crate::context::Context;
use crate::error::GpuError;
use crate::stream::Stream;
use crate::table::{self, CUfunction, CUmodule, CUresult, CUstream};

/// The most arguments a launch takes here; the kernels in this crate have up to ten.
const MAX_ARGS: usize = 16;

/// Drivers answer these to an image that they can't use: made for another device, by a newer
/// assembler, or of no kind that they know.
const NOT_FOR_THIS_DRIVER: [CUresult; 5] = [
    table::INVALID_IMAGE,
    table::NO_BINARY_FOR_GPU,
    table::UNSUPPORTED_PTX_VERSION,
    table::INVALID_SOURCE,
    table::NOT_SUPPORTED,
];

/// Loaded device code. Cloning is cheap; kernels keep it loaded.
#[derive(Debug, Clone)]
pub struct Module(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    context: Context,
    handle: CUmodule,
}

// SAFETY: a module may be used from any thread; the handle is only handed back to the driver.
unsafe impl Send for Inner {}
// SAFETY: the driver locks what concurrent calls on one module need.
unsafe impl Sync for Inner {}

impl Module {
    /// Loads PTX text, which the driver compiles for the device (or takes from its cache).
    ///
    /// # Errors
    /// The text is no PTX, is newer than the driver, or is for newer devices.
    pub fn load(context: &Context, ptx: &CStr) -> Result<Self, GpuError> {
        // SAFETY: NUL-terminated text.
        unsafe { Self::load_image(context, ptx.as_ptr().cast()) }
    }

    /// Loads code of this crate: compiled code where there is some for the device, else PTX. A
    /// driver that does not take the compiled code (it is older than the assembler) gets the PTX.
    ///
    /// # Errors
    /// As [`Module::load`]; the text holds a NUL.
    pub(crate) fn built_in(context: &Context, code: &Code) -> Result<Self, GpuError> {
        if let Some(image) = code.compiled_for(context.driver().compute(context.device())?) {
            // SAFETY: a whole ELF image, as the assembler made it.
            match unsafe { Self::load_image(context, image.as_ptr().cast()) } {
                Err(error) if NOT_FOR_THIS_DRIVER.contains(&error.code) => {}
                loaded => return loaded,
            }
        }
        let Ok(ptx) = CString::new(code.ptx) else {
            let error = context.table().error("cuModuleLoadData", table::INVALID_VALUE);
            return Err(error.on(context.device()).with("the PTX in this program holds a NUL"));
        };
        Self::load(context, &ptx)
    }

    /// # Safety
    /// `image` must be NUL-terminated text or a whole ELF image.
    unsafe fn load_image(context: &Context, image: *const c_void) -> Result<Self, GpuError> {
        let _entered = context.enter()?;
        let mut handle: CUmodule = std::ptr::null_mut();
        // SAFETY: `handle` is valid for the write of one pointer; the image is the caller's
        // promise.
        let code = unsafe { (context.table().cuModuleLoadData)(&raw mut handle, image) };
        context.check("cuModuleLoadData", code)?;
        Ok(Self(Arc::new(Inner { context: context.clone(), handle })))
    }

    /// Finds an entry point by its name.
    ///
    /// # Errors
    /// The module has no such entry.
    pub fn kernel(&self, name: &CStr) -> Result<Kernel, GpuError> {
        let context = &self.0.context;
        let _entered = context.enter()?;
        let mut handle: CUfunction = std::ptr::null_mut();
        let get = context.table().cuModuleGetFunction;
        // SAFETY: `handle` is valid for the write of one pointer, the module is loaded and the
        // name NUL-terminated.
        let code = unsafe { get(&raw mut handle, self.0.handle, name.as_ptr()) };
        context
            .check("cuModuleGetFunction", code)
            .map_err(|e| e.with(format!("kernel {}", name.to_string_lossy())))?;
        Ok(Kernel { module: self.clone(), handle })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else {
            return;
        };
        // SAFETY: loaded by cuModuleLoadData and unloaded once; no kernel handle is left.
        let _ = unsafe { (self.context.table().cuModuleUnload)(self.handle) };
    }
}

/// An entry point of a [`Module`].
#[derive(Debug, Clone)]
pub struct Kernel {
    module: Module,
    handle: CUfunction,
}

// SAFETY: a function handle may be used from any thread; it is only handed back to the driver.
unsafe impl Send for Kernel {}
// SAFETY: launches from several threads are allowed by the driver.
unsafe impl Sync for Kernel {}

/// An argument of a kernel, by its type in the kernel's declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// A 64-bit unsigned number.
    U64(u64),
    /// An address.
    Ptr(DevPtr),
}

impl Arg {
    /// A time in nanoseconds, as a 64-bit number; 0 for one that it can't hold.
    pub(crate) fn nanoseconds(time: Duration) -> Arg {
        Arg::U64(u64::try_from(time.as_nanos()).unwrap_or(0))
    }
}

impl Kernel {
    /// As [`Stream::launch`].
    ///
    /// # Errors
    /// The driver's refusal, or more arguments than are supported.
    ///
    /// # Safety
    /// As [`Stream::launch`].
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        grid: u32,
        block: u32,
        args: &[Arg],
    ) -> Result<(), GpuError> {
        // SAFETY: the stream lives; the rest is the caller's promise.
        unsafe { self.launch_in(stream.handle(), grid, block, args) }
    }

    /// As [`Kernel::launch`], into a stream by its handle.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there, and the stream must live and be of the kernel's context.
    pub(crate) unsafe fn launch_in(
        &self,
        stream: CUstream,
        grid: u32,
        block: u32,
        args: &[Arg],
    ) -> Result<(), GpuError> {
        let context = self.context();
        if args.len() > MAX_ARGS {
            let error = context.table().error("cuLaunchKernel", table::INVALID_VALUE);
            return Err(error.on(context.device()).with(format!("{} arguments", args.len())));
        }
        let mut pointers = [std::ptr::null_mut::<c_void>(); MAX_ARGS];
        for (pointer, arg) in pointers.iter_mut().zip(args) {
            *pointer = match arg {
                Arg::U64(value) => std::ptr::from_ref(value).cast_mut().cast(),
                Arg::Ptr(value) => std::ptr::from_ref(&value.0).cast_mut().cast(),
            };
        }
        // SAFETY: the module is loaded, the stream lives, and `pointers` name values that outlive
        // the call, which copies them; their number and types, and the memory behind them, are the
        // caller's promise.
        let code = unsafe {
            (context.table().cuLaunchKernel)(
                self.handle,
                grid,
                1,
                1,
                block,
                1,
                1,
                0,
                stream,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        context
            .check("cuLaunchKernel", code)
            .map_err(|e| e.with(format!("{grid} blocks of {block} threads")))
    }

    /// The context that the module was loaded in.
    pub(crate) fn context(&self) -> &Context {
        &self.module.0.context
    }
}
