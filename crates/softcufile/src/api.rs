//! The exported functions, by cuFile's names.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{CallError, code};
use crate::machine::{self, Direction, Machine, Transfer};

/// The result of most calls, by value.
#[repr(C)]
pub(crate) struct Answer {
    code: c_int,
    cuda: c_int,
}

/// The description of a file: the kind, a union of a descriptor and a pointer, and a table of
/// functions.
#[repr(C)]
pub(crate) struct Descriptor {
    kind: c_int,
    fd: u64,
    file_system: *const c_void,
}

/// A descriptor of this process, in [`Descriptor::kind`].
const OPAQUE_FD: c_int = 1;
/// The release that this library behaves like, in the library's coding: 1.15.
const VERSION: c_int = 1150;

/// The result of `body`, after the injected fault; no panic leaves.
pub(crate) fn answer(call: &str, body: impl FnOnce(&Machine) -> Result<(), CallError>) -> Answer {
    let run = || {
        let machine = machine::get()?;
        machine.fault(call)?;
        body(machine)
    };
    let error = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return Answer { code: 0, cuda: 0 },
        Ok(Err(error)) => error,
        Err(_) => code::INTERNAL_ERROR.into(),
    };
    match error {
        CallError::Code(code, cuda) => Answer { code, cuda },
        CallError::Errno(_) | CallError::Lost => Answer { code: code::INTERNAL_ERROR, cuda: 0 },
    }
}

fn transfer(request: Transfer) -> isize {
    let run = || machine::get()?.transfer(request);
    match catch_unwind(AssertUnwindSafe(run)) {
        // No slice is longer than isize::MAX.
        Ok(Ok(count)) => count.cast_signed(),
        Ok(Err(CallError::Code(code, _))) => -(code as isize),
        Ok(Err(CallError::Errno(errno))) => {
            // SAFETY: the address of this thread's errno, which is always valid.
            let address = unsafe { libc::__errno_location() };
            // SAFETY: as above, valid for writes by this thread.
            unsafe { address.write(errno) };
            -1
        }
        Ok(Err(CallError::Lost)) | Err(_) => -(code::INTERNAL_ERROR as isize),
    }
}

/// Tells gpuio that this is the test double.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn gpuio_soft_cufile_version() -> c_int {
    VERSION
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileDriverOpen() -> Answer {
    answer("cuFileDriverOpen", Machine::open)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileDriverClose_v2() -> Answer {
    answer("cuFileDriverClose_v2", |machine| {
        machine.close();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileGetVersion(version: *mut c_int) -> Answer {
    answer("cuFileGetVersion", |_| {
        if version.is_null() {
            return Err(code::INVALID_VALUE.into());
        }
        // SAFETY: not null, and the caller's promise by the guide.
        unsafe { version.write(VERSION) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileHandleRegister(
    handle: *mut *mut c_void,
    descriptor: *mut Descriptor,
) -> Answer {
    answer("cuFileHandleRegister", |machine| {
        if handle.is_null() || descriptor.is_null() {
            return Err(code::INVALID_VALUE.into());
        }
        // SAFETY: not null, and the caller's promise by the guide.
        let kind = unsafe { (*descriptor).kind };
        if kind != OPAQUE_FD {
            return Err(code::INVALID_VALUE.into());
        }
        // SAFETY: as above.
        let fd = unsafe { (*descriptor).fd };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the descriptor is the union's low half"
        )]
        let fd = fd as u32;
        let made = machine.register(fd.cast_signed())?;
        // SAFETY: as above.
        unsafe { handle.write(std::ptr::without_provenance_mut(made)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileHandleDeregister(handle: *mut c_void) {
    let _ = answer("cuFileHandleDeregister", |machine| {
        machine.deregister(handle.addr());
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileBufRegister(base: u64, len: usize, _flags: c_int) -> Answer {
    answer("cuFileBufRegister", |machine| machine.register_buffer(base, len))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileBufDeregister(base: u64) -> Answer {
    answer("cuFileBufDeregister", |machine| machine.deregister_buffer(base))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileRead(
    handle: *mut c_void,
    base: u64,
    len: usize,
    file_offset: i64,
    buffer_offset: i64,
) -> isize {
    let handle = handle.addr();
    transfer(Transfer { direction: Direction::Read, handle, base, len, file_offset, buffer_offset })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileWrite(
    handle: *mut c_void,
    base: u64,
    len: usize,
    file_offset: i64,
    buffer_offset: i64,
) -> isize {
    let handle = handle.addr();
    transfer(Transfer {
        direction: Direction::Write,
        handle,
        base,
        len,
        file_offset,
        buffer_offset,
    })
}
