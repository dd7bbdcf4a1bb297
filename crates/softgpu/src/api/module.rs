//! Modules, functions, launches.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::call::{call, later, put};
use crate::code::{INVALID_VALUE, NOT_FOUND};
use crate::module::{Launch, Module};
use crate::stream::Work;

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuModuleLoadData(
    module: *mut *mut c_void,
    image: *const c_void,
) -> c_int {
    call("cuModuleLoadData", |machine| {
        machine.current()?;
        if module.is_null() || image.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: NUL-terminated text or a whole image, by the manual.
        let loaded = machine.modules.add(unsafe { Module::load(image.cast()) }?);
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(module, loaded) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuModuleUnload(module: *mut c_void) -> c_int {
    call("cuModuleUnload", |machine| machine.modules.remove(module).map(drop))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuModuleGetFunction(
    function: *mut *mut c_void,
    module: *mut c_void,
    name: *const c_char,
) -> c_int {
    call("cuModuleGetFunction", |machine| {
        machine.current()?;
        if function.is_null() || name.is_null() {
            return Err(INVALID_VALUE);
        }
        let module = machine.modules.get(module)?;
        // SAFETY: a NUL-terminated name, by the manual.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| NOT_FOUND)?;
        let found = machine.functions.add(module.function(name)?);
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(function, found) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    _shared: c_uint,
    stream: *mut c_void,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> c_int {
    later("cuLaunchKernel", |machine, fault| {
        machine.current()?;
        let sizes = [grid_x, grid_y, grid_z, block_x, block_y, block_z];
        if sizes.contains(&0) || block_x > 1024 || !extra.is_null() {
            return Err(INVALID_VALUE);
        }
        let function = machine.functions.get(function)?;
        let stream = machine.stream(stream)?;
        // SAFETY: the pointers to the kernel's arguments, by the manual.
        let launch = unsafe { Launch::new(function.0, params)? };
        stream.put(fault.map_or(Work::Launch(launch), Work::Fail))
    })
}
