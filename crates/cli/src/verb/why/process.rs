//! `gpuio why PID`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gpuio_base::document::{Format, json_of};
use gpuio_base::units::{human_bytes, shell_word};
use gpuio_host::proc_io::{self, ProcessIoSample};
use gpuio_host::{Root, cufile, nvidia_fs, process_use};
use gpuio_machine::check::why::{
    IoNow, LivePage, Moved, NvidiaFs, ProcessWhy, Seen, Why, of_process, process_document,
};
use gpuio_machine::check::{Gpu, Pair, mount_of};
use gpuio_record::facts::{
    Fact, GpuFacts, LibraryMaker, Machine, MappedLibrary, MountedStorage, OpenFile, ProcessUse,
};
use gpuio_watch::page::read::{self, Owner};
use gpuio_watch::page::{LivePageRoot, PathCounters, SIZES, Saves};
use serde_json::json;

use super::{SCHEMA, of_pair};
use crate::failure::Failure;
use crate::formats;
use crate::output::Delivery;
use crate::verb::check::own_machine;
use crate::verb::stats;

/// How long counters are watched.
const WATCH: Duration = Duration::from_secs(1);

pub(super) fn run(pid: u32, format: &Format, delivery: Delivery) -> Result<ExitCode, Failure> {
    let root = Root::live();
    let gone = || {
        Failure::Unavailable(format!(
            "process {pid}: there is none of this number here; in a container only its own \
             processes have numbers"
        ))
    };
    let mut process = process_use::read(&root, pid).ok_or_else(gone)?;
    let began = Counters::read(&root, pid);
    find_makers(&mut process);
    let machine = machine_of(&root, &process);
    sleep(WATCH.saturating_sub(began.at.elapsed()));
    let ended = Counters::read(&root, pid);
    let page = page(&root, &process);
    let (mounts, unjudged) = judged(&machine, &process, &page);
    let why = of_process(Seen {
        page,
        io_now: began.io_until(&ended, &process),
        nvidia_fs: began.nvidia_fs_until(&ended),
        process,
        mounts,
        unjudged,
    });
    delivery.put(&match format.name {
        "json" => json_of(&json!({ "schema": SCHEMA, "process": why })),
        _ => formats::print(format, "why", &process_document(&why, &next(&root, &why))),
    })?;
    Ok(if why.is_answered() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

struct Counters {
    at: Instant,
    io: Option<ProcessIoSample>,
    nvidia_fs: Result<Option<nvidia_fs::NvidiaFsSample>, String>,
}

impl Counters {
    fn read(root: &Root, pid: u32) -> Counters {
        Counters {
            io: proc_io::sample_of(root, pid).ok().flatten(),
            nvidia_fs: nvidia_fs::sample(root).map_err(|error| error.to_string()),
            at: Instant::now(),
        }
    }

    fn io_until(&self, later: &Counters, process: &ProcessUse) -> Fact<IoNow> {
        match (&self.io, &later.io) {
            (Some(from), Some(to)) => Fact::Known(IoNow {
                seconds: later.at.duration_since(self.at).as_secs_f64(),
                moved: from.delta(to),
            }),
            (Some(_), None) => Fact::unknown("the process ended while it was watched"),
            (None, _) => Fact::unknown(process.io.why().unwrap_or("it was not read")),
        }
    }

    fn nvidia_fs_until(&self, later: &Counters) -> NvidiaFs {
        match (&self.nvidia_fs, &later.nvidia_fs) {
            (Err(why), _) | (_, Err(why)) => NvidiaFs::Unknown(why.clone()),
            (Ok(None), _) | (_, Ok(None)) => NvidiaFs::NotLoaded,
            (Ok(Some(from)), Ok(Some(to))) => match from.delta(to) {
                Some((read_bytes, written_bytes)) => NvidiaFs::Moved { read_bytes, written_bytes },
                None => NvidiaFs::Unknown(
                    "it does not count reads and writes (echo 1 > \
                     /sys/module/nvidia_fs/parameters/rw_stats_enabled, at some cost)"
                        .to_owned(),
                ),
            },
        }
    }
}

/// Reads whose each libcufile is, by the file that the process sees.
fn find_makers(process: &mut ProcessUse) {
    let Fact::Known(libraries) = &mut process.libraries else { return };
    for library in libraries.iter_mut().filter(|one| one.path.contains("/libcufile.so")) {
        library.made_by = maker(process.pid, library);
    }
}

/// Whether it has a libcufile mapped, whoever made it.
fn has_libcufile(process: &ProcessUse) -> bool {
    let mut libraries = process.libraries.known().into_iter().flatten();
    libraries.any(|one| one.path.contains("/libcufile.so"))
}

/// Whether it has gpuio's libcufile mapped.
fn is_on_ours(process: &ProcessUse) -> bool {
    let ours = Fact::Known(LibraryMaker::Gpuio);
    process.libraries.known().is_some_and(|all| all.iter().any(|one| one.made_by == ours))
}

fn maker(pid: u32, library: &MappedLibrary) -> Fact<LibraryMaker> {
    if library.deleted {
        return Fact::unknown("the file was removed or replaced since");
    }
    let file = PathBuf::from(format!("/proc/{pid}/root{}", library.path));
    match std::fs::read(&file) {
        Ok(bytes) if gpuio_drivers::cufile::is_gpuio_library(&bytes) => {
            Fact::Known(LibraryMaker::Gpuio)
        }
        Ok(_) => Fact::Known(LibraryMaker::Other),
        Err(error) => Fact::unknown(format!("{}: {error}", file.display())),
    }
}

/// This machine, with cuFile's configuration as the process sees it.
fn machine_of(root: &Root, process: &ProcessUse) -> Machine {
    let mut machine = own_machine();
    let its_root = match process.same_mounts.known() {
        Some(true) => root.clone(),
        _ => Root::at(format!("/proc/{}/root", process.pid)),
    };
    machine.cufile = cufile::read(&its_root, process.environment.clone());
    let others = process.libraries.known().into_iter().flatten();
    let mut others = others.filter(|one| {
        one.made_by == Fact::Known(LibraryMaker::Other) && one.path.contains("/libcufile.so")
    });
    machine.cufile.library = match others.next() {
        Some(library) => Fact::Known(Some(library.path.clone())),
        None => Fact::unknown("the process has not mapped NVIDIA's libcufile"),
    };
    machine
}

/// The verdict on each mount of its files with each GPU whose node it has open; of GPUs with the
/// same answer the first.
fn judged(
    machine: &Machine,
    process: &ProcessUse,
    page: &Fact<LivePage>,
) -> (Vec<Why>, Vec<String>) {
    let files = process.files.known().map(Vec::as_slice).unwrap_or_default();
    let any_direct = files.iter().any(|file| file.direct);
    let (mut whys, mut unjudged): (Vec<Why>, Vec<String>) = (Vec::new(), Vec::new());
    let gpus = gpus_of(machine, process, page);
    let mut points: Vec<&str> = Vec::new();
    // A process with O_DIRECT files: its others are logs and the like.
    for file in files.iter().filter(|file| file.direct == any_direct) {
        let mount = match mount_for(machine, process, file) {
            Ok(mount) => mount,
            Err(why) => {
                unjudged.push(why);
                continue;
            }
        };
        if points.contains(&mount.mount.mount_point.as_str()) {
            continue;
        }
        points.push(&mount.mount.mount_point);
        for &gpu in &gpus {
            let why = of_pair(&Pair { machine, mount, gpu }, &mount.mount.mount_point);
            let same = |known: &Why| {
                (&known.mount_point, known.gds, &known.ways)
                    == (&why.mount_point, why.gds, &why.ways)
            };
            if !whys.iter().any(same) {
                whys.push(why);
            }
        }
    }
    unjudged.sort();
    unjudged.dedup();
    (whys, unjudged)
}

fn mount_for<'m>(
    machine: &'m Machine,
    process: &ProcessUse,
    file: &OpenFile,
) -> Result<&'m MountedStorage, String> {
    if file.mount_point.is_none() {
        return Err(format!("{}: the verdict is for files on mounts, and it has none", file.path));
    }
    let same = process.same_mounts == Fact::Known(true);
    let by_path = mount_of(machine, &file.path).filter(|_| same);
    let by_device = || machine.mounts.iter().find(|one| Some(one.mount.device) == file.device);
    by_path.or_else(by_device).ok_or_else(|| {
        format!("{}: the process sees other mounts than gpuio does (a container)", file.path)
    })
}

