//! Reads into memory of the GPU and the host, and tensors in it, by the interface.
#![allow(unsafe_code, reason = "the interface under test is unsafe")]
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]

mod support;

use std::ffi::c_int;
use std::fs::File;
use std::os::fd::AsRawFd;

use support::{Arrangement, Managed, Memory, Part, Safetensors, dir, file, gpuio, random_bytes};

const HOST: c_int = -1;

fn memory(device: c_int, length: u64) -> Result<*mut Memory, c_int> {
    let mut made = std::ptr::dangling_mut();
    // SAFETY: valid for the write of a pointer.
    let code = unsafe { (gpuio().gpuio_memory_new)(device, length, &raw mut made) };
    assert_eq!(code != 0, made.is_null(), "{code}");
    if code == 0 { Ok(made) } else { Err(code) }
}

fn copy(memory: *mut Memory, offset: u64, len: usize) -> Result<Vec<u8>, c_int> {
    let mut copied = vec![0; len];
    let to = copied.as_mut_ptr().cast();
    // SAFETY: a memory, and room for so many bytes.
    let code = unsafe { (gpuio().gpuio_memory_copy_out)(memory, offset, to, len as u64) };
    if code == 0 { Ok(copied) } else { Err(code) }
}

fn release(memory: *mut Memory) {
    // SAFETY: a memory, which the test does not use again.
    unsafe { (gpuio().gpuio_memory_release)(memory) };
}

fn read(
    fd: c_int,
    offset: u64,
    memory: *mut Memory,
    at: usize,
    len: u64,
) -> Result<[u64; 4], c_int> {
    let mut moved = [u64::MAX; 4];
    // SAFETY: a memory.
    let address = unsafe { (gpuio().gpuio_memory_address)(memory) };
    let address = address.wrapping_byte_add(at);
    // SAFETY: the ranges of the tests are in the memory.
    let code = unsafe { (gpuio().gpuio_read)(fd, offset, address, len, &raw mut moved) };
    if code == 0 { Ok(moved) } else { Err(code) }
}

#[test]
fn any_range_of_a_file_gets_into_memory() {
    let dir = dir();
    let data = random_bytes(1, 5_000_003);
    let file = file(&dir.path().join("data"), &data);
    for device in [0, HOST] {
        let memory = memory(device, 6 << 20).unwrap();
        // SAFETY: a memory.
        assert_eq!(unsafe { (gpuio().gpuio_memory_length)(memory) }, 6 << 20);
        for (offset, len, at) in
            [(0, data.len(), 0), (12_345, 4_000_001, 777), (4_999_999, 4, 5), (1, 3000, 4095)]
        {
            let moved = read(file.as_raw_fd(), offset, memory, at, len as u64).unwrap();
            let gpu = if device == HOST { 0 } else { len as u64 };
            assert_eq!((moved[0], moved[3]), (len as u64, gpu), "{moved:?}");
            assert_eq!(moved[1] + moved[2], len as u64, "{moved:?}");
            let from = usize::try_from(offset).unwrap();
            let right = &data[from..from + len];
            assert!(copy(memory, at as u64, len).unwrap() == right, "{device} {offset} {len}");
        }
        // Past the end: what there is.
        let moved = read(file.as_raw_fd(), 5_000_000, memory, 0, 100).unwrap();
        assert_eq!(moved[0], 3);
        release(memory);
    }
}

fn read_parts(parts: &[Part]) -> Result<[u64; 4], c_int> {
    let mut moved = [u64::MAX; 4];
    // SAFETY: parts of the tests are in their memory.
    let code =
        unsafe { (gpuio().gpuio_read_parts)(parts.as_ptr(), parts.len() as u64, &raw mut moved) };
    if code == 0 { Ok(moved) } else { Err(code) }
}

