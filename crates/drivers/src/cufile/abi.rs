//! The types of the C interface, in our own declarations: x86-64 and AArch64 Linux have the same
//! layout. Sizes and offsets were read from compiled programs; the compiler checks them here.
//!
//! Values from callers are plain integers, never Rust enums or `bool`: an unknown one must be an
//! error and not undefined behaviour.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

/// `CUfileHandle_t`.
pub type Handle = *mut c_void;
/// `CUfileBatchHandle_t`.
pub type BatchHandle = *mut c_void;
/// `CUstream` of the CUDA driver.
pub type StreamHandle = *mut c_void;

/// `CUfileError_t`: cuFile's code and, only with 5011, the CUDA driver's. By value, in one
/// register.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CufileError {
    pub code: c_int,
    pub cuda: c_int,
}

/// `CUfileDescr_t`. The third field is for handles of user-space file systems; callers leave
/// garbage there for others (reported of NIXL), so it is never read.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Descriptor {
    pub kind: c_int,
    /// The first half of a union of a descriptor and a pointer.
    pub fd: DescriptorUnion,
    pub operations: *const c_void,
}

/// The union in [`Descriptor`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union DescriptorUnion {
    pub fd: c_int,
    pub handle: *mut c_void,
}

impl std::fmt::Debug for DescriptorUnion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DescriptorUnion")
    }
}

/// [`Descriptor::kind`] of a descriptor of this process.
pub const OPAQUE_FD: c_int = 1;

/// `CUfileDrvProps_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Properties {
    pub nvidia_fs_major: c_uint,
    pub nvidia_fs_minor: c_uint,
    pub poll_threshold_kib: usize,
    pub max_direct_io_kib: usize,
    pub status_flags: c_uint,
    pub control_flags: c_uint,
    pub features: c_uint,
    pub max_device_cache_kib: c_uint,
    pub per_buffer_cache_kib: c_uint,
    pub max_pinned_kib: c_uint,
    pub max_batch: c_uint,
    pub max_batch_timeout_ms: c_uint,
}

/// Bits of [`Properties::control_flags`].
pub const CONTROL_POLL_MODE: c_uint = 1 << 0;
pub const CONTROL_ALLOW_COMPAT: c_uint = 1 << 1;
/// Bits of [`Properties::features`].
pub const FEATURE_BATCH: c_uint = 1 << 1;
pub const FEATURE_STREAMS: c_uint = 1 << 2;
pub const FEATURE_PARALLEL: c_uint = 1 << 3;

/// `CUfileIOParams_t`: one I/O of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BatchEntry {
    pub mode: c_int,
    pub base: u64,
    pub file_offset: i64,
    pub buffer_offset: i64,
    pub len: usize,
    pub handle: Handle,
    pub opcode: c_int,
    pub cookie: u64,
}

/// The only value of [`BatchEntry::mode`].
pub const MODE_BATCH: c_int = 1;
/// Values of [`BatchEntry::opcode`].
pub const OPCODE_READ: c_int = 0;
pub const OPCODE_WRITE: c_int = 1;

/// `CUfileIOEvents_t`: how one I/O of a batch ended.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BatchEvent {
    pub cookie: u64,
    pub status: c_int,
    /// Bytes, or the bits of a negative error.
    pub result: isize,
}

/// Values of [`BatchEvent::status`].
pub const STATUS_CANCELED: c_int = 0x08;
pub const STATUS_COMPLETE: c_int = 0x10;
pub const STATUS_FAILED: c_int = 0x40;

/// `CUfileIOVec_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct IoVec {
    pub base: u64,
    pub len: usize,
}

/// `CUfileOpCounter_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct OpCounter {
    pub ok: u64,
    pub err: u64,
}

/// Entries for GPUs in level 3 of the statistics.
pub const STATS_GPUS: usize = 16;
/// Classes of a histogram of sizes.
pub const STATS_CLASSES: usize = 32;

/// `CUfileStatsLevel1_t` of release 1.15, with which that of 1.20 begins.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct StatsLevel1 {
    pub read_ops: OpCounter,
    pub write_ops: OpCounter,
    pub handle_register_ops: OpCounter,
    pub handle_deregister_ops: OpCounter,
    pub buffer_register_ops: OpCounter,
    pub buffer_deregister_ops: OpCounter,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub read_bytes_per_second: u64,
    pub write_bytes_per_second: u64,
    pub read_latency_mean_us: u64,
    pub write_latency_mean_us: u64,
    pub reads_per_second: u64,
    pub writes_per_second: u64,
    pub read_latency_sum_us: u64,
    pub write_latency_sum_us: u64,
    pub batch_submit_ops: OpCounter,
    pub batch_complete_ops: OpCounter,
    pub batch_setup_ops: OpCounter,
    pub batch_cancel_ops: OpCounter,
    pub batch_destroy_ops: OpCounter,
    pub batch_enqueued_ops: OpCounter,
    pub batch_posix_enqueued_ops: OpCounter,
    pub batch_processed_ops: OpCounter,
    pub batch_posix_processed_ops: OpCounter,
    pub batch_nvidia_fs_submit_ops: OpCounter,
    pub batch_p2p_submit_ops: OpCounter,
    pub batch_aio_submit_ops: OpCounter,
    pub batch_io_uring_submit_ops: OpCounter,
    pub batch_mixed_submit_ops: OpCounter,
    pub batch_total_submit_ops: OpCounter,
    pub batch_read_bytes: u64,
    pub batch_write_bytes: u64,
    /// Rates and latencies of batches, which are not measured separately here: zeros.
    pub batch_rates: [u64; 8],
    pub last_batch_read_bytes: u64,
    pub last_batch_write_bytes: u64,
}

