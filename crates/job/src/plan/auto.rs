//! Path `auto`: which path a job's blocks take, by their size and by what works here.
//!
//! A rule over values and a table: nothing is opened or tried here. It never replaces a path that a
//! person names.

use gpuio_base::catalog::GATHER_PLAIN_BYTES;
use gpuio_base::units::format_bytes;
use gpuio_record::{BlockShare, MemoryKind};

use super::defaults;
use super::facts::{Facts, Gpus};
use crate::spec::{GpuWhich, JobSpec, Rw};

/// The facts that the rule looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sight {
    /// The largest block in bytes: slots, and with them the blocks of a launch, are made for it.
    pub(super) block: u64,
    /// Whether every I/O is a write.
    pub(super) writes_only: bool,
    /// Whether managed memory was requested.
    pub(super) managed: bool,
    /// Whether a kernel reaches the memory in which bytes end.
    pub(super) kernel_reach: bool,
    /// Blocks that one launch of path `gather` would carry.
    pub(super) launch: u32,
    /// Why bytes can't end in GPU memory; absent if they can, or were requested to.
    pub(super) no_gpu: Option<String>,
    /// The proof of a direct path of cuFile's between the job's storage and GPU memory, or why
    /// there is none.
    pub(super) cufile: Result<String, String>,
}

/// A path, and what was measured for blocks of its sizes.
#[derive(Debug)]
struct EngineRule {
    /// Blocks below this many bytes.
    below: u64,
    path: &'static str,
    why: &'static str,
}

/// Where blocks come one by one (a launch would carry a single one), smallest size first. Measured
/// on an H100 at depth 1 (docs/lab-book/paths.md): a kernel that stays takes 6.0 µs for 4 KiB and
/// 8.8 µs for 16 KiB where a copy by the driver takes 8.9 and 12.5. Blocks from 512 KiB on are
/// never "one by one": copies are what `gather` does with them too.
const ALONE: [EngineRule; 2] = [
    EngineRule {
        below: 32 << 10,
        path: "resident",
        why: "one by one, and a kernel that stays answers sooner than a copy by the driver (on an \
              H100 6.0 to 8.9 µs at 4K)",
    },
    EngineRule {
        below: u64::MAX,
        path: "staged",
        why: "one by one, and a copy each is all it takes",
    },
];

/// The same for blocks that a launch carries together. Measured on an H100 with a warm file and 12
/// to 16 threads: at 4 KiB `gather` moved 15 times what `staged` did, at 64 KiB 4.5 times, at
/// 1 MiB, four blocks to a copy, 1.1 times, and so at 4 MiB with two blocks in flight.
const READS: [EngineRule; 2] = [
    EngineRule {
        below: GATHER_PLAIN_BYTES,
        path: "gather",
        why: "a copy each costs a driver call per block (on an H100 a 4th of the rate at 64K)",
    },
    EngineRule {
        below: u64::MAX,
        path: "gather",
        why: "few large copies under way keep the link fuller (on an H100 1.1 times staged's rate \
              at 1M and 4M)",
    },
];

/// Writes alone: at 4 KiB 12 times, at 1 MiB 0.93 times.
const WRITES: [EngineRule; 2] = [
    EngineRule {
        below: GATHER_PLAIN_BYTES,
        path: "gather",
        why: "a copy each costs a driver call per block (on an H100 a 12th of the rate at 4K)",
    },
    EngineRule {
        below: u64::MAX,
        path: "staged",
        why: "a block goes to its file as soon as it is across (on an H100 1.08 times gather's \
              rate at 1M)",
    },
];

/// Blocks from here on are large enough that a call of cuFile for each costs little.
const CUFILE_FROM: u64 = 512 << 10;

/// The path, and why.
pub(super) fn choose(sight: &Sight) -> (&'static str, String) {
    let blocks = format!("{} blocks", format_bytes(sight.block));
    if sight.managed {
        return ("managed", "managed memory was requested".to_owned());
    }
    if let Some(why) = &sight.no_gpu {
        return ("host", format!("no GPU memory to end in: {why}"));
    }
    let not_cufile = match &sight.cufile {
        Ok(proof) if sight.block >= CUFILE_FROM => {
            return ("gds", format!("{blocks} go past host memory: {proof}"));
        }
        Err(why) if sight.block >= CUFILE_FROM => format!("; not gds: {why}"),
        _ => String::new(),
    };
    let table = match sight {
        Sight { launch: ..2, block: ..GATHER_PLAIN_BYTES, .. } => &ALONE,
        Sight { writes_only: true, .. } => &WRITES,
        _ => &READS,
    };
    let fits = |row: &&EngineRule| {
        let takes = sight.kernel_reach || row.path != "resident";
        sight.block < row.below && takes
    };
    let row = table.iter().find(fits).unwrap_or(&table[1]);
    let carried = if row.path == "gather" && sight.launch > 1 {
        format!(", one launch carries {}", sight.launch)
    } else {
        String::new()
    };
    (row.path, format!("{blocks}{carried}: {}{not_cufile}", row.why))
}

/// The path that `auto` takes on a machine with a GPU, in words.
pub fn auto_in_words() -> String {
    "gather; for blocks that come one by one resident below 32K and staged from there on, and \
     staged for writes from 512K on"
        .to_owned()
}

