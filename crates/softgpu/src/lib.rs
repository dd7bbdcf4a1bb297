//! A CUDA driver in software: host memory, and a real thread for each stream.
//!
//! Built as `libgpuio_softgpu.so`, it implements the part of the CUDA driver API that gpuio uses
//! (declared again here, from the reference manual), so that tests, demonstrations and CI run
//! gpuio's own code without a GPU. It checks correctness; it does not emulate speed. It is found
//! beside the binary, in `deps/`, or in `PREFIX/lib/gpuio/`, and every output and record of a run
//! on it notes that.
//!
//! - Device memory has addresses from `0x0900_0000_0000` on that the CPU cannot dereference: a
//!   program that mixes up host and device addresses crashes, as with hardware. Copies past the
//!   end of an allocation are refused. Fresh device memory holds the byte `0xA5`.
//! - Each stream is a thread that runs copies and kernels in order, later than the call returns,
//!   so a missing wait shows as wrong bytes. Copies that hardware's driver waits for (between host
//!   memory, and from a device to memory that is not page-locked) are waited for here too: they
//!   hang behind work that waits for the caller.
//! - A synchronous copy from pageable memory to a device, a copy on devices and a memset return
//!   before their work has ended, unless the allocation or the context is set to synchronize them
//!   (`CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`, `CU_CTX_SYNC_MEMOPS`).
//! - Registered pages of a file outlive a truncation of it, as pinned ones do: they read as zeros
//!   where hardware finds the bytes from before (module `fickle`).
//! - Freeing memory waits for the context's work, and most other calls wait for that (module
//!   `frees`): what frees memory behind a program's back hangs, as with hardware.
//! - Using a destroyed context, stream or other object, or querying memory that was freed, ends
//!   the process. The manual leaves this undefined, and hardware's driver may crash or not.
//! - A page of managed memory is on the host or on a device, and only a prefetch moves it: access
//!   from the other side is detected (module `managed`).
//! - Contexts that a program creates in addition to the primary one own what was made in them:
//!   destroying one takes its memory and streams away. Their kernels reach the same memory as the
//!   primary context's. Like default streams, memory pools and stream memory operations, they serve
//!   programs under test; gpuio itself does not use them.
//! - A kernel reaches another device's memory only where peer access was enabled.
//! - Kernels are Rust functions, found by the entry names in the PTX. Those that keep the device
//!   busy take as long as their work, by a clock of the device that a busy host does not delay;
//!   events use the same clock.
//!
//! The environment is read at the first `cuInit`:
//!
//! - `GPUIO_SOFT_GPUS=n`: number of devices, 0 to 64 (1).
//! - `GPUIO_SOFT_MEM=bytes`: memory of each (4 GiB).
//! - `GPUIO_SOFT_PEER=0`: no device can access another's memory (1). Copies between devices work
//!   all the same, as with hardware, where the driver copies through the host.
//! - `GPUIO_SOFT_MANAGED=0`: managed memory takes no hints, as on GPUs without concurrent managed
//!   access (1).
//! - `GPUIO_SOFT_READ_ONLY_REGISTER=0`: memory that may only be read can't be registered (1).
//! - `GPUIO_SOFT_KEEP_PAGES=1`: such memory keeps the bytes that it had when it was registered, as
//!   pages do that were replaced in the page cache since. Writes to other pages of files are lost
//!   where these left the page table.
//! - `GPUIO_SOFT_STREAM_WORDS=0`: streams can't wait for or write semaphore values in memory (1).
//! - `GPUIO_SOFT_DELAY_US=n`: delay of each copy and kernel before it touches memory (0).
//! - `GPUIO_SOFT_LAG_US=n`: delay of the work of a synchronous call that may return before it (0;
//!   at least a thread's wake-up).
//! - `GPUIO_SOFT_SMS=n`: multiprocessors of each device, 1 to 1024 (1).
//! - `GPUIO_SOFT_STEAL_US=n`: time that each copy and kernel takes from the kernels that keep the
//!   device busy, `gpuio_busy_compute` and `gpuio_busy_memory` (0): a known loss for tests.
//! - `GPUIO_SOFT_CROWD_US=n`: delay of each copy and kernel while such a kernel runs (0).
//! - `GPUIO_SOFT_FORK=1`: `cuInit` forks and waits for the child, as hardware's driver does where
//!   it runs nvidia-modprobe.
//! - `GPUIO_SOFT_FAIL=call:code[:after_n[:times]][,…]`: after `after_n` successful ones (0), each
//!   such call, or `times` of them, answers `code`. A copy or a launch fails later, as with
//!   hardware: the call succeeds; the next wait or query of the stream, or of an event recorded
//!   after it, answers the code, once. Codes from 700 on are then the answer of every call on that
//!   device, once the work that the call waits for has stopped; copies and kernels that had not
//!   begun touch nothing.
//! - `GPUIO_SOFT_CORRUPT=call:after_n[,…]`: after `after_n` successful ones, one copy by that call
//!   flips the lowest bit of the byte in its middle (byte `len / 2`) and succeeds.
//!
//! Not for linking: load it with `dlopen(3)`.
#![allow(unsafe_code)]

mod api;
mod backing;
mod call;
mod capture;
mod code;
mod config;
mod default;
mod device;
mod event;
mod fickle;
mod frees;
mod handles;
mod kernel;
mod locked;
mod machine;
mod managed;
mod memory;
mod module;
mod pace;
mod peer;
mod reach;
mod stream;
mod undefined;
mod vmm;
