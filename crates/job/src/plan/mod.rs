//! The request, what the machine is and what gpuio has, resolved into what will happen.
//!
//! [`plan`] takes a `Spec` and [`Facts`] and returns a `Plan` in which nothing is left to a
//! default. Pure: the same spec on the same facts gives the same plan, and nothing is opened or
//! made. The crate's dependencies hold that: none of them can open a file, a GPU or an engine.
//! Engines and paths come as data, [`Facts::catalog`]; what has to be tried on the machine (what is
//! at a path, whether an engine or cuFile can run) is a function of the caller's in [`Facts`],
//! because what a job does not need must not be tried: it may load a library or create a file.
//! Whether a target may be written is checked afterwards, by the data set's guard.
//!
//! - `job`: one job on one path; each other module decides one part of it. `defaults` has what
//!   applies where nothing was requested, with the reason. `layout` says how the data of all
//!   threads and ranks lie in files, `regions` which bytes each thread works on.
//! - `auto`: which path is chosen where that is left to gpuio.
//! - `part`: parts of larger loads, and jobs that run several times.
//! - `work`: the kinds of load, each with a module of its own: `ranges` (files that are read as a
//!   whole, or tensor by tensor), `replay` (recorded calls that are made again), `feed` (training
//!   feeds, whose regions are samples).
//! - `vet`, [`unused`]: what is refused, because it can't be done or would have no effect. Only the
//!   plan of a job shows which values had none. Where there are some, the job is planned again
//!   without them, because they may have decided other parts of that plan.
//! - [`ceiling`]: which upper bounds are looked for, and with which loads.
//!
//! This module neither reads the machine nor does anything that was planned.

mod auto;
mod beside;
pub mod ceiling;
mod cufile;
mod defaults;
mod facts;
mod fan_out;
mod feed;
mod habits;
mod job;
mod layout;
mod mapped;
mod memory;
mod part;
mod placement;
mod quick;
mod ranges;
pub mod read_back;
mod regions;
mod replay;
mod steady;
#[cfg(test)]
mod tests;
pub mod unused;
mod vet;
mod via;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use gpuio_base::catalog::{Backend, Catalog, GPU_RINGS, PathInfo};
use gpuio_record::{Choice, Follow, JobPlan, LeftOut, Order, Plan};

use crate::spec::{JobSpec, Key, Spec, Status, Vocabulary};

pub use auto::auto_in_words;
pub use cufile::settings as cufile_settings;
pub use defaults::{REFUSES_DIRECT, whole_time_ns};
pub use facts::{DirectAnswer, Facts, Gpus, LinkInfo, TargetInfo, TargetLookup};
pub use feed::TIER_KEY;
pub use layout::on_own_files;
pub use mapped::mapped_parts;
pub use part::STAGE;
pub use quick::{QuickSize, fit_quick, quick_spec};
pub use regions::SCRATCH;
pub use vet::latency_at;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The request contradicts itself or can't be done by gpuio: exit code 2.
    #[error("{}{what}", prefix(at.as_deref()))]
    Usage {
        /// Where it was requested: a job, a line of a file, or a flag.
        at: Option<String>,
        /// The error and its remedy.
        what: String,
    },
    /// It could be done elsewhere, not on this machine: exit code 3.
    #[error("{}{what}", prefix(at.as_deref()))]
    Unavailable {
        /// Where it was requested.
        at: Option<String>,
        /// The missing part and the remedy.
        what: String,
    },
    /// Several of these, in the order of the jobs.
    #[error("{}", lines(.0))]
    Several(Vec<PlanError>),
}

impl PlanError {
    /// Whether the request is wrong, or a part of it: exit code 2.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            PlanError::Usage { .. } => true,
            PlanError::Unavailable { .. } => false,
            PlanError::Several(errors) => errors.iter().any(PlanError::is_usage),
        }
    }
}

