//! Headers of model files, as arrays that C reads.

use std::ffi::{c_char, c_int};
use std::io;
use std::os::fd::BorrowedFd;

use gpuio_base::safetensors::{self as format, Header, Place, ReadError, Run, read};
use gpuio_transfer::uncancelled;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::error::{CallError, run};
use crate::process::path;

/// `gpuio_text`: bytes of a text of an [`Owner`].
#[repr(C)]
pub(crate) struct Text {
    bytes: *const c_char,
    length: u64,
}

impl Text {
    fn of(text: &str) -> Text {
        Text { bytes: text.as_ptr().cast(), length: text.len() as u64 }
    }
}

/// `gpuio_stored`: a tensor.
#[repr(C)]
pub(crate) struct Stored {
    name: Text,
    dtype: Text,
    bits: u32,
    dimensions: u32,
    shape: *const u64,
    offset: u64,
    length: u64,
}

/// `gpuio_pair`: of the metadata.
#[repr(C)]
pub(crate) struct Pair {
    name: Text,
    text: Text,
}

/// `gpuio_base::safetensors`.
#[repr(C)]
pub(crate) struct Safetensors {
    tensors: *const Stored,
    tensor_count: u64,
    metadata: *const Pair,
    metadata_count: u64,
}

/// A header and its arrays. C has the address of its first field, which is its own.
#[repr(C)]
struct Owner {
    shown: Safetensors,
    tensors: Box<[Stored]>,
    metadata: Box<[Pair]>,
    /// The pointers of the arrays point into these: nothing is moved or changed any more.
    _names: Box<str>,
    _sizes: Box<[u64]>,
    header: Header,
}

/// `gpuio_arrangement`.
#[repr(C)]
pub(crate) struct Arrangement {
    groups: *const u64,
    group_count: u64,
    runs: *const Run,
    run_count: u64,
    places: *const Place,
    place_count: u64,
}

/// An arrangement and its arrays. C has the address of its first field, which is its own.
#[repr(C)]
struct Arranged {
    shown: Arrangement,
    /// The arrays that `shown` points into, which nothing changes any more.
    _arrays: format::Arrangement,
}

impl Owner {
    fn new(header: Header) -> Owner {
        // One array of each kind: a caller takes all names at once.
        let names: String = header.tensors.iter().map(|tensor| &*tensor.name).collect();
        let names = names.into_boxed_str();
        let sizes: Box<[u64]> =
            header.tensors.iter().flat_map(|tensor| &tensor.shape).copied().collect();
        let (mut name_at, mut size_at) = (0, 0);
        let stored = |tensor: &gpuio_base::safetensors::Tensor| {
            let name = &names[name_at..name_at + tensor.name.len()];
            let shape = &sizes[size_at..size_at + tensor.shape.len()];
            name_at += name.len();
            size_at += shape.len();
            Stored {
                name: Text::of(name),
                dtype: Text::of(tensor.dtype.name()),
                bits: u32::try_from(tensor.dtype.bits()).unwrap_or(0),
                // A header has at most 100 million bytes.
                dimensions: u32::try_from(shape.len()).unwrap_or(u32::MAX),
                shape: shape.as_ptr(),
                offset: tensor.offset,
                length: tensor.length,
            }
        };
        let pair =
            |(name, text): &(String, String)| Pair { name: Text::of(name), text: Text::of(text) };
        let tensors: Box<[Stored]> = header.tensors.iter().map(stored).collect();
        let metadata: Box<[Pair]> = header.metadata.iter().map(pair).collect();
        let shown = Safetensors {
            tensors: tensors.as_ptr(),
            tensor_count: tensors.len() as u64,
            metadata: metadata.as_ptr(),
            metadata_count: metadata.len() as u64,
        };
        Owner { shown, tensors, metadata, _names: names, _sizes: sizes, header }
    }
}

