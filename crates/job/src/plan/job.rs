//! One job on one path.

use gpuio_base::catalog::{Backend, GPU_RINGS, PathInfo};
use gpuio_base::units::format_cpu_list;
use gpuio_record::{
    Arrivals, Choice, Compressible, DirectMode, Fill, Gpu, JobPlan, MemoryKind, Order, Pacing,
    PathChoice, VerifyMode,
};

use super::defaults::{self};
use super::facts::{Facts, Gpus};
use super::feed;
use super::placement::workers;
use super::work::Work;
use super::{
    Picked, PlanError, fan_out, habits, layout, mapped, memory, part, regions, steady, vet, via,
};
use crate::spec::{GpuWhich, JobSpec};

/// Streams per thread on a GPU path by default. On an H100 a second one made the tail longer
/// and bought no rate from 64 KiB on (one copy engine serves each direction), but was worth 1.7
/// times the rate at 4 KiB, where the driver's calls are the limit (docs/lab-book/staged.md).
fn default_streams(block_max: u64) -> u32 {
    if block_max < 64 << 10 { 2 } else { 1 }
}

#[expect(clippy::too_many_lines, reason = "one line for each field of the plan")]
pub(super) fn resolve(
    spec: &JobSpec,
    picked: &Picked,
    (many, group): (bool, u32),
    facts: &Facts<'_>,
) -> Result<JobPlan, PlanError> {
    let (path, seed) = (picked.row, spec.seed.unwrap_or(1));
    let mut gpus = hinted(spec, path, facts)?;
    let mut work = Work::of(spec, path, &mut gpus)?;
    let whole = &*work.shaped(spec, path)?;
    let spec = &*part::scaled(whole);
    let fan_out = fan_out::resolve(spec, path, &gpus)?;
    let (read_percent, order) = defaults::mix_and_order(spec);
    let (order, blocks, block_max) = work.blocks(spec, order);
    let write_blocks = defaults::write_blocks(spec);
    let largest = write_blocks.iter().map(|share| share.max_bytes).max();
    let block_max = block_max.max(largest.unwrap_or(0));
    let default = || work.threads(spec, (&gpus, fan_out), block_max, facts);
    let threads = spec.threads.unwrap_or_else(default);
    let layout = layout::resolve(spec, read_percent)?;
    let sizes = [blocks.as_slice(), write_blocks.as_slice()].concat();
    let mut ground = regions::ground(spec, work.files(threads), layout.as_ref(), facts)?;
    let links = ground.links();
    ground.lengths = regions::requested_lengths(spec, ground.files_of_a_thread(), &sizes)?;
    let spec = &*regions::with_offset(spec, &ground, &sizes)?;
    let via = via::resolve(spec, path, &gpus, &ground, facts)?;
    let chosen = defaults::direct(spec, path, &ground.infos);
    let (direct, direct_why, alignment) =
        work.opened(spec, (threads, &ground, block_max), chosen, facts)?;
    let (engine, asynchronous) = engine(spec, path, direct, facts)?;
    let (align_bytes, skew_bytes) = defaults::alignment(spec, &sizes, &order, alignment);
    let laid = work.lay(spec, (threads, &mut ground, block_max), alignment, facts)?;
    let stop = work.stop(spec, laid.pass_bytes)?;
    let ceilings_ns = defaults::ceilings(spec).filter(|_| matches!(work, Work::Blocks));
    let (fill, verify) = (spec.fill.unwrap_or(Fill::Pattern), verify(spec, read_percent));
    // Random data that is verified is the pattern.
    let is_pattern = fill == Fill::Random && verify != VerifyMode::Off;
    let random = is_pattern && read_percent < 100;
    let random = random.then(|| RANDOM_AND_VERIFIED.to_owned());
    let notes =
        notes(spec, path).into_iter().chain(work.note()).chain(random).chain(habits::paused(spec));
    let notes = notes.chain(links).collect();
    let (feed, ranges, replay) = work.plans();
    let in_flight = in_flight(spec, path, asynchronous, &order, block_max);
    let workers = workers(spec, (threads, seed), (&gpus, via.as_ref()), laid.regions, facts)?;
    let bytes_of = habits::bytes_of(spec, stop, &blocks);
    let plan = JobPlan {
        name: name(spec, path, many),
        group,
        path: path_choice(picked),
        engine,
        threads,
        depth: in_flight.depth,
        defaulted: Some(defaults::unset(spec)),
        read_percent,
        order,
        follow: habits::follow(spec)?,
        blocks,
        write_blocks,
        align_bytes,
        direct_alignment_bytes: alignment,
        skew_bytes,
        stop,
        bytes_of,
        steady: None,
        ramp_ns: spec.ramp_ns.unwrap_or(0),
        think: habits::think(spec),
        flush: habits::flush(spec),
        logs: habits::logs(spec),
        start_delay_ns: spec.start_delay_ns.unwrap_or(0),
        pacing: pacing(spec, (spec.rate_bytes, spec.rate_iops)),
        write_pacing: write_pacing(spec),
        max_latency_ns: spec.max_latency_ns.filter(|time| *time > 0),
        ends_others: spec.ends_others == Some(true),
        fadvise_hint: spec.fadvise_hint.flatten(),
        require_path: spec.require_path == Some(true),
        seed,
        direct,
        direct_why,
        pre_read: false,
        invalidate: false,
        sync: spec.sync.unwrap_or(false),
        verify,
        verify_ns: spec.verify_ns,
        own_verification: spec.verify.is_some() && spec.origin("verify").is_none(),
        fio_headers: spec.fio_headers == Some(true),
        against_file: spec.against_file == Some(true),
        salt: defaults::SALT,
        compressible: compressible(spec),
        fill: if is_pattern { Fill::Pattern } else { fill },
        // A replay's reads find its writes.
        refill: spec.refill.unwrap_or(replay.is_some() && read_percent < 100),
        memory: memory::resolve(spec, path)?,
        streams: in_flight.streams,
        gather_batch: in_flight.batch,
        gather_scatter: in_flight.scatter,
        chain: path.uses_rings() && spec.chain == Some(true),
        rings: path.uses_rings().then(|| defaults::rings(spec, in_flight.depth)),
        via,
        fan_out,
        register_buffer: path.uses_cufile().then_some(spec.skip_bufregister != Some(true)),
        shared_fd: spec.shared_fd.unwrap_or(feed.is_some() || replay.is_some()),
        keep: spec.keep.unwrap_or(!ground.scratch),
        ceilings_ns,
        beside: defaults::beside(spec),
        feed,
        ranges,
        replay,
        part: part::of(whole, threads)?,
        repeat: part::repeat(spec, name(spec, path, many)),
        percentiles: spec.percentiles.clone().unwrap_or_default(),
        inject: spec.inject.clone(),
        directory: ground.directory.clone(),
        more_directories: spec.more_directories.clone(),
        file_prefix: ground.prefix.clone(),
        filename_format: ground.format.clone(),
        size_bytes: laid.size_bytes,
        size_percent: laid.size_percent,
        offset_bytes: spec.offset.unwrap_or(0),
        shared_files: ground.shared,
        files_per_thread: ground.files_per_thread(),
        files_in_turn: habits::files_in_turn(spec, &ground),
        offset_increment: spec.offset_increment,
        file_bytes: spec.file_bytes,
        file_bytes_most: spec.file_bytes_most,
        layout,
        gpus,
        targets: laid.targets,
        workers,
        notes,
    };
    finished(spec, plan, alignment, facts)
}