fn lines(errors: &[PlanError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n       ")
}

fn prefix(at: Option<&str>) -> String {
    at.map(|at| format!("{at}: ")).unwrap_or_default()
}

impl PlanError {
    fn usage(job: &JobSpec, field: &str, what: impl Into<String>) -> PlanError {
        PlanError::Usage { at: Some(at(job, field)), what: said(job, field, &what.into()) }
    }

    fn unavailable(job: &JobSpec, field: &str, what: impl Into<String>) -> PlanError {
        PlanError::Unavailable { at: Some(at(job, field)), what: said(job, field, &what.into()) }
    }
}

/// A message in the words of whoever requested a field.
fn said(job: &JobSpec, field: &str, what: &str) -> String {
    Vocabulary::of(job, field).say(what)
}

/// The source that requested a field, or the job.
fn at(job: &JobSpec, field: &str) -> String {
    match job.requested.get(field) {
        Some(requested) => format!("job '{}', {requested}", job.name),
        None => format!("job '{}'", job.name),
    }
}

/// Series points are this far apart unless the run is short.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Resolves `spec` on `machine`.
///
/// A job that names several paths becomes one job per path, one after another. Paths that this
/// machine can't take are left out only where `all` was requested; their reason stands in
/// [`Plan::left_out`]. [`AUTO`] takes one by the size of blocks and what works here, and says why.
/// A path that was named is an error when it can't run.
///
/// # Errors
/// The contradictions and impossibilities of the jobs, each with the source that requested it; or
/// the first of what several jobs have together.
pub fn plan(spec: &Spec, facts: &Facts<'_>) -> Result<Plan, PlanError> {
    vet::opens(spec, &facts.catalog)?;
    vet::targets(spec)?;
    let spec = &*habits::of_directions(spec);
    let spec = &*part::repeated(spec)?;
    let spec = &*part::staged(spec)?;
    let spec = &*replay::shaped(spec)?;
    let mut planned = Planned::default();
    let mut errors = Errors::default();
    for (number, requested) in spec.jobs.iter().enumerate() {
        if let Err(error) = planned.take(spec, number, requested, facts) {
            let began_at = planned.began_at;
            errors.of_job(requested, error, |own| {
                Planned { began_at, ..Planned::default() }.take(spec, number, own, facts)
            });
            // It may use all of its values.
            planned.unused.push((number, Vec::new()));
        }
    }
    errors.0.extend(unused::refused(&spec.jobs, &planned.unused));
    errors.none()?;
    let Planned { mut jobs, left_out, .. } = planned;
    if jobs.is_empty() {
        return Err(PlanError::Usage {
            at: None,
            what: "no job to run: give flags or a job file; see gpuio bench --help".into(),
        });
    }
    unique_names(&mut jobs);
    read_back::of_groups(&jobs)?;
    beside::of_groups(&jobs)?;
    for together in jobs.chunk_by(|a, b| a.group == b.group) {
        let too_much = mapped::too_much(together, facts);
        if let Some(what) = too_much.or_else(|| memory::too_much(together, facts)) {
            let what = spec.jobs.first().map_or(what.clone(), |job| said(job, "", &what));
            return Err(PlanError::Unavailable { at: None, what });
        }
    }
    let software_gpu = jobs.iter().any(JobPlan::uses_software_gpu);
    let interval_ns = interval_of(&jobs);
    let ceilings = ceiling::plan(&jobs, facts);
    let cufile = cufile::of_jobs(spec, &jobs, &left_out, &facts.catalog)?;
    let name = spec.name.clone();
    Ok(Plan { name, jobs, interval_ns, left_out, ceilings, cufile, software_gpu })
}

/// The jobs of a plan so far.
#[derive(Default)]
struct Planned {
    jobs: Vec<JobPlan>,
    /// Values without effect, by the index of their job in the spec.
    unused: Vec<(usize, Vec<unused::Unused>)>,
    left_out: Vec<LeftOut>,
    group: u32,
    /// Index of the first job of the group.
    began_at: usize,
}

impl Planned {
    /// Adds a job of the spec, on each of its paths.
    fn take(
        &mut self,
        spec: &Spec,
        number: usize,
        requested: &JobSpec,
        facts: &Facts<'_>,
    ) -> Result<(), PlanError> {
        let wall = requested.stonewall == Some(true) && number > 0;
        let wall = wall || habits::waits(&spec.jobs, number, self.began_at)?;
        if wall {
            self.began_at = number;
        }
        let before = number.checked_sub(1).and_then(|before| spec.jobs.get(before));
        job::named_gpus(requested, facts)?;
        let rows = paths_of(requested, facts, &mut self.left_out)?;
        for (nth, row) in rows.iter().enumerate() {
            let alone = is_spread(requested) || before.is_some_and(is_spread);
            let next = !self.jobs.is_empty() && (nth > 0 || wall || alone);
            let group = self.group + u32::from(next);
            let among =
                Among { at: number, alone: spec.jobs.len() == 1, many: rows.len() > 1, group };
            let (job, unused) = match resolved(requested, row, among, facts) {
                // Too much to pin is known only when its files are laid out.
                Err(PlanError::Unavailable { what, .. })
                    if row.requested == "all" && row.row.uses_mapping() =>
                {
                    leave_out(&mut self.left_out, row.row, what);
                    continue;
                }
                resolved => resolved?,
            };
            self.group = group;
            self.jobs.push(job);
            self.unused.push((number, unused));
        }
        Ok(())
    }
}

/// Errors of jobs: a line of `[global]` is in error once.
#[derive(Default)]
struct Errors(Vec<PlanError>);

/// The most errors of one job that are looked for: more than a screen is no help.
const ERRORS_MOST: usize = 20;

impl Errors {
    /// Adds an error of a job and those that show when the job is planned without the value that
    /// was in error. One that decides what others mean ends that: they may be right beside another.
    fn of_job(
        &mut self,
        job: &JobSpec,
        mut error: PlanError,
        mut plan: impl FnMut(&JobSpec) -> Result<(), PlanError>,
    ) {
        let mut own = job.clone();
        for _ in 0..ERRORS_MOST {
            let key = blamed(&own, &error);
            let words = |error: &PlanError| {
                let words = error.to_string();
                words.strip_prefix(&at(job, "")).map_or(words.clone(), str::to_owned)
            };
            let known = |one: &PlanError| words(one).ends_with(&words(&error));
            if key.is_none() || !self.0.iter().any(known) {
                self.0.push(error);
            }
            let Some(Key {
                status: Status::Supported(setter), decides: false, name: cleared, ..
            }) = key
            else {
                return;
            };
            setter.clear(&mut own);
            match plan(&own) {
                Err(next) if asks_for(&next, cleared) => return,
                Err(next) if blamed(&own, &next).is_some_and(|key| !key.decides) => error = next,
                _ => return,
            }
        }
    }

    fn none(mut self) -> Result<(), PlanError> {
        match self.0.len() {
            0 => Ok(()),
            1 => Err(self.0.remove(0)),
            _ => Err(PlanError::Several(self.0)),
        }
    }
}

/// Whether an error asks for a value of this key, which was there until it was taken away.
fn asks_for(error: &PlanError, key: &str) -> bool {
    error.to_string().contains(&format!("add {key}"))
}

/// The key of a job's value that an error is about.
fn blamed(job: &JobSpec, error: &PlanError) -> Option<&'static Key> {
    use PlanError::{Unavailable, Usage};
    let (Usage { at: Some(place), .. } | Unavailable { at: Some(place), .. }) = error else {
        return None;
    };
    let (_, requested) = job.requested.iter().find(|(field, _)| at(job, field) == *place)?;
    crate::spec::find(requested.key)
}

