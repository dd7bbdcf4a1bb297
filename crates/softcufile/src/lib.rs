//! A test double of the cuFile library: the calls that gpuio makes, over plain file I/O and the
//! software GPU.
//!
//! Built as `libgpuio_softcufile.so`, it lets tests, demonstrations and CI run gpuio's own code for
//! cuFile without NVIDIA's library and without a GPU. It is no way to move data fast, it is no
//! replacement of NVIDIA's library, and works with the software GPU (`libgpuio_softgpu.so`, found
//! among the objects that are loaded already) only. Its declarations are our own, from the "cuFile
//! API Reference Guide", and it keeps to what that documents:
//!
//! - A transfer returns bytes, or -1 with errno for the file's failures, or a negative code.
//! - Fewer bytes than asked come only at the end of the file, and 0 there.
//! - Any offset, length and address works, on files open with O_DIRECT too.
//! - I/Os of a batch are done by threads, in no order, and each is told once. Those of a stream are
//!   done when the stream comes to them, with the parameters as they are then.
//! - A file is registered before it is read or written; memory may be.
//! - The first registration opens the library if nobody did.
//! - It has no direct way and says so in its properties; its statistics count every transfer as one
//!   done by POSIX calls, in one entry for all GPUs, which it does not know apart.
//!
//! The environment is read at the first call:
//!
//! - `GPUIO_SOFT_CUFILE_FAIL=call:code[:after_n[:times]][,…]`: after `after_n` good ones (0), each
//!   such call, or so many of them, fails. Codes from 5001 on are cuFile's; lower ones an errno,
//!   which only `cuFileRead` and `cuFileWrite` can tell (others answer 5030 then). The code `short`
//!   makes a transfer move half of what was asked, which the library promises not to do, and
//!   `cuFileBatchIOSubmit` put half of the entries under way and fail. An I/O of a batch or of a
//!   stream counts as a `cuFileRead` or `cuFileWrite` when it is done, and its result tells; with
//!   `lost` one of a batch never ends. `crash` ends the process with SIGABRT, as NVIDIA's library
//!   can.
//! - `GPUIO_SOFT_CUFILE_NVFS=major.minor[:flags]`: the version of nvidia-fs that its properties
//!   tell (0.0), and the bits of the storage that it supports (NVMe, where there is a version),
//!   though there is none: for programs that ask for it.
//! - `CUFILE_FORCE_COMPAT_MODE=1`: the parameter of that name is told to be on.
//! - `CUFILE_ENV_PATH_JSON`: if it names no configuration that can be read, `cuFileDriverOpen`
//!   answers 5002. Of its keys those of compatibility mode count. Where that mode is not allowed
//!   and no nvidia-fs is told of, `cuFileHandleRegister` answers 5033: there is no other way.
//!
//! Nothing of it is for linking: load it with `dlopen(3)`.
#![allow(unsafe_code)]

mod api;
mod batch;
mod cuda;
mod fault;
mod file;
mod machine;
mod properties;
mod stats;
mod stream;
