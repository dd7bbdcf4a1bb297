//! A test double of the cuFile library: the calls that gpuio makes, over plain file I/O and the
//! software GPU.
//!
//! Built as `libgpuio_softcufile.so`, it lets tests, demonstrations and CI run gpuio's code for
//! cuFile without NVIDIA's library and without a GPU. It does not move data fast, does not replace
//! NVIDIA's library, and works only with the software GPU (`libgpuio_softgpu.so`, found among the
//! loaded objects). Its declarations are gpuio's own, from the "cuFile API Reference Guide", and
//! it follows that document:
//!
//! - A transfer returns bytes, or -1 with errno for the file's failures, or a negative code.
//! - Fewer bytes than requested are returned only at the end of the file, and 0 there.
//! - Any offset, length and address works, on files open with O_DIRECT too.
//! - Threads do the I/Os of a batch, in no order, and each is reported once. Those of a stream are
//!   done when the stream reaches them, with the parameters at that moment.
//! - A file is registered before it is read or written; memory may be. A descriptor with
//!   `O_NOFOLLOW` is refused with 5019, as NVIDIA's library does.
//! - The first registration opens the library if it is not open.
//! - It has no direct path and reports so in its properties. Its statistics count every transfer
//!   as done by POSIX calls, in one entry for all GPUs, which it does not distinguish.
//!
//! The environment is read at the first call:
//!
//! - `GPUIO_SOFT_CUFILE_FAIL=call:code[:after_n[:times]][,…]`: after `after_n` successful ones
//!   (0), each such call, or `times` of them, fails. Codes from 5001 on are cuFile's; lower ones
//!   an errno, which only `cuFileRead` and `cuFileWrite` can return (others answer 5030 then). The
//!   code `short` makes a transfer move half of what was requested, which the library promises not
//!   to do, and makes `cuFileBatchIOSubmit` submit half of the entries and fail. An I/O of a batch
//!   or a stream counts as a `cuFileRead` or `cuFileWrite` when it is done, and its result reports
//!   the failure; with `lost` one of a batch never ends. `crash` ends the process with SIGABRT, as
//!   NVIDIA's library can.
//! - `GPUIO_SOFT_CUFILE_NVFS=major.minor[:flags]`: the version of nvidia-fs that its properties
//!   report (0.0), and the bits of the storage that it supports (NVMe, where there is a version),
//!   though there is none: for programs that query it.
//! - `CUFILE_FORCE_COMPAT_MODE=1`: the parameter of that name is reported as on.
//! - `CUFILE_ENV_PATH_JSON`: if it names no readable configuration, `cuFileDriverOpen` answers
//!   5002. Only its keys of compatibility mode have an effect. If that mode is not allowed and no
//!   nvidia-fs is reported, `cuFileHandleRegister` answers 5033: there is no other path.
//!
//! Not for linking: load it with `dlopen(3)`.
#![allow(unsafe_code)]

mod api;
mod batch;
mod cuda;
mod error;
mod fault;
mod file;
mod machine;
mod properties;
mod stats;
mod stream;