/// The plan with what rests on other parts of it, if nothing in it contradicts another.
fn finished(
    spec: &JobSpec,
    mut plan: JobPlan,
    alignment: u64,
    facts: &Facts<'_>,
) -> Result<JobPlan, PlanError> {
    (plan.stop, plan.steady) = steady::resolve(spec, plan.stop)?;
    (plan.pre_read, plan.invalidate) = defaults::cache(spec, &plan, facts);
    vet::plan(spec, &plan, alignment)?;
    match mapped::too_much(std::slice::from_ref(&plan), facts) {
        Some(why) => Err(PlanError::unavailable(spec, "size", why)),
        None => Ok(plan),
    }
}

fn name(spec: &JobSpec, path: &PathInfo, many: bool) -> String {
    if many { format!("{}-{}", spec.name, path.name) } else { spec.name.clone() }
}

/// The GPUs, if the path can take the request, and they what it may need of them.
fn hinted(spec: &JobSpec, path: &PathInfo, facts: &Facts<'_>) -> Result<Vec<Gpu>, PlanError> {
    vet::keys(spec, path)?;
    let gpus = gpus(spec, path, facts)?;
    match memory::no_hints(path, &gpus).or_else(|| mapped::no_register(path, &gpus)) {
        Some(why) => Err(PlanError::unavailable(spec, "paths", why)),
        None => Ok(gpus),
    }
}

