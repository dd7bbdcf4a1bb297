//! The common parts of the path tests: which GPU, children with an environment of their own, and a
//! model of files and slots that says what every byte is after each request.
#![allow(unsafe_code)]

pub(crate) mod model;

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gpuio_drivers::cufile::{Library, Search};
use gpuio_gpu::{Context, Driver, FilePages, MappedFile, MemoryKind, Which, pattern};
use gpuio_io::engine::{self, EngineFile, Inject, LegCounters, Op};
use gpuio_io::path::{
    CufileSide, FanOut, FanOutCounters, GpuSide, InitiatedSide, LibraryCounters, MappedCounters,
    OpenedPath, PathConfig, PathEntry, PathError, Place, Request, RouteCounters, Via,
};
pub(crate) use gpuio_testkit::child;
pub(crate) use gpuio_testkit::gpu::{on_system, skipped};
use tempfile::TempDir;

use crate::engine_support::open_direct;

/// Length of each file, bytes: several of the largest block, so that few requests overlap.
pub(crate) const LEN: u64 = 512 << 10;
/// The largest block on files open with O_DIRECT, bytes.
pub(crate) const LARGEST_DIRECT: u32 = 64 << 10;
/// The largest block otherwise, bytes: it ends inside a page and inside a word.
pub(crate) const LARGEST: u32 = LARGEST_DIRECT + 3;

/// How long cuFile may end nothing: far above what the stand-in takes, even on a loaded machine.
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_secs(8);

/// Every memory kind in which bytes may end on this path; none, and said so, where the machine
/// has too few GPUs for it.
pub(crate) fn kinds(row: &PathEntry) -> Vec<MemoryKind> {
    if row.info.needs_gpus() && driver().device_count() < 2 {
        eprintln!("skipped: {}: it needs two GPUs", row.info.name);
        return Vec::new();
    }
    row.info.memory.to_vec()
}

/// Whether the path moves a slot's own pages, so that a failed read leaves what it holds open, and
/// no second copy tells in which leg bytes went wrong.
pub(crate) fn moves_pages(row: &PathEntry) -> bool {
    row.info.memory == [MemoryKind::Managed]
}

/// A request of a slot's buffer, due when it starts.
pub(crate) fn to_slot(op: Op, file: u32, offset: u64, len: u32, slot: u32, now: u64) -> Request {
    Request { op, file, offset, len, slot, started: now, due: now, place: Place::Slot }
}

pub(crate) fn context() -> Context {
    Context::new(&driver(), 0).unwrap()
}

/// The driver; the software GPU has two devices.
fn driver() -> Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    let load = || {
        if on_system() {
            return Driver::load(&Which::System).unwrap();
        }
        if std::env::var_os("GPUIO_SOFT_GPUS").is_none() {
            // SAFETY: nothing here reads the environment past the standard library, whose lock
            // this call takes, and the software GPU, which reads it in the call below.
            unsafe { std::env::set_var("GPUIO_SOFT_GPUS", "2") };
        }
        Driver::load(&Which::Software).unwrap()
    };
    DRIVER.get_or_init(load).clone()
}

/// cuFile, once per process as the library has it: the stand-in beside the software GPU.
pub(crate) fn cufile() -> gpuio_drivers::cufile::Driver {
    static DRIVER: OnceLock<gpuio_drivers::cufile::Driver> = OnceLock::new();
    let open = || {
        let search = Search { stand_in: !on_system(), ..Search::default() };
        let library = Library::load(&search).unwrap();
        gpuio_drivers::cufile::Driver::open(library, None, !on_system()).unwrap()
    };
    DRIVER.get_or_init(open).clone()
}

/// Two files that follow the data rule, and a reference of each that only pread(2) and pwrite(2)
/// touch.
pub(crate) struct Rig {
    directory: TempDir,
    pub(crate) files: Vec<File>,
    pub(crate) references: Vec<File>,
    pub(crate) direct: bool,
}

impl Rig {
    /// Nothing, and said so, where the file system refuses O_DIRECT.
    pub(crate) fn new(direct: bool) -> Option<Rig> {
        Rig::below(tempfile::tempdir().unwrap(), direct)
    }

    /// As [`Rig::new`], on a file system in memory where the path needs one to write.
    pub(crate) fn of(setup: &Setup, direct: bool) -> Option<Rig> {
        let memory = setup.path.info.uses_mapping().then(|| tempfile::tempdir_in("/dev/shm").ok());
        Rig::below(memory.flatten().unwrap_or_else(|| tempfile::tempdir().unwrap()), direct)
    }

    fn below(directory: TempDir, direct: bool) -> Option<Rig> {
        let mut rig = Rig { directory, files: Vec::new(), references: Vec::new(), direct };
        for file in 0..2 {
            let mut bytes = vec![0; usize::try_from(LEN).unwrap()];
            pattern::fill(&mut bytes, rig.key(file), 0);
            for name in ["file", "reference"] {
                std::fs::write(rig.name(name, file), &bytes).unwrap();
            }
            let open = |name: &str| {
                let options = File::options().read(true).write(true).clone();
                options.open(rig.name(name, file)).unwrap()
            };
            let opened = if direct { open_direct(&rig.name("file", file))? } else { open("file") };
            rig.references.push(open("reference"));
            rig.files.push(opened);
        }
        Some(rig)
    }