/// Time between two points of the series.
fn interval_of(jobs: &[JobPlan]) -> u64 {
    let shortest = jobs.iter().filter_map(|job| job.stop.runtime_ns).min();
    let interval_ns = match shortest {
        Some(runtime) => (runtime / 10).clamp(100_000_000, INTERVAL_NS),
        None => INTERVAL_NS / 5,
    };
    steady::interval(interval_ns, jobs)
}

/// Where a job on one path stands in its plan.
#[derive(Debug, Clone, Copy)]
struct Among {
    /// Index of the job in the spec.
    at: usize,
    /// Whether the spec has no other.
    alone: bool,
    /// Whether the job takes several paths.
    many: bool,
    group: u32,
}

/// A job on one path without what has no effect on it, and what that was. Where something has none
/// the job is resolved twice: see the module's page.
fn resolved(
    requested: &JobSpec,
    row: &Picked,
    among: Among,
    facts: &Facts<'_>,
) -> Result<(JobPlan, Vec<unused::Unused>), PlanError> {
    let Among { at, alone, many, group } = among;
    let plan = job::resolve(requested, row, (many, group), facts)?;
    let nodes = &facts.host.numa.nodes;
    let seen = crate::spec::KeyContext {
        requested,
        path: row.row,
        catalog: &facts.catalog,
        plan: &plan,
        alone,
        nodes,
    };
    let unused = unused::of_job(&seen, at);
    if unused.is_empty() {
        return Ok((plan, unused));
    }
    // A plan may have millions of files: never two of them at once.
    drop(plan);
    let own = unused::without(requested, &unused);
    Ok((job::resolve(&own, row, (many, group), facts)?, unused))
}