#[test]
fn many_parts_and_rows_are_read_at_once() {
    let dir = dir();
    let data = random_bytes(2, 3_000_001);
    let file = file(&dir.path().join("data"), &data);
    // Ranges, short rows, long rows, rows without gaps, and nothing.
    let wanted = [
        (17, 1_000_000, 0, 0),
        (5, 100, 700, 3001),
        (3, 300_000, 3, 900_000),
        (9, 1000, 20, 1000),
        (0, 0, 5, 7),
        (2_999_000, 1, 1, 0),
    ];
    assert_eq!(read_parts(&[]), Ok([0; 4]));
    for device in [0, HOST] {
        let memory = memory(device, 4 << 20).unwrap();
        // SAFETY: a memory.
        let start = unsafe { (gpuio().gpuio_memory_address)(memory) };
        let (mut parts, mut right) = (Vec::new(), Vec::<u8>::new());
        for (offset, length, rows, stride) in wanted {
            parts.push(Part {
                offset,
                length,
                rows,
                stride,
                address: start.wrapping_byte_add(right.len()),
                copies: std::ptr::null(),
                copy_count: 0,
                fd: file.as_raw_fd(),
            });
            for row in 0..rows.max(1) {
                let from = usize::try_from(offset + row * stride).unwrap();
                right.extend(&data[from..from + usize::try_from(length).unwrap()]);
            }
        }
        assert_eq!(read_parts(&parts).unwrap()[0], right.len() as u64);
        assert!(copy(memory, 0, right.len()).unwrap() == right, "{device}");
        // The part that fails is named.
        parts[1].fd = 987;
        assert_eq!(read_parts(&parts), Err(-libc::EBADF));
        parts.truncate(1);
        parts[0].address = std::ptr::null_mut();
        assert_eq!(read_parts(&parts), Err(-libc::EINVAL));
        assert!(gpuio().error().contains("1000000 bytes at 17 of"), "{}", gpuio().error());
        let other = [start];
        let host = [std::ptr::from_ref(&parts).cast_mut().cast()];
        let copies = if device == HOST { other.as_ptr() } else { host.as_ptr() };
        parts[0] = Part { address: start, copies, copy_count: 1, ..parts[0] };
        assert_eq!(read_parts(&parts), Err(-libc::EINVAL));
        assert!(gpuio().error().contains("this is host memory"), "{}", gpuio().error());
        release(memory);
    }
    // SAFETY: any numbers.
    let reaches = |one, other| unsafe { (gpuio().gpuio_reaches)(one, other) };
    assert_eq!((reaches(0, 0), reaches(0, 99)), (1, -libc::ENODEV));
}