/// The counters that release 1.20 has after level 1: those of calls with several buffers, in an
/// undocumented order. Zeros; those calls are counted with the others.
pub const STATS_MORE_1_20: usize = 112;

/// `CUfilePerGpuStats_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct StatsGpu {
    pub uuid: [u8; 16],
    pub read_bytes: u64,
    pub read_bytes_per_second: u64,
    pub read_utilization: u64,
    pub read_duration_us: u64,
    pub reads: u64,
    pub p2p_reads: u64,
    pub nvidia_fs_reads: u64,
    pub posix_reads: u64,
    pub unaligned_reads: u64,
    pub routed_reads: u64,
    pub sparse_regions: u64,
    pub inline_regions: u64,
    pub failed_reads: u64,
    pub write_bytes: u64,
    pub write_bytes_per_second: u64,
    pub write_utilization: u64,
    pub write_duration_us: u64,
    pub writes: u64,
    pub p2p_writes: u64,
    pub nvidia_fs_writes: u64,
    pub posix_writes: u64,
    pub unaligned_writes: u64,
    pub routed_writes: u64,
    pub failed_writes: u64,
    pub maps: u64,
    pub maps_ok: u64,
    pub maps_failed: u64,
    pub maps_freed: u64,
    pub registered_bytes: u64,
}

/// A string of the caller, or the caller's buffer for one.
pub type Text = *mut c_char;

const _: () = {
    assert!(cfg!(target_pointer_width = "64"));
    assert!(size_of::<CufileError>() == 8 && offset_of!(CufileError, cuda) == 4);
    assert!(size_of::<Descriptor>() == 24 && offset_of!(Descriptor, fd) == 8);
    assert!(offset_of!(Descriptor, operations) == 16);
    assert!(size_of::<Properties>() == 56);
    assert!(offset_of!(Properties, poll_threshold_kib) == 8);
    assert!(offset_of!(Properties, max_direct_io_kib) == 16);
    assert!(offset_of!(Properties, status_flags) == 24);
    assert!(offset_of!(Properties, control_flags) == 28);
    assert!(offset_of!(Properties, features) == 32);
    assert!(offset_of!(Properties, max_device_cache_kib) == 36);
    assert!(offset_of!(Properties, per_buffer_cache_kib) == 40);
    assert!(offset_of!(Properties, max_pinned_kib) == 44);
    assert!(offset_of!(Properties, max_batch) == 48);
    assert!(offset_of!(Properties, max_batch_timeout_ms) == 52);
    assert!(size_of::<BatchEntry>() == 64 && offset_of!(BatchEntry, base) == 8);
    assert!(offset_of!(BatchEntry, file_offset) == 16);
    assert!(offset_of!(BatchEntry, buffer_offset) == 24);
    assert!(offset_of!(BatchEntry, len) == 32 && offset_of!(BatchEntry, handle) == 40);
    assert!(offset_of!(BatchEntry, opcode) == 48 && offset_of!(BatchEntry, cookie) == 56);
    assert!(size_of::<BatchEvent>() == 24 && offset_of!(BatchEvent, status) == 8);
    assert!(offset_of!(BatchEvent, result) == 16);
    assert!(size_of::<IoVec>() == 16 && offset_of!(IoVec, len) == 8);
    assert!(size_of::<OpCounter>() == 16);
    assert!(size_of::<StatsLevel1>() == 512 && offset_of!(StatsLevel1, read_bytes) == 96);
    assert!(offset_of!(StatsLevel1, batch_submit_ops) == 176);
    assert!(offset_of!(StatsLevel1, batch_read_bytes) == 416);
    assert!(size_of::<StatsLevel1>() + STATS_MORE_1_20 == 624);
    assert!(size_of::<StatsGpu>() == 248 && offset_of!(StatsGpu, write_bytes) == 120);
    assert!(offset_of!(StatsGpu, posix_reads) == 16 + 56);
    assert!(offset_of!(StatsGpu, posix_writes) == 120 + 56);
};