/// Whether a job is spread over several paths. Each of them runs in a group of its own: paths are
/// compared, so no neighbour in the spec may run with the first or the last of them only.
fn is_spread(job: &JobSpec) -> bool {
    let paths = job.paths.as_ref();
    paths.is_some_and(|paths| paths.len() > 1 || paths.iter().any(|path| path == "all"))
}

/// A path of a job.
struct Picked {
    row: &'static PathInfo,
    /// Its name, `auto`, `all`, or `default` where nothing was said.
    requested: String,
    /// Why this one; absent where it was named.
    why: Option<String>,
}

/// The order of a job's offsets, and where its I/Os begin beyond that. Requests that exclude each
/// other do not count.
pub fn order_of(job: &JobSpec) -> (Order, Option<Follow>) {
    (defaults::mix_and_order(job).1, habits::follow(job).ok().flatten())
}

/// The paths that a job requests, by name, [`AUTO`] and `all` among them: those of key `path`, or
/// the one that the rest of the request means, with the reason. Whatever a path needs (a driver,
/// cuFile's library) is derived from these names, and never from the key alone.
pub fn path_names(job: &JobSpec) -> (Vec<&str>, Option<&'static str>) {
    if let Some(names) = &job.paths {
        return (names.iter().map(String::as_str).collect(), None);
    }
    let wants_gpu = job.gpu.as_ref().is_some_and(|gpu| gpu.which != crate::spec::GpuWhich::None);
    let (name, why) = match (job.fio_cufile == Some(true), job.cuda_posix == Some(true)) {
        (true, true) => ("staged", "fio's libcufile with cuda_io=posix"),
        (true, false) => ("gds", "fio's libcufile"),
        (false, _) if job.chain == Some(true) => ("initiated", "a chain was requested and no path"),
        (false, _) if wants_gpu => ("staged", "a GPU was requested and no path"),
        (false, _) => ("host", "no GPU and no path was requested"),
    };
    (vec![name], Some(why))
}

/// The paths of a job with the reason for each that was not named; those of `all` that can't run
/// here are added to `left_out`.
fn paths_of(
    job: &JobSpec,
    facts: &Facts<'_>,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<Picked>, PlanError> {
    let (names, meant) = path_names(job);
    if let Some(why) = meant {
        let row = |name: &&str| pick(facts, name, Choice::DEFAULT, Some(why.to_owned()));
        return Ok(names.iter().filter_map(row).collect());
    }
    let mut rows = Vec::new();
    for name in names {
        match name {
            "all" => all_paths(job, facts, &mut rows, left_out),
            AUTO => {
                let (name, why) = auto::choose(&auto::sight(job, facts));
                rows.extend(pick(facts, name, AUTO, Some(why)));
            }
            name => {
                let row = pick(facts, name, name, None)
                    .ok_or_else(|| unknown_path(job, name, &facts.catalog))?;
                match lacks(job, row.row, facts).filter(|_| job.paths_if_here) {
                    Some(why) => leave_out(left_out, row.row, why),
                    None => rows.push(row),
                }
            }
        }
    }
    Ok(rows)
}

/// The word that leaves the choice of a path to gpuio.
pub const AUTO: &str = "auto";

fn pick(facts: &Facts<'_>, name: &str, requested: &str, why: Option<String>) -> Option<Picked> {
    facts.catalog.path(name).map(|row| Picked { row, requested: requested.to_owned(), why })
}

/// NVIDIA's library may end the process that it runs in: its paths come last, when the others'
/// results are there. gpuio's own core changes how the driver treats synchronous memory operations,
/// so its paths come after those with an engine.
fn all_paths(
    job: &JobSpec,
    facts: &Facts<'_>,
    rows: &mut Vec<Picked>,
    left_out: &mut Vec<LeftOut>,
) {
    let mut paths: Vec<_> = facts.catalog.paths.iter().collect();
    paths.sort_by_key(|row| match row.backend {
        Backend::Engine | Backend::Mapping | Backend::Rings => 0,
        Backend::Library(_) => 1,
        Backend::Cufile(_) => 2,
    });
    for row in paths {
        let Some(why) = lacks(job, row, facts) else {
            let why = Some("all paths were requested".to_owned());
            rows.push(Picked { row, requested: "all".to_owned(), why });
            continue;
        };
        leave_out(left_out, row, why);
    }
}

fn leave_out(left_out: &mut Vec<LeftOut>, row: &PathInfo, why: String) {
    let out = LeftOut { path: row.name.to_owned(), why };
    if !left_out.contains(&out) {
        left_out.push(out);
    }
}