/// Columns of matrices, in any order, some of which end behind the file's end.
#[test]
fn columns_of_the_same_rows_are_each_theirs() {
    let dir = dir();
    let data = random_bytes(3, 900_000);
    let file = file(&dir.path().join("data"), &data);
    let memory = memory(0, 4 << 20).unwrap();
    // SAFETY: a memory.
    let start = unsafe { (gpuio().gpuio_memory_address)(memory) };
    // Offset of a matrix, its rows and their bytes, and where its columns begin and end.
    type Columns<'a> = &'a [(u64, u64)];
    let matrices: [(u64, u64, u64, Columns<'_>); 4] = [
        (1, 100, 1111, &[(500, 1111), (0, 500)]),
        (200_000, 7, 40_000, &[(0, 10_000), (10_000, 10_001), (20_000, 40_000), (3, 9)]),
        (500_000, 3, 90_000, &[(0, 90), (45_000, 90_000)]),
        (770_000, 60, 3000, &[(10, 2000), (2000, 2990)]),
    ];
    let (mut parts, mut right) = (Vec::new(), Vec::<Option<u8>>::new());
    for (first, rows, stride, columns) in matrices {
        for &(begin, end) in columns {
            parts.push(Part {
                offset: first + begin,
                length: end - begin,
                rows,
                stride,
                address: start.wrapping_byte_add(right.len()),
                copies: std::ptr::null(),
                copy_count: 0,
                fd: file.as_raw_fd(),
            });
            let bytes = (0..rows).flat_map(|row| begin + row * stride..end + row * stride);
            let bytes = bytes.map(|at| data.get(usize::try_from(first + at).unwrap()).copied());
            right.extend(bytes);
        }
    }
    parts.reverse();
    let there = right.iter().flatten().count() as u64;
    assert!(there < right.len() as u64);
    let moved = read_parts(&parts).unwrap();
    assert_eq!((moved[0], moved[1] + moved[2], moved[3]), (there, there, there));
    let got = copy(memory, 0, right.len()).unwrap();
    assert!(got.iter().zip(&right).all(|(got, right)| right.is_none_or(|right| right == *got)));
    release(memory);
}

#[test]
fn what_cannot_be_read_has_an_errno_and_words() {
    let mut software = -1;
    // SAFETY: valid for the write of an int.
    assert_eq!(unsafe { (gpuio().gpuio_gpus)(&raw mut software) }, 1);
    assert_eq!(software, c_int::from(!support::on_system()));
    let dir = dir();
    let path = dir.path().join("data");
    let file = file(&path, b"abc");
    let host = memory(HOST, 4096).unwrap();
    assert_eq!(read(-1, 0, host, 0, 1), Err(-libc::EBADF));
    let writer = std::fs::File::options().write(true).open(&path).unwrap();
    assert_eq!(read(writer.as_raw_fd(), 0, host, 0, 1), Err(-libc::EBADF));
    assert!(gpuio().error().contains("gpuio_read of 1 bytes at 0 of"), "{}", gpuio().error());
    // SAFETY: refused before it is used.
    let code = unsafe {
        (gpuio().gpuio_read)(file.as_raw_fd(), 0, std::ptr::null_mut(), 1, std::ptr::null_mut())
    };
    assert_eq!(code, -libc::EINVAL);
    assert_eq!(copy(host, 4090, 7), Err(-libc::EINVAL));
    assert_eq!(memory(77, 1), Err(-libc::ENODEV));
    assert_eq!(memory(-2, 1), Err(-libc::ENODEV));
    assert_eq!(memory(HOST, u64::MAX), Err(-libc::ENOMEM));
    release(host);
    let none = memory(0, 0).unwrap();
    // SAFETY: a memory without bytes.
    assert!(unsafe { (gpuio().gpuio_memory_address)(none) }.is_null());
    assert_eq!(copy(none, 0, 0), Ok(vec![]));
    release(none);
    release(std::ptr::null_mut());
}

/// Why a child of `fork(2)` can't use its parent's GPU: in words, not by "Bad address" alone.
#[test]
fn a_child_of_fork_hears_of_the_fork() {
    let dir = dir();
    let file = file(&dir.path().join("data"), &random_bytes(1, 4096));
    let fd = file.as_raw_fd();
    let gpu = memory(0, 4096).unwrap();
    read(fd, 0, gpu, 0, 4096).unwrap();
    // SAFETY: the child calls what is tested, and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let says = || gpuio().error().contains("fork(2)");
        let right = [
            read(fd, 0, gpu, 0, 4096) == Err(-libc::EFAULT) && says(),
            memory(0, 4096) == Err(-libc::EPERM) && says(),
            copy(gpu, 0, 10) == Err(-libc::EPERM) && says(),
            memory(HOST, 4096).is_ok_and(|host| read(fd, 0, host, 0, 4096).is_ok()),
        ];
        let wrong = right.iter().position(|right| !right).map_or(0, |at| at + 1);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(c_int::try_from(wrong).unwrap_or(9)) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for the write of a number.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the number of what was wrong, in the high byte");
    read(fd, 0, gpu, 0, 4096).unwrap();
    release(gpu);
}

#[test]
fn a_tensor_keeps_its_bytes() {
    let dir = dir();
    let data = random_bytes(1, 4096);
    let file = file(&dir.path().join("data"), &data);
    let memory = memory(HOST, 4096).unwrap();
    read(file.as_raw_fd(), 0, memory, 0, 4096).unwrap();
    let made = |offset: u64, bits: u8, shape: &[i64]| {
        let mut tensor: *mut Managed = std::ptr::dangling_mut();
        let dimensions = c_int::try_from(shape.len()).unwrap();
        // SAFETY: a memory, a shape, and a place for a pointer.
        let code = unsafe {
            (gpuio().gpuio_tensor_new)(
                memory,
                offset,
                2,
                bits,
                dimensions,
                shape.as_ptr(),
                &raw mut tensor,
            )
        };
        assert_eq!(code != 0, tensor.is_null(), "{code}");
        if code == 0 { Ok(tensor) } else { Err(code) }
    };
    assert_eq!(made(0, 16, &[2, 1025]), Err(-libc::EINVAL));
    assert!(gpuio().error().contains("4100 bytes at 0"), "{}", gpuio().error());
    assert_eq!(made(0, 12, &[1]), Err(-libc::EINVAL));
    assert_eq!(made(0, 16, &[-1]), Err(-libc::EINVAL));
    assert_eq!(made(0, 16, &[1; 65]), Err(-libc::EINVAL));
    let tensor = made(96, 16, &[100, 20]).unwrap();
    release(memory);
    // SAFETY: a tensor, until its deleter is called.
    let seen = unsafe { &*tensor };
    assert_eq!((seen.device, seen.dimensions, seen.byte_offset), ([1, 0], 2, 0));
    assert_eq!((seen.code, seen.bits, seen.lanes), (2, 16, 1));
    // SAFETY: two numbers.
    let shape = unsafe { *seen.shape.cast::<[i64; 2]>() };
    // SAFETY: as above.
    let strides = unsafe { *seen.strides.cast::<[i64; 2]>() };
    assert_eq!((shape, strides), ([100, 20], [20, 1]));
    // SAFETY: the tensor's elements, of 4000 bytes.
    let elements = unsafe { std::slice::from_raw_parts(seen.data.cast::<u8>(), 4000) };
    assert!(elements == &data[96..]);
    // SAFETY: once, and the last use.
    unsafe { (seen.deleter)(tensor) };
}

#[test]
fn the_header_of_a_model_is_arrays_of_its_tensors() {
    let dir = dir();
    let opened = |path: &std::path::Path| {
        let file = File::open(path).unwrap();
        let mut header = std::ptr::dangling::<Safetensors>();
        // SAFETY: valid for the write of a pointer.
        let code = unsafe { (gpuio().gpuio_safetensors_open)(file.as_raw_fd(), &raw mut header) };
        assert_eq!(code != 0, header.is_null(), "{code}");
        if code == 0 { Ok(header) } else { Err((code, gpuio().error())) }
    };
    let text = r#"{"__metadata__":{"a\u0000b":"\u00e9"},"w\u0000":{"dtype":"F4","shape":[3,2],
        "data_offsets":[0,3]},"":{"dtype":"BF16","shape":[],"data_offsets":[3,5]}}"#;
    let start = 8 + text.len() as u64;
    let model = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), b"abcde"].concat();
    let path = dir.path().join("m.safetensors");
    std::fs::write(&path, &model).unwrap();
    let header = opened(&path).unwrap();
    // SAFETY: open until the end of this test, and so are its arrays.
    let read = unsafe { &*header };
    assert_eq!((read.tensor_count, read.metadata_count), (2, 1));
    // SAFETY: as above.
    let [weight, one] = unsafe { &*read.tensors.cast::<[support::Stored; 2]>() };
    // SAFETY: as above.
    let shape = unsafe { std::slice::from_raw_parts(weight.shape, weight.dimensions as usize) };
    assert_eq!((weight.name.get(), weight.dtype.get(), weight.bits), ("w\0", "F4", 4));
    assert_eq!((shape, weight.offset, weight.length), (&[3, 2][..], start, 3));
    assert_eq!((one.name.get(), one.dtype.get(), one.dimensions), ("", "BF16", 0));
    assert_eq!((one.offset, one.length), (start + 3, 2));
    // SAFETY: as above.
    let [name, text] = unsafe { &*read.metadata };
    assert_eq!((name.get(), text.get()), ("a\0b", "é"));
    let mut arranged = std::ptr::null::<Arrangement>();
    // SAFETY: a header, and a place for a pointer.
    let code = unsafe { (gpuio().gpuio_safetensors_arrange)(header, 1000, &raw mut arranged) };
    assert_eq!(code, 0);
    // SAFETY: just made.
    let Arrangement { groups, group_count, runs, run_count, places, place_count } =
        unsafe { std::ptr::read(arranged) };
    assert_eq!((group_count, run_count, place_count), (1, 2, 2));
    // SAFETY: so many of each.
    let groups = unsafe { *groups };
    // SAFETY: as above.
    let runs = unsafe { *runs.cast::<[[u64; 4]; 2]>() };
    // SAFETY: as above.
    let places = unsafe { *places.cast::<[[u64; 3]; 2]>() };
    assert_eq!(groups, 258);
    assert_eq!(runs, [[0, 0, start, 3], [0, 256, start + 3, 2]]);
    assert_eq!(places, [[0, 0, 0], [1, 0, 256]]);
    // SAFETY: not used again.
    unsafe { (gpuio().gpuio_arrangement_free)(arranged) };
    // SAFETY: nothing for null.
    unsafe { (gpuio().gpuio_arrangement_free)(std::ptr::null()) };
    // SAFETY: no header.
    let code =
        unsafe { (gpuio().gpuio_safetensors_arrange)(std::ptr::null(), 1000, &raw mut arranged) };
    assert_eq!((code, arranged.is_null()), (-libc::EINVAL, true));
    // SAFETY: not used again.
    unsafe { (gpuio().gpuio_safetensors_close)(header) };
    // SAFETY: nothing for null.
    unsafe { (gpuio().gpuio_safetensors_close)(std::ptr::null()) };

    std::fs::write(&path, &model[..model.len() - 1]).unwrap();
    let (code, words) = opened(&path).unwrap_err();
    assert_eq!(code, -libc::EBADMSG);
    assert!(words.contains("m.safetensors: offset ") && words.contains("tensor ''"), "{words}");
    let (code, words) = opened(dir.path()).unwrap_err();
    assert!(code == -libc::EINVAL && words.contains("no regular file"), "{code}: {words}");
    // SAFETY: nothing is written to null.
    let code = unsafe { (gpuio().gpuio_safetensors_open)(0, std::ptr::null_mut()) };
    assert_eq!(code, -libc::EINVAL);
    let mut header = std::ptr::null();
    // SAFETY: valid for the write of a pointer.
    let code = unsafe { (gpuio().gpuio_safetensors_open)(-1, &raw mut header) };
    assert_eq!(code, -libc::EBADF);
}