/// The facts about a job that the rule sees.
pub(super) fn sight(requested: &JobSpec, facts: &Facts<'_>) -> Sight {
    let (_, order) = defaults::mix_and_order(requested);
    let blocks = defaults::blocks(requested, &order);
    let block = blocks.iter().map(|share: &BlockShare| share.max_bytes).max().unwrap_or(0);
    Sight {
        block,
        writes_only: matches!(requested.rw, Some(Rw::Write | Rw::RandWrite)),
        managed: requested.memory == Some(MemoryKind::Managed),
        kernel_reach: !matches!(requested.memory, Some(MemoryKind::Malloc | MemoryKind::Mmap)),
        launch: defaults::gather(requested, &order, block).batch,
        no_gpu: no_gpu(requested, facts),
        cufile: match job_keeps_from_cufile(requested) {
            Some(why) => Err(why.to_owned()),
            None => facts.cufile_direct.map(str::to_owned).map_err(str::to_owned),
        },
    }
}

/// A GPU that was named, or its memory, is not given up: the path will say that it is not there.
/// Host memory that was requested is no reason to take a GPU that was not.
fn no_gpu(requested: &JobSpec, facts: &Facts<'_>) -> Option<String> {
    let which = requested.gpu.as_ref().map(|gpu| &gpu.which);
    match (which, requested.memory, facts.gpus) {
        (Some(GpuWhich::None), ..) => Some("--gpu none was requested".to_owned()),
        (Some(_), ..)
        | (None, Some(MemoryKind::Device | MemoryKind::Vmm | MemoryKind::Managed), _) => None,
        (None, Some(MemoryKind::Malloc | MemoryKind::Mmap | MemoryKind::Pinned), _) => {
            Some("host memory was requested".to_owned())
        }
        (None, None, Gpus::Absent { why }) => Some(why.clone()),
        (None, None, Gpus::Present(_)) => None,
    }
}

/// Why the job itself can't go over cuFile, or not by its direct path.
fn job_keeps_from_cufile(requested: &JobSpec) -> Option<&'static str> {
    let reasons = [
        (requested.engine.is_some() || requested.inject.is_some(), "the job requests an engine"),
        (requested.depth.is_some_and(|depth| depth > 1), "it moves one block at a time"),
        (requested.direct == Some(false) || requested.is_fio(), "the job is buffered"),
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
            managed: false,
            kernel_reach: true,
            launch,
            no_gpu: None,
            cufile: Err("nvidia-fs is not loaded".into()),
        }
    }

    fn path(sight: &Sight) -> &'static str {
        choose(sight).0
    }

    #[test]
    fn the_tables_are_whole_and_in_order() {
        for table in [&ALONE, &READS, &WRITES] {
            assert!(table.is_sorted_by(|a, b| a.below < b.below));
            assert_eq!(table.last().map(|row| row.below), Some(u64::MAX));
            for row in table {
                let path = gpuio_io::CATALOG.path(row.path);
                assert!(path.is_some_and(|path| path.needs_gpu), "{row:?}");
            }
        }
    }

    #[test]
    fn blocks_that_come_together_gather() {
        for (block, launch) in [(512, 128), (4 * KIB, 128), (64 * KIB, 32), (1024 * KIB, 4)] {
            assert_eq!(path(&sight(block, launch)), "gather", "{block}");
        }
        assert_eq!(path(&sight(16 << 20, 1)), "gather");
        let write = |block, launch| path(&Sight { writes_only: true, ..sight(block, launch) });
        assert_eq!((write(4 * KIB, 128), write(1024 * KIB, 4)), ("gather", "staged"));
    }

    #[test]
    fn blocks_that_come_alone_are_resident_or_staged() {
        for (block, want) in
            [(512, "resident"), (16 * KIB, "resident"), (32 * KIB, "staged"), (256 * KIB, "staged")]
        {
            assert_eq!(path(&sight(block, 1)), want, "{block}");
        }
        let out_of_reach = Sight { kernel_reach: false, ..sight(4 * KIB, 1) };
        assert_eq!(path(&out_of_reach), "staged");
    }

    #[test]
    fn the_reason_has_the_figures() {
        let (_, why) = choose(&sight(4 * KIB, 128));
        assert!(why.starts_with("4K blocks, one launch carries 128: "), "{why}");
        let (_, why) = choose(&sight(4096 * KIB, 1));
        assert!(why.starts_with("4M blocks: few large copies"), "{why}");
        assert!(why.ends_with("; not gds: nvidia-fs is not loaded"), "{why}");
    }

    #[test]
    fn cufile_takes_large_blocks_and_only_with_proof() {
        let proven = |block, launch| Sight { cufile: Ok("it does".into()), ..sight(block, launch) };
        let (path, why) = choose(&proven(1024 * KIB, 4));
        assert_eq!((path, why.as_str()), ("gds", "1M blocks go past host memory: it does"));
        assert_eq!(choose(&proven(4 * KIB, 128)).0, "gather", "cuFile takes a call per block");
    }

    #[test]
    fn memory_that_was_requested_for_decides() {
        let managed = Sight { managed: true, ..sight(4 * KIB, 128) };
        assert_eq!(path(&managed), "managed");
        for block in [512, 1 << 30] {
            let (path, why) =
                choose(&Sight { no_gpu: Some("no libcuda".into()), ..sight(block, 1) });
            assert_eq!((path, why.as_str()), ("host", "no GPU memory to end in: no libcuda"));
        }
    }
}
