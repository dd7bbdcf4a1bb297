//! Tensors over a memory, in the structures of DLPack (dmlc/dlpack, `dlpack.h`, version 1.1: the
//! unversioned `DLManagedTensor`, which every consumer takes).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use gpuio_transfer::uncancelled;

use crate::error::{CallError, run};
use crate::memory::{HOST, Memory, outside};

/// `kDLCPU` and `kDLCUDA`.
const CPU: i32 = 1;
const CUDA: i32 = 2;
/// Dimensions of NumPy and PyTorch at most.
const DIMENSIONS: usize = 64;

#[repr(C)]
struct Device {
    kind: i32,
    index: i32,
}

#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: Device,
    dimensions: i32,
    kind: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
pub(crate) struct Managed {
    tensor: DlTensor,
    owner: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// The data that a tensor keeps until its deleter is called.
struct Owner {
    managed: Managed,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
    _memory: Arc<Memory>,
}

/// The elements to the next index of each dimension, last index fastest; `None` for a size below 0
/// or a number of elements above 2^63.
fn strides(shape: &[i64]) -> Option<(Box<[i64]>, u64)> {
    let mut strides = vec![1_i64; shape.len()];
    let (mut elements, mut step) = (1_i64, 1_i64);
    for (stride, size) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.checked_mul((*size).max(1))?;
        elements = elements.checked_mul(*size).filter(|_| *size >= 0)?;
    }
    Some((strides.into_boxed_slice(), elements.unsigned_abs()))
}

/// Frees a tensor.
///
/// # Safety
/// `managed` is of [`gpuio_tensor_new`], and freed once.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: the caller's promise.
    if let Some(managed) = unsafe { managed.as_ref() } {
        // SAFETY: from `Box::into_raw` in `gpuio_tensor_new`.
        uncancelled(|| drop(unsafe { Box::from_raw(managed.owner.cast::<Owner>()) }));
    }
}

fn tensor(
    memory: &Arc<Memory>,
    offset: u64,
    (code, bits): (u8, u8),
    shape: &[i64],
) -> Result<*mut Managed, CallError> {
    if bits == 0 || bits % 8 != 0 {
        let text = format!("an element of {bits} bits is not a number of bytes");
        return Err(CallError::new(libc::EINVAL, text));
    }
    let (strides, elements) = strides(shape).ok_or_else(|| {
        CallError::new(libc::EINVAL, format!("{shape:?} is not the shape of a tensor"))
    })?;
    let bytes = elements.saturating_mul(u64::from(bits / 8));
    if !memory.holds(offset, bytes) {
        return Err(outside(memory, offset, bytes));
    }
    let address = usize::try_from(memory.address() + offset).unwrap_or(0);
    let device = match memory.device {
        HOST => Device { kind: CPU, index: 0 },
        index => Device { kind: CUDA, index },
    };
    let made = DlTensor {
        data: std::ptr::with_exposed_provenance_mut(address),
        device,
        dimensions: i32::try_from(shape.len()).unwrap_or(i32::MAX),
        kind: DataType { code, bits, lanes: 1 },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed = Managed { tensor: made, owner: std::ptr::null_mut(), deleter: Some(delete) };
    let shape = shape.to_vec().into_boxed_slice();
    let owner = Owner { managed, shape, strides, _memory: Arc::clone(memory) };
    let owner = Box::into_raw(Box::new(owner));
    // SAFETY: just made, and nobody else has it.
    let kept = unsafe { &mut *owner };
    kept.managed.tensor.shape = kept.shape.as_mut_ptr();
    kept.managed.tensor.strides = kept.strides.as_mut_ptr();
    kept.managed.owner = owner.cast();
    Ok(&raw mut kept.managed)
}

/// Makes a tensor of elements in a memory.
///
/// # Safety
/// `memory` is null or of `gpuio_memory_new`, and not released; `shape` is valid for the read of
/// `dimensions` numbers; `made` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_tensor_new(
    memory: *const Memory,
    offset: u64,
    code: u8,
    bits: u8,
    dimensions: c_int,
    shape: *const i64,
    made: *mut *mut Managed,
) -> c_int {
    run(|| {
        if made.is_null() {
            return Err(CallError::null("gpuio_tensor_new", "tensor"));
        }
        // SAFETY: not null, and the caller's promise.
        unsafe { made.write(std::ptr::null_mut()) };
        if memory.is_null() {
            return Err(CallError::null("gpuio_tensor_new", "memory"));
        }
        let count = usize::try_from(dimensions).ok().filter(|count| *count <= DIMENSIONS);
        let Some(count) = count else {
            let text = format!("gpuio_tensor_new: {dimensions} dimensions. 0 to 64 are possible");
            return Err(CallError::new(libc::EINVAL, text));
        };
        if shape.is_null() && count > 0 {
            return Err(CallError::null("gpuio_tensor_new", "shape"));
        }
        let shape = if count == 0 {
            &[][..]
        } else {
            // SAFETY: not null, and the caller's promise.
            unsafe { std::slice::from_raw_parts(shape, count) }
        };
        // SAFETY: the caller's share, by its promise; one more is taken for the tensor.
        unsafe { Arc::increment_strong_count(memory) };
        // SAFETY: the share that was just taken.
        let memory = unsafe { Arc::from_raw(memory) };
        let tensor = tensor(&memory, offset, (code, bits), shape)
            .map_err(|error| error.of("gpuio_tensor_new"))?;
        // SAFETY: as above.
        unsafe { made.write(tensor) };
        Ok(())
    })
}

