//! Where a load runs.

use super::Dialect::Native;
use super::Key;
use super::flag::machine;
use super::printed::{self, WHERE};
use super::set::{self, key};
use super::unused::{self, not_routed};
use crate::spec::value;
use crate::spec::value::words_of;

pub(super) const KEYS: &[Key] = &[
    key("gpu", Native, set::GPU, "")
        .or(&["gpus"])
        .flags(&[machine(
            "GPUS",
            "GPUs: 0,1 or all or none; software or software:0,1 for gpuio's software GPU",
        )])
        .unused(unused::gpu)
        .prints(WHERE + 3, |p| Some(printed::gpus(p)))
        .with_words(value::gpu_words)
        .tried(["0", "1"])
        .quick(),
    key("numa", Native, set::NUMA, "")
        .flags(&[machine("NODE", "NUMA node of the threads [that of their GPU]")])
        .unused(unused::numa)
        .prints(WHERE + 11, |p| printed::pinned(p)?.node.map(|node| node.to_string()))
        .tried(["0", "1"]),
    key("cpus", Native, set::CPUS, "")
        .flags(&[machine("CPUS", "CPUs of the threads: 0-3,8")])
        .tried(["0", "1"]),
    key("memory", Native, field!(memory, value::memory), "")
        .flags(&[machine(
            "KIND",
            "Destination memory: device, vmm, pinned, malloc, mmap [device; malloc on host; \
             managed on managed]",
        )])
        .prints(WHERE + 4, |p| Some(p.memory.name().to_owned()))
        .with_words(|| words_of(&value::memories()))
        .tried(["pinned", "device"]),
    key("streams", Native, field!(streams, value::at_least_one_u32), "")
        .flags(&[machine(
            "N",
            "CUDA streams per thread on GPU paths [2 below 64k, else 1; 4 on fan-out; one per I/O \
             or batch on paths of a library]",
        )])
        .unused(unused::streams)
        .prints(WHERE + 5, |p| (p.streams > 0).then(|| p.streams.to_string()))
        .tried(["2", "3"]),
    key("via_gpu", Native, field!(via_gpu, value::device), "")
        .flags(&[machine(
            "GPU",
            "GPU near the drive that path routed copies through [one on the drive's NUMA node]",
        )])
        .unused(not_routed)
        .prints(WHERE + 8, |p| p.via.as_ref().map(|via| via.gpu.index.to_string()))
        .tried(["1", "2"]),
    key("gather_batch", Native, field!(gather_batch, value::at_least_one_u32), "")
        .flags(&[machine(
            "N",
            "Blocks per kernel launch on path gather [as many as fill 512 KiB; 2 MiB for blocks of \
             16k and more; 4 MiB for 512k and more] and on path mapped [as many as fill 4 MiB, \
             with more threads 2 MiB, and 1024 at most; of blocks of 1m and more, which are \
             copies, as many as fill 8 MiB, with more threads 2 to 4], or per submit on \
             library-batch, gds-batch and gds-batch-stream [16]",
        )])
        .unused(unused::gather_batch)
        .prints(WHERE + 6, |p| p.gather_batch.map(|batch| batch.to_string()))
        .tried(["2", "3"]),
    key("rings", Native, field!(rings, value::at_least_one_u32), "")
        .flags(&[machine(
            "N",
            "io_uring rings per thread on path initiated, each with a thread of the kernel and a \
             thread block of the GPU [1 for 64 I/Os in flight]",
        )])
        .unused(unused::rings)
        .prints(WHERE + 15, |p| p.rings.map(|rings| rings.to_string()))
        .tried(["2", "3"]),
];