/// Why a path of `all` can't run this job here.
fn lacks(job: &JobSpec, row: &PathInfo, facts: &Facts<'_>) -> Option<String> {
    if let Gpus::Absent { why } = &facts.gpus
        && row.needs_gpu
    {
        return Some(why.clone());
    }
    if row.via_gpu {
        return Some("it goes through a second GPU and runs only where it is named".to_owned());
    }
    if let Some(why) = work::lacks(job, row) {
        return Some(why);
    }
    if row.fans_out {
        return Some("it ends in several GPUs and runs only where it is named".to_owned());
    }
    if let Some(why) = memory::lacks(job, row) {
        return Some(why);
    }
    if row.uses_engine() {
        let gpus = job::gpus(job, row, facts).unwrap_or_default();
        return memory::no_hints(row, &gpus);
    }
    if job.engine.is_some() || job.inject.is_some() {
        return Some(format!("it has no engine, and the job asks for one: {}", no_engine(row)));
    }
    if row.uses_rings()
        && let Some(why) = (facts.engine_missing)(GPU_RINGS)
    {
        return Some(why);
    }
    let gpus = job::gpus(job, row, facts).unwrap_or_default();
    let lacks = row.cufile().and_then(|calls| (facts.cufile_missing)(calls));
    lacks.or_else(|| mapped::no_register(row, &gpus))
}

/// The answer of a path without an engine where one was requested.
fn no_engine(row: &PathInfo) -> &'static str {
    match row.backend {
        Backend::Library(_) => {
            "gpuio's library core itself moves the bytes between file and GPU memory"
        }
        Backend::Mapping => "the GPU itself reads and writes the page cache",
        Backend::Rings => "the GPU itself starts the I/O, through io_uring",
        Backend::Cufile(_) | Backend::Engine => {
            "cuFile itself moves the bytes between file and GPU memory"
        }
    }
}

/// Words that other tools have for a path of ours, beyond gdsio's names.
const PATHS_ELSEWHERE: [(&str, &str); 9] = [
    ("cufile", "gds"),
    ("libcufile", "gds"),
    ("gpudirect", "gds"),
    ("gpu", "gds"),
    ("cuda", "staged"),
    ("pinned", "staged"),
    ("posix", "host"),
    ("cpu", "host"),
    ("nvme", "host"),
];

fn unknown_path(job: &JobSpec, name: &str, catalog: &Catalog) -> PlanError {
    let known: Vec<&str> = catalog.paths.iter().map(|row| row.name).collect();
    let plain = |word: &str| word.to_lowercase().replace(['-', '_'], "");
    let by_gdsio = catalog.paths.iter().find(|row| {
        plain(row.gdsio_name) == plain(name) || row.gdsio.is_some_and(|x| x.to_string() == name)
    });
    let elsewhere = || PATHS_ELSEWHERE.iter().find(|(word, _)| *word == plain(name));
    let engine = catalog.engines.iter().find(|engine| engine.name == name);
    let near = match (engine, by_gdsio) {
        (Some(engine), _) => format!("; it is an engine: path=host engine={}", engine.name),
        (None, Some(row)) => format!("; gdsio's is path {} here", row.name),
        (None, None) => match elsewhere() {
            Some((_, path)) => format!("; other tools' is path {path} here"),
            None => nearest(name, known.iter().copied().chain([AUTO, "all"])),
        },
    };
    let known = known.join(", ");
    let what = format!("there is no path '{name}'{near}; paths are {known}, or auto, or all");
    PlanError::usage(job, "paths", what)
}

/// The known word nearest to a misspelt one, as a part of a sentence; nothing where all are too
/// far.
fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    crate::spec::nearest(word, known).map(|near| format!("; nearest: {near}")).unwrap_or_default()
}

/// Job names are keys of the record: repeats get a number.
fn unique_names(jobs: &mut [gpuio_record::JobPlan]) {
    let requested: BTreeSet<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let mut taken = BTreeSet::new();
    let mut counts = BTreeMap::<String, u32>::new();
    for job in jobs {
        let count = counts.entry(job.name.clone()).or_insert(1);
        let mut name = job.name.clone();
        // A number that someone gave to a job of his own is left to it.
        while taken.contains(&name) || (name != job.name && requested.contains(&name)) {
            *count += 1;
            name = format!("{}#{count}", job.name);
        }
        job.name.clone_from(&name);
        taken.insert(name);
    }
}