/// `PyCapsule_IsValid` and `PyCapsule_GetPointer`, which the program passes: a Python that was
/// loaded with `RTLD_LOCAL` has no names that could be looked for.
static IS_VALID: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static GET_POINTER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Takes the functions of Python's C API that [`gpuio_tensor_capsule_gone`] calls.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn gpuio_tensor_python(is_valid: *mut c_void, get_pointer: *mut c_void) {
    IS_VALID.store(is_valid, Ordering::Release);
    GET_POINTER.store(get_pointer, Ordering::Release);
}

/// Frees the tensor of a capsule of Python's that nobody took: a consumer renames it. Python calls
/// it while an exception may be pending, which code in Python would lose.
///
/// # Safety
/// Python calls it, with a capsule of a tensor of [`gpuio_tensor_new`] that is about to go, and the
/// functions of [`gpuio_tensor_python`] are that Python's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpuio_tensor_capsule_gone(capsule: *mut c_void) {
    const LABEL: &CStr = c"dltensor";
    type IsValid = unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;
    type Pointer = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    let [is_valid, pointer] = [&IS_VALID, &GET_POINTER].map(|one| one.load(Ordering::Acquire));
    if is_valid.is_null() || pointer.is_null() {
        return;
    }
    // SAFETY: the signature is that of Python's C API, stable since 3.1; the caller of
    // `gpuio_tensor_python` passed that function.
    let is_valid = unsafe { std::mem::transmute::<*mut c_void, IsValid>(is_valid) };
    // SAFETY: as above.
    let pointer = unsafe { std::mem::transmute::<*mut c_void, Pointer>(pointer) };
    // SAFETY: an object of Python's, by the caller's promise; it fails on none.
    if unsafe { is_valid(capsule, LABEL.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: a capsule of this name, so that it does not fail.
    let tensor = unsafe { pointer(capsule, LABEL.as_ptr()) };
    // SAFETY: the tensor of such a capsule is one of `gpuio_tensor_new` that nobody took, by the
    // caller's promise, and its capsule is about to go.
    unsafe { delete(tensor.cast()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_each_other() {
        let of = |shape: &[i64]| strides(shape).map(|(strides, count)| (strides.to_vec(), count));
        assert_eq!(of(&[2, 3, 4]), Some((vec![12, 4, 1], 24)));
        assert_eq!(of(&[]), Some((vec![], 1)));
        assert_eq!(of(&[5, 0, 2]), Some((vec![2, 2, 1], 0)));
        assert_eq!(of(&[2, -1]), None);
        assert_eq!(of(&[i64::MAX, 2]), None);
    }
}