/// GPUs whose nodes the process has open; without one, the first of the machine. The software GPU
/// where its live page names it.
fn gpus_of<'m>(machine: &'m Machine, process: &ProcessUse, page: &Fact<LivePage>) -> Vec<Gpu<'m>> {
    if page.known().is_some_and(|page| page.moved.iter().any(|moved| moved.software)) {
        return vec![Gpu::Software];
    }
    let nodes = process.devices.known().map(Vec::as_slice).unwrap_or_default();
    let open = |gpu: &&GpuFacts| {
        gpu.minor.is_some_and(|minor| nodes.contains(&format!("/dev/nvidia{minor}")))
    };
    let open: Vec<Gpu<'_>> = machine.gpus.iter().filter(open).map(Gpu::Real).collect();
    match (open.is_empty(), machine.gpus.first()) {
        (false, _) => open,
        (true, Some(first)) => vec![Gpu::Real(first)],
        (true, None) => vec![Gpu::None],
    }
}

fn page(root: &Root, process: &ProcessUse) -> Fact<LivePage> {
    let listing = read::find(&LivePageRoot::live(), root, process.pid);
    // Who may read what it has mapped may read its page, unless that lies in another /dev/shm.
    let would_be_seen = is_on_ours(process) && process.same_mounts == Fact::Known(true);
    let Some(found) = listing.found.iter().find(|found| found.owner != Owner::Gone) else {
        let why = listing.notes.first().cloned();
        let absent = match would_be_seen {
            true => {
                "it has made no call of cuFile yet, or could not make its live page, as the first \
                 call does"
            }
            false => {
                "it has no live page that this user may read; gpuio bench has one, and a program \
                 on gpuio's libcufile or libgpuio (Python's gpuio) from its first read on"
            }
        };
        return Fact::unknown(why.unwrap_or_else(|| absent.to_owned()));
    };
    let snapshot = match &found.page {
        Ok(snapshot) => snapshot,
        Err(why) => return Fact::unknown(format!("{}: the page {why}", found.path.display())),
    };
    if let Some(saves) = &snapshot.saves {
        return Fact::unknown(format!(
            "it writes saves of gpuio.checkpoint, {} until now: gpuio stats {pid} shows them",
            human_bytes(saves.all_written as f64),
            pid = process.pid
        ));
    }
    let moved = snapshot.paths.iter().map(moved_of);
    Fact::Known(LivePage {
        program: snapshot.program.clone(),
        release: snapshot.release.clone(),
        moved: moved.collect(),
    })
}

