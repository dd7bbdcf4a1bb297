//! The load: what is read or written, how and for how long. Flags stand in the help in this order.

use super::Dialect::{All, Fio, Native};
use super::Raises::{InFlight, Rate};
use super::flag::{load, replay, workload};
use super::loads::{FEED, RANGES, REPLAY};
use super::printed::{self, LOAD, REST, WHERE, covers, of_blocks, switch};
use super::set::{self, key};
use super::unused::{self, IN_ORDER, NO_WRITES, NOT_THIS_WAY, WHOLE_RUNTIME, when};
use super::{Flag, Key};
use crate::spec::value;
use crate::spec::value::words_of;
use gpuio_base::units::{format_bytes, format_duration_ns};
use gpuio_record::{Fill, VerifyMode};

const REQUIRE_PATH: &str = "Exit code 1 unless all bytes are proven to have taken the path";

pub(super) const KEYS: &[Key] = &[
    key("path", Native, set::PATH, "data paths by name, separated by commas, `all`, or `auto`")
        .or(&["paths"])
        .flags(&[
            load(
                "PATH",
                "Data path: {paths}, a list of them, all, or auto (chosen by block size \
                 and by what works here; the reason is printed); mapped reads files that \
                 are pinned in the page cache first: rates of memory, not of storage \
                 [staged if a GPU is named, else host]",
            ),
            Flag {
                long: "fan-out",
                conflict: Some("path"),
                means: Some("fan-out"),
                ..load(
                    "",
                    "Read each block once and place it in the memory of all GPUs, from \
                     GPU to GPU: the same as --path fan-out. All GPUs of the machine \
                     unless --gpu names some, and a thread on each",
                )
            },
            workload("PATH", "Data path, as in gpuio bench [staged; host with --gpu none]"),
            replay(
                "PATHS",
                "Data paths, one after another, a row for each: gather,mapped,gds; or \
                 all, as in gpuio bench [staged; host with --gpu none]",
            ),
        ])
        .decides()
        .prints(WHERE + 1, |p| Some(p.path.choice.actual.clone()))
        .tried(["host", "staged"]),
    key(
        "require_path",
        Native,
        switch!(require_path),
        "exit code 1 unless all bytes are proven to have taken the requested path",
    )
    .flags(&[
        load(
            "",
            "End with exit code 1, and a line that says why, unless all bytes are proven to have \
             taken the requested path",
        ),
        workload("", REQUIRE_PATH),
        replay("", REQUIRE_PATH),
    ])
    .prints(REST + 72, |p| p.require_path.then(|| switch(true)))
    .tried(["1", "0"]),
    key("engine", Native, field!(engine, value::engine), "I/O engine by name")
        .flags(&[
            Flag {
                aliases: &["ioengine"],
                ..load("ENGINE", "I/O engine between file and host memory: {engines} [auto]")
            },
            workload("ENGINE", "I/O engine between file and host memory [auto]"),
            replay("ENGINE", "I/O engine between file and host memory [auto]"),
        ])
        .decides()
        .prints(WHERE + 2, |p| p.has_engine().then(|| p.engine.actual.clone()))
        .tried(["io_uring", "psync"]),
    key("rw", All, set::RW, "")
        .or(&["readwrite"])
        .flags(&[load(
            "RW",
            "Direction and order: read, write, randread, randwrite, rw, randrw; read:8k leaves \
             out 8k after each I/O, randread:8 makes 8 in a row from each random offset [read]",
        )])
        .not_of(FEED | REPLAY)
        .decides()
        .prints(LOAD + 1, printed::rw)
        .with_words(|| words_of(&value::DIRECTIONS))
        .tried(["read", "randwrite"]),
    key(
        "bs",
        All,
        by_direction!(blocks, value::blocks),
        "block size in bytes: `4k`, a range `4k-64k`, or `min:max:step`",
    )
    .or(&["blocksize", "block_size"])
    .flags(&[
        load("SIZE", "Block size: 4k, or MIN:MAX:STEP [1M sequential, 4k random]"),
        workload("SIZE", "Longest block that a sample is cut into [1M]"),
        replay(
            "SIZE",
            "Longest part of a call that is one I/O [64M, less where memory would not do]",
        ),
    ])
    .unused(|s| when(s.requested.blocks.is_none() && s.requested.of_writes.is_none(), NOT_THIS_WAY))
    .prints(LOAD + 3, |p| printed::both(p, printed::block))
    .tried(["128k", ",64k"]),
    key("bssplit", Fio, by_direction!(blocks, value::block_split), "")
        .flags(&[Flag {
            conflict: Some("bs"),
            ..load("SPLIT", "Block sizes and their percentages: 4k/60:64k/40")
        }])
        .prints(LOAD + 4, |p| match printed::both(p, printed::block) {
            Some(_) => None,
            None => printed::both(p, printed::blocks),
        })
        .tried(["64k/50:128k/50", "64k/60:128k/40"]),
    key(
        "size",
        All,
        set::SIZE,
        "bytes of each thread in all of its files together, or a share of each file: `50%`",
    )
    .flags(&[load(
        "SIZE",
        "Size of each thread's region [the file, or a size that suits disk and memory]",
    )])
    .not_of(FEED | RANGES | REPLAY)
    .prints(REST + 4, printed::size)
    .tried(["1g", "2g"]),
    key("io_size", Fio, field!(io_size, value::io_size), "bytes, or a share of size=: `200%`")
        .or(&["io_limit"])
        .flags(&[load(
            "SIZE",
            "Stop each thread after this many bytes, or such a share of its size: 200%",
        )])
        .not_of(FEED | RANGES | REPLAY)
        .unused(|s| when(s.requested.repeats_for_runtime(), WHOLE_RUNTIME))
        .decides()
        .prints(REST + 32, |p| p.stop.bytes_per_thread.filter(|_| of_blocks(p)).map(format_bytes))
        .tried(["64m", "128m"]),
    key("offset", Fio, set::OFFSET, "start of the region; bytes, or a share of the file: `40%`")
        .or(&["fileoffset"])
        .flags(&[load("SIZE", "Start of the region in the file")])
        .not_of(FEED | RANGES | REPLAY)
        .prints(REST + 27, |p| p.has_size().then(|| format_bytes(p.offset_bytes)))
        .tried(["1m", "2m"]),
    key("threads", Native, set::THREADS, "")
        .flags(&[
            Flag { aliases: &["numjobs"], ..load("N", "Number of threads [1]") },
            Flag {
                long: "ranks",
                aliases: &["threads"],
                behind: Some("scale"),
                ..workload(
                    "N",
                    "Ranks of a checkpoint that run here: threads of a load of blocks \
                     [those of the preset]",
                )
            },
        ])
        .not_of(FEED | REPLAY)
        .prints(WHERE + 13, |p| of_blocks(p).then(|| p.threads.to_string()))
        .raises(InFlight)
        .tried(["2", "3"]),
    key("depth", Native, set::DEPTH, "")
        .flags(&[
            Flag {
                aliases: &["iodepth"],
                ..load(
                    "N",
                    "I/Os in flight per thread [io_uring, libaio, path initiated: 32, or 8 for \
                     blocks above 128k; other engines: 4 on a GPU path, else 1; paths gather and \
                     mapped: by block size. --dry-run prints it]",
                )
            },
            workload("N", "I/Os in flight per reader thread, as in gpuio bench"),
            replay(
                "N",
                "I/Os in flight per thread [as many calls as the program had, 1 of fio's traces]",
            ),
        ])
        .unused(unused::depth)
        .decides()
        .prints(WHERE + 14, |p| Some(p.depth.to_string()))
        .raises(InFlight)
        .tried(["2", "3"]),
    key("runtime", All, field!(runtime_ns, value::duration), "")
        .or(&["timeout"])
        .flags(&[
            load("TIME", "Run time in seconds, or with a suffix: 10, 500ms, 2min, 1h, 1d [10]"),
            workload("TIME", "End after this time, if the epochs are not over by then"),
        ])
        .not_of(RANGES | REPLAY)
        .prints(REST + 33, |p| p.stop.runtime_ns.map(format_duration_ns))
        .tried(["3", "4"])
        .quick(),
    key("ramp", Native, set::RAMP, "")
        .flags(&[load("TIME", "Warm-up time at the start that is not measured [0]")])
        .not_of(FEED | RANGES | REPLAY)
        .tried(["1", "2"]),
    key("steadystate", All, field!(steady, value::steady), "")
        .or(&["ss", "steady"])
        .flags(&[Flag {
            long: "steady",
            ..load(
                "CRITERION",
                "Stop once the load is steady, by fio's rules: iops, bw, lat, or one of \
                 them with _slope, and its limit: iops:2%, bw_slope:1%; --runtime is \
                 then the maximum time. Change the length and interval of its window \
                 with --set ss_dur=, ss_ramp=, ss_interval=",
            )
        }])
        .not_of(FEED | RANGES | REPLAY)
        .prints(REST + 36, |p| p.steady.as_ref().map(|steady| steady.requested.clone()))
        .with_words(|| words_of(&value::STEADY))
        .tried(["iops:2%", "bw:2%"]),
    key("start_delay", Native, set::START_DELAY, "")
        .flags(&[load("TIME", "Delay before the first I/O [0]")])
        .not_of(FEED | REPLAY)
        .tried(["1", "2"]),
    key("loops", All, field!(loops, value::at_least_one), "")
        .flags(&[load("N", "Number of passes over the region, instead of a run time")])
        .not_of(FEED | REPLAY)
        .unused(|s| {
            let bytes = "io_size sets how many bytes each thread moves; leave one out";
            when(s.requested.repeats_for_runtime(), WHOLE_RUNTIME)
                .or_else(|| when(s.requested.io_size.is_some(), bytes))
        })
        .decides()
        .prints(REST + 2, |p| p.ranges.map(|ranges| ranges.passes.to_string()))
        .tried(["2", "3"]),
    key("wear_out", Native, switch!(wear_out), "")
        .flags(&[load(
            "",
            "Run until every thread has moved its full size. With --runtime: when time is \
             up, let every thread catch up with the fastest of all ranks (IOR's stonewall)",
        )])
        .not_of(FEED | RANGES | REPLAY)
        .unused(unused::wear_out)
        .prints(REST + 35, |p| {
            (p.stop.runtime_ns.is_some() && p.stop.wear_out).then(|| switch(true))
        })
        .tried(["1", "0"]),
    key("rwmixread", Fio, set::READ_PERCENT, "")
        .flags(&[load("PERCENT", "Percentage of reads in a mixed load [50]")])
        .not_of(FEED | RANGES | REPLAY)
        .unused(|s| {
            when(
                !s.mixed(),
                "the load does not mix reads and writes; use rw=rw or rw=randrw, or leave it out",
            )
            .or_else(|| {
                when(
                    s.requested.mix_percent.is_some(),
                    "mix_percent (-M) has the same meaning on this path; leave one out",
                )
            })
        })
        .prints(LOAD + 2, |p| {
            (of_blocks(p) && (1..100).contains(&p.read_percent)).then(|| p.read_percent.to_string())
        })
        .tried(["30", "70"]),
    key("random_distribution", Fio, set::DISTRIBUTION, "")
        .flags(&[load(
            "KIND",
            "Distribution of random offsets: random, zipf:THETA, pareto:H, normal:PERCENT, or \
             zoned:IOS/SIZE:IOS/SIZE, shares of the I/Os and of the region in per cent [random]",
        )])
        .not_of(FEED | RANGES | REPLAY)
        .unused(|s| when(s.sequential(), IN_ORDER))
        .decides()
        .prints(LOAD + 8, printed::distribution)
        .with_words(|| words_of(&value::DISTRIBUTIONS))
        .tried(["zipf:1.2", "normal:10"]),
    key("norandommap", Fio, switch!(coverage, |on| !on), "")
        .flags(&[load("", "Allow random blocks to repeat before all blocks were accessed")])
        .not_of(FEED | RANGES | REPLAY)
        .unused(|s| {
            when(s.sequential(), IN_ORDER).or_else(|| when(
        s.requested.coverage == Some(true) && s.skewed(),
        "a distribution other than random does not touch every block once; leave one out"
    )).or_else(|| when(
        s.plan.follow.is_some(),
        "blocks that follow others come again in any case; leave it out"
    ))
        })
        .prints(LOAD + 7, |p| {
            covers(p).filter(|_| p.follow.is_none()).map(|covers| switch(!covers))
        })
        .tried(["1", "0"]),
    key("chain", Native, switch!(chain), "")
        .flags(&[
            load(
                "",
                "On path initiated, which it means where no path is named: the bytes of each block \
                 decide on the GPU which block is read next, so one at a time on each ring; the \
                 depth is what the GPU has ready",
            ),
            workload(
                "",
                "For vector-search: the bytes of each read decide on the GPU which is next, as in \
                 gpuio bench, on path initiated",
            ),
        ])
        .not_of(FEED | RANGES | REPLAY)
        .unused(|s| {
            when(
                s.requested.chain == Some(true) && !s.path.uses_rings(),
                "it concerns path initiated, on which the GPU starts the I/O; use path=initiated, \
                 or leave it out",
            )
        })
        .prints(LOAD + 30, |p| p.chain.then(|| switch(true)))
        .tried(["1", "0"]),
    key("align", Native, set::ALIGN, "")
        .flags(&[load("SIZE", "Alignment of random offsets [the block size]")])
        .not_of(FEED | RANGES | REPLAY)
        .unused(unused::align)
        .tried(["512k", "1m"]),
    key("unaligned", Native, set::UNALIGNED, "")
        .flags(&[load("", "Use offsets that are not 4 KiB aligned, on purpose")])
        .not_of(FEED | RANGES | REPLAY)
        .prints(LOAD + 6, |p| of_blocks(p).then(|| switch(p.skew_bytes > 0)))
        .remark(|p| {
            (p.skew_bytes > 0)
                .then(|| format!("unaligned: every offset moves by {} bytes", p.skew_bytes))
        })
        .tried(["1", "0"]),
    key("rate", All, by_direction!(rate_bytes, value::rate), "")
        .flags(&[load("SIZE", "Limit of each thread, in bytes per second")])
        .not_of(FEED | REPLAY)
        .unused(|s| {
            when(s.requested.rate_bytes.is_none() && s.requested.of_writes.is_none(), NOT_THIS_WAY)
        })
        .prints(REST + 52, |p| printed::rate(p, |pacing| pacing.bytes_per_s.map(format_bytes)))
        .tried(["2m", ",1m"]),
    key("rate_iops", All, by_direction!(rate_iops, value::fio_count), "")
        .flags(&[load("N", "Limit of each thread, in I/Os per second")])
        .not_of(FEED | REPLAY)
        .unused(|s| {
            when(s.requested.rate_iops.is_none() && s.requested.of_writes.is_none(), NOT_THIS_WAY)
        })
        .decides()
        .prints(REST + 53, |p| printed::rate(p, |pacing| Some(pacing.iops?.to_string())))
        .raises(Rate)
        .tried(["200", ",100"]),
    key("rate_process", Fio, set::ARRIVALS, "")
        .flags(&[load("KIND", "Arrival process at that rate: linear or poisson [linear]")])
        .not_of(FEED | REPLAY)
        .unused(|s| {
            when(
                s.plan.pacing.is_none() && s.plan.write_pacing.is_none(),
                "it says how a rate spaces its I/Os, and there is none; add rate_iops or rate, \
         or leave it out",
            )
        })
        .prints(REST + 54, printed::arrivals)
        .with_words(|| words_of(&value::ARRIVALS))
        .tried(["poisson", "linear"]),
    key("seed", Native, set::SEED, "")
        .flags(&[
            load("N", "Seed of all random choices [1]"),
            workload("N", "Seed of the order of the samples [1]"),
        ])
        .not_of(REPLAY)
        .unused(|s| {
            when(
                s.plan.seed != 1 && !s.draws(),
                "nothing in this load is left to chance; leave it out",
            )
        })
        .prints(REST + 55, |p| Some(p.seed.to_string()))
        .tried(["7", "8"]),
    key(
        "verify",
        Native,
        set::VERIFY,
        "`off`, `pass` or `full` (data is read back after the run), `rewrite`, `inline` \
         (each block on arrival), `file` (files are read again after the run and \
         compared with what the CPU reads), or `crc32c` (with the headers of fio's \
         blocks)",
    )
    .flags(&[
        Flag {
            optional: true,
            ..load(
                "MODE",
                "Verify the data: pass (after the measurement: reads back what timed \
                 writes wrote, or reads again what timed reads read), rewrite (writes \
                 all data again and verifies it) or inline (every timed read) [off; pass \
                 if no mode is given; without a load a sample in a limited time, full \
                 checks all]",
            )
        },
        workload(
            "MODE",
            "Verify the data where it ends: inline (every block on arrival; not in \
             latencies, but in the run time), pass (read again after the run), rewrite \
             (as pass; writes are made anew for it) or off [inline]",
        ),
        replay(
            "MODE",
            "Verify the data where it ends: pass (all that was read or written, read \
             once more after the run), inline (every block on arrival; not in latencies, \
             but in the run time) or off [pass]",
        ),
    ])
    .unused(|s| {
        when(
            s.requested.verify == Some(VerifyMode::Rewrite) && s.only_reads(),
            "the load writes nothing, so there is nothing to rewrite; use verify=pass",
        )
    })
    .prints(REST + 60, printed::verify)
    .with_words(|| words_of(&value::VERIFY))
    .tried(["pass", "rewrite"])
    .quick(),
    key(
        "ceilings",
        Native,
        set::CEILINGS,
        "measure the highest reachable rates: `off`, `on`, or how long for each",
    )
    .or(&["ceiling"])
    .flags(&[
        Flag {
            conflict: Some("no-ceilings"),
            optional: true,
            ..load(
                "TIME",
                "Measure the ceilings after the jobs, that is, the highest rates this \
                 machine can reach; for this long each: 500ms [off; on with --path all; \
                 1 s if no time is given]",
            )
        },
        Flag {
            long: "no-ceilings",
            means: Some("off"),
            ..load("", "Do not measure ceilings, even with --path all")
        },
    ])
    .not_of(FEED | RANGES | REPLAY)
    .prints(REST + 68, |p| {
        of_blocks(p).then(|| p.ceilings_ns.map_or_else(|| "off".to_owned(), format_duration_ns))
    })
    .tried(["1", "2"])
    .quick(),
    key(
        "beside",
        Native,
        field!(beside, value::beside),
        "keep the GPUs busy during the job: `compute`, `memory` or `off`, with a share: \
         `compute:50%`",
    )
    .flags(&[load(
        "WORK",
        "Run each job twice, alone and while a kernel keeps its GPUs busy, and report \
         how much each slows the other: compute (arithmetic in registers) or memory (a \
         stream over GPU memory), on all multiprocessors or a share of them: \
         compute:50%",
    )])
    .not_of(FEED | RANGES | REPLAY)
    .unused(unused::beside)
    .prints(REST + 70, |p| p.beside.as_ref().map(|beside| beside.key()))
    .remark(|_| {
        Some(
            "the job runs twice, first without the GPU computation; the computation alone is \
             measured for 2 s"
                .to_owned(),
        )
    })
    .with_words(|| [words_of(&value::BESIDE), vec!["off"]].concat())
    .tried(["compute", "memory:50%"]),
    key("fill", Native, field!(fill, value::fill), "")
        .flags(&[load("KIND", "Content of writes: pattern, random or zero [pattern]")])
        .not_of(FEED | REPLAY)
        .unused(|s| {
            let pattern = s.requested.fill == Some(Fill::Pattern);
            when(!pattern && s.only_reads(), NO_WRITES)
        })
        .prints(REST + 63, |p| of_blocks(p).then(|| p.fill.word().to_owned()))
        .with_words(|| words_of(&value::fills()))
        .tried(["random", "pattern"]),
    key("buffer_compress_percentage", All, field!(compress_percent, value::percent), "")
        .flags(&[load(
            "PERCENT",
            "Percentage of the data that repeats, so that storage can compress it [0]",
        )])
        .prints(REST + 65, |p| p.compressible.map(|it| it.percent.to_string()))
        .tried(["50", "75"]),
    key("buffer_compress_chunk", All, field!(compress_chunk, value::chunk), "")
        .flags(&[load(
            "BYTES",
            "Bytes of the chunks of which that much repeats: a power of two [512]",
        )])
        .unused(|s| {
            when(
                s.plan.compressible.is_none(),
                "nothing repeats; add buffer_compress_percentage, or leave it out",
            )
        })
        .prints(REST + 66, |p| p.compressible.map(|it| it.chunk_bytes.to_string()))
        .tried(["4k", "8k"]),
    key("refill", Native, set::REFILL, "")
        .flags(&[load(
            "",
            "Generate new data before every write (not in latencies, but in the run time)",
        )])
        .not_of(FEED | REPLAY)
        .unused(|s| when(s.requested.refill == Some(true) && s.only_reads(), NO_WRITES))
        .prints(REST + 64, |p| of_blocks(p).then(|| switch(p.refill)))
        .tried(["1", "0"]),
    key("inject", Native, text!(inject), "")
        .flags(&[load(
            "FAULTS",
            "Inject faults, in each thread by itself (so 2 threads have twice the rate): \
             eio=1%, short=5%, delay=2ms@10%, stall=1s@5s, rate=100M or seed=7; several with \
             commas between",
        )])
        .unused(unused::inject)
        .prints(REST + 71, |p| p.inject.clone())
        .tried(["enospc=1%", "lost=1%"]),
];