/// How many blocks are in flight, and how they cross to the GPU.
struct InFlight {
    depth: u32,
    streams: u32,
    batch: Option<u32>,
    scatter: Option<bool>,
}

fn in_flight(
    spec: &JobSpec,
    path: &PathInfo,
    asynchronous: bool,
    order: &Order,
    block_max: u64,
) -> InFlight {
    if let Backend::Cufile(calls) | Backend::Library(calls) = path.backend {
        let defaults::LibraryShape { depth, streams, batch } =
            defaults::library(spec, path, calls, block_max);
        return InFlight { depth, streams, batch, scatter: None };
    }
    if path.uses_mapping() {
        let defaults::Groups { depth, batch, streams } = defaults::mapped(spec, block_max);
        return InFlight { depth, streams, batch: Some(batch), scatter: None };
    }
    if path.batches {
        let defaults::Gather { depth, streams, batch, scatter } =
            defaults::gather(spec, order, block_max);
        return InFlight { depth, streams, batch: Some(batch), scatter: Some(scatter) };
    }
    let deep = asynchronous || path.uses_rings();
    let depth = defaults::depth(spec, deep, path.times_gpu_leg(), block_max);
    let default = fan_out::streams(path).unwrap_or(default_streams(block_max));
    let streams = spec.streams.unwrap_or(default).min(depth);
    let streams = if path.streams { streams } else { 0 };
    InFlight { depth, streams, batch: None, scatter: None }
}

fn path_choice(picked: &Picked) -> PathChoice {
    let Picked { row, requested, why } = picked;
    PathChoice {
        choice: Choice {
            requested: requested.clone(),
            actual: row.name.to_owned(),
            why: why.clone(),
        },
        gdsio: row.gdsio,
        gdsio_name: row.gdsio_name.to_owned(),
    }
}

/// A choice: named when there is no reason for it.
fn choice(actual: &str, why: Option<String>) -> Choice {
    let requested = why.as_ref().map_or(actual, |_| "auto").to_owned();
    Choice { requested, actual: actual.to_owned(), why }
}

/// The text that the record shows instead of an engine on a path without one.
fn no_engine(path: &PathInfo) -> &'static str {
    match path.backend {
        Backend::Library(_) => "none (library)",
        Backend::Mapping => "none (mapping)",
        Backend::Rings => "none (the GPU)",
        Backend::Cufile(_) | Backend::Engine => "none (cuFile)",
    }
}

/// The engine, and whether it is asynchronous.
fn engine(
    spec: &JobSpec,
    path: &PathInfo,
    direct: DirectMode,
    facts: &Facts<'_>,
) -> Result<(Choice, bool), PlanError> {
    if !path.uses_engine() {
        let why = super::no_engine(path).to_owned();
        return Ok((choice(no_engine(path), Some(why)), false));
    }
    let (name, why) = defaults::engine(spec, path, direct, facts);
    let name = polled(spec, name, direct)?;
    let row = facts.catalog.engine(&name).ok_or_else(|| {
        let known: Vec<&str> = facts.catalog.engines.iter().map(|row| row.name).collect();
        let near = super::nearest(&name, known.iter().copied());
        let what = format!("there is no engine '{name}'{near}; engines: {}", known.join(", "));
        PlanError::usage(spec, "engine", what)
    })?;
    // Only a default may step down to another.
    if spec.engine.is_some()
        && let Some(lacks) = (facts.engine_missing)(row.name)
    {
        let what =
            format!("engine {} can't run here: {lacks}; leave it out, or use pool", row.name);
        return Err(PlanError::unavailable(spec, "engine", what));
    }
    Ok((choice(row.name, why), row.asynchronous))
}

/// The form of `io_uring` that polls, where that was requested.
fn polled(spec: &JobSpec, name: String, direct: DirectMode) -> Result<String, PlanError> {
    let (polled, thread) = (spec.polled == Some(true), spec.submit_thread == Some(true));
    if name == "io_uring-iopoll" || (name == "io_uring" && polled) {
        if direct == DirectMode::Buffered {
            let what = "the kernel polls for completions of O_DIRECT I/O only; use direct=1";
            return Err(PlanError::usage(spec, if polled { "polled" } else { "engine" }, what));
        }
        if thread {
            let what = "a kernel thread that submits and completions that are polled for are two \
                        engines here; leave one out";
            return Err(PlanError::usage(spec, "submit_thread", what));
        }
    }
    Ok(match name.as_str() {
        "io_uring" if polled => "io_uring-iopoll".to_owned(),
        "io_uring" if thread => "io_uring-sqpoll".to_owned(),
        _ => name,
    })
}