fn moved_of(counters: &PathCounters) -> Moved {
    let (read, write) = (&counters.read, &counters.write);
    let of_class = |class: &usize| read.sizes[*class].saturating_add(write.sizes[*class]);
    let most = (0..SIZES).max_by_key(of_class).unwrap_or_default();
    let busy_ns = read.latency_ns.saturating_add(write.latency_ns);
    Moved {
        gpu: counters.gpu,
        software: counters.is_software(),
        path: counters.path.clone(),
        engine: counters.engine.clone(),
        read_bytes: read.bytes,
        written_bytes: write.bytes,
        requests: read.ios().saturating_add(write.ios()),
        most_from_bytes: if most > 0 { 2048 << most } else { 0 },
        most_below_bytes: (most + 1 < SIZES).then_some(4096 << most),
        mean_in_flight: counters.seconds().map(|seconds| busy_ns as f64 / 1e9 / seconds),
    }
}

/// The command that shows the saves of each drain of the process.
fn drains(root: &Root, pid: u32) -> Vec<String> {
    let command = |(drain, saves): (u32, Saves)| {
        let name = saves.words(&saves.directory);
        format!("gpuio stats {drain}   (its drain of gpuio.checkpoint; {name})")
    };
    stats::drains(root, pid).into_iter().map(command).collect()
}

/// Commands that show more.
fn next(root: &Root, why: &ProcessWhy) -> Vec<String> {
    let pid = why.pid;
    let mut next = drains(root, pid);
    if why.page.known().is_some() || is_on_ours(&why.process) {
        next.push(format!(
            "gpuio stats {pid} --level 3 --interval 1s   (rates and latencies by GPU and path)"
        ));
    } else if !why.is_answered() {
        if !rustix::process::geteuid().is_root() {
            next.push(format!("sudo gpuio why {pid}   (what only root may read)"));
        }
    } else if has_libcufile(&why.process) {
        next.push(format!(
            "gds_stats -p {pid} -l 3   (NVIDIA's tool, for programs on NVIDIA's libcufile that run \
             with CUFILE_STATS_LEVEL=3; gpuio can't read those statistics)"
        ));
        next.push(
            "gpuio exec --cufile nvidia -- PROGRAM   (starts it anew, still on NVIDIA's \
             libcufile: then gpuio stats, gds_stats and --record show its calls)"
                .to_owned(),
        );
    }
    let mount =
        why.mounts.first().map(|mount| format!(" --mount {}", shell_word(&mount.mount_point)));
    next.push(format!(
        "gpuio why{}   (the machine, without the process)",
        mount.unwrap_or_default()
    ));
    next
}
