//! Path `auto`: which path a job's blocks take, by their size and by what works here.
//!
//! A rule over values and a table: nothing is opened or tried here. What a person names is never
//! replaced by it.

use gpuio_record::BlockShare;
use gpuio_spec::{GpuWhich, JobSpec, MemoryAsk, Rw};
use gpuio_units::format_bytes;

use super::defaults;
use super::machine::{Gpus, Machine};

/// What the rule looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sight {
    /// The largest block in bytes: slots, and with them the blocks of a launch, are made for it.
    pub(super) block: u64,
    /// Whether every I/O is a write.
    pub(super) writes_only: bool,
    /// Blocks that one launch of path `gather` would carry.
    pub(super) launch: u32,
    /// Why bytes can't end in GPU memory; absent if they can, or were asked to.
    pub(super) no_gpu: Option<String>,
    /// What proves a direct way of cuFile's between the job's storage and GPU memory, or why
    /// nothing does.
    pub(super) cufile: Result<String, String>,
}

/// A path, and what was measured for blocks of its sizes.
#[derive(Debug)]
struct Row {
    /// Blocks below this many bytes.
    below: u64,
    path: &'static str,
    /// For loads that read at all, and for those that only write.
    read: &'static str,
    write: &'static str,
}

/// Smallest size first. Measured on an H100 with a warm file and 16 threads (BENCHMARKS.md): at
/// 64 KiB `gather` made 4 times what `staged` did, at 1 MiB 0.8 times. `staged` pays for calls of
/// the driver by the block: 170,000 a second at 64 KiB, which fill the link from about 256 KiB on,
/// and a launch of `gather` carries ever fewer: two of 512 KiB. So the border lies between; 512 KiB
/// is where a launch has almost nothing left to save.
const TABLE: [Row; 2] = [
    Row {
        below: 512 << 10,
        path: "gather",
        read: "a copy each costs a driver call per block (on an H100 a 4th of the rate at 64K)",
        write: "a copy each costs a driver call per block (measured on reads)",
    },
    Row {
        below: u64::MAX,
        path: "staged",
        read: "a copy each fills the link (on an H100 1.2 times gather's rate at 1M)",
        write: "a copy each fills the link (measured on reads)",
    },
];

/// The path, and why.
pub(super) fn choose(sight: &Sight) -> (&'static str, String) {
    let blocks = format!("{} blocks", format_bytes(sight.block));
    if let Some(why) = &sight.no_gpu {
        return ("host", format!("no GPU memory to end in: {why}"));
    }
    // A lone block of `gather` is one plain copy too, behind more steps: 8.4 to 9.4 µs at 4 KiB
    // where `staged` takes 8.2.
    if sight.launch < 2 && sight.block < TABLE[0].below {
        return ("staged", format!("{blocks} that a launch would carry one by one"));
    }
    let row = TABLE.iter().find(|row| sight.block < row.below).unwrap_or(&TABLE[1]);
    let measured = if sight.writes_only { row.write } else { row.read };
    if row.path == "gather" {
        return ("gather", format!("{blocks}, one launch carries {}; {measured}", sight.launch));
    }
    match &sight.cufile {
        Ok(proof) => ("gds", format!("{blocks} go past host memory: {proof}")),
        Err(why) => (row.path, format!("{blocks}: {measured}; not gds: {why}")),
    }
}

/// What path `auto` takes on a machine with a GPU, in words.
#[must_use]
pub fn auto_in_words() -> String {
    let [small, large] = TABLE;
    let border = format_bytes(small.below);
    format!("{} for blocks below {border}, {} from there on", small.path, large.path)
}

/// What the rule sees of a job.
pub(super) fn sight(asked: &JobSpec, machine: &Machine<'_>) -> Sight {
    let (_, order) = defaults::mix_and_order(asked);
    let blocks = defaults::blocks(asked, &order);
    let block = blocks.iter().map(|share: &BlockShare| share.max_bytes).max().unwrap_or(0);
    Sight {
        block,
        writes_only: matches!(asked.rw, Some(Rw::Write | Rw::RandWrite)),
        launch: defaults::gather(asked, &order, block).batch,
        no_gpu: no_gpu(asked, machine),
        cufile: match job_keeps_from_cufile(asked) {
            Some(why) => Err(why.to_owned()),
            None => machine.cufile_direct.map(str::to_owned).map_err(str::to_owned),
        },
    }
}