/// The GPUs whose memory a job uses; empty on the host path.
pub(super) fn gpus(
    spec: &JobSpec,
    path: &PathInfo,
    facts: &Facts<'_>,
) -> Result<Vec<Gpu>, PlanError> {
    let which = spec.gpu.as_ref().map_or(&GpuWhich::Unset, |gpu| &gpu.which);
    let pinned = spec.memory == Some(MemoryKind::Pinned);
    if !path.needs_gpu && !pinned {
        return Ok(Vec::new());
    }
    if *which == GpuWhich::None {
        let what = format!("path {} needs a GPU, and --gpu=none was requested", path.name);
        return Err(PlanError::usage(spec, "gpu", what));
    }
    let present = match facts.gpus {
        Gpus::Present(present) => present,
        Gpus::Absent { why } => {
            let what = format!(
                "path {} needs a GPU: {why}; --gpu=software tries the job without one",
                path.name
            );
            return Err(PlanError::unavailable(spec, "gpu", what));
        }
    };
    if let Some(calls) = path.cufile()
        && let Some(why) = (facts.cufile_missing)(calls)
    {
        let what = format!("path {} needs a cuFile library: {why}", path.name);
        return Err(PlanError::unavailable(spec, "paths", what));
    }
    if path.uses_rings()
        && let Some(why) = (facts.engine_missing)(GPU_RINGS)
    {
        let what = format!("path {} can't run here: {why}", path.name);
        return Err(PlanError::unavailable(spec, "paths", what));
    }
    match which {
        GpuWhich::All => Ok(present.clone()),
        GpuWhich::List(list) => list.iter().map(|index| find(spec, *index, present)).collect(),
        GpuWhich::Unset if path.fans_out => Ok(present.clone()),
        GpuWhich::Unset | GpuWhich::None => Ok(present.iter().take(1).cloned().collect()),
    }
}

fn find(spec: &JobSpec, index: u32, present: &[Gpu]) -> Result<Gpu, PlanError> {
    present.iter().find(|gpu| gpu.index == index).cloned().ok_or_else(|| {
        match spec.requested.get("gpu") {
            // --gpu chose the driver after -d chose the number.
            Some(last) if spec.is_gdsio() && last.key == "gpu" && last.value == "software" => {
                let what = format!("-d {index}: {}", no_gpu(index, present));
                PlanError::unavailable(spec, "", what)
            }
            _ => PlanError::unavailable(spec, "gpu", no_gpu(index, present)),
        }
    })
}

/// The message about a GPU that is not here.
pub(super) fn no_gpu(index: u32, present: &[Gpu]) -> String {
    let numbers: Vec<u32> = present.iter().map(|gpu| gpu.index).collect();
    match numbers.as_slice() {
        [] => format!("there is no GPU {index}: this machine has none"),
        [one] => {
            format!("there is no GPU {index}: this machine has one GPU, and its number is {one}")
        }
        many => {
            let (count, list) = (many.len(), format_cpu_list(many));
            format!("there is no GPU {index}: this machine has {count}, numbered {list}")
        }
    }
}

/// Refuses GPUs that were named and are not here, whichever path the job takes: on the host path
/// they say where threads run. gdsio wants a `-d` there too, on machines without a GPU as well.
pub(super) fn named_gpus(spec: &JobSpec, facts: &Facts<'_>) -> Result<(), PlanError> {
    let Some(gpu) = &spec.gpu else { return Ok(()) };
    let list: &[u32] = match &gpu.which {
        GpuWhich::List(list) => list,
        GpuWhich::All => &[],
        GpuWhich::Unset | GpuWhich::None => return Ok(()),
    };
    if spec.is_gdsio() {
        return Ok(());
    }
    match facts.gpus {
        Gpus::Present(present) => {
            list.iter().try_for_each(|index| find(spec, *index, present).map(drop))
        }
        Gpus::Absent { why } => {
            let what = match list {
                [] => format!("this machine has no GPU: {why}"),
                [index, ..] => format!("{}: {why}", no_gpu(*index, &[])),
            };
            Err(PlanError::unavailable(
                spec,
                "gpu",
                format!("{what}; --gpu=none measures storage alone, --gpu=software needs no GPU"),
            ))
        }
    }
}

