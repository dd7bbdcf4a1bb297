//! The load that `gpuio.safetensors` makes (Python, by `libgpuio`): the library goes by these
//! numbers, and the texts of `gpuio workload safetensors` name them.

/// Bytes of a group of tensors, which one call reads; a tensor with more has a call of its own. So
/// much stays in memory with a tensor that is kept alone.
pub const GROUP_BYTES: u64 = 72 << 20;
/// Calls at once for each GPU: while the last pieces of one are copied, the next one is read.
pub const CALLS: usize = 2;
/// Bytes of a piece of a call at most; what the page cache lacks of it is read with `O_DIRECT`.
pub const PIECE_BYTES: u32 = 1 << 20;
/// Threads that help, for each GPU, at most. A program waits for a model before it uses it. Out of
/// sixteen processors, twelve read 8 GiB at 45.2 GiB/s and 258 µs/MiB, thirteen at 46.2 and 273,
/// fifteen at 46.7 and 312 (H200).
pub const THREADS: u32 = 13;