/// A GPU that was named, or its memory, is not given up: the path will say that it is not there.
/// Host memory that was asked for is no reason to take a GPU that was not.
fn no_gpu(asked: &JobSpec, machine: &Machine<'_>) -> Option<String> {
    let which = asked.gpu.as_ref().map(|gpu| &gpu.which);
    match (which, asked.memory, machine.gpus) {
        (Some(GpuWhich::None), ..) => Some("--gpu none was asked for".to_owned()),
        (Some(_), ..) | (None, Some(MemoryAsk::Device | MemoryAsk::Vmm | MemoryAsk::Managed), _) => None,
        (None, Some(MemoryAsk::Malloc | MemoryAsk::Mmap | MemoryAsk::Pinned), _) => {
            Some("host memory was asked for".to_owned())
        }
        (None, None, Gpus::Absent { why }) => Some(why.clone()),
        (None, None, Gpus::Present(_)) => None,
    }
}

/// Why the job itself can't go over cuFile, or not by its direct way.
fn job_keeps_from_cufile(asked: &JobSpec) -> Option<&'static str> {
    let reasons = [
        (asked.engine.is_some() || asked.inject.is_some(), "the job asks for an engine"),
        (asked.depth.is_some_and(|depth| depth > 1), "it moves one block at a time"),
        (asked.direct == Some(false) || defaults::is_fio(asked), "the job is buffered"),
    ];
    reasons.into_iter().find(|(keeps, _)| *keeps).map(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn sight(block: u64, launch: u32) -> Sight {
        Sight {
            block,
            writes_only: false,
            launch,
            no_gpu: None,
            cufile: Err("nvidia-fs is not loaded".into()),
        }
    }

    fn path(sight: &Sight) -> &'static str {
        choose(sight).0
    }

    #[test]
    fn the_table_is_whole_and_in_order() {
        assert!(TABLE.is_sorted_by(|a, b| a.below < b.below));
        assert_eq!(TABLE.last().map(|row| row.below), Some(u64::MAX));
        for row in &TABLE {
            assert!(gpuio_io::path::find(row.path).is_some_and(|path| path.needs_gpu), "{row:?}");
        }
    }

    #[test]
    fn small_blocks_gather_and_large_ones_are_staged() {
        for (block, launch, want) in [
            (512, 128, "gather"),
            (4 * KIB, 128, "gather"),
            (64 * KIB, 16, "gather"),
            (512 * KIB - 512, 2, "gather"),
            (512 * KIB, 2, "staged"),
            (1024 * KIB, 1, "staged"),
            (2 << 30, 1, "staged"),
        ] {
            let seen = sight(block, launch);
            assert_eq!(path(&seen), want, "{block}");
            assert_eq!(path(&Sight { writes_only: true, ..seen }), want, "{block}, written");
        }
    }

    #[test]
    fn the_reason_has_the_figures() {
        let (_, why) = choose(&sight(4 * KIB, 128));
        assert!(why.starts_with("4K blocks, one launch carries 128; "), "{why}");
        let (_, why) = choose(&sight(1024 * KIB, 1));
        assert!(why.starts_with("1M blocks: a copy each fills the link"), "{why}");
        assert!(why.ends_with("; not gds: nvidia-fs is not loaded"), "{why}");
    }

    #[test]
    fn a_lone_block_is_staged_whatever_its_size() {
        let (path, why) = choose(&sight(4 * KIB, 1));
        assert_eq!(path, "staged");
        assert!(why.contains("one by one"), "{why}");
    }

    #[test]
    fn cufile_takes_large_blocks_and_only_with_proof() {
        let proven = |block, launch| Sight { cufile: Ok("it does".into()), ..sight(block, launch) };
        let (path, why) = choose(&proven(1024 * KIB, 1));
        assert_eq!((path, why.as_str()), ("gds", "1M blocks go past host memory: it does"));
        assert_eq!(choose(&proven(4 * KIB, 128)).0, "gather", "cuFile takes a call per block");
    }

    #[test]
    fn without_a_gpu_everything_is_host() {
        for block in [512, 1 << 30] {
            let (path, why) =
                choose(&Sight { no_gpu: Some("no libcuda".into()), ..sight(block, 1) });
            assert_eq!((path, why.as_str()), ("host", "no GPU memory to end in: no libcuda"));
        }
    }
}