fn header(fd: c_int) -> Result<Header, CallError> {
    let call = |error: Errno| {
        let errno = if error == Errno::BADF { libc::EBADF } else { libc::EIO };
        CallError::new(errno, format!("it can't be read: {}", io::Error::from(error)))
    };
    if fd < 0 {
        return Err(call(Errno::BADF));
    }
    // SAFETY: the caller's descriptor, open during the call by the interface; a closed one is
    // refused by the kernel.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let found = rustix::fs::fstat(fd).map_err(call)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(CallError::new(
            libc::EINVAL,
            "it is no regular file. Name a file of safetensors",
        ));
    }
    let read_at = |bytes: &mut [u8], at| rustix::io::pread(fd, bytes, at).map_err(io::Error::from);
    read(u64::try_from(found.st_size).unwrap_or(0), read_at).map_err(|error| match error {
        ReadError::Wrong(wrong) => CallError::new(libc::EBADMSG, wrong.to_string()),
        ReadError::Io(error) => call(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    })
}

/// Reads the header of a file of safetensors.
///
/// # Safety
/// `opened` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpuio_safetensors_open(
    fd: c_int,
    opened: *mut *const Safetensors,
) -> c_int {
    run(|| {
        if opened.is_null() {
            return Err(CallError::null("gpuio_safetensors_open", "header"));
        }
        // SAFETY: not null, and the caller's promise.
        unsafe { opened.write(std::ptr::null()) };
        let header = header(fd).map_err(|error| error.of(&path(fd)))?;
        let owner = Box::into_raw(Box::new(Owner::new(header)));
        // SAFETY: as above.
        unsafe { opened.write(owner.cast_const().cast()) };
        Ok(())
    })
}

/// Frees a header.
///
/// # Safety
/// `header` is null or of [`gpuio_safetensors_open`], and freed once.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpuio_safetensors_close(header: *const Safetensors) {
    if !header.is_null() {
        // SAFETY: from `Box::into_raw` in `gpuio_safetensors_open`, where it is the first field.
        uncancelled(|| drop(unsafe { Box::from_raw(header.cast_mut().cast::<Owner>()) }));
    }
}

/// Arranges the tensors of a file in groups.
///
/// # Safety
/// `header` is null or open; `arranged` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpuio_safetensors_arrange(
    header: *const Safetensors,
    most: u64,
    arranged: *mut *const Arrangement,
) -> c_int {
    run(|| {
        if arranged.is_null() {
            return Err(CallError::null("gpuio_safetensors_arrange", "arrangement"));
        }
        // SAFETY: not null, and the caller's promise.
        unsafe { arranged.write(std::ptr::null()) };
        // SAFETY: the caller's promise: the first field of an `Owner`.
        let owner = unsafe { header.cast::<Owner>().as_ref() }
            .ok_or_else(|| CallError::null("gpuio_safetensors_arrange", "header"))?;
        let arrays = format::arrange(&owner.header, most);
        let shown = Arrangement {
            groups: arrays.groups.as_ptr(),
            group_count: arrays.groups.len() as u64,
            runs: arrays.runs.as_ptr(),
            run_count: arrays.runs.len() as u64,
            places: arrays.places.as_ptr(),
            place_count: arrays.places.len() as u64,
        };
        let made = Box::into_raw(Box::new(Arranged { shown, _arrays: arrays }));
        // SAFETY: as above.
        unsafe { arranged.write(made.cast_const().cast()) };
        Ok(())
    })
}

/// Frees an arrangement.
///
/// # Safety
/// `arranged` is null or of [`gpuio_safetensors_arrange`], and freed once.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpuio_arrangement_free(arranged: *const Arrangement) {
    if !arranged.is_null() {
        // SAFETY: from `Box::into_raw` in `gpuio_safetensors_arrange`, where it is the first field.
        uncancelled(|| drop(unsafe { Box::from_raw(arranged.cast_mut().cast::<Arranged>()) }));
    }
}