fn pacing(spec: &JobSpec, (bytes_per_s, iops): (Option<u64>, Option<u64>)) -> Option<Pacing> {
    let arrivals = spec.arrivals.unwrap_or(Arrivals::Steady);
    (bytes_per_s.is_some() || iops.is_some()).then_some(Pacing { bytes_per_s, iops, arrivals })
}

/// The rate of writes, where a mix has another for its reads: it may be none.
fn write_pacing(spec: &JobSpec) -> Option<Pacing> {
    let writes = spec.of_writes.as_ref()?;
    let (bytes_per_s, iops) = (writes.rate_bytes, writes.rate_iops);
    let arrivals = spec.arrivals.unwrap_or(Arrivals::Steady);
    let other = (bytes_per_s, iops) != (spec.rate_bytes, spec.rate_iops);
    other.then_some(Pacing { bytes_per_s, iops, arrivals })
}

fn verify(spec: &JobSpec, read_percent: u8) -> VerifyMode {
    let usual = if spec.is_feed() { feed::verify(spec) } else { VerifyMode::Off };
    match spec.verify.unwrap_or(usual) {
        // A job that only reads has nothing to rewrite.
        VerifyMode::Rewrite if read_percent == 100 => VerifyMode::Pass,
        // fio checks each block that it reads.
        VerifyMode::Pass if read_percent == 100 && spec.fio_headers == Some(true) => {
            VerifyMode::Inline
        }
        mode => mode,
    }
}

const RANDOM_AND_VERIFIED: &str = "fill: the data is gpuio's pattern, as random and as hard to \
    compress, but the same in each run, so that it can be verified";

/// fio's ways to verify in place of which every byte is compared.
const OF_FIO: [&str; 11] = [
    "md5", "crc64", "crc32", "crc16", "crc7", "xxhash", "sha512", "sha256", "sha1", "meta",
    "pattern",
];

/// Accepted settings that change nothing here, each with the reason.
fn notes(spec: &JobSpec, path: &PathInfo) -> Vec<String> {
    let mut notes = spec.notes.clone();
    notes.extend(spec.for_writes.iter().map(|key| {
        format!("'{}' ({}) has no effect here: the load writes nothing", key.name, key.origin)
    }));
    if let Some(mix) = spec.requested.get("read_percent").filter(|_| write_pacing(spec).is_some()) {
        notes.push(format!(
            "'{}' ({}) has no effect here while storage keeps up: the rates of reads and writes \
             make the mix",
            mix.key, mix.origin
        ));
    }
    let mut note = |set: bool, what: &str| {
        if set {
            notes.push(what.to_owned());
        }
    };
    let value = |field: &str| spec.requested.get(field).map_or("", |set| set.value.as_str());
    note(
        value("engine") == "posixaio",
        "ioengine=posixaio is engine pool: threads that make the calls, as the C library's do",
    );
    note(
        OF_FIO.contains(&value("verify")),
        "verify: gpuio checks every byte of its own pattern, and writes no checksums of fio's into \
         blocks; it can't verify files that fio wrote with this one (with crc32c it can)",
    );
    note(
        spec.nvlinks == Some(true),
        "enable_nvlinks: the driver takes NVLink between GPUs that have it; via_peer says whether \
         it may take host memory instead",
    );
    note(
        spec.direct == Some(true) && path.buffered_only,
        "direct: this path is the one through the page cache, and opens its files without O_DIRECT",
    );
    note(
        spec.mix_percent.is_some(),
        "mix_percent: taken as the percentage of reads; gdsio's help does not say whether its -M \
         counts reads or writes",
    );
    note(
        memory::is_gdsios_default(spec, path),
        "memory: device memory (-m 0) is gdsio's default, and has no effect on a type that ends in \
         host memory",
    );
    let gpu_named = spec.gpu.as_ref().is_some_and(|gpu| gpu.which != GpuWhich::None);
    note(
        gpu_named && !path.needs_gpu && !spec.is_gdsio(),
        "gpu: the host path ends in host memory; the GPU decides only where threads run",
    );
    notes
}

/// How much of the data repeats; fio's chunks have 512 bytes, too.
fn compressible(spec: &JobSpec) -> Option<Compressible> {
    let percent = spec.compress_percent.filter(|percent| *percent > 0)?;
    Some(Compressible { percent, chunk_bytes: spec.compress_chunk.unwrap_or(512) })
}