    pub(crate) fn name(&self, name: &str, file: u32) -> PathBuf {
        self.directory.path().join(format!("{name}{file}"))
    }

    pub(crate) fn key(&self, file: u32) -> pattern::Key {
        pattern::file_key(0x5EED, u64::from(file))
    }

    pub(crate) fn largest(&self) -> u32 {
        if self.direct { LARGEST_DIRECT } else { LARGEST }
    }

    /// Compares the files with their references, through new descriptors.
    pub(crate) fn compare(&self) {
        for file in 0..2 {
            let path = std::fs::read(self.name("file", file)).unwrap();
            let reference = std::fs::read(self.name("reference", file)).unwrap();
            assert_eq!(path.len(), reference.len());
            if let Some(at) =
                path.iter().zip(&reference).position(|(path, reference)| path != reference)
            {
                let count = path.iter().zip(&reference).filter(|(a, b)| a != b).count();
                panic!(
                    "file {file} differs from its reference from byte {at} on, in {count} bytes"
                );
            }
        }
    }
}

/// How a path is opened.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) path: &'static PathEntry,
    pub(crate) engine: &'static engine::EngineEntry,
    pub(crate) memory: MemoryKind,
    pub(crate) depth: u32,
    pub(crate) streams: u32,
    pub(crate) batch: u32,
    pub(crate) scatter: bool,
    /// For the paths of cuFile.
    pub(crate) register: bool,
    /// For the `routed` path.
    pub(crate) any_peer: bool,
    pub(crate) inject: Option<Inject>,
}

impl Setup {
    pub(crate) fn new(path: &str, engine: &str, memory: MemoryKind) -> Setup {
        Setup {
            path: gpuio_io::path::find(path).expect("a path of the table"),
            engine: engine::find(engine).expect("an engine of the table"),
            memory,
            depth: 4,
            streams: 2,
            batch: 2,
            scatter: true,
            register: true,
            any_peer: false,
            inject: None,
        }
    }

    pub(crate) fn with(&self, depth: u32, streams: u32) -> Setup {
        Setup { depth, streams, ..self.clone() }
    }

    pub(crate) fn batches(&self, batch: u32, scatter: bool) -> Setup {
        Setup { batch, scatter, ..self.clone() }
    }

    pub(crate) fn inject(&self, faults: &str) -> Setup {
        Setup { inject: Some(faults.parse().unwrap()), ..self.clone() }
    }

    /// True, and said so, if the engine can't run on this machine.
    pub(crate) fn lacking(&self) -> bool {
        let lacking = (self.engine.available)();
        if let Err(why) = &lacking {
            eprintln!("skipped: {}: {why}", self.engine.info.name);
        }
        lacking.is_err()
    }

    pub(crate) fn config(&self, rig: &Rig, context: &Context) -> PathConfig {
        let file = |file: &File| EngineFile { fd: file.as_raw_fd(), len: LEN, writable: true };
        PathConfig {
            fio_headers: false,
            slots: self.depth,
            block_max: rig.largest(),
            engine: self.path.info.uses_engine().then_some(self.engine),
            files: rig.files.iter().map(file).collect(),
            direct: rig.direct,
            direct_alignment: 4096,
            memory: self.memory,
            tier: None,
            gpu: Some(GpuSide {
                context: context.clone(),
                memory: self.memory,
                streams: self.streams,
                batch: self.batch,
                scatter: self.scatter,
                via: self.path.info.via_gpu.then(|| Via {
                    near: Context::new(context.driver(), 1).unwrap(),
                    any: self.any_peer,
                    counters: Arc::new(RouteCounters::default()),
                }),
                fan_out: self.path.info.fans_out.then(|| FanOut {
                    others: vec![Context::new(context.driver(), 1).unwrap()],
                    any: self.any_peer,
                    counters: Arc::new(FanOutCounters::default()),
                }),
            }),
            cufile: self.path.info.uses_cufile().then(|| self.cufile()),
            inject: self.inject.clone(),
            counters: Arc::new(LegCounters::default()),
            library: Arc::new(LibraryCounters::default()),
            mappings: self.mappings(rig, context),
            mapped: Arc::new(MappedCounters::default()),
            initiated: InitiatedSide { rings: self.streams, ..InitiatedSide::default() },
        }
    }

    /// The files, whole, on paths that use a mapping: to be written, where that is possible.
    fn mappings(&self, rig: &Rig, context: &Context) -> Vec<Arc<MappedFile>> {
        let map = |file: &File| match FilePages::map_writable(context, file.as_fd(), 0..LEN) {
            Ok(pages) => {
                assert!(pages.allocate(file.as_fd(), 2, &|| true).unwrap());
                pages.register(context, false).unwrap()
            }
            Err(_) => MappedFile::new(context, file.as_fd(), 0..LEN, false).unwrap(),
        };
        let files = rig.files.iter().filter(|_| self.path.info.uses_mapping());
        files.map(|file| Arc::new(map(file))).collect()
    }

    fn cufile(&self) -> CufileSide {
        CufileSide { driver: cufile(), register: self.register, stall_timeout: STALL_TIMEOUT }
    }

    pub(crate) fn open(&self, rig: &Rig, context: &Context) -> Result<OpenedPath, PathError> {
        (self.path.open)(self.config(rig, context))
    }
}
